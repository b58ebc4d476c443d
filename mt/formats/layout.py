"""Cuts the texts of a document into lines for the translator, and joins their translations again.

A line break in a document either separates two texts, as in a list, or wraps a long line. A text is cut at breaks of
the first kind. Breaks of the second kind are removed before translation, so that a sentence is translated as one line,
and inserted at about the same points of the translation.

The label of a menu item or button may have an accelerator, a marked letter: ``&File``, ``Save _As…``, ``E_xit``. The
letter after the prefix, ``&`` or ``_``, is the key that selects the item. The model gets the text without the prefix.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import pairwise
from typing import NamedTuple

import regex

from mt.core.coded_text import CodedText, Span, Splice, joined
from mt.core.language import HAN, TOUCHING
from mt.formats.messages import MESSAGE
from mt.formats.tags import coded_markup, encode

BREAK = re.compile("[\n\r\t\v\f\x1c-\x1e\x85\u2028\u2029]")
"""A character that ends a line for some program, or separates two texts, as a tab does in a menu."""
LINE_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""A character that ends a line for some program."""
COLUMN_GAP = re.compile(rf"{BREAK.pattern}|\s{{3}}")
"""Whitespace that separates two texts in the messages of programs, as in a list of options."""
UNSPACED_CHARACTER = f"[{HAN}\u3041-\u30ff]"
"""Matches a Chinese or Japanese character. A line may be broken between two of them without a space."""
BREAK_WITHOUT_SPACE = re.compile(rf"{UNSPACED_CHARACTER}\s+{UNSPACED_CHARACTER}")
"""Matches a line break that is removed without inserting a space, and the characters next to it."""
KEPT_OR_BETWEEN_WORDS = re.compile(
    rf"<[^<>]*>|{{[^{{}}]*}}|(\s(?=\w)|(?<={UNSPACED_CHARACTER})(?={UNSPACED_CHARACTER}))"
)
"""Matches a tag or placeholder, or, as group 1, a point where a line may be broken. A letter or digit must follow,
because punctuation at the beginning of a line is markup in Markdown and in subtitles."""
AMPERSAND = re.compile(r"&(?:#?\w+;)?")
FINAL = ".!?:;…。！？：；"
ENDS_SENTENCE = re.compile(rf"[{FINAL}][\W_]*$")
_OPEN_END = rf"(?:\w|(?<![{FINAL}])[^\s\w{FINAL}])"
"""The last character of a line that does not end a sentence."""
OPEN_LINE = regex.compile(rf"\n(?<={_OPEN_END}[^\S\n]*\n)[^\S\n]*(?![A-ZÀ-Þ][^\W\dA-Z])\S")
"""The end of a line that does not end a sentence, if the next line does not begin with a capitalized word."""
LIST_ITEM = r"(?:[-*+•‣◦·–—#>|$]|\(?(?:\d{1,2}|[A-Za-z])[.)])\s|[•‣◦]"
"""The start of a list item, of a quoted line, or of a command line."""
LINE_GAP = regex.compile(
    rf"(?:(?P<tag>(?<=<[^<>\n]{{0,1000}})[^>])|(?P<open>{_OPEN_END})|[^:])[^\S\n]*+\n[^\S\n]*+(?!\n)"
    rf"(?!{LIST_ITEM}|\S.*?(?<=\S)[ \t]{{3,}}+\S)(?(open)(?P<word>\p{{Ll}}+(?!\S))?)"
)
"""The break between two lines, including the last character of the first line. A blank line, a list item or a column
must not follow. Groups: ``tag``, the last character if it is inside a tag; ``open``, the last character if it does not
end a sentence; ``word``, the first word of the second line if it is in lowercase and ``open`` matches."""
VISIBLE_CODE = "\ufffc"
"""Replaces each code while a text is divided into lines."""
MIN_FULL_CHARACTERS = 30
"""Shorter lines are never wrapped lines, but those of a list, a poem or an address."""
MIN_FULL_SHARE = 0.85
"""A line is full if it and the first word of the next line have at least this share of the longest line's length."""
MIN_CAPITALS_WIDTH = 55
MIN_STANZA_LINES = 4
"""Lines that all begin with a capital letter may be a poem. They are wrapped lines only if the longest has at least
MIN_CAPITALS_WIDTH characters and there are fewer than MIN_STANZA_LINES."""

_IN_BRACKETS = r"(?:[A-Z]?<[^<>\n]{1,60}>|\[[^\[\]\n]{0,60}(?:\[[^\[\]\n]{0,60}\][^\[\]\n]{0,60})?\])"
OPTION = (
    r"(?>--?[\w?][\w-]*(?:<[\w-]+>[\w-]*)?"
    r"(?:=(?:[^\s/|,]|[/|](?!-)|,(?!\s))+| (?:[\w.:=-]|/(?!-)|,(?!\s))+)?"  # --build=a,b, -o FILE, --members USER,...
    rf"(?: {{0,2}}{_IN_BRACKETS}(?:\.\w+|,?\.\.\.)?)*)"  # --extract <name>.dsc [<folder>]
)
MAX_KEPT_CHARACTERS = 100
"""The maximum length of the options or keys in a column."""
KEPT = re.compile(
    r"(?:(?:Ctrl|Alt|Shift|Cmd|Command|Meta|Super|Option)\s?[+-]\s?)++\S{1,12}|F\d{1,2}"  # the keys of a menu item
    rf"|{OPTION}(?:(?:, {{0,2}}| ?[|/] ?){OPTION})*|"  # options of a command
)
"""Matches a line that is not translated."""

ACCELERATOR_PREFIX = re.compile(
    r"(?<![\w&])[&_](?=[^\W_])"  # before a word
    r"|(?<=\b[A-Z])[&_](?=[a-z])|(?<=\b[A-Z][a-z])[&_](?=[a-z])|(?<=\b[A-Z][a-z]{2})[&_](?=[a-z])"  # or inside of one
)
MAX_LABEL_WORDS = 6
"""The maximum number of words of a label. Longer texts have no accelerator."""
NO_KEY = re.compile(r"<[^<>]*>|&\w+;|%\S+|[{][^{}]*[}]|\$\w+")
"""Matches tags, entities and placeholders, whose letters cannot be the key."""
LABEL_END = re.compile(r"\s*[.…:：]*\s*$")


class Accelerator(NamedTuple):
    """The key of a menu item or button, and the prefix that shows it."""

    prefix: str
    """``&`` or ``_``."""
    key: str
    """The letter or digit after the prefix, in the case of the text."""


class LayoutLine(NamedTuple):
    """A line for the translator."""

    text: CodedText
    syntax: str = ""
    """The syntax of its placeholders: a key of SYNTAXES; "" for none."""
    is_plain: bool = False
    """Whether it is plain text, in which the translator finds paired marks such as ``[b]…[/b]``."""


@dataclass(frozen=True)
class Paragraph:
    """A part of a text that is translated as one line."""

    line: LayoutLine
    """The paragraph without its line breaks and its accelerator."""
    restore: Callable[[CodedText], CodedText]
    """Returns a translation with the line breaks and the accelerator of the paragraph. If the translation equals the
    line, the paragraph is returned as it is in the document."""


@dataclass(frozen=True)
class Layout:
    """A text of a document, cut into paragraphs."""

    text: CodedText
    paragraphs: tuple[Paragraph, ...]
    spaces: tuple[CodedText, ...]
    """The text before, between and after the paragraphs: whitespace, and lines that KEPT matches."""

    @property
    def lines(self) -> list[LayoutLine]:
        """The line of each paragraph, for the translator."""
        return [paragraph.line for paragraph in self.paragraphs]

    def restore(self, translations: Sequence[CodedText]) -> CodedText:
        """Return the text with each paragraph replaced by its translation. There is one for each of ``lines``."""
        parts = [self.spaces[0]]
        for paragraph, translation, space in zip(self.paragraphs, translations, self.spaces[1:], strict=True):
            parts += [paragraph.restore(translation), space]
        return joined(parts)


def cut_paragraphs(text: str | CodedText, accelerators: bool = False, syntax: str = "", flows: bool = False) -> Layout:
    """Cut a text into paragraphs.

    Args:
        text: A text of a document. If it is a string, its paragraphs may be HTML (``looks_like_html``).
        accelerators: Whether ``&`` and ``_`` may mark the key that selects a menu item.
        syntax: The syntax of the text's placeholders; see ``LayoutLine``.
        flows: Whether a line break is equivalent to a space, as in most markup languages. Otherwise paragraphs are
            separated by tabs, by three spaces, and by line breaks that do not wrap a line.
    """
    coded = text if isinstance(text, CodedText) else CodedText(text)
    may_be_html = coded is not text
    plain = CodedText(coded.text, tuple(code._replace(back=VISIBLE_CODE) for code in coded.codes)).written()
    code_positions = [code.position + index for index, code in enumerate(coded.codes)]
    if MESSAGE.search(plain):  # an ICU message is a single paragraph
        start = len(plain) - len(plain.lstrip())
        paragraphs, accelerators = [[(start, len(plain.rstrip()))]], False
    else:
        paragraphs = _paragraph_lines(plain, flows)
    # Convert the positions to those in the text without codes.
    paragraphs = [
        [(start - bisect_left(code_positions, start), end - bisect_left(code_positions, end)) for start, end in lines]
        for lines in paragraphs
    ]
    pieces = coded.split([(lines[0][0], lines[-1][1]) for lines in paragraphs], True)
    return Layout(
        coded,
        tuple(
            _paragraph(piece, lines, may_be_html, accelerators, syntax)
            for piece, lines in zip(pieces[1::2], paragraphs, strict=True)
        ),
        tuple(pieces[::2]),
    )


def _paragraph_lines(text: str, flows: bool) -> list[list[Span]]:
    """Return the spans of the lines of each paragraph.

    If the text flows, all lines are one paragraph. Otherwise the next line continues a line in three cases:

    - The line ends inside a tag.
    - It does not end a sentence, the next word is in lowercase, and the line is full, begins with a capital letter, or
      continues another line.
    - It is full, and the text is prose: the text ends a sentence, and a line in it does not.

    Two lines that begin with the same word are items of a list, unless the first one ends inside a tag.
    """
    spans = list(_lines(text, not flows))
    width = max(end - start for start, end in spans)
    is_prose = ENDS_SENTENCE.search(text[-10:])
    has_open_line = OPEN_LINE.search(text)
    is_wide = width >= MIN_CAPITALS_WIDTH and len(spans) < MIN_STANZA_LINES
    paragraphs: list[list[Span]] = []

    def continues(previous: str, start: int, first_word: str) -> bool:
        end = paragraphs[-1][-1][1]
        gap = LINE_GAP.match(text, end - 1) if "\n" in text[end:start] else None
        if not gap or (previous.split()[0] == first_word and not gap["tag"]):
            return False
        is_full = MIN_FULL_CHARACTERS <= MIN_FULL_SHARE * width <= len(previous) + len(first_word)
        if gap["tag"] or (gap["word"] and (is_full or previous[:2].istitle() or len(paragraphs[-1]) > 1)):
            return True
        return bool(is_full and is_prose and (has_open_line or (gap["open"] and is_wide)))

    previous = ""
    for start, end in spans:
        line = text[start:end]
        if not KEPT.fullmatch(line):
            if KEPT.fullmatch(previous) or not (flows or continues(previous, start, line.split()[0])):
                paragraphs.append([])
            paragraphs[-1].append((start, end))
        previous = line
    return paragraphs


def _lines(text: str, columns: bool) -> Iterator[Span]:
    """Yield the span of each line of a text, without surrounding whitespace. The first and last lines may be empty.

    With ``columns``, a tab, three spaces, or the gap after command options also ends a line.
    """
    start = 0
    for gap in re.finditer(r"\s+", text):
        is_break = bool((COLUMN_GAP if columns else LINE_BREAK).search(gap.group()))
        is_short = gap.start() - start <= MAX_KEPT_CHARACTERS
        if columns and not is_break and is_short and KEPT.fullmatch(text, start, gap.start()):
            is_column = text[start - 1 : start].isspace() and text[gap.start() - 1] in ">]"
            is_break = not text.startswith(("<", "["), gap.end()) and (len(gap.group()) > 1 or is_column)
        if is_break or gap.start() == 0 or gap.end() == len(text):
            yield start, gap.start()
            start = gap.end()
    yield start, len(text)


def looks_like_html(line: str) -> bool:
    """Return whether a line has an HTML element, and every ``&``, ``<`` and ``>`` in it is part of a tag or entity."""
    if "</" not in line or any(unescape(match) == match for match in AMPERSAND.findall(line)):
        return False
    codes = coded_markup(line, "html").codes
    brackets = sum(code.back.count("<") + code.back.count(">") for code in codes)
    return any(code.opens for code in codes) and brackets == line.count("<") + line.count(">")


def insert_breaks(translation: CodedText, breaks: Sequence[tuple[float, str]]) -> CodedText:
    """Insert line breaks between the words of a translation, outside of tags and placeholders.

    Each break is inserted into the nearest gap between two words that leaves a gap for each later break. If there are
    fewer gaps than breaks, the last breaks are dropped.

    Args:
        translation: A translation in one line.
        breaks: For each line break, in order: the share of the characters that should precede it (0 to 1), and the
            whitespace to insert.
    """
    gaps = [match.span(1) for match in KEPT_OR_BETWEEN_WORDS.finditer(translation.text) if match[1] is not None]
    breaks = breaks[: len(gaps)]
    splices, first = [], 0
    for number, (share, space) in enumerate(breaks):
        target = share * len(translation.text)
        last = len(gaps) - len(breaks) + number
        after = bisect_left(gaps, (target, 0), lo=first, hi=last)
        nearest = min((max(first, after - 1), after), key=lambda index: abs(gaps[index][0] - target))
        splices.append(Splice(*gaps[nearest], space))
        first = nearest + 1
    return translation.spliced(splices)


def _paragraph(
    original: CodedText, lines: Sequence[Span], may_be_html: bool, accelerators: bool, syntax: str
) -> Paragraph:
    """Make a paragraph.

    Args:
        original: The text of the paragraph in the document, with its line breaks.
        lines: The spans of its lines in the document's text.
        may_be_html: Whether the paragraph is HTML if it looks like it.
        accelerators, syntax: See ``cut_paragraphs``.
    """
    shift, end = lines[0][0], lines[-1][1]
    gaps = [(first - shift, last - shift) for (_, first), (last, _) in pairwise(lines)]
    breaks = [(first / max(end - shift, 1), original.text[first:last]) for first, last in gaps]
    text = original.spliced(
        Splice(first, last, "" if BREAK_WITHOUT_SPACE.fullmatch(original.text, first - 1, last + 1) else " ")
        for first, last in gaps
    )
    is_html = may_be_html and looks_like_html(text.text)
    accelerator = None
    if is_html:
        text = coded_markup(text.text, "html")
    elif accelerators and not gaps and not text.codes:
        plain, accelerator = remove_accelerator(text.text)
        text = CodedText(plain)

    def restore(translation: CodedText) -> CodedText:
        if translation == text:
            return original
        if is_html:
            translation = CodedText(translation.written(encode))
        if accelerator:
            return CodedText(insert_accelerator(accelerator, translation.text))
        return insert_breaks(translation, breaks)

    return Paragraph(LayoutLine(text, syntax, may_be_html and not is_html), restore)


def remove_accelerator(text: str) -> tuple[str, Accelerator | None]:
    """Remove the accelerator's prefix from a label.

    A label is a text without final punctuation, of at most MAX_LABEL_WORDS words, whose first letter is uppercase or
    whose key is a digit. A text with a second ``&`` or ``_``, or with a ``;`` after the first, has no accelerator.

    Returns:
        The text without the prefix, and the accelerator. Without an accelerator: the unchanged text, and None.
    """
    match = ACCELERATOR_PREFIX.search(text)
    if not match or len(text.split()) > MAX_LABEL_WORDS or re.search(r"[^.][.!?]\s*$", text):
        return text, None
    start, prefix, key = match.start(), match.group(), text[match.end()]
    first_letter = next(filter(str.isalpha, text), "")
    if text.count("&") + text.count("_") > 1 or not (key.isdigit() or first_letter.isupper()) or ";" in text[start:]:
        return text, None
    return text[:start] + text[start + 1 :], Accelerator(prefix, key)


def insert_accelerator(accelerator: Accelerator, translation: str) -> str:
    """Insert the prefix of an accelerator into a translation.

    The prefix is inserted before the first word that begins with the key, ignoring case. Otherwise it is inserted
    before the key inside a word, or before the first word if the key does not occur. Tags, entities and placeholders
    are skipped. A translation in Chinese, Japanese or Korean gets the prefix and the key in parentheses at its end:
    ``打开(_O)``.
    """
    searched = NO_KEY.sub(lambda match: " " * len(match.group()), translation)
    key = re.escape(accelerator.key)
    if not re.search(rf"[^\W\d_{TOUCHING}]", searched):
        key = f"({accelerator.prefix}{accelerator.key.upper()})"
        return LABEL_END.sub(lambda match: key + match.group(), translation, count=1)
    for pattern in (rf"(?<!\w){key}", key, r"(?<!\w)[^\W\d_]"):
        if match := re.search(pattern, searched, re.IGNORECASE):
            return translation[: match.start()] + accelerator.prefix + translation[match.start() :]
    return translation
