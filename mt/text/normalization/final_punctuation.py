"""The punctuation at the end of sentences, for people who leave it out.

A model whose training text nearly always has it translates "where is the station" worse than "Where is the station?".
So it gets a mark, and the translation loses its own. Which mark, the first word tells: after *where*, most sentences of
the training text end with a question mark.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import regex

from mt.config.text import FINAL_MARKS
from mt.text.normalization.casing import in_small_letters
from mt.text.segmentation.sentences import sentences

FINAL_PUNCTUATION = regex.compile(rf"(?r)\s*[{FINAL_MARKS}]+\s*$")  # (?r): searched from the end
FINAL_MARK = regex.compile(rf"(?r)\s*(?:\.{{2,}}|[{FINAL_MARKS}])$")
OPENING_MARK = regex.compile(r"^[¿¡]\s*")
"""Spanish puts marks of the same kind in front of a question and of an exclamation."""
OPEN_END = regex.compile(r"(?r)[\p{L}\p{M}\p{N}\p{Co}]$")
"""A letter, a digit or a placeholder: the end of a text without punctuation."""
WORD_WITH_APOSTROPHES = regex.compile(r"[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*")
MIN_MARKED_SHARE = 0.95
"""The smallest share of training lines, on either side, that end with a mark, for marks to be added to others."""
MIN_SENTENCES = 10
"""How often a word must be the first of a sentence of the training text, to tell how it ends."""


def learn_marks(pairs: Iterable[tuple[str, str]], language: str) -> dict[str, tuple[str, ...]]:
    """Return the final marks of a training text, the default mark first, each with its first words.

    The default mark is the most frequent one, and has no words. Nothing is returned if lines without a mark at their
    end are usual on either side.

    Args:
        pairs: Sources and targets.
        language: The language of the sources, which puts spaces between words.
    """
    lines = 0
    counts: Counter[str] = Counter()
    by_word: dict[str, Counter[str]] = defaultdict(Counter)
    for source, target in pairs:
        source, target = source.rstrip(), target.rstrip()
        lines += 1
        if FINAL_PUNCTUATION.search(source) and FINAL_PUNCTUATION.search(target):
            counts[source[-1]] += 1
            by_word[first_word(sentences(source, language)[-1], language)][source[-1]] += 1
    if counts.total() < MIN_MARKED_SHARE * max(1, lines):
        return {}
    default = counts.most_common(1)[0][0]
    marks: dict[str, tuple[str, ...]] = {default: ()}
    for word, endings in sorted(by_word.items()):
        mark, count = endings.most_common(1)[0]
        if word and mark != default and endings.total() >= MIN_SENTENCES and 2 * count > endings.total():
            marks[mark] = (*marks.get(mark, ()), word)
    return marks


def missing_mark(text: str, marks: Mapping[str, Iterable[str]], language: str) -> str:
    """Return the mark that a text lacks at its end; "" if it has punctuation there.

    Args:
        text: The text of a sentence, or of several.
        marks: What ``learn_marks`` returned, which is not empty.
        language: The language of the text.
    """
    if not OPEN_END.search(text):
        return ""
    word = first_word(sentences(text, language)[-1], language)
    return next((mark for mark, words in marks.items() if word in words), next(iter(marks)))


def without_mark(text: str) -> tuple[int, int]:
    """Return where a translation begins and ends without the mark at its end, and without one of Spanish at its
    beginning."""
    end = FINAL_MARK.search(text)
    if not end or not end.start():
        return 0, len(text)
    start = OPENING_MARK.match(text, 0, end.start())
    return (start.end() if start else 0), end.start()


def first_word(text: str, language: str) -> str:
    """Return the first word of a text in small letters; "" if it has none."""
    word = WORD_WITH_APOSTROPHES.search(text)
    return in_small_letters(word[0], language).replace("’", "'") if word else ""
