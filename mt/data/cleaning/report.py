"""Writes what cleaning found: cleaning.html for people, cleaning.md for a pull request, cleaning.json for programs."""

import dataclasses
from pathlib import Path

import numpy as np

from mt.core.columns import evenly_spaced_rows
from mt.data.cleaning import plots
from mt.data.cleaning.findings import Findings
from mt.data.cleaning.pairs import Pairs
from mt.data.cleaning.rules import DESCRIPTIONS
from mt.data.corpus import Corpus
from mt.reporting.pages import Report, as_picture

REPORT = Report(Path(__file__).parent, "cleaning.html", "cleaning.md", "cleaning.json")
EXAMPLES = 10
"""How many pairs of each rule are shown, evenly spaced."""
LONGEST_SHOWN = 500
"""How many characters of a text are shown."""


@dataclasses.dataclass(frozen=True)
class Example:
    """A pair that a rule finds."""

    number: int
    """Its place, from 1, among all training pairs that were read."""
    score: float | None
    """By which the rule judges; None if it has no score."""
    source: str
    target: str


@dataclasses.dataclass(frozen=True)
class RuleFindings:
    """What one rule finds."""

    name: str
    description: str
    counts: list[int]
    """For each split."""
    examples: list[Example]

    @property
    def is_scored(self) -> bool:
        return any(one.score is not None for one in self.examples)


def write_report(findings: Findings, corpus: Corpus, languages: tuple[str, str], folder: Path) -> None:
    """Writes all three files."""
    counts = {split: findings.counts(split) for split in findings.found}
    sizes = {split: len(found) for split, found in findings.found.items()}
    rules = [
        RuleFindings(
            rule, DESCRIPTIONS[rule], [of_split[rule] for of_split in counts.values()],
            _examples(findings, corpus, number),
        )
        for number, rule in enumerate(findings.rules, 1)
    ]  # fmt: skip
    values = {
        "title": f"Cleaning of {sizes['train']:,} pairs",
        "direction": "→".join(languages),
        "splits": list(sizes),
        "sizes": list(sizes.values()),
        "rules": rules,
        "dropped": sum(counts["train"].values()),
    }
    pictures = {one.rule: as_picture(plots.histogram(one)) for one in findings.histograms}
    numbers = {
        "pairs": sizes,
        "found": counts,
        "histograms": [dataclasses.asdict(one) for one in findings.histograms],
        "examples": {one.name: [dataclasses.asdict(example) for example in one.examples] for one in rules},
    }
    REPORT.write(folder, values, pictures, numbers)


def _examples(findings: Findings, corpus: Corpus, rule: int) -> list[Example]:
    rows = np.flatnonzero(findings.found["train"] == rule)
    if not len(rows):
        return []
    rows = rows[evenly_spaced_rows(len(rows), EXAMPLES)]
    scores = [round(score, 1) if np.isfinite(score) else None for score in findings.scores["train"][rows].tolist()]
    texts = [both for part in Pairs([corpus.train]).texts(rows) for both in zip(*part, strict=True)]
    return [
        Example(number + 1, score, *map(_shortened, both))
        for number, score, both in zip(corpus.train.select(rows)["id"], scores, texts, strict=True)
    ]


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
