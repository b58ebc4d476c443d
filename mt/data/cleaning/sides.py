"""The usual scripts of one side of a corpus, and the words of its language, learnt from a sample."""

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
MIN_WORD_LETTERS = 3
MIN_MARGIN = 3.0
"""The log-likelihood ratio of another language and the right one in a text that is in the other."""
MIN_LETTERS = 25
"""For a text with fewer letters the margin must be larger, in proportion."""
MAJORITY_SHARE = 0.5
"""A side is in the language of a larger share of its texts."""


class Side:
    """The sources or the targets. First ``learn`` from a sample, then judge all."""

    def __init__(self, language: str, identifier: Identifier) -> None:
        self.language = language
        self.label = identifier.label(language)
        """The name of the language among the labels of the identifier."""
        self.checks_language = self.label in identifier.labels
        self.scripts = Scripts()
        self._identifier = identifier
        self._own_script = script_of(language)
        self._letters: Counter[int] = Counter()
        """The number of letters in each script."""
        self._texts_with_word: Counter[str] = Counter()
        self._languages: Counter[str] = Counter()

    def learn(self, texts: Sequence[str]) -> None:
        """Count the scripts, words and languages of texts."""
        letters = self.scripts.count(texts)
        for script in np.unique(letters.script).tolist():
            self._letters[script] += int(letters.script_letters[letters.script == script].sum())
        others, margins = self.judge(texts)
        for text, count, other, margin in zip(texts, letters.letters, others, margins, strict=True):
            # In some scripts most sentences are short, so those that are surely in the right language count, too.
            if count >= MIN_LETTERS or margin < 0:
                self._languages[self.label if margin <= 0 else self._identifier.labels[other]] += 1
            if margin < 0:
                self._texts_with_word.update(_words(text))

    def usual_language(self) -> str:
        """Return the label of the language of most texts; the side's own if there is none."""
        for language, count in self._languages.most_common(1):
            if count > MAJORITY_SHARE * self._languages.total():
                return language
        return self.label

    def foreign_scripts(self, letters: Letters) -> np.ndarray:
        """Find the texts with most letters in an unusual script, (N,) bool."""
        is_clear = (letters.script_letters >= MIN_WORD_LETTERS) & (2 * letters.script_letters > letters.letters)
        return is_clear & (letters.script > OTHER) & ~np.isin(letters.script, self.scripts.usual(self._letters))

    def judge(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the likeliest other language of each text, and its margin, as ``Identifier.judge`` does.

        A text in a script that its language shares with no other is in its language.
        """
        others, margins = self._identifier.judge(texts, self.language)
        if self._own_script:
            for row in np.flatnonzero(margins >= 0).tolist():
                if self._own_script.share(texts[row]) > MIN_SCRIPT_SHARE:
                    margins[row] = -1.0
        return others, margins

    def owns(self, labels: np.ndarray) -> np.ndarray:
        """Return whether each text's label, a number of the identifier, is this side's language, (N,) bool."""
        return np.array([name == self.label for name in self._identifier.labels])[labels]

    def foreign_languages(
        self, texts: Sequence[str], opposite: Sequence[str], letters: Letters, margins: np.ndarray
    ) -> np.ndarray:
        """Find the texts in another language, (N,) bool.

        That language is likelier by far, and most words do not occur in the texts of the side's own language. Words on
        both sides do not count, because they may be names.

        Args:
            texts: The N texts of this side.
            opposite: Those of the other side.
            letters: The letters of ``texts``.
            margins: (N,) as ``judge`` returns them.
        """
        if not self.checks_language:
            return np.zeros(len(texts), dtype=bool)
        is_foreign = margins > MIN_MARGIN * np.maximum(1, MIN_LETTERS / np.maximum(1, letters.letters))
        for row in np.flatnonzero(is_foreign).tolist():
            words = _words(texts[row]) - _words(opposite[row])
            known = sum(self._texts_with_word[word] > 1 for word in words)
            is_foreign[row] = bool(words) and 2 * known < len(words)
        return is_foreign


def _words(text: str) -> set[str]:
    return set(WORD.findall(text.lower()))


def check_languages(source: Side, target: Side, advice: str) -> None:
    """Compare the languages of most texts with those that they should be in.

    Args:
        source: The sources.
        target: The targets.
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
