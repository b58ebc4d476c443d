"""The rules that judge each pair by itself, or by what is usual on its two sides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import ftfy
import ftfy.badness
import numpy as np
import regex

from mt.data.cleaning.characters import Letters
from mt.data.cleaning.correspondence import items_differ, numbers_differ
from mt.data.cleaning.sides import WORD, Side
from mt.data.sentence_key import sentence_key

DESCRIPTIONS = {
    "long": "a side has more than ten times data.max_length characters, so that it would have too many pieces",
    "encoding": "the text was once read in a wrong encoding, or holds characters that could not be read",
    "letters": "less than a fifth of the characters of a side are letters",
    "copy": "both sides are the same but for case and punctuation",
    "script": "a side is in another script than most of its column",
    "language": "a side is in another language than it should be",
    "items": "a link, an address, a tag or a placeholder is on one side only",
    "numbers": "a number is another one on the other side",
    "length": "one side is far longer or shorter, for a text of its length, than is usual in this corpus",
    "translation": "the words of the two sides go together no better than those of pairs matched at random",
    "boilerplate": "a text that is repeated many times, with a translation that is not one of the usual ones",
    "duplicate": "an earlier pair is the same but for case, punctuation and digits",
}
OF_ONE_PAIR = ("long", "encoding", "letters", "copy", "script", "language", "items", "numbers")
"""The rules that ``Batch.find`` knows."""

CHARACTERS_IN_A_PIECE = 10
"""No tokenizer has so many in each piece of a text."""
LEAST_LETTERS = 0.2
MOSTLY_SYMBOLS = 8
"""A text of fewer characters may be anything."""
DIGIT = regex.compile(r"\d")


@dataclass(frozen=True)
class Batch:
    """Some thousand pairs, and what the rules look at in them. What is given for both sides has the source first."""

    texts: tuple[Sequence[str], Sequence[str]]
    keys: np.ndarray
    """(N, 2) int64: hashes of the two sides' normal forms."""
    sides: tuple[Side, Side]
    max_length: int

    @cached_property
    def letters(self) -> tuple[Letters, Letters]:
        source, target = (side.scripts.count(texts) for side, texts in zip(self.sides, self.texts, strict=True))
        return source, target

    @cached_property
    def lengths(self) -> np.ndarray:
        """The number of characters of each side, (N, 2) int32."""
        return np.stack([one.characters for one in self.letters], axis=1)

    @cached_property
    def judged(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each side the likeliest other languages, and how much likelier they are; see ``Side.judge``."""
        return [side.judge(texts) for side, texts in zip(self.sides, self.texts, strict=True)]

    def find(self, rule: str) -> np.ndarray:
        """Returns which pairs a rule finds, (N,) bool.

        Args:
            rule: One of OF_ONE_PAIR.
        """
        match rule:
            case "long":
                return np.any(self.lengths > CHARACTERS_IN_A_PIECE * self.max_length, axis=1)
            case "encoding":
                return self._pairs_where(lambda *texts: any(map(is_misread, texts)) or unreadable_differ(*texts))
            case "letters":
                letters = np.stack([one.letters for one in self.letters], axis=1)
                few = (self.lengths >= MOSTLY_SYMBOLS) & (letters < LEAST_LETTERS * self.lengths)
                return np.any(few, axis=1)
            case "copy":
                equal = self.keys[:, 0] == self.keys[:, 1]
                equal[equal] = [len(WORD.findall(self.texts[0][row])) > 1 for row in np.flatnonzero(equal).tolist()]
                return equal
            case "script":
                source, target = (side.foreign_scripts(one) for side, one in zip(self.sides, self.letters, strict=True))
                return source | target
            case "language":
                return self._foreign_languages(0) | self._foreign_languages(1)
            case "items":
                return self._pairs_where(items_differ)
            case "numbers":
                return self._pairs_where(numbers_differ)
            case _:
                raise ValueError(rule)

    def margins(self) -> np.ndarray:
        """Returns how much likelier another language is than the right one, of the side where it is most so, (N,)
        float32."""
        return np.maximum(self.judged[0][1], self.judged[1][1])

    def exchanged(self) -> np.ndarray:
        """Finds the pairs whose sides are each in the other side's language, (N,) bool."""
        found = [
            (margins > 0) & other.are_of(labels)
            for (labels, margins), other in zip(self.judged, self.sides[::-1], strict=True)
        ]
        return found[0] & found[1]

    def keys_without_digits(self) -> np.ndarray:
        """Returns ``keys``, but those of texts with digits as if each digit were 0, (N, 2) int64."""
        keys = self.keys.copy()
        for side, texts in enumerate(self.texts):
            for row, text in enumerate(texts):
                if DIGIT.search(text):
                    keys[row, side] = sentence_key(DIGIT.sub("0", text))
        return keys

    def _pairs_where(self, is_found: Callable[[str, str], bool]) -> np.ndarray:
        return np.array([is_found(source, target) for source, target in zip(*self.texts, strict=True)], dtype=bool)

    def _foreign_languages(self, place: int) -> np.ndarray:
        side, margins = self.sides[place], self.judged[place][1]
        if not side.checks_language:
            return np.zeros(len(margins), dtype=bool)
        return side.foreign_languages(self.texts[place], self.texts[1 - place], self.letters[place], margins)


def is_misread(text: str) -> bool:
    """Returns whether a text was decoded by another encoding than it was written in."""
    return not text.isascii() and ftfy.badness.is_bad(text) and ftfy.fix_encoding(text) != text


def unreadable_differ(source: str, target: str) -> bool:
    """Returns whether one side has more characters than the other that no encoding could make sense of."""
    return source.count("\ufffd") != target.count("\ufffd")
