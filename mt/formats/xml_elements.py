"""Reads the elements of an XML text with their positions, so that parts of the text can be changed."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from mt.core.coded_text import Splice, apply_splices
from mt.core.errors import InputError

START_TAG = re.compile(r"""<(?:[^"'>]|"[^"]*"|'[^']*')*+>""")


@dataclass(eq=False, repr=False)
class Element:
    """An XML element, and its positions in the text of the file."""

    name: str
    """The name without its namespace prefix."""
    tag_name: str
    """The name with its namespace prefix."""
    attributes: dict[str, str]
    parent: "Element | None"
    is_translatable: bool
    """Whether the text may be translated, by the attribute ``translate`` of the element or of an outer one."""
    file: str
    """The text of the file."""
    start: int
    content_start: int
    content_end: int = 0
    end: int = 0
    children: list["Element"] = field(default_factory=list)

    @property
    def xml(self) -> str:
        return self.file[self.start : self.end]

    @property
    def tag(self) -> str:
        """The start tag."""
        return self.file[self.start : self.content_start]

    @property
    def content(self) -> str:
        return self.file[self.content_start : self.content_end]

    def find_outermost(self, matches: Callable[["Element"], bool]) -> list["Element"]:
        """Return the matching elements inside this one, except those inside other matching elements."""
        outermost: list[Element] = []
        remaining = self.children[::-1]
        while remaining:
            element = remaining.pop()
            if matches(element):
                outermost.append(element)
            else:
                remaining += element.children[::-1]
        return outermost

    def changed_content(self, splices: Iterable[Splice]) -> str:
        """Return the content after changes. The positions of these are relative to the file."""
        shift = self.content_start
        shifted = (Splice(start - shift, end - shift, new) for start, end, new in sorted(splices))
        return apply_splices(self.content, shifted)

    def replace_content(self, content: str) -> Splice:
        """Return the change of the file that replaces the content. An empty-element tag is opened."""
        if self.tag.endswith("/>"):
            return Splice(self.content_start - len("/>"), self.end, f">{content}</{self.tag_name}>")
        return Splice(self.content_start, self.content_end, content)


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
        assert tag, "expat has found a tag here"
        parent = unclosed[-1] if unclosed else None
        inherited = parent.is_translatable if parent else True
        is_translatable = {"yes": True, "no": False}.get(attributes.get("translate", ""), inherited)
        element = Element(name.rpartition(":")[2], name, attributes, parent, is_translatable, text, start, tag.end())
        if parent:
            parent.children.append(element)
        unclosed.append(element)
        elements.append(element)

    def close_element(name: str) -> None:
        element = unclosed.pop()
        element.content_end = position()
        is_empty = text[element.content_start - 2] == "/"
        element.end = element.content_end if is_empty else text.index(">", element.content_end) + 1

    def refuse(*details: object) -> NoReturn:
        raise InputError("declares entities, which are not supported; replace them with their texts")

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler = open_element, close_element
    parser.EntityDeclHandler, parser.SkippedEntityHandler = refuse, refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise InputError(f"is not well-formed XML: {error}; correct the file, or export it again") from None
    return elements


def write_cdata(text: str) -> str:
    """Return a text as a CDATA section of XML, or as several if it contains ``]]>``."""
    return f"<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>"
