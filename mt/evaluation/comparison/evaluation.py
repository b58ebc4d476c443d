"""``python -m mt evaluate``: scores a run, a model or a file of translations on a test set."""

import logging
from pathlib import Path

from mt.config import EvaluationConfig
from mt.core.json_file import write_json
from mt.core.randomness import generator
from mt.core.wording import aligned
from mt.evaluation.comparison.conditions import find_cautions
from mt.evaluation.comparison.verdict import SEED, block_counts
from mt.evaluation.systems import open_systems
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
    evaluation, systems = open_systems(config)
    systems = with_translations(evaluation, systems, config.device)
    for caution in find_cautions(evaluation, systems):
        logger.warning("%s", caution)
    rows, scores = [(systems[0].name, "score", "95 % interval", "signature")], {}
    for metric, counts in block_counts(evaluation, systems)[0].items():
        random = generator(SEED, "bootstrap")
        score, *_ = paired_intervals(counts, counts, metric.score, config.bootstrap_samples, random)
        rows.append((metric.name, f"{score.score:.2f}", f"{score.low:.2f} … {score.high:.2f}", metric.signature))
        scores[metric.name] = vars(score) | {"signature": metric.signature}
    lines = len(evaluation.references)
    print(f"{aligned(rows)}\n\n{lines:,} lines, {evaluation.direction}", flush=True)
    if config.output:
        write_json(Path(config.output), {"run": config.run, "lines": lines, "scores": scores})
