"""Writes what was measured: robustness.html for people, robustness.md for a pull request, robustness.json for
programs."""

import dataclasses
from pathlib import Path

from mt.config import DecodingConfig
from mt.evaluation.robustness import plots
from mt.evaluation.robustness.measures import BOOTSTRAP_SAMPLES, PLACES_APART, TRIALS, Measures, Result, Share
from mt.evaluation.systems import EvaluationSet, evenly_spaced
from mt.metrics.scoring import Interval
from mt.metrics.significance import SIGNIFICANCE_LEVEL, shown_p
from mt.reporting.pages import Names, as_picture, shown_interval, write_pages

FILES = Names(page="robustness.html", markdown="robustness.md", json="robustness.json")
EXAMPLES = 5
"""How many lines of each variant are shown, and how many of the worst."""


@dataclasses.dataclass(frozen=True)
class MeasuredRun:
    """A run, and how its translations were searched for."""

    name: str
    folder: Path
    decoding: DecodingConfig


@dataclasses.dataclass(frozen=True)
class Findings:
    """All that is reported."""

    evaluation: EvaluationSet
    runs: list[MeasuredRun]
    sentences: int
    """Number of test sentences that were chosen."""
    results: list[Result]
    left_out: dict[str, str]
    """The variants that could not be made, each with the reason."""
    seed: int


@dataclasses.dataclass(frozen=True)
class Example:
    """A line of a variant. ``outputs``, ``clean_outputs`` and ``chrf_losses`` have one value for each run."""

    numbers: list[int]
    """The lines of the test set that it was made of, from 1."""
    source: str
    reference: str
    clean_outputs: list[str]
    outputs: list[str]
    chrf_losses: list[float]


def write_report(findings: Findings, folder: Path) -> None:
    """Writes all three files."""
    evaluation, names = findings.evaluation, [run.name for run in findings.runs]
    heading, rows = table(findings)
    told = "; ".join(
        f"{result.variant.name}: "
        + ", ".join(f"{name} {one.loss.score:.1f}" for name, one in zip(names, result.of_runs, strict=True))
        for result in findings.results
    )
    values = {
        "findings": findings,
        "title": f"How {' and '.join(names)} {'translates' if len(names) == 1 else 'translate'} what people type",
        "direction": f"{evaluation.source_language}→{evaluation.target_language}",
        "summary": summary(findings),
        "heading": heading,
        "rows": rows,
        "shown": [(result, shown_lines(result), worst_lines(result)) for result in findings.results],
        "samples": BOOTSTRAP_SAMPLES,
        "trials": TRIALS,
        "apart": PLACES_APART,
        "level": SIGNIFICANCE_LEVEL,
        "signatures": sorted({result.signature for result in findings.results}),
    }
    picture = as_picture(plots.losses(names, findings.results), f"Loss of BLEU by variant. {told}")
    write_pages(folder, FILES, Path(__file__).parent, values, [picture], as_json(findings))


def as_json(findings: Findings) -> dict:
    """Returns every line and every number."""
    return {
        "source_language": findings.evaluation.source_language,
        "target_language": findings.evaluation.target_language,
        "sentences": findings.sentences,
        "seed": findings.seed,
        "runs": [
            {"name": run.name, "folder": str(run.folder), "decoding": run.decoding.model_dump(mode="json")}
            for run in findings.runs
        ],
        "left_out": findings.left_out,
        "variants": [
            {
                "name": result.variant.name,
                "rule": result.variant.rule,
                "signature": result.signature,
                "p": result.p,
                "p_corrected": result.p_corrected,
                "runs": [_numbers(one) for one in result.of_runs],
                "lines": [
                    dataclasses.asdict(example(result, place)) | {"item": line.item}
                    for place, line in enumerate(result.variant.lines)
                ],
            }
            for result in findings.results
        ],
    }


def _numbers(measures: Measures) -> dict:
    return {key: value for key, value in dataclasses.asdict(measures).items() if not isinstance(value, list)}


def example(result: Result, place: int) -> Example:
    """Returns one line of a variant with its translations."""
    line, runs = result.variant.lines[place], result.of_runs
    return Example(
        [pair.number for pair in line.pairs],
        line.source,
        line.reference,
        [one.clean_outputs[place] for one in runs],
        [one.outputs[place] for one in runs],
        [one.chrf_losses[place] for one in runs],
    )


def shown_lines(result: Result) -> list[Example]:
    """Returns a few lines of a variant, evenly spaced."""
    return [example(result, place) for place in evenly_spaced(range(len(result.variant.lines)), EXAMPLES)]


def worst_lines(result: Result) -> list[Example]:
    """Returns the few lines that lose most in chrF2, on average over the runs, the largest loss first."""
    examples = [example(result, place) for place in range(len(result.variant.lines))]
    losing = [one for one in examples if sum(one.chrf_losses) > 0]
    return sorted(losing, key=lambda one: -sum(one.chrf_losses))[:EXAMPLES]


def summary(findings: Findings) -> list[str]:
    """Returns a sentence or two on each run, and with two runs one on where they differ."""
    said = []
    for place, run in enumerate(findings.runs):
        names = [result.variant.name for result in findings.results]
        of_run = [result.of_runs[place] for result in findings.results]
        ordered = sorted(zip([one.loss.score for one in of_run], names, strict=True))
        (least, best), (most, worst) = ordered[0], ordered[-1]
        shares = [one.whole for one in of_run if one.whole]
        count, total = sum(share.count for share in shares), sum(share.total for share in shares)
        said.append(
            f"{run.name} loses most BLEU with {worst} ({most:.1f}) and least with {best} ({least:.1f}). Of the items "
            f"and tags that were planted, {100 * count / total:.1f} % came back whole."
        )
    if len(findings.runs) > 1:
        found = [one.variant.name for one in findings.results if (one.p_corrected or 0.0) < SIGNIFICANCE_LEVEL]
        differ = f"by more than chance in {', '.join(found)}" if found else "in no variant by more than chance"
        said.append(f"The BLEU of the two runs' translations differs {differ}.")
    return said


def table(findings: Findings) -> tuple[list[str], list[list[str]]]:
    """Returns the heading and the rows of the table of results: one row for each variant and run."""
    two = len(findings.runs) > 1
    heading = ["variant", *["run"] * two, "lines", "clean BLEU", "BLEU", "loss", "whole", "in place", *["p"] * two]
    rows = []
    for result in findings.results:
        for place, (run, one) in enumerate(zip(findings.runs, result.of_runs, strict=True)):
            is_last = place == len(findings.runs) - 1
            rows.append(
                [
                    result.variant.name if place == 0 else "",
                    *[run.name] * two,
                    f"{len(result.variant.lines):,}" if place == 0 else "",
                    f"{one.clean:.1f}",
                    f"{one.bleu:.1f}",
                    shown_interval(one.loss, signed=True, decimals=1),
                    _share(one.whole),
                    _share(one.in_place),
                    *[shown_p(result.p_corrected) if is_last else ""] * two,
                ]
            )
    return heading, rows


def text_table(findings: Findings) -> str:
    """Returns the table in columns of even width, for a terminal."""
    heading, rows = table(findings)
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [heading, *rows])
    return "\n".join(line.rstrip() for line in lines)


def _share(share: Share | None) -> str:
    if share is None:
        return ""
    percent = Interval(100 * share.count / share.total, 100 * share.low, 100 * share.high)
    return shown_interval(percent, decimals=1, unit=" %")
