"""Parses the units of XLIFF 1.2 and 2.x, and their segments and inline codes."""

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
"""Inline elements that contain codes of another format. All others contain text to translate."""
OPENING_CODES, CLOSING_CODES = {"bpt", "bx", "sc", "sm"}, {"ept", "ex", "ec", "em"}
"""The elements of paired codes."""
PAIR_ATTRIBUTES = ("startRef", "rid", "id")
"""The attributes that identify a pair of codes, in order of preference."""
DESCRIPTION_ATTRIBUTES = ("id", "equiv", "equiv-text", "disp")
"""The attributes that may describe a code without content: ``START_LINK``, ``<a>``."""
SEPARATING_CODE = re.compile(
    r"</?(?:br|p|div|li|h\d|t[dhr]|[uo]l)\b|LINE_BREAK|(?:START|CLOSE)_(?:PARAGRAPH|HEADING|LIST|.*ORDERED|TABLE|TAG_DIV)"
)
"""Matches the descriptions of codes that separate words without a space."""


class XliffDialect(NamedTuple):
    """The names of elements and attributes in one version of XLIFF."""

    file: str
    """The element that declares the languages."""
    source_language: str
    """The attribute of ``file`` with the source language."""
    target_language: str
    """The attribute of ``file`` with the target language."""
    unit: str
    """The element of a translation unit."""
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
    """A translation unit: the element ``trans-unit`` of XLIFF 1.2, or ``segment`` of 2.x.

    Raises:
        InputError: The unit has no source, or a second source or target.
    """

    def __init__(self, element: Element) -> None:
        self.element = element
        self.holder = element if element.name == "trans-unit" else element.parent or element
        """The element with the notes: ``element`` in XLIFF 1.2, the enclosing ``unit`` in 2.x."""
        sides: dict[str, Element] = {}
        for child in element.children:
            if child.name in ("source", "seg-source", "target") and sides.setdefault(child.name, child) is not child:
                _refuse(child, f"a second {child.name} in one {element.name}")
        if "source" not in sides:
            _refuse(element, f"a {element.name} without a source")
        self.whole_source = sides["source"]
        self.source = sides.get("seg-source", self.whole_source)
        """The element to translate: ``seg-source``, which has the segments of the source, or else ``source``."""
        self.target = sides.get("target")
        self.definitions = {part.attributes.get("id", ""): part for part in _grandchildren(element, "seg")}
        """Maps the id of a segment to the element in which Trados keeps its state, ``sdl:seg``."""
        self._data = {part.attributes.get("id", ""): part for part in _grandchildren(self.holder, "data")}
        """Maps the ids of the original data in XLIFF 2.x to their elements."""

    @property
    def subflows(self) -> list[int]:
        """The positions of texts inside the source's codes (``sub``), which are not translated."""
        texts = self.whole_source.find_outermost(lambda part: part.name == "sub")
        return [text.start for text in texts if any(map(str.isalpha, text.content))]

    @property
    def state(self) -> str:
        """The state of the translation; "" if it is not declared.

        The state of a machine translation is ``needs-review-translation`` for all versions of XLIFF.
        """
        holder = self.target if self.element is self.holder else self.element
        attributes = holder.attributes if holder else {}
        is_unreviewed = attributes.get("subState", "").startswith("mt:")
        return "needs-review-translation" if is_unreviewed else attributes.get("state", "")

    def is_locked(self, segment: str = "") -> bool:
        """Return whether a CAT tool (Trados, memoQ, Phrase) has locked the unit, or the segment with this id."""
        definition = self.definitions.get(segment)
        attributes = {**self.element.attributes, **(definition.attributes if definition else {})}
        return any(
            name.rpartition(":")[2] == "locked" and value in ("true", "locked") for name, value in attributes.items()
        )

    def coded(self, part: Element) -> CodedText:
        """Return the text of a side, or of a segment in it, with codes and tags as codes."""
        codes = [self._code_mark(code, part.content_start) for code in part.find_outermost(is_code)]
        return coded_markup(part.content, "xml", codes, cdata_is_text=True)

    def words(self, part: Element | None) -> str:
        """Return the text of a side, or of a segment in it, without codes and tags, and with decoded entities."""
        return self.coded(part).text if part else ""

    def _code_mark(self, code: Element, shift: int) -> Mark:
        """Return the mark of a code.

        Args:
            code: The element of the code.
            shift: The start of the text in the file. The positions of the mark are relative to it.
        """
        keys = _pair_key(code, OPENING_CODES), _pair_key(code, CLOSING_CODES)
        data = self._data.get(code.attributes.get("dataRef", ""))
        descriptions = [decode(holder.content, "xml") for holder in (code, data) if holder]
        descriptions += [code.attributes.get(name, "") for name in DESCRIPTION_ATTRIBUTES]
        side = code.attributes.get("pos")  # of an it, whose content is the same on both sides in some formats
        if side in ("open", "close") and not any(keys):
            keys = ("it", "") if side == "open" else ("", "it")
        elif not any(keys):
            keys = next((described for described in map(mark_keys, descriptions) if any(described)), keys)
        separates = code.attributes.get("ctype") == "lb" or any(map(SEPARATING_CODE.match, descriptions))
        return Mark(code.start - shift, code.end - shift, *keys, separates)


class XliffFile:
    """A parsed XLIFF file: its text, and its units.

    Raises:
        InputError: The content is not an XLIFF file.
    """

    def __init__(self, content: bytes) -> None:
        self.text, self.encode = decode_xml(content)
        elements = read_elements(self.text)
        self.dialect = _detect_dialect(elements[0])
        self.units = [Unit(element) for element in elements if element.name == self.dialect.unit]
        self.declarations: list[tuple[Element, str, str | None]] = []
        """The elements that declare languages, each with the source language and the target language, which may be
        None."""
        for element in elements:
            if element.name == self.dialect.file:
                codes = (self.dialect.source_language, self.dialect.target_language)
                source, target = map(element.attributes.get, codes)
                if source is None:
                    _refuse(element, f"{element.name} has no {codes[0]}")
                self.declarations.append((element, source, target or None))

    def check_languages(self, languages: Languages, hint: str) -> None:
        """Raise InputError if the file declares other languages than these. The message ends with ``hint``."""
        for _, source, target in self.declarations:
            if not languages.match(source, target):
                raise InputError(f"is in {' and '.join(filter(None, (source, target)))}, {hint}")


def find_segments(side: Element) -> dict[tuple[str, int], Element]:
    """Return the segments of a side. If the side has text outside segments, there are none.

    Returns:
        Maps the id of each segment, and its number among the segments with this id, to its element.
    """
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
    """Return whether an inline element is a code, whose content is not translated."""
    return element.name in CODE_ELEMENTS or element.attributes.get("mtype") == "protected"


def _grandchildren(element: Element, name: str) -> Iterator[Element]:
    """Yield the grandchildren of an element that have a name."""
    return (inner for child in element.children for inner in child.children if inner.name == name)


def _refuse(element: Element, reason: str) -> NoReturn:
    """Raise InputError with the line of an element."""
    line = line_number(element.file, element.start)
    raise InputError(f"line {line}: {reason}; correct the file, or export it again")


def _detect_dialect(root: Element) -> XliffDialect:
    """Return the dialect of a file, given its root element. Raise InputError for other formats and versions."""
    names = (value.rpartition(":")[2] for key, value in root.attributes.items() if key.startswith("xmlns"))
    versions = [root.attributes.get("version", ""), *names]  # some programs only name the version in the namespace
    dialect = next((DIALECTS[version[:2]] for version in versions if version[:2] in DIALECTS), None)
    if root.name != "xliff" or dialect is None:
        raise InputError(
            "is not XLIFF 1.2 or 2.x: it has no root element xliff with one of these versions; export it as one of them"
        )
    return dialect


def _pair_key(element: Element, names: set[str]) -> str:
    """Return the key that an opening code shares with its closing code; "" if its name is not in ``names``."""
    for name in PAIR_ATTRIBUTES if element.name in names else ():
        if name in element.attributes:
            return f"{'id' if name == 'startRef' else name}={element.attributes[name]}"
    return ""
