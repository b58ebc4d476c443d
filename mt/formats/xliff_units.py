"""Parse the units of XLIFF 1.2 and 2.x, and their segments and inline codes."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from mt.core.coded_text import CodedText, Mark
from mt.core.errors import InputError
from mt.formats.document import Languages, decode_xml, line_number
from mt.formats.marks import mark_keys
from mt.formats.tags import coded_markup, decode
from mt.formats.xml_elements import Element, read_elements

CODE_ELEMENTS = {"bpt", "ept", "ph", "it", "bx", "ex", "x", "sc", "ec", "cp", "sm", "em"}
"""Inline elements that hold codes of another format. All others hold text to translate."""
OPENING_CODES, CLOSING_CODES = {"bpt", "bx", "sc", "sm"}, {"ept", "ex", "ec", "em"}
"""The elements of opening and closing codes."""
PAIR_ATTRIBUTES = ("startRef", "rid", "id")
"""Their attributes that identify the pair, in order of preference."""
DESCRIPTION_ATTRIBUTES = ("id", "equiv", "equiv-text", "disp")
"""The attributes that may say which mark a code without content stands for: ``START_LINK``, ``<a>``."""
SEPARATING_CODE = re.compile(
    r"</?(?:br|p|div|li|h\d|t[dhr]|[uo]l)\b|LINE_BREAK|(?:START|CLOSE)_(?:PARAGRAPH|HEADING|LIST|.*ORDERED|TABLE|TAG_DIV)"
)
"""Matches the descriptions of codes between which words end, even where no space is written."""


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


class Unit:
    """A unit of translation: the element ``trans-unit`` of XLIFF 1.2, ``segment`` of 2.x.

    Raises:
        InputError: It has no source, or two.
    """

    def __init__(self, element: Element) -> None:
        self.element = element
        self.holder = element if element.name == "trans-unit" else element.parent or element
        """The element with the notes: that of the unit in XLIFF 1.2, the ``unit`` around it in 2.x."""
        sides: dict[str, Element] = {}
        for child in element.children:
            if child.name in ("source", "seg-source", "target") and sides.setdefault(child.name, child) is not child:
                _refuse(child, f"a second {child.name} in one {element.name}")
        if "source" not in sides:
            _refuse(element, f"a {element.name} without a source")
        self.whole_source = sides["source"]
        self.source = sides.get("seg-source", self.whole_source)
        """The element to translate: ``seg-source``, which marks the segments of the source, or else ``source``."""
        self.target = sides.get("target")
        self.definitions = {part.attributes.get("id", ""): part for part in _grandchildren(element, "seg")}
        """Maps the id of a segment to the element in which Trados keeps its state, ``sdl:seg``."""
        self._data = {part.attributes.get("id", ""): part for part in _grandchildren(self.holder, "data")}
        """Maps the ids of the original data of XLIFF 2.x to the elements."""

    @property
    def subflows(self) -> list[int]:
        """The positions of texts inside of the source's codes (``sub``), which are not translated."""
        texts = self.whole_source.find_outermost(lambda part: part.name == "sub")
        return [text.start for text in texts if any(map(str.isalpha, text.content))]

    @property
    def state(self) -> str:
        """The state of the translation, "" if it is not declared. Machine translations of any version have the state
        ``needs-review-translation``."""
        holder = self.target if self.element is self.holder else self.element
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

    def coded(self, part: Element) -> CodedText:
        """Return the text of a side, or of a segment in it."""
        codes = [self._code_mark(code, part.content_start) for code in part.find_outermost(is_code)]
        return coded_markup(part.content, "xml", codes, cdata_is_text=True)

    def words(self, part: Element | None) -> str:
        """Return the text of a side, or of a segment in it, without codes and tags, and with entities decoded."""
        return self.coded(part).text if part else ""

    def _code_mark(self, code: Element, shift: int) -> Mark:
        """Return the mark of a code in a text that begins at ``shift``."""
        keys = _pair_key(code, OPENING_CODES), _pair_key(code, CLOSING_CODES)
        data = self._data.get(code.attributes.get("dataRef", ""))
        descriptions = [decode(holder.content, "xml") for holder in (code, data) if holder]
        descriptions += [code.attributes.get(name, "") for name in DESCRIPTION_ATTRIBUTES]
        side = code.attributes.get("pos")  # of an it, whose content is the same on both sides in some formats
        if side in ("open", "close") and not any(keys):
            keys = ("it", "") if side == "open" else ("", "it")
        elif not any(keys):
            keys = next((own for own in map(mark_keys, descriptions) if any(own)), keys)
        separates = code.attributes.get("ctype") == "lb" or any(map(SEPARATING_CODE.match, descriptions))
        return Mark(code.start - shift, code.end - shift, *keys, separates)


class XliffFile:
    """A parsed XLIFF file: its text, and its units.

    Raises:
        InputError: The content is no XLIFF file.
    """

    def __init__(self, content: bytes) -> None:
        self.text, self.encode = decode_xml(content)
        elements = read_elements(self.text)
        self.dialect = _detect_dialect(elements[0])
        self.units = [Unit(element) for element in elements if element.name == self.dialect.unit]
        self.declarations: list[tuple[Element, str, str | None]] = []
        """The elements that declare languages, each with the source language and, if it is given, the target
        language."""
        for element in elements:
            if element.name == self.dialect.file:
                codes = (self.dialect.source_language, self.dialect.target_language)
                source, target = map(element.attributes.get, codes)
                if source is None:
                    _refuse(element, f"{element.name} without {codes[0]}")
                self.declarations.append((element, source, target or None))

    def check_languages(self, languages: Languages, advice: str) -> None:
        """Raise InputError if the file declares other languages than these. The message ends with the advice."""
        for _, source, target in self.declarations:
            if not languages.match(source, target):
                raise InputError(f"is in {' and '.join(filter(None, (source, target)))}, {advice}")


def find_segments(side: Element) -> dict[tuple[str, int], Element]:
    """Return the segments of a side by id, and by number if several have one id. There are none if the side has text
    outside of them."""
    parts = side.find_outermost(lambda part: is_code(part) or part.attributes.get("mtype") == "seg")
    shift = side.content_start
    marks = [Mark(part.start - shift, part.end - shift) for part in parts]
    outside = coded_markup(side.content, "xml", marks, cdata_is_text=True).text
    segments: dict[tuple[str, int], Element] = {}
    numbers = Counter[str]()
    for segment in parts if not any(map(str.isalpha, outside)) else ():
        if not is_code(segment):
            name = segment.attributes.get("mid", "")
            segments[name, numbers[name]] = segment
            numbers[name] += 1
    return segments


def is_code(element: Element) -> bool:
    return element.name in CODE_ELEMENTS or element.attributes.get("mtype") == "protected"


def _grandchildren(element: Element, name: str) -> Iterator[Element]:
    return (inner for child in element.children for inner in child.children if inner.name == name)


def _refuse(element: Element, reason: str) -> NoReturn:
    line = line_number(element.file, element.start)
    raise InputError(f"line {line}: {reason}; correct the file, or export it again")


def _detect_dialect(root: Element) -> XliffDialect:
    names = (value.rpartition(":")[2] for key, value in root.attributes.items() if key.startswith("xmlns"))
    versions = [root.attributes.get("version", ""), *names]  # some programs only name the version in the namespace
    dialect = next((DIALECTS[version[:2]] for version in versions if version[:2] in DIALECTS), None)
    if root.name != "xliff" or dialect is None:
        raise InputError(
            "is no XLIFF 1.2 or 2.x: it has no element xliff with such a version; export it as one of these"
        )
    return dialect


def _pair_key(element: Element, names: set[str]) -> str:
    """Return the key that an opening code shares with its closing code; "" if it is no element of ``names``."""
    for name in PAIR_ATTRIBUTES if element.name in names else ():
        if name in element.attributes:
            return f"{'id' if name == 'startRef' else name}={element.attributes[name]}"
    return ""
