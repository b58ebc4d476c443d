"""XLIFF 1.2 and 2.x, the exchange format of translators' programs (CAT tools).

expat reads the file and tells where each element is. So only the targets that are filled in change, their states and,
where it is missing, the language. An XML library would write all of it anew.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from mt.core.errors import InputError
from mt.core.language import base_language
from mt.data.parsers.codes import Code, coded
from mt.data.parsers.document import Document, Languages, Passage, Splice, decoded_xml, is_text, line_pairs
from mt.data.parsers.layout import always, cut
from mt.text.tags import read_units

START_TAG = re.compile(r"""<(?:[^\s/>"':]+:)?[^\s/>"':]+(?:\s+[^\s=>]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*/?>""")
STATE = re.compile(r"""\s+(?:state|state-qualifier|subState|approved)\s*=\s*(?:"[^"]*"|'[^']*')""")
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
CODES = {"bpt", "ept", "ph", "it", "bx", "ex", "x", "sc", "ec", "cp", "sm", "em"}
"""Inline elements that hold the codes of another format, and no text. All others have text to translate inside."""
OPENS = {"bpt": ("rid", "id"), "bx": ("rid", "id"), "sc": ("id",), "sm": ("id",)}
CLOSES = {"ept": ("rid", "id"), "ex": ("rid", "id"), "ec": ("startRef",), "em": ("startRef",)}
"""The codes that begin and end something, and which of their attributes tell what belongs together."""
UNTRANSLATED = {"new", "needs-translation", "initial"}
"""States of an entry whose target, if there is one, is no translation, but a copy of the source for instance."""
UNREAD = UNTRANSLATED | {"needs-adaptation", "needs-l10n", "needs-review-translation", "needs-review-adaptation",
                         "needs-review-l10n"}  # fmt: skip
MARKS = {
    1: ' state="needs-review-translation" state-qualifier="mt-suggestion"',
    2: ' state="translated" subState="mt:unreviewed"',
}
"""How a machine translation is marked, by the version of XLIFF: on its target, and on its segment."""


@dataclass
class Element:
    name: str
    attributes: dict[str, str]
    start: int
    inside: int
    """Where its content begins."""
    inside_end: int = 0
    end: int = 0
    codes: list[Code] = field(default_factory=list)
    """Of a source or target: the codes in it, counted from the beginning of the content."""


@dataclass
class Unit:
    """What is translated together: a trans-unit of XLIFF 1.2, a segment of 2.x."""

    element: Element
    is_translatable: bool
    texts: dict[str, Element] = field(default_factory=dict)
    """Its children by their names: source, seg-source, target."""

    @property
    def source(self) -> Element:
        return self.texts.get("seg-source") or self.texts["source"]

    def state(self, version: int) -> str:
        holder = self.texts.get("target") if version == 1 else self.element
        attributes = holder.attributes if holder else {}
        is_unread = attributes.get("subState", "").startswith("mt:")
        return "needs-review-translation" if is_unread else attributes.get("state", "")


@dataclass
class Content:
    """What expat finds in a file."""

    text: str
    version: int = 0
    units: list[Unit] = field(default_factory=list)
    languages: list[tuple[Element, str, str | None]] = field(default_factory=list)
    """The elements that tell the languages: of the sources and, if they say so, of the targets."""


def read_xliff(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Reads an XLIFF file; see ``mt.data.parsers.po.read_po``."""
    text, encode = decoded_xml(content)
    found = _content(text)
    changes = []
    for element, source, target in found.languages:
        if base_language(source) != base_language(languages.source) or (
            target is not None and base_language(target) != base_language(languages.target)
        ):
            own = source if target is None else f"{source} and {target}"
            raise InputError(f"is in {own}, and the model translates from {languages.source} into {languages.target}")
        if target is None:
            place = element.inside - 1
            name = "target-language" if found.version == 1 else "trgLang"
            changes.append(Splice(place, place, f" {name}={quoteattr(languages.target.replace('_', '-'))}"))
    passages, translated = [], 0
    for unit in found.units:
        if not unit.is_translatable:
            continue
        there = unit.texts.get("target")
        is_done = there and text[there.inside : there.inside_end].strip()
        if is_done and unit.state(found.version) not in UNTRANSLATED and not retranslate:
            translated += 1
            continue
        inner = text[unit.source.inside : unit.source.inside_end]
        if "<" not in inner:
            layout = cut(_plain(inner), accelerators=True)
            spelt: Callable[[str], str] = _escaped
        else:
            whole = coded(inner, unit.source.codes)
            layout = cut(whole.text, always, markup="xml", columns=False)
            spelt = whole.restored
        if is_text(_words(inner, unit.source.codes)):
            passages.append(Passage((layout,), partial(_written, text, found.version, unit, spelt)))
    return Document(text, tuple(passages), encode, tuple(changes), translated)


def xliff_pairs(content: bytes, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yields the sources with their targets, without inline codes; see ``mt.data.parsers.po.po_pairs``."""
    text, _ = decoded_xml(content)
    found = _content(text)
    for _, own, other in found.languages:
        wanted = base_language(source), base_language(target)
        if base_language(own) != wanted[0] or (other is not None and base_language(other) != wanted[1]):
            raise InputError(f"is in {own} and {other or 'no other language'}, not in {source} and {target}")
    for unit in found.units:
        if "target" in unit.texts and unit.state(found.version) not in UNREAD:
            elements = unit.texts["source"], unit.texts["target"]
            one, other = (_words(text[each.inside : each.inside_end], each.codes) for each in elements)
            if other.strip():
                yield from line_pairs(one, other)


def _content(text: str) -> Content:
    found = Content(text)
    data = text.encode()
    parser = expat.ParserCreate("utf-8", " ")
    open_elements: list[Element] = []
    is_translatable = [True]
    units: list[Unit] = []
    place = [0, 0]
    """Up to which byte, and which character, positions have been computed."""

    def position() -> int:
        byte = parser.CurrentByteIndex
        place[1] += len(data[place[0] : byte].decode())
        place[0] = byte
        return place[1]

    def refuse(*details: object) -> None:
        raise InputError("declares entities, which are not read here")

    def start(name: str, attributes: dict[str, str]) -> None:
        at = position()
        tag = START_TAG.match(text, at)
        if tag is None:
            raise InputError(f"line {parser.CurrentLineNumber} is no XLIFF")
        element = Element(name.rpartition(" ")[2], attributes, at, tag.end())
        parent = open_elements[-1] if open_elements else None
        if parent is None:
            version = attributes.get("version", "")
            if element.name != "xliff" or version[:2] not in ("1.", "2."):
                raise InputError("is no XLIFF 1.2 or 2.x: it has no element xliff with such a version")
            found.version = int(version[0])
        own = attributes.get("translate")
        is_translatable.append(is_translatable[-1] if own not in ("yes", "no") else own == "yes")
        names = ("source-language", "target-language") if found.version == 1 else ("srcLang", "trgLang")
        if element.name == ("file" if found.version == 1 else "xliff"):
            if names[0] not in attributes:
                raise InputError(f"line {parser.CurrentLineNumber}: {element.name} without {names[0]}")
            found.languages.append((element, attributes[names[0]], attributes.get(names[1])))
        if element.name == ("trans-unit" if found.version == 1 else "segment"):
            units.append(Unit(element, is_translatable[-1]))
        if units and parent is units[-1].element and element.name in ("source", "seg-source", "target"):
            if element.name in units[-1].texts:
                raise InputError(f"line {parser.CurrentLineNumber}: a second {element.name} in one {parent.name}")
            units[-1].texts[element.name] = element
        open_elements.append(element)

    def end(name: str) -> None:
        at = position()
        element = open_elements.pop()
        is_translatable.pop()
        is_empty = text[element.inside - 2] == "/"
        element.inside_end = element.inside if is_empty else at
        element.end = element.inside if is_empty else text.index(">", at) + 1
        if units and units[-1].element is element:
            if "source" not in units[-1].texts:
                raise InputError(f"line {parser.CurrentLineNumber}: a {element.name} without a source")
            found.units.append(units.pop())
        # A code inside of a code is a part of it.
        around = [one for one in reversed(open_elements) if one.name in CODES | {"source", "seg-source", "target"}]
        is_code = element.name in CODES or element.attributes.get("mtype") == "protected"
        if is_code and around and around[0].name not in CODES:
            of_text, attributes = around[0], element.attributes
            opens, closes = (
                next((f"{key}={attributes[key]}" for key in names.get(element.name, ()) if key in attributes), "")
                for names in (OPENS, CLOSES)
            )
            codes = of_text.codes
            while codes and codes[-1].start >= element.start - of_text.inside:
                codes.pop()
            opens, closes = (one.replace("startRef=", "id=") for one in (opens, closes))
            codes.append(Code(element.start - of_text.inside, element.end - of_text.inside, opens, closes))

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.EntityDeclHandler, parser.SkippedEntityHandler = refuse, refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InputError(f"is no XML that can be read: {error}") from None
    return found


def _plain(inner: str) -> str:
    """Returns what characters and references in XML mean."""
    return "".join(unit.content for unit in read_units(inner, "xml"))


def _words(inner: str, codes: list[Code]) -> str:
    """Returns the text of a content, without codes and tags."""
    return "".join(unit.content for unit in read_units(coded(inner, codes).text, "xml") if unit.role == "text")


def _escaped(text: str) -> str:
    return escape(text, {"\r": "&#13;"})


def _written(text: str, version: int, unit: Unit, spelt: Callable[[str], str], translations: list[str]) -> list[Splice]:
    content = NO_XML.sub("", spelt(translations[0]))
    target, source = unit.texts.get("target"), unit.source
    of_target, of_unit = (MARKS[1], "") if version == 1 else ("", MARKS[2])
    if target:
        tag = STATE.sub("", text[target.start : target.inside]).rstrip("/>").rstrip()
        name = re.split(r"\s", tag)[0].removeprefix("<")
        splices = [Splice(target.start, target.end, f"{tag}{of_target}>{content}</{name}>")]
    else:
        start = source.start
        while text[start - 1].isspace():
            start -= 1
        name = re.split(r"[\s>]", text[source.start + 1 : source.inside])[0].replace(source.name, "target")
        place = max(source.end, unit.texts["source"].end)
        written = f"{text[start : source.start]}<{name}{of_target}>{content}</{name}>"
        splices = [Splice(place, place, written)]
    tag = text[unit.element.start : unit.element.inside]
    splices.append(Splice(unit.element.start, unit.element.inside, f"{STATE.sub('', tag)[:-1]}{of_unit}>"))
    return splices
