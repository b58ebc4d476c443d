"""Placeholders: characters that stand for the values of a line, such as URLs, while it is translated.

Each placeholder is one token, which the model learns to copy. Placeholders are numbered, so that the order of several
in a sentence can change. Plain numbers have placeholders of their own, because nouns follow numbers. The other
placeholders are in the positions of names, and a model would learn from them that no noun follows. Placeholders are
characters of the last private-use plane, which hardly any text uses. If a text contains such a character, it is a
value, too, and is copied.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from operator import itemgetter

import regex

from mt.core.language import TOUCHING as TOUCHING_LETTERS
from mt.text.placement import AlignmentLink
from mt.tokenizer.tokenizer import TokenizerPair

FIRST_PLACEHOLDER = 0x10F000
MAX_SEGMENT_TERMS = 0x4000
"""Maximum number of terms in a segment. Their placeholders precede FIRST_PLACEHOLDER; they are in no vocabulary."""
MAX_PLACEHOLDERS = 64
"""Maximum number of placeholders of each of the two kinds (for plain numbers, and for other values)."""
FIRST_NUMBER_PLACEHOLDER = MAX_PLACEHOLDERS
"""The number of the first placeholder for plain numbers."""
PLACEHOLDER = regex.compile(
    f"[{chr(FIRST_PLACEHOLDER - MAX_SEGMENT_TERMS)}-{chr(FIRST_PLACEHOLDER + 2 * MAX_PLACEHOLDERS - 1)}]"
)
CORPUS_TAG = chr(FIRST_PLACEHOLDER + 2 * MAX_PLACEHOLDERS)
"""The corpus tag, which precedes each source of a tagged corpus, separated by a space. A tokenizer that is trained on
tagged text makes it one token; others write it as four bytes."""
PLACEHOLDER_WITH_SPACE = regex.compile(rf"\ ?({PLACEHOLDER.pattern})")
TOUCHABLE_END = regex.compile(
    rf"(?r)(?:^|[\s\p{{Ps}}\p{{Pi}}¿¡/'’-]|(?:^|[\s(\[])\"|(?![\p{{N}}])[{TOUCHING_LETTERS}])$"
)
"""The end of a text that needs no space before a placeholder: whitespace, an opening bracket or quotation mark, a
hyphen and similar characters, or a letter of a language without spaces between words."""
WORD_OR_PLACEHOLDER = regex.compile(rf"[^\P{{L}}{TOUCHING_LETTERS}]|[\p{{M}}\p{{N}}]|{PLACEHOLDER.pattern}")
"""Characters that must be separated from a preceding placeholder: letters of languages with spaces between words,
digits and other placeholders."""

WORD_REST = regex.compile(r"(?:(?<=\p{L}\p{M}*)['’-]\p{L}[\p{L}\p{M}]*)*+")

_VALUE = f"[{chr(FIRST_PLACEHOLDER - MAX_SEGMENT_TERMS)}-{chr(FIRST_PLACEHOLDER + MAX_PLACEHOLDERS - 1)}]"
_LETTER = rf"[^\P{{L}}{TOUCHING_LETTERS}]"
TOO_CLOSE = regex.compile(
    rf"(?<={PLACEHOLDER.pattern})(?=\d|{PLACEHOLDER.pattern})|(?<=\d)(?={PLACEHOLDER.pattern})"
    rf"|(?<={_VALUE})(?={_LETTER})|(?<={_LETTER})(?={_VALUE})"
)
"""The empty string between a placeholder and an adjacent digit or placeholder, or between a placeholder that is not for
numbers and an adjacent letter of a language with spaces between words."""
AFTER_WORD = regex.compile(rf"(?<={_LETTER})({PLACEHOLDER.pattern})(?!\w)")
LETTER_END = regex.compile(r"(?r)[\p{L}\p{M}]$")


def placeholder(number: int) -> str:
    """Return the placeholder with a number: 0 to 63 for values, 64 to 127 for plain numbers, -1 and below for terms."""
    return chr(FIRST_PLACEHOLDER + number)


def all_placeholders(count: int) -> list[str]:
    """Return the placeholders of a vocabulary: the first ``count`` for values, then the first ``count`` for numbers."""
    return [placeholder(start + number) for start in (0, FIRST_NUMBER_PLACEHOLDER) for number in range(count)]


def assign_placeholders(are_numbers: Iterable[bool | None], order: Sequence[int]) -> list[str]:
    """Assign a different placeholder to each value.

    Args:
        are_numbers: For each value, whether it is a plain number, which gets a number placeholder; None for a term.
        order: The placeholder numbers to assign. Values and plain numbers are counted separately.

    Returns:
        The placeholder of each value.
    """
    placeholders: dict[bool | None, Iterator[str]] = {
        False: map(placeholder, order),
        True: (placeholder(FIRST_NUMBER_PLACEHOLDER + number) for number in order),
        None: map(placeholder, count(-1, -1)),
    }
    return [next(placeholders[is_number]) for is_number in are_numbers]


def fill_placeholders(text: str, values: Iterable[str]) -> str:
    """Replace the placeholders of a text by values, in order of position."""
    remaining = iter(values)
    return PLACEHOLDER.sub(lambda _: next(remaining), text)


def remove_surplus_placeholders(translation: str, source: str) -> tuple[str, int]:
    """Remove placeholders that the source lacks, and repetitions of the others.

    A placeholder that touches the word before it, as that of ¹ in ``house¹``, is also removed if it touches no word in
    the translation, so that it is inserted anew by word alignment.

    A space is inserted between a placeholder and an adjacent digit, placeholder or, except for number placeholders,
    letter, so that two values do not become one. No spaces are inserted if placeholders of the source have such
    neighbors.

    Args:
        translation: The model's output.
        source: The prepared text that was translated. No placeholder occurs twice.

    Returns:
        The translation, and the number of removed placeholders.
    """
    if not PLACEHOLDER.search(translation):
        return translation, 0
    allowed = set(PLACEHOLDER.findall(source))
    after_words = set(AFTER_WORD.findall(source))
    removed = 0

    def keep_once(match: regex.Match[str]) -> str:
        nonlocal removed
        if match[1] in after_words and not LETTER_END.search(translation, 0, match.start(1)):
            return ""
        if match[1] not in allowed:
            removed += 1
            return ""
        allowed.remove(match[1])
        return match[0]

    return _separate_placeholders(PLACEHOLDER_WITH_SPACE.sub(keep_once, translation), source), removed


def missing_placeholders(translation: str, source: str) -> list[str]:
    """Return the placeholders of a source that its translation lacks, in the order of the source."""
    return [token for token in PLACEHOLDER.findall(source) if token not in translation]


def insert_missing_placeholders(
    translation: str, source: str, links: Sequence[AlignmentLink], missing: Iterable[str]
) -> str:
    """Insert missing placeholders into a translation, and return the result.

    A placeholder is inserted next to the translation of the nearest aligned source word: after it if the word precedes
    the placeholder, else before it. If no word is aligned, the placeholder is inserted at the end, or at the start if
    the source starts with it. Terms are inserted next to words only, separated by spaces.

    Args:
        translation: A translation.
        source: The prepared text that was translated. No placeholder occurs twice.
        links: The word alignment of source and translation.
        missing: The placeholders to insert, in the order of the source.
    """
    to_words = [link for link in links if regex.search(r"\p{L}", translation[link.target_start : link.target_end])]
    positions: list[tuple[int, str]] = []
    for token in missing:
        start = source.index(token)
        usable = to_words if token < placeholder(0) else links
        distances = [(start - link.source_end, link.target_end) for link in usable if link.source_end <= start]
        distances += [
            (link.source_start - start - 1, link.target_start) for link in usable if link.source_start > start
        ]
        _, position = min(distances, key=itemgetter(0), default=(0, len(translation) if start else 0))
        # A link may end at an apostrophe or hyphen inside a word, as in aujourd'hui.
        positions.append((WORD_REST.match(translation, position).end(), token))
    # Insertion from the last position to the first does not move the others. Ties keep the order of the source.
    for position, token in sorted(reversed(positions), key=itemgetter(0), reverse=True):
        head, tail = translation[:position], translation[position:]
        start = source.index(token)
        is_term = token < placeholder(0)
        ends_word = not is_term and start > 0 and WORD_OR_PLACEHOLDER.match(source, start - 1)
        begins_word = not is_term and WORD_OR_PLACEHOLDER.match(source, start + 1)
        if begins_word and not ends_word and tail.startswith(" "):
            head, tail = f"{head} ", tail[1:]
        if ends_word and not begins_word and head.endswith(" "):
            head, tail = head[:-1], f" {tail}"
        before = "" if ends_word or TOUCHABLE_END.search(head) else " "
        after = " " if WORD_OR_PLACEHOLDER.match(tail) and not begins_word else ""
        translation = f"{head}{before}{token}{after}{tail}"
    return _separate_placeholders(translation, source)


def _separate_placeholders(translation: str, source: str) -> str:
    """Insert spaces where placeholders touch letters, digits or each other, unless some do so in the source."""
    return translation if TOO_CLOSE.search(source) else TOO_CLOSE.sub(" ", translation)


def count_placeholders(tokenizers: TokenizerPair) -> int:
    """Return the number of placeholders of each kind, for plain numbers and for other values, in both vocabularies."""
    sides = tokenizers.source, tokenizers.target
    for number in range(MAX_PLACEHOLDERS):
        names = placeholder(number), placeholder(FIRST_NUMBER_PLACEHOLDER + number)
        if not all(side.has_subword(name) for side in sides for name in names):
            return number
    return MAX_PLACEHOLDERS
