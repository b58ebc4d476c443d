"""Quality estimation: the confidence of a translation is the probability that its sentence chrF2 is at least 50.

A logistic regression computes it from features of the search. Training fits the regression on the validation set.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from mt.config import DecodingConfig
from mt.core.errors import InputError
from mt.metrics.calibration import sigmoid
from mt.metrics.metric import Chrf
from mt.storage.model_description import ConfidenceConfig, ModelDescription
from mt.text.layer import TextLayer
from mt.text.placeholders import missing_placeholders, remove_surplus_placeholders
from mt.translation.hypotheses import Hypotheses, TokenRows
from mt.translation.line_segmenter import SegmentedLine
from mt.translation.results import ScoredText

MIN_CHRF = 50
"""A translation with at least this sentence chrF2 counts as good."""
SEARCH_KEYS = ("method", "beam_size", "length_penalty")
"""The decoding settings that the confidence is fitted for, because they decide which hypotheses are compared."""


class Features(NamedTuple):
    """Features of a line for quality estimation, averaged over its sources, weighted by length.

    ``ConfidenceConfig`` has the coefficient of each feature, by the same names.
    """

    score: float
    """Log-probability per token."""
    agreement: float
    """Mean chrF2, from 0 to 1, of the best hypothesis compared with each other hypothesis of the beam."""
    length_ratio: float
    """Logarithm of the translation's characters per character of the source."""
    token_length: float
    """Logarithm of the translation's characters per token. Rare words consist of short tokens."""
    repaired: float
    """The number of placeholders that the model omitted, repeated or invented."""

    def confidence(self, config: ConfidenceConfig) -> float:
        """Return the probability of a good translation, rounded to four decimals."""
        terms = (getattr(config, name) * value for name, value in self._asdict().items())
        return round(float(sigmoid(np.array(config.intercept + sum(terms)))), 4)


class ConfidenceEstimator:
    """Estimates the confidence of translations from the hypotheses of their sources. A ``Translator`` holds it."""

    def __init__(self, layer: TextLayer, fitted: ConfidenceConfig | str) -> None:
        """
        Args:
            layer: The text layer of the model.
            fitted: The fitted confidence of the model; or the reason why there is none.
        """
        self.fitted = fitted
        self._tokenizers = layer.tokenizers
        self._chrf = Chrf(layer.target_language)

    def require_fitted(self) -> ConfidenceConfig:
        """Return the fitted confidence. Raise InputError with the reason if there is none."""
        if isinstance(self.fitted, str):
            raise InputError(self.fitted)
        return self.fitted

    def with_confidence(
        self,
        translations: Sequence[list[ScoredText]],
        lines: Sequence[SegmentedLine],
        hypotheses: Hypotheses,
    ) -> list[list[ScoredText]]:
        """Return the translations of lines, with the confidence of the best translation of each line that asks for it.

        A translation has none if it is the source, or if the glossary inserted a term. See ``features`` for ``lines``
        and ``hypotheses``.
        """
        fitted = self.require_fitted()
        return [
            [
                replace(best, confidence=features.confidence(fitted))
                if features and line.line.confident and not best.is_source and not best.has_inserted_term
                else best,
                *others,
            ]
            for line, (best, *others), features in zip(
                lines, translations, self.features(lines, hypotheses), strict=True
            )
        ]

    def features(self, lines: Sequence[SegmentedLine], hypotheses: Hypotheses) -> list[Features | None]:
        """Return the features of each line; None if the model translated nothing of it.

        Args:
            lines: The segmented lines.
            hypotheses: All hypotheses of each source, best first. The sources are in the order of ``lines``.
        """
        remaining = iter(hypotheses)
        return [self._line_features(line.sources, list(islice(remaining, len(line.sources)))) for line in lines]

    def _line_features(self, sources: TokenRows, hypotheses: Hypotheses) -> Features | None:
        """Return the features of one line, given the hypotheses of each source."""
        rows: list[tuple[float, ...]] = []
        for source, n_best in zip(self._tokenizers.source.decode(sources), hypotheses, strict=True):
            text, *others = self._tokenizers.target.decode([hypothesis.tokens for hypothesis in n_best])
            scores = self._chrf.segment_scores([text] * len(others), others)
            agreement = sum(scores) / len(scores) / 100 if scores else 1.0
            length = n_best[0].length
            repaired = remove_surplus_placeholders(text, source)[1] + len(missing_placeholders(text, source))
            rows.append((n_best[0].log_probability, length, length * agreement, len(source), len(text), repaired))
        if not rows:
            return None
        log_probability, tokens, agreement, source_length, length, repaired = map(sum, zip(*rows, strict=True))
        return Features(
            score=log_probability / tokens,
            agreement=agreement / tokens,
            length_ratio=math.log((length + 1) / (source_length + 1)),
            token_length=math.log((length + 1) / tokens),
            repaired=repaired,
        )


def usable_confidence(models: Sequence[ModelDescription], config: DecodingConfig) -> ConfidenceConfig | str:
    """Return the fitted confidence of a model for these decoding settings; or a message why it has none."""
    fitted = models[0].confidence
    if len(models) > 1:
        return "confidence is fitted for single models, and this is an ensemble: give one run"
    if fitted is None:
        return (
            "this model has no fitted confidence (model.yaml: confidence is null), because it was trained elsewhere, "
            "its training has not ended, or its validation set has too few pairs, good translations or bad ones: leave "
            "confidence out, finish the training, or train a model with a larger validation set"
        )
    for key in SEARCH_KEYS:
        if getattr(config, key) != (value := getattr(models[0].decoding, key)):
            return (
                f"confidence is fitted for decoding.{key}={value}, not {getattr(config, key)}: leave decoding.{key} "
                "out, or confidence"
            )
    return fitted
