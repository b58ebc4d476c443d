"""Counts the letters of many texts at once, by the script that they are written in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from fontTools import unicodedata

SPACE, OTHER = 0, 1
"""The classes of white space and of all that is no letter; those of letters, one for each script, follow."""
USED_WITH = {"Hira": ("Kana", "Hani"), "Kana": ("Hira", "Hani"), "Hang": ("Hani",)}
"""Scripts whose languages also use others."""
LEAST_SHARE = 0.2
"""A script belongs to a side of a corpus if at least this share of the side's letters is of it."""


@dataclass(frozen=True)
class Letters:
    """What the characters of N texts are."""

    characters: np.ndarray
    """(N,) int32: the number of characters that are no white space."""
    letters: np.ndarray
    """(N,) int32: how many of them are letters."""
    script: np.ndarray
    """(N,) int16: the class of the script that most of these are of; OTHER if there are none."""
    of_script: np.ndarray
    """(N,) int32: how many are."""


class Scripts:
    """Knows the class of each character, which is looked up when the character is first met."""

    def __init__(self) -> None:
        self.names = ["white space", "other"]
        """The name of each class; those of scripts are the codes of ISO 15924, such as Latn."""
        self._classes = np.full(0x110000, -1, dtype=np.int16)

    def count(self, texts: Sequence[str]) -> Letters:
        """Returns what the characters of each text are. The texts must not hold half a surrogate pair."""
        codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32)
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        classes = self._classes[codes]
        if (new := np.unique(codes[classes < 0])).size:
            self._classes[new] = [self._look_up(chr(code)) for code in new.tolist()]
            classes = self._classes[codes]
        width = len(self.names)
        rows = np.repeat(np.arange(len(texts)) * width, lengths)
        counts = np.bincount(rows + classes, minlength=len(texts) * width).reshape(len(texts), width)
        of_scripts = counts[:, OTHER + 1 :]
        if not of_scripts.size:
            of_scripts = np.zeros((len(texts), 1), dtype=np.int64)
        letters, most = of_scripts.sum(axis=1), of_scripts.max(axis=1)
        script = np.where(letters > 0, of_scripts.argmax(axis=1) + OTHER + 1, OTHER)
        characters = counts.sum(axis=1) - counts[:, SPACE]
        return Letters(
            characters.astype(np.int32), letters.astype(np.int32), script.astype(np.int16), most.astype(np.int32)
        )

    def usual(self, letters: Mapping[int, int]) -> np.ndarray:
        """Returns the classes of the scripts that belong to a side of a corpus.

        Args:
            letters: How many letters of the side are of each class.
        """
        found = {self.names[place] for place, count in letters.items() if count >= LEAST_SHARE * sum(letters.values())}
        found |= {other for name in found for other in USED_WITH.get(name, ())}
        return np.array([place for place, name in enumerate(self.names) if name in found], dtype=np.int16)

    def _look_up(self, character: str) -> int:
        if character.isspace():
            return SPACE
        script = unicodedata.script(character)
        if script in ("Zyyy", "Zinh", "Zzzz"):  # common to several scripts, as punctuation and digits are, or unknown
            return OTHER
        if script not in self.names:
            self.names.append(script)
        return self.names.index(script)
