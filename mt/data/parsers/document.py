"""The model of a document that all formats share: a text with passages to translate.

A format finds the passages and says how their translations are written. Everything else is copied byte for byte:
comments, the order of entries, quotation marks and line ends. No library that reads a format into objects and writes
them again keeps all that.
"""

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mt.core.encodings import encoding_of_bom, other_encoding
from mt.core.errors import InputError
from mt.core.files import UNDECODABLE, open_input
from mt.core.language import base_language
from mt.data.parsers.layout import Layout, Line, cut_paragraphs

UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
MAX_BYTES = 100_000_000
"""A larger document is refused, because documents are held in memory."""


class Languages(NamedTuple):
    """The languages of a model, or of a corpus."""

    source: str
    target: str

    def match(self, source: str, target: str | None) -> bool:
        """Return whether other codes mean the same languages. The target may be unknown."""
        codes = ((self.source, source), (self.target, target))
        return all(other is None or base_language(other) == base_language(code) for code, other in codes)


class Splice(NamedTuple):
    """Replaces the characters from ``start`` to ``end``."""

    start: int
    end: int
    content: str


@dataclass(frozen=True)
class Passage:
    """A unit of translation: an entry of a message file, a subtitle, a paragraph."""

    texts: tuple[Layout, ...]
    write: Callable[[list[str]], list[Splice] | None]
    """Returns the changes, given the translation of each text. None: the format does not allow this translation."""


@dataclass(frozen=True)
class Document:
    """A parsed document."""

    text: str
    passages: tuple[Passage, ...]
    encode: Callable[[str], bytes] = str.encode
    changes: tuple[Splice, ...] = ()
    """Further changes if a passage is translated, such as the language in a header."""
    translated: int = 0
    """The number of entries that have a translation already and are left as they are."""

    def lines(self) -> list[Line]:
        """Return all lines to translate."""
        return [line for passage in self.passages for text in passage.texts for line in text.lines]

    def render(self, translations: Sequence[str]) -> tuple[bytes, int]:
        """Insert the translations of the lines.

        Returns:
            The document, and the number of passages that were left as they were, because the translation of a line is
            empty or not allowed by the format.
        """
        remaining = iter(translations)
        splices = list(self.changes) if self.passages else []
        skipped = 0
        for passage in self.passages:
            lines = [[next(remaining) for _ in text.lines] for text in passage.texts]
            changes = None
            if all(line.strip() for text in lines for line in text):
                changes = passage.write([text.restore(own) for text, own in zip(passage.texts, lines, strict=True)])
            skipped += changes is None
            splices += changes or []
        return self.encode(apply_splices(self.text, sorted(splices, key=lambda splice: splice[:2]))), skipped


def apply_splices(text: str, splices: Sequence[Splice]) -> str:
    """Return a text with changes, which are sorted and do not overlap."""
    parts, done = [], 0
    for start, end, content in splices:
        parts += [text[done:start], content]
        done = end
    return "".join(parts) + text[done:]


def replaced_passage(start: int, end: int, layout: Layout, escape: Callable[[str], str] = str) -> Passage:
    """Return the passage from ``start`` to ``end``, which its translation replaces.

    Args:
        escape: Writes a text in the document's format. It is not called for a text that has not changed, because a text
            can be spelled in several ways.
    """

    def write(translations: list[str]) -> list[Splice]:
        return [Splice(start, end, escape(text)) for text in translations if text != layout.text]

    return Passage((layout,), write)


def read_whole(path: Path) -> bytes:
    """Return the content of a file, which may be compressed.

    Raises:
        InputError: It cannot be read, or is too large.
    """
    with open_input(path) as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InputError(
            f"{path}: larger than {MAX_BYTES // 1_000_000} MB, which is too much for a document: divide it "
            "(text files are translated line by line, whatever their size)"
        )
    return content


def decode_utf8(content: bytes) -> str:
    """Return the text of a document, with its BOM.

    Raises:
        InputError: It is not in UTF-8.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        special = b"".join(line + b"\n" for line in content.split(b"\n") if not line.isascii())
        code, name = other_encoding(special) or (encoding_of_bom(content) or "ENCODING", "in several encodings")
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"line {line} is not in UTF-8; the document seems to be {name}. This makes UTF-8 of it: "
            f"iconv -f {code} -t UTF-8"
        ) from None


def decode_declared(content: bytes, encoding: str) -> tuple[str, str]:
    """Return the text of a document that declares its encoding, with its BOM, and the encoding of the BOM or declared.

    Raises:
        InputError: The document is in another encoding, or the encoding is unknown.
    """
    encoding = UTF_16.get(content[:2], encoding)
    if encoding.lower() in ("utf-8", "utf8"):
        return decode_utf8(content), encoding
    try:
        return content.decode(encoding), encoding
    except LookupError:
        raise InputError(f"declares {encoding}, an unknown encoding") from None
    except UnicodeError as error:
        line = content.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise InputError(f"line {line} is not in {encoding}, the encoding that it declares") from None


def line_pairs(text: str, translation: str) -> Iterator[tuple[str, str]]:
    """Yield a text and its translation line by line if both have equally many lines, otherwise as one pair.

    Accelerators are removed.
    """
    lines = [[line.text for line in cut_paragraphs(side, accelerators=True).lines] for side in (text, translation)]
    yield from zip(*lines if len(lines[0]) == len(lines[1]) else ([" ".join(side)] for side in lines), strict=True)


def is_translatable(text: str) -> bool:
    """Return whether a text has a letter, and can be encoded in UTF-8."""
    return any(map(str.isalpha, text)) and not UNDECODABLE.search(text)
