"""The metrics of validations, results, comparisons and reports."""

from mt.metrics.bleu import Bleu
from mt.metrics.chrf import Chrf
from mt.metrics.metric import Metric
from mt.metrics.ter import Ter

METRICS: dict[str, type[Metric]] = {
    "bleu": Bleu,
    "chrf": Chrf,
    "ter": Ter,
}
"""Maps the key of each metric in metrics.jsonl and results.json to its class. Verdicts are about the first, BLEU."""


def metrics_for(language: str) -> dict[str, Metric]:
    """Return the metrics for a target language by their keys."""
    return {key: metric(language) for key, metric in METRICS.items()}
