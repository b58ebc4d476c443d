"""``python -m mt compare``: writes a report that compares finished runs, models or files of translations.

The report is report.html for people, comparison.md for a pull request, and comparison.json for programs.
"""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from matplotlib.figure import Figure

from mt.config import CompareConfig, EvaluationConfig
from mt.core.errors import aligned
from mt.core.language import AskedDirection
from mt.core.randomness import generator
from mt.evaluation.comparison.attention import Scaling
from mt.evaluation.comparison.conditions import find_warnings
from mt.evaluation.comparison.findings import ComparisonFindings, Group, compare_systems
from mt.evaluation.comparison.verdict import SEED, block_counts, read_scores, refuse_too_few_trials
from mt.evaluation.systems import EvaluationSet, System, directions_to_score, open_systems, report_parent
from mt.evaluation.translation import Cost, prepare_device, with_translations
from mt.metrics.significance import (
    MAX_ENUMERATED_BLOCKS,
    MIN_DIFFERING_BLOCKS,
    SIGNIFICANCE_LEVEL,
    Interval,
    paired_intervals,
)
from mt.reporting.figures import (
    MARKERS,
    as_picture,
    color_of,
    draw_heat_map,
    heat_map,
    legible,
    plot_intervals,
    style_axes,
)
from mt.reporting.pages import Report, report_folder
from mt.storage.validation import write_json
from mt.translation.results import SentenceAttention

logger = logging.getLogger(__name__)

COMPARISON_REPORT = Report(Path(__file__).parent, "report.html", "comparison.md", "comparison.json")
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
Maps = Mapping[int, Sequence[SentenceAttention | None]]
"""Index (from 0) of a test sentence → its attention maps in each system; None for files."""


def compare(config: CompareConfig) -> list[ComparisonFindings]:
    """Compare the systems, write the report, log the verdicts, and return the results. Several directions have a report
    each.

    Raises:
        InputError: A run is unfinished, a run or file is corrupted or not comparable with the others, or the
            significance
            tests have too few trials.
    """
    refuse_too_few_trials(config)
    prepare_device(config)
    directions = directions_to_score(config)
    reports = [_compare(config, asked, len(directions) > 1) for asked in directions]
    if len(directions) > 1:
        scores = {own.direction: [system.scores["BLEU"].mean for system in own.systems] for own in reports}
        logger.info("\n%s", table_with_means("BLEU", [system.name for system in reports[0].systems], scores))
    return reports


def _compare(config: CompareConfig, asked: AskedDirection, is_one_of_several: bool) -> ComparisonFindings:
    """Compare the systems in one direction."""
    evaluation, systems = open_systems(config, asked)
    given = read_scores(config, evaluation)
    output = report_folder(config.output, _default_output(systems), evaluation.key if is_one_of_several else "")
    output.mkdir(parents=True, exist_ok=True)
    systems = with_translations(evaluation, systems, config.device)
    findings, maps = compare_systems(evaluation, systems, config, given)
    values = {
        "evaluation": evaluation,
        "systems": systems,
        "findings": findings,
        "maps": maps,
        "costs": cost_table([system.cost for system in findings.systems], findings.reached_valid_bleu),
        "level": SIGNIFICANCE_LEVEL,
        "min_blocks": MIN_DIFFERING_BLOCKS,
        "max_enumerated": MAX_ENUMERATED_BLOCKS,
        "trials": config.randomization_trials,
    }
    pictures = {name: as_picture(figure) for name, figure in _figures(findings, systems, maps)}
    COMPARISON_REPORT.write(output, values, pictures, findings)
    for verdict in findings.verdicts:
        logger.info("\n%s", verdict.words)
    logger.info("\nreport: %s", output / COMPARISON_REPORT.page)
    return findings


def table_with_means(corner: str, columns: Sequence[str], rows: Mapping[str, Sequence[float]]) -> str:
    """Return a table of numbers, given those of each row by its name, with a last row of their means."""
    means = map(mean, zip(*rows.values(), strict=True))
    cells = [[name, *(f"{number:.2f}" for number in numbers)] for name, numbers in (*rows.items(), ("mean", means))]
    return aligned([[corner, *columns], *cells])


def _default_output(systems: list[System]) -> Path:
    """Return the folder FIRST-vs-SECOND beside the last system's folder or file.

    The name of a system with several outputs tells their number: ``demo-3-seeds``.
    """
    names = [
        (system.first.origin.resolve().name if system.can_translate else system.first.origin.stem)
        + (f"-{len(system.outputs)}-seeds" if not system.is_single else "")
        for system in systems
    ]
    return report_parent([system.first.origin for system in systems]) / "-vs-".join(names)


def format_number(value: float | None) -> str:
    """Format a number: from 100 on without decimals, as in "1,234", below with three significant digits. None becomes
    "–"."""
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


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


def _figures(findings: ComparisonFindings, systems: Sequence[System], maps: Maps) -> Iterator[tuple[str, Figure]]:
    """Yield each figure with its name in the template.

    The name of an attention map ends with the indices of sentence and system, from 0: ``mean 17 1``.
    """
    yield "differences", plot_differences(findings)
    if trained := [system for system in systems if system.runs]:
        yield "curves", plot_learning_curves(trained)
    names = [system.name for system in systems]
    yield "length", plot_groups(names, findings.bleu_by_length, f"BLEU by length of the {findings.length_of}")
    for number, results in enumerate(findings.systems):
        if results.scaling:
            yield f"scaling {number}", plot_scaling(results.scaling)
    for row, attentions in maps.items():
        for number, attention in enumerate(attentions):
            if attention:
                yield f"mean {row} {number}", plot_mean_attention(names[number], attention)
                yield f"heads {row} {number}", plot_attention_heads(attention)


def plot_differences(findings: ComparisonFindings) -> Figure:
    """Draw the difference in BLEU between each system and the baseline, with confidence intervals, and a line at 0.

    A system has a point with the interval over sentences and, if both have several seeds, one with the interval over
    seeds. The difference is unlikely to be due to the choice of sentences, or of seeds, if the interval excludes 0.
    """
    rows = {}
    for verdict in findings.verdicts:
        rows[f"{verdict.system}, over sentences"] = verdict.test("BLEU").difference
        seeds = verdict.over_seeds.get("BLEU")
        if seeds and math.isfinite(seeds.low):
            rows[f"{verdict.system}, over seeds"] = Interval(seeds.difference, seeds.low, seeds.high)
    label = f"BLEU minus that of {legible(findings.systems[0].name)}, with 95 % intervals"
    figure = plot_intervals([*rows], {"": [*rows.values()]}, label)
    figure.axes[0].axvline(0, color="black")
    return figure


def plot_groups(names: Sequence[str], groups: Sequence[Group], label: str) -> Figure:
    """Draw the scores of the systems in groups of sentences, with 95 % intervals where the groups have them.

    Args:
        names: The systems, in the order of each group's scores.
        groups: The groups, from top to bottom.
        label: The score, as label of the horizontal axis. " (number)" is added to it.
    """
    series = {}
    for number, name in enumerate(names):
        scores = [(group.scores[number], group.half_widths[number] if group.half_widths else 0) for group in groups]
        series[name] = [Interval(score, score - width, score + width) for score, width in scores]
    return plot_intervals([f"{group.label} ({group.count:,})" for group in groups], series, f"{label} (number)")


def plot_learning_curves(systems: Sequence[System]) -> Figure:
    """Draw the validation BLEU of every run over the minutes of training (left) and over the target tokens (right)."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    scales = (("seconds", 60, "minutes of training"), ("target_tokens", 1e6, "million target tokens"))
    for axes, (key, unit, label) in zip(figure.subplots(1, 2, sharey=True), scales, strict=True):
        for number, system in enumerate(systems):
            for seed, run in enumerate(system.runs):
                lines = [line for line in run.validations if line["bleu"] is not None]
                axes.plot(
                    [line[key] / unit for line in lines],
                    [line["bleu"] for line in lines],
                    color=color_of(number),
                    marker=MARKERS[number % len(MARKERS)],
                    label=legible(system.name) if seed == 0 else None,
                )
        axes.set(xlabel=label, ylabel="validation BLEU")
        axes.legend()
        style_axes(axes)
    return figure


def plot_scaling(study: Scaling) -> Figure:
    """Draw the distribution of q·k with and without the division by √d (left) and the mean softmax weights (right)."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    densities, weights = figure.subplots(1, 2, width_ratios=(3, 2))
    edges = torch.tensor(study.score_edges)
    ranks = torch.arange(1, len(study.score_weights) + 1)
    for label, factor, deviation, shares, number in (
        ("q·k", math.sqrt(study.key_width), study.product_deviation, study.product_weights, 1),
        (f"q·k / √{study.key_width}", 1.0, study.score_deviation, study.score_weights, 0),
    ):
        density = torch.tensor(study.score_counts) / (sum(study.score_counts) * edges.diff() * factor)
        bars = {"alpha": 0.6, "color": color_of(number)}
        densities.stairs(density, edges * factor, fill=True, label=f"{label} (deviation {deviation:.1f})", **bars)
        weights.bar(ranks + 0.4 * (0.5 - number), shares, width=0.4, label=f"softmax of {label}", **bars)
    densities.set(xlabel="score", ylabel="density")
    weights.set(xlabel="key, the likeliest first", ylabel="mean weight", xticks=ranks.tolist())
    for axes in (densities, weights):
        axes.legend()
        style_axes(axes)
    return figure


def plot_mean_attention(name: str, attention: SentenceAttention) -> Figure:
    """Draw a heat map of the cross-attention, averaged over all heads and layers.

    Args:
        name: The name of the system, for the title.
    """
    weights = torch.stack([heads.mean(dim=0) for heads in attention.cross_attention()]).mean(dim=0)
    labels = attention.source_tokens, attention.target_tokens
    return heat_map(weights, labels, f"{legible(name)}, mean of all heads")


def plot_attention_heads(attention: SentenceAttention) -> Figure:
    """Draw a heat map of the cross-attention of every head, in a grid with a row for each layer."""
    layers, sources, targets = attention.cross_attention(), attention.source_tokens, attention.target_tokens
    rows, columns = len(layers), len(layers[0])
    width, height = max(1.6, 0.9 + 0.15 * len(sources)), 0.9 + 0.14 * len(targets)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for depth, heads in enumerate(layers):
        for head, weights in enumerate(heads):
            title = f"layer {depth + 1}, head {head + 1}"
            draw_heat_map(grid[depth, head], weights, (sources, targets), title, font_size=5)
    return figure


def evaluate(config: EvaluationConfig) -> None:
    """Score the translations of a test set, and print the scores. Write them to ``output``, too.

    A run has translated its own test set already. It translates any other test set now, as a model does.

    Raises:
        InputError: The run is unfinished, a run or file is corrupted, or two files have different numbers of lines.
    """
    prepare_device(config)
    results: dict[str, dict[str, Any]] = {}
    for asked in directions_to_score(config):
        evaluation, scores = _evaluate(config, asked)
        results[evaluation.direction] = {"run": config.run, "lines": len(evaluation.references), "scores": scores}
    first, *others = results.values()
    if others:
        rows = {name: [score["score"] for score in own["scores"].values()] for name, own in results.items()}
        print(f"\n{table_with_means('direction', list(first['scores']), rows)}", flush=True)
    if config.output:
        write_json(Path(config.output), {"directions": results} if others else first)


def _evaluate(config: EvaluationConfig, asked: AskedDirection) -> tuple[EvaluationSet, dict[str, dict[str, Any]]]:
    """Print the scores in one direction. Return the test set, and the score of each metric with its interval."""
    evaluation, systems = open_systems(config, asked)
    systems = with_translations(evaluation, systems, config.device)
    for warning in find_warnings(evaluation, systems):
        logger.warning("%s", warning)
    rows, scores = [(systems[0].name, "score", "95 % interval", "signature")], {}
    for metric, counts in block_counts(evaluation, systems)[0].items():
        random = generator(SEED, "bootstrap")
        score, *_ = paired_intervals(counts, counts, metric.score, config.bootstrap_samples, random)
        rows.append((metric.name, f"{score.score:.2f}", f"{score.low:.2f} … {score.high:.2f}", metric.signature))
        scores[metric.name] = vars(score) | {"signature": metric.signature}
    print(f"{aligned(rows)}\n\n{len(evaluation.references):,} lines, {evaluation.direction}", flush=True)
    return evaluation, scores
