"""Reads DOCX and ODT: the members of the zip archive that contain text. All others are copied byte for byte."""

import io
import re
import zipfile
import zlib
from collections.abc import Callable
from functools import partial

from mt.core.errors import InputError
from mt.formats.document import MAX_DOCUMENT_BYTES, Document, Languages, Passage, decode_xml
from mt.formats.office_paragraphs import INNER, OfficeDialect, Part


def _role_by_element(names: dict[str, str]) -> dict[str, str]:
    """Return the role of each element, given the element names of each role, separated by spaces."""
    return {name: role for role, elements in names.items() for name in elements.split()}


WORD = OfficeDialect(
    "DOCX",
    r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml",
    (
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "http://purl.oclc.org/ooxml/wordprocessingml/main",
    ),
    _role_by_element(
        {
            "paragraph": "p",
            "run": "r",
            "text": "t",
            "wrapper": "hyperlink smartTag customXml sdt dir bdo",
            "break": "tab ptab br cr",
            "field": "fldChar",
            "instruction": "instrText",
            "dropped": "proofErr lastRenderedPageBreak softHyphen",
            "refused": "ins del moveFrom moveTo ruby",
        }
    ),
    has_runs=True,
)
ODF = OfficeDialect(
    "ODT",
    r"content\.xml|styles\.xml",  # styles.xml holds headers and footers
    ("urn:oasis:names:tc:opendocument:xmlns:text:1.0",),
    _role_by_element(
        {
            "paragraph": "p h",
            "wrapper": "span a meta text-input",
            "break": "tab line-break",
            "dropped": "soft-page-break",
            "refused": "change change-start change-end ruby",
            "comment": "tracked-changes index-title-template",
        }
    ),
    has_runs=False,
)
OLE = b"\xd0\xcf\x11\xe0"
"""The first bytes of .doc files and of DOCX files with a password."""
MAX_RATIO = 200
"""The maximum ratio of a document's size to that of its archive. Text is typically compressed to a tenth."""
SEPARATOR = "\0"
"""Separates the parts in the text of the document. XML cannot contain it."""


def _read_archive(dialect: OfficeDialect, content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a file of a word processor. Its paragraphs are passages to translate.

    These include the paragraphs of tables, headers, footers, notes and text boxes.

    Raises:
        InputError: The content does not have this format, is protected by a password, or is a zip bomb.
    """
    members = _read_members(content, dialect.name)
    encoders: dict[str, Callable[[str], bytes]] = {}
    sources: list[tuple[str, str, Part | None]] = []
    """For each part: its text, its member, and the part that contains it, if any. Grows while parts are read."""
    texts: list[str] = []
    passages: list[Passage] = []
    offset = 0
    member = ""
    try:
        for info, data in members:
            member = info.filename
            if re.fullmatch(dialect.parts, member):
                text, encoders[member] = decode_xml(data)
                sources.append((text, member, None))
        for text, member, outer in sources:
            part = Part(text, dialect, outer, len(sources))
            sources += [(inner, member, part) for inner in part.inner]
            passages += part.passages(offset)
            texts.append(part.text)
            offset += len(part.text) + len(SEPARATOR)
    except InputError as error:
        raise InputError(f"{member}: {error}") from None
    if not texts:
        raise InputError(f"is not {dialect.name}: it has no member with the text of a document; set another format")
    return Document(SEPARATOR.join(texts), passages, partial(_write_members, members, encoders), unit="paragraph")


read_docx, read_odt = partial(_read_archive, WORD), partial(_read_archive, ODF)


def _read_members(content: bytes, name: str) -> list[tuple[zipfile.ZipInfo, bytes]]:
    """Return the members of a zip archive, with their contents."""
    has_password = f"has a password; save it as {name} without a password"
    if content.startswith(OLE):
        raise InputError(f"is an old document or {has_password}")
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        size = sum(info.file_size for info in archive.infolist())
        if size > min(MAX_DOCUMENT_BYTES, MAX_RATIO * len(content)):
            raise InputError(
                f"unpacks from {len(content):,} to {size:,} bytes, more than a document may have; divide it"
            )
        members = [(info, archive.read(info)) for info in archive.infolist()]
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, NotImplementedError) as error:
        raise InputError(f"is not readable as {name}: {error}; get a new copy of the file") from None
    except RuntimeError:
        raise InputError(has_password) from None
    if any(info.filename == "META-INF/manifest.xml" and b"encryption-data" in data for info, data in members):
        raise InputError(has_password)
    return members


def _write_members(
    members: list[tuple[zipfile.ZipInfo, bytes]], encoders: dict[str, Callable[[str], bytes]], text: str
) -> bytes:
    """Return an archive with the text of a translated document.

    Args:
        members: The members of the original archive, with their contents.
        encoders: The function that encodes each member with text. These members are the first parts of ``text``.
        text: The parts of the document, separated by SEPARATOR.
    """
    parts = text.split(SEPARATOR)
    texts = iter(parts)

    def insert_inner_parts(part: str) -> str:
        return INNER.sub(lambda match: insert_inner_parts(parts[int(match[1])]), part)

    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for info, data in members:
            copy = zipfile.ZipInfo(info.filename, info.date_time)
            copy.compress_type, copy.external_attr, copy.comment = info.compress_type, info.external_attr, info.comment
            if info.filename in encoders:
                data = encoders[info.filename](insert_inner_parts(next(texts)))
            archive.writestr(copy, data)
    return stream.getvalue()
