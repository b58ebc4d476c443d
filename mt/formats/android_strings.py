"""Reads Android's string resources (strings.xml)."""

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

from mt.core.coded_text import CodedText, Mark
from mt.core.errors import InputError
from mt.formats.document import Document, Languages, Passage, decode_xml, kept_passage, replaced_passage
from mt.formats.layout import cut_paragraphs
from mt.formats.string_values import escapes, is_text, unescape
from mt.formats.tags import CDATA, coded_markup
from mt.formats.xml_elements import Element, read_elements, write_cdata

LISTS = {"string-array", "plurals"}
QUOTED = re.compile(r'\\.|"((?:[^"\\]|\\.)*+)"?|[ \t\r\n]+', re.DOTALL)
"""An escape sequence, a part in quotation marks, which are not shown, or white space, of which one blank is shown."""
COLLAPSED = re.compile(r"\A | (?= )(?![^<>]*>)| \Z")
"""A blank that is shown only if it is an escape sequence."""
ESCAPES = escapes("\\\"'", "nt")


def read_android_strings(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read string resources. Strings, and the items of arrays and plurals, are passages to translate.

    What stands in ``xliff:g`` is kept, and so are strings with ``translatable="false"``.

    Raises:
        InputError: The content is no XML of resources.
    """
    text, encode = decode_xml(content)
    elements = read_elements(text)
    if elements[0].name != "resources":
        raise InputError("is no file of string resources: it has no element resources; give the right file")
    passages = [passage for key, string in _strings(elements[0]) for passage in _passages(string, key)]
    return Document(text, passages, encode)


def _strings(resources: Element) -> Iterator[tuple[str, Element]]:
    """Yield the strings and items that may be translated, each with its key."""
    for element in resources.children:
        key = element.attributes.get("name", "")
        strings = []
        if element.attributes.get("type", element.name) == "string":
            strings = [(key, element)]
        elif element.name in LISTS:
            items = (item for item in element.children if item.name == "item")
            strings = [(f"{key}.{item.attributes.get('quantity', index)}", item) for index, item in enumerate(items)]
        for key, string in strings:
            if "false" not in [own.attributes.get("translatable") for own in (string, string.parent) if own]:
                yield key, string


def _passages(string: Element, key: str) -> list[Passage]:
    """Return the passage of a string; no passage if it has no text to translate."""
    raw = string.content
    span = string.content_end - len(raw.lstrip()), string.content_start + len(raw.rstrip())
    cdata = CDATA.fullmatch(raw.strip())
    if not cdata and "<!" in raw:
        return [kept_passage(string.start, key)]
    kept = string.outermost(lambda part: part.name == "g")
    marks = [Mark(part.start - span[0], part.end - span[0]) for part in kept]
    value = coded_markup(raw.strip(), "xml", marks, cdata_is_text=True)
    has_tags = bool(value.codes)
    value = value if has_tags else CodedText(value.text.strip())
    quoted = QUOTED.fullmatch(value.text)
    parts = value.parts()
    is_quoted = quoted and value.text == f'"{quoted[1]}"' and parts[0][:1] == parts[-1][-1:] == '"'
    quote = '"' if is_quoted else ""
    value = (
        value.split([(1, len(value.text) - 1)], with_ends=True)[1].mapped(unescape) if quote else value.mapped(_shown)
    )

    def write_text(text: str) -> str:
        text = text.translate(ESCAPES)
        return escape(text) if has_tags else text

    def enclose(written: str) -> str:
        if not quote:
            sign = "\\" if written.startswith(("@", "?")) else ""
            written = sign + COLLAPSED.sub(r"\\u0020", written)
        written = f"{quote}{written}{quote}"
        return write_cdata(written) if cdata else written if has_tags else escape(written)

    if not is_text(value.text):
        return []
    layout = cut_paragraphs(value if has_tags else value.text, syntax="printf")
    return [replaced_passage(*span, layout, write_text, key, "c-format", enclose)]


def _shown(text: str) -> str:
    """Return a string without tags as Android shows it."""
    plain = QUOTED.sub(lambda part: part[0] if part[0][0] == "\\" else part[1] if part[0][0] == '"' else " ", text)
    return unescape(plain)
