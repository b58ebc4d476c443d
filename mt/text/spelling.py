"""Corrects typing errors, and restores the casing of words, by the word counts of the training text.

An unknown word consists of subwords that the model has seldom seen together, and one such word can spoil the
translation of the whole sentence. So it is replaced by a word that one typing error turns into it. This is the simplest
noisy channel model (Kernighan et al. 1990): all errors of ``mt.text.keyboard`` are equally likely, and the most
frequent word wins.

A word of the training text or of a general word list is never changed. Other words may be names or abbreviations. So
the replacement must be frequent. A short one must be more frequent, because any short word is one error away from some
other word.

The general word lists of about fifty languages are those of simplemma. They have inflected forms, some abbreviations
and frequent names. The list of a language is read from the installed package at the first look-up.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice
from typing import ClassVar

import regex
from simplemma import is_known
from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

from mt.core.coded_text import Splice, apply_splices
from mt.core.language import base_language, writes_spaces
from mt.text.casing import LEADING_WORD, capitalize, capitalize_sentences, to_lowercase
from mt.text.keyboard import add_typos, correction_candidates
from mt.text.placeholders import PLACEHOLDER
from mt.text.segment import Case, Correction, Phenomenon, Request, Segment, Vary
from mt.text.sentences import split_sentences

SIMPLEMMA_CODES = {"no": "nb", "fil": "tl", "bs": "hbs", "hr": "hbs", "sr": "hbs"}
"""Languages with other codes in simplemma."""
APOSTROPHE = regex.compile("['’]")
MIN_LETTERS_AFTER_APOSTROPHE = 3
"""Fewer letters after an apostrophe, as in don't and dog's, are not a word by themselves."""


def has_word_list(language: str) -> bool:
    return _code(language) in SUPPORTED_LANGUAGES


@lru_cache(maxsize=65536)
def is_listed(word: str, language: str) -> bool:
    """Return whether the word list of a language has a word, in its own casing or in lowercase.

    Only the last part of a word such as l'arbre is looked up. A language without a word list has no words.
    """
    last_part = APOSTROPHE.split(word)[-1]
    word = last_part if len(last_part) >= MIN_LETTERS_AFTER_APOSTROPHE else word
    # The frugal dictionaries take a tenth of the memory, and a tenth of a millisecond for a look-up.
    return has_word_list(language) and any(
        is_known(form, _code(language), low_memory=True) for form in (word, word.lower())
    )


def _code(language: str) -> str:
    code = base_language(language)
    return SIMPLEMMA_CODES.get(code, code)


MIN_WORD_COUNT = 3
"""Minimum frequency in the training text of a replacement. Rarer words may be typing errors themselves."""
SHORT_WORD_COUNT = 4_000
"""A replacement of a word of n letters must occur SHORT_WORD_COUNT / √(10ⁿ) times in a training text of up to a million
words: 400 times for two letters, 40 for four, 4 for six. In a longer text, it must occur that often per million
words."""
MIN_FOREIGN_LETTERS = 4
"""Minimum number of letters of a word of the target language that is not corrected."""
MAX_KEPT_WORDS = 300_000
"""Maximum number of different words to store, the most frequent ones."""
COUNTED_LINES = 200_000
"""Number of lines whose words are counted together."""
MAX_WORD_CHARACTERS = 50
"""Maximum length of a corrected word. The time of a correction grows with its square."""
MAX_DROPPED_LETTERS = 100
"""Maximum number of different letters that may have been deleted, the most frequent ones. The training text can have
thousands of letters of other languages, in names for example."""

_NO_WORD_CHARACTER = rf"[^\W\p{{L}}\p{{M}}]|{PLACEHOLDER.pattern}|[@#]"
CORRECTABLE_WORD = regex.compile(
    rf"(?<![\p{{L}}\p{{M}}'’]|{_NO_WORD_CHARACTER})\p{{L}}[\p{{L}}\p{{M}}]*(?:['’]\p{{L}}[\p{{L}}\p{{M}}]*)*"
    rf"(?![\p{{L}}\p{{M}}]|{_NO_WORD_CHARACTER})"
)
"""A word, with the apostrophes inside it, that touches neither a digit nor a placeholder."""
ABBREVIATION_END = regex.compile(r"\.(?!\s*$|\s+\p{Lu})")
"""A full stop that does not end a sentence."""


@dataclass(eq=False)
class Spelling(Phenomenon):
    """Corrects typing errors and casing by the word counts of one model's training text."""

    variations: ClassVar[dict[str, Vary]] = {
        "typos": lambda source, target, language, random: (add_typos(source, random, language), target)
    }

    counts: dict[str, int]
    """The frequency of each word in the training text, from ``count_source_words``."""
    language: str
    min_count: int = MIN_WORD_COUNT
    """Minimum frequency in the training text of a replacement of any length."""
    target_language: str | None = None
    """The target language, whose words are not corrected."""
    capitalized: Collection[str] | None = None
    """The words that the training targets usually capitalize inside sentences; None: they are unknown, and the casing
    of translations does not change."""

    def __post_init__(self) -> None:
        self._known = {_normalize_word(word, self.language): word for word in self.counts}
        self.has_capitals = any(not word.islower() for word in self.counts)
        """Whether the training text has uppercase letters at all."""
        self._parts = {part for word in self._known for part in word.split("'")}
        letters = Counter(letter for word in self._known for letter in set(word))
        self._letters = sorted(letters, key=lambda letter: (-letters[letter], letter))[:MAX_DROPPED_LETTERS]
        self._proposal = lru_cache(maxsize=65536)(self._propose_correction)
        self._million_words = max(1.0, sum(self.counts.values()) / 1e6)
        self.has_word_list = has_word_list(self.language)
        """Whether the source language has a general word list."""

    def __reduce__(self) -> tuple:
        return Spelling, (self.counts, self.language, self.min_count, self.target_language, self.capitalized)

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        text, corrections = segment.text, segment.corrections
        # In uppercase and title case, names look like other words, and would be corrected, too.
        if request.correct and segment.case not in (Case.UPPER, Case.TITLE):
            text, corrections = self.correct(text)
        return [self._restore_casing(segment.evolve(text=text, corrections=corrections))]

    def restore(self, segment: Segment, translation: str, parts: list[str]) -> list[str]:
        """Lowercase the first word of a translation if its source begins in lowercase, unless the word is
        capitalized."""
        source, target = LEADING_WORD.match(segment.original), LEADING_WORD.match(translation)
        if self.capitalized is None or self.target_language is None or not source or not target:
            return parts
        start, end = target.span(1)
        whole_word = CORRECTABLE_WORD.match(translation, start)
        word = whole_word[0].replace("’", "'") if whole_word else target[1]
        if source[1][0].islower() and target[1].istitle() and word not in self.capitalized:
            parts[start:end] = to_lowercase(target[1], self.target_language)
        return parts

    def prepare_pair(self, source: Segment, target: str) -> tuple[Segment, str]:
        return self._restore_casing(source), target

    def _restore_casing(self, segment: Segment) -> Segment:
        """Truecase a lowercased segment, and capitalize the starts of its sentences."""
        if not segment.case or not self.has_capitals:
            return segment
        cased = segment.text if segment.case is Case.LOWER else segment.original
        starts = list(accumulate(map(len, split_sentences(cased, self.language)), initial=0))
        text = capitalize_sentences(segment.text, starts[0 if segment.is_sentence_start else 1 : -1], self.language)
        return segment.evolve(text=self.truecase(text))

    def correct(self, text: str) -> tuple[str, tuple[Correction, ...]]:
        """Correct the typing errors of a sentence.

        These words are not corrected:

        - words with uppercase letters after the first letter
        - capitalized words inside the sentence, unless the replacement is capitalized inside sentences, too
        - words with a full stop that marks an abbreviation
        - words beside another unknown word without a replacement, because both may be a name or a foreign phrase

        The replacement of a capitalized word is capitalized.

        Returns:
            The corrected sentence, and the corrections in order.
        """
        matches = list(CORRECTABLE_WORD.finditer(text))
        proposed = [self._proposal(match[0], index == 0) for index, match in enumerate(matches)]
        splices: list[Splice] = []
        corrections: list[Correction] = []
        shift = 0
        for index, (match, word) in enumerate(zip(matches, proposed, strict=True)):
            typed = match[0]
            neighbors = range(max(0, index - 1), min(index + 2, len(matches)))
            if (
                word is not None
                and not ABBREVIATION_END.match(text, match.end())
                and all(proposed[other] or self._is_real(matches[other][0]) for other in neighbors)
            ):
                start = match.start() + shift
                corrections.append(Correction(start, start + len(word), typed))
                splices.append(Splice(match.start(), match.end(), word))
                shift += len(word) - len(typed)
        return apply_splices(text, splices), tuple(corrections)

    def truecase(self, text: str) -> str:
        """Return a text whose words have the casing that is most frequent in the training text, such as I, Tom and TV.

        Uppercase letters of the text are not lowercased if the training text has a word in lowercase. The length of
        the text does not change.
        """
        return CORRECTABLE_WORD.sub(lambda match: self._truecase_word(match[0]), text)

    def _truecase_word(self, word: str) -> str:
        known = self._known.get(_normalize_word(word, self.language))
        if known is None or known == to_lowercase(known, self.language):
            return word
        return known.replace("'", "’") if "’" in word else known

    def merged_counts(self, counts: dict[str, int]) -> dict[str, int]:
        """Add other word counts to those of the training text, and return at most MAX_KEPT_WORDS of them."""
        total = Counter(self.counts)
        for word, count in counts.items():
            total[self._known.get(_normalize_word(word, self.language), word)] += count
        return _most_frequent(total)

    def _propose_correction(self, typed: str, is_first: bool) -> str | None:
        """Return the replacement of a typed word; None if it is not a typing error.

        Args:
            typed: The word.
            is_first: Whether it is the first word of its sentence.
        """
        if not 2 <= len(typed) <= MAX_WORD_CHARACTERS:
            return None
        key = _normalize_word(typed, self.language)
        if key in self._known or typed[1:] != to_lowercase(typed[1:], self.language):
            return None
        word = self._most_frequent_candidate(key)
        if word is None or (not typed[0].islower() and word[0].islower() and not is_first) or self._is_real(typed):
            return None
        if self.target_language and len(typed) >= MIN_FOREIGN_LETTERS and is_listed(typed, self.target_language):
            return None
        return to_lowercase(word, self.language) if typed[0].islower() else capitalize(word, self.language)

    def _is_real(self, word: str) -> bool:
        """Return whether a word, or each of its parts between apostrophes, is in the training text or a word list."""
        key = _normalize_word(word, self.language)
        if key in self._known or is_listed(word, self.language):
            return True
        parts = key.split("'")
        return len(parts) > 1 and all(part in self._parts or is_listed(part, self.language) for part in parts)

    def _most_frequent_candidate(self, key: str) -> str | None:
        """Return the most frequent word that one typing error turns into a normalized word; None if all are too
        rare."""
        candidates = correction_candidates(key, self.language, self._letters)
        words = {self._known[word] for word in candidates if word in self._known}
        min_count = max(self.min_count, SHORT_WORD_COUNT / 10 ** (len(key) / 2) * self._million_words)
        frequent = (word for word in words if self.counts[word] >= min_count)
        return max(frequent, key=lambda word: (self.counts[word], word), default=None)


def learn_spelling(
    sources: Iterable[str], targets: Iterable[str], language: str, target_language: str, base: Spelling | None
) -> Spelling | None:
    """Count the words of the training text. Return None if there are none, or if the language is written without
    spaces.

    Args:
        sources: The training sources.
        targets: The training targets.
        language: The language of the sources.
        target_language: The target language.
        base: The word counts of the base run, which are added; None if there are none.
    """
    if not writes_spaces(language):
        return None
    counts = count_source_words(sources, language)
    counts = base.merged_counts(counts) if base else counts
    if not counts:
        return None
    capitalized = None
    if writes_spaces(target_language):
        words = count_source_words(targets, target_language)
        capitalized = {word for word in words if word[0].isupper()}.union(base.capitalized or () if base else ())
    return Spelling(counts, language, target_language=target_language, capitalized=capitalized)


def count_source_words(lines: Iterable[str], language: str) -> dict[str, int]:
    """Map the words of a text to their counts, the most frequent first. The map has at most MAX_KEPT_WORDS words.

    Words that differ in casing only are counted together, in the casing that is most frequent after the first word of a
    line.
    """
    counts: Counter[str] = Counter()
    cased: Counter[str] = Counter()  # of each casing of a word, after the first word of a line
    lines = iter(lines)
    while chunk := list(islice(lines, COUNTED_LINES)):
        first = Counter(part for line in chunk for part in line.split(maxsplit=1)[:1])
        others = Counter(part for line in chunk for part in line.split()[1:])
        for parts, tells_case in ((first, False), (others, True)):
            for part, times in parts.items():
                for word in CORRECTABLE_WORD.findall(part):
                    counts[_normalize_word(word, language)] += times
                    if tells_case:
                        cased[word.replace("’", "'")] += times
    best_casing = {key: key for key in counts}
    for word, times in cased.items():
        key = _normalize_word(word, language)
        if (times, word) > (cased[best_casing[key]], best_casing[key]):  # lowercase letters sort after uppercase ones
            best_casing[key] = word
    return _most_frequent({best_casing[key]: times for key, times in counts.items()})


def _most_frequent(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_KEPT_WORDS])


def _normalize_word(word: str, language: str) -> str:
    """Return a word in lowercase, with ASCII apostrophes."""
    return to_lowercase(word, language).replace("’", "'")
