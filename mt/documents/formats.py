"""The registry of document formats. To add one, write its reader and add a line to FORMATS."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mt.config import DocumentFormat
from mt.core.errors import InputError
from mt.core.files import format_suffix
from mt.data.parsers.document import Document, Languages, read_whole
from mt.data.parsers.po import read_po
from mt.data.parsers.xliff import read_xliff
from mt.documents.json_messages import read_json
from mt.documents.markdown import read_markdown
from mt.documents.properties import read_properties
from mt.documents.subtitles import read_srt, read_vtt
from mt.documents.web_page import read_html


class Format(NamedTuple):
    """A document format: the suffixes of its files, and its reader."""

    suffixes: tuple[str, ...]
    read: Callable[[bytes, Languages, bool], Document]
    """Takes the content, the model's languages, and whether entries that have a translation are translated again."""


FORMATS: dict[DocumentFormat, Format] = {
    "po": Format((".po", ".pot"), read_po),
    "xliff": Format((".xlf", ".xliff"), read_xliff),
    "properties": Format((".properties",), read_properties),
    "json": Format((".json",), read_json),
    "srt": Format((".srt",), read_srt),
    "vtt": Format((".vtt",), read_vtt),
    "html": Format((".html", ".htm", ".xhtml"), read_html),
    "markdown": Format((".md", ".markdown"), read_markdown),
}
FORMAT_BY_SUFFIX = {suffix: name for name, document_format in FORMATS.items() for suffix in document_format.suffixes}
BINARY_SUFFIXES = {".doc", ".docx", ".odt", ".rtf", ".pdf", ".epub", ".xlsx", ".ods", ".pptx", ".odp", ".mo"}
KNOWN_SUFFIXES = f"Documents are known by {', '.join(FORMAT_BY_SUFFIX)}"


def detect_format(path: Path, setting: DocumentFormat = "auto") -> DocumentFormat:
    """Return the format that is set or, with ``auto``, the one of the path's suffix: ``lines`` if it is not known.

    Raises:
        InputError: The suffix is that of a document that cannot be read.
    """
    if setting != "auto":
        return setting
    suffix = format_suffix(path).lower()
    if suffix in BINARY_SUFFIXES:
        raise InputError(f"{path}: {suffix} is not read. {KNOWN_SUFFIXES}; format=lines reads it as lines of text")
    return FORMAT_BY_SUFFIX.get(suffix, "lines")


def read_document(path: Path, name: DocumentFormat, languages: Languages, retranslate: bool) -> Document:
    """Read a document.

    Raises:
        InputError: It cannot be read, is not of its format, or is in other languages. The message names it.
    """
    content = read_whole(path)
    try:
        return FORMATS[name].read(content, languages, retranslate)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
