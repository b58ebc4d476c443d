"""Values that are not translated and come back whole: links, addresses, numbers, codes, placeholders, tags, emoji.

Most are found by the patterns of ``mt.formats.kinds``; the others are the user's own, and characters that the model
cannot have learned (``mt.text.characters``).
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import regex

from mt.core.coded_text import Span, Splice, apply_splices
from mt.core.errors import InputError, brief
from mt.core.language import TOUCHING
from mt.formats.kinds import KINDS, LONG_RUN, NON_TRANSLATABLE, ONE_DIGIT, SINGLE_QUOTED, SYNTAXES, TRIGGER
from mt.text.brackets import bracket_pairs
from mt.text.numbers import NUMBER, find_numbers, in_ascii, is_plain_number
from mt.text.placeholders import PLACEHOLDER, placeholder
from mt.text.segment import LETTER, LayerState, Phenomenon, Request, Segment, Term
from mt.tokenizer.tokenizer import FIRST_SYMBOL

TOUCHING_LETTER = regex.compile(rf"(?![\d\p{{Sc}}])[{TOUCHING}{chr(FIRST_SYMBOL)}-\U0010ffff]")
WORD_CHARACTER = rf"[^\W{TOUCHING}]"
"""A letter, digit or underscore, except the letters of scripts without spaces (TOUCHING)."""

BRACKET_CHARACTER = regex.compile(r"[\p{Ps}\p{Pe}\p{Pi}\p{Pf}\"']")
EMPHASISED_CODE = regex.compile(r"(?<!\w)_(?!_)(?=[^\s_]{0,300}[^\w\s])\S{1,300}?(?<!_)_(?!\w)")
"""Something that is no word, between underscores: _http://a.example_"""
ESCAPED_BLANK = regex.compile(r"\\[nrt](?=\p{Lu}|https?:|www\.|\W|$)")
"""The code of a line break or tab, as in ``Hello.\\nHow are you?``."""


class Values(Phenomenon):
    """Puts placeholders in the place of values and terms."""

    def __init__(self, layer: LayerState) -> None:
        super().__init__(layer)
        self._patterns = compile_patterns(layer.config.patterns)

    def find_values(self, text: str, side: int, syntax: str) -> list[Span]:
        return find_values(text, self._patterns, syntax)

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        end = segment.start + len(segment.text)
        elements = [
            (max(first - segment.start, 0), min(last, end) - segment.start)
            for first, last in request.elements
            if first < end and last > segment.start
        ]
        matches = request.find_values(segment.text, elements)
        values = tuple(value for _, value in matches)
        masks = (Splice(*span, placeholder(-1 if isinstance(value, Term) else 0)) for span, value in matches)
        text = apply_splices(segment.text, masks)
        return [segment.evolve(text=text, original=text, values=values)]

    def rejects(self, source: str, translation: str) -> bool:
        allowed = PLACEHOLDER.findall(source)
        return not Counter(PLACEHOLDER.findall(translation)) <= Counter(set(allowed))


PATTERN_SECONDS = 5
"""The processor time after which a user's pattern is refused: on some texts, nested repetitions take forever."""


def compile_patterns(patterns: Sequence[str]) -> list[regex.Pattern[str]]:
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


def find_values(text: str, patterns: Iterable[regex.Pattern[str]], syntax: str = "") -> list[Span]:
    """Return the spans of all values of a text, in any order. They may overlap.

    Raises:
        InputError: A pattern takes more than PATTERN_SECONDS.

    Args:
        patterns: The user's patterns from ``compile_patterns``, whose matches are values, too.
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
    return spans + _ends(SINGLE_QUOTED, text)


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


def find_values_in_elements(text: str, find: Callable[[str], list[Span]], elements: Sequence[Span]) -> list[Span]:
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
    for start, end in merge_spans([*values, *trimmed], text):
        inside = borders[bisect_left(borders, (start + 1,)) : bisect_left(borders, (end,))]
        crossing = {border for border, first, last in inside if first < start or end < last}
        adapted += pairwise([start, *sorted(crossing), end])
    return adapted


def merge_spans(spans: Iterable[Span], text: str) -> Iterator[Span]:
    """Merge spans that touch or overlap, but keep brackets and quotation marks apart that have no counterpart, as
    in ``((page 12)``, unless they are inside of a longer span."""
    merged: list[Span] = []
    inside: set[int] = set()
    for start, end in sorted(spans):
        if end - start > 1:
            inside.update(match.start() for match in BRACKET_CHARACTER.finditer(text, start, end))
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif start < end:
            merged.append((start, end))
    for start, end in merged:
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


INVENTED = regex.compile(f"{KINDS['placeholder in braces']}|{KINDS['tag']}|{KINDS['directive']}|{KINDS['link']}")
"""A translation has no match of this unless its source has it."""


def is_intact(translation: str, values: Sequence[str]) -> bool:
    """Return whether a translation has each value of its source, and no other placeholder, tag or link.

    A value that touches another letter or digit, and so has become part of something longer, does not count.
    """
    for value in sorted(values, key=len, reverse=True):
        start = next(find_value_positions(value, translation), None)
        if start is None:
            return False
        translation = f"{translation[:start]}\ufffc{translation[start + len(value) :]}"
    return not (TRIGGER.search(translation) and INVENTED.search(translation))


def find_value_positions(value: str, text: str) -> Iterator[int]:
    """Yield each position at which a text has a value that touches no other letter or digit.

    A pattern of the whole value would take cubic time if the value repeats itself.
    """
    before, after = (_like(character) for character in (value[0], value[-1]))
    is_longer = regex.compile(after)
    for match in regex.finditer(f"(?<!{before}){regex.escape(value[0])}", text):
        start = match.start()
        if text.startswith(value, start) and not is_longer.match(text, start + len(value)):
            yield start


def _like(character: str) -> str:
    return r"\d" if character.isdecimal() else "[A-Za-z]" if character.isascii() and character.isalpha() else r"(?!)"


SAME_SIGNS = str.maketrans("−٪", "-%")


class Replacement(NamedTuple):
    """A source word and its translation. In a training pair, one placeholder replaces both."""

    source: str
    target: str
    is_number: bool
    """Whether the placeholder is one for plain numbers."""


class SharedValue(NamedTuple):
    """The position of a value in the source and in the target of a pair."""

    source: Span
    target: Span
    is_number: bool
    """Whether it gets a placeholder for numbers."""


def shared_values(
    texts: Sequence[str], finders: Sequence[Callable[[str], list[Span]]], replacements: Sequence[Replacement]
) -> list[SharedValue]:
    """Return the values that occur equally often on both sides, in the order of the source.

    Args:
        texts: The source and the target.
        finders: For the source and for the target, a function that returns the spans of a text's values.
        replacements: Words that count as values, too, unless they lie inside one. Each occurs once on its side.
    """
    source, target = texts
    sources = _spans_by_key(source, finders[0](source), [words.source for words in replacements])
    if not sources:
        return []
    targets = _spans_by_key(target, finders[1](target), [words.target for words in replacements])
    return sorted(
        SharedValue(
            *spans, replacements[key].is_number if isinstance(key, int) else is_plain_number(source[slice(*spans[0])])
        )
        for key in sources
        if len(sources[key]) == len(targets[key])
        for spans in zip(sources[key], targets[key], strict=True)
    )


def _spans_by_key(text: str, spans: Sequence[Span], words: Sequence[str]) -> defaultdict[str | int, list[Span]]:
    """Map the key of each value to the spans of all equal values, and the index of each word to its span.

    A word that overlaps a value is left out.
    """
    keyed: list[tuple[Span, str | int]] = [(span, _key(text[slice(*span)])) for span in spans]
    for index, word in enumerate(words):
        start = text.index(word)
        keyed.append(((start, start + len(word)), index))
    by_key = defaultdict(list)
    end = 0
    for span, key in sorted(keyed, key=lambda item: (item[0][0], -item[0][1])):
        if span[0] >= end:  # a word may lie inside a value, also at its beginning
            by_key[key].append(span)
            end = span[1]
    return by_key


def _key(value: str) -> str:
    """Return a key that is the same for equal values: those with the same numbers, and the same text around them.

    A currency or other sign may stand before or after a number, and spaces are ignored.
    """
    digits = (part for _, digits in find_numbers(value) for part in digits)
    text = "".join(NUMBER.sub("0", in_ascii(value)).split()).translate(SAME_SIGNS)
    has_letters = any(map(str.isalpha, text))
    return " ".join([*digits, text if has_letters else "".join(sorted(text))])
