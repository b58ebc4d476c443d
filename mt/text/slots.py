"""Slots: code points that stand for items of a line while it is translated.

The tokenizer keeps each slot as a piece of its own, and the model learns to carry it over. Slots are numbered, so that
several in a sentence can change their order. They lie in the last private-use plane, which hardly any text uses. If a
text does contain such a character, it is an item like any other, and comes back.
"""

import math
from collections.abc import Sequence

import regex

FIRST_SLOT = 0x10F000
MOST_SLOTS = 64
"""The most different slots that a tokenizer can have."""
SLOT = regex.compile(f"[{chr(FIRST_SLOT)}-{chr(FIRST_SLOT + MOST_SLOTS - 1)}]")
WITH_BLANK = regex.compile(rf"\ ?({SLOT.pattern})")


TOUCHING = regex.compile(rf"(?<={SLOT.pattern})(?=[0-9]|{SLOT.pattern})|(?<=[0-9])(?={SLOT.pattern})")
"""Where a slot touches a digit or another slot."""


def slot(number: int) -> str:
    """Returns the slot with a number from 0 to MOST_SLOTS - 1."""
    return chr(FIRST_SLOT + number)


def slot_number(slot: str) -> int:
    return ord(slot) - FIRST_SLOT


def put_slots(text: str, spans: Sequence[tuple[int, int]], numbers: Sequence[int]) -> str:
    """Returns the text with slots in place of the spans, which must be in order and disjoint."""
    parts, end = [], 0
    for (start, after), number in zip(spans, numbers, strict=True):
        parts += [text[end:start], slot(number)]
        end = after
    return "".join([*parts, text[end:]])


def repaired(translation: str, source: str) -> tuple[str, int]:
    """Makes a translation hold exactly the slots of its source, each once.

    A slot that is there twice loses its second occurrence, and one that is not in the source is removed. A missing slot
    is put between two words, at the same share of the text as in the source. Where a slot touches a digit or another
    slot, as none does in the source, a blank is put between them, because two numbers would become one.

    Args:
        translation: What the model wrote.
        source: What it translated. No slot occurs in it twice.

    Returns:
        The translation, and how many slots were removed or put back.
    """
    expected = SLOT.findall(source)
    written = SLOT.findall(translation)
    if sorted(written) == sorted(expected):
        return _apart(translation, source), 0
    seen: set[str] = set()
    removed = 0

    def once(match: regex.Match[str]) -> str:
        nonlocal removed
        if match[1] in seen or match[1] not in expected:
            removed += 1
            return ""
        seen.add(match[1])
        return match[0]

    translation = WITH_BLANK.sub(once, translation)
    missing = [one for one in expected if one not in seen]
    for one in missing:
        translation = _inserted(translation, one, source)
    return _apart(translation, source), removed + len(missing)


def _apart(translation: str, source: str) -> str:
    return translation if TOUCHING.search(source) else TOUCHING.sub(" ", translation)


def _inserted(translation: str, missing: str, source: str) -> str:
    """Puts a slot into a translation, where it stands in the source in proportion to the number of words."""
    words = translation.split(" ") if translation else []
    before, _, after = source.partition(missing)
    share = len(before.split()) / max(1, len(before.split()) + len(after.split()))
    place = math.floor(share * len(words) + 0.5)
    return " ".join([*words[:place], missing, *words[place:]])
