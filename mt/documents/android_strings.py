"""Reads Android's string resources (strings.xml)."""

import re
from functools import partial
from xml.sax.saxutils import escape

from mt.core.errors import InputError
from mt.data.parsers.codes import TaggedText, replace_codes
from mt.data.parsers.document import Document, Languages, Passage, decode_declared, replaced_passage
from mt.data.parsers.layout import cut_paragraphs
from mt.data.parsers.xliff_units import DECLARATION
from mt.data.parsers.xml_elements import Element, read_elements
from mt.documents.text_values import is_text
from mt.text.markup.marks import Mark
from mt.text.markup.tags import decode

LISTS = {"string-array", "plurals"}
CDATA = re.compile(r"(<!\[CDATA\[)(.*)(\]\]>)", re.DOTALL)
TAG = re.compile(r"(<[^<>]*>)")
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
ESCAPED = {"n": "\n", "t": "\t"}
ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in "\\\"'"} | {value: f"\\{key}" for key, value in ESCAPED.items()})
DIRECTIVE = re.compile(r"%[\d$.]*+[A-Za-z]")


def read_android_strings(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read string resources. Strings, and the items of arrays and plurals, are passages to translate.

    What stands in ``xliff:g`` is kept, and so are strings with ``translatable="false"``.

    Raises:
        InputError: The content is no XML of resources.
    """
    declared = DECLARATION.match(content)
    text, encoding = decode_declared(content, declared[1].decode() if declared else "utf-8")
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
        elif parent is elements[0] and element.name == "string":
            keys[id(element)] = element.attributes.get("name", "")
        elif element.name == "g":
            while parent and id(parent) not in keys:
                parent = parent.parent
            if parent and not (parent.codes and element.end <= parent.codes[-1].end + parent.content_start):
                parent.codes.append(Mark(element.start - parent.content_start, element.end - parent.content_start))
    strings = [element for element in elements if id(element) in keys and _is_translatable(element)]
    passages = [passage for string in strings for passage in _passages(text, string, keys[id(string)])]
    return Document(text, tuple(passages), lambda changed: changed.encode(encoding, "xmlcharrefreplace"))


def _is_translatable(string: Element) -> bool:
    outer = string.parent.attributes if string.parent else {}
    return "false" not in (string.attributes.get("translatable"), outer.get("translatable"))


def _passages(text: str, string: Element, key: str) -> list[Passage]:
    """Return the passage of a string; no passage if it has no text to translate."""
    raw = text[string.content_start : string.content_end]
    span = string.content_end - len(raw.lstrip()), string.content_start + len(raw.rstrip())
    cdata = CDATA.fullmatch(raw.strip())
    if not cdata and "<!" in raw:
        return [Passage((), lambda translations: None, string.start, key)]
    flag = "c-format" if DIRECTIVE.search(raw) else ""
    if not cdata and "<" in raw:
        tagged = replace_codes(raw, string.codes)
        value, quote = _unescape(tagged.text, has_tags=True)
        layout = cut_paragraphs(value, markup="xml", syntax="java-printf")
        write = partial(_write_tagged, tagged, quote)
    else:
        value, quote = _unescape(cdata[2] if cdata else decode(raw, "xml"))
        layout = cut_paragraphs(value, syntax="java-printf")
        write = partial(_write, cdata.groups() if cdata else None, quote)
    return [replaced_passage(*span, layout, write, key, flag)] if is_text(TAG.sub("", value)) else []


def _unescape(text: str, has_tags: bool = False) -> tuple[str, str]:
    """Return a text without escapes and quotation marks around it, and these quotation marks, if there are any.

    White space outside of quotation marks is collapsed, as Android does. Tags are not changed.
    """
    text = text.strip()
    quote = '"' if re.fullmatch(r'"(?:[^"\\]|\\.)*"', text, re.DOTALL) else ""
    text = text[1:-1] if quote else re.sub(r"\s+", " ", text)
    parts = TAG.split(text) if has_tags else [text]
    parts[::2] = [ESCAPE.sub(_unescape_character, part) for part in parts[::2]]
    return "".join(parts), quote


def _unescape_character(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else ESCAPED.get(match[2], match[2])


def _escape(text: str, quote: str) -> str:
    text = text.translate(ESCAPES)
    return f"{quote}{text}{quote}" if quote or not text.startswith(("@", "?")) else f"\\{text}"


def _write(cdata: tuple[str, ...] | None, quote: str, text: str) -> str:
    if cdata:
        return cdata[0] + _escape(text, quote).replace("]]>", "]]]]><![CDATA[>") + cdata[2]
    return escape(_escape(text, quote))


def _write_tagged(tagged: TaggedText, quote: str, text: str) -> str:
    parts = TAG.split(text.replace("&apos;", "'").replace("&quot;", '"'))
    parts[::2] = [part.translate(ESCAPES) for part in parts[::2]]
    return quote + tagged.restore("".join(parts)) + quote
