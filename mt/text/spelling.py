"""Finds typing errors: words that the training text does not have, but that a single error makes of one that it has.

A model spells a word that it does not know in pieces that it has seldom seen together, and one such word can spoil the
translation of the whole sentence. So a likely word is put in its place, by the simplest form of a noisy channel
(Kernighan et al. 1990): all errors of ``mt.text.keyboard`` count as equally likely, and the most frequent word wins.

A word that is known from the training text is never changed. But a rare word may look like an error, too. So only
frequent words are put in place of others, and how frequent they have to be is measured on validation sources.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import regex

from mt.text.case import in_small_letters, with_capital
from mt.text.keyboard import without_a_typo
from mt.text.slots import SLOT

FEWEST_TIMES = 3
"""A word that the training text has less often may be a typing error itself."""
MOST_WORDS = 300_000
"""The most different words that are kept, the most frequent ones."""
MOST_PARTS = 1_000_000
"""The most different parts of lines that are collected before their words are counted."""
LONGEST_WORD = 50
"""The most letters of a word that may be a typing error. The time to look for others grows with their square."""
MOST_LETTERS = 100
"""The most letters that can have been dropped, the most usual ones: names and the like have letters of other
languages, thousands if it is Chinese."""

NO_PART_OF_A_WORD = rf"[^\W\p{{L}}\p{{M}}]|{SLOT.pattern}|[@#]"
WORD = regex.compile(
    rf"(?<![\p{{L}}\p{{M}}'’]|{NO_PART_OF_A_WORD})\p{{L}}[\p{{L}}\p{{M}}]*(?:['’]\p{{L}}[\p{{L}}\p{{M}}]*)*"
    rf"(?![\p{{L}}\p{{M}}]|{NO_PART_OF_A_WORD})"
)
"""A word, with the apostrophes inside it, that touches neither a digit nor a slot."""


@dataclass(frozen=True)
class Correction:
    """A word of a text that stands there in place of another one, which was typed."""

    start: int
    """Where the word begins in the text, and where it ends."""
    end: int
    typed: str


class Spelling:
    """The words of a model's training text, and which unknown ones are taken for them."""

    def __init__(self, counts: dict[str, int], language: str, fewest: int = FEWEST_TIMES) -> None:
        """
        Args:
            counts: How often the training text has each word, as ``count_words`` returns it.
            language: The language of the words.
            fewest: How often the training text has a word at least that an unknown one is taken for.
        """
        self.counts = counts
        self.fewest = fewest
        self._language = language
        self._known = {_key(word, language): word for word in counts}
        self.has_capitals = any(not word.islower() for word in counts)
        """Whether the training text has capitals at all."""
        letters = Counter(letter for word in self._known for letter in set(word))
        self._letters = sorted(letters, key=lambda letter: (-letters[letter], letter))[:MOST_LETTERS]
        self._likeliest = lru_cache(maxsize=65536)(self._look_up)

    def __reduce__(self) -> tuple:
        return Spelling, (self.counts, self._language, self.fewest)

    def corrected(self, text: str) -> tuple[str, tuple[Correction, ...]]:
        """Returns a sentence without the typing errors that are found, and what was corrected.

        A word with capitals behind its first letter is left as it is. So is a word with a capital, unless it begins the
        sentence or is taken for one that has a capital inside sentences, too. What is put in place of a word begins
        with a capital if the word does.
        """
        parts: list[str] = []
        corrections: list[Correction] = []
        end = length = 0
        is_first = True
        for found in WORD.finditer(text):
            typed = found.group()
            word = self._instead_of(typed, is_first)
            is_first = False
            if word is not None:
                parts += [text[end : found.start()], word]
                length += found.start() - end
                corrections.append(Correction(length, length + len(word), typed))
                length += len(word)
                end = found.end()
        return ("".join([*parts, text[end:]]), tuple(corrections)) if corrections else (text, ())

    def in_usual_case(self, text: str) -> str:
        """Returns a text that has capitals where the training text mostly has them, as in I, Tom, TV and iPhone, and
        where it has them already. Each letter stays one character."""
        return WORD.sub(lambda found: self._in_usual_case(found.group()), text)

    def _in_usual_case(self, word: str) -> str:
        usual = self._known.get(_key(word, self._language))
        if usual is None or usual == in_small_letters(usual, self._language):
            return word
        return usual.replace("'", "’") if "’" in word else usual

    def times(self, word: str) -> int:
        """Returns how often the training text has a word."""
        return self.counts.get(self._known.get(_key(word, self._language), ""), 0)

    def counts_with(self, others: dict[str, int]) -> dict[str, int]:
        """Returns how often the training text and another one, whose words were counted, have each word together."""
        total = Counter(self.counts)
        for word, times in others.items():
            total[self._known.get(_key(word, self._language), word)] += times
        return _most_frequent(total)

    def _instead_of(self, typed: str, is_first: bool) -> str | None:
        if not 2 <= len(typed) <= LONGEST_WORD:
            return None
        key = _key(typed, self._language)
        if key in self._known or typed[1:] != in_small_letters(typed[1:], self._language):
            return None
        word = self._likeliest(key)
        if word is None:
            return None
        if typed[0].islower():
            return in_small_letters(word, self._language)
        return None if word[0].islower() and not is_first else with_capital(word, self._language)

    def _look_up(self, key: str) -> str | None:
        possible = {self._known.get(word) for word in without_a_typo(key, self._language, self._letters)} - {None}
        often = [word for word in possible if word is not None and self.counts[word] >= self.fewest]
        return max(often, key=lambda word: (self.counts[word], word), default=None)


def count_words(lines: Iterable[str], language: str) -> dict[str, int]:
    """Returns how often a text has each word, the most frequent first, at most MOST_WORDS.

    Words that differ in case alone are one word. It is written as it mostly is behind the first word of a line.
    """
    first: Counter[str] = Counter()
    others: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    written: Counter[str] = Counter()
    """How often each way to write a word stands behind the first word of a line."""

    def count_parts() -> None:
        for parts, tells_case in ((first, False), (others, True)):
            for part, times in parts.items():
                for word in WORD.findall(part):
                    key = _key(word, language)
                    counts[key] += times
                    if tells_case:
                        written[word.replace("’", "'")] += times
            parts.clear()

    for line in lines:
        parts = line.split()
        first.update(parts[:1])
        others.update(parts[1:])
        if len(first) + len(others) >= MOST_PARTS:
            count_parts()
    count_parts()
    usual = {key: key for key in counts}
    for word, times in written.items():
        key = _key(word, language)
        if (times, word) > (written[usual[key]], usual[key]):  # small letters come behind capitals
            usual[key] = word
    return _most_frequent({usual[key]: times for key, times in counts.items()})


def _most_frequent(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_WORDS])


def _key(word: str, language: str) -> str:
    """Returns what all ways to write a word have in common."""
    return in_small_letters(word, language).replace("’", "'")
