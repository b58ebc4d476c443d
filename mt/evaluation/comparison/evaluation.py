"""``python -m mt evaluate``: scores a run, a model or a file of translations on a test set."""

import logging
from pathlib import Path
from typing import Any

from mt.config import EvaluationConfig
from mt.core.direction import AskedDirection
from mt.core.json_file import write_json
from mt.core.randomness import generator
from mt.core.wording import aligned
from mt.evaluation.comparison.conditions import find_cautions
from mt.evaluation.comparison.verdict import SEED, block_counts
from mt.evaluation.reports import table_with_means
from mt.evaluation.systems import EvaluationSet, directions_to_score, open_systems
from mt.evaluation.translation import prepare_device, with_translations
from mt.metrics.significance import paired_intervals

logger = logging.getLogger(__name__)


def evaluate(config: EvaluationConfig) -> None:
    """Score the translations of a test set, and print the scores. Write them to ``output``, too.

    A run has translated its own test set already. It translates any other test set now, as a model does.

    Raises:
        InputError: The run is unfinished, a run or file is damaged, or two files have different numbers of lines.
    """
    prepare_device(config)
    results: dict[str, dict[str, Any]] = {}
    for asked in directions_to_score(config):
        evaluation, scores = _evaluate(config, asked)
        results[evaluation.direction] = {"run": config.run, "lines": len(evaluation.references), "scores": scores}
    first, *others = results.values()
    if others:
        rows = {name: [score["score"] for score in own["scores"].values()] for name, own in results.items()}
        print(f"\n{table_with_means('direction', list(first['scores']), rows)}", flush=True)
    if config.output:
        write_json(Path(config.output), {"directions": results} if others else first)


def _evaluate(config: EvaluationConfig, asked: AskedDirection) -> tuple[EvaluationSet, dict[str, dict[str, Any]]]:
    """Print the scores in one direction. Return the test set, and the score of each metric with its interval."""
    evaluation, systems = open_systems(config, asked)
    systems = with_translations(evaluation, systems, config.device)
    for caution in find_cautions(evaluation, systems):
        logger.warning("%s", caution)
    rows, scores = [(systems[0].name, "score", "95 % interval", "signature")], {}
    for metric, counts in block_counts(evaluation, systems)[0].items():
        random = generator(SEED, "bootstrap")
        score, *_ = paired_intervals(counts, counts, metric.score, config.bootstrap_samples, random)
        rows.append((metric.name, f"{score.score:.2f}", f"{score.low:.2f} … {score.high:.2f}", metric.signature))
        scores[metric.name] = vars(score) | {"signature": metric.signature}
    print(f"{aligned(rows)}\n\n{len(evaluation.references):,} lines, {evaluation.direction}", flush=True)
    return evaluation, scores
