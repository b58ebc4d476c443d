"""Count the letters of many texts at once, by their scripts, such as Latin and Cyrillic."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import regex

SPACE, OTHER = 0, 1
"""The classes of white space and of other characters that are no letters. The letters of each script are a class."""
SCRIPT_CODES = """
Adlm Aghb Ahom Arab Armi Armn Avst Bali Bamu Bass Batk Beng Bhks Bopo Brah Brai Bugi Buhd Cakm Cans Cari Cham
Cher Chrs Copt Cpmn Cprt Cyrl Deva Diak Dogr Dsrt Dupl Egyp Elba Elym Ethi Gara Geor Glag Gong Gonm Goth Gran
Grek Gujr Gukh Guru Hang Hani Hano Hatr Hebr Hira Hluw Hmng Hmnp Hung Ital Java Kali Kana Kawi Khar Khmr Khoj
Kits Knda Krai Kthi Lana Laoo Latn Lepc Limb Lina Linb Lisu Lyci Lydi Mahj Maka Mand Mani Marc Medf Mend Merc
Mero Mlym Modi Mong Mroo Mtei Mult Mymr Nagm Nand Narb Nbat Newa Nkoo Nshu Ogam Olck Onao Orkh Orya Osge Osma
Ougr Palm Pauc Perm Phag Phli Phlp Phnx Plrd Prti Rjng Rohg Runr Samr Sarb Saur Sgnw Shaw Shrd Sidd Sind Sinh
Sogd Sogo Sora Soyo Sund Sunu Sylo Syrc Tagb Takr Tale Talu Taml Tang Tavt Telu Tfng Tglg Thaa Thai Tibt Tirh
Tnsa Todr Toto Tutg Ugar Vaii Vith Wara Wcho Xpeo Xsux Yezi Yiii Zanb
"""
"""The codes of ISO 15924 of the scripts of Unicode 16, except those of characters that several scripts share."""
ANY_DIGIT = regex.compile(r"\d")
SCRIPT_LETTER = regex.compile("|".join(rf"(?P<{code}>\p{{Script={code}}})" for code in SCRIPT_CODES.split()))
"""Matches a letter. The name of the group that matches is the code of its script."""
COMPANIONS = {"Hira": ("Kana", "Hani"), "Kana": ("Hira", "Hani"), "Hang": ("Hani",)}
"""Maps a script to the other scripts in which its languages are also written."""
MIN_USUAL_SHARE = 0.2
"""A script is usual in the sources, or in the targets, if at least this share of their letters is in it."""


class Letters(NamedTuple):
    """The numbers of characters and letters in each of N texts."""

    characters: np.ndarray
    """(N,) int32: the number of characters, white space not included."""
    letters: np.ndarray
    """(N,) int32: the number of letters."""
    script: np.ndarray
    """(N,) int16: the class of the most frequent script; OTHER if there are no letters."""
    script_letters: np.ndarray
    """(N,) int32: the number of letters in the most frequent script."""


class Scripts:
    """Assigns a class to each character: white space, other, or a script. Each ``Side`` holds an instance.

    The class of a character is looked up when the character first occurs.
    """

    def __init__(self) -> None:
        self.names = ["white space", "other"]
        """The name of each class. Scripts are named by their codes in ISO 15924, such as Latn."""
        self._classes = np.full(0x110000, -1, dtype=np.int16)

    def count(self, texts: Sequence[str]) -> Letters:
        """Count the characters and letters of each text. The texts must not contain half a surrogate pair."""
        codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32)
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        classes = self._classes[codes]
        if (new := np.unique(codes[classes < 0])).size:
            self._classes[new] = [self._look_up(chr(code)) for code in new.tolist()]
            classes = self._classes[codes]
        width = len(self.names) + 1  # there may be no script yet
        rows = np.repeat(np.arange(len(texts)) * width, lengths)
        counts = np.bincount(rows + classes, minlength=len(texts) * width).reshape(len(texts), width).astype(np.int32)
        scripts = counts[:, OTHER + 1 :]
        letters = scripts.sum(axis=1, dtype=np.int32)
        script = np.where(letters > 0, scripts.argmax(axis=1) + OTHER + 1, OTHER).astype(np.int16)
        characters = counts[:, OTHER:].sum(axis=1, dtype=np.int32)
        return Letters(characters, letters, script, scripts.max(axis=1))

    def usual(self, letters: Mapping[int, int]) -> np.ndarray:
        """Return the classes of the scripts that are usual in some texts, and of their companions, int16.

        Args:
            letters: Maps each class to the number of letters in it.
        """
        total = sum(letters.values())
        names = {self.names[script] for script, count in letters.items() if count >= MIN_USUAL_SHARE * total}
        names |= {companion for name in names for companion in COMPANIONS.get(name, ())}
        return np.array([number for number, name in enumerate(self.names) if name in names], dtype=np.int16)

    def _look_up(self, character: str) -> int:
        if character.isspace():
            return SPACE
        match = SCRIPT_LETTER.match(character)
        script = match.lastgroup if match else None
        if script is None:
            return OTHER
        if script not in self.names:
            self.names.append(script)
        return self.names.index(script)
