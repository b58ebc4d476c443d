"""Read XLIFF 1.2 and 2.x, the exchange format of translators' programs (CAT tools).

A translated file differs from the original only in its targets, their states, and the target language if that was
missing. An XML library would write the whole file anew.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, NoReturn
from xml.sax.saxutils import escape, quoteattr

from mt.core.errors import InputError
from mt.core.splices import Splice
from mt.data.parsers.codes import replace_codes
from mt.data.parsers.document import (
    Document,
    Languages,
    Passage,
    decode_declared,
    is_translatable,
    line_number,
    line_pairs,
)  # fmt: skip
from mt.data.parsers.layout import always, cut_paragraphs
from mt.data.parsers.xml_elements import Element, read_elements
from mt.text.markup.marks import Mark, mark_keys
from mt.text.markup.tags import decode, decoded_tokens

DECLARATION = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""")
STATE = re.compile(r"""\s+(?:state|state-qualifier|subState|approved)\s*=\s*(?:"[^"]*"|'[^']*')""")
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CODE_ELEMENTS = {"bpt", "ept", "ph", "it", "bx", "ex", "x", "sc", "ec", "cp", "sm", "em"}
"""Inline elements that hold codes of another format. All others hold text to translate."""
OPENING = {"bpt": ("rid", "id"), "bx": ("rid", "id"), "sc": ("id",), "sm": ("id",)}
CLOSING = {"ept": ("rid", "id"), "ex": ("rid", "id"), "ec": ("startRef",), "em": ("startRef",)}
"""Map the elements of opening and closing codes to the attributes that identify the pair, in order of preference."""
SIDE_ELEMENTS = ("source", "seg-source", "target")
UNTRANSLATED_STATES = {"new", "needs-translation", "initial"}
"""The states of a unit whose target is no translation yet, but for example a copy of the source."""
UNREVIEWED = UNTRANSLATED_STATES | {"needs-adaptation", "needs-l10n", "needs-review-translation",
                                    "needs-review-adaptation", "needs-review-l10n"}  # fmt: skip
"""The states of a unit whose translation nobody has reviewed. Such units are no training data."""


class Dialect(NamedTuple):
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
class Unit:
    """A unit of translation: the element ``trans-unit`` of XLIFF 1.2, ``segment`` of 2.x."""

    element: Element
    sides: dict[str, Element] = field(default_factory=dict)
    """Maps the names of SIDE_ELEMENTS to the elements of these names in the unit."""

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


class _File:
    """A parsed XLIFF file: its text, and the positions of its units.

    Raises:
        InputError: The content is no XLIFF file.
    """

    def __init__(self, content: bytes) -> None:
        declared = DECLARATION.match(content)
        self.text, self._encoding = decode_declared(content, declared[1].decode() if declared else "utf-8")
        self.units: list[Unit] = []
        self.declarations: list[tuple[Element, str, str | None]] = []
        """The elements that declare languages, each with the source language and, if it is given, the target
        language."""
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

    def words(self, element: Element) -> str:
        """Return the text of an element without codes and tags, and with entities decoded."""
        tagged = replace_codes(self.content(element), element.codes)
        return "".join(unit.content for unit in decoded_tokens(tagged.text, "xml") if unit.role == "text")

    def _fail(self, element: Element, reason: str) -> NoReturn:
        line = line_number(self.text, element.start)
        raise InputError(f"line {line}: {reason}; correct the file, or export it again")

    def _add(self, element: Element) -> None:
        """Record a unit, a side of a unit, a code of a side, or a declaration of languages."""
        if element.name == self.dialect.file:
            source = element.attributes.get(self.dialect.source_language)
            if source is None:
                self._fail(element, f"{element.name} without {self.dialect.source_language}")
            self.declarations.append((element, source, element.attributes.get(self.dialect.target_language)))
        elif element.name == self.dialect.unit:
            self.units.append(Unit(element))
        elif element.name in SIDE_ELEMENTS and self.units and element.parent is self.units[-1].element:
            if element.name in self.units[-1].sides:
                self._fail(element, f"a second {element.name} in one {self.dialect.unit}")
            self.units[-1].sides[element.name] = element
        elif element.name in CODE_ELEMENTS or element.attributes.get("mtype") == "protected":
            holder = element.parent
            while holder and holder.name not in CODE_ELEMENTS and holder.name not in SIDE_ELEMENTS:
                holder = holder.parent
            if holder and holder.name in SIDE_ELEMENTS:  # otherwise it is a part of another code
                start, end = element.start - holder.content_start, element.end - holder.content_start
                keys = _pair_key(element, OPENING), _pair_key(element, CLOSING)
                holder.codes.append(Mark(start, end, *(keys if any(keys) else self._keys_of_content(element))))

    def _keys_of_content(self, element: Element) -> tuple[str, str]:
        """Return the keys of a code that is a mark by its content or its id, such as START_LINK."""
        content = decode(self.content(element), "xml") if element.content_end > element.content_start else ""
        opens, closes = mark_keys(content or element.attributes.get("id", ""))
        side = element.attributes.get("pos")  # of an it, whose content is the same on both sides in some formats
        return ("it", "") if side == "open" else ("", "it") if side == "close" else (opens, closes)


def _dialect(root: Element) -> Dialect:
    dialect = DIALECTS.get(root.attributes.get("version", "")[:2])
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


def read_xliff(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read an XLIFF file as a document to translate.

    Args:
        content: The content of the file.
        languages: The languages of the model.
        retranslate: Whether to translate also the units that have a translation already.

    Raises:
        InputError: The content is no XLIFF file, or declares other languages.
    """
    file = _File(content)
    changes = []
    for element, source, target in file.declarations:
        if not languages.match(source, target):
            actual = source if target is None else f"{source} and {target}"
            raise InputError(
                f"is in {actual}, and the model translates from {languages.source} into {languages.target}; use a "
                "model of the file's languages"
            )
        if target is None:
            position = element.content_start - 1
            code = quoteattr(languages.target.replace("_", "-"))
            changes.append(Splice(position, position, f" {file.dialect.target_language}={code}"))
    passages, translated = [], 0
    for unit in file.units:
        if not unit.element.is_translatable:
            continue
        is_translated = unit.target and file.content(unit.target).strip() and unit.state not in UNTRANSLATED_STATES
        if is_translated and not retranslate:
            translated += 1
        elif is_translatable(file.words(unit.source)):
            passages.append(_passage(file, unit))
    return Document(file.text, tuple(passages), file.encode, tuple(changes), translated)


def xliff_pairs(content: bytes, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yield the translated units of an XLIFF file as pairs (source, target), without inline codes.

    A text with several lines gives a pair for each line if its translation has equally many (``line_pairs``). Units
    whose translation nobody has reviewed are left out.

    Raises:
        InputError: The content is no XLIFF file, or is not in the languages ``source`` and ``target``.
    """
    file = _File(content)
    for _, own_source, own_target in file.declarations:
        if not Languages(source, target).match(own_source, own_target):
            raise InputError(
                f"is in {own_source} and {own_target or 'no other language'}, not in {source} and {target}; leave the "
                "file out, or set data.source_language and data.target_language to its languages"
            )
    for unit in file.units:
        if unit.target and unit.state not in UNREVIEWED:
            translation = file.words(unit.target)
            if translation.strip():
                yield from line_pairs(file.words(unit.sides["source"]), translation)


def _passage(file: _File, unit: Unit) -> Passage:
    """Return the passage of a unit. A source with tags is translated as XML, any other one as plain text."""
    content = file.content(unit.source)
    if "<" in content:
        tagged = replace_codes(content, unit.source.codes)
        layout = cut_paragraphs(tagged.text, always, markup="xml", columns=False)
        return Passage((layout,), partial(_fill_target, file, unit, tagged.restore), unit.element.start)
    layout = cut_paragraphs(file.words(unit.source), accelerators=True)
    write = partial(_fill_target, file, unit, partial(escape, entities={"\r": "&#13;"}))
    return Passage((layout,), write, unit.element.start)


def _fill_target(file: _File, unit: Unit, render: Callable[[str], str], translations: list[str]) -> list[Splice]:
    """Return the changes that write a translation into a unit's target and mark it as a machine translation.

    Args:
        file: The file of the unit.
        unit: The unit. If it has no target, one is added.
        render: Writes a translation as XML.
        translations: The translation of the unit, a list of one.
    """
    content = NOT_XML.sub("", render(translations[0]))
    attributes = file.dialect.target_attributes
    if unit.target:
        tag = STATE.sub("", file.tag(unit.target)).rstrip("/>").rstrip()
        name = re.split(r"\s", tag)[0].removeprefix("<")
        splice = Splice(unit.target.start, unit.target.end, f"{tag}{attributes}>{content}</{name}>")
    else:
        source = unit.source
        name = re.split(r"[\s>]", file.tag(source)[1:])[0].replace(source.name, "target")
        start = source.start
        while file.text[start - 1].isspace():
            start -= 1
        indent = file.text[start : source.start]
        position = max(source.end, unit.sides["source"].end)
        splice = Splice(position, position, f"{indent}<{name}{attributes}>{content}</{name}>")
    tag = STATE.sub("", file.tag(unit.element))[:-1]
    return [splice, Splice(unit.element.start, unit.element.content_start, f"{tag}{file.dialect.unit_attributes}>")]
