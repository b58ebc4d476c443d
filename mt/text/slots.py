"""Slots: code points that stand for values of a line, such as links, while it is translated.

The tokenizer keeps each slot as a piece of its own, and the model learns to carry it over. Slots are numbered, so that
several in a sentence can change their order. Plain numbers have slots of their own, because nouns follow them: from the
other slots, which stand where names stand, a model would learn to write no noun there. Slots lie in the last
private-use plane, which hardly any text uses. If a text does contain such a character, it is a value like any other,
and comes back.
"""

import math
from collections.abc import Iterable, Sequence

import regex

from mt.core.language import TOUCHING as TOUCHING_LETTERS
from mt.text.placement import Link

FIRST_SLOT = 0x10F000
MAX_SLOTS = 64
"""Maximum number of different slots of either kind in a tokenizer."""
OF_NUMBERS = MAX_SLOTS
"""The number of the first slot that stands for plain numbers alone."""
SLOT = regex.compile(f"[{chr(FIRST_SLOT)}-{chr(FIRST_SLOT + 2 * MAX_SLOTS - 1)}]")
TAG = chr(FIRST_SLOT + 2 * MAX_SLOTS)
"""Stands in front of each source of a tagged corpus, behind which comes a blank. It is the code point behind the last
slot. A tokenizer that is trained on tagged text makes a piece of it; others spell it in four bytes."""
SLOT_WITH_BLANK = regex.compile(rf"\ ?({SLOT.pattern})")
TOUCHABLE_END = regex.compile(
    rf"(?r)(?:^|[\s\p{{Ps}}\p{{Pi}}¿¡/'’-]|(?:^|[\s(\[])\"|(?![\p{{N}}])[{TOUCHING_LETTERS}])$"
)
"""The end of a text that a slot may touch: white space, an opening bracket or quote, a hyphen and the like, or a letter
of the languages that write no spaces."""
WORD_OR_SLOT = regex.compile(rf"[^\P{{L}}{TOUCHING_LETTERS}]|[\p{{M}}\p{{N}}]|{SLOT.pattern}")
"""Text that a slot does not touch with its end: letters of the languages that write spaces, digits and other slots."""

TOO_CLOSE = regex.compile(rf"(?<={SLOT.pattern})(?=\d|{SLOT.pattern})|(?<=\d)(?={SLOT.pattern})")
"""Where a slot touches a digit or another slot."""


def slot(number: int) -> str:
    """Return the slot with a number from 0 to 2 · MAX_SLOTS - 1."""
    return chr(FIRST_SLOT + number)


def all_slots(count: int) -> list[str]:
    """Return the slots that a tokenizer has: ``count`` of them, and as many more for numbers."""
    return [slot(start + number) for start in (0, OF_NUMBERS) for number in range(count)]


def numbered_slots(are_numbers: Iterable[bool], order: Sequence[int]) -> list[str]:
    """Return a slot for each value.

    Args:
        are_numbers: Whether each value gets a slot for numbers.
        order: The numbers of the slots of either kind, in the order of their values.
    """
    slots = map(slot, order), (slot(OF_NUMBERS + number) for number in order)
    return [next(slots[is_number]) for is_number in are_numbers]


def replace_spans(text: str, spans: Sequence[tuple[int, int]], replacements: Sequence[str]) -> str:
    """Return the text with a replacement for each span. The spans are in order and disjoint."""
    parts, end = [], 0
    for (start, next_start), replacement in zip(spans, replacements, strict=True):
        parts += [text[end:start], replacement]
        end = next_start
    return "".join([*parts, text[end:]])


def fill_slots(text: str, values: Iterable[str]) -> str:
    """Return a text with the first value in place of the first slot, whatever its number, and so on."""
    remaining = iter(values)
    return SLOT.sub(lambda _: next(remaining), text)


def without_surplus(translation: str, source: str) -> tuple[str, int]:
    """Remove the slots that are not in the source, and the second and later occurrences of those that are.

    Where a slot touches a digit or another slot, a blank is put between them, because two numbers would become one;
    unless the source has such a place, too.

    Args:
        translation: The model's translation.
        source: The text that was translated. No slot occurs in it twice.

    Returns:
        The translation, and the number of removed slots.
    """
    allowed = set(SLOT.findall(source))
    removed = 0

    def keep_once(match: regex.Match[str]) -> str:
        nonlocal removed
        if match[1] not in allowed:
            removed += 1
            return ""
        allowed.remove(match[1])
        return match[0]

    return _separate(SLOT_WITH_BLANK.sub(keep_once, translation), source), removed


def missing_slots(translation: str, source: str) -> list[str]:
    """Return the slots of the source that the translation lacks, in order."""
    return [mark for mark in SLOT.findall(source) if mark not in translation]


def with_missing_slots(translation: str, source: str, links: Sequence[Link]) -> str:
    """Put the missing slots into a translation.

    A slot goes after the translation of the linked word before it, or before that of the linked word after it,
    whichever is nearer. If no word is linked, it goes between two words, at the same share of the text as in the
    source.

    Args:
        translation: A translation.
        source: The text that was translated. No slot occurs in it twice.
        links: The links between the words of both.
    """
    missing = missing_slots(translation, source)
    positions = [(_position(mark, translation, source, links), mark) for mark in missing]
    # From the last position to the first, so that none moves. Slots with one position keep the order of the source.
    for position, mark in sorted(reversed(positions), key=lambda each: each[0], reverse=True):
        head, tail = translation[:position], translation[position:]
        before, after = "" if TOUCHABLE_END.search(head) else " ", " " if WORD_OR_SLOT.match(tail) else ""
        translation = f"{head}{before}{mark}{after}{tail}"
    return _separate(translation, source)


def _position(missing: str, translation: str, source: str, links: Sequence[Link]) -> int:
    """Return the position in a translation at which a missing slot belongs."""
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
