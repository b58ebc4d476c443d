"""Which documents there are: what the ending of a name says, and who reads it."""

from collections.abc import Callable
from pathlib import Path

from mt.config import DocumentFormat
from mt.core.errors import InputError
from mt.data.parsers.document import Document, Languages, read_whole
from mt.data.parsers.po import read_po
from mt.data.parsers.xliff import read_xliff
from mt.documents.json_messages import read_json
from mt.documents.markdown import read_markdown
from mt.documents.properties import read_properties
from mt.documents.subtitles import read_srt, read_vtt
from mt.documents.web_page import read_html

COMPRESSIONS = (".gz", ".xz", ".zst")
ENDINGS: dict[str, DocumentFormat] = {
    ".po": "po", ".pot": "po", ".xlf": "xliff", ".xliff": "xliff", ".properties": "properties", ".json": "json",
    ".srt": "srt", ".vtt": "vtt", ".html": "html", ".htm": "html", ".xhtml": "html", ".md": "markdown",
    ".markdown": "markdown",
}  # fmt: skip
READERS: dict[str, Callable[[bytes, Languages, bool], Document]] = {
    "po": read_po, "xliff": read_xliff, "properties": read_properties, "json": read_json, "srt": read_srt,
    "vtt": read_vtt, "html": read_html, "markdown": read_markdown,
}  # fmt: skip
NOT_READ = {".doc", ".docx", ".odt", ".rtf", ".pdf", ".epub", ".xlsx", ".ods", ".pptx", ".odp", ".mo"}
"""Endings of documents that are no text at all."""


def format_of(path: Path, given: DocumentFormat = "auto") -> DocumentFormat:
    """Returns the format of a file: what is ``given``, or what the ending of its name says, which is lines if it says
    nothing.

    Raises:
        InputError: It is a document that is not read here.
    """
    if given != "auto":
        return given
    ending = (Path(path.stem) if path.suffix in COMPRESSIONS else path).suffix.lower()
    if ending in NOT_READ:
        raise InputError(f"{path}: {ending} is not read. {known_endings()}; format=lines reads it as lines of text")
    return ENDINGS.get(ending, "lines")


def known_endings() -> str:
    return f"Documents are known by {', '.join(ENDINGS)}"


def read_document(path: Path, kind: DocumentFormat, languages: Languages, retranslate: bool) -> Document:
    """Reads a document.

    Raises:
        InputError: It cannot be read, is not of its format, or is in other languages. The message names it.
    """
    content = read_whole(path)
    try:
        return READERS[kind](content, languages, retranslate)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
