"""Changes of single sentences, as pure functions: title case, typing errors, planted items and tags."""

import re

import numpy as np
import regex

from mt.core.language import TOUCHING, writes_spaces
from mt.text.normalization.final_punctuation import FINAL_PUNCTUATION
from mt.text.normalization.keyboard import with_a_typo

WORDS_PER_TYPO = 8
"""One word in so many gets a typing error."""
BOLD_TAG = re.compile("</?b>")
BARE_WORD = regex.compile(r"[^\s\p{C}\p{P}\p{S}](?:[^\s\x1c-\x1f]*[^\s\p{C}\p{P}\p{S}])?")
"""A word without the punctuation around it. Blanks separate words, among them \\x1c to \\x1f, as in ``str.split``."""


def title(line: str) -> str:
    """Capitalise the first letter of every word, and leave the others as they are."""
    return re.sub(r"(?<!\S)[^\w\s]*\w", lambda start: start[0].upper(), line)


def without_end(line: str) -> str:
    """Return a sentence without its final punctuation and the spaces around that. Other sentences stay as they are."""
    return FINAL_PUNCTUATION.sub("", line)


def misspelled(line: str, language: str, random: np.random.Generator) -> str:
    """Put a typing error into one word of eight, and into at least one.

    The words, the letters and the errors are drawn at random. A letter is doubled, dropped, swapped with the next
    character, or replaced by a neighbour on the language's keyboard. In a language without spaces, every two letters
    count as a word. A line without words of two letters is returned as it is.
    """
    spans = word_spans(line, writes_spaces(language))
    count = min(len(spans), max(1, len(spans) // WORDS_PER_TYPO))
    for index in sorted(random.choice(len(spans), count, replace=False).tolist() if spans else [], reverse=True):
        start, end = spans[index]
        line = line[:start] + with_a_typo(line[start:end], random, language) + line[end:]
    return line


def with_item_at_end(line: str, item: str, has_spaces: bool) -> str:
    """Add an item to the end of a line, in front of its final punctuation: ``Come here 19.99.``

    Args:
        has_spaces: Whether the language of the line separates words by spaces. If not, there is no space between a
            letter of such a language and the item.
    """
    body = without_end(line)
    space = " " if body and (has_spaces or not re.match(f"[{TOUCHING}]", body[-1])) else ""
    return body + space + item + line[len(body) :]


def with_tag(line: str, has_spaces: bool, random: np.random.Generator) -> str:
    """Put one random word of a line into ``<b>…</b>``. A line without words is returned as it is.

    Args:
        has_spaces: Whether the language of the line separates words by spaces.
    """
    spans = word_spans(line, has_spaces)
    if not spans:
        return line
    start, end = spans[int(random.integers(len(spans)))]
    return f"{line[:start]}<b>{line[start:end]}</b>{line[end:]}"


def word_spans(line: str, has_spaces: bool) -> list[tuple[int, int]]:
    """Return the start and end of each word with two characters or more and at least one letter, without punctuation.

    Args:
        has_spaces: Whether the language separates words by spaces. If not, every two letters count as a word.
    """
    if not has_spaces:
        pairs = range(0, len(line) - 1, 2)
        return [(start, start + 2) for start in pairs if line[start : start + 2].isalpha()]
    return [word.span() for word in BARE_WORD.finditer(line) if len(word[0]) >= 2 and any(map(str.isalpha, word[0]))]
