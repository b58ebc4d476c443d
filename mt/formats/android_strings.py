"""Reads Android's string resources (strings.xml)."""

import re
from xml.sax.saxutils import escape

from mt.core.coded_text import CodedText, Mark
from mt.core.errors import InputError
from mt.formats.document import Document, Languages, Passage, decode_xml, kept_passage, replaced_passage
from mt.formats.escapes import escapes, unescape
from mt.formats.layout import cut_paragraphs
from mt.formats.tags import coded_markup, decode
from mt.formats.text_values import is_text
from mt.formats.xliff import write_cdata
from mt.formats.xliff_units import CDATA
from mt.formats.xml_elements import Element, read_elements

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
    text, encoding = decode_xml(content)
    elements = read_elements(text)
    if elements[0].name != "resources":
        raise InputError("is no file of string resources: it has no element resources; give the right file")
    keys: dict[int, str] = {}
    counts: dict[int, int] = {}
    for element in elements:
        parent = element.parent
        if parent and element.name == "item" and parent.name in LISTS:
            index = counts[id(parent)] = counts.get(id(parent), -1) + 1
            keys[id(element)] = f"{parent.attributes.get('name', '')}.{element.attributes.get('quantity', index)}"
        elif parent is elements[0] and element.attributes.get("type", element.name) == "string":
            keys[id(element)] = element.attributes.get("name", "")
        elif element.name == "g":
            while parent and id(parent) not in keys:
                parent = parent.parent
            if parent and not (parent.codes and element.end <= parent.codes[-1].end + parent.content_start):
                parent.codes.append(Mark(element.start - parent.content_start, element.end - parent.content_start))
    strings = [element for element in elements if id(element) in keys and _is_translatable(element)]
    passages = [passage for string in strings for passage in _passages(text, string, keys[id(string)])]
    return Document(text, passages, lambda changed: changed.encode(encoding, "xmlcharrefreplace"))


def _is_translatable(string: Element) -> bool:
    outer = string.parent.attributes if string.parent else {}
    return "false" not in (string.attributes.get("translatable"), outer.get("translatable"))


def _passages(text: str, string: Element, key: str) -> list[Passage]:
    """Return the passage of a string; no passage if it has no text to translate."""
    raw = text[string.content_start : string.content_end]
    span = string.content_end - len(raw.lstrip()), string.content_start + len(raw.rstrip())
    cdata = CDATA.fullmatch(raw.strip())
    if not cdata and "<!" in raw:
        return [kept_passage(string.start, key)]
    has_tags = "<" in raw and not cdata
    content = raw.strip()
    shift = raw.index(content)
    marks = [mark._replace(start=mark.start - shift, end=mark.end - shift) for mark in string.codes]
    value = (
        coded_markup(content, "xml", marks)
        if has_tags
        else CodedText((cdata[1] if cdata else decode(content, "xml")).strip())
    )
    quoted = QUOTED.fullmatch(value.text)
    parts = value.parts()
    is_quoted = quoted and value.text == f'"{quoted[1]}"' and parts[0][:1] == parts[-1][-1:] == '"'
    quote = '"' if is_quoted else ""
    value = value.cut(1, len(value.text) - 1).mapped(unescape) if quote else value.mapped(_shown)

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
