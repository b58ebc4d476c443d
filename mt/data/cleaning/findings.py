"""What cleaning finds in a corpus, and how it is told."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mt.config import DataConfig
from mt.core.columns import numbers
from mt.data.corpus import Corpus

logger = logging.getLogger(__name__)

MANY = 0.3
"""A rule that drops more than this share of the pairs may be the wrong one for this corpus."""
MOST = 0.5
"""A file of which more than this share of the pairs is exchanged is in the other direction."""
BINS = 80
ALL_BUT = 0.0005
"""The share of the scores at either end that is counted in the first and the last bin."""


@dataclass(frozen=True)
class Histogram:
    """How the scores of a rule are distributed over the training pairs."""

    rule: str
    edges: list[float]
    """Of the bins. What lies outside is counted in the first and the last."""
    pairs: list[int]
    found: list[int]
    """Those of the pairs that the rule finds."""
    random: list[int] | None = None
    """Pairs that were matched at random, for comparison."""

    @classmethod
    def of(
        cls, rule: str, scores: np.ndarray, found: np.ndarray, random_scores: np.ndarray | None = None
    ) -> "Histogram":
        """Counts scores; NaN stands for none.

        Args:
            scores: (N,).
            found: (N,) bool: the pairs that the rule finds.
            random_scores: Those of pairs that were matched at random.
        """
        scores, found = scores[np.isfinite(scores)], found[np.isfinite(scores)]
        low, high = np.quantile(scores, [ALL_BUT, 1 - ALL_BUT]) if len(scores) else (0.0, 1.0)
        edges = np.linspace(low, max(high, low + 1e-3), BINS + 1)

        def counted(values: np.ndarray) -> list[int]:
            return np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0].tolist()

        random = None if random_scores is None else counted(random_scores)
        return cls(rule, edges.tolist(), counted(scores), counted(scores[found]), random)


@dataclass(frozen=True)
class Findings:
    """What the rules find in the splits of a corpus."""

    rules: tuple[str, ...]
    """The rules that were applied, in their order."""
    found: dict[str, np.ndarray]
    """For each split (N,) int8: the number, from 1, of the first of ``rules`` that finds each pair; 0 for none."""
    scores: dict[str, np.ndarray]
    """For each split (N,) float32: the score that this rule judges by; NaN if it has none."""
    histograms: tuple[Histogram, ...]
    exchanged: np.ndarray
    """(N,) bool: the training pairs whose sides are each in the other side's language."""

    def counts(self, split: str) -> dict[str, int]:
        """Returns how many pairs of a split each rule finds."""
        times = np.bincount(self.found[split], minlength=len(self.rules) + 1)[1:]
        return dict(zip(self.rules, times.tolist(), strict=True))


def tell(findings: Findings, corpus: Corpus, config: DataConfig) -> None:
    """Logs a table of what each rule finds, and what may be wrong with the corpus or with a rule."""
    counts = {split: findings.counts(split) for split in findings.found}
    sizes = {split: len(found) for split, found in findings.found.items()}
    logger.info("cleaning   %s", "".join(f"{split:>12}" for split in sizes))
    for rule in findings.rules:
        if any(of_split[rule] for of_split in counts.values()):
            logger.info("  %-11s%s", rule, "".join(f"{of_split[rule]:>12,}" for of_split in counts.values()))
    logger.info("  %-11s%s", "of", "".join(f"{size:>12,}" for size in sizes.values()))
    for split in ("valid", "test"):
        if count := sum(counts[split].values()):
            logger.warning(
                "%s: cleaning finds %s of its %s pairs; they are kept, so that runs stay comparable",
                split, f"{count:,}", f"{sizes[split]:,}",
            )  # fmt: skip
    for rule, count in counts["train"].items():
        if count > MANY * sizes["train"]:
            logger.warning(
                "cleaning: the rule %s drops %.0f %% of the training pairs; python -m mt clean shows them, and "
                "%s leaves the rule out",
                rule, 100 * count / sizes["train"], config.without_rule(rule),
            )  # fmt: skip
    for name in _exchanged_files(findings.exchanged, corpus):
        logger.warning(
            "cleaning: most sources and targets of %s are in each other's language: exchange its sides", name
        )


def _exchanged_files(exchanged: np.ndarray, corpus: Corpus) -> Iterator[str]:
    """Yields the name of each file most of whose pairs have their sides exchanged."""
    ids = numbers(corpus.train, "id")
    first_id = 0
    for report in corpus.report:
        if report.split == "train":
            for name, pairs in [(file.name, file.pairs) for file in report.files] or [(report.origin, report.read)]:
                start, end = np.searchsorted(ids, (first_id, first_id + pairs))
                if end > start and exchanged[start:end].mean() > MOST:
                    yield name
                first_id += pairs
