"""The registry of metrics. Validation, test results, comparisons, reports and exports use all metrics in it."""

from mt.config.training import MetricName
from mt.metrics.metric import Bleu, Chrf, Ter, TextMetric

METRICS: dict[MetricName, type[TextMetric]] = {
    "bleu": Bleu,
    "chrf": Chrf,
    "ter": Ter,
}
"""Key of the metric in metrics.jsonl and results.json → its class. Comparisons base verdicts on the first, BLEU."""


def metrics_for(language: str) -> dict[str, TextMetric]:
    """Return key → metric for all METRICS, made for a target language."""
    return {key: metric(language) for key, metric in METRICS.items()}
