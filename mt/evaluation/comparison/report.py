"""Writes the report: report.html for people, comparison.md for a pull request, comparison.json for programs."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from mt.evaluation.comparison.cost import Cost
from mt.evaluation.comparison.findings import ComparisonFindings
from mt.evaluation.comparison.plots import Maps, draw_pictures
from mt.evaluation.formatting import FILTERS, format_number
from mt.evaluation.systems import EvaluationSet, System
from mt.metrics.significance import MAX_ENUMERATED_BLOCKS, SIGNIFICANCE_LEVEL, min_differing_blocks
from mt.reporting.pages import Report

COMPARISON_REPORT = Report(Path(__file__).parent, "report.html", "comparison.md", "comparison.json", FILTERS)
COSTS = {
    "parameters": "parameters",
    "updates": "updates",
    "target tokens seen": "target_tokens",
    "minutes of training": "training_minutes",
    "target tokens/s in training": "target_tokens_per_second",
    "peak memory, MiB": "peak_memory_mib",
    "minutes to {bleu}": "minutes_to_reach",
    "target tokens to {bleu}": "target_tokens_to_reach",
    "translating, sentences/s, batched": "sentences_per_second_batched",
    "translating, sentences/s, one at a time": "sentences_per_second_singly",
}
"""Label of a row in the cost table → its attribute of ``Cost``."""


def write_comparison_report(
    evaluation: EvaluationSet,
    systems: Sequence[System],
    findings: ComparisonFindings,
    maps: Maps,
    folder: Path,
    trials: int,
) -> None:
    """Write report.html, comparison.md and comparison.json into a folder.

    Args:
        trials: The number of random exchanges of the randomisation test, which a note mentions.
    """
    values = {
        "evaluation": evaluation,
        "systems": systems,
        "findings": findings,
        "maps": maps,
        "costs": cost_table([system.cost for system in findings.systems], findings.reached_valid_bleu),
        "level": SIGNIFICANCE_LEVEL,
        "min_blocks": min_differing_blocks(SIGNIFICANCE_LEVEL),
        "max_enumerated": MAX_ENUMERATED_BLOCKS,
        "trials": trials,
    }
    COMPARISON_REPORT.write(folder, values, draw_pictures(findings, systems, maps), asdict(findings))


def cost_table(costs: Sequence[Cost | None], reached_bleu: float | None) -> dict[str, list[str]]:
    """Return the cost table: label of a row → the formatted cost of each system that is not a file.

    Args:
        costs: The costs of each system; None for files.
        reached_bleu: The validation BLEU that two of the labels name.
    """
    bleu = "the same validation BLEU"
    if reached_bleu is not None:
        # Rounded down, because a run need not have reached the value rounded up.
        bleu = f"validation BLEU {math.floor(round(reached_bleu * 100, 6)) / 100:.2f}"
    return {
        label.format(bleu=bleu): [format_number(getattr(cost, name)) for cost in costs if cost]
        for label, name in COSTS.items()
    }
