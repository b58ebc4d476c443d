"""Adds missing final punctuation to sources, such as the question mark of a question, and removes it from translations.

A model whose training text nearly always has final punctuation translates "where is the station" worse than "Where is
the station?". The first word decides which mark is added: most training sentences with *where* as the first word end
with a question mark.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import ClassVar

import regex

from mt.config.text import FINAL_MARKS
from mt.core.language import writes_spaces
from mt.text.casing import to_lowercase
from mt.text.segment import Pairs, Phenomenon, Request, Segment, Vary
from mt.text.sentences import EDGE_MARK, split_sentences

FINAL_PUNCTUATION = regex.compile(rf"(?r)\s*[{FINAL_MARKS}]+\s*$")  # (?r): searched from the end
FINAL_MARK = regex.compile(rf"(?r)\s*(?:\.{{2,}}|[{FINAL_MARKS}])$")
OPENING_MARK = regex.compile(r"^[¿¡]\s*")
"""The Spanish marks in front of a question or an exclamation."""
OPEN_END = regex.compile(r"(?r)[\p{L}\p{M}\p{N}\p{Co}]$")
"""A letter, a digit or a placeholder: the end of a text without punctuation."""
WORD_WITH_APOSTROPHES = regex.compile(r"[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*")
MIN_FINAL_MARK_SHARE = 0.95
"""Final marks are added if at least this share of the training pairs ends with one on both sides."""
MIN_SENTENCES = 10
"""Minimum number of training sentences with the same first word that decide which mark is added after this word."""


class FinalPunctuation(Phenomenon):
    """Adds final punctuation to sources without it, and removes it from their translations."""

    variations: ClassVar[dict[str, Vary]] = {
        "unpunctuated": lambda source, target, language, random: strip_final_punctuation(source, target)
    }

    @staticmethod
    def learn(pairs: Pairs, language: str) -> dict[str, object]:
        return {"final_marks": learn_final_marks(pairs(), language)} if writes_spaces(language) else {}

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        marks, language = self.layer.config.final_marks, self.layer.source_language
        added = choose_final_mark(segment.masked, marks, language) if marks and not segment.is_continued else ""
        if EDGE_MARK.match(segment.after):  # only whole sentences are questions, not clauses
            added = added and next(iter(marks))
        return [segment.evolve(text=segment.text + added, added_punctuation=added)]

    def restore(self, segment: Segment, translation: str, parts: list[str]) -> list[str]:
        if not segment.added_punctuation:
            return parts
        start, end = span_without_final_mark(translation)
        return [""] * start + parts[start:end] + [""] * (len(parts) - end)


def learn_final_marks(pairs: Iterable[tuple[str, str]], language: str) -> dict[str, tuple[str, ...]]:
    """Learn the most frequent final mark of sentences for each first word.

    Args:
        pairs: Sources and targets.
        language: The language of the sources, which has spaces between words.

    Returns:
        A map from each final mark to the first words of sentences that mostly end with it. The most frequent mark is
        the default: it comes first and maps to no words. The map is empty if less than MIN_FINAL_MARK_SHARE of the
        pairs end with marks on both sides. Then, no mark is added.
    """
    lines = 0
    counts: Counter[str] = Counter()
    by_word: dict[str, Counter[str]] = defaultdict(Counter)
    for source, target in pairs:
        source, target = source.rstrip(), target.rstrip()
        lines += 1
        if FINAL_PUNCTUATION.search(source) and FINAL_PUNCTUATION.search(target):
            counts[source[-1]] += 1
            by_word[first_word(split_sentences(source, language)[-1], language)][source[-1]] += 1
    if counts.total() < MIN_FINAL_MARK_SHARE * max(1, lines):
        return {}
    default = counts.most_common(1)[0][0]
    final_marks: dict[str, tuple[str, ...]] = {default: ()}
    for word, endings in sorted(by_word.items()):
        mark, count = endings.most_common(1)[0]
        if word and mark != default and endings.total() >= MIN_SENTENCES and 2 * count > endings.total():
            final_marks[mark] = (*final_marks.get(mark, ()), word)
    return final_marks


def choose_final_mark(text: str, final_marks: Mapping[str, Iterable[str]], language: str) -> str:
    """Return the final mark to add to a text; "" if the text ends with punctuation.

    Args:
        text: One or more sentences.
        final_marks: The result of ``learn_final_marks``, not empty.
        language: The language of the text.
    """
    if not OPEN_END.search(text):
        return ""
    word = first_word(split_sentences(text, language)[-1], language)
    return next((mark for mark, words in final_marks.items() if word in words), next(iter(final_marks)))


def span_without_final_mark(text: str) -> tuple[int, int]:
    """Return the start and end of a translation without its final mark and without a Spanish ¿ or ¡ at its start."""
    end = FINAL_MARK.search(text)
    if not end or not end.start():
        return 0, len(text)
    start = OPENING_MARK.match(text, 0, end.start())
    return (start.end() if start else 0), end.start()


def strip_final_punctuation(source: str, target: str) -> tuple[str, str]:
    """Remove the final punctuation of both sides of a pair if both have some."""
    end, other_end = FINAL_PUNCTUATION.search(source), FINAL_PUNCTUATION.search(target)
    if end and other_end and end.start() and other_end.start():
        return source[: end.start()], target[: other_end.start()]
    return source, target


def first_word(text: str, language: str) -> str:
    """Return the first word of a text in lowercase; "" if it has none."""
    word = WORD_WITH_APOSTROPHES.search(text)
    return to_lowercase(word[0], language).replace("’", "'") if word else ""
