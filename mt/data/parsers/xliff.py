"""XLIFF 1.2 and 2.x, the exchange format of translators' programs (CAT tools).

expat reports the position of each element, so that nothing changes except the targets, their states and a missing
target language. An XML library would write the whole file anew.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, NoReturn
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from mt.core.errors import InputError
from mt.data.parsers.codes import Code, replace_codes
from mt.data.parsers.document import (
    Document,
    Languages,
    Passage,
    Splice,
    decode_declared,
    is_translatable,
    line_pairs,
)
from mt.data.parsers.layout import always, cut_paragraphs
from mt.text.tags import read_units

DECLARATION = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""")
START_TAG = re.compile(r"""<(?:[^\s/>"':]+:)?[^\s/>"':]+(?:\s+[^\s=>]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*/?>""")
STATE = re.compile(r"""\s+(?:state|state-qualifier|subState|approved)\s*=\s*(?:"[^"]*"|'[^']*')""")
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CODES = {"bpt", "ept", "ph", "it", "bx", "ex", "x", "sc", "ec", "cp", "sm", "em"}
"""Inline elements that hold codes of another format. All others hold text to translate."""
OPENING = {"bpt": ("rid", "id"), "bx": ("rid", "id"), "sc": ("id",), "sm": ("id",)}
CLOSING = {"ept": ("rid", "id"), "ex": ("rid", "id"), "ec": ("startRef",), "em": ("startRef",)}
"""Paired codes, and the attributes that identify a pair."""
SIDES = ("source", "seg-source", "target")
UNTRANSLATED = {"new", "needs-translation", "initial"}
"""States of an entry whose target is no translation, but for example a copy of the source."""
UNREVIEWED = UNTRANSLATED | {"needs-adaptation", "needs-l10n", "needs-review-translation", "needs-review-adaptation",
                         "needs-review-l10n"}  # fmt: skip


class Dialect(NamedTuple):
    """Names and marks that differ between the versions of XLIFF."""

    file: str
    """The element that declares the languages."""
    source_language: str
    target_language: str
    unit: str
    target_mark: str
    """Marks the target of a machine translation."""
    unit_mark: str
    """Marks the unit of a machine translation."""


DIALECTS = {
    "1.": Dialect(
        "file",
        "source-language",
        "target-language",
        "trans-unit",
        ' state="needs-review-translation" state-qualifier="mt-suggestion"',
        "",
    ),
    "2.": Dialect("xliff", "srcLang", "trgLang", "segment", "", ' state="translated" subState="mt:unreviewed"'),
}


@dataclass
class Element:
    name: str
    attributes: dict[str, str]
    start: int
    content_start: int
    is_translatable: bool
    content_end: int = 0
    end: int = 0
    codes: list[Code] = field(default_factory=list)
    """Of a source or target: its codes, counted from the start of the content."""


@dataclass
class Unit:
    """A unit of translation: a trans-unit of XLIFF 1.2, a segment of 2.x."""

    element: Element
    sides: dict[str, Element] = field(default_factory=dict)
    """Its source, seg-source and target."""

    @property
    def source(self) -> Element:
        return self.sides.get("seg-source") or self.sides["source"]

    @property
    def target(self) -> Element | None:
        return self.sides.get("target")

    @property
    def state(self) -> str:
        """The state of the translation. A machine translation needs a review."""
        holder = self.target if self.element.name == "trans-unit" else self.element
        attributes = holder.attributes if holder else {}
        is_unreviewed = attributes.get("subState", "").startswith("mt:")
        return "needs-review-translation" if is_unreviewed else attributes.get("state", "")


class _File:
    """An XLIFF file, as expat parses it.

    Raises:
        InputError: It is no XLIFF file.
    """

    def __init__(self, content: bytes) -> None:
        declared = DECLARATION.match(content)
        self.text, self.encode = decode_declared(content, declared[1].decode() if declared else "utf-8")
        self.dialect = DIALECTS["1."]
        self.units: list[Unit] = []
        self.declarations: list[tuple[Element, str, str | None]] = []
        """The elements that declare the languages: of the sources and, if given, of the targets."""
        self._utf8 = self.text.encode()
        self._byte = self._character = 0
        """The last position, in bytes of UTF-8 and in characters."""
        self._open: list[Element] = []
        self._open_units: list[Unit] = []
        self._parser = expat.ParserCreate("utf-8", " ")
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
        self._parser.EntityDeclHandler = self._parser.SkippedEntityHandler = self._refuse_entities
        try:
            self._parser.Parse(self._utf8, True)
        except expat.ExpatError as error:
            raise InputError(f"is no XML that can be read: {error}") from None
        finally:
            del self._parser  # which holds this object, too

    def content(self, element: Element) -> str:
        return self.text[element.content_start : element.content_end]

    def tag(self, element: Element) -> str:
        return self.text[element.start : element.content_start]

    def words(self, element: Element) -> str:
        """Return the text of an element without codes and tags."""
        tagged = replace_codes(self.content(element), element.codes)
        return "".join(unit.content for unit in read_units(tagged.text, "xml") if unit.role == "text")

    def _position(self) -> int:
        byte = self._parser.CurrentByteIndex
        self._character += len(self._utf8[self._byte : byte].decode())
        self._byte = byte
        return self._character

    def _fail(self, reason: str) -> NoReturn:
        raise InputError(f"line {self._parser.CurrentLineNumber}{reason}")

    def _refuse_entities(self, *details: object) -> NoReturn:
        raise InputError("declares entities, which are not read here")

    def _start(self, qualified_name: str, attributes: dict[str, str]) -> None:
        start = self._position()
        tag = START_TAG.match(self.text, start)
        if tag is None:
            self._fail(" is no XLIFF")
        parent = self._open[-1] if self._open else None
        name = qualified_name.rpartition(" ")[2]
        inherited = parent.is_translatable if parent else True
        element = Element(
            name,
            attributes,
            start,
            tag.end(),
            {"yes": True, "no": False}.get(attributes.get("translate", ""), inherited),
        )
        if parent is None:
            dialect = DIALECTS.get(attributes.get("version", "")[:2])
            if name != "xliff" or dialect is None:
                raise InputError("is no XLIFF 1.2 or 2.x: it has no element xliff with such a version")
            self.dialect = dialect
        if name == self.dialect.file:
            source = attributes.get(self.dialect.source_language)
            if source is None:
                self._fail(f": {name} without {self.dialect.source_language}")
            self.declarations.append((element, source, attributes.get(self.dialect.target_language)))
        if name == self.dialect.unit:
            self._open_units.append(Unit(element))
        if self._open_units and parent is self._open_units[-1].element and name in SIDES:
            if name in self._open_units[-1].sides:
                self._fail(f": a second {name} in one {parent.name}")
            self._open_units[-1].sides[name] = element
        self._open.append(element)

    def _end(self, qualified_name: str) -> None:
        position = self._position()
        element = self._open.pop()
        if self.text[element.content_start - 2] == "/":  # an empty element
            element.content_end = element.end = element.content_start
        else:
            element.content_end, element.end = position, self.text.index(">", position) + 1
        if self._open_units and self._open_units[-1].element is element:
            if "source" not in self._open_units[-1].sides:
                self._fail(f": a {element.name} without a source")
            self.units.append(self._open_units.pop())
        if element.name in CODES or element.attributes.get("mtype") == "protected":
            self._add_code(element)

    def _add_code(self, element: Element) -> None:
        """Add a code to its source or target, in place of the codes inside of it."""
        holder = next((outer for outer in reversed(self._open) if outer.name in CODES or outer.name in SIDES), None)
        if holder is None or holder.name in CODES:  # a code inside of a code is a part of it
            return
        start, end = element.start - holder.content_start, element.end - holder.content_start
        while holder.codes and holder.codes[-1].start >= start:
            holder.codes.pop()
        holder.codes.append(Code(start, end, _pair_key(element, OPENING), _pair_key(element, CLOSING)))


def _pair_key(element: Element, attributes_of_code: dict[str, tuple[str, ...]]) -> str:
    """Return the key that an opening code shares with its closing one; "" if the element is none of these codes."""
    for name in attributes_of_code.get(element.name, ()):
        if name in element.attributes:
            return f"{'id' if name == 'startRef' else name}={element.attributes[name]}"
    return ""


def read_xliff(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read an XLIFF file; see ``mt.data.parsers.po.read_po``."""
    file = _File(content)
    changes = []
    for element, source, target in file.declarations:
        if not languages.match(source, target):
            actual = source if target is None else f"{source} and {target}"
            raise InputError(
                f"is in {actual}, and the model translates from {languages.source} into {languages.target}"
            )
        if target is None:
            position = element.content_start - 1
            code = quoteattr(languages.target.replace("_", "-"))
            changes.append(Splice(position, position, f" {file.dialect.target_language}={code}"))
    passages, translated = [], 0
    for unit in file.units:
        if not unit.element.is_translatable:
            continue
        is_translated = unit.target and file.content(unit.target).strip() and unit.state not in UNTRANSLATED
        if is_translated and not retranslate:
            translated += 1
        elif is_translatable(file.words(unit.source)):
            passages.append(_passage(file, unit))
    return Document(file.text, tuple(passages), file.encode, tuple(changes), translated)


def xliff_pairs(content: bytes, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yield the sources with their targets, without inline codes; see ``mt.data.parsers.po.po_pairs``."""
    file = _File(content)
    for _, own_source, own_target in file.declarations:
        if not Languages(source, target).match(own_source, own_target):
            raise InputError(
                f"is in {own_source} and {own_target or 'no other language'}, not in {source} and {target}"
            )
    for unit in file.units:
        if unit.target and unit.state not in UNREVIEWED:
            translation = file.words(unit.target)
            if translation.strip():
                yield from line_pairs(file.words(unit.sides["source"]), translation)


def _passage(file: _File, unit: Unit) -> Passage:
    content = file.content(unit.source)
    if "<" in content:
        tagged = replace_codes(content, unit.source.codes)
        layout = cut_paragraphs(tagged.text, always, markup="xml", columns=False)
        return Passage((layout,), partial(_fill_target, file, unit, tagged.restore))
    layout = cut_paragraphs(file.words(unit.source), accelerators=True)
    return Passage((layout,), partial(_fill_target, file, unit, _escape))


def _escape(text: str) -> str:
    return escape(text, {"\r": "&#13;"})


def _fill_target(file: _File, unit: Unit, render: Callable[[str], str], translations: list[str]) -> list[Splice]:
    """Return the changes that write a translation to the target, and mark it as a machine translation."""
    content = NOT_XML.sub("", render(translations[0]))
    mark = file.dialect.target_mark
    if unit.target:
        tag = STATE.sub("", file.tag(unit.target)).rstrip("/>").rstrip()
        name = re.split(r"\s", tag)[0].removeprefix("<")
        splice = Splice(unit.target.start, unit.target.end, f"{tag}{mark}>{content}</{name}>")
    else:
        source = unit.source
        name = re.split(r"[\s>]", file.tag(source)[1:])[0].replace(source.name, "target")
        start = source.start
        while file.text[start - 1].isspace():
            start -= 1
        indent = file.text[start : source.start]
        position = max(source.end, unit.sides["source"].end)
        splice = Splice(position, position, f"{indent}<{name}{mark}>{content}</{name}>")
    tag = STATE.sub("", file.tag(unit.element))[:-1]
    return [splice, Splice(unit.element.start, unit.element.content_start, f"{tag}{file.dialect.unit_mark}>")]
