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
from mt.documents.json_messages import read_json_messages
from mt.documents.markdown import read_markdown
from mt.documents.properties import read_properties
from mt.documents.subtitles import read_srt, read_vtt
from mt.documents.web_page import read_html


class Format(NamedTuple):
    """A document format: the suffixes of its files, and the function that reads it. FORMATS holds one of each."""

    suffixes: tuple[str, ...]
    read: Callable[[bytes, Languages, bool], Document]
    """The reader. Its arguments are the content of the file, the model's languages, and whether entries that have a
    translation are translated again. The last two matter only for formats that hold languages or translations."""


FORMATS: dict[DocumentFormat, Format] = {
    "po": Format((".po", ".pot"), read_po),
    "xliff": Format((".xlf", ".xliff", ".sdlxliff", ".mxliff", ".mqxliff"), read_xliff),
    "properties": Format((".properties",), read_properties),
    "json": Format((".json",), read_json_messages),
    "srt": Format((".srt",), read_srt),
    "vtt": Format((".vtt",), read_vtt),
    "html": Format((".html", ".htm", ".xhtml"), read_html),
    "markdown": Format((".md", ".markdown"), read_markdown),
}
"""Value of the setting ``format`` → the format."""
FORMAT_BY_SUFFIX = {suffix: name for name, document_format in FORMATS.items() for suffix in document_format.suffixes}
BINARY_SUFFIXES = {".doc", ".docx", ".odt", ".rtf", ".pdf", ".epub", ".xlsx", ".ods", ".pptx", ".odp", ".mo"}
"""The suffixes of documents that are refused, because no reader exists and they are no lines of text either."""
KNOWN_SUFFIXES = f"documents have the suffixes {', '.join(FORMAT_BY_SUFFIX)}"
"""A part of messages on files with unknown suffixes."""


def detect_format(path: Path, setting: DocumentFormat = "auto") -> DocumentFormat:
    """Return the format of a file: the setting ``format`` or, if that is ``auto``, the format of the path's suffix.

    A file with an unknown suffix has the format ``lines``.

    Raises:
        InputError: The suffix is one of BINARY_SUFFIXES.
    """
    if setting != "auto":
        return setting
    suffix = format_suffix(path).lower()
    if suffix in BINARY_SUFFIXES:
        raise InputError(
            f"{path}: {suffix} documents cannot be translated; convert the file ({KNOWN_SUFFIXES}), or set "
            "format=lines if it holds lines of text"
        )
    return FORMAT_BY_SUFFIX.get(suffix, "lines")


def read_document(path: Path, name: DocumentFormat, languages: Languages, retranslate: bool) -> Document:
    """Read a document file, which may be compressed.

    Args:
        name: The format: a key of FORMATS.
        languages: The languages of the model. Some formats declare theirs, which must be the same.
        retranslate: Whether entries that already have a translation are translated again.

    Raises:
        InputError: The file cannot be read, is not of this format, or is in other languages.
    """
    content = read_whole(path)
    try:
        return FORMATS[name].read(content, languages, retranslate)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
