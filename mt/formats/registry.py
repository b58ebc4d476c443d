"""Registers the formats of documents (FORMATS) and of parallel corpora (PAIR_READERS), and detects a file's format.

To add a format, write its reader and add an entry.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mt.config import DocumentFormat
from mt.core.errors import InputError
from mt.core.files import format_suffix, read_start
from mt.core.language import base_language, is_registered
from mt.core.text_files import TO_UTF_8, describe_binary, encoding_of_bom
from mt.formats.document import Document, Languages, convert_to_utf8, read_content, utf_16_encoding
from mt.formats.markdown import read_markdown
from mt.formats.message_files import read_json_messages, read_yaml_messages
from mt.formats.office import read_docx, read_odt
from mt.formats.po import po_pairs, read_po
from mt.formats.string_files import read_android_strings, read_apple_strings, read_properties
from mt.formats.subtitles import read_srt, read_vtt
from mt.formats.tables import (
    Columns,
    Pairs,
    Rows,
    csv_pairs,
    json_pairs,
    jsonl_pairs,
    parquet_pairs,
    tmx_pairs,
    tsv_pairs,
)
from mt.formats.web_page import read_html
from mt.formats.xliff import read_xliff, xliff_pairs


class Format(NamedTuple):
    """A document format: the suffixes of its files, and its reader. FORMATS has all instances."""

    suffixes: tuple[str, ...]
    read: Callable[[bytes, Languages, bool], Document]
    """The reader. Its arguments are the content of the file, the model's languages, and whether entries that already
    have a translation are translated again. Formats without languages or translations ignore the last two."""


XLIFF_SUFFIXES = (".xlf", ".xliff", ".sdlxliff", ".mxliff", ".mqxliff")
FORMATS: dict[DocumentFormat, Format] = {
    "po": Format((".po", ".pot"), read_po),
    "xliff": Format(XLIFF_SUFFIXES, read_xliff),
    "properties": Format((".properties",), read_properties),
    "json": Format((".json", ".arb"), read_json_messages),
    "yaml": Format((".yml", ".yaml"), read_yaml_messages),
    "strings": Format((".strings",), read_apple_strings),
    "android": Format((), read_android_strings),
    "srt": Format((".srt",), read_srt),
    "vtt": Format((".vtt",), read_vtt),
    "html": Format((".html", ".htm", ".xhtml"), read_html),
    "markdown": Format((".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"), read_markdown),
    "docx": Format((".docx", ".docm", ".dotx"), read_docx),
    "odt": Format((".odt", ".ott"), read_odt),
}
"""Maps each value of the setting ``format`` to its format."""
FORMAT_BY_SUFFIX = {suffix: name for name, document_format in FORMATS.items() for suffix in document_format.suffixes}
LINES_SUFFIX = re.compile(
    r"(?:\.(?:(?:te?xt|src|source|tgt|trg|target|ref|reference|hyp|pred|mt|out|tok|bpe|spm|sents?|lines|raw|train|dev"
    r"|test|valid|lower|tc|clean|detok|prediction|hypothesis|translation|output|lines?|segments)\d*|\d{2,}|\S*\s.*))?"
)
"""A suffix of plain text, in addition to the codes of languages."""
OTHER_FILE_SUFFIX = re.compile(r"\.(?:asm|bak|hbs|in|lit|mac|run|scc|scr|sh|slk|ts)")
"""A suffix that is the code of a language, but mostly used for other files than texts in that language."""
CONVERSION_HINTS = {
    "save the column with the texts as .txt": ".csv .tsv .xlsx",
    "unpack it, and translate its .xhtml files": ".epub",
    "convert it to .srt or .vtt": ".ass .ttml",
    "convert it to .po, .xliff or .json": ".resx .xcstrings .ftl .php .ts",
    "convert it to .md, for example with pandoc": ".rst .adoc .tex .wiki .ipynb",
}
"""Maps each hint for files of unsupported formats to the suffixes of these files."""
FORMAT_BY_ROOT: dict[str, DocumentFormat] = {"resources": "android", "xliff": "xliff"}
"""Maps the name of an XML file's root element to the format of the file."""
XML_ROOT = re.compile(r"(?:<\?xml\s[^>]*>|<!--.*?-->|<!DOCTYPE [^>\[]*>|\s)*+<(?:\w+:)?(\w+)", re.DOTALL)
KNOWN_SUFFIXES = f"documents are strings.xml and files with the suffixes {', '.join(FORMAT_BY_SUFFIX)}"
"""A part of the messages about files with unknown suffixes."""
LINES_HINT = "format=lines reads it as lines of text"


def detect_format(path: Path, setting: DocumentFormat = "auto") -> DocumentFormat:
    """Return the format of a file: the setting ``format`` or, if it is ``auto``, the detected format.

    The format is detected by the suffix of the path, or else by the root element of an XML file. Plain text
    (``is_for_lines``) has the format ``lines``, and so has a path that does not exist or is not a regular file.

    Raises:
        InputError: The content is binary, or the suffix is unknown.
    """
    if setting != "auto":
        return setting
    suffix = format_suffix(path).lower()
    if suffix in FORMAT_BY_SUFFIX:
        return FORMAT_BY_SUFFIX[suffix]
    return detect_content(read_start(path), str(path), suffix) if path.is_file() else "lines"


def detect_content(start: bytes, name: str, suffix: str = "") -> DocumentFormat:
    """Return the format of content. Raise InputError as ``detect_format`` does.

    Args:
        start: The beginning of the content.
        name: The name of the content for messages.
        suffix: The suffix of its file, if it is not a suffix of FORMATS.
    """
    text = start.decode(utf_16_encoding(start) or "utf-8", "ignore").removeprefix("\ufeff")
    is_xml = text.startswith("<?xml")
    root = XML_ROOT.match(text) if is_xml or suffix == ".xml" else None
    if root and root[1] in FORMAT_BY_ROOT:
        return FORMAT_BY_ROOT[root[1]]
    binary = describe_binary(start)
    kind = (binary or ("XML" if is_xml else "")) if is_for_lines(suffix) else f"a {suffix} file"
    if kind:
        hint = next(
            (hint for hint, suffixes in CONVERSION_HINTS.items() if suffix in suffixes.split()),
            f"convert it, or set format ({KNOWN_SUFFIXES})",
        )
        raise InputError(f"{name} is {kind}, which cannot be translated; {hint}{'' if binary else f'. {LINES_HINT}'}")
    if encoding := encoding_of_bom(start):
        raise InputError(f"{name} is in {encoding}; {TO_UTF_8.format(encoding)}")
    return "lines"


def is_for_lines(suffix: str) -> bool:
    """Return whether a suffix is one of plain text: none, a language code, or a word such as ``.src``.

    A language code of three letters counts only if the language also has a code of two letters, because most others are
    suffixes of formats: ``tex`` is the code of Tennet.
    """
    if LINES_SUFFIX.fullmatch(suffix):
        return True
    code = suffix[1:]
    return (
        is_registered(code)
        and (len(base_language(code)) == 2 or len(code) > 3)
        and not OTHER_FILE_SUFFIX.fullmatch(suffix)
    )


def read_document(
    path: Path, name: DocumentFormat, languages: Languages, retranslate: bool, skipped_keys: Sequence[str] = ()
) -> Document:
    """Read a document file, which may be compressed.

    Args:
        name: The format: a key of FORMATS.
        languages: The languages of the model. If the document declares its languages, they must be the same.
        retranslate: Whether entries that already have a translation are translated again.
        skipped_keys: The setting ``skip_keys``.

    Raises:
        InputError: The file cannot be read, is not of this format, or is in other languages.
    """
    content = read_content(path)
    try:
        content, convert_back = convert_to_utf8(content)
        if name not in ("docx", "odt") and (binary := describe_binary(content[: 1 << 16])):
            raise InputError(f"is {binary}; choose another file")
        document = FORMATS[name].read(content, languages, retranslate)
    except InputError as error:
        hint = "" if FORMAT_BY_SUFFIX.get(format_suffix(path).lower()) == name else f". {LINES_HINT}"
        raise InputError(f"{path}: {error}{hint}") from None
    passages = [
        passage
        for passage in document.passages
        if not any(fnmatchcase(passage.key, pattern) for pattern in skipped_keys if passage.key)
    ]
    return replace(
        document,
        passages=passages,
        skipped=len(document.passages) - len(passages),
        encode=lambda text: convert_back(document.encode(text)),
    )


def _document_pairs(parse: Callable[[bytes, str, str], Pairs], path: Path, columns: Columns) -> Pairs:
    """Yield the pairs of a document.

    Args:
        parse: Returns the pairs of a document, given its content and the codes of the two languages.
        path: The document.
        columns: The codes of the two languages.
    """
    content = read_content(path)
    try:
        yield from parse(content, *map(str, columns))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


PAIR_READERS: dict[str, Callable[..., Rows]] = {
    ".tsv": tsv_pairs,
    ".csv": csv_pairs,
    ".json": json_pairs,
    ".jsonl": jsonl_pairs,
    ".parquet": parquet_pairs,
    ".tmx": lambda path, columns: tmx_pairs(path, *map(str, columns)),
    ".po": partial(_document_pairs, po_pairs),
    **dict.fromkeys(XLIFF_SUFFIXES, partial(_document_pairs, xliff_pairs)),
}
"""Maps the suffix of a file's name to the reader of its pairs. A reader takes the path and the columns of the two
sides, which are language codes for documents and translation memories. The reader of CSV also takes the
``delimiter``."""


def pair_suffix(path: Path) -> str:
    """Return the key of a file's format in PAIR_READERS, such as ``.tsv`` for ``a.tsv.gz``; "" for other names."""
    suffix = format_suffix(path)
    return suffix if suffix in PAIR_READERS else ""
