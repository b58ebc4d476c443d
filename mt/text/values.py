"""Finds values: parts of a text that are copied, not translated, such as links, numbers, codes, tags and emoji.

Most are matches of the patterns in ``mt.formats.kinds``. Others are matches of the user's patterns, and characters that
the model cannot have learned (``mt.text.characters``).
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
EMPHASIZED_CODE = regex.compile(r"(?<!\w)_(?!_)(?=[^\s_]{0,300}[^\w\s])\S{1,300}?(?<!_)_(?!\w)")
"""Code between underscores: _http://a.example_"""
ESCAPED_WHITESPACE = regex.compile(r"\\[nrt](?=\p{Lu}|https?:|www\.|\W|$)")
"""The code of a line break or tab, as in ``Hello.\\nHow are you?``."""


class Values(Phenomenon):
    """Replaces values and terms by placeholders."""

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
"""Maximum processor time of a user's pattern on one text. Nested repetitions can take exponential time."""


def compile_patterns(patterns: Sequence[str]) -> list[regex.Pattern[str]]:
    """Compile a user's patterns, which are regular expressions of the module ``regex``.

    Raises:
        InputError: A pattern is invalid, or matches the empty text.
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
        patterns: The user's patterns from ``compile_patterns``. Their matches are values, too.
        syntax: A key of SYNTAXES. Placeholders of this syntax are values, too.
    """
    spans = [span for pattern in patterns for span in _pattern_matches(pattern, text)]
    if syntax in SYNTAXES:
        spans += [match.span() for match in SYNTAXES[syntax].finditer(text)]
    searched, kinds = text, [LONG_RUN]
    if TRIGGER.search(text):
        symbols = [match.span() for match in ESCAPED_WHITESPACE.finditer(text)]
        symbols += _first_and_last_characters(EMPHASIZED_CODE, text)
        spans += symbols
        # These symbols and some letters may touch a value. The patterns look for the ends of words, so punctuation
        # replaces them.
        searched = apply_splices(text, [Splice(start, end, "。" * (end - start)) for start, end in sorted(symbols)])
        kinds = [LONG_RUN, NON_TRANSLATABLE, ONE_DIGIT]
    searched = TOUCHING_LETTER.sub("。", searched)
    spans += [match.span() for kind in kinds for match in kind.finditer(searched)]
    return spans + _first_and_last_characters(SINGLE_QUOTED, text)


def _pattern_matches(pattern: regex.Pattern[str], text: str) -> list[Span]:
    try:
        return [match.span() for match in pattern.finditer(text, timeout=PATTERN_SECONDS)]
    except TimeoutError:
        raise InputError(
            f"text.patterns: {brief(pattern.pattern)}: takes more than {PATTERN_SECONDS} seconds on {brief(text)!r}; "
            "avoid nested repetitions, or make them possessive (++)"
        ) from None


def _first_and_last_characters(pattern: regex.Pattern[str], text: str) -> list[Span]:
    """Return the spans of the first and of the last character of each match."""
    return [(end, end + 1) for match in pattern.finditer(text) for end in (match.start(), match.end() - 1)]


LONE_ELLIPSIS = regex.compile(r"(?<!\S)…(?!\S)")


def find_values_in_elements(text: str, find: Callable[[str], list[Span]], elements: Sequence[Span]) -> list[Span]:
    """Return the spans of all values of a text with elements, in order.

    The text of an element without letters, such as "…", is a value, too. A value is split at the edge of an element
    that is inside the value, unless the value has the whole element. A value may also start or end at the edge of an
    element inside a word.

    Args:
        text: The text.
        find: Finds the values of a text without elements.
        elements: The spans of the elements.
    """
    values = find(text)
    if not elements:
        return values
    values += [match.span() for match in LONE_ELLIPSIS.finditer(text)]
    in_words = [
        cut for cut in sorted({*chain(*elements)}) if 0 < cut < len(text) and " " not in text[cut - 1 : cut + 1]
    ]
    if in_words:
        spaces = [cut + number for number, cut in enumerate(in_words)]
        spaced = " ".join(text[start:end] for start, end in pairwise([0, *in_words, len(text)]))
        values += [(start - bisect_left(spaces, start), end - bisect_left(spaces, end)) for start, end in find(spaced)]
    letters = [*(match.start() for match in LETTER.finditer(text)), len(text)]
    wordless = [(start, end) for start, end in elements if letters[bisect_left(letters, start)] >= end]
    trimmed = [(end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip())) for start, end in wordless]
    edges = sorted((edge, *span) for span in elements for edge in span)
    adapted: list[Span] = []
    for start, end in merge_spans([*values, *trimmed], text):
        inside = edges[bisect_left(edges, (start + 1,)) : bisect_left(edges, (end,))]
        crossing = {edge for edge, first, last in inside if first < start or end < last}
        adapted += pairwise([start, *sorted(crossing), end])
    return adapted


def merge_spans(spans: Iterable[Span], text: str) -> Iterator[Span]:
    """Merge spans that touch or overlap, and yield them in order.

    A bracket or quotation mark without a counterpart, as in ``((page 12)``, stays a span by itself, unless it is inside
    a longer span.
    """
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
"""A placeholder, tag, directive or link, which a translation has only if its source has it."""


def is_intact(translation: str, values: Sequence[str]) -> bool:
    """Return whether a translation has each value of its source, and no other placeholder, tag or link.

    A value does not count if a letter or digit beside it makes it a part of a longer word or number.
    """
    for value in sorted(values, key=len, reverse=True):
        start = next(find_value_positions(value, translation), None)
        if start is None:
            return False
        translation = f"{translation[:start]}\ufffc{translation[start + len(value) :]}"
    return not (TRIGGER.search(translation) and INVENTED.search(translation))


def find_value_positions(value: str, text: str) -> Iterator[int]:
    """Yield each position at which a text has a value, if no letter or digit beside it makes the value longer.

    The search starts at the first character, because a pattern of a whole repetitive value would take cubic time.
    """
    before, after = (_same_kind_pattern(character) for character in (value[0], value[-1]))
    is_longer = regex.compile(after)
    for match in regex.finditer(f"(?<!{before}){regex.escape(value[0])}", text):
        start = match.start()
        if text.startswith(value, start) and not is_longer.match(text, start + len(value)):
            yield start


def _same_kind_pattern(character: str) -> str:
    """Return a pattern of all digits for a digit, of ASCII letters for an ASCII letter, and of nothing for others."""
    if character.isdecimal():
        return r"\d"
    return "[A-Za-z]" if character.isascii() and character.isalpha() else r"(?!)"


EQUAL_SYMBOLS = str.maketrans("−٪", "-%")


class Replacement(NamedTuple):
    """A source word and its translation. In a training pair, one placeholder replaces both."""

    source: str
    target: str
    is_number: bool
    """Whether the placeholder is a number placeholder."""


class SharedValue(NamedTuple):
    """The position of a value in the source and in the target of a pair."""

    source: Span
    target: Span
    is_number: bool
    """Whether it gets a number placeholder."""


def shared_values(
    texts: Sequence[str], finders: Sequence[Callable[[str], list[Span]]], replacements: Sequence[Replacement]
) -> list[SharedValue]:
    """Return the values that occur equally often on both sides, in the order of the source.

    Args:
        texts: The source and the target.
        finders: Functions that return the spans of the values of a source and of a target.
        replacements: Words that count as values, too, unless they are inside a value. Each occurs once on its side.
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

    A word that overlaps a value is skipped.
    """
    keyed: list[tuple[Span, str | int]] = [(span, _value_key(text[slice(*span)])) for span in spans]
    for index, word in enumerate(words):
        start = text.index(word)
        keyed.append(((start, start + len(word)), index))
    by_key = defaultdict(list)
    end = 0
    for span, key in sorted(keyed, key=lambda item: (item[0][0], -item[0][1])):
        if span[0] >= end:  # a word may be inside a value, also at its start
            by_key[key].append(span)
            end = span[1]
    return by_key


def _value_key(value: str) -> str:
    """Return a key for comparing values. Values with equal numbers and equal text around these have equal keys.

    Spaces and the order of symbols and numbers do not matter: $5 equals 5 $.
    """
    digits = (part for _, digits in find_numbers(value) for part in digits)
    text = "".join(NUMBER.sub("0", in_ascii(value)).split()).translate(EQUAL_SYMBOLS)
    has_letters = any(map(str.isalpha, text))
    return " ".join([*digits, text if has_letters else "".join(sorted(text))])
