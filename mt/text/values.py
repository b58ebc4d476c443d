"""Values that are not translated and come back whole: links, addresses, numbers, codes, placeholders, tags, emoji.

Most are found by the patterns of ``mt.formats.kinds``; the others are characters that the model cannot have
learnt, and the user's own.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, pairwise

import regex

from mt.config.text import FINAL_MARKS
from mt.core.errors import InputError
from mt.core.language import HAN, TOUCHING, script_of
from mt.core.splices import Span, Splice, apply_splices
from mt.core.wording import brief
from mt.formats.kinds import LONG_RUN, NON_TRANSLATABLE, ONE_DIGIT, SINGLE_QUOTED, SYNTAXES, TRIGGER
from mt.text.brackets import bracket_pairs
from mt.text.placeholders import (
    CORPUS_TAG,
    PLACEHOLDER,
    fill_placeholders,
    numbered_placeholders,
    placeholder,
    replace_spans,
)
from mt.text.segment import IN_WORD, LETTER, Phenomenon, Request, Segment, Term
from mt.text.sentences import sentences
from mt.text.shared_values import is_plain_number
from mt.tokenizer.tokenizer import Tokenizer

TOUCHING_LETTER = regex.compile(rf"(?![\d\p{{Sc}}])[{TOUCHING}]")
WORD_CHARACTER = rf"[^\W{TOUCHING}]"
"""A letter, digit or underscore, except the letters of scripts without spaces (TOUCHING)."""

DOTS, ELLIPSIS = r"\.{2,}", "…"
UNIT = regex.compile(rf"{DOTS}+|\p{{Regional_Indicator}}{{2}}\p{{M}}*+|\X")
"""What a reader takes for one character: a letter with its accents, an emoji with its skin tone and joiners, or an
ellipsis. Flags are named because \\X alone takes quadratic time on many in a row."""
PICTOGRAPH = regex.compile(r"(?=\D)\p{Extended_Pictographic}|\p{Regional_Indicator}|\u20e3")
DIGIT = regex.compile(r"[0-9]")
INSIDE_WORD = regex.compile(r"(?<=\p{L}\p{M}*)['’‐‑-](?=\p{L})")
LOOKALIKES = {"’": "'", "‐": "-", "‑": "-"}
"""Apostrophes and hyphens, and those that every corpus has."""
BRACKET_CHARACTER = regex.compile(r"[\p{Ps}\p{Pe}\p{Pi}\p{Pf}\"']")
EMPHASISED_CODE = regex.compile(r"(?<!\w)_(?!_)(?=[^\s_]{0,300}[^\w\s])\S{1,300}?(?<!_)_(?!\w)")
"""Something that is no word, between underscores: _http://a.example_"""
ESCAPED_BLANK = regex.compile(r"\\[nrt](?=\p{Lu}|https?:|www\.|\W|$)")
"""The code of a line break or tab, as in ``Hello.\\nHow are you?``."""
WORD_START, WORD_END = regex.compile(r"[\w\p{M}]*"), regex.compile(r"(?r)[\w\p{M}]*\Z")


class Values(Phenomenon):
    """Puts placeholders in the place of values and terms."""

    def __init__(self, patterns: Sequence[regex.Pattern[str]], characters: Sequence["FamiliarCharacters"]) -> None:
        """
        Args:
            patterns: The user's own patterns.
            characters: The characters that the model knows, on either side.
        """
        self._patterns = patterns
        self._characters = characters

    def find(self, text: str, side: int, syntax: str) -> list[Span]:
        return find_values(text, self._patterns, self._characters[side], syntax)

    def take(self, segment: Segment, request: Request) -> list[Segment]:
        end = segment.start + len(segment.text)
        elements = [
            (max(first - segment.start, 0), min(last, end) - segment.start)
            for first, last in request.elements
            if first < end and last > segment.start
        ]
        found = request.find(segment.text, elements)
        values = tuple(value for _, value in found)
        masks = [placeholder(-1 if isinstance(value, Term) else 0) for value in values]
        text = replace_spans(segment.text, [span for span, _ in found], masks)
        return [replace(segment, text=text, written=text, values=values)]

    def prepare(self, source: Segment, target: str) -> tuple[Segment, str]:
        text = self._characters[0].with_known_marks(source.text)
        return replace(source, text=text, written=text), target


class Edges(Phenomenon):
    """Splits off what segments have at their ends and needs no translation: white space, symbols, emoji and, after the
    final punctuation, all values but terms. Of a pair of brackets, either both are split off or none."""

    def __init__(self, placeholders: int, characters: "FamiliarCharacters", language: str) -> None:
        self._placeholders = placeholders
        self._characters = characters
        self._language = language

    def take(self, segment: Segment, request: Request) -> list[Segment]:
        values, text = segment.values, segment.written
        if not LETTER.search(text) and not any(isinstance(value, Term) for value in values):
            before = segment.before + fill_placeholders(text, values)
            return [Segment("", before=before, is_continued=segment.is_continued)]
        (start, end), (first, last) = self._borders(segment)
        kinds = (None if isinstance(value, Term) else is_plain_number(value) for value in values[first:last])
        placeholders = numbered_placeholders(kinds, range(self._placeholders))
        written, core = (fill_placeholders(side[start:end], placeholders) for side in (text, segment.text))
        return [
            replace(
                segment,
                text=self._characters.with_known_marks(core),
                values=values[first:last],
                written=written,
                before=segment.before + fill_placeholders(text[:start], values[:first]),
                after=fill_placeholders(text[end:], values[last:]),
            )
        ]

    def _borders(self, segment: Segment) -> tuple[Span, Span]:
        """Return the span of the text without edges, and that of its values among those of the segment."""
        text, values, start, end = segment.written, segment.values, 0, len(segment.written)
        positions = [match.start() for match in PLACEHOLDER.finditer(text)]
        first, last = 0, len(values)
        while start < end:
            if PLACEHOLDER.match(text, start) and not IN_WORD.search(values[first]):
                first += 1
            elif not text[start].isspace():
                break
            start += 1
        while end > start:
            if (
                PLACEHOLDER.match(text, end - 1)
                and not isinstance(values[last - 1], Term)
                and (not IN_WORD.search(values[last - 1]) or _ends_after_sentence(text[:end], self._language))
            ):
                last -= 1
            elif not text[end - 1].isspace():
                break
            end -= 1
        for opening, closing in bracket_pairs(values).items():
            if opening < first <= closing < last:
                start, first = positions[opening], opening
            elif first <= opening < last <= closing:
                end, last = positions[closing] + 1, closing + 1
        return (start, end), (first, last)


_PLACEHOLDERS_OR_BLANKS = rf"[\s{PLACEHOLDER.pattern[1:-1]}]*"
SENTENCE_END_BEFORE_PLACEHOLDERS = regex.compile(
    rf"(?r)[{FINAL_MARKS}]\p{{P}}*{_PLACEHOLDERS_OR_BLANKS}$"
)  # (?r): from the end
PLACEHOLDERS_ALONE = regex.compile(_PLACEHOLDERS_OR_BLANKS)
MAX_CONTEXT_CHARACTERS = 200
"""How many characters before a full stop are read to tell the end of a sentence from an abbreviation."""


def _ends_after_sentence(text: str, language: str) -> bool:
    """Return whether the last placeholder of a text comes after a finished sentence. In ``No. 5`` the full stop only
    abbreviates."""
    if not SENTENCE_END_BEFORE_PLACEHOLDERS.search(text[:-1]):
        return False
    return PLACEHOLDERS_ALONE.fullmatch(sentences(text[-MAX_CONTEXT_CHARACTERS:], language)[-1]) is not None


PATTERN_SECONDS = 5
"""The processor time after which a user's pattern is refused: on some texts, nested repetitions take forever."""


def own_patterns(patterns: Sequence[str]) -> list[regex.Pattern[str]]:
    """Compile a user's own patterns, which are regular expressions of the module ``regex``.

    Raises:
        InputError: A pattern cannot be read or matches the empty text.
    """
    compiled: list[regex.Pattern[str]] = []
    for pattern in patterns:
        try:
            compiled.append(regex.compile(pattern))
            matches_empty = compiled[-1].search("")
        except (regex.error, RecursionError, MemoryError) as error:
            reason = f"{error or 'recursive'}; correct it, in model.yaml if the model has it"
            raise InputError(f"text.patterns: {brief(pattern)}: {reason}") from None
        if matches_empty:
            raise InputError(f"text.patterns: {brief(pattern)}: matches the empty text, and so would be everywhere")
    return compiled


def find_values(
    text: str, patterns: Iterable[regex.Pattern[str]], characters: "FamiliarCharacters", syntax: str = ""
) -> list[Span]:
    """Return the spans of all values of a text, in order. Values that touch or overlap are merged.

    Raises:
        InputError: A pattern takes more than PATTERN_SECONDS.

    Args:
        patterns: The user's patterns from ``own_patterns``, whose matches are values, too.
        characters: Finds the characters that the tokenizer cannot write.
        syntax: A key of SYNTAXES, whose placeholders are values, too.
    """
    spans = [span for pattern in patterns for span in _matches(pattern, text)]
    if syntax in SYNTAXES:
        spans += [match.span() for match in SYNTAXES[syntax].finditer(text)]
    searched, kinds = text, [LONG_RUN]
    if TRIGGER.search(text):
        signs = [match.span() for match in ESCAPED_BLANK.finditer(text)] + _ends(EMPHASISED_CODE, text)
        spans += signs
        # Where letters and such signs may touch a value, they are like punctuation to the patterns, which look for the
        # ends of words.
        searched = apply_splices(text, [Splice(start, end, "。" * (end - start)) for start, end in sorted(signs)])
        kinds = [LONG_RUN, NON_TRANSLATABLE, ONE_DIGIT]
    searched = TOUCHING_LETTER.sub("。", searched)
    spans += [match.span() for kind in kinds for match in kind.finditer(searched)]
    spans += characters.unfamiliar(text) + _ends(SINGLE_QUOTED, text)
    return list(united(spans, text)) if spans else []


def _matches(pattern: regex.Pattern[str], text: str) -> list[Span]:
    try:
        return [match.span() for match in pattern.finditer(text, timeout=PATTERN_SECONDS)]
    except TimeoutError:
        raise InputError(
            f"text.patterns: {brief(pattern.pattern)}: takes more than {PATTERN_SECONDS} seconds on {brief(text)!r}; "
            "avoid repetitions inside of repetitions, or use possessive ones such as ++"
        ) from None


def _ends(pattern: regex.Pattern[str], text: str) -> list[Span]:
    """Return the spans of the first and of the last character of each match."""
    return [(end, end + 1) for match in pattern.finditer(text) for end in (match.start(), match.end() - 1)]


LONE_ELLIPSIS = regex.compile(r"(?<!\S)…(?!\S)")


def values_of_elements(text: str, find: Callable[[str], list[Span]], elements: Sequence[Span]) -> list[Span]:
    """Return the spans of all values of a text that has elements, in order.

    The text of an element without letters, such as "…", is a value, too. A value is cut where the border of an element
    crosses it that also holds other text. A value may begin or end at such a border, even inside a word.

    Args:
        find: Finds the values of a text without elements.
    """
    values = find(text)
    if not elements:
        return values
    values += [match.span() for match in LONE_ELLIPSIS.finditer(text)]
    in_words = [
        cut for cut in sorted({*chain(*elements)}) if 0 < cut < len(text) and " " not in text[cut - 1 : cut + 1]
    ]
    if in_words:
        blanks = [cut + number for number, cut in enumerate(in_words)]
        spaced = " ".join(text[start:end] for start, end in pairwise([0, *in_words, len(text)]))
        values += [(start - bisect_left(blanks, start), end - bisect_left(blanks, end)) for start, end in find(spaced)]
    letters = [*(match.start() for match in LETTER.finditer(text)), len(text)]
    wordless = [(start, end) for start, end in elements if letters[bisect_left(letters, start)] >= end]
    trimmed = [(end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip())) for start, end in wordless]
    borders = sorted((border, *span) for span in elements for border in span)
    adapted: list[Span] = []
    for start, end in united([*values, *trimmed], text):
        inside = borders[bisect_left(borders, (start + 1,)) : bisect_left(borders, (end,))]
        crossing = {border for border, first, last in inside if first < start or end < last}
        adapted += pairwise([start, *sorted(crossing), end])
    return adapted


def united(spans: Iterable[Span], text: str) -> Iterator[Span]:
    """Merge spans that touch or overlap, but keep brackets and quotation marks apart that have no counterpart, as
    in ``((page 12)``, unless they are inside of a longer span."""
    united: list[Span] = []
    inside: set[int] = set()
    for start, end in sorted(spans):
        if end - start > 1:
            inside.update(match.start() for match in BRACKET_CHARACTER.finditer(text, start, end))
        if united and start <= united[-1][1]:
            united[-1] = united[-1][0], max(end, united[-1][1])
        elif start < end:
            united.append((start, end))
    for start, end in united:
        positions = [match.start() for match in BRACKET_CHARACTER.finditer(text, start, end)]
        pairs = bracket_pairs([text[position] for position in positions])
        paired = {positions[index] for index in (*pairs, *pairs.values())}
        cuts = {
            border
            for position in positions
            if position not in inside and position not in paired
            for border in (position, position + 1)
        }
        yield from pairwise(sorted({start, end, *cuts}))


class FamiliarCharacters:
    """The characters that a model can have learnt: those that are subwords of its tokenizer, apart from rare ones.

    All others would be spelt in bytes that the model has never seen, and would come out as noise. So they are values:
    emoji, symbols, words of another script. So are characters that normalisation turns into digits, such as ² and ½,
    because 10² would become 102.
    """

    def __init__(self, tokenizer: Tokenizer, language: str, rare: Collection[str] = ()) -> None:
        """
        Args:
            tokenizer: The tokenizer.
            language: The language of the texts.
            rare: Small letters and other characters that the training text has too seldom.
        """
        self._tokenizer = tokenizer
        self._rare = frozenset(rare)
        script = script_of(language)
        # Rare characters of Chinese and the like are spelt in bytes in training, too.
        self._own_script = regex.compile(f"[{script.letters}{HAN}]") if script else None
        self._familiar: set[str] = set()
        self._is_familiar = lru_cache(maxsize=65536)(self._look_up)
        self._lookalikes = str.maketrans({mark: usual for mark, usual in LOOKALIKES.items() if not self._look_up(mark)})

    def unfamiliar(self, text: str) -> list[Span]:
        """Return the spans of unfamiliar characters. A span with a letter or digit is extended to whole words."""
        if self._familiar.issuperset(text) and ".." not in text:
            return []
        spans: list[Span] = []
        for unit in UNIT.finditer(text):
            if spans and unit.end() <= spans[-1][1]:  # part of a word that is in the last span already
                continue
            is_in_word = INSIDE_WORD.match(text, unit.start()) or (unit.group() == "’" and "‘" not in text)
            if self._is_familiar(unit.group()) or is_in_word:
                if len(unit.group()) == 1 and self._is_familiar(unit.group()):
                    self._familiar.add(unit.group())
                continue
            start, end = unit.span()
            is_word = IN_WORD.match(text, start) is not None
            if is_word or self._writes_digits(unit.group()):
                start -= len(WORD_END.search(text, 0, start)[0])
                end = WORD_START.match(text, end).end()
            # Foreign words that follow each other are one value.
            if spans and is_word and (start <= spans[-1][1] or text[spans[-1][1] : start].isspace()):
                spans[-1] = spans[-1][0], max(end, spans[-1][1])
            else:
                spans.append((start, end))
        return spans

    def with_known_marks(self, text: str) -> str:
        """Return a text with usual apostrophes and hyphens in place of unfamiliar ones. It is as long as before."""
        return text.translate(self._lookalikes)

    def _look_up(self, unit: str) -> bool:
        if unit.isspace():
            return True
        if PICTOGRAPH.search(unit) or PLACEHOLDER.search(unit) or CORPUS_TAG in unit:
            return False
        if self._writes_digits(unit):
            return False
        if self._own_script and self._own_script.search(unit):
            return True
        characters = self._tokenizer.normalize(unit)
        if not characters:
            return False
        if not self._rare.isdisjoint(regex.sub(DOTS, ELLIPSIS, characters.lower())):
            return False
        return all(map(self._tokenizer.has_subword, characters))

    def _writes_digits(self, unit: str) -> bool:
        """Return whether normalising makes digits of something else, such as a superscript or a fraction."""
        return unit not in "0123456789" and DIGIT.search(self._tokenizer.normalize(unit)) is not None
