"""Reads the elements of an XML text with their positions, so that a program can change parts of the text."""

import re
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from mt.core.errors import InputError
from mt.formats.marks import Mark

START_TAG = re.compile(r"""<(?:[^"'>]|"[^"]*"|'[^']*')*+>""")


@dataclass
class Element:
    """An XML element, and its positions in the text of the file."""

    name: str
    """The name without its namespace prefix."""
    attributes: dict[str, str]
    parent: "Element | None"
    is_translatable: bool
    """Whether the text is to be translated, by the attribute ``translate`` of the element or of an outer one."""
    start: int
    content_start: int
    content_end: int = 0
    end: int = 0
    codes: list[Mark] = field(default_factory=list)
    """The codes in a source or target; empty for other elements."""
    segments: list["Element"] = field(default_factory=list)
    """The marked segments in a source or target; empty for other elements."""


def read_elements(text: str) -> list[Element]:
    """Return all elements of an XML text in the order of their start tags, the root first.

    Raises:
        InputError: The text is not well-formed, or declares entities.
    """
    content = text.encode()
    elements: list[Element] = []
    unclosed: list[Element] = []
    last_byte = last_character = 0

    def position() -> int:
        """Return the position of the parser's current event, in characters. The parser counts bytes."""
        nonlocal last_byte, last_character
        last_character += len(content[last_byte : parser.CurrentByteIndex].decode())
        last_byte = parser.CurrentByteIndex
        return last_character

    def open_element(name: str, attributes: dict[str, str]) -> None:
        start = position()
        tag = START_TAG.match(text, start)
        assert tag, "expat takes it for a tag"
        parent = unclosed[-1] if unclosed else None
        inherited = parent.is_translatable if parent else True
        is_translatable = {"yes": True, "no": False}.get(attributes.get("translate", ""), inherited)
        unclosed.append(Element(name.rpartition(":")[2], attributes, parent, is_translatable, start, tag.end()))
        elements.append(unclosed[-1])

    def close_element(name: str) -> None:
        element = unclosed.pop()
        element.content_end = position()
        is_empty = text[element.content_start - 2] == "/"
        element.end = element.content_end if is_empty else text.index(">", element.content_end) + 1

    def refuse(*details: object) -> NoReturn:
        raise InputError("declares entities, which are not supported; replace them by their texts")

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler = open_element, close_element
    parser.EntityDeclHandler, parser.SkippedEntityHandler = refuse, refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise InputError(f"is no XML that can be read: {error}; correct the file, or export it again") from None
    return elements
