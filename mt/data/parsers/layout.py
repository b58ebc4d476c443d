"""Cut the texts of a document into lines for the translator, and put their translations together again.

A line break in a document can separate, as in a list, or only keep lines short. The text is cut at the former. The
latter are removed, so that a sentence is translated as a whole, and put back at about the same places.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mt.core.language import HAN
from mt.data.parsers.accelerators import Accelerator, put_accelerator, take_accelerator
from mt.text.markup.tags import MarkupKind, decoded_tokens

BREAK = re.compile("[\n\r\t\v\f\x1c-\x1e\x85\u2028\u2029]")
"""A character that ends a line for some program, or separates two texts, as a tab does in a menu."""
WITHOUT_SPACES = f"[{HAN}\u3041-\u30ff]"
"""Characters of languages without spaces, whose lines are broken between any two of them."""
TAG_OR_BETWEEN_WORDS = re.compile(rf"<[^<>]*>|(\s(?=\w)|(?<={WITHOUT_SPACES})(?={WITHOUT_SPACES}))")
"""A tag; or, as its group, a possible line break. It is before a letter or digit, because punctuation at the beginning
of a line means something in Markdown and in subtitles."""
BARE_AMPERSAND = re.compile(r"&(?!#?\w+;)")
ENDS_SENTENCE = re.compile(r"[.!?:;…。！？：；][\W_]*$")
MIN_WRAPPED_CHARACTERS = 30
"""Minimum length of each line but the last, in a text that was broken to keep its lines short."""

MIN_COLUMN_BLANKS = 3
"""In the strings of programs, so many blanks separate two texts, as in a list of options."""
KEPT = re.compile(
    r"(?:(?:Ctrl|Alt|Shift|Cmd|Command|Meta|Super|Option)\s?[+-]\s?)++\S{1,12}|F\d{1,2}"  # the keys of a menu item
    r"|--?\w[\w-]*(?:[ =]<?[\w-]+>?)?(?:, {0,2}--?\w[\w-]*(?:[ =]<?[\w-]+>?)?)*"  # options of a command
)
"""Lines that are not translated."""

Continues = Callable[[str, str], bool]
"""Whether the second of two lines continues the sentence of the first."""


class Line(NamedTuple):
    """A line for the translator."""

    text: str
    markup: MarkupKind | None
    """The kind of its tags, which move with their words. None: it is plain text."""


@dataclass(frozen=True)
class Paragraph:
    """A text that is translated as one line."""

    original: str
    """The text with its line breaks."""
    line: Line
    breaks: tuple[tuple[float, str], ...]
    """The line breaks: the share of the line before each, and its white space."""
    accelerator: Accelerator | None

    def restore(self, translation: str) -> str:
        """Return a translation with line breaks and accelerator; the original if the translation is the line."""
        if translation == self.line.text:
            return self.original
        if self.accelerator:
            return put_accelerator(self.accelerator, translation)
        return insert_breaks(translation, self.breaks)


@dataclass(frozen=True)
class Layout:
    """A text that is cut into paragraphs."""

    text: str
    paragraphs: tuple[Paragraph, ...]
    spaces: tuple[str, ...]
    """The white space before the first paragraph, between each two, and after the last."""

    @property
    def lines(self) -> list[Line]:
        return [paragraph.line for paragraph in self.paragraphs]

    def restore(self, translations: Sequence[str]) -> str:
        """Return the translated text, given the translation of each line; the text itself if these are the lines."""
        parts = [self.spaces[0]]
        for paragraph, translation, space in zip(self.paragraphs, translations, self.spaces[1:], strict=True):
            parts += [paragraph.restore(translation), space]
        return "".join(parts)


def is_wrapped(line: str, following: str) -> bool:
    """Return whether a program's string continues in the next line.

    It does if a tag is open, or if the line is long and ends no sentence, and the next begins with a small letter.
    """
    if line.rfind("<") > line.rfind(">"):
        return True
    return len(line) >= MIN_WRAPPED_CHARACTERS and following[0].islower() and not ENDS_SENTENCE.search(line[-10:])


def always(line: str, following: str) -> bool:
    """Return True: in most markup languages a line break is nothing but a blank."""
    return True


def cut_paragraphs(
    text: str,
    continues: Continues = is_wrapped,
    markup: MarkupKind | None = None,
    accelerators: bool = False,
    columns: bool = True,
) -> Layout:
    """Cut a text into paragraphs.

    Args:
        text: The text.
        continues: Whether two lines are one paragraph.
        markup: The kind of its tags. None: HTML if a line looks like it (see ``looks_like_html``), otherwise plain
            text.
        accelerators: Whether ``&`` and ``_`` may mark the key that chooses a menu item.
        columns: Whether tabs and several blanks separate paragraphs.
    """
    spaces = [""]
    pieces: list[list[str]] = []
    """The lines of each paragraph, with the white space between them."""
    for space, line in _lines(text, columns):
        if KEPT.fullmatch(line):
            space, line = space + line, ""
        may_continue = BREAK.search(space) and not (columns and "\t" in space)
        if line and pieces and not spaces[-1] and may_continue and continues(pieces[-1][-1], line):
            pieces[-1] += [space, line]
            continue
        spaces[-1] += space
        if line:
            pieces.append([line])
            spaces.append("")
    return Layout(text, tuple(_paragraph(piece, markup, accelerators) for piece in pieces), tuple(spaces))


def _lines(text: str, columns: bool) -> Iterator[tuple[str, str]]:
    """Yield each line and the white space before it. The first and the last line may be empty."""
    space, start = "", 0
    for gap in re.finditer(r"\s+", text):
        blanks = gap.group() if columns else gap.group().replace("\t", " ")
        is_break = BREAK.search(blanks) or (columns and len(blanks) >= MIN_COLUMN_BLANKS)
        if is_break or gap.start() == 0 or gap.end() == len(text):
            yield space, text[start : gap.start()]
            space, start = gap.group(), gap.end()
    yield space, text[start:]


def looks_like_html(line: str) -> bool:
    """Return whether a plain line has an element, and no ampersand or bracket that HTML would write as an entity."""
    if "</" not in line or BARE_AMPERSAND.search(line):
        return False
    markup = [unit for unit in decoded_tokens(line, "html") if unit.role != "text"]
    brackets = sum(unit.content.count("<") + unit.content.count(">") for unit in markup)
    return any(unit.role == "open" for unit in markup) and brackets == line.count("<") + line.count(">")


def insert_breaks(translation: str, breaks: Sequence[tuple[float, str]]) -> str:
    """Insert line breaks between the words of a translation, outside of tags, as near as possible to their shares.

    If there are too few words, the last breaks are missing.
    """
    gaps = [match.span(1) for match in TAG_OR_BETWEEN_WORDS.finditer(translation) if match[1] is not None]
    parts, done, first = [], 0, 0
    for share, space in breaks:
        if first == len(gaps):
            break
        target = share * len(translation)
        after = bisect_left(gaps, (target, 0), lo=first, hi=len(gaps) - 1)
        nearest = min((max(first, after - 1), after), key=lambda number: abs(gaps[number][0] - target))
        start, end = gaps[nearest]
        parts += [translation[done:start], space]
        done, first = end, nearest + 1
    return "".join(parts) + translation[done:]


def _paragraph(pieces: Sequence[str], markup: MarkupKind | None, accelerators: bool) -> Paragraph:
    """Return the paragraph of some lines, with the white space between each two."""
    text = pieces[0]
    breaks: list[tuple[int, str]] = []
    for space, line in zip(pieces[1::2], pieces[2::2], strict=True):
        breaks.append((len(text), space))
        has_no_blank = re.match(WITHOUT_SPACES, text[-1]) and re.match(WITHOUT_SPACES, line)
        text += line if has_no_blank else f" {line}"
    length = len(text)
    markup = markup or ("html" if looks_like_html(text) else None)
    accelerator = None
    if accelerators and markup is None and not breaks:
        text, accelerator = take_accelerator(text)
    shares = tuple((position / length, space) for position, space in breaks)
    return Paragraph("".join(pieces), Line(text, markup), shares, accelerator)
