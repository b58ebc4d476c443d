"""Read translation memories in TMX (1.1 to 1.4b), the exchange format of translators' programs (CAT tools)."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast
from xml.etree import ElementTree

from mt.core.errors import InputError
from mt.core.files import open_input
from mt.core.wording import did_you_mean

logger = logging.getLogger(__name__)

EVENTS: Final = ("start", "end")
UNIT_START, UNIT_END = re.compile(rb"<tu[\s>]"), b"</tu>"
READ_BYTES = 1 << 16
MAX_PART_BYTES = 1 << 23
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
HIGHLIGHT = "hi"
"""The only inline element that contains text. All others (bpt, ept, it, ph, ut) contain codes of another program."""
WHITESPACE_CODE = re.compile(r"(\s|\\[nrt]|<br\s*/?>)+", re.IGNORECASE)
"""Matches the content of an inline code that stands for white space. It is replaced by a space, so that the words
beside it stay apart. Codes of type ``lb``, line break, are replaced, too, whatever their content."""


def tmx_pairs(path: Path, source: str, target: str) -> Iterator[tuple[str, str] | InputError]:
    """Yield the source and the target segment, without inline codes, of each translation unit that has both languages.
    A unit that is no XML gives an InputError.

    The number of other units is logged. The language ``en`` also selects ``en-US`` in a unit without a plain ``en``. If
    a unit has several segments of a language, the first one is used.

    Args:
        path: A TMX file, which may be compressed.
        source, target: Language codes.

    Raises:
        InputError: The file is damaged, is not XML, or has no segment in one of the languages.
    """
    all_languages: dict[str, None] = {}  # a set that keeps the order of insertion
    missing = [source, target]
    units = incomplete = 0
    try:
        for unit in _units(path):
            if isinstance(unit, ElementTree.ParseError):
                yield InputError(f"{path}: a unit is no XML that can be read: {unit}; correct it")
                continue
            segments: dict[str, str] = {}
            for variant in unit.iter("tuv"):
                segment = variant.find("seg")
                language = _standard_code(variant.get(LANGUAGE) or variant.get("lang") or "")
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
        raise InputError(f"{path}: no XML that can be read: {error}; export the translation memory again") from None
    if all_languages and missing:
        raise InputError(
            f"{path}: no language {missing[0]!r} among {', '.join(all_languages)}"
            f"{did_you_mean(missing[0], list(all_languages))} (set data.source_column and data.target_column to codes "
            "of the file)"
        )
    if incomplete:
        logger.info(
            "%s: %s of %s units lack %s or %s and are left out", path, f"{incomplete:,}", f"{units:,}", source, target
        )


def _units(path: Path) -> Iterator[ElementTree.Element | ElementTree.ParseError]:
    """Yield every ``tu`` element of a TMX file, with element names without their namespace.

    An element is emptied when the next one is requested: a translation memory can be larger than the computer's memory.
    A unit with an error is given as the error. Behind it, a new parser reads on, which has been given the beginning of
    the file and the same number of lines.
    """
    body: ElementTree.Element | None = None
    parser: ElementTree.XMLPullParser = ElementTree.XMLPullParser(EVENTS)
    head, lines = b"", 0
    with open_input(path) as stream:
        for part in _parts(stream):
            begin = UNIT_START.search(part)
            if begin and not head:
                head = part[: begin.start()]
            parser.feed(part)
            lines += part.count(b"\n")
            try:
                for event, element in cast(Iterator[tuple[str, ElementTree.Element]], parser.read_events()):
                    element.tag = element.tag.rpartition("}")[2]
                    if event == "start" and element.tag == "body":
                        body = element
                    elif event == "end" and element.tag == "tu":
                        yield element
                        if body is not None:
                            body.clear()
            except ElementTree.ParseError as error:
                if not begin or not part.endswith(UNIT_END):
                    raise
                yield error
                parser = ElementTree.XMLPullParser(EVENTS)
                parser.feed(head + b"\n" * (lines - head.count(b"\n")))
        parser.close()


def _parts(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a file in parts that end behind a unit; without units, in parts of MAX_PART_BYTES."""
    rest = b""
    while content := stream.read(READ_BYTES):
        *units, rest = (rest + content).split(UNIT_END)
        yield from (unit + UNIT_END for unit in units)
        if len(rest) > MAX_PART_BYTES:
            yield rest
            rest = b""
    yield rest


def _text(element: ElementTree.Element) -> str:
    """Return the text of a segment without its codes. Codes for white space become spaces."""
    parts = [element.text or ""]
    for inner in element:
        if inner.tag == HIGHLIGHT:
            parts.append(_text(inner))
        elif inner.get("type") == "lb" or WHITESPACE_CODE.fullmatch("".join(inner.itertext())):
            parts.append(" ")
        parts.append(inner.tail or "")
    return "".join(parts)


def _segment(segments: dict[str, str], language: str) -> str | None:
    """Return the segment in a language or, if there is none, the first one in a regional variant of it."""
    code = _standard_code(language)
    return segments.get(code, next((text for name, text in segments.items() if name.split("-")[0] == code), None))


def _standard_code(language: str) -> str:
    return language.replace("_", "-").lower()
