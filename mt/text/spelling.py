"""Corrects typing errors: unknown words that a single error makes of a word of the training text.

A model spells an unknown word in subwords that it has seldom seen together, and one such word can spoil the translation
of the whole sentence. So a likely word is put in its place, by the simplest form of a noisy channel (Kernighan et al.
1990): all errors of ``mt.text.keyboard`` count as equally likely, and the most frequent word wins.

A word that the training text or a general word list has is never changed. What
neither has may still be a name or an abbreviation. So a word replaces another only if it is frequent, and the more so
the shorter it is, because other words of few letters are seldom far from a short one.

The general word lists, of some fifty languages, are those of simplemma: inflected forms, some abbreviations and
frequent names. The list of a language is read from the installed package at the first look-up.
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
"""Languages that simplemma knows by another code."""
APOSTROPHE = regex.compile("['’]")
MIN_LETTERS_AFTER_APOSTROPHE = 3
"""Fewer letters, as in don't and dog's, make no word of their own."""


def has_word_list(language: str) -> bool:
    return _code(language) in SUPPORTED_LANGUAGES


@lru_cache(maxsize=65536)
def is_listed(word: str, language: str) -> bool:
    """Return whether the word list of a language has a word, in lowercase or as it is written.

    Of l'arbre, the last part counts. A language without a word list has no words.
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
"""A word that the training text has less often may be a typing error itself."""
SHORT_WORD_COUNT = 4_000
"""A word that replaces an unknown one of n letters must occur SHORT_WORD_COUNT / √(10ⁿ) times in a training text of up
to a million words: 400 times for two letters, 40 for four, 4 for six. In a longer text, it must do so per million."""
MIN_FOREIGN_LETTERS = 4
"""Shorter words of the target language may be typing errors."""
MAX_KEPT_WORDS = 300_000
"""Maximum number of different words that are kept, the most frequent ones."""
COUNTED_LINES = 200_000
"""Number of lines whose words are counted together."""
MAX_WORD_CHARACTERS = 50
"""Maximum length of a corrected word. The time to look for others grows with its square."""
MAX_DROPPED_LETTERS = 100
"""Maximum number of different letters that can have been dropped, the most usual ones: names and the like have letters
of other languages, thousands if it is Chinese."""

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
    """The word counts of one model's training text, with which typing errors and casing are corrected.

    The model's ``TextLayer`` holds the instance.
    """

    variations: ClassVar[dict[str, Vary]] = {
        "typos": lambda source, target, language, random: (add_typos(source, random, language), target)
    }

    counts: dict[str, int]
    """How often the training text has each word, as ``count_source_words`` returns it."""
    language: str
    min_count: int = MIN_WORD_COUNT
    """How often the training text must have a word of any length that replaces an unknown one."""
    target_language: str | None = None
    """Its words are left as they are, too."""
    capitalized: Collection[str] | None = None
    """The words that the training targets mostly capitalize inside of sentences; None: they are unknown, and the casing
    of translations stays as it is."""

    def __post_init__(self) -> None:
        self._known = {_key(word, self.language): word for word in self.counts}
        self.has_capitals = any(not word.islower() for word in self.counts)
        """Whether the training text has capitals at all."""
        self._parts = {part for word in self._known for part in word.split("'")}
        letters = Counter(letter for word in self._known for letter in set(word))
        self._letters = sorted(letters, key=lambda letter: (-letters[letter], letter))[:MAX_DROPPED_LETTERS]
        self._proposal = lru_cache(maxsize=65536)(self._correction)
        self._million_words = max(1.0, sum(self.counts.values()) / 1e6)
        self.has_word_list = has_word_list(self.language)
        """Whether real words that the training text lacks are known."""

    def __reduce__(self) -> tuple:
        return Spelling, (self.counts, self.language, self.min_count, self.target_language, self.capitalized)

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        text, corrections = segment.text, segment.corrections
        # In uppercase, typing errors are not corrected: all words look alike, so names would be taken for errors.
        if request.correct and segment.case not in (Case.UPPER, Case.TITLE):
            text, corrections = self.correct(text)
        return [self._with_capitals(segment.evolve(text=text, corrections=corrections))]

    def restore(self, segment: Segment, translation: str, parts: list[str]) -> list[str]:
        """Begin a translation in lowercase if its source does, unless its first word is always capitalized."""
        source, target = LEADING_WORD.match(segment.original), LEADING_WORD.match(translation)
        if self.capitalized is None or self.target_language is None or not source or not target:
            return parts
        start, end = target.span(1)
        longer = CORRECTABLE_WORD.match(translation, start)
        name = longer[0].replace("’", "'") if longer else target[1]
        if source[1][0].islower() and target[1].istitle() and name not in self.capitalized:
            parts[start:end] = to_lowercase(target[1], self.target_language)
        return parts

    def prepare_pair(self, source: Segment, target: str) -> tuple[Segment, str]:
        return self._with_capitals(source), target

    def _with_capitals(self, segment: Segment) -> Segment:
        """Capitalize the starts of sentences of a lowercased segment, and words that the training text capitalizes."""
        if not segment.case or not self.has_capitals:
            return segment
        written = segment.text if segment.case is Case.LOWER else segment.original
        starts = list(accumulate(map(len, split_sentences(written, self.language)), initial=0))
        text = capitalize_sentences(segment.text, starts[0 if segment.is_sentence_start else 1 : -1], self.language)
        return segment.evolve(text=self.truecase(text))

    def correct(self, text: str) -> tuple[str, tuple[Correction, ...]]:
        """Correct the typing errors of a sentence.

        Returns:
            The corrected sentence, and the corrections in order.

        A word with capitals after its first letter is left as it is. So is a word with a capital, unless it begins the
        sentence or is taken for one that has a capital inside sentences, too. A correction begins with a capital if the
        word does. A word is also left as it is if a full stop makes it an abbreviation, or if a word beside it is
        unknown and no typing error either: they may be a name, or of another language.
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
        """Return a text with capitals where the training text mostly has them, as in I, Tom, TV and iPhone, and where
        it has them already. Each letter stays one character."""
        return CORRECTABLE_WORD.sub(lambda match: self._in_usual_case(match[0]), text)

    def _in_usual_case(self, word: str) -> str:
        usual = self._known.get(_key(word, self.language))
        if usual is None or usual == to_lowercase(usual, self.language):
            return word
        return usual.replace("'", "’") if "’" in word else usual

    def merged_counts(self, counts: dict[str, int]) -> dict[str, int]:
        """Return the sum of the training text's word counts and of other word counts, at most MAX_KEPT_WORDS words."""
        total = Counter(self.counts)
        for word, count in counts.items():
            total[self._known.get(_key(word, self.language), word)] += count
        return _most_frequent(total)

    def _correction(self, typed: str, is_first: bool) -> str | None:
        if not 2 <= len(typed) <= MAX_WORD_CHARACTERS:
            return None
        key = _key(typed, self.language)
        if key in self._known or typed[1:] != to_lowercase(typed[1:], self.language):
            return None
        word = self._look_up(key)
        if word is None or (not typed[0].islower() and word[0].islower() and not is_first) or self._is_real(typed):
            return None
        if self.target_language and len(typed) >= MIN_FOREIGN_LETTERS and is_listed(typed, self.target_language):
            return None
        return to_lowercase(word, self.language) if typed[0].islower() else capitalize(word, self.language)

    def _is_real(self, word: str) -> bool:
        """Return whether a word, or each of its parts between apostrophes, is in the training text or a word list."""
        key = _key(word, self.language)
        if key in self._known or is_listed(word, self.language):
            return True
        parts = key.split("'")
        return len(parts) > 1 and all(part in self._parts or is_listed(part, self.language) for part in parts)

    def _look_up(self, key: str) -> str | None:
        typos = correction_candidates(key, self.language, self._letters)
        words = {self._known[word] for word in typos if word in self._known}
        fewest = max(self.min_count, SHORT_WORD_COUNT / 10 ** (len(key) / 2) * self._million_words)
        frequent = (word for word in words if self.counts[word] >= fewest)
        return max(frequent, key=lambda word: (self.counts[word], word), default=None)


def learn_spelling(
    sources: Iterable[str], targets: Iterable[str], language: str, target_language: str, base: Spelling | None
) -> Spelling | None:
    """Learn the words of the training text; None if it has none, or if its language writes no spaces.

    Args:
        sources: The training sources.
        targets: The training targets.
        language: The language of the sources.
        target_language: The target language.
        base: The words of the base run, which are added; None if there are none.
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
    """Count the words of a text. Return word → frequency, the most frequent first, at most MAX_KEPT_WORDS words.

    Words that differ in case alone are one word, written as it mostly is after the first word of a line.
    """
    counts: Counter[str] = Counter()
    cased: Counter[str] = Counter()  # of each way to write a word, after the first word of a line
    lines = iter(lines)
    while chunk := list(islice(lines, COUNTED_LINES)):
        first = Counter(part for line in chunk for part in line.split(maxsplit=1)[:1])
        others = Counter(part for line in chunk for part in line.split()[1:])
        for parts, tells_case in ((first, False), (others, True)):
            for part, times in parts.items():
                for word in CORRECTABLE_WORD.findall(part):
                    counts[_key(word, language)] += times
                    if tells_case:
                        cased[word.replace("’", "'")] += times
    usual = {key: key for key in counts}
    for word, times in cased.items():
        key = _key(word, language)
        if (times, word) > (cased[usual[key]], usual[key]):  # lowercase letters come after capitals
            usual[key] = word
    return _most_frequent({usual[key]: times for key, times in counts.items()})


def _most_frequent(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_KEPT_WORDS])


def _key(word: str, language: str) -> str:
    """Return the form that all spellings of a word share."""
    return to_lowercase(word, language).replace("’", "'")
