"""Translation memories: TMX (1.1 to 1.4b), the exchange format of translators' programs."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast
from xml.etree import ElementTree

from mt.errors import InputError
from mt.files import read_blocks
from mt.mistakes import nearest

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
SHOWN_MARKUP = ("hi", "g", "mrk")
"""Inline elements whose content is text; that of all others (bpt, ept, it, ph, ut) is another program's code."""


def tmx_pairs(path: Path, source: str, target: str) -> Iterator[tuple[str, str]]:
    """The segments of every translation unit in two languages, without inline codes; "" where a unit lacks one.

    ``en`` finds ``en-US``, too, if a unit has no plain ``en``; of several variants the first counts.

    Raises InputError: the file is damaged, no XML, or has one of the languages nowhere.
    """
    seen: dict[str, None] = {}  # a set in the order of its elements
    found = [False, False]
    for unit in _units(path):
        segments: dict[str, str] = {}
        for variant in unit.iter("tuv"):
            language = _normal(variant.get(LANGUAGE) or variant.get("lang") or "")
            segment = variant.find("seg")
            segments.setdefault(language, "" if segment is None else _text(segment))
        seen |= dict.fromkeys(segments)
        pair = [_segment(segments, language) for language in (source, target)]
        found = [before or text is not None for before, text in zip(found, pair, strict=True)]
        yield pair[0] or "", pair[1] or ""
    for language, there in zip((source, target), found, strict=True):
        if seen and not there:
            meant = nearest(language, list(seen))
            hint = f"; did you mean {meant}?" if meant else ""
            raise InputError(
                f"{path}: no language {language!r} among {', '.join(seen)}{hint} (data.source_column, "
                "data.target_column, by default the language codes)"
            )


def _units(path: Path) -> Iterator[ElementTree.Element]:
    """Every ``tu``, one at a time: memories can be larger than memory."""
    parser: ElementTree.XMLPullParser = ElementTree.XMLPullParser(("start", "end"))
    body: ElementTree.Element | None = None

    def units() -> Iterator[ElementTree.Element]:
        nonlocal body
        for event, element in cast(Iterator[tuple[str, ElementTree.Element]], parser.read_events()):
            if event == "start" and element.tag == "body":
                body = element
            if event == "end" and element.tag == "tu":
                yield element
                if body is not None:
                    body.clear()

    try:
        for block in read_blocks(path):
            parser.feed(block)
            yield from units()
        parser.close()
        yield from units()
    except ElementTree.ParseError as error:
        raise InputError(f"{path}: no XML: {error}") from None


def _text(element: ElementTree.Element) -> str:
    parts = [element.text or ""]
    for inner in element:
        if inner.tag in SHOWN_MARKUP:
            parts.append(_text(inner))
        parts.append(inner.tail or "")
    return "".join(parts)


def _segment(segments: dict[str, str], language: str) -> str | None:
    wanted = _normal(language)
    if wanted in segments:
        return segments[wanted]
    return next((text for name, text in segments.items() if name.split("-")[0] == wanted), None)


def _normal(language: str) -> str:
    return language.replace("_", "-").lower()
