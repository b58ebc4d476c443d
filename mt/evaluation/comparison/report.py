"""Writes the findings: report.html for people, comparison.md for a pull request, comparison.json for programs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from mt.evaluation.comparison.attention import Study
from mt.evaluation.comparison.conditions import NOT_KNOWN, differing_conditions, differing_settings, fine_tuning
from mt.evaluation.comparison.cost import Cost, budget
from mt.evaluation.comparison.findings import Contrast, Findings
from mt.evaluation.comparison.pictures import draw_pictures
from mt.evaluation.formatting import FILTERS
from mt.evaluation.systems import Run
from mt.metrics.registry import METRICS
from mt.metrics.significance import MAX_ENUMERATED_BLOCKS, min_differing_blocks
from mt.reporting.pages import Report


def write_report(findings: Findings, folder: Path, trials: int, robustness: dict | None = None) -> None:
    """Write all three files.

    Args:
        trials: The number of random exchanges of the randomisation test, for its note.
        robustness: For the section on robustness: the names of its page and its JSON file, the folders of the measured
            runs, and the words of its summary.
    """
    numbers = as_json(findings) | {"robustness": robustness}
    values = numbers | {
        "findings": findings,
        "metrics": list(METRICS.values()),
        "cost_rows": _cost_rows(findings.costs, findings.reached_bleu),
        "level": findings.contrasts[0].verdict.level,
        "min_blocks": min_differing_blocks(findings.contrasts[0].verdict.level),
        "max_enumerated": MAX_ENUMERATED_BLOCKS,
        "trials": trials,
    }
    REPORT.write(folder, values, draw_pictures(findings), numbers)


def as_json(findings: Findings) -> dict:
    """Return every number of the report."""
    systems = findings.systems
    facts = zip(systems, findings.scores, findings.costs, findings.studies, strict=True)
    return {
        "direction": findings.evaluation.direction,
        "test_pairs": len(findings.evaluation.references),
        "test_pairs_with_a_repeated_source": findings.repeated_sources,
        "budget": budget(systems),
        "differing_settings": differing_settings(systems),
        "differing_conditions": differing_conditions(systems),
        "fine_tuning": fine_tuning(systems),
        "systems": [
            {
                "name": system.name,
                "outputs": [str(output.origin) for output in system.outputs],
                "validations": [run.validations() for run in system.runs],
                "scores": {metric: asdict(score) for metric, score in scores.items()},
                "cost": asdict(cost) if cost else None,
                **_study_as_json(study),
            }
            for system, scores, cost, study in facts
        ],
        "verdicts": [_contrast_as_json(contrast) for contrast in findings.contrasts],
        "reached_valid_bleu": findings.reached_bleu,
        "length_of": findings.measured_side,
        **{
            key: [asdict(group) for group in getattr(findings, key)]
            for key in ("bleu_by_length", "bleu_by_rarest_word", "word_f1_by_training_frequency")
        },
    }


def _study_as_json(study: Study) -> dict:
    scaling = asdict(study.scaling) if study.scaling else {}
    return {
        "attention": [asdict(entropy) for entropy in study.attention],
        "scaling": {name: value for name, value in scaling.items() if not name.endswith("_sample")} or None,
        "alignments": study.alignments,
    }


def _contrast_as_json(contrast: Contrast) -> dict:
    values, verdict = asdict(contrast), contrast.verdict
    shown = {paired.metric: verdict.is_shown(paired.metric) for paired in verdict.over_sentences}
    return values.pop("verdict") | values.pop("conclusions") | {"more_than_chance": shown} | values


def _number(value: float | None) -> str:
    """Format a number with three significant digits, or as a whole number from 100 on; None becomes "–"."""
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


COST_ROWS: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("parameters", "parameters", "{:,}".format),
    ("updates", "updates", "{:,.0f}".format),
    ("target tokens seen", "target_tokens", "{:,.0f}".format),
    ("minutes of training", "training_minutes", _number),
    ("target tokens/s in training", "target_tokens_per_second", "{:,.0f}".format),
    ("peak memory", "peak_memory_bytes", lambda memory: f"{(memory or 0) / 2**20:,.0f} MiB"),
    ("minutes to {bleu}", "minutes_to_reach", _number),
    ("target tokens to {bleu}", "target_tokens_to_reach", _number),
    ("translating, sentences/s, batched", "sentences_per_second_batched", _number),
    ("translating, sentences/s, one at a time", "sentences_per_second_singly", _number),
)
"""Label, field and format of each row of the table of costs."""
OF_EVERY_MODEL = ("parameters", "sentences_per_second_batched", "sentences_per_second_singly")
"""Costs that are known without a run."""


def _cost_rows(costs: Sequence[Cost | None], reached_bleu: float | None) -> list[tuple[str, list[str]]]:
    """Return the rows of the table of costs: a label, and the number for each system that has a model."""
    bleu = "the same validation BLEU"
    if reached_bleu is not None:
        # Rounded down, because no run need have reached a higher BLEU.
        bleu = f"validation BLEU {math.floor(round(reached_bleu * 100, 6)) / 100:.2f}"
    return [
        (
            label.format(bleu=bleu),
            [
                NOT_KNOWN if cost.updates is None and field not in OF_EVERY_MODEL else text(getattr(cost, field))
                for cost in costs
                if cost
            ],
        )
        for label, field, text in COST_ROWS
    ]


def _last_bleu(run: Run) -> str:
    scores = [line["bleu"] for line in run.validations() if line["bleu"] is not None]
    return f"{scores[-1]:.1f}" if scores else "unknown"


REPORT = Report(
    Path(__file__).parent, "report.html", "comparison.md", "comparison.json", {**FILTERS, "last_bleu": _last_bleu}
)
