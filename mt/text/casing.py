"""Casing of lines: lines in uppercase and Lines In Title Case are lowercased before they are translated.

Text for training has hardly any such lines, so a model would spell their words letter by letter. The translation of a
line in uppercase is put into capitals afterwards. That of a line in title case is left as it is, because most languages
do not write titles so. Names get their capitals back, also in lines in lowercase
(``mt.text.spelling``).
"""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import regex

from mt.core.language import base_language
from mt.text.numbers import LETTER_RUN
from mt.text.placeholders import PLACEHOLDER
from mt.text.segment import Case, Phenomenon, Request, Segment, Vary

MAX_WORDS_IN_CAPITALS = 3
"""The most words in a row that are put into capitals."""
TURKIC = {"tr", "az"}
MIN_CAPITALS = 4
"""A line with fewer capitals may be an abbreviation, which is a word like any other."""
MIN_WORDS = 3
"""A line of fewer words that all begin with capitals may be a name, and one in lowercase a part of something."""
CASED_WORD = regex.compile(r"(?<![\p{L}\p{N}'’])\p{L}[\p{L}\p{M}]*")

LEADING_WORD = regex.compile(rf"(?:(?!{PLACEHOLDER.pattern})[^\p{{L}}\p{{N}}])*+(\p{{L}}[\p{{L}}\p{{M}}]*+)")
"""The first word of a sentence, unless something else than punctuation stands in front of it."""


def detect_case(text: str) -> Case | None:
    """Return the case of a text; None if it is mixed, or has fewer than MIN_WORDS words and is not in uppercase.

    In title case, every word begins with a capital, and not all is in uppercase. In lowercase, there are neither
    capitals nor titlecase letters such as ǅ.
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
    """Return whether a text has capitals and neither lowercase letters nor titlecase letters such as ǅ."""
    return text.isupper() and sum(map(str.isupper, text)) >= MIN_CAPITALS


def to_sentence_case(text: str, language: str) -> str:
    """Return a text in lowercase, except its first letter, and except words that capitalizing would not restore,
    such as STRAẞE.

    Args:
        text: A text in uppercase or in title case.
        language: The text's language.
    """
    small = to_lowercase(text, language)
    if text.isupper():
        words = zip(text.split(" "), small.split(" "), strict=True)
        small = " ".join(low if to_uppercase(low, language) == word else word for word, low in words)
    first = next((index for index, letter in enumerate(small) if letter.isalpha()), None)
    if first is None:  # Roman numerals such as Ⅳ and letters in circles have capitals, but are no letters
        return small
    # True of titlecase letters such as ǅ, and of letters that stay small at the start of a sentence, as in Georgian.
    begins_in_capitals = small[first].istitle() or small[first].title() == small[first]
    if begins_in_capitals or to_uppercase(small[first], language) != text[first]:
        return small
    return small[:first] + text[first] + small[first + 1 :]


def capitalize_sentences(text: str, starts: Iterable[int], language: str) -> str:
    """Capitalize the first word of given sentences, unless it has a capital already, and return the text.

    Args:
        text: The text.
        starts: The positions of the text at which these sentences begin.
        language: The text's language.
    """
    for start in starts:
        word = LEADING_WORD.match(text, start)
        if word and not any(map(str.isupper, word[1])):
            text = text[: word.start(1)] + capitalize(word[1], language) + text[word.end(1) :]
    return text


def to_uppercase(text: str, language: str) -> str:
    """Return a text in uppercase, by the rules of its language."""
    if base_language(language) in TURKIC:
        text = text.replace("i", "İ")
    return text.upper()


def capitalize(word: str, language: str) -> str:
    """Capitalize the first letter of a word by the rules of its language, unless that changes the word's length."""
    first = "İ" if word[0] == "i" and base_language(language) in TURKIC else word[0].title()
    return first + word[1:] if len(first) == 1 else word


def to_lowercase(text: str, language: str) -> str:
    """Return a text in lowercase, by the rules of its language. The length does not change."""
    if base_language(language) in TURKIC:
        text = text.replace("I", "ı")
    return text.replace("İ", "i").lower()  # Python makes two characters of İ


def uppercase_random_words(text: str, random: np.random.Generator, language: str) -> str:
    """Return a text with one to MAX_WORDS_IN_CAPITALS words in a row, chosen at random, in uppercase."""
    words = list(LETTER_RUN.finditer(text))
    if not words:
        return text
    count = int(random.integers(1, MAX_WORDS_IN_CAPITALS + 1))
    first = int(random.integers(len(words)))
    start, end = words[first].start(), words[min(first + count, len(words)) - 1].end()
    return text[:start] + to_uppercase(text[start:end], language) + text[end:]


class Casing(Phenomenon):
    """Lowercases sentences in uppercase or title case, and puts translations of those in uppercase into capitals."""

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
