"""Reads Android's string resources (strings.xml)."""

import re
from collections.abc import Callable
from xml.sax.saxutils import escape

from mt.core.errors import InputError
from mt.data.parsers.codes import replace_codes
from mt.data.parsers.document import Document, Languages, Passage, decode_xml, kept_passage, replaced_passage
from mt.data.parsers.layout import cut_paragraphs
from mt.data.parsers.xliff import write_cdata
from mt.data.parsers.xliff_units import CDATA
from mt.data.parsers.xml_elements import Element, read_elements
from mt.documents.escapes import escapes, unescape
from mt.documents.text_values import is_text
from mt.text.markup.marks import Mark
from mt.text.markup.tags import decode

LISTS = {"string-array", "plurals"}
QUOTED = re.compile(r'\\.|"((?:[^"\\]|\\.)*+)"?|[ \t\r\n]+', re.DOTALL)
"""An escape sequence, a part in quotation marks, which are not shown, or white space, of which one blank is shown."""
COLLAPSED = re.compile(r"\A | (?= )(?![^<>]*>)| \Z")
"""A blank that is shown only if it is an escape sequence."""
XML_TAG = re.compile(r"(<[^<>]*>)")
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
    tagged = replace_codes(raw, string.codes)
    value = (cdata[1] if cdata else tagged.text if has_tags else decode(raw, "xml")).strip()
    quoted = QUOTED.fullmatch(value)
    quote = '"' if quoted and value == f'"{quoted[1]}"' else ""
    value = _outside_tags(unescape, value[1:-1], has_tags) if quote else _outside_tags(_shown, value, has_tags)

    def write(translation: str) -> str:
        written = _outside_tags(lambda part: part.translate(ESCAPES), translation, has_tags)
        if not quote:
            sign = "\\" if written.startswith(("@", "?")) else ""
            written = sign + COLLAPSED.sub(r"\\u0020", written)
        written = f"{quote}{written}{quote}"
        if cdata:
            return write_cdata(written)
        return tagged.restore(written) if has_tags else escape(written)

    if not is_text(XML_TAG.sub("", value)):
        return []
    layout = cut_paragraphs(value, "xml" if has_tags else None, syntax="printf")
    return [replaced_passage(*span, layout, write, key, "c-format")]


def _outside_tags(change: Callable[[str], str], text: str, has_tags: bool) -> str:
    parts = XML_TAG.split(text) if has_tags else [text]
    parts[::2] = map(change, parts[::2])
    return "".join(parts)


def _shown(text: str) -> str:
    """Return a string without tags as Android shows it."""
    plain = QUOTED.sub(lambda part: part[0] if part[0][0] == "\\" else part[1] if part[0][0] == '"' else " ", text)
    return unescape(plain)
