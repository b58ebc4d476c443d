"""The punctuation at the end of sentences, for people who leave it out.

A model whose training text nearly always has it translates "where is the station" worse than "Where is the station?".
So it gets a mark, and the translation loses its own. Which mark, the first word tells: after *where*, most sentences of
the training text end with a question mark.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import regex

from mt.config.text import FINAL_MARKS
from mt.text.case import in_small_letters
from mt.text.sentences import sentences

FINAL_PUNCTUATION = regex.compile(rf"(?r)\s*[{FINAL_MARKS}]+\s*$")  # (?r): searched from the end
FINAL_MARK = regex.compile(rf"(?r)\s*(?:\.{{2,}}|[{FINAL_MARKS}])$")
OPENING_MARK = regex.compile(r"^[¿¡]\s*")
"""Spanish puts marks of the same kind in front of a question and of an exclamation."""
OPEN_END = regex.compile(r"(?r)[\p{L}\p{M}\p{N}\p{Co}]$")
"""A letter, a digit or a slot: the end of a text without punctuation."""
FIRST_WORD = regex.compile(r"[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*")
FEWEST_MARKED = 0.95
"""The smallest share of training lines, on either side, that end with a mark, for marks to be added to others."""
FEWEST_TIMES = 10
"""How often a word must be the first of a sentence of the training text, to tell how it ends."""


def learn_marks(pairs: Iterable[tuple[str, str]], language: str) -> dict[str, tuple[str, ...]]:
    """Returns the marks that end the sentences of a training text, the most frequent one first, each with the first
    words by which it is taken: for the first one none, because it is taken in all other cases.

    Args:
        pairs: Sources and targets.
        language: The language of the sources, which puts spaces between words.

    Returns:
        Nothing if lines without a mark at their end are usual on either side.
    """
    marked = lines = 0
    marks: Counter[str] = Counter()
    by_word: dict[str, Counter[str]] = defaultdict(Counter)
    for source, target in pairs:
        source, target = source.rstrip(), target.rstrip()
        lines += 1
        if FINAL_PUNCTUATION.search(source) and FINAL_PUNCTUATION.search(target):
            marked += 1
            marks[source[-1]] += 1
            by_word[first_word(sentences(source, language)[-1], language)][source[-1]] += 1
    if marked < FEWEST_MARKED * max(1, lines):
        return {}
    usual = marks.most_common(1)[0][0]
    found: dict[str, tuple[str, ...]] = {usual: ()}
    for word, endings in sorted(by_word.items()):
        mark, times = endings.most_common(1)[0]
        if word and mark != usual and endings.total() >= FEWEST_TIMES and 2 * times > endings.total():
            found[mark] = (*found.get(mark, ()), word)
    return found


def missing_mark(text: str, marks: Mapping[str, Iterable[str]], language: str) -> str:
    """Returns the mark that a text lacks at its end; "" if it has punctuation there.

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
    """Returns where a translation begins and ends without the mark at its end, and without one of Spanish at its
    beginning."""
    end = FINAL_MARK.search(text)
    if not end or not end.start():
        return 0, len(text)
    start = OPENING_MARK.match(text, 0, end.start())
    return (start.end() if start else 0), end.start()


def first_word(text: str, language: str) -> str:
    """Returns the first word of a text in small letters; "" if it has none."""
    word = FIRST_WORD.search(text)
    return in_small_letters(word[0], language).replace("’", "'") if word else ""
