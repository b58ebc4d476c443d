"""Cuts the texts of a document into lines for the translator, and puts their translations together again.

The translator takes lines and gives lines. A text of a document can have line breaks that mean something, as in a list,
and others that only keep lines short. At the former it is cut. The latter are taken out, so that a sentence is
translated as a whole, and put back at about the same places of the translation.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mt.core.language import HAN
from mt.data.parsers.accelerators import Accelerator, put_accelerator, take_accelerator
from mt.text.tags import Kind, read_units

BREAK = re.compile("[\n\r\t\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Ends a line, for some program, or separates two texts, as a tab does in a menu."""
WITHOUT_SPACES = f"[{HAN}\u3041-\u30ff]"
"""Characters of languages without spaces, whose lines are broken between any two of them."""
TAG_OR_BETWEEN_WORDS = re.compile(rf"<[^<>]*>|(\s(?=\w)|(?<={WITHOUT_SPACES})(?={WITHOUT_SPACES}))")
"""A tag; or, as its group, where a line may be broken. A word in front of which it is broken begins with a letter or
digit, because punctuation at the beginning of a line means something in Markdown and in subtitles."""
BARE_AMPERSAND = re.compile(r"&(?!#?\w+;)")
ENDS_SENTENCE = re.compile(r"[.!?:;…。！？：；][\W_]*$")
SHORTEST_WRAPPED = 30
"""Of a text that was broken to keep its lines short, each line but the last has at least as many characters."""

COLUMNS = 3
"""In the strings of programs, so many blanks separate two texts, as in a list of options."""
KEPT = re.compile(
    r"(?:(?:Ctrl|Alt|Shift|Cmd|Command|Meta|Super|Option)\s?[+-]\s?)++\S{1,12}|F\d{1,2}"  # the keys of a menu item
    r"|--?\w[\w-]*(?:[ =]<?[\w-]+>?)?(?:, {0,2}--?\w[\w-]*(?:[ =]<?[\w-]+>?)?)*"  # options of a command
)
"""Lines that are not translated."""

GoesOn = Callable[[str, str], bool]
"""Tells of two lines whether the second goes on with the sentence of the first."""


class Line(NamedTuple):
    """A line for the translator."""

    text: str
    markup: Kind | None
    """Of which kind the tags in it are that go where their words go. None: it is plain text."""


@dataclass(frozen=True)
class Paragraph:
    """What is translated as one line."""

    written: str
    """The paragraph with its line breaks."""
    line: Line
    breaks: tuple[tuple[float, str], ...]
    """What stands at each line break, and at which share of the line."""
    accelerator: Accelerator | None

    def restored(self, translation: str) -> str:
        """Returns a translation of the line with line breaks and accelerator; the paragraph itself if it is the
        line."""
        if translation == self.line.text:
            return self.written
        if self.accelerator:
            return put_accelerator(self.accelerator, translation)
        return with_breaks(translation, self.breaks) if self.breaks else translation


@dataclass(frozen=True)
class Layout:
    """A text that is cut into paragraphs."""

    text: str
    paragraphs: tuple[Paragraph, ...]
    between: tuple[str, ...]
    """The white space in front of the first paragraph, between each two, and behind the last."""

    @property
    def lines(self) -> list[Line]:
        return [paragraph.line for paragraph in self.paragraphs]

    def restored(self, translations: Sequence[str]) -> str:
        """Returns the translated text, given the translation of each line; the text itself if these are the lines."""
        parts = [self.between[0]]
        for paragraph, translation, after in zip(self.paragraphs, translations, self.between[1:], strict=True):
            parts += [paragraph.restored(translation), after]
        return "".join(parts)


def wrapped(line: str, following: str) -> bool:
    """Whether the string of a program goes on in the next line: if the line is long and ends no sentence, and the next
    begins with a small letter. Also if a tag goes on."""
    if line.rfind("<") > line.rfind(">"):
        return True
    return len(line) >= SHORTEST_WRAPPED and following[0].islower() and not ENDS_SENTENCE.search(line[-10:])


def always(line: str, following: str) -> bool:
    """In most markup languages a line break is nothing but a blank."""
    return True


def cut(
    text: str, goes_on: GoesOn = wrapped, markup: Kind | None = None, accelerators: bool = False, columns: bool = True
) -> Layout:
    """Cuts a text into paragraphs.

    Args:
        text: The text.
        goes_on: Whether two lines are one paragraph.
        markup: The kind of its tags. None: HTML if a line looks like it (see ``looks_like_html``), otherwise plain
            text.
        accelerators: Whether ``&`` and ``_`` may mark the key that chooses a menu item.
        columns: Whether tabs and several blanks separate paragraphs.
    """
    between, written = [""], list[str]()
    paragraphs: list[Paragraph] = []
    for space, line in _lines(text, columns):
        if KEPT.fullmatch(line):
            space, line = space + line, ""
        separates = columns and "\t" in space
        if line and written and BREAK.search(space) and not separates and goes_on(written[-1], line):
            written += [space, line]
            continue
        if written:
            paragraphs.append(_paragraph(written, markup, accelerators))
            between.append("")
        between[-1] += space
        written = [line] if line else []
    if written:
        paragraphs.append(_paragraph(written, markup, accelerators))
        between.append("")
    return Layout(text, tuple(paragraphs), tuple(between))


def _lines(text: str, columns: bool) -> Iterator[tuple[str, str]]:
    """Yields the white space in front of each line, and the line. The first and the last line may be empty."""
    word, *others = re.split(r"(\s+)", text)
    space, words = "", [word]
    for gap, word in zip(others[::2], others[1::2], strict=True):
        is_break = len(gap) >= COLUMNS or BREAK.search(gap) if columns else BREAK.search(gap.replace("\t", " "))
        if not word or words == [""] or is_break:
            yield space, "".join(words)
            space, words = gap, [word]
        else:
            words += [gap, word]
    yield space, "".join(words)


def looks_like_html(line: str) -> bool:
    """Returns whether there is an element in a plain line, and neither an ampersand nor a bracket that HTML would write
    as an entity."""
    if "</" not in line or BARE_AMPERSAND.search(line):
        return False
    markup = [unit for unit in read_units(line, "html") if unit.role != "text"]
    brackets = sum(unit.content.count("<") + unit.content.count(">") for unit in markup)
    return any(unit.role == "open" for unit in markup) and brackets == line.count("<") + line.count(">")


def with_breaks(translation: str, breaks: Sequence[tuple[float, str]]) -> str:
    """Returns a translation with line breaks between its words, outside of tags, each as near as possible to its share
    of the line. Where there are too few words, the last breaks are missing."""
    places = [match.span(1) for match in TAG_OR_BETWEEN_WORDS.finditer(translation) if match[1] is not None]
    parts, done, first = [], 0, 0
    for share, space in breaks:
        if first == len(places):
            break
        wanted = share * len(translation)
        following = bisect_left(places, (wanted, 0), lo=first, hi=len(places) - 1)
        chosen = min((max(first, following - 1), following), key=lambda place: abs(places[place][0] - wanted))
        start, end = places[chosen]
        parts += [translation[done:start], space]
        done, first = end, chosen + 1
    return "".join(parts) + translation[done:]


def _paragraph(written: Sequence[str], markup: Kind | None, accelerators: bool) -> Paragraph:
    """Returns a paragraph of lines and the white space between them, in turn."""
    parts, length, places = [written[0]], len(written[0]), []
    for space, line in zip(written[1::2], written[2::2], strict=True):
        places.append((length, space))
        touch = re.match(WITHOUT_SPACES, parts[-1][-1]) and re.match(WITHOUT_SPACES, line)
        parts += ["" if touch else " ", line]
        length += len(parts[-2]) + len(line)
    text = "".join(parts)
    markup = markup or ("html" if looks_like_html(text) else None)
    accelerator = None
    if accelerators and markup is None and not places:
        text, accelerator = take_accelerator(text)
    breaks = tuple((place / length, space) for place, space in places)
    return Paragraph("".join(written), Line(text, markup), breaks, accelerator)
