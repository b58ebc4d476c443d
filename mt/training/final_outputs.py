"""The final outputs of a run: its weights, the fitted quality estimation, and the translated and scored test set.

For a fine-tuned run, the initial weights are scored, too, which shows whether fine-tuning helped.
"""

import logging
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import datasets
import numpy as np

from mt.config import TrainConfig
from mt.core.device import peak_memory_bytes
from mt.core.errors import InputError, aligned
from mt.core.files import make_folder, write_atomically
from mt.core.installation import as_typed_here
from mt.data.corpus import evenly_spaced_pairs
from mt.distributed.workers import Workers
from mt.metrics.calibration import calibration_error, fit_logistic, roc_area
from mt.metrics.metric import Bleu, Chrf
from mt.metrics.registry import METRICS, metrics_for
from mt.models.seq2seq import Seq2Seq
from mt.storage.model_description import ConfidenceConfig
from mt.storage.run_folder import (
    DIRECTIONS,
    FILE_CHECKSUMS,
    INITIAL_BLEU,
    PROVENANCE,
    RESULTS,
    SCORED,
    SIGNATURE_SUFFIX,
    TENSORBOARD,
    WEIGHTS,
    file_checksums,
    read_results,
    scores_with_signatures,
)
from mt.storage.validation import read_json, write_json
from mt.storage.weights import checksum, load_weights, weights_of, write_tensors
from mt.text.line import Line
from mt.training.checkpoint import Progress, average_weights, scheduled_checkpoints
from mt.training.hints import collapse_hint, log_hints, low_score_hint
from mt.training.initial_weights import WeightInterpolation
from mt.training.time_budget import MAX_CONFIDENCE_PAIRS
from mt.training.validation import Monitor, translate_together
from mt.translation.confidence import MIN_CHRF, Features
from mt.translation.engine import SearchRequest
from mt.translation.trained_model import load_weights_from
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)

CONFIDENCE = "confidence"
"""The key of the evaluation of the quality estimation in results.json."""
MIN_PAIRS = 100
"""Minimum number of validation pairs to fit the quality estimation."""
MIN_EXAMPLES = 10
"""Minimum number of good translations, and of bad ones, among them."""


Scores = dict[str, Any]
"""Values of results.json."""
Tasks = Sequence[tuple[Translator, datasets.Dataset]]
"""The translator of each direction, with pairs to translate."""


def fit_confidence(tasks: Tasks, workers: Workers) -> ConfidenceConfig | None:
    """Fit the quality estimation of a model on validation pairs. All workers have to call this and translate a share.

    Returns:
        The fitted coefficients; None, with the reason in the log, if there are too few good or bad translations.
    """
    if sum(len(pairs) for _, pairs in tasks) < MIN_PAIRS:
        logger.info("confidence: not fitted, because the validation set has fewer than %d pairs", MIN_PAIRS)
        return None
    features, labels = _confidence_examples(tasks, workers)
    good, bad = int(labels.sum()), int((1 - labels).sum())
    if min(good, bad) < MIN_EXAMPLES:
        message = "confidence: not fitted, because of the validation translations %d have chrF2 ≥ %d and %d have less"
        logger.info("%s; %d of each are needed", message % (good, MIN_CHRF, bad), MIN_EXAMPLES)
        return None
    names = ("intercept", *Features._fields)
    return ConfidenceConfig(**dict(zip(names, fit_logistic(np.array(features), labels).tolist(), strict=True)))


def measure_confidence(tasks: Tasks, workers: Workers) -> dict[str, float | None] | None:
    """Evaluate the quality estimation of a model on test pairs. All workers have to call this and translate a share.

    Returns:
        The number of ``pairs``, the expected ``calibration_error``, and the areas under the ROC curve of the confidence
        (``roc_area``) and of the score per token alone (``score_roc_area``), which are None if all translations are
        good or all are bad. None without a fitted quality estimation or a translation by the model.
    """
    fitted = tasks[0][0].confidence.fitted
    if isinstance(fitted, str):
        return None
    features, labels = _confidence_examples(tasks, workers)
    if not features:
        return None
    probabilities = np.array([own.confidence(fitted) for own in features])
    return {
        "pairs": len(labels),
        "calibration_error": calibration_error(probabilities, labels),
        "roc_area": roc_area(probabilities, labels),
        "score_roc_area": roc_area(np.array([own.score for own in features]), labels),
    }


def _confidence_examples(tasks: Tasks, workers: Workers) -> tuple[list[Features], np.ndarray]:
    """Translate a sample of pairs. Return the features of N translations, and their labels (N): 1 if good, else 0.

    Pairs in which the model translates nothing, or whose translation the glossary changes, are skipped.
    """
    features: list[Features] = []
    labels: list[float] = []
    for translator, pairs in tasks:
        share = workers.share(list(evenly_spaced_pairs(pairs, MAX_CONFIDENCE_PAIRS // len(tasks))))
        lines = translator.segment([Line().with_text(pair["source"], translator.config.markup) for pair in share])
        sources = [source for line in lines for source in line.sources]
        hypotheses = translator.search(SearchRequest(sources, [()] * len(sources), translator.config.beam_size))
        translated = zip(
            translator.confidence.features(lines, hypotheses),
            [best for (best,) in translator.join(lines, hypotheses)],
            [pair["target"] for pair in share],
            strict=True,
        )
        rows = [row for row in workers.gather(list(translated)) if row[0] and not row[1].has_inserted_term]
        if rows:
            own, best, references = zip(*rows, strict=True)
            features += own
            metric = Chrf(translator.layer.target_language)
            labels += metric.segment_scores([translation.text for translation in best], references)
    return features, (np.array(labels) >= MIN_CHRF).astype(np.float64)


def write_weights(
    config: TrainConfig, model: Seq2Seq, interpolation: WeightInterpolation, metadata: Mapping[str, object]
) -> int:
    """Write model.safetensors after the last update: the last weights or the mean of checkpoints, as in
    ``training.weights``.

    With ``training.weights=best``, do nothing, because each validation has written the best weights so far.

    Args:
        config: The config of the run.
        model: The model after the last update.
        interpolation: Averages the weights with the initial ones, as ``training.start_share`` says.
        metadata: The metadata of the weights file, as for ``write_tensors``.

    Returns:
        The number of checkpoints that were averaged; 0 if none were.
    """
    settings, run = config.training, config.folder
    if settings.weights == "best":
        return 0
    averaged = []
    if settings.weights == "average":
        averaged = list(scheduled_checkpoints(run, settings).values())[-settings.average :]
        if len(averaged) < settings.average:
            logger.warning(
                "the run stopped early: the weights are the mean of its %d checkpoints, not of training.average=%d. To "
                "average more of them, set a smaller training.validate_every in a new run",
                len(averaged),
                settings.average,
            )
    weights = average_weights(averaged) if averaged else weights_of(model)
    write_tensors(run / WEIGHTS, interpolation.interpolated(weights), metadata)
    return len(averaged)


def write_scores(
    config: TrainConfig,
    tasks: Tasks,
    workers: Workers,
    progress: Progress,
    figures: Mapping[str, object],
) -> None:
    """Translate and score the test set. Write scored/ and results.json, and log the results.

    The scores are also recorded in metrics.jsonl and TensorBoard. After fine-tuning, the BLEU score of the initial
    weights is measured. With several directions, the scores are means over them.

    Args:
        config: The config of the run.
        tasks: The translators with the final weights, and the test pairs.
        workers: All of them have to call this and translate a share. The main process writes the files.
        progress: The progress at the end of training.
        figures: Further values of results.json.
    """
    logger.info("translating %s test sentences", f"{sum(len(test) for _, test in tasks):,}")
    started = time.perf_counter()
    translated = [
        (list(test["source"]), list(test["target"]), translate_together(translator, list(test["source"]), workers))
        for translator, test in tasks
    ]
    seconds = time.perf_counter() - started
    confidence = measure_confidence(tasks, workers)
    parts: dict[str, Scores] = {}
    for (translator, _), (sources, references, hypotheses) in zip(tasks, translated, strict=True):
        before = initial_bleu(config, translator, sources, references, workers)
        if workers.is_main:
            own = {"test_pairs": len(sources), INITIAL_BLEU: before}
            parts[translator.layer.direction.key] = _metric_scores(translator, hypotheses, references) | own
    if not workers.is_main:
        return
    run, settings, best, model = config.folder, config.training, progress.best_score, tasks[0][0].model
    make_folder(run / SCORED)
    lines = [[line for part in column for line in part] for column in zip(*translated, strict=True)]
    for name, column in zip(("source", "reference", "hypothesis"), lines, strict=True):
        write_atomically(run / SCORED / f"test.{name}", "".join(f"{line}\n" for line in column))
    write_json(run / PROVENANCE, read_json(run / PROVENANCE) | {"weights_sha256": checksum(weights_of(model))})
    scored = _mean_scores(list(parts.values()))
    several = parts if len(parts) > 1 else {}
    prefixed = {"": scored} | {f"{key}.": own for key, own in several.items()}
    values = {prefix + name: own[name] for prefix, own in prefixed.items() for name in METRICS if name in own}
    with Monitor(run, progress, settings.max_updates) as monitor:
        monitor.record("test", progress.update, values)
        monitor.flush()
    results = {
        **scored,
        "test_pairs": len(lines[0]),
        "decoding_sentences_per_second": len(lines[0]) / seconds,
        "parameters": model.parameter_count,
        "weights": settings.weights,
        **figures,
        "best_valid_score": None if best is None or not math.isfinite(best) else abs(best),
        "best_update": progress.best_update,
        "updates": progress.update,
        "max_updates": settings.max_updates,
        "stopped_early": progress.update < settings.max_updates,
        "source_tokens": progress.source_tokens,
        "target_tokens": progress.target_tokens,
        "training_minutes": progress.seconds / 60,
        "peak_memory_bytes": peak_memory_bytes(workers.device),
        CONFIDENCE: confidence,
        **({DIRECTIONS: several} if several else {}),
    }
    write_json(run / RESULTS, results | {FILE_CHECKSUMS: file_checksums(run)})
    show_results(run)
    _, references, hypotheses = lines
    log_hints(collapse_hint(hypotheses, references, Chrf(config.data.target_language)))


def _metric_scores(translator: Translator, hypotheses: list[str], references: list[str]) -> Scores:
    """Return the score and the signature of each metric."""
    metrics = metrics_for(translator.layer.target_language)
    scores: Scores = {key: metric.corpus_score(hypotheses, references) for key, metric in metrics.items()}
    return scores | {f"{key}{SIGNATURE_SUFFIX}": metric.signature for key, metric in metrics.items()}


def _mean_scores(directions: Sequence[Scores]) -> Scores:
    """Return the results of the first direction, with the mean over all in place of each score."""
    scores = [name for name, value in directions[0].items() if isinstance(value, float)]
    return directions[0] | {name: mean(own[name] for own in directions) for name in scores}


def show_results(run: Path) -> None:
    """Log the results of a finished run as a table, and a hint if they are very low.

    Raises:
        InputError: results.json is corrupted.
    """
    results = read_results(run)
    scores, directions = scores_with_signatures(results), results.get(DIRECTIONS, {})
    before = results.get(INITIAL_BLEU)
    best = f"best on validation at {results['best_update']:,}"
    if results["best_update"] == 0:
        best = "best on validation before the first update: the final weights are the initial ones"
    languages = " source_language=… target_language=…" if directions else ""
    rows = [
        *((f"test {METRICS[key].name}", f"{scores[key][0]:.2f}", scores[key][1]) for key in METRICS if key in scores),
        *((f"… {key}", f"{own['bleu']:.2f}", f"BLEU; chrF2 {own['chrf']:.2f}") for key, own in directions.items()),
        *([] if before is None else [("… before fine-tuning", f"{before:.2f}", "BLEU of the initial weights")]),
        ("parameters", f"{results['parameters']:,}", ""),
        ("updates", f"{results['updates']:,}", best),
        *([("epochs", f"{results['epochs']:,.2f}", "")] if "epochs" in results else []),
        ("training", f"{results['training_minutes']:.1f} min", f"{results['target_tokens']:,} target tokens"),
        ("model", str(run / WEIGHTS), as_typed_here(f"translate with: python translate.py run={run}{languages}")),
        ("scored lines", str(run / SCORED), ""),
        ("curves", str(run / TENSORBOARD), f"watch with: tensorboard --logdir {run.parent}"),
    ]
    logger.info("\n%s", aligned([("", *row) for row in rows]))
    log_hints(low_score_hint(results["bleu"], results["chrf"]))


def initial_bleu(
    config: TrainConfig, translator: Translator, sources: list[str], references: Sequence[str], workers: Workers
) -> float | None:
    """Return the BLEU score of the weights of ``training.init_from`` on the test set.

    Args:
        config: The config of the run.
        translator: A translator with the final weights, which are replaced during the measurement.
        sources: The sources of the test set.
        references: Its references.
        workers: All of them have to call this and translate a share.

    Returns:
        The score; None without ``training.init_from`` or, with a warning, if its weights are missing or have changed.
    """
    if config.training.init_from is None:
        return None
    model = translator.model
    assert isinstance(model, Seq2Seq)
    try:
        load_weights_from(Path(config.training.init_from), model, config.model, translator.tokenizers)
        if checksum(weights_of(model)) != read_json(config.folder / PROVENANCE)["initial_weights"]:
            raise InputError(f"{config.training.init_from}: weights changed since this run began; restore them")
        hypotheses = translate_together(translator, sources, workers)
    except InputError as error:
        logger.warning("BLEU before fine-tuning cannot be measured without the initial weights: %s", error)
        return None
    finally:
        load_weights(model, config.model, config.folder / WEIGHTS)
    return Bleu(translator.layer.target_language).corpus_score(hypotheses, references)
