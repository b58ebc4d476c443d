"""Cut the texts of a document into lines for the translator, and join their translations again.

A line break in a document either separates two texts, as in a list, or only keeps lines short. A text is cut at breaks
of the first kind. Breaks of the second kind are removed before translation, so that a sentence is translated as one
line, and put back at about the same points of the translation.

The label of a menu item or button may have an accelerator, a marked letter: ``&File``, ``Save _As…``, ``E_xit``. The
letter after the prefix, ``&`` or ``_``, is the key that chooses the item. The model gets the text without the prefix.
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
"""Matches a Chinese or Japanese character. Between two of them a line may be broken, although there is no space."""
BREAK_WITHOUT_SPACE = re.compile(rf"{UNSPACED_CHARACTER}\s+{UNSPACED_CHARACTER}")
"""Matches a line break, with the characters beside it, that needs no space in its place."""
KEPT_OR_BETWEEN_WORDS = re.compile(
    rf"<[^<>]*>|{{[^{{}}]*}}|(\s(?=\w)|(?<={UNSPACED_CHARACTER})(?={UNSPACED_CHARACTER}))"
)
"""Matches a tag or placeholder, or, as group 1, a point where a line may be broken. The next character is a letter or
digit, because punctuation at the beginning of a line has a meaning in Markdown and in subtitles."""
AMPERSAND = re.compile(r"&(?:#?\w+;)?")
FINAL = ".!?:;…。！？：；"
ENDS_SENTENCE = re.compile(rf"[{FINAL}][\W_]*$")
_OPEN_END = rf"(?:\w|(?<![{FINAL}])[^\s\w{FINAL}])"
"""The last character of a line that ends no sentence."""
OPEN_LINE = regex.compile(rf"\n(?<={_OPEN_END}[^\S\n]*\n)[^\S\n]*(?![A-ZÀ-Þ][^\W\dA-Z])\S")
"""The end of a line that ends no sentence, before one that does not begin with a capital and a small letter."""
LIST_ITEM = r"(?:[-*+•‣◦·–—#>|$]|\(?(?:\d{1,2}|[A-Za-z])[.)])\s|[•‣◦]"
"""The start of an item of a list, or of a line that is quoted or typed."""
LINE_GAP = regex.compile(
    rf"(?:(?P<tag>(?<=<[^<>\n]{{0,1000}})[^>])|(?P<open>{_OPEN_END})|[^:])[^\S\n]*+\n[^\S\n]*+(?!\n)"
    rf"(?!{LIST_ITEM}|\S.*?(?<=\S)[ \t]{{3,}}+\S)(?(open)(?P<word>\p{{Ll}}+(?!\S))?)"
)
"""The break between two lines, from the last character of the first, where neither a blank line, a list nor a column
begins. Its groups are the character if it is inside of a tag, or if it ends no sentence, and then the first word of the
second line if it is in lowercase."""
VISIBLE_CODE = "\ufffc"
"""Stands for a code where lines are told from each other."""
MIN_FULL_CHARACTERS = 30
"""Shorter lines are not broken to keep them short, as in a list, a poem or an address."""
MIN_FULL_SHARE = 0.85
"""A line is full if, with the first word of the next one, it has this share of the longest line's characters."""
MIN_CAPITALS_WIDTH = 55
MIN_STANZA_LINES = 4
"""Lines that all begin with a capital are wrapped only if they are that wide, and fewer than in a poem."""

_IN_BRACKETS = r"(?:[A-Z]?<[^<>\n]{1,60}>|\[[^\[\]\n]{0,60}(?:\[[^\[\]\n]{0,60}\][^\[\]\n]{0,60})?\])"
OPTION = (
    r"(?>--?[\w?][\w-]*(?:<[\w-]+>[\w-]*)?"
    r"(?:=(?:[^\s/|,]|[/|](?!-)|,(?!\s))+| (?:[\w.:=-]|/(?!-)|,(?!\s))+)?"  # --build=a,b, -o FILE, --members USER,...
    rf"(?: {{0,2}}{_IN_BRACKETS}(?:\.\w+|,?\.\.\.)?)*)"  # --extract <name>.dsc [<folder>]
)
MAX_KEPT_CHARACTERS = 100
"""The most characters of options or keys in a column."""
KEPT = re.compile(
    r"(?:(?:Ctrl|Alt|Shift|Cmd|Command|Meta|Super|Option)\s?[+-]\s?)++\S{1,12}|F\d{1,2}"  # the keys of a menu item
    rf"|{OPTION}(?:(?:, {{0,2}}| ?[|/] ?){OPTION})*|"  # options of a command
)
"""Lines that are not translated."""

ACCELERATOR_PREFIX = re.compile(
    r"(?<![\w&])[&_](?=[^\W_])"  # before a word
    r"|(?<=\b[A-Z])[&_](?=[a-z])|(?<=\b[A-Z][a-z])[&_](?=[a-z])|(?<=\b[A-Z][a-z]{2})[&_](?=[a-z])"  # or inside of one
)
MAX_LABEL_WORDS = 6
"""A longer text is no label, so it has no accelerator."""
NO_KEY = re.compile(r"<[^<>]*>|&\w+;|%\S+|[{][^{}]*[}]|\$\w+")
"""Matches tags, entities and placeholders: no letter in them can be the key."""
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
    """Whether it is plain text, in which the translator finds pairs of marks such as ``[b]…[/b]``."""


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
    """The text before the first paragraph, between each two, and after the last: whitespace and lines of KEPT."""

    @property
    def lines(self) -> list[LayoutLine]:
        """The line of each paragraph, for the translator."""
        return [paragraph.line for paragraph in self.paragraphs]

    def restore(self, translations: Sequence[CodedText]) -> CodedText:
        """Return the text with a translation, one for each of ``lines``, in place of each paragraph."""
        parts = [self.spaces[0]]
        for paragraph, translation, space in zip(self.paragraphs, translations, self.spaces[1:], strict=True):
            parts += [paragraph.restore(translation), space]
        return joined(parts)


def cut_paragraphs(text: str | CodedText, accelerators: bool = False, syntax: str = "", flows: bool = False) -> Layout:
    """Cut a text into paragraphs.

    Args:
        text: A text of a document. A paragraph of a string may be written as HTML (``looks_like_html``).
        accelerators: Whether ``&`` and ``_`` may mark the key that chooses a menu item.
        syntax: The syntax of the text's placeholders; see ``LayoutLine``.
        flows: Whether a line break means the same as a space, as in most markup languages. Otherwise tabs, three
            blanks and line breaks that are not there to keep lines short separate paragraphs.
    """
    coded = text if isinstance(text, CodedText) else CodedText(text)
    may_be_html = coded is not text
    plain = CodedText(coded.text, tuple(code._replace(back=VISIBLE_CODE) for code in coded.codes)).written()
    code_positions = [code.position + index for index, code in enumerate(coded.codes)]
    if MESSAGE.search(plain):  # its lines are no paragraphs
        start = len(plain) - len(plain.lstrip())
        paragraphs, accelerators = [[(start, len(plain.rstrip()))]], False
    else:
        paragraphs = _paragraph_lines(plain, flows)
    # From here on, positions are those in the text without codes.
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

    In a text that does not flow, a line is continued inside of a tag. It is also continued if it ends no sentence, is
    full or begins with a capital, and the next word is in lowercase. Before other words, a full line is continued
    in prose: a text that ends a sentence, with lines that end none. Lines that begin with the same word are a list.
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
    """Yield the span of each line of a text, without the whitespace around it. The first and the last line may be
    empty."""
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
    """Return whether a line has an HTML element, and no ampersand or bracket that HTML would write as an entity."""
    if "</" not in line or any(unescape(match) == match for match in AMPERSAND.findall(line)):
        return False
    codes = coded_markup(line, "html").codes
    brackets = sum(code.back.count("<") + code.back.count(">") for code in codes)
    return any(code.opens for code in codes) and brackets == line.count("<") + line.count(">")


def insert_breaks(translation: CodedText, breaks: Sequence[tuple[float, str]]) -> CodedText:
    """Insert line breaks between the words of a translation, outside of tags and placeholders.

    Each break is put into the nearest gap between two words that leaves a gap for each later break. If there are fewer
    gaps than breaks, the last breaks are left out.

    Args:
        translation: A translation in one line.
        breaks: For each line break, in order: the share of the characters that should be before it (0 to 1), and the
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
    """Join lines, given by their spans in the whole text, to a paragraph."""
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
    """Remove the accelerator's prefix from a text.

    The character is a prefix only in a label: a text without final punctuation, of at most MAX_LABEL_WORDS words, whose
    first letter is a capital or whose key is a digit. A second ``&`` or ``_``, or a later ``;``, rules a prefix out.

    Returns:
        The text without the prefix, and the accelerator. For a text without an accelerator: the same text, and None.
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
    """Return a translation with the prefix of an accelerator inserted.

    The prefix is put before the first word that begins with the key, in uppercase or not; if there is none, before the
    key inside a word; if the key does not occur, before the first word. Tags, entities and placeholders are skipped. A
    translation without letters of an alphabet (Chinese, Japanese, Korean) gets the prefix and the key in brackets at
    its end: ``打开(_O)``.
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
