"""Identifies the languages of many texts at once, by the model of py3langid (naive Bayes over strings of bytes)."""

import unicodedata
from collections.abc import Sequence

import numpy as np
import torch
from py3langid.langid import MODEL_FILE, LanguageIdentifier
from torch.nn import functional

from mt.core.language import base_language

MOST_BYTES = 240
"""A text is judged by its beginning, which is enough."""
SAME = {"lzh": "zh", "yue": "zh", "wuu": "zh", "hr": "sr", "bs": "sr", "sh": "sr", "nb": "no", "nn": "no", "id": "ms"}
"""Languages that no identifier can tell apart in a sentence, or that the model knows under one name."""


class Identifier:
    """Finds out how much more likely a text is in another language than in the one that it should be in.

    The library itself takes 50 µs or more for a text. Here the same sums are made for thousands of texts at once.
    """

    def __init__(self) -> None:
        model = LanguageIdentifier.from_model_file(MODEL_FILE)
        self.labels = [_label(name) for name in model.nb_classes]
        self._next = np.asarray(model.tk_nextmove)
        self._row = np.asarray(model.tk_row).astype(np.int64) << 8
        self._feature = np.asarray(model.tk_output)
        self._weights = torch.from_numpy(np.asarray(model.nb_ptc, dtype=np.float32))
        self._prior = np.asarray(model.nb_pc, dtype=np.float32)

    def label(self, language: str) -> str:
        """Returns the name that a language has among ``labels``, if it is one of them."""
        return _label(base_language(language))

    def scores(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the logarithm of each language's likelihood, up to a constant of the text, (N, languages) float32."""
        encoded = [_encoded(text) for text in texts]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        order = np.argsort(-lengths, kind="stable")
        starts = (np.cumsum(lengths) - lengths)[order]
        content = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        state = np.zeros(len(texts), dtype=np.int64)
        met = []
        for place in range(int(lengths.max(initial=0))):
            going = int(np.searchsorted(-lengths[order], -place))  # the texts that are longer than this
            state = self._next[self._row[state[:going]] + content[starts[:going] + place]]
            feature = self._feature[state]
            there = np.flatnonzero(feature >= 0)
            met.append(order[there] * len(self._weights) + feature[there])
        keys, times = np.unique(np.concatenate(met) if met else np.zeros(0, np.int64), return_counts=True)
        text, feature = np.divmod(keys, len(self._weights))
        found = np.zeros((len(texts), len(self.labels)), dtype=np.float32)
        if len(keys):
            first = np.flatnonzero(np.diff(text, prepend=-1))
            sums = functional.embedding_bag(
                torch.from_numpy(feature),
                self._weights,
                torch.from_numpy(first),
                mode="sum",
                per_sample_weights=torch.from_numpy(np.log1p(times.astype(np.float32))),
            )
            found[text[first]] = sums.numpy() + self._prior
        return found

    def judge(self, texts: Sequence[str], language: str) -> tuple[np.ndarray, np.ndarray]:
        """Compares the language that texts should be in with the likeliest other one.

        Returns:
            The index in ``labels`` of the other language, (N,) int16, and the logarithm of how much likelier it is,
            (N,) float32. If the model does not know the language of the texts, nothing can be said: both are 0.
        """
        own = np.array([name == self.label(language) for name in self.labels])
        if not own.any():
            return np.zeros(len(texts), dtype=np.int16), np.zeros(len(texts), dtype=np.float32)
        scores = self.scores(texts)
        expected = scores[:, own].max(axis=1)
        scores[:, own] = -np.inf
        other = scores.argmax(axis=1)
        return other.astype(np.int16), scores[np.arange(len(texts)), other] - expected


def _label(code: str) -> str:
    return SAME.get(code, code)


def _encoded(text: str) -> bytes:
    """Returns the bytes that py3langid would look at, of the text's beginning."""
    text = text[:MOST_BYTES]
    text = text.lower() if text.isupper() else text
    return unicodedata.normalize("NFC", text).encode()[:MOST_BYTES]
