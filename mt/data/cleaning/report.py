"""The report on cleaning: cleaning.html for people, cleaning.md for a pull request, cleaning.json for programs."""

from pathlib import Path

import numpy as np

from mt.core.columns import evenly_spaced_rows
from mt.data.cleaning.findings import Findings
from mt.data.cleaning.plots import plot_histogram, score_histogram
from mt.data.cleaning.rules import RULES
from mt.data.corpus import Corpus
from mt.reporting.pages import Report, as_picture

REPORT = Report(Path(__file__).parent, "cleaning.html", "cleaning.md", "cleaning.json")
EXAMPLES = 10
"""The number of pairs shown of each rule, evenly spaced."""
MAX_CHARACTERS = 500
"""The number of characters shown of a text."""


def write_report(findings: Findings, corpus: Corpus, languages: tuple[str, str], folder: Path) -> None:
    """Write all three files."""
    counts = {split: findings.counts(split) for split in findings.sizes}
    examples = {rule: _examples(findings, corpus, number) for number, rule in enumerate(findings.rules, 1)}
    rules = [
        {
            "name": rule,
            "description": RULES[rule].description,
            "counts": [of_split[rule] for of_split in counts.values()],
            "examples": examples[rule],
            "is_scored": any(example["score"] is not None for example in examples[rule]),
        }
        for rule in findings.rules
    ]
    values = {
        "title": f"Cleaning of {findings.sizes['train']:,} pairs",
        "direction": "→".join(languages),
        "splits": list(findings.sizes),
        "sizes": list(findings.sizes.values()),
        "rules": rules,
        "dropped": sum(counts["train"].values()),
    }
    histograms = [score_histogram(findings, rule) for rule in findings.scores]
    numbers = {
        "pairs": findings.sizes,
        "found": counts,
        "histograms": histograms,
        "examples": examples,
    }
    pictures = {histogram["rule"]: as_picture(plot_histogram(histogram)) for histogram in histograms}
    REPORT.write(folder, values, pictures, numbers)


def _examples(findings: Findings, corpus: Corpus, rule: int) -> list[dict[str, int | float | str | None]]:
    """Return training pairs that a rule finds.

    The number of each is its position, from 1, among all training pairs that were read.
    """
    rows = np.flatnonzero(findings.found["train"] == rule)
    rows = rows[evenly_spaced_rows(len(rows), EXAMPLES)]
    examples = []
    for row, pair in zip(rows.tolist(), corpus.train.select(rows), strict=True):
        _, score = findings.reason(row)
        examples.append(
            {
                "number": pair["id"] + 1,
                "score": None if score is None else round(score, 1),
                "source": _shorten(pair["source"]),
                "target": _shorten(pair["target"]),
            }
        )
    return examples


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
