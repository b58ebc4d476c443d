"""What is usual on one side of a corpus, learnt from some of its texts: the scripts, and the words of its language."""

import logging
from collections import Counter
from collections.abc import Sequence

import numpy as np
import regex

from mt.core.errors import InputError
from mt.core.language import MIN_SCRIPT_SHARE, script_of
from mt.data.cleaning.characters import OTHER, Letters, Scripts
from mt.data.cleaning.language_identification import Identifier

logger = logging.getLogger(__name__)

WORD = regex.compile(r"[^\W\d_]+")
LETTERS_OF_A_WORD = 3
LIKELIER = 3.0
"""By how much the logarithm of another language's likelihood must be greater."""
LEAST_SHORT = 25
"""For a text of fewer letters it must be as much greater, in proportion, as the text is shorter."""
MOST = 0.5
"""A language that more than this share of the texts is in is that of the side."""


class Side:
    """Sources or targets. First ``learn`` from some texts, then judge all."""

    def __init__(self, language: str, identifier: Identifier) -> None:
        self.language = language
        self.label = identifier.label(language)
        """The name of the language among the labels of the identifier."""
        self.checks_language = self.label in identifier.labels
        self.scripts = Scripts()
        self._identifier = identifier
        self._own_script = script_of(language)
        self._letters: Counter[int] = Counter()
        self._texts_with_word: Counter[str] = Counter()
        self._languages: Counter[str] = Counter()

    def learn(self, texts: Sequence[str]) -> None:
        letters = self.scripts.count(texts)
        for script in np.unique(letters.script).tolist():
            self._letters[script] += int(letters.of_script[letters.script == script].sum())
        others, margins = self.judge(texts)
        for text, count, other, margin in zip(texts, letters.letters, others, margins, strict=True):
            # In some scripts most sentences are short, so those that are surely in the right language count, too.
            if count >= LEAST_SHORT or margin < 0:
                self._languages[self.label if margin <= 0 else self._identifier.labels[other]] += 1
            if margin < 0:
                self._texts_with_word.update(set(WORD.findall(text.lower())))

    def usual_language(self) -> str:
        """Returns the label of the language that most of the texts are in; the side's own if there is none."""
        for language, times in self._languages.most_common(1):
            if times > MOST * self._languages.total():
                return language
        return self.label

    def foreign_scripts(self, letters: Letters) -> np.ndarray:
        """Finds the texts most of whose letters are in a script that is not usual, (N,) bool."""
        enough = (letters.of_script >= LETTERS_OF_A_WORD) & (2 * letters.of_script > letters.letters)
        return enough & (letters.script > OTHER) & ~np.isin(letters.script, self.scripts.usual(self._letters))

    def judge(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the likeliest other language of each text and by how much it is likelier than the side's own, as
        ``Identifier.judge`` does. A text in a script that its language shares with no other is in its language."""
        others, margins = self._identifier.judge(texts, self.language)
        if self._own_script:
            for row in np.flatnonzero(margins >= 0).tolist():
                if self._own_script.share(texts[row]) > MIN_SCRIPT_SHARE:
                    margins[row] = -1.0
        return others, margins

    def are_of(self, labels: np.ndarray) -> np.ndarray:
        """Returns which labels of the identifier are the side's language, (N,) bool."""
        return np.array([name == self.label for name in self._identifier.labels])[labels]

    def foreign_languages(
        self, texts: Sequence[str], opposite: Sequence[str], letters: Letters, margins: np.ndarray
    ) -> np.ndarray:
        """Finds the texts that are in another language: that is likelier by far, and most of the words are none that
        occur in the texts of the side's own language. Words that stand on both sides do not count: they may be names.

        Args:
            texts: The N texts of this side.
            opposite: Those of the other side.
            letters: The letters of ``texts``.
            margins: How much likelier another language is, (N,), as ``judge`` returns it.

        Returns:
            (N,) bool.
        """
        found = margins > LIKELIER * np.maximum(1, LEAST_SHORT / np.maximum(1, letters.letters))
        for row in np.flatnonzero(found).tolist():
            words = set(WORD.findall(texts[row].lower())) - set(WORD.findall(opposite[row].lower()))
            known = sum(self._texts_with_word[word] > 1 for word in words)
            found[row] = bool(words) and 2 * known < len(words)
        return found


def check_languages(source: Side, target: Side, advice: str) -> None:
    """Compares the languages that most texts are in with those that they should be in.

    Args:
        advice: How to train on the texts all the same.

    Raises:
        InputError: Most texts of a side are in the language of the other side.
    """
    if source.label == target.label:
        return  # such as classical and modern Chinese, which the identifier cannot tell apart
    if (source.usual_language(), target.usual_language()) == (target.label, source.label):
        raise InputError(
            f"most sources are in {target.language} and most targets in {source.language}, but data.source_language="
            f"{source.language} and data.target_language={target.language}: exchange the two languages, or the two "
            f"files or columns. {advice}"
        )
    for side, other, name in ((source, target, "sources"), (target, source, "targets")):
        usual = side.usual_language()
        if usual == other.label:
            raise InputError(
                f"most {name} are in {other.language}, the language of the other side: these are no sentences with "
                f"their translations. {advice}"
            )
        if usual != side.label:
            logger.warning(
                "cleaning: most %s seem to be in %s, not in %s: the rule language does not judge them",
                name, usual, side.language,
            )  # fmt: skip
            side.checks_language = False
