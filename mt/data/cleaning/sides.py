"""Statistics of the sources or the targets of a corpus: scripts, words and languages, counted in a sample.

Letters are counted by script, such as Latin and Cyrillic, in many texts at once.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import regex
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from mt.core.errors import InputError
from mt.core.language import MIN_SCRIPT_SHARE, base_language, script_of

logger = logging.getLogger(__name__)

MAX_IDENTIFIED_BYTES = 240
"""The number of bytes of a text that are read. The beginning of a text is enough to identify its language."""
EQUIVALENT_LANGUAGES = {
    "lzh": "zh",
    "yue": "zh",
    "wuu": "zh",
    "hr": "sr",
    "bs": "sr",
    "sh": "sr",
    "nb": "no",
    "nn": "no",
    "id": "ms",
}
"""Maps a language to another one that is treated as the same, because the two cannot be distinguished in a single
sentence, or the model has one label for both."""

SPACE, OTHER = 0, 1
"""The classes of whitespace and of other characters except letters. The letters of each script form a further class."""
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
"""The ISO 15924 codes of the scripts of Unicode 16, without those for characters that several scripts share."""
ANY_DIGIT = regex.compile(r"\d")
SCRIPT_LETTER = regex.compile("|".join(rf"(?P<{code}>\p{{Script={code}}})" for code in SCRIPT_CODES.split()))
"""Matches a letter. The name of the group that matches is the code of its script."""
COMPANIONS = {"Hira": ("Kana", "Hani"), "Kana": ("Hira", "Hani"), "Hang": ("Hani",)}
"""Maps a script to the other scripts that its languages are written in."""
MIN_SIDE_SHARE = 0.2
"""A script belongs to a side of the corpus if at least this share of the letters of the side is in it."""
LETTER_RUN = regex.compile(r"[^\W\d_]+")
"""Matches a word of letters."""
MIN_SCRIPT_LETTERS = 3
"""The script of a text is not judged if fewer letters are in its most frequent script."""
MIN_MARGIN = 3.0
"""The log-likelihood ratio of another language and the right one from which a text counts as foreign."""
MIN_LETTERS = 25
"""For a text with fewer letters, MIN_MARGIN is multiplied by MIN_LETTERS / letters."""
MAJORITY_SHARE = 0.5
"""More than this share of the texts determines the language of a side, or the direction of a file."""


class BatchLanguageIdentifier:
    """Computes the likelihood of each language for texts with py3langid. Both ``CorpusSide`` objects share one."""

    def __init__(self) -> None:
        self._model = LanguageIdentifier.from_model_file(MODEL_FILE)
        self.labels = np.array([EQUIVALENT_LANGUAGES.get(name, name) for name in self._model.nb_classes])
        """The languages of the model, after the replacements of EQUIVALENT_LANGUAGES, so a label can occur several
        times."""

    def scores(self, texts: Sequence[str]) -> np.ndarray:
        """Return the log-likelihood of each label for each of N texts, (N, number of labels) float32.

        An additive constant of each text is omitted, so only differences between labels are meaningful.
        """
        encoded = [self._model._encode(text[:MAX_IDENTIFIED_BYTES])[:MAX_IDENTIFIED_BYTES] for text in texts]
        scores = [self._model._raw_score(text) for text in encoded]
        return np.array(scores, dtype=np.float32).reshape(len(texts), len(self.labels))


class LetterCounts(NamedTuple):
    """The numbers of characters and letters in each of N texts."""

    characters: np.ndarray
    """(N,) int32: the number of characters, whitespace not included."""
    letters: np.ndarray
    """(N,) int32: the number of letters."""
    script: np.ndarray
    """(N,) int16: the class of the most frequent script; OTHER if there are no letters."""
    script_letters: np.ndarray
    """(N,) int32: the number of letters in the most frequent script."""


class CorpusSide:
    """The sources or the targets of a corpus, and their statistics.

    ``add_texts`` counts the texts of a sample. Afterwards, the other methods judge all texts. A ``PairBatch`` holds
    both sides.

    Each character has a class: whitespace, other, or a script. It is looked up when the character first occurs.
    """

    def __init__(self, language: str, identifier: BatchLanguageIdentifier) -> None:
        """
        Args:
            language: The code of the expected language of the texts.
            identifier: The language identifier.
        """
        self.language = language
        code = base_language(language)
        self.label = EQUIVALENT_LANGUAGES.get(code, code)
        """The label of the language in the identifier."""
        self.is_own_label = identifier.labels == self.label
        """Whether each label of the identifier is that of this side, (number of labels,) bool."""
        self.checks_language = bool(self.is_own_label.any())
        """Whether ``is_foreign_language`` judges texts."""
        self._identifier = identifier
        self._own_script = script_of(language)
        self._class_names = ["whitespace", "other"]
        """The name of each class. Scripts are named by their codes in ISO 15924, such as Latn."""
        self._classes = np.full(0x110000, -1, dtype=np.int16)
        """The class of each character; -1 if it was not looked up."""
        self._letters: Counter[int] = Counter()
        """Maps the class of each script to its number of letters in the texts where it is the most frequent script."""
        self._texts_with_word: Counter[str] = Counter()
        """Maps each word to the number of texts in the right language that have it."""
        self._languages: Counter[str] = Counter()
        """Maps the label of each language to the number of texts in it."""

    def count_letters(self, texts: Sequence[str]) -> LetterCounts:
        """Count the characters and letters of each text. The texts must not contain lone surrogates."""
        codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32)
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        classes = self._classes[codes]
        if (new := np.unique(codes[classes < 0])).size:
            self._classes[new] = [self._character_class(chr(code)) for code in new.tolist()]
            classes = self._classes[codes]
        width = len(self._class_names) + 1  # there may be no script yet
        rows = np.repeat(np.arange(len(texts)) * width, lengths)
        counts = np.bincount(rows + classes, minlength=len(texts) * width).reshape(len(texts), width).astype(np.int32)
        scripts = counts[:, OTHER + 1 :]
        letters = scripts.sum(axis=1, dtype=np.int32)
        script = np.where(letters > 0, scripts.argmax(axis=1) + OTHER + 1, OTHER).astype(np.int16)
        characters = counts[:, OTHER:].sum(axis=1, dtype=np.int32)
        return LetterCounts(characters, letters, script, scripts.max(axis=1))

    def _character_class(self, character: str) -> int:
        """Return the class of a character, and add the class of its script when it first occurs."""
        if character.isspace():
            return SPACE
        match = SCRIPT_LETTER.match(character)
        script = match.lastgroup if match else None
        if script is None:
            return OTHER
        if script not in self._class_names:
            self._class_names.append(script)
        return self._class_names.index(script)

    def add_texts(self, texts: Sequence[str]) -> None:
        """Add the scripts, words and languages of texts to the counts."""
        letters = self.count_letters(texts)
        for script in np.unique(letters.script).tolist():
            self._letters[script] += int(letters.script_letters[letters.script == script].sum())
        others, margins = self.compare_languages(texts)
        for text, count, other, margin in zip(texts, letters.letters, others, margins, strict=True):
            # In some scripts most sentences are short, so short ones count if they are clearly in the right language.
            if count >= MIN_LETTERS or margin < 0:
                self._languages[self.label if margin <= 0 else self._identifier.labels[other]] += 1
            if margin < 0:
                self._texts_with_word.update(_lowercase_words(text))

    def majority_language(self) -> str:
        """Return the label of the language that more than half of the counted texts are in; ``label`` if none is."""
        for language, count in self._languages.most_common(1):
            if count > MAJORITY_SHARE * self._languages.total():
                return language
        return self.label

    def is_foreign_script(self, texts: Sequence[str], letters: LetterCounts) -> np.ndarray:
        """Return whether most letters of each text are in a script that does not belong to this side, (N,) bool.

        Capitalized words in that script may be names. They are ignored if the text has other words.

        Args:
            texts: The N texts of this side.
            letters: The numbers of letters in ``texts``.
        """
        min_letters = MIN_SIDE_SHARE * self._letters.total()
        scripts = {self._class_names[script] for script, count in self._letters.items() if count >= min_letters}
        scripts |= {companion for name in scripts for companion in COMPANIONS.get(name, ())}
        is_expected = np.array([name in scripts for name in self._class_names])
        is_clear = (letters.script_letters >= MIN_SCRIPT_LETTERS) & (2 * letters.script_letters > letters.letters)
        is_foreign = is_clear & (letters.script > OTHER) & ~is_expected[letters.script]
        for row in np.flatnonzero(is_foreign).tolist():
            script = self._class_names[letters.script[row]]
            rest = regex.sub(rf"(?=\p{{Ll}}*\p{{Lu}})\p{{Script={script}}}+", "", texts[row])
            is_foreign[row] = not is_expected[self.count_letters([rest]).script[0]]
        return is_foreign

    def compare_languages(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Compare the language of this side with the likeliest other language of each of N texts.

        A text in a script that only the language of this side uses gets a negative margin.

        Returns:
            The index of the likeliest other language in ``BatchLanguageIdentifier.labels``, (N,) int16, and its margin,
            (N,) float32: its log-likelihood minus that of ``label``. Both are 0 if the identifier does not know the
            language of this side.
        """
        if not self.is_own_label.any():
            return np.zeros(len(texts), dtype=np.int16), np.zeros(len(texts), dtype=np.float32)
        scores = self._identifier.scores(texts)
        expected = scores[:, self.is_own_label].max(axis=1)
        scores[:, self.is_own_label] = -np.inf
        others, margins = scores.argmax(axis=1).astype(np.int16), scores.max(axis=1) - expected
        if self._own_script:
            for row in np.flatnonzero(margins >= 0).tolist():
                if self._own_script.share(texts[row]) > MIN_SCRIPT_SHARE:
                    margins[row] = -1.0
        return others, margins

    def is_foreign_language(
        self, texts: Sequence[str], opposite: Sequence[str], letters: LetterCounts, margins: np.ndarray
    ) -> np.ndarray:
        """Return whether each text is in another language than this side, (N,) bool.

        Such a text has a large margin, and most of its words are unknown: fewer than two counted texts in the right
        language have them. Words that occur in both texts of a pair may be names and are ignored.

        Args:
            texts: The N texts of this side.
            opposite: The N texts of the opposite side.
            letters: The numbers of letters in ``texts``.
            margins: The margins of ``texts``, (N,), as ``compare_languages`` returns them.
        """
        if not self.checks_language:
            return np.zeros(len(texts), dtype=bool)
        is_foreign = margins > MIN_MARGIN * np.maximum(1, MIN_LETTERS / np.maximum(1, letters.letters))
        for row in np.flatnonzero(is_foreign).tolist():
            words = _lowercase_words(texts[row]) - _lowercase_words(opposite[row])
            known = sum(self._texts_with_word[word] > 1 for word in words)
            is_foreign[row] = bool(words) and 2 * known < len(words)
        return is_foreign


def _lowercase_words(text: str) -> set[str]:
    """Return the lowercase words of a text."""
    return set(LETTER_RUN.findall(text.lower()))


def check_languages(source: CorpusSide, target: CorpusSide, hint: str) -> None:
    """Check that most sources and most targets are in the languages of the settings.

    If most texts of a side are in a third language, a warning is logged, and ``checks_language`` of the side becomes
    False.

    Args:
        source: The sources, after ``add_texts``.
        target: The targets, after ``add_texts``.
        hint: The end of the messages: a sentence about training on the texts in spite of this.

    Raises:
        InputError: Most texts of a side are in the language of the opposite side.
    """
    is_one_language = source.label == target.label  # also for two languages that the identifier cannot tell apart
    if not is_one_language and (source.majority_language(), target.majority_language()) == (target.label, source.label):
        raise InputError(
            f"most sources are in {target.language} and most targets in {source.language}, but data.source_language="
            f"{source.language} and data.target_language={target.language}: swap the two languages, or the two "
            f"files or columns. {hint}"
        )
    for side, other, name in ((source, target, "sources"), (target, source, "targets")):
        language = side.majority_language()
        if language == other.label and not is_one_language:
            raise InputError(
                f"most {name} are in {other.language}, the language of the other side, so the pairs are not "
                f"translations. Give other files or columns. {hint}"
            )
        if language != side.label:
            logger.warning(
                "cleaning: most %s seem to be in %s, not in %s, so the rule language does not judge them; check the "
                "setting of the language",
                name, language, side.language,
            )  # fmt: skip
            side.checks_language = False
