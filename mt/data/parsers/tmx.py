"""Reads translation memories in TMX (1.1 to 1.4b), the exchange format of translators' programs (CAT tools)."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from xml.etree import ElementTree

from mt.core.errors import InputError
from mt.core.files import read_blocks
from mt.core.wording import nearest

logger = logging.getLogger(__name__)

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
HIGHLIGHT = "hi"
"""The only inline element that contains text; all others (bpt, ept, it, ph, ut) contain codes of another program."""
BREAK = re.compile(r"(\s|\\[nrt]|<br\s*/?>)+", re.IGNORECASE)
"""Matches a code that stands for white space, as every code of type lb does. If it left no space, two words would
become one."""


def tmx_pairs(path: Path, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yields the segments, without inline codes, of every translation unit that has both languages. The other units are
    counted.

    ``en`` also finds ``en-US`` if a unit has no plain ``en``; of several variants the first one counts.

    Raises:
        InputError: The file is damaged, is not XML, or lacks one of the languages altogether.
    """
    seen: dict[str, None] = {}  # a set that keeps the order of insertion
    found = [False, False]
    units = lacking = 0
    try:
        for unit in _units(path):
            segments: dict[str, str] = {}
            for variant in unit.iter("tuv"):
                language = _normal(variant.get(LANGUAGE) or variant.get("lang") or "")
                segment = variant.find("seg")
                segments.setdefault(language, "" if segment is None else _text(segment))
            seen |= dict.fromkeys(segments)
            first, second = (_segment(segments, language) for language in (source, target))
            found = [found[0] or first is not None, found[1] or second is not None]
            units += 1
            if first is None or second is None:
                lacking += 1
            else:
                yield first, second
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError) as error:
        # The parser raises ValueError or LookupError for an encoding that it does not know. Markup that is nested too
        # deeply causes RecursionError.
        raise InputError(f"{path}: no XML that can be read: {error}") from None
    for language, there in zip((source, target), found, strict=True):
        if seen and not there:
            meant = nearest(language, list(seen))
            hint = f"; did you mean {meant}?" if meant else ""
            raise InputError(
                f"{path}: no language {language!r} among {', '.join(seen)}{hint} (data.source_column, "
                "data.target_column, by default the language codes)"
            )
    if lacking:
        logger.info("%s: %s of %s units lack %s or %s", path, f"{lacking:,}", f"{units:,}", source, target)


def _units(path: Path) -> Iterator[ElementTree.Element]:
    """Yields every ``tu`` element, one at a time, because translation memories can be larger than the computer's
    memory.

    Names of elements are without their namespace.
    """
    parser: ElementTree.XMLPullParser = ElementTree.XMLPullParser(("start", "end"))
    body: ElementTree.Element | None = None

    def units() -> Iterator[ElementTree.Element]:
        nonlocal body
        for event, element in cast(Iterator[tuple[str, ElementTree.Element]], parser.read_events()):
            element.tag = element.tag.rpartition("}")[2]
            if event == "start" and element.tag == "body":
                body = element
            if event == "end" and element.tag == "tu":
                yield element
                if body is not None:
                    body.clear()

    for block in read_blocks(path):
        parser.feed(block)
        yield from units()
    parser.close()
    yield from units()


def _text(element: ElementTree.Element) -> str:
    parts = [element.text or ""]
    for inner in element:
        if inner.tag == HIGHLIGHT:
            parts.append(_text(inner))
        elif inner.get("type") == "lb" or BREAK.fullmatch("".join(inner.itertext())):
            parts.append(" ")
        parts.append(inner.tail or "")
    return "".join(parts)


def _segment(segments: dict[str, str], language: str) -> str | None:
    wanted = _normal(language)
    if wanted in segments:
        return segments[wanted]
    return next((text for name, text in segments.items() if name.split("-")[0] == wanted), None)


def _normal(language: str) -> str:
    return language.replace("_", "-").lower()
