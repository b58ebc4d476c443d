"""Writes findings down: report.html for people, comparison.md for a pull request, comparison.json for programs."""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

from mt.comparison import plots
from mt.comparison.findings import Findings
from mt.files import write_atomically
from mt.mistakes import shown
from mt.run_folder import flat_config
from mt.scoring import Interval

PIXELS_PER_INCH = 90
PAGE, MARKDOWN, JSON = "report.html", "comparison.md", "comparison.json"


@dataclasses.dataclass(frozen=True)
class Picture:
    """An image of the page with the words for those who cannot see it."""

    uri: str
    alternative: str
    width: int
    """In pixels of the page."""


def write_report(findings: Findings, folder: Path) -> None:
    """All three files."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"p_value": _p_value, "interval": _interval, "plain": _escape_markdown}
    values = {
        "findings": findings,
        "title": " against ".join([findings.systems[0].name, *(system.name for system in findings.systems[1:])]),
        "differing_settings": differing_settings(findings),
        "differing_conditions": differing_conditions(findings),
        "cost_rows": _cost_rows(findings),
    }
    page = environment.get_template("report.html.jinja").render(values | {"pictures": _pictures(findings)})
    write_atomically(folder / PAGE, page)
    environment.autoescape = False
    write_atomically(folder / MARKDOWN, environment.get_template("comparison.md.jinja").render(values))
    write_atomically(folder / JSON, json.dumps(as_json(findings), indent=2, ensure_ascii=False) + "\n")


def as_json(findings: Findings) -> dict:
    """Every number of the report."""
    baseline = findings.systems[0].first
    return {
        "direction": f"{baseline.config.data.source_language}→{baseline.config.data.target_language}",
        "test_pairs": len(baseline.references),
        "differing_settings": differing_settings(findings),
        "differing_conditions": differing_conditions(findings),
        "systems": [
            {
                "name": system.name,
                "runs": [str(run.folder) for run in system.runs],
                "scores": dataclasses.asdict(scores),
                "cost": dataclasses.asdict(cost),
                "attention": [dataclasses.asdict(spread) for spread in study.spreads],
                "scaling": None if study.scaling is None else _without_samples(dataclasses.asdict(study.scaling)),
            }
            for system, scores, cost, study in zip(
                findings.systems, findings.scores, findings.costs, findings.studies, strict=True
            )
        ],
        "verdicts": [
            {
                "baseline": contrast.verdict.baseline,
                "system": contrast.verdict.system,
                "words": contrast.verdict.words,
                "tests": [[dataclasses.asdict(one) for one in pair] for pair in contrast.verdict.pairs],
                "chrf_differences": contrast.chrf_differences,
                "baseline_wins": [dataclasses.asdict(example) for example in contrast.baseline_wins],
                "system_wins": [dataclasses.asdict(example) for example in contrast.system_wins],
            }
            for contrast in findings.contrasts
        ],
        "reached_valid_bleu": findings.reached_bleu,
        "bleu_by_source_length": [dataclasses.asdict(group) for group in findings.by_length],
        "word_f1_by_training_frequency": [dataclasses.asdict(group) for group in findings.by_frequency],
    }


def _without_samples(values: dict) -> dict:
    return {name: value for name, value in values.items() if not name.endswith("_sample")}


def differing_settings(findings: Findings) -> dict[str, list[str]]:
    """The config keys in which the systems differ, with each system's value."""
    return _differing([flat_config(system.first.config) for system in findings.systems], without=("name", "runs"))


def differing_conditions(findings: Findings) -> dict[str, list[str]]:
    """What differs of machine, versions and data, with each system's value."""
    provenance = [
        {
            "code revision": one["code_revision"],
            **one["libraries"],
            "python": one["python"],
            **one["machine"],
            **{
                f"{split} data": f"{about['pairs']} pairs, {about['sha256'][:12]}"
                for split, about in one["data"].items()
            },
        }
        for one in (system.first.provenance for system in findings.systems)
    ]
    return _differing(provenance, without=())


def _differing(systems: Sequence[Mapping[str, object]], without: Sequence[str]) -> dict[str, list[str]]:
    keys = dict.fromkeys(key for one in systems for key in one if key not in without)
    texts = {key: [shown(one[key]) if key in one else "" for one in systems] for key in keys}
    return {key: values for key, values in texts.items() if len(set(values)) > 1}


def _cost_rows(findings: Findings) -> list[tuple[str, list[str]]]:
    """The table of costs: what, and each system's figure."""
    costs = findings.costs
    return [
        ("parameters", [f"{cost.parameters:,}" for cost in costs]),
        ("updates", [f"{cost.updates:,.0f}" for cost in costs]),
        ("target tokens seen", [f"{cost.target_tokens:,.0f}" for cost in costs]),
        ("minutes of training", [_number(cost.training_minutes) for cost in costs]),
        ("target tokens/s in training", [f"{cost.target_tokens_per_second:,.0f}" for cost in costs]),
        ("peak memory", [f"{cost.peak_memory_bytes / 2**20:,.0f} MiB" for cost in costs]),
        *_reached_rows(findings),
        ("translating, sentences/s, batched", [_number(cost.sentences_per_second_batched) for cost in costs]),
        ("translating, sentences/s, one at a time", [_number(cost.sentences_per_second_singly) for cost in costs]),
    ]


def _reached_rows(findings: Findings) -> list[tuple[str, list[str]]]:
    bleu = findings.reached_bleu
    if bleu is None:
        return []
    minutes = [cost.minutes_to_reach for cost in findings.costs]
    tokens = [cost.target_tokens_to_reach for cost in findings.costs]
    return [
        (f"minutes to validation BLEU {bleu:.1f}", [_number(value) for value in minutes]),
        (f"target tokens to validation BLEU {bleu:.1f}", [f"{value:,.0f}" for value in tokens if value is not None]),
    ]


def _pictures(findings: Findings) -> dict[str, list[Picture]]:
    """The pictures of each part of the page."""
    systems, studies = findings.systems, findings.studies
    names = " and ".join(system.name for system in systems)
    contrasts = findings.contrasts
    pictures = {
        "scores": [
            _picture(
                plots.scores_with_intervals(systems, [one.verdict for one in contrasts]),
                f"Test BLEU of {names} with intervals",
            )
        ],
        "curves": [
            _picture(
                plots.learning_curves(systems), f"Validation BLEU and training loss of {names} over time and tokens"
            )
        ],
        "length": [
            _picture(
                plots.by_group(systems, findings.by_length, "length of the source (sentences)", "BLEU"),
                f"BLEU of {names} by source length",
            )
        ],
        "frequency": [
            _picture(
                plots.by_group(
                    systems, findings.by_frequency, "count in the training data (words of the test)", "word F1"
                ),
                f"Word F1 of {names} by word frequency",
            )
        ]
        if findings.by_frequency
        else [],
        "differences": [
            _picture(
                plots.chrf_differences(one.verdict.system, one.chrf_differences),
                f"Histogram of sentence chrF2, {one.verdict.system} minus {one.verdict.baseline}",
            )
            for one in contrasts
        ],
        "entropy": [
            _picture(
                plots.entropies(systems, [study.spreads for study in studies]),
                f"Entropy of every attention head of {names}",
            )
        ]
        if studies[0].spreads
        else [],
    }
    for number, (system, study) in enumerate(zip(systems, studies, strict=True)):
        if study.scaling is not None:
            pictures[f"scaling {number}"] = [
                _picture(plots.scaling(study.scaling), f"Distribution of query-key products in {system.name}")
            ]
        for place, attention in enumerate(study.maps):
            about = f"cross-attention of {system.name} for test sentence {findings.shown[place] + 1}"
            pictures[f"means {place} {number}"] = [
                _picture(plots.attention_means(system.name, attention), f"Mean {about}")
            ]
            if max(len(layer) for layer in attention.cross()) > 1:
                pictures[f"heads {place} {number}"] = [
                    _picture(plots.attention_heads(attention), f"Every head's {about}")
                ]
    return pictures


def _picture(figure: Figure, alternative: str) -> Picture:
    return Picture(plots.as_data_uri(figure), alternative, round(figure.get_figwidth() * PIXELS_PER_INCH))


def _number(value: float | None) -> str:
    """Three digits that count."""
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _p_value(value: float) -> str:
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def _interval(interval: Interval) -> str:
    low, high = interval.mean - interval.half_width, interval.mean + interval.half_width
    return f"{interval.score:.2f} ({low:.2f} … {high:.2f})"


def _escape_markdown(text: str) -> str:
    """Names may hold what Markdown reads as its own."""
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text)
