"""Slots: code points that stand for values of a line, such as links, while it is translated.

The tokenizer keeps each placeholder as a piece of its own, and the model learns to carry it over. Placeholders are
numbered, so that several in a sentence can change their order. Plain numbers have placeholders of their own, because
nouns follow them: from the other placeholders, which stand where names stand, a model would learn to write no noun
there. Placeholders lie in the last private-use plane, which hardly any text uses. If a text does contain such a
character, it is a value like any other, and comes back."""

import math
from collections.abc import Iterable, Sequence

import regex

from mt.core.language import TOUCHING as TOUCHING_LETTERS
from mt.text.markup.placement import AlignmentLink

FIRST_PLACEHOLDER = 0x10F000
MAX_PLACEHOLDERS = 64
"""Maximum number of different placeholders of either kind in a tokenizer."""
FIRST_NUMBER_PLACEHOLDER = MAX_PLACEHOLDERS
"""The number of the first placeholder that stands for plain numbers alone."""
PLACEHOLDER = regex.compile(f"[{chr(FIRST_PLACEHOLDER)}-{chr(FIRST_PLACEHOLDER + 2 * MAX_PLACEHOLDERS - 1)}]")
CORPUS_TAG = chr(FIRST_PLACEHOLDER + 2 * MAX_PLACEHOLDERS)
"""Stands in front of each source of a tagged corpus, behind which comes a blank. It is the code point behind the last
placeholder. A tokenizer that is trained on tagged text makes a piece of it; others spell it in four bytes."""
PLACEHOLDER_WITH_BLANK = regex.compile(rf"\ ?({PLACEHOLDER.pattern})")
TOUCHABLE_END = regex.compile(
    rf"(?r)(?:^|[\s\p{{Ps}}\p{{Pi}}¿¡/'’-]|(?:^|[\s(\[])\"|(?![\p{{N}}])[{TOUCHING_LETTERS}])$"
)
"""The end of a text that a placeholder may touch: white space, an opening bracket or quote, a hyphen and the like, or a
letter of the languages that write no spaces."""
WORD_OR_PLACEHOLDER = regex.compile(rf"[^\P{{L}}{TOUCHING_LETTERS}]|[\p{{M}}\p{{N}}]|{PLACEHOLDER.pattern}")
"""Text that a placeholder does not touch with its end: letters of the languages that write spaces, digits and other
placeholders."""

TOO_CLOSE = regex.compile(rf"(?<={PLACEHOLDER.pattern})(?=\d|{PLACEHOLDER.pattern})|(?<=\d)(?={PLACEHOLDER.pattern})")
"""Where a placeholder touches a digit or another placeholder."""


def placeholder(number: int) -> str:
    """Return the placeholder with a number from 0 to 2 · MAX_PLACEHOLDERS - 1."""
    return chr(FIRST_PLACEHOLDER + number)


def all_placeholders(count: int) -> list[str]:
    """Return the placeholders that a tokenizer has: ``count`` of them, and as many more for numbers."""
    return [placeholder(start + number) for start in (0, FIRST_NUMBER_PLACEHOLDER) for number in range(count)]


def numbered_placeholders(are_numbers: Iterable[bool], order: Sequence[int]) -> list[str]:
    """Return a placeholder for each value.

    Args:
        are_numbers: Whether each value gets a placeholder for numbers.
        order: The numbers of the placeholders of either kind, in the order of their values.
    """
    placeholders = map(placeholder, order), (placeholder(FIRST_NUMBER_PLACEHOLDER + number) for number in order)
    return [next(placeholders[is_number]) for is_number in are_numbers]


def replace_spans(text: str, spans: Sequence[tuple[int, int]], replacements: Sequence[str]) -> str:
    """Return the text with a replacement for each span. The spans are in order and disjoint."""
    parts, end = [], 0
    for (start, next_start), replacement in zip(spans, replacements, strict=True):
        parts += [text[end:start], replacement]
        end = next_start
    return "".join([*parts, text[end:]])


def fill_placeholders(text: str, values: Iterable[str]) -> str:
    """Return a text with the first value in place of the first placeholder, whatever its number, and so on."""
    remaining = iter(values)
    return PLACEHOLDER.sub(lambda _: next(remaining), text)


def without_surplus_placeholders(translation: str, source: str) -> tuple[str, int]:
    """Remove the placeholders that are not in the source, and the second and later occurrences of those that are.

    Where a placeholder touches a digit or another placeholder, a blank is put between them, because two numbers would
    become one; unless the source has such a place, too.

    Args:
        translation: The model's translation.
        source: The text that was translated. No placeholder occurs in it twice.

    Returns:
        The translation, and the number of removed placeholders.
    """
    allowed = set(PLACEHOLDER.findall(source))
    removed = 0

    def keep_once(match: regex.Match[str]) -> str:
        nonlocal removed
        if match[1] not in allowed:
            removed += 1
            return ""
        allowed.remove(match[1])
        return match[0]

    return _separate(PLACEHOLDER_WITH_BLANK.sub(keep_once, translation), source), removed


def missing_placeholders(translation: str, source: str) -> list[str]:
    """Return the placeholders of the source that the translation lacks, in order."""
    return [mark for mark in PLACEHOLDER.findall(source) if mark not in translation]


def with_missing_placeholders(translation: str, source: str, links: Sequence[AlignmentLink]) -> str:
    """Put the missing placeholders into a translation.

    A placeholder goes after the translation of the linked word before it, or before that of the linked word after it,
    whichever is nearer. If no word is linked, it goes between two words, at the same share of the text as in the
    source.

    Args:
        translation: A translation.
        source: The text that was translated. No placeholder occurs in it twice.
        links: The links between the words of both.
    """
    missing = missing_placeholders(translation, source)
    positions = [(_position(mark, translation, source, links), mark) for mark in missing]
    # From the last position to the first, so that none moves. Placeholders at one position keep the source order.
    for position, mark in sorted(reversed(positions), key=lambda each: each[0], reverse=True):
        head, tail = translation[:position], translation[position:]
        before, after = "" if TOUCHABLE_END.search(head) else " ", " " if WORD_OR_PLACEHOLDER.match(tail) else ""
        translation = f"{head}{before}{mark}{after}{tail}"
    return _separate(translation, source)


def _position(missing: str, translation: str, source: str, links: Sequence[AlignmentLink]) -> int:
    """Return the position in a translation at which a missing placeholder belongs."""
    start = source.index(missing)
    before = max((link for link in links if link.source_end <= start), key=lambda link: link.source_end, default=None)
    after = min((link for link in links if link.source_start > start), key=lambda link: link.source_start, default=None)
    if after and (not before or after.source_start - start - 1 < start - before.source_end):
        return after.target_start
    if before:
        return before.target_end
    words = translation.split(" ") if translation else []
    head, tail = len(source[:start].split()), len(source[start + 1 :].split())
    return len(" ".join(words[: math.floor(head / max(1, head + tail) * len(words) + 0.5)]))


def _separate(translation: str, source: str) -> str:
    return translation if TOO_CLOSE.search(source) else TOO_CLOSE.sub(" ", translation)
