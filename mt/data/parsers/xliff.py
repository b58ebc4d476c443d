"""XLIFF 1.2 and 2.x, the exchange format of translators' programs (CAT tools).

Nothing changes except the targets, their states and a missing target language. An XML library would write the whole
file anew.
"""

import re
from collections.abc import Callable, Iterator, Sequence
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
from mt.text.markup.tags import decoded_tokens

DECLARATION = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""")
STATE = re.compile(r"""\s+(?:state|state-qualifier|subState|approved)\s*=\s*(?:"[^"]*"|'[^']*')""")
START_TAG = re.compile(r"""<(?:[^"'>]|"[^"]*"|'[^']*')*+>""")
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
    content_end: int = 0
    end: int = 0
    is_translatable: bool = True
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
    """A parsed XLIFF file.

    Raises:
        InputError: It is no XLIFF file.
    """

    def __init__(self, content: bytes) -> None:
        declared = DECLARATION.match(content)
        self.text, self._encoding = decode_declared(content, declared[1].decode() if declared else "utf-8")
        self.units: list[Unit] = []
        self.declarations: list[tuple[Element, str, str | None]] = []
        """The elements that declare the languages: of the sources and, if given, of the targets."""
        ancestors: list[Element] = []
        for element in _elements(self.text):
            while ancestors and ancestors[-1].end <= element.start:
                ancestors.pop()
            if not ancestors:
                self.dialect = self._read_dialect(element)
            self._add(element, ancestors)
            ancestors.append(element)
        for unit in self.units:
            if "source" not in unit.sides:
                self._fail(unit.element, f"a {unit.element.name} without a source")

    def encode(self, text: str) -> bytes:
        return text.encode(self._encoding, "xmlcharrefreplace")

    def content(self, element: Element) -> str:
        return self.text[element.content_start : element.content_end]

    def tag(self, element: Element) -> str:
        return self.text[element.start : element.content_start]

    def words(self, element: Element) -> str:
        """Return the text of an element without codes and tags."""
        tagged = replace_codes(self.content(element), element.codes)
        return "".join(unit.content for unit in decoded_tokens(tagged.text, "xml") if unit.role == "text")

    def _fail(self, element: Element, reason: str) -> NoReturn:
        line = self.text.count("\n", 0, element.start) + 1
        raise InputError(f"line {line}: {reason}")

    def _read_dialect(self, root: Element) -> Dialect:
        dialect = DIALECTS.get(root.attributes.get("version", "")[:2])
        if root.name != "xliff" or dialect is None:
            raise InputError("is no XLIFF 1.2 or 2.x: it has no element xliff with such a version")
        return dialect

    def _add(self, element: Element, ancestors: Sequence[Element]) -> None:
        parent = ancestors[-1] if ancestors else None
        inherited = parent.is_translatable if parent else True
        element.is_translatable = {"yes": True, "no": False}.get(element.attributes.get("translate", ""), inherited)
        if element.name == self.dialect.file:
            source = element.attributes.get(self.dialect.source_language)
            if source is None:
                self._fail(element, f"{element.name} without {self.dialect.source_language}")
            self.declarations.append((element, source, element.attributes.get(self.dialect.target_language)))
        elif element.name == self.dialect.unit:
            self.units.append(Unit(element))
        elif element.name in SIDES and self.units and parent is self.units[-1].element:
            if element.name in self.units[-1].sides:
                self._fail(element, f"a second {element.name} in one {parent.name}")
            self.units[-1].sides[element.name] = element
        elif element.name in CODES or element.attributes.get("mtype") == "protected":
            holder = next((outer for outer in reversed(ancestors) if outer.name in CODES or outer.name in SIDES), None)
            if holder and holder.name in SIDES:  # otherwise it is a part of another code
                start, end = element.start - holder.content_start, element.end - holder.content_start
                holder.codes.append(Code(start, end, _pair_key(element, OPENING), _pair_key(element, CLOSING)))


def _elements(text: str) -> list[Element]:
    """Return the elements of a text, each before those inside of it. Their names are without prefixes.

    Raises:
        InputError: The text is not well-formed, or declares entities.
    """
    content = text.encode()
    elements: list[Element] = []
    unclosed: list[Element] = []
    last_byte = last_character = 0

    def position() -> int:
        """Return the position of the current event, in characters."""
        nonlocal last_byte, last_character
        last_character += len(content[last_byte : parser.CurrentByteIndex].decode())
        last_byte = parser.CurrentByteIndex
        return last_character

    def open_element(name: str, attributes: dict[str, str]) -> None:
        start = position()
        tag = START_TAG.match(text, start)
        assert tag, "expat takes it for a tag"
        unclosed.append(Element(name.rpartition(":")[2], attributes, start, tag.end()))
        elements.append(unclosed[-1])

    def close_element(name: str) -> None:
        element = unclosed.pop()
        element.content_end = position()
        is_empty = text[element.content_start - 2] == "/"
        element.end = element.content_end if is_empty else text.index(">", element.content_end) + 1

    def refuse(*details: object) -> NoReturn:
        raise InputError("declares entities, which are not read here")

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler = open_element, close_element
    parser.EntityDeclHandler, parser.SkippedEntityHandler = refuse, refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise InputError(f"is no XML that can be read: {error}") from None
    return elements


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
