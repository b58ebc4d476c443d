"""The confidence of a trained model: its fit on the validation set, and its figures on the test set."""

import logging
from collections.abc import Mapping

import datasets
import numpy as np

from mt.data.corpus import evenly_spaced
from mt.distributed.workers import Workers
from mt.metrics.calibration import calibration_error, fit_logistic, roc_area
from mt.metrics.sacrebleu import Chrf
from mt.storage.model_description import ConfidenceConfig
from mt.text.line import Line
from mt.training.time_budget import MAX_CONFIDENCE_PAIRS
from mt.translation.confidence import MIN_CHRF, Features
from mt.translation.engine import SearchRequest
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)

CONFIDENCE = "confidence"
"""The key of the figures in results.json."""
MIN_PAIRS = 100
MIN_OF_EACH = 10
"""The smallest number of validation pairs, and of good and of bad translations among them, for a fit."""


def fit_confidence(translator: Translator, valid: datasets.Dataset, workers: Workers) -> ConfidenceConfig | None:
    """Fit the confidence of a model on validation pairs. All workers have to call this and translate a share.

    Returns:
        The fitted confidence; None, with a log line that says why, if there are too few good or bad translations.
    """
    if len(valid) < MIN_PAIRS:
        logger.info("confidence: not fitted, because the validation set has fewer than %d pairs", MIN_PAIRS)
        return None
    features, labels = _examples(translator, valid, workers)
    good, bad = int(labels.sum()), int((1 - labels).sum())
    if min(good, bad) < MIN_OF_EACH:
        message = "confidence: not fitted, because of the validation translations %d have chrF2 ≥ %d and %d have less"
        logger.info("%s; %d of each are needed", message % (good, MIN_CHRF, bad), MIN_OF_EACH)
        return None
    names = ("intercept", *Features._fields)
    return ConfidenceConfig(**dict(zip(names, fit_logistic(np.array(features), labels).tolist(), strict=True)))


def measure_confidence(
    translator: Translator, test: datasets.Dataset, workers: Workers
) -> dict[str, float | None] | None:
    """Measure the fitted confidence of a model on test pairs. All workers have to call this and translate a share.

    Returns:
        The number of ``pairs``, the expected ``calibration_error``, and the areas under the ROC curve of the confidence
        (``roc_area``) and of the score per token alone (``score_roc_area``), which are None if all translations are
        good or all are bad. None without a fitted confidence or a translation by the model.
    """
    fitted = translator.confidence.fitted
    if isinstance(fitted, str):
        return None
    features, labels = _examples(translator, test, workers)
    if not features:
        return None
    probabilities = np.array([own.confidence(fitted) for own in features])
    return {
        "pairs": len(labels),
        "calibration_error": calibration_error(probabilities, labels),
        "roc_area": roc_area(probabilities, labels),
        "score_roc_area": roc_area(np.array([own.score for own in features]), labels),
    }


def confidence_row(figures: Mapping[str, float | None] | None) -> list[tuple[str, str, str]]:
    """Return the row of the table of results with the figures of ``measure_confidence``; no row without them."""
    if figures is None:
        return []
    areas = f"area under ROC {figures['roc_area']}, of the score alone {figures['score_roc_area']}"
    return [("confidence", f"{figures['calibration_error']}", f"expected calibration error; {areas}")]


def _examples(translator: Translator, pairs: datasets.Dataset, workers: Workers) -> tuple[list[Features], np.ndarray]:
    """Translate some pairs. Return the features of the N translations, and 1 for each that is good, otherwise 0 (N).

    Pairs of which the model translates nothing, or whose translation the glossary changes, are left out.
    """
    some = workers.share(list(evenly_spaced(pairs, MAX_CONFIDENCE_PAIRS)))
    lines = translator.segment([Line().with_written(pair["source"], translator.config.markup) for pair in some])
    sources = [source for line in lines for source in line.sources]
    hypotheses = translator.search(SearchRequest(sources, [()] * len(sources), translator.config.beam_size))
    translated = zip(
        translator.confidence.features(lines, hypotheses),
        [best for (best,) in translator.join(lines, hypotheses)],
        [pair["target"] for pair in some],
        strict=True,
    )
    rows = [row for row in workers.gather(list(translated)) if row[0] and not row[1].has_inserted_term]
    if not rows:
        return [], np.array([])
    features, translations, references = zip(*rows, strict=True)
    scores = Chrf(translator.layer.target_language).segment_scores([best.text for best in translations], references)
    return list(features), (np.array(scores) >= MIN_CHRF).astype(np.float64)
