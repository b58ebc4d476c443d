"""The results of cleaning a corpus, their summary in the log, and the record of the dropped training pairs.

The record is in the run folder. A resumed run reads it instead of cleaning again, because newer rules could drop other
pairs.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from mt.config import DataConfig
from mt.core.columns import numbers
from mt.core.errors import InputError
from mt.data.cleaning.sides import MAJORITY_SHARE
from mt.data.corpus import Corpus
from mt.storage.validation import read_json, validate_recorded, write_json

logger = logging.getLogger(__name__)

MIN_KEPT_SHARE = 0.1
"""A warning says that cleaning is probably unsuitable if a smaller share of the training pairs remains."""
WARNED_SHARE = 0.3
"""A warning names a rule that drops a larger share of the training pairs."""

DROPPED = "cleaning.json"
"""The file name of the record in a run folder."""

RecordedId = Annotated[int, Field(strict=True, ge=0, lt=2**63)]

Dropped = Mapping[str, np.ndarray]
"""Maps each rule to the ids of the training pairs that it drops, int64, in ascending order. A pair that several rules
match is listed under the first of them."""


class CleaningFindings:
    """The results of cleaning for the N pairs of all splits: the rule that matches each pair, scores and statistics.

    The training pairs are first. A pair that several rules match counts for the first of them.
    """

    def __init__(self, rules: tuple[str, ...], sizes: Mapping[str, int]) -> None:
        """
        Args:
            rules: The names of the rules, in the order of their application.
            sizes: Maps each split to the number of its pairs. The training split is first.
        """
        self.rules = rules
        self.sizes = dict(sizes)
        count = sum(sizes.values())
        self.lengths = np.zeros((count, 2), dtype=np.int32)
        """(N, 2): the number of characters of the source and of the target, whitespace not included."""
        self.keys = np.zeros((count, 2), dtype=np.int64)
        """(N, 2): hashes of the source and of the target. Texts that differ only in case, punctuation and digits have
        equal hashes."""
        self.rule_numbers = np.zeros(count, dtype=np.int8)
        """(N,): the position in ``rules``, from 1, of the rule that matches each pair; 0 if no rule does."""
        splits = np.split(self.rule_numbers, np.cumsum(list(sizes.values()))[:-1])
        self.by_split = dict(zip(sizes, splits, strict=True))
        """Maps each split to its part of ``rule_numbers``, a view."""
        self.scores: dict[str, np.ndarray] = {}
        """Maps each rule with scores to the scores of all pairs, (N,) float32; NaN for pairs that it did not judge."""
        self.random_scores: dict[str, np.ndarray] = {}
        """Maps some rules with scores to the scores of randomly matched sources and targets, for comparison."""
        self.is_swapped = np.zeros(count, dtype=bool)
        """(N,): whether each side of a pair is in the language of the other side."""

    def record(self, rule: str, rows: np.ndarray) -> None:
        """Record that a rule matches the pairs in some rows. Pairs that an earlier rule matches are unchanged."""
        self.rule_numbers[rows[self.rule_numbers[rows] == 0]] = self.rules.index(rule) + 1

    def rule_and_score(self, row: int) -> tuple[str, float | None]:
        """Return the rule that matches a training pair, and the score of the pair; None if the rule has no scores.

        A rule must match the pair.
        """
        rule = self.rules[self.rule_numbers[row] - 1]
        return rule, float(self.scores[rule][row]) if rule in self.scores else None

    def counts(self, split: str) -> dict[str, int]:
        """Return a dict that maps each rule to the number of pairs of a split that it matches."""
        counts = np.bincount(self.by_split[split], minlength=len(self.rules) + 1)[1:]
        return dict(zip(self.rules, counts.tolist(), strict=True))


def log_findings(findings: CleaningFindings, corpus: Corpus, config: DataConfig) -> None:
    """Log the number of pairs of each split that each rule matches.

    Warnings name faulty validation and test data, rules that drop more than WARNED_SHARE of the training pairs, and
    files with swapped sides.
    """
    counts = {split: findings.counts(split) for split in findings.sizes}
    logger.info("cleaning   %s", "".join(f"{split:>12}" for split in findings.sizes))
    table = {rule: [split_counts[rule] for split_counts in counts.values()] for rule in findings.rules}
    for name, row in (table | {"total": findings.sizes.values()}).items():
        if any(row):
            logger.info("  %-11s%s", name, "".join(f"{number:>12,}" for number in row))
    for split in ("valid", "test"):
        if count := sum(counts[split].values()):
            logger.warning(
                "%s: cleaning finds faults in %s of %s pairs, which are kept",
                split, f"{count:,}", f"{findings.sizes[split]:,}",
            )  # fmt: skip
    size = findings.sizes["train"]
    kept = size - sum(counts["train"].values())
    if kept < MIN_KEPT_SHARE * size:
        logger.warning(
            "cleaning leaves %s of %s training pairs; look at the others with python -m mt clean. If they are good, "
            "set data.cleaning=false; for a toy task such as reversing numbers, add experiment=toy_task",
            f"{kept:,}", f"{size:,}",
        )  # fmt: skip
    for rule, count in counts["train"].items():
        share = count / size
        if share > WARNED_SHARE and kept >= MIN_KEPT_SHARE * size:
            logger.warning(
                "cleaning: the rule %s drops %.0f %% of the training pairs; look at them with python -m mt clean. "
                "If they are good, disable the rule with %s",
                rule, 100 * share, config.without_rule(rule),
            )  # fmt: skip
    ids = numbers(corpus.train, "id")
    for name, *edges in training_files(corpus):
        rows = slice(*np.searchsorted(ids, edges))
        if findings.is_swapped[rows].sum() > MAJORITY_SHARE * len(ids[rows]):
            logger.warning(
                "cleaning: in %s, most sources are in the target language and most targets in the source language: "
                "swap its sides", name
            )  # fmt: skip


def training_files(corpus: Corpus) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each training file, the id of its first pair, and the id after its last one."""
    for report in corpus.report:
        if report.split == "train":
            end = report.first_id
            for name, pairs in [(file.name, file.pairs) for file in report.files] or [(report.origin, report.read)]:
                start, end = end, end + pairs
                yield name, start, end


def dropped_ids(findings: CleaningFindings, corpus: Corpus) -> Dropped:
    """Return the ids of the training pairs that each rule matches. Each pair is listed under the first of its rules.

    Args:
        findings: The findings for ``corpus``.
        corpus: The corpus before cleaning.
    """
    ids = numbers(corpus.train, "id")
    return {rule: ids[findings.by_split["train"] == number] for number, rule in enumerate(findings.rules, 1)}


def remove_dropped(corpus: Corpus, dropped: Dropped, config: DataConfig) -> Corpus:
    """Remove the dropped training pairs from a corpus, and count them by rule in its report.

    Args:
        corpus: The corpus before cleaning.
        dropped: The training pairs to drop.
        config: The section ``data`` of the settings, for the message of an InputError.

    Raises:
        InputError: No training pair is left.
    """
    ids = numbers(corpus.train, "id")
    is_kept = ~np.isin(ids, np.concatenate([ids[:0], *dropped.values()]))
    if not is_kept.any():
        counts = {rule: len(rule_ids) for rule, rule_ids in dropped.items() if len(rule_ids)}
        raise InputError(
            f"cleaning would drop all {len(ids):,} training pairs: "
            + ", ".join(f"{count:,} by the rule {rule}" for rule, count in counts.items())
            + f". Look at them with python -m mt clean. {config.without_rule(max(counts, key=counts.__getitem__))} "
            "disables that rule, data.cleaning=false disables all rules"
        )
    reasons = {f"by cleaning: {rule}": rule_ids for rule, rule_ids in dropped.items()}
    report = [entry.with_dropped(reasons) if entry.split == "train" else entry for entry in corpus.report]
    return replace(corpus, train=corpus.train.select(np.flatnonzero(is_kept)), report=report)


def write_dropped(run: Path, dropped: Dropped) -> None:
    """Write the record of dropped pairs to a run folder."""
    write_json(run / DROPPED, {"dropped": {rule: ids.tolist() for rule, ids in dropped.items()}})


def read_dropped(run: Path) -> Dropped:
    """Read the record of dropped pairs from a run folder.

    Raises:
        InputError: The record is missing or corrupted.
    """
    path = run / DROPPED
    lists = validate_recorded(path, dict[str, list[RecordedId]], read_json(path, "dropped")["dropped"])
    return {rule: np.array(ids, dtype=np.int64) for rule, ids in lists.items()}
