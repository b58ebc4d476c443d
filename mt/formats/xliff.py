"""Reads XLIFF 1.2 and 2.x, the exchange format of CAT tools.

A translated file differs from the original only in its targets, their states, and the target language if it was
missing. An XML library would rewrite the whole file.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from mt.core.coded_text import CodedText, Splice
from mt.formats.document import Document, Languages, Passage, is_translatable, line_pairs, untranslated_passage
from mt.formats.layout import Layout, cut_paragraphs
from mt.formats.messages import has_alternatives
from mt.formats.tags import CDATA, NO_XML_CHARACTER
from mt.formats.xliff_units import Unit, XliffDialect, XliffFile, find_segments, is_code
from mt.formats.xml_elements import Element, write_cdata

STATE = re.compile(r"""\s+(?:state|state-qualifier|subState|approved)\s*=\s*(?:"[^"]*"|'[^']*')""")
TRADOS_STATE = re.compile(r"""\s+(?:conf|origin|origin-system|percent)\s*=\s*(?:"[^"]*"|'[^']*')""")
SYMFONY_ALTERNATIVES = re.compile(r"\s*(?:\{[\d,]+\}|[][]|\w+:)")
"""The beginning of alternatives as Symfony writes them: ``{0} none|[1,Inf[ many``, ``one: a dog|many: dogs``."""
UNTRANSLATED_STATES = {"new", "needs-translation", "initial"}
"""The states of a unit whose target is not a translation yet, but for example a copy of the source."""
UNREVIEWED_STATES = UNTRANSLATED_STATES | {"needs-adaptation", "needs-l10n", "needs-review-translation",
                                    "needs-review-adaptation", "needs-review-l10n"}  # fmt: skip
"""The states of a unit whose translation nobody has reviewed. Such units are not used as training data."""


class UnitPart(NamedTuple):
    """A segment to translate, or the whole text of a unit without segments."""

    slot: Element
    """The element whose content is replaced by the translation. It is in the target or, if the source is copied to the
    target, in the source."""
    source: Element
    layout: Layout
    escape: Callable[[str], str]
    """Escapes the text of a translation for XML."""


def read_xliff(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read an XLIFF file as a document to translate.

    Args:
        content: The content of the file.
        languages: The languages of the model.
        retranslate: Whether to also translate the units that already have a translation.

    Raises:
        InputError: The content is not an XLIFF file, or declares other languages.
    """
    file = XliffFile(content)
    file.check_languages(
        languages,
        f"and the model translates from {languages.source} into {languages.target}; use a model of the file's "
        "languages",
    )
    changes = []
    for element, _, target in file.declarations:
        if target is None:
            name, code = file.dialect.target_language, quoteattr(languages.target.replace("_", "-"))
            tag = re.sub(rf"""\s{name}\s*=\s*(?:""|'')""", "", element.tag)
            end = -2 if tag.endswith("/>") else -1
            tag = f"{tag[:end]} {name}={code}{tag[end:]}"
            changes.append(_replace_tag(element, tag))
    passages: list[Passage] = []
    translated = 0
    for unit in file.units:
        if not unit.element.is_translatable or unit.is_locked():
            continue
        passage = _unit_passage(unit, file.dialect, retranslate)
        if passage:
            passages.append(passage)
        elif unit.words(unit.target).strip():
            translated += 1
            continue
        passages += map(untranslated_passage, unit.subflows)
    return Document(file.text, passages, file.encode, changes, translated)


def xliff_pairs(content: bytes, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yield the translated units of an XLIFF file as pairs (source, target), without inline codes.

    Each segment of a unit is a pair if the target has the same segments. A text with several lines yields a pair for
    each line if its translation has the same number of lines (``line_pairs``). Units whose translation nobody has
    reviewed are skipped.

    Raises:
        InputError: The content is not an XLIFF file, or is not in the languages ``source`` and ``target``.
    """
    file = XliffFile(content)
    file.check_languages(
        Languages(source, target),
        f"not in {source} and {target}; remove the file from the corpus, or set data.source_language and "
        "data.target_language to its languages",
    )
    for unit in file.units:
        if unit.target is None or unit.state in UNREVIEWED_STATES:
            continue
        segments, translations = find_segments(unit.source), find_segments(unit.target)
        parts = [(unit.whole_source, unit.target)]
        if segments and segments.keys() == translations.keys():
            parts = [(segment, translations[key]) for key, segment in segments.items()]
        for source_part, target_part in parts:
            text = unit.words(target_part)
            if text.strip():
                yield from line_pairs(unit.words(source_part), text)


def _unit_passage(unit: Unit, dialect: XliffDialect, retranslate: bool) -> Passage | None:
    """Return the passage of a unit, or None if it has nothing to translate."""
    source, target = unit.source, unit.target
    texts = find_segments(source) or {("", 0): source}
    current = find_segments(target) if target else {}
    kept = set[tuple[str, int]]()
    has_target = target and (unit.words(target).strip() or target.find_outermost(is_code))
    if has_target and not retranslate and unit.state not in UNTRANSLATED_STATES:
        if not current or not current.keys() <= texts.keys():
            return None
        kept = {key for key, slot in current.items() if unit.words(slot).strip()}
    frame, slots = (target, current) if target and current.keys() == texts.keys() else (source, texts)
    parts: list[UnitPart] = []
    contents: list[Splice] = []
    for key, text in texts.items():
        if key in kept or unit.is_locked(key[0]):
            contents.append(slots[key].replace_content(current[key].content if key in current else ""))
        elif is_translatable(unit.words(text)):
            parts.append(UnitPart(slots[key], text, *_part_layout(unit, text)))
        else:
            contents.append(slots[key].replace_content(text.content))
    if not parts:
        return None
    words = parts[0].layout.text.text
    if parts[0].source is source and SYMFONY_ALTERNATIVES.match(words) and has_alternatives(words):
        return untranslated_passage(unit.element.start)
    write = partial(_fill_target, unit, dialect, frame, parts, contents)
    return Passage(tuple(part.layout for part in parts), write, unit.element.start)


def _part_layout(unit: Unit, part: Element) -> tuple[Layout, Callable[[str], str]]:
    """Return the layout of a side of a unit or of a segment in it, and the function that escapes its text for XML."""
    coded = unit.coded(part)
    # XML reads CR LF as a line feed. A carriage return of the text is written as an entity.
    write = partial(escape, entities={} if "\r" in part.content else {"\r": "&#13;"})
    if coded.codes:
        return cut_paragraphs(coded, flows=True), write
    return cut_paragraphs(coded.text, accelerators=True), write_cdata if CDATA.search(part.content) else write


def _fill_target(
    unit: Unit,
    dialect: XliffDialect,
    frame: Element,
    parts: list[UnitPart],
    contents: list[Splice],
    translations: list[CodedText],
) -> list[Splice]:
    """Return the changes that write translations into a unit's target and mark it as a machine translation.

    Args:
        unit: The unit. If it has no target, one is added.
        dialect: The dialect of the file.
        frame: The element whose content becomes that of the target, after the changes: the target or the source.
        parts: The translated segments.
        contents: The changes of the other segments of ``frame``.
        translations: The translation of each of ``parts``.
    """
    written = [
        part.slot.replace_content(NO_XML_CHARACTER.sub("", text.written(part.escape)))
        for part, text in zip(parts, translations, strict=True)
    ]
    content = frame.changed_content(contents + written)
    if unit.target:
        start, end, name = unit.target.start, unit.target.end, unit.target.tag_name
        tag = STATE.sub("", unit.target.tag).rstrip("/>").rstrip()
    else:
        name = unit.source.tag_name.replace(unit.source.name, "target")
        indent_start = unit.source.start
        while unit.source.file[indent_start - 1].isspace():
            indent_start -= 1
        start = end = max(unit.source.end, unit.whole_source.end)
        tag = f"{unit.source.file[indent_start : unit.source.start]}<{name}"
    changes = [
        Splice(start, end, f"{tag}{dialect.target_attributes}>{content}</{name}>"),
        _replace_tag(unit.element, f"{STATE.sub('', unit.element.tag)[:-1]}{dialect.unit_attributes}>"),
    ]
    for part in parts:  # to Trados, a segment without these attributes is untranslated
        definition = unit.definitions.get(part.source.attributes.get("mid", ""))
        if definition:
            tag = TRADOS_STATE.sub("", definition.tag)
            changes.append(
                _replace_tag(definition, re.sub(r"[^\s/>]+", r'\g<0> conf="Draft" origin="mt"', tag, count=1))
            )
    return changes


def _replace_tag(element: Element, tag: str) -> Splice:
    """Return the change that replaces the start tag of an element."""
    return Splice(element.start, element.content_start, tag)
