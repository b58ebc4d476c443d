"""Represents a document of any format as a text with passages to translate.

The reader of a format finds the passages and defines how their translations are written. Everything else is copied byte
for byte: comments, the order of entries, quotation marks and line ends. A library that parses a file into objects and
serializes them again would change these.
"""

import codecs
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from mt.core.coded_text import CodedText, Splice, apply_splices
from mt.core.errors import InputError
from mt.core.files import UNDECODABLE, open_input
from mt.core.language import base_language
from mt.core.text_files import BINARY, INVALID_UTF_8
from mt.formats.layout import Layout, LayoutLine, cut_paragraphs
from mt.formats.messages import directive_changes, has_ordered_directives, has_same_placeholders
from mt.formats.tags import encode

UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
MIN_NUL_SHARE = 0.02
"""The minimum share of NUL bytes in UTF-16 text without a byte order mark: half of each ASCII character is NUL."""
XML_DECLARATION = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""")
MAX_DOCUMENT_BYTES = 100_000_000
"""The maximum size of a document. Documents are held in memory."""


class Languages(NamedTuple):
    """The language codes of a model or of a corpus, as the user wrote them."""

    source: str
    target: str

    def match(self, source: str, target: str | None) -> bool:
        """Return whether two language codes of a document mean these languages.

        An unknown target language, None, always matches.
        """
        codes = ((self.source, source), (self.target, target))
        return all(other is None or base_language(other) == base_language(code) for code, other in codes)

    def check_language(self, code: str) -> None:
        """Raise InputError if the language code of a document is neither the source's nor the target's."""
        if base_language(code) not in map(base_language, self):
            raise InputError(
                f"is in {code}, and the model translates from {self.source} into {self.target}; use a model of the "
                "file's language"
            )


@dataclass(frozen=True)
class Passage:
    """A part of a document that is translated as a unit: an entry of a message file, a subtitle, a paragraph."""

    texts: tuple[Layout, ...]
    """The texts to translate: usually one. An entry with plural forms has two, the singular and the plural."""
    write: Callable[[list[CodedText]], list[Splice] | None]
    """Returns the changes of the document's text, given the translation of each of ``texts``. Returns None if the
    format does not allow these translations."""
    start: int = 0
    """The position of the passage in the document, for messages."""
    key: str = ""
    """The key of the entry, after the keys of its parents, separated by dots. "" if the format has no keys."""
    flags: Collection[str] = ()
    """gettext's flags for the directives of the texts, such as %s; see ``directive_changes``."""


@dataclass(frozen=True)
class Document:
    """A parsed document: its text, the passages to translate, and the function that encodes the translated text."""

    text: str
    passages: Sequence[Passage]
    encode: Callable[[str], bytes] = str.encode
    changes: Sequence[Splice] = ()
    """Changes outside of the passages, such as the language in a header. They are made only if there are passages."""
    translated: int = 0
    """The number of entries that are skipped because they already have a translation."""
    skipped: int = 0
    """The number of entries that are skipped because the setting ``skip_keys`` has their keys."""
    unit: Literal["line", "paragraph"] = "line"
    """The unit in which messages give the position of a passage. Word processors show no line numbers, so their
    documents have the unit ``paragraph``."""

    def lines(self) -> list[LayoutLine]:
        """Return the lines to translate, in the order of the document."""
        return [line for passage in self.passages for text in passage.texts for line in text.lines]

    def render(self, translations: Sequence[CodedText]) -> tuple[bytes, list[int]]:
        """Write the translations into the document.

        A passage stays untranslated if the translation of one of its lines is empty, has other placeholders than its
        source, or is not allowed by the format.

        Args:
            translations: The translation of each of ``lines()``.

        Returns:
            The content of the translated file, and the position of each untranslated passage: its line number or, if
            ``unit`` is ``paragraph``, its number among the passages. Both count from 1.
        """
        remaining = iter(translations)
        splices = list(self.changes) if self.passages else []
        skipped = []
        line_ends = [match.start() for match in re.finditer("\n", self.text)]
        for number, passage in enumerate(self.passages, 1):
            lines = [[next(remaining) for _ in text.lines] for text in passage.texts]
            texts = _restore_texts(passage, lines)
            changes = None if texts is None else passage.write(texts)
            if changes is None:
                skipped.append(number if self.unit == "paragraph" else bisect_left(line_ends, passage.start) + 1)
            splices += changes or []
        return self.encode(apply_splices(self.text, sorted(splices, key=lambda splice: splice[:2]))), skipped


def _restore_texts(passage: Passage, lines: Sequence[Sequence[CodedText]]) -> list[CodedText] | None:
    """Join the translated lines of each text of a passage to a translated text.

    Returns:
        The translation of each text. None if the translation of a line is empty or has other placeholders than its
        source.
    """
    texts = []
    for source, translations in zip(passage.texts, lines, strict=True):
        text = source.restore(translations)
        changes = directive_changes(source.text.text, text.text, passage.flags)
        for line, translation in zip(source.lines, translations, strict=True):
            if not translation.text.strip() or not has_same_placeholders(line.text.text, translation.text, line.syntax):
                return None
        if changes is None:
            return None
        texts.append(text.spliced(changes) if changes else text)
    return texts


def untranslated_passage(start: int, key: str = "") -> Passage:
    """Return a passage that stays untranslated because its notation is not supported. ``render`` counts it."""
    return Passage((), lambda translations: None, start, key)


def replacement_passage(
    start: int,
    end: int,
    layout: Layout,
    escape: Callable[[str], str] = str,
    key: str = "",
    flag: str = "",
    enclose: Callable[[str], str] = str,
) -> Passage:
    """Return a passage whose translation replaces the characters of the document from ``start`` up to ``end``.

    Args:
        start, end: The position of the passage in the document.
        layout: The text of the passage.
        escape: Escapes the text between the codes of a translation for the document's format. A translation that
            equals its source is not written, because a format may have several notations for one text.
        key: See ``Passage``.
        flag: gettext's flag for the directives of the text, if it has any.
        enclose: Completes an escaped translation as a whole, for example by quotation marks.
    """

    def write(translations: list[CodedText]) -> list[Splice]:
        (translation,) = translations
        return [Splice(start, end, enclose(translation.written(escape)))] if translation != layout.text else []

    is_checked = flag == "java-format" or has_ordered_directives(layout.text.text)
    return Passage((layout,), write, start, key, (flag,) if is_checked else ())


def read_content(path: Path) -> bytes:
    """Return the content of a file, decompressed if it is compressed.

    Raises:
        InputError: The file cannot be read, or has more than MAX_DOCUMENT_BYTES.
    """
    with open_input(path) as stream:
        content = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise InputError(
            f"{path}: larger than {MAX_DOCUMENT_BYTES // 1_000_000} MB, the limit for a document; divide the document. "
            "(Text files are translated line by line and have no limit.)"
        )
    return content


def utf_16_encoding(content: bytes) -> str | None:
    """Detect UTF-16 by a byte order mark or by NUL bytes. Return utf-16-le, utf-16-be, or None for other content."""
    if content.startswith(tuple(BINARY)):
        return None
    big, little = content[::2].count(0), content[1::2].count(0)
    if max(big, little) > MIN_NUL_SHARE * len(content):
        return "utf-16-le" if little > big else "utf-16-be"
    return UTF_16.get(content[:2])


def convert_to_utf8(content: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Convert a document from UTF-16 to UTF-8 with a byte order mark.

    Returns:
        The converted document, and the function that converts it back. Other content is returned unchanged.

    Raises:
        InputError: The document is not valid UTF-16.
    """
    encoding = utf_16_encoding(content)
    if encoding is None:
        return content, bytes
    text, _ = decode_declared(content, encoding)
    added = "" if text.startswith("\ufeff") else "\ufeff"
    return f"{added}{text}".encode(), lambda written: written.decode().removeprefix(added).encode(encoding)


def decode_utf8(content: bytes) -> str:
    """Decode a document in UTF-8. A byte order mark is preserved.

    Raises:
        InputError: The document is not in UTF-8. The message names the line.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"line {line} is {INVALID_UTF_8}") from None


def decode_xml(content: bytes) -> tuple[str, Callable[[str], bytes]]:
    """Decode XML. Return its text and the function that encodes it again.

    Characters that the encoding lacks are written as character references.

    Raises:
        InputError: See ``decode_declared``.
    """
    declared = XML_DECLARATION.match(content)
    text, encoding = decode_declared(content, declared[1].decode() if declared else "utf-8")
    return text, partial(str.encode, encoding=encoding, errors="xmlcharrefreplace")


def decode_declared(content: bytes, encoding: str) -> tuple[str, str]:
    """Decode a document that declares its encoding.

    Args:
        content: The document.
        encoding: The declared encoding. A byte order mark overrides it.

    Returns:
        The text, including any byte order mark, and the encoding that was used.

    Raises:
        InputError: The document is not in that encoding, or the encoding is unknown.
    """
    encoding = "utf-8" if content.startswith(codecs.BOM_UTF8) else UTF_16.get(content[:2], encoding)
    if encoding.lower() in ("utf-8", "utf8"):
        return decode_utf8(content), encoding
    try:
        return content.decode(encoding), encoding
    except LookupError:
        raise InputError(
            f"declares {encoding}, an unknown encoding; correct the declaration, or save the file in UTF-8"
        ) from None
    except UnicodeError as error:
        line = content.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise InputError(
            f"line {line} is not in {encoding}, the encoding that it declares; correct the declaration, or save the "
            "file in that encoding"
        ) from None


def line_number(text: str, position: int) -> int:
    """Return the number of the line, from 1, that holds the character at ``position``."""
    return text.count("\n", 0, position) + 1


def line_pairs(text: str, translation: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text, each with its translation. Accelerators are removed.

    If the translation has another number of lines, their lines are joined by spaces to a single pair.
    """
    lines = [
        [
            line.text.written(encode if line.text.codes else str)
            for line in cut_paragraphs(side, accelerators=True).lines
        ]
        for side in (text, translation)
    ]
    yield from zip(*lines if len(lines[0]) == len(lines[1]) else ([" ".join(side)] for side in lines), strict=True)


def is_translatable(text: str) -> bool:
    """Return whether a text has a letter and can be encoded in UTF-8, which excludes lone surrogates."""
    return any(map(str.isalpha, text)) and not UNDECODABLE.search(text)
