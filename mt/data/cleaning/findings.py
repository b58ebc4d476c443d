"""The results of cleaning a corpus, and their summary in the log."""

import logging
from collections.abc import Iterator, Mapping

import numpy as np

from mt.config import DataConfig
from mt.core.columns import numbers
from mt.data.corpus import Corpus

logger = logging.getLogger(__name__)

WARNED_SHARE = 0.3
"""A rule that drops a larger share of the pairs may be the wrong one for this corpus."""
MAJORITY_SHARE = 0.5
"""A file is in the other direction if a larger share of its pairs is exchanged."""


class Findings:
    """The first rule that finds each pair, and the scores of the rules that have scores."""

    def __init__(self, rules: tuple[str, ...], sizes: Mapping[str, int]) -> None:
        """
        Args:
            rules: The names of the rules, in the order of their application.
            sizes: The number of pairs of each split. The training split is first.
        """
        self.rules = rules
        self.sizes = dict(sizes)
        self.numbers = np.zeros(sum(sizes.values()), dtype=np.int8)
        """(N,) of all splits: the number of the rule, from 1; 0 for none."""
        self.found = dict(zip(sizes, np.split(self.numbers, np.cumsum(list(sizes.values()))[:-1]), strict=True))
        """``numbers`` by split."""
        self.scores: dict[str, np.ndarray] = {}
        """(N,) float32 of all splits for each rule with scores; NaN for a pair that the rule has not judged."""
        self.random_scores: dict[str, np.ndarray] = {}
        """The scores of pairs that were matched at random, for comparison."""
        self.exchanged = np.zeros(len(self.numbers), dtype=bool)
        """(N,) of all splits: whether each side of a pair is in the other side's language."""

    def mark(self, rule: str, rows: np.ndarray) -> None:
        """Record that a rule finds the pairs in some rows, except those that an earlier rule has found."""
        self.numbers[rows[self.numbers[rows] == 0]] = self.rules.index(rule) + 1

    def reason(self, row: int) -> tuple[str, float | None]:
        """Return the rule that finds a training pair, and its score if it has one."""
        rule = self.rules[self.numbers[row] - 1]
        return rule, float(self.scores[rule][row]) if rule in self.scores else None

    def counts(self, split: str) -> dict[str, int]:
        """Return the number of pairs of a split that each rule finds."""
        counts = np.bincount(self.found[split], minlength=len(self.rules) + 1)[1:]
        return dict(zip(self.rules, counts.tolist(), strict=True))


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
    for report in corpus.report:
        if report.split == "train":
            end = report.first_id
            for name, pairs in [(file.name, file.pairs) for file in report.files] or [(report.origin, report.read)]:
                start, end = end, end + pairs
                rows = slice(*np.searchsorted(ids, (start, end)))
                if exchanged[rows].sum() > MAJORITY_SHARE * len(ids[rows]):
                    yield name
