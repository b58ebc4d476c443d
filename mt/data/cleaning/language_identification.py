"""Identify the languages of many texts at once, with the model of py3langid (naive Bayes over byte sequences)."""

import unicodedata
from collections.abc import Sequence

import numpy as np
import torch
from py3langid.langid import MODEL_FILE, LanguageIdentifier
from torch.nn import functional

from mt.core.language import base_language
from mt.core.ragged import row_starts

MAX_IDENTIFIED_BYTES = 240
"""The most bytes of a text that are read: the beginning of a text is enough to identify its language."""
SAME = {"lzh": "zh", "yue": "zh", "wuu": "zh", "hr": "sr", "bs": "sr", "sh": "sr", "nb": "no", "nn": "no", "id": "ms"}
"""Maps a language to a language that counts as the same one, because no identifier can distinguish the two in a
sentence, or because the model has one name for both."""


class Identifier:
    """Computes the likelihood of each language for thousands of texts at once. Both ``Side`` objects share an instance.

    The results are those of py3langid, which takes 50 µs or more for a text.
    """

    def __init__(self) -> None:
        model = LanguageIdentifier.from_model_file(MODEL_FILE)
        self.labels = np.array([SAME.get(name, name) for name in model.nb_classes])
        """The languages of the model, after the replacements of SAME, so a label can occur several times."""
        self._next_state = np.asarray(model.tk_nextmove)
        self._row_of_state = np.asarray(model.tk_row).astype(np.int64) << 8
        self._feature_of_state = np.asarray(model.tk_output)
        self._weights = torch.from_numpy(np.asarray(model.nb_ptc, dtype=np.float32))
        self._prior = np.asarray(model.nb_pc, dtype=np.float32)

    def label(self, language: str) -> str:
        """Return the label of a language. It is not in ``labels`` if the model does not know the language."""
        code = base_language(language)
        return SAME.get(code, code)

    def scores(self, texts: Sequence[str]) -> np.ndarray:
        """Return the log-likelihood of each label for each of N texts, (N, number of labels) float32.

        A constant of each text is left out, so only differences between labels have a meaning.
        """
        keys, counts = np.unique(self._features(texts), return_counts=True)
        text, feature = np.divmod(keys, len(self._weights))
        scores = np.zeros((len(texts), len(self.labels)), dtype=np.float32)
        if len(keys):
            first = np.flatnonzero(np.diff(text, prepend=-1))
            sums = functional.embedding_bag(
                torch.from_numpy(feature),
                self._weights,
                torch.from_numpy(first),
                mode="sum",
                per_sample_weights=torch.from_numpy(np.log1p(counts.astype(np.float32))),
            )
            scores[text[first]] = sums.numpy() + self._prior
        return scores

    def judge(self, texts: Sequence[str], label: str) -> tuple[np.ndarray, np.ndarray]:
        """Compare the language that N texts should be in, given by its label, with the likeliest other language.

        Returns:
            The index in ``labels`` of the likeliest other language of each text, (N,) int16, and its margin, (N,)
            float32: its log-likelihood minus that of ``label``. Both are 0 if the model does not know the language.
        """
        own = self.labels == label
        if not own.any():
            return np.zeros(len(texts), dtype=np.int16), np.zeros(len(texts), dtype=np.float32)
        scores = self.scores(texts)
        expected = scores[:, own].max(axis=1)
        scores[:, own] = -np.inf
        return scores.argmax(axis=1).astype(np.int16), scores.max(axis=1) - expected

    def _features(self, texts: Sequence[str]) -> np.ndarray:
        """Return the features of all texts, (F,) int64: a value for each occurrence of a feature in a text.

        The value is the index of the text times the number of features, plus the index of the feature. The library's
        automaton runs on all texts in parallel: each step reads one byte of every text that is long enough.
        """
        encoded = [_encode(text) for text in texts]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        order = np.argsort(-lengths, kind="stable")
        starts = row_starts(lengths)[order]
        content = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        state = np.zeros(len(texts), dtype=np.int64)
        features = [np.zeros(0, np.int64)]
        for position in range(int(lengths.max(initial=0))):
            longer = int(np.searchsorted(-lengths[order], -position))
            state = self._next_state[self._row_of_state[state[:longer]] + content[starts[:longer] + position]]
            feature = self._feature_of_state[state]
            rows = np.flatnonzero(feature >= 0)
            features.append(order[rows] * len(self._weights) + feature[rows])
        return np.concatenate(features)


def _encode(text: str) -> bytes:
    """Return the first MAX_IDENTIFIED_BYTES of a text, normalised in the same way as py3langid does."""
    text = text[:MAX_IDENTIFIED_BYTES]
    text = text.lower() if text.isupper() else text
    return unicodedata.normalize("NFC", text).encode()[:MAX_IDENTIFIED_BYTES]
