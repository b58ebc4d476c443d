"""Read XLIFF 1.2 and 2.x, the exchange format of translators' programs (CAT tools).

A translated file differs from the original only in its targets, their states, and the target language if that was
missing. An XML library would write the whole file anew.
"""

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from mt.core.coded_text import CodedText
from mt.core.errors import InputError
from mt.core.splices import Splice, apply_splices
from mt.formats.document import Document, Languages, Passage, is_translatable, kept_passage, line_pairs
from mt.formats.layout import Layout, cut_paragraphs
from mt.formats.messages import has_alternatives
from mt.formats.tags import NO_XML_CHARACTER
from mt.formats.xliff_units import CDATA, Unit, XliffFile
from mt.formats.xml_elements import Element

STATE = re.compile(r"""\s+(?:state|state-qualifier|subState|approved)\s*=\s*(?:"[^"]*"|'[^']*')""")
TRADOS_STATE = re.compile(r"""\s+(?:conf|origin|origin-system|percent)\s*=\s*(?:"[^"]*"|'[^']*')""")
SYMFONY = re.compile(r"\s*(?:\{[\d,]+\}|[][]|\w+:)")
"""The beginning of alternatives as Symfony writes them: ``{0} none|[1,Inf[ many``, ``one: a dog|many: dogs``."""
UNTRANSLATED_STATES = {"new", "needs-translation", "initial"}
"""The states of a unit whose target is no translation yet, but for example a copy of the source."""
UNREVIEWED = UNTRANSLATED_STATES | {"needs-adaptation", "needs-l10n", "needs-review-translation",
                                    "needs-review-adaptation", "needs-review-l10n"}  # fmt: skip
"""The states of a unit whose translation nobody has reviewed. Such units are no training data."""


class UnitPart(NamedTuple):
    """A segment of a unit, or all of a unit without segments, that is to be translated."""

    slot: Element
    """The element whose content the translation replaces: in the target, or in the source, which is then copied."""
    source: Element
    layout: Layout
    escape: Callable[[str], str]
    """Writes the text of a translation as XML."""


def read_xliff(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read an XLIFF file as a document to translate.

    Args:
        content: The content of the file.
        languages: The languages of the model.
        retranslate: Whether to translate also the units that have a translation already.

    Raises:
        InputError: The content is no XLIFF file, or declares other languages.
    """
    file = XliffFile(content)
    changes = []
    for element, source, target in file.declarations:
        if not languages.match(source, target):
            actual = source if target is None else f"{source} and {target}"
            raise InputError(
                f"is in {actual}, and the model translates from {languages.source} into {languages.target}; use a "
                "model of the file's languages"
            )
        if target is None:
            name, code = file.dialect.target_language, quoteattr(languages.target.replace("_", "-"))
            tag = re.sub(rf"""\s{name}\s*=\s*(?:""|'')""", "", file.tag(element))
            end = -2 if tag.endswith("/>") else -1
            tag = f"{tag[:end]} {name}={code}{tag[end:]}"
            changes.append(Splice(element.start, element.content_start, tag))
    passages: list[Passage] = []
    comments: dict[int, Callable[[list[str]], list[Splice]]] = {}
    commented = set[int]()
    translated = 0
    for unit in file.units:
        if not unit.element.is_translatable or unit.is_locked():
            continue
        passage = _passage(file, unit, retranslate)
        is_translated = unit.target is not None and file.words(unit.target).strip() != ""
        holder = unit.element if unit.element.name == "trans-unit" else unit.element.parent or unit.element
        if is_translated and not retranslate and unit.state not in UNTRANSLATED_STATES:
            commented.add(holder.start)
        if not passage and is_translated:
            translated += 1
            continue
        if passage:
            comment = comments.setdefault(holder.start, partial(_replace_notes, file, unit, holder, commented))
            passages.append(replace(passage, comment=comment))
        passages += map(kept_passage, unit.subflows)
    return Document(file.text, passages, file.encode, changes, translated)


def xliff_pairs(content: bytes, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yield the translated units of an XLIFF file as pairs (source, target), without inline codes.

    Each segment of a unit is a pair if the target has the same segments. A text with several lines gives a pair for
    each line if its translation has equally many (``line_pairs``). Units whose translation nobody has reviewed are left
    out.

    Raises:
        InputError: The content is no XLIFF file, or is not in the languages ``source`` and ``target``.
    """
    file = XliffFile(content)
    for _, own_source, own_target in file.declarations:
        if not Languages(source, target).match(own_source, own_target):
            raise InputError(
                f"is in {own_source} and {own_target or 'no other language'}, not in {source} and {target}; leave the "
                "file out, or set data.source_language and data.target_language to its languages"
            )
    for unit in file.units:
        if unit.target is None or unit.state in UNREVIEWED:
            continue
        segments, translations = file.segments(unit.source), file.segments(unit.target)
        parts: list[tuple[Element, Element | None, Element | None]] = [(unit.sides["source"], None, None)]
        if segments and segments.keys() == translations.keys():
            parts = [(unit.source, segment, translations[key]) for key, segment in segments.items()]
        for side, segment, translation in parts:
            text = file.words(unit.target, translation)
            if text.strip():
                yield from line_pairs(file.words(side, segment), text)


def _passage(file: XliffFile, unit: Unit, retranslate: bool) -> Passage | None:
    """Return the passage of a unit, or None if nothing of it is to be translated."""
    source, target = unit.source, unit.target
    texts = file.segments(source) or {("", 0): source}
    current = slots = file.segments(target) if target else {}
    has_target = target and (file.words(target).strip() or target.codes)
    kept = set[tuple[str, int]]()
    if has_target and not retranslate and unit.state not in UNTRANSLATED_STATES:
        if not slots or not slots.keys() <= texts.keys():
            return None
        kept = {key for key, slot in slots.items() if target and file.words(target, slot).strip()}
    frame = target if target and slots.keys() == texts.keys() else source
    if frame is source:
        slots = texts
    parts = list[UnitPart]()
    copied = list[tuple[Element, Element | None]]()
    for key, text in texts.items():
        if key in kept or unit.is_locked(key[0]):
            copied.append((slots[key], current.get(key)))
        elif is_translatable(file.words(source, text)):
            parts.append(UnitPart(slots[key], text, *_layout(file, source, text)))
        else:
            copied.append((slots[key], text))
    if not parts:
        return None
    layout = parts[0].layout
    if parts[0].source is source and SYMFONY.match(layout.text.text) and has_alternatives(layout.text.text):
        return kept_passage(unit.element.start)
    contents = [(slot, file.content(element) if element else "") for slot, element in copied]
    write = partial(_fill_target, file, unit, frame, parts, contents)
    return Passage(tuple(part.layout for part in parts), write, unit.element.start)


def _layout(file: XliffFile, side: Element, part: Element) -> tuple[Layout, Callable[[str], str]]:
    """Return the layout of a side or of a segment in it, and the function that writes text as XML."""
    content = file.content(part)
    coded = file.coded(side, part.content_start, part.content_end)
    # A carriage return as such is a part of a line end, which XML does not distinguish from others.
    write = partial(escape, entities={} if "\r" in content else {"\r": "&#13;"})
    if coded.codes:
        return cut_paragraphs(coded, flows=True), write
    return cut_paragraphs(coded.text, accelerators=True), write_cdata if CDATA.search(content) else write


def write_cdata(text: str) -> str:
    """Return a text as a CDATA section of XML; as several if it contains their end mark."""
    return f"<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>"


def _fill_target(
    file: XliffFile,
    unit: Unit,
    frame: Element,
    parts: list[UnitPart],
    contents: list[tuple[Element, str]],
    translations: list[CodedText],
) -> list[Splice]:
    """Return the changes that write translations into a unit's target and mark it as a machine translation.

    Args:
        file: The file of the unit.
        unit: The unit. If it has no target, one is added.
        frame: The target, or the source, of which the new target has everything between the segments.
        parts: The segments to translate.
        contents: The other slots, with their content.
        translations: The translation of each of ``parts``.
    """
    contents = contents + [
        (part.slot, NO_XML_CHARACTER.sub("", text.written(part.escape)))
        for part, text in zip(parts, translations, strict=True)
    ]
    shift = frame.content_start
    splices = [_filled(file, slot, content, shift) for slot, content in contents]
    content = apply_splices(file.content(frame), sorted(splices))
    attributes = file.dialect.target_attributes
    if unit.target:
        tag = STATE.sub("", file.tag(unit.target)).rstrip("/>").rstrip()
        name = re.split(r"\s", tag)[0].removeprefix("<")
        splice = Splice(unit.target.start, unit.target.end, f"{tag}{attributes}>{content}</{name}>")
    else:
        source = unit.source
        name = file.sibling_name(source, "target")
        start = source.start
        while file.text[start - 1].isspace():
            start -= 1
        indent = file.text[start : source.start]
        position = max(source.end, unit.sides["source"].end)
        splice = Splice(position, position, f"{indent}<{name}{attributes}>{content}</{name}>")
    tag = STATE.sub("", file.tag(unit.element))[:-1]
    changes = [splice, Splice(unit.element.start, unit.element.content_start, f"{tag}{file.dialect.unit_attributes}>")]
    for part in parts:  # Trados takes a segment without these attributes for untranslated
        definition = unit.definitions.get(part.source.attributes.get("mid", ""))
        if definition:
            tag = TRADOS_STATE.sub("", file.tag(definition))
            tag = re.sub(r"[^\s/>]+", r'\g<0> conf="Draft" origin="mt"', tag, count=1)
            changes.append(Splice(definition.start, definition.content_start, tag))
    return changes


def _replace_notes(
    file: XliffFile, unit: Unit, holder: Element, commented: Container[int], texts: list[str]
) -> list[Splice]:
    """Return the changes that replace the notes on the confidence of translations by others.

    Args:
        file: The file of the unit.
        unit: The unit.
        holder: The element with the notes: that of the unit in XLIFF 1.2, the ``unit`` around it in 2.x.
        commented: The positions of holders some of whose translations stay, and so all notes.
        texts: The texts of the notes.
    """
    name = file.sibling_name(unit.source, "note")
    notes = "".join(f"<{name}>{text}</{name}>" for text in texts)
    container = holder if unit.element is holder else file.first_parts[holder.start]
    own = [] if holder.start in commented else file.own_notes.get(container.start, [])
    if not own and not notes:
        return []
    if container is holder:
        last = unit.target or max(unit.source, unit.sides["source"], key=lambda element: element.end)
        return [*(Splice(note.start, note.end, "") for note in own), Splice(last.end, last.end, notes)]
    if container.name != "notes":
        return [Splice(container.start, container.start, f"<{name}s>{notes}</{name}s>")]
    shift = container.content_start
    others = apply_splices(file.content(container), [Splice(note.start - shift, note.end - shift, "") for note in own])
    content = others + notes
    return [_filled(file, container, content, 0) if content.strip() else Splice(container.start, container.end, "")]


def _filled(file: XliffFile, element: Element, content: str, shift: int) -> Splice:
    """Return the change that replaces the content of an element, with positions from ``shift`` on."""
    start, end = element.content_start - shift, element.content_end - shift
    tag = file.tag(element)
    if not tag.endswith("/>"):
        return Splice(start, end, content)
    name = re.split(r"[\s/]", tag[1:])[0]
    return Splice(start - len("/>"), end, f">{content}</{name}>")
