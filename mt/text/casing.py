"""Translates lines in uppercase and Lines In Title Case in lowercase.

Training text has few such lines, so a model would spell their words letter by letter. The translation of a line in
uppercase is converted to uppercase afterwards. That of a line in title case stays as it is, because most languages do
not capitalize titles like that. ``mt.text.spelling`` restores the casing of names, also in lines in lowercase.
"""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import regex

from mt.core.language import base_language
from mt.text.numbers import LETTER_RUN
from mt.text.placeholders import PLACEHOLDER
from mt.text.segment import Case, Phenomenon, Request, Segment, Vary

MAX_UPPERCASE_WORDS = 3
"""Maximum number of consecutive words that ``uppercase_random_words`` changes."""
TURKIC = {"tr", "az"}
"""Languages with dotted and dotless I."""
MIN_UPPERCASE_LETTERS = 4
"""A line with fewer uppercase letters may be an abbreviation, which needs no change."""
MIN_WORDS = 3
"""Fewer capitalized words may be a name, and fewer lowercase words a fragment of a sentence."""
CASED_WORD = regex.compile(r"(?<![\p{L}\p{N}'’])\p{L}[\p{L}\p{M}]*")

LEADING_WORD = regex.compile(rf"(?:(?!{PLACEHOLDER.pattern})[^\p{{L}}\p{{N}}])*+(\p{{L}}[\p{{L}}\p{{M}}]*+)")
"""The first word of a sentence (group 1), if only punctuation precedes it."""


def detect_case(text: str) -> Case | None:
    """Return the case of a text; None if it is mixed, or has fewer than MIN_WORDS words and is not in uppercase.

    In title case, every word is capitalized, and the text is not in uppercase. A lowercase text has neither uppercase
    letters nor titlecase letters such as ǅ.
    """
    if is_uppercase(text):
        return Case.UPPER
    words = CASED_WORD.findall(text)
    if len(words) < MIN_WORDS:
        return None
    if not text.isupper() and all(word[0].isupper() for word in words):
        return Case.TITLE
    return Case.LOWER if text.islower() else None


def is_uppercase(text: str) -> bool:
    """Return whether a text has MIN_UPPERCASE_LETTERS or more, and neither lowercase nor titlecase ones (ǅ)."""
    return text.isupper() and sum(map(str.isupper, text)) >= MIN_UPPERCASE_LETTERS


def to_sentence_case(text: str, language: str) -> str:
    """Return a text in lowercase except for its first letter.

    Words that ``to_uppercase`` would not restore, such as STRAẞE, stay in uppercase.

    Args:
        text: A text in uppercase or in title case.
        language: The language of the text.
    """
    lower = to_lowercase(text, language)
    if text.isupper():
        words = zip(text.split(" "), lower.split(" "), strict=True)
        lower = " ".join(low if to_uppercase(low, language) == word else word for word, low in words)
    first = next((index for index, letter in enumerate(lower) if letter.isalpha()), None)
    if first is None:  # Roman numerals such as Ⅳ and circled letters have cases, but are not letters
        return lower
    # This is true of titlecase letters such as ǅ, and of letters without a titlecase form, such as Georgian ones.
    needs_no_capital = lower[first].istitle() or lower[first].title() == lower[first]
    if needs_no_capital or to_uppercase(lower[first], language) != text[first]:
        return lower
    return lower[:first] + text[first] + lower[first + 1 :]


def capitalize_sentences(text: str, starts: Iterable[int], language: str) -> str:
    """Capitalize the first word of given sentences, unless it has an uppercase letter already, and return the text.

    Args:
        text: The text.
        starts: The positions at which these sentences begin in the text.
        language: The language of the text.
    """
    for start in starts:
        word = LEADING_WORD.match(text, start)
        if word and not any(map(str.isupper, word[1])):
            text = text[: word.start(1)] + capitalize(word[1], language) + text[word.end(1) :]
    return text


def to_uppercase(text: str, language: str) -> str:
    """Return a text in uppercase by the rules of its language."""
    if base_language(language) in TURKIC:
        text = text.replace("i", "İ")
    return text.upper()


def capitalize(word: str, language: str) -> str:
    """Capitalize the first letter of a word by the rules of its language, unless that changes the word's length."""
    first = "İ" if word[0] == "i" and base_language(language) in TURKIC else word[0].title()
    return first + word[1:] if len(first) == 1 else word


def to_lowercase(text: str, language: str) -> str:
    """Return a text in lowercase by the rules of its language. Its length does not change."""
    if base_language(language) in TURKIC:
        text = text.replace("I", "ı")
    return text.replace("İ", "i").lower()  # Python would lowercase İ to two characters


def uppercase_random_words(text: str, random: np.random.Generator, language: str) -> str:
    """Return a text with one to MAX_UPPERCASE_WORDS consecutive words, chosen at random, in uppercase."""
    words = list(LETTER_RUN.finditer(text))
    if not words:
        return text
    count = int(random.integers(1, MAX_UPPERCASE_WORDS + 1))
    first = int(random.integers(len(words)))
    start, end = words[first].start(), words[min(first + count, len(words)) - 1].end()
    return text[:start] + to_uppercase(text[start:end], language) + text[end:]


class Casing(Phenomenon):
    """Lowercases sentences in uppercase or title case, and uppercases the translations of those in uppercase."""

    variations: ClassVar[dict[str, Vary]] = {
        "lower_case": lambda source, target, language, random: (to_lowercase(source, language), target),
        "capitals": lambda source, target, language, random: (uppercase_random_words(source, random, language), target),
    }

    def prepare_segment(self, segment: Segment, request: Request | None = None) -> list[Segment]:
        case, text = detect_case(segment.text), segment.text
        if case in (Case.UPPER, Case.TITLE):
            text = to_sentence_case(text, self.layer.source_language)
        return [segment.evolve(text=text, case=case)]

    def prepare_pair(self, source: Segment, target: str) -> tuple[Segment, str]:
        if is_uppercase(target):
            target = to_sentence_case(target, self.layer.target_language)
        return self.prepare_segment(source)[0], target

    def restore(self, segment: Segment, translation: str, parts: list[str]) -> list[str]:
        if segment.case is not Case.UPPER:
            return parts
        return [to_uppercase(part, self.layer.target_language) for part in parts]
