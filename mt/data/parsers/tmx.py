"""Read translation memories in TMX (1.1 to 1.4b), the exchange format of translators' programs (CAT tools)."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from mt.core.errors import InputError
from mt.core.files import open_input
from mt.core.wording import nearest

logger = logging.getLogger(__name__)

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
HIGHLIGHT = "hi"
"""The only inline element that contains text. All others (bpt, ept, it, ph, ut) contain codes of another program."""
BREAK = re.compile(r"(\s|\\[nrt]|<br\s*/?>)+", re.IGNORECASE)
"""A code for white space, as every code of type lb is. Without the space, two words would become one."""


def tmx_pairs(path: Path, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yield the segments, without inline codes, of every translation unit that has both languages.

    The other units are counted. ``en`` also selects ``en-US`` if a unit has no plain ``en``; of several variants the
    first one counts.

    Raises:
        InputError: The file is damaged, is not XML, or lacks one of the languages altogether.
    """
    all_languages: dict[str, None] = {}  # a set that keeps the order of insertion
    missing = [source, target]
    units = incomplete = 0
    try:
        for unit in _units(path):
            segments: dict[str, str] = {}
            for variant in unit.iter("tuv"):
                segment = variant.find("seg")
                language = _normalise(variant.get(LANGUAGE) or variant.get("lang") or "")
                segments.setdefault(language, "" if segment is None else _text(segment))
            all_languages |= dict.fromkeys(segments)
            pair = {code: text for code in (source, target) if (text := _segment(segments, code)) is not None}
            missing = [code for code in missing if code not in pair]
            units += 1
            if len(pair) == 2:
                yield pair[source], pair[target]
            else:
                incomplete += 1
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError) as error:
        # The parser raises ValueError or LookupError for an encoding that it does not know. Markup that is nested too
        # deeply causes RecursionError.
        raise InputError(f"{path}: no XML that can be read: {error}") from None
    if all_languages and missing:
        suggestion = nearest(missing[0], list(all_languages))
        hint = f"; did you mean {suggestion}?" if suggestion else ""
        raise InputError(
            f"{path}: no language {missing[0]!r} among {', '.join(all_languages)}{hint} (data.source_column, "
            "data.target_column, by default the language codes)"
        )
    if incomplete:
        logger.info("%s: %s of %s units lack %s or %s", path, f"{incomplete:,}", f"{units:,}", source, target)


def _units(path: Path) -> Iterator[ElementTree.Element]:
    """Yield every ``tu`` element, one at a time: a translation memory can be larger than the computer's memory.

    The names of elements are without their namespace.
    """
    body: ElementTree.Element | None = None
    with open_input(path) as stream:
        for event, element in ElementTree.iterparse(stream, ("start", "end")):
            element.tag = element.tag.rpartition("}")[2]
            if event == "start" and element.tag == "body":
                body = element
            elif event == "end" and element.tag == "tu":
                yield element
                if body is not None:
                    body.clear()


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
    code = _normalise(language)
    return segments.get(code, next((text for name, text in segments.items() if name.split("-")[0] == code), None))


def _normalise(language: str) -> str:
    return language.replace("_", "-").lower()
