"""The results of cleaning a corpus, and their summary in the log."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mt.config import DataConfig
from mt.core.columns import numbers
from mt.data.corpus import Corpus

logger = logging.getLogger(__name__)

WARNED_SHARE = 0.3
"""A rule that drops a larger share of the pairs may be the wrong one for this corpus."""
MAJORITY_SHARE = 0.5
"""A file is in the other direction if a larger share of its pairs is exchanged."""
HISTOGRAM_BINS = 80
TAIL_SHARE = 0.0005
"""The share of the scores at either end that the first and the last bin contain."""


@dataclass(frozen=True)
class Histogram:
    """The distribution of a rule's scores over the training pairs."""

    rule: str
    edges: list[float]
    """The edges of the bins. The outermost bins also count what is outside."""
    pairs: list[int]
    found: list[int]
    """The pairs that the rule drops."""
    random: list[int] | None
    """Pairs matched at random, for comparison."""


class Findings:
    """The first rule that finds each pair, and the score that this rule judges by."""

    def __init__(self, rules: tuple[str, ...], sizes: Mapping[str, int]) -> None:
        """
        Args:
            rules: The names of the rules, in the order of their application.
            sizes: The number of pairs of each split. The training split is first.
        """
        total = sum(sizes.values())
        self.rules = rules
        self.sizes = dict(sizes)
        self.numbers = np.zeros(total, dtype=np.int8)
        """(N,) of all splits: the number of the rule, from 1; 0 for none."""
        self.all_scores = np.full(total, np.nan, dtype=np.float32)
        """(N,) of all splits: NaN if the rule has no score."""
        ends = np.cumsum(list(sizes.values()))[:-1]
        self.found = dict(zip(sizes, np.split(self.numbers, ends), strict=True))
        """``numbers`` by split."""
        self.scores = dict(zip(sizes, np.split(self.all_scores, ends), strict=True))
        """``all_scores`` by split."""
        self.histograms: list[Histogram] = []
        self.exchanged = np.zeros(total, dtype=bool)
        """(N,) of all splits: whether each side of a pair is in the other side's language."""

    def mark(self, rule: str, rows: np.ndarray, scores: np.ndarray | None = None) -> None:
        """Record that a rule finds the pairs in some rows, except those that an earlier rule has found."""
        rows = rows[self.numbers[rows] == 0]
        self.numbers[rows] = self.rules.index(rule) + 1
        if scores is not None:
            self.all_scores[rows] = scores[rows]

    def unmarked(self) -> np.ndarray:
        """Return the rows of the pairs that no rule has found yet."""
        return np.flatnonzero(self.numbers == 0)

    def counts(self, split: str) -> dict[str, int]:
        """Return the number of pairs of a split that each rule finds."""
        counts = np.bincount(self.found[split], minlength=len(self.rules) + 1)[1:]
        return dict(zip(self.rules, counts.tolist(), strict=True))

    def add_histogram(self, rule: str, scores: np.ndarray, random_scores: np.ndarray | None = None) -> None:
        """Add the histogram of a rule's scores.

        Args:
            rule: Its name.
            scores: (N,) of all splits; NaN stands for none.
            random_scores: Those of pairs that were matched at random.
        """
        is_found = self.found["train"] == self.rules.index(rule) + 1
        scores = scores[: len(is_found)]
        is_found, scores = is_found[np.isfinite(scores)], scores[np.isfinite(scores)]
        low, high = np.quantile(scores, [TAIL_SHARE, 1 - TAIL_SHARE]) if len(scores) else (0.0, 1.0)
        edges = np.linspace(low, max(high, low + 1e-3), HISTOGRAM_BINS + 1)

        def count(values: np.ndarray) -> list[int]:
            return np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0].tolist()

        random = None if random_scores is None else count(random_scores)
        self.histograms.append(Histogram(rule, edges.tolist(), count(scores), count(scores[is_found]), random))


def log_findings(findings: Findings, corpus: Corpus, config: DataConfig) -> None:
    """Log a table of the counts of each rule, and warnings about probable faults of the corpus or of a rule."""
    counts = {split: findings.counts(split) for split in findings.sizes}
    table = [(rule, [f"{of_split[rule]:,}" for of_split in counts.values()]) for rule in findings.rules]
    table = [(rule, cells) for rule, cells in table if set(cells) != {"0"}]
    logger.info("cleaning   %s", "".join(f"{split:>12}" for split in findings.sizes))
    for name, cells in [*table, ("of", [f"{size:,}" for size in findings.sizes.values()])]:
        logger.info("  %-11s%s", name, "".join(f"{cell:>12}" for cell in cells))
    for split in ("valid", "test"):
        if count := sum(counts[split].values()):
            logger.warning(
                "%s: cleaning finds %s of its %s pairs; they are kept, so that runs stay comparable",
                split, f"{count:,}", f"{findings.sizes[split]:,}",
            )  # fmt: skip
    for rule, count in counts["train"].items():
        share = count / findings.sizes["train"]
        if share > WARNED_SHARE:
            logger.warning(
                "cleaning: the rule %s drops %.0f %% of the training pairs; python -m mt clean shows them, and "
                "%s leaves the rule out",
                rule, 100 * share, config.without_rule(rule),
            )  # fmt: skip
    for name in _exchanged_files(findings.exchanged, corpus):
        logger.warning(
            "cleaning: most sources and targets of %s are in each other's language: exchange its sides", name
        )


def _exchanged_files(exchanged: np.ndarray, corpus: Corpus) -> Iterator[str]:
    """Yield the names of the files with mostly exchanged pairs."""
    ids = numbers(corpus.train, "id")
    first_id = 0
    for report in corpus.report:
        if report.split == "train":
            for name, pairs in [(file.name, file.pairs) for file in report.files] or [(report.origin, report.read)]:
                rows = slice(*np.searchsorted(ids, (first_id, first_id + pairs)))
                if exchanged[rows].sum() > MAJORITY_SHARE * len(ids[rows]):
                    yield name
                first_id += pairs
