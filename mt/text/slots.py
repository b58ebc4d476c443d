"""Slots: code points that stand for items of a line while it is translated.

The tokenizer keeps each slot as a piece of its own, and the model learns to carry it over. Slots are numbered, so that
several in a sentence can change their order. Plain numbers have slots of their own, because nouns follow them: from the
other slots, which stand where names stand, a model would learn to write no noun there. Slots lie in the last
private-use plane, which hardly any text uses. If a text does contain such a character, it is an item like any other,
and comes back.
"""

import math
from collections.abc import Iterable, Sequence

import regex

from mt.core.language import TOUCHING as TOUCHING_LETTERS
from mt.text.placement import Link

FIRST_SLOT = 0x10F000
MOST_SLOTS = 64
"""The most different slots of either kind that a tokenizer can have."""
OF_NUMBERS = MOST_SLOTS
"""The number of the first slot that stands for plain numbers alone."""
SLOT = regex.compile(f"[{chr(FIRST_SLOT)}-{chr(FIRST_SLOT + 2 * MOST_SLOTS - 1)}]")
TAG = chr(FIRST_SLOT + 2 * MOST_SLOTS)
"""Stands in front of each source of a tagged corpus, behind which comes a blank. It is the code point behind the last
slot. A tokenizer that is trained on tagged text makes a piece of it; others spell it in four bytes."""
WITH_BLANK = regex.compile(rf"\ ?({SLOT.pattern})")
TOUCHED = regex.compile(rf"(?r)(?:^|[\s\p{{Ps}}\p{{Pi}}¿¡/'’-]|(?:^|[\s(\[])\"|(?![\p{{N}}])[{TOUCHING_LETTERS}])$")
"""The end of a text that a slot may touch: white space, an opening bracket or quote, a hyphen and the like, or a letter
of the languages that write no spaces."""
OF_A_WORD = regex.compile(rf"[^\P{{L}}{TOUCHING_LETTERS}]|[\p{{M}}\p{{N}}]|{SLOT.pattern}")
"""What a slot does not touch with its end: letters of the languages that write spaces, digits and other slots."""

TOO_CLOSE = regex.compile(rf"(?<={SLOT.pattern})(?=\d|{SLOT.pattern})|(?<=\d)(?={SLOT.pattern})")
"""Where a slot touches a digit or another slot."""


def slot(number: int) -> str:
    """Returns the slot with a number from 0 to 2 · MOST_SLOTS - 1."""
    return chr(FIRST_SLOT + number)


def slot_number(slot: str) -> int:
    return ord(slot) - FIRST_SLOT


def all_slots(count: int) -> list[str]:
    """Return the slots that a tokenizer has: ``count`` of them, and as many more for numbers."""
    return [slot(start + number) for start in (0, OF_NUMBERS) for number in range(count)]


def put_slots(text: str, spans: Sequence[tuple[int, int]], numbers: Sequence[int]) -> str:
    """Returns the text with slots in place of the spans, which must be in order and disjoint."""
    parts, end = [], 0
    for (start, after), number in zip(spans, numbers, strict=True):
        parts += [text[end:start], slot(number)]
        end = after
    return "".join([*parts, text[end:]])


def without_surplus(translation: str, source: str) -> tuple[str, int]:
    """Removes the slots that a translation should not have: those that are not in its source, and the second and later
    occurrences of those that are. Where a slot touches a digit or another slot, a blank is put between them, because
    two numbers would become one; unless one does so in the source.

    Args:
        translation: What the model wrote.
        source: What it translated. No slot occurs in it twice.

    Returns:
        The translation, and how many slots were removed.
    """
    left = set(SLOT.findall(source))
    removed = 0

    def once(match: regex.Match[str]) -> str:
        nonlocal removed
        if match[1] not in left:
            removed += 1
            return ""
        left.remove(match[1])
        return match[0]

    return _apart(WITH_BLANK.sub(once, translation), source), removed


def missing_slots(translation: str, source: str) -> list[str]:
    """Returns the slots of the source that the translation lacks, in order."""
    return [one for one in SLOT.findall(source) if one not in translation]


def with_missing_slots(translation: str, source: str, links: Iterable[Link]) -> str:
    """Puts the missing slots into a translation.

    A slot goes behind the translation of the linked word in front of it, or in front of that of the linked word behind
    it, whichever is nearer. If no word is linked, it is put between two words, at the same share of the text as in the
    source.

    Args:
        translation: A translation.
        source: What was translated. No slot occurs in it twice.
        links: Which words of the translation come from which of the source.
    """
    links = list(links)
    places = [(_place(one, translation, source, links), one) for one in missing_slots(translation, source)]
    # From the last place to the first, so that no place moves. Slots with one place stay in the order of the source.
    for place, one in sorted(reversed(places), key=lambda each: each[0], reverse=True):
        in_front, behind = translation[:place], translation[place:]
        blanks = ["" if TOUCHED.search(in_front) else " ", " " if OF_A_WORD.match(behind) else ""]
        translation = f"{in_front}{blanks[0]}{one}{blanks[1]}{behind}"
    return _apart(translation, source)


def _place(missing: str, translation: str, source: str, links: Sequence[Link]) -> int:
    """Returns the position in a translation at which a missing slot belongs."""
    start = source.index(missing)
    in_front = max((link for link in links if link.source_end <= start), key=lambda link: link.source_end, default=None)
    behind = min(
        (link for link in links if link.source_start > start), key=lambda link: link.source_start, default=None
    )
    if behind and (not in_front or behind.source_start - start - 1 < start - in_front.source_end):
        return behind.target_start
    if in_front:
        return in_front.target_end
    words = translation.split(" ") if translation else []
    before, after = source[:start].split(), source[start + 1 :].split()
    place = math.floor(len(before) / max(1, len(before) + len(after)) * len(words) + 0.5)
    return len(" ".join(words[:place]))


def _apart(translation: str, source: str) -> str:
    return translation if TOO_CLOSE.search(source) else TOO_CLOSE.sub(" ", translation)
