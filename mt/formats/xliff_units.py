"""Parse the units of XLIFF 1.2 and 2.x, and their segments and inline codes."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, NoReturn

from mt.core.coded_text import CodedText, Mark
from mt.core.errors import InputError
from mt.formats.document import CONFIDENCE_COMMENT, decode_xml, line_number
from mt.formats.marks import mark_keys
from mt.formats.tags import coded_markup, decode
from mt.formats.xml_elements import Element, read_elements

CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
CODE_ELEMENTS = {"bpt", "ept", "ph", "it", "bx", "ex", "x", "sc", "ec", "cp", "sm", "em"}
"""Inline elements that hold codes of another format. All others hold text to translate."""
OPENING = {"bpt": ("rid", "id"), "bx": ("rid", "id"), "sc": ("id",), "sm": ("id",)}
CLOSING = {"ept": ("rid", "id"), "ex": ("rid", "id"), "ec": ("startRef",), "em": ("startRef",)}
"""Map the elements of opening and closing codes to the attributes that identify the pair, in order of preference."""
DESCRIPTIONS = ("id", "equiv", "equiv-text", "disp")
"""The attributes that may say which mark a code without content stands for: ``START_LINK``, ``<a>``."""
SEPARATING_CODE = re.compile(
    r"</?(?:br|p|div|li|h\d|t[dhr]|[uo]l)\b|LINE_BREAK|(?:START|CLOSE)_(?:PARAGRAPH|HEADING|LIST|.*ORDERED|TABLE|TAG_DIV)"
)
"""Matches the descriptions of codes between which words end, even where no blank is written."""
UNIT_PARTS = ("notes", "originalData", "segment", "ignorable")
"""The elements of a unit of XLIFF 2.x, in the order that it prescribes."""
SIDE_ELEMENTS = ("source", "seg-source", "target")


class XliffDialect(NamedTuple):
    """The names of elements and attributes in one version of XLIFF."""

    file: str
    """The element that declares the languages."""
    source_language: str
    """Its attribute with the source language."""
    target_language: str
    """Its attribute with the target language."""
    unit: str
    """The element of a unit of translation."""
    target_attributes: str
    """The attributes that mark a target as a machine translation, with a leading space; "" for none."""
    unit_attributes: str
    """The attributes that mark a unit as machine-translated, with a leading space; "" for none."""


DIALECTS = {
    "1.": XliffDialect(
        "file",
        "source-language",
        "target-language",
        "trans-unit",
        ' state="needs-review-translation" state-qualifier="mt-suggestion"',
        "",
    ),
    "2.": XliffDialect("xliff", "srcLang", "trgLang", "segment", "", ' state="translated" subState="mt:unreviewed"'),
}


@dataclass
class Unit:
    """A unit of translation: the element ``trans-unit`` of XLIFF 1.2, ``segment`` of 2.x."""

    element: Element
    sides: dict[str, Element] = field(default_factory=dict)
    """Maps the names of SIDE_ELEMENTS to the elements of these names in the unit."""
    definitions: dict[str, Element] = field(default_factory=dict)
    """Maps the id of a segment to the element in which Trados keeps its state, ``sdl:seg``."""

    subflows: list[int] = field(default_factory=list)
    """The positions of texts inside of the source's codes (``sub``), which are not translated."""

    @property
    def source(self) -> Element:
        """The element to translate: ``seg-source``, which marks the segments of the source, or else ``source``."""
        return self.sides.get("seg-source") or self.sides["source"]

    @property
    def target(self) -> Element | None:
        return self.sides.get("target")

    @property
    def state(self) -> str:
        """The state of the translation, "" if it is not declared. Machine translations of any version have the state
        ``needs-review-translation``."""
        holder = self.target if self.element.name == "trans-unit" else self.element
        attributes = holder.attributes if holder else {}
        is_unreviewed = attributes.get("subState", "").startswith("mt:")
        return "needs-review-translation" if is_unreviewed else attributes.get("state", "")

    def is_locked(self, segment: str = "") -> bool:
        """Return whether a CAT tool (Trados, memoQ, Phrase) forbids changes of the unit, or of a segment with this
        id."""
        definition = self.definitions.get(segment)
        attributes = {**self.element.attributes, **(definition.attributes if definition else {})}
        return any(
            name.rpartition(":")[2] == "locked" and value in ("true", "locked") for name, value in attributes.items()
        )


class XliffFile:
    """A parsed XLIFF file: its text, and the positions of its units.

    Raises:
        InputError: The content is no XLIFF file.
    """

    def __init__(self, content: bytes) -> None:
        self.text, self._encoding = decode_xml(content)
        self.units: list[Unit] = []
        self.declarations: list[tuple[Element, str, str | None]] = []
        """The elements that declare languages, each with the source language and, if it is given, the target
        language."""
        self._data: dict[str, Element] = {}
        """Maps the ids of the original data of the current unit of XLIFF 2.x to the elements."""
        self.first_parts: dict[int, Element] = {}
        """Maps the positions of units of XLIFF 2.x to their notes or, without notes, to the element behind these."""
        self.own_notes: dict[int, list[Element]] = {}
        """Maps the positions of elements to the notes in them that this program has written."""
        elements = read_elements(self.text)
        self.dialect = _dialect(elements[0])
        for element in elements:
            self._add(element)
        for unit in self.units:
            if "source" not in unit.sides:
                self._fail(unit.element, f"a {unit.element.name} without a source")

    def encode(self, text: str) -> bytes:
        return text.encode(self._encoding, "xmlcharrefreplace")

    def content(self, element: Element) -> str:
        return self.text[element.content_start : element.content_end]

    def tag(self, element: Element) -> str:
        return self.text[element.start : element.content_start]

    def sibling_name(self, element: Element, name: str) -> str:
        """Return a name with the namespace prefix of an element."""
        return re.split(r"[\s/>]", self.tag(element)[1:])[0].replace(element.name, name)

    def coded(self, side: Element, start: int, end: int) -> CodedText:
        """Return the text of a side between two positions. CDATA sections are text."""
        first = bisect_left(side.codes, start, key=attrgetter("start"))
        codes = side.codes[first : bisect_right(side.codes, end, key=attrgetter("end"))]
        shifted = [code._replace(start=code.start - start, end=code.end - start) for code in codes]
        coded = coded_markup(self.text[start:end], "xml", shifted)
        return coded.with_text(lambda code: section[1] if (section := CDATA.fullmatch(code)) else None)

    def words(self, side: Element, part: Element | None = None) -> str:
        """Return the text of a side, or of a segment in it, without codes and tags, and with entities decoded."""
        part = part or side
        return self._words(side, part.content_start, part.content_end)

    def segments(self, side: Element) -> dict[tuple[str, int], Element]:
        """Return the segments of a side by id, and by number if several have one id. There are none if the side has
        text outside of them."""
        starts = [side.content_start, *(segment.end for segment in side.segments)]
        ends = [*(segment.start for segment in side.segments), side.content_end]
        if any(map(str.isalpha, "".join(map(self._words, [side] * len(starts), starts, ends)))):
            return {}
        numbers = Counter[str]()
        by_id = {}
        for segment in side.segments:
            name = segment.attributes.get("mid", "")
            by_id[name, numbers[name]] = segment
            numbers[name] += 1
        return by_id

    def _words(self, side: Element, start: int, end: int) -> str:
        return self.coded(side, start, end).text

    def _fail(self, element: Element, reason: str) -> NoReturn:
        line = line_number(self.text, element.start)
        raise InputError(f"line {line}: {reason}; correct the file, or export it again")

    def _add(self, element: Element) -> None:
        """Record a unit, a side of a unit, a code or segment of a side, a note, or a declaration of languages."""
        unit = self.units[-1] if self.units else None
        if element.parent and element.name in UNIT_PARTS:
            self.first_parts.setdefault(element.parent.start, element)
        if element.parent and element.name == "note" and CONFIDENCE_COMMENT.fullmatch(self.content(element).strip()):
            self.own_notes.setdefault(element.parent.start, []).append(element)
        if element.name == self.dialect.file:
            source = element.attributes.get(self.dialect.source_language)
            if source is None:
                self._fail(element, f"{element.name} without {self.dialect.source_language}")
            self.declarations.append((element, source, element.attributes.get(self.dialect.target_language) or None))
        elif element.name == self.dialect.unit:
            self.units.append(Unit(element))
        elif element.name == "data":
            self._data[element.attributes.get("id", "")] = element
        elif unit and element.name in SIDE_ELEMENTS and element.parent is unit.element:
            if element.name in unit.sides:
                self._fail(element, f"a second {element.name} in one {self.dialect.unit}")
            unit.sides[element.name] = element
        elif unit and element.name == "seg" and element.parent and element.parent.parent is unit.element:
            unit.definitions[element.attributes.get("id", "")] = element
        elif unit and element.name == "sub":
            if _holder(element, set()) is unit.sides.get("source") and any(map(str.isalpha, self.content(element))):
                unit.subflows.append(element.start)
        else:
            self._add_inline(element)

    def _add_inline(self, element: Element) -> None:
        """Record a code or a segment of a side."""
        kind = element.attributes.get("mtype")
        is_code = element.name in CODE_ELEMENTS or kind == "protected"
        if not is_code and kind != "seg":
            return
        holder = _holder(element, CODE_ELEMENTS)
        if not holder or holder.name not in SIDE_ELEMENTS:  # it is a part of another code
            return
        if is_code:
            keys = _pair_key(element, OPENING), _pair_key(element, CLOSING)
            descriptions = self._descriptions(element)
            keys = keys if any(keys) else _described_keys(element, descriptions)
            separates = element.attributes.get("ctype") == "lb" or any(map(SEPARATING_CODE.match, descriptions))
            holder.codes.append(Mark(element.start, element.end, *keys, separates))
        elif not holder.segments or holder.segments[-1].end <= element.start:  # otherwise it is inside of this one
            holder.segments.append(element)

    def _descriptions(self, element: Element) -> list[str]:
        """Return the meaning of a code in the original document: its content, its original data and its attributes."""
        data = self._data.get(element.attributes.get("dataRef", ""))
        contents = [decode(self.content(holder), "xml") for holder in (element, data) if holder]
        return contents + [element.attributes.get(name, "") for name in DESCRIPTIONS]


def _holder(element: Element, codes: set[str]) -> Element | None:
    """Return the side or, if its name is in ``codes``, the code that an element is in."""
    holder = element.parent
    while holder and holder.name not in codes and holder.name not in SIDE_ELEMENTS:
        holder = holder.parent
    return holder


def _described_keys(element: Element, descriptions: list[str]) -> tuple[str, str]:
    """Return the keys of a code that is a mark by its descriptions, such as START_LINK."""
    side = element.attributes.get("pos")  # of an it, whose content is the same on both sides in some formats
    if side in ("open", "close"):
        return ("it", "") if side == "open" else ("", "it")
    return next((keys for keys in map(mark_keys, descriptions) if any(keys)), ("", ""))


def _dialect(root: Element) -> XliffDialect:
    names = (value.rpartition(":")[2] for key, value in root.attributes.items() if key.startswith("xmlns"))
    versions = [root.attributes.get("version", ""), *names]  # some programs only name the version in the namespace
    dialect = next((DIALECTS[version[:2]] for version in versions if version[:2] in DIALECTS), None)
    if root.name != "xliff" or dialect is None:
        raise InputError(
            "is no XLIFF 1.2 or 2.x: it has no element xliff with such a version; export it as one of these"
        )
    return dialect


def _pair_key(element: Element, attributes_of_code: dict[str, tuple[str, ...]]) -> str:
    """Return the key that an opening code shares with its closing code.

    Args:
        element: The element of a code.
        attributes_of_code: OPENING or CLOSING. The result is "" for an element that is not in it.
    """
    for name in attributes_of_code.get(element.name, ()):
        if name in element.attributes:
            return f"{'id' if name == 'startRef' else name}={element.attributes[name]}"
    return ""
