"""Writes the measures: robustness.html for people, robustness.md for a pull request, robustness.json for programs."""

from dataclasses import asdict, dataclass
from pathlib import Path

from mt.config import DecodingConfig
from mt.evaluation.formatting import format_interval, format_p
from mt.evaluation.plots import interval_bars
from mt.evaluation.robustness.measures import BOOTSTRAP_SAMPLES, TRIALS, Measures, Result, Share
from mt.evaluation.systems import EvaluationSet
from mt.metrics.significance import SIGNIFICANCE_LEVEL, Interval
from mt.reporting.pages import Report, as_picture

REPORT = Report(Path(__file__).parent, "robustness.html", "robustness.md", "robustness.json")
EXAMPLES = 5
"""How many of the worst lines of each variant are shown."""
BY_LINE = ("clean_outputs", "outputs", "chrf_losses")
"""Measures with a value for each line."""


@dataclass(frozen=True)
class MeasuredRun:
    """A run and its search."""

    name: str
    folder: Path
    decoding: DecodingConfig


@dataclass(frozen=True)
class Findings:
    """The content of the report."""

    evaluation: EvaluationSet
    runs: list[MeasuredRun]
    sentences: int
    """Number of chosen test sentences."""
    results: list[Result]
    left_out: list[str]
    """The names of the variants that the test set or its script does not allow."""
    seed: int


def write_report(findings: Findings, folder: Path) -> None:
    """Write all three files."""
    heading, rows = table(findings)
    values = {
        "findings": findings,
        "summary": summary(findings),
        "heading": heading,
        "rows": rows,
        "worst": [(result, worst_lines(result)) for result in findings.results],
        "samples": BOOTSTRAP_SAMPLES,
        "trials": TRIALS,
        "level": SIGNIFICANCE_LEVEL,
        "signatures": sorted({result.signature for result in findings.results}),
    }
    names = [result.variant.name for result in findings.results]
    losses = {run.name: [result.runs[n].loss for result in findings.results] for n, run in enumerate(findings.runs)}
    picture = interval_bars(names, losses, "loss of BLEU against the clean sentences, with 95 % intervals")
    REPORT.write(folder, values, as_picture(picture), as_json(findings))


def as_json(findings: Findings) -> dict:
    """Return every line and every number."""
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
                "runs": [_numbers(measures) for measures in result.runs],
                "lines": _lines(result),
            }
            for result in findings.results
        ],
    }


def _numbers(measures: Measures) -> dict:
    return {key: value for key, value in asdict(measures).items() if not isinstance(value, list)}


def _lines(result: Result) -> list[dict]:
    """Return the lines of a variant with the translations and losses of each run."""
    return [
        {
            "numbers": [pair.number for pair in line.pairs],
            "source": line.source,
            "reference": line.reference,
            **{key: [getattr(run, key)[number] for run in result.runs] for key in BY_LINE},
            "item": line.item,
        }
        for number, line in enumerate(result.variant.lines)
    ]


def worst_lines(result: Result) -> list[dict]:
    """Return the few lines with the largest loss of chrF2, on average over the runs, the largest first."""
    losing = [line for line in _lines(result) if sum(line["chrf_losses"]) > 0]
    return sorted(losing, key=lambda line: -sum(line["chrf_losses"]))[:EXAMPLES]


def summary(findings: Findings) -> list[str]:
    """Return a sentence or two on each run, and with two runs one on their differences."""
    sentences = []
    for number, run in enumerate(findings.runs):
        measures = [(result.variant.name, result.runs[number]) for result in findings.results]
        losses = sorted((each.loss.score, name) for name, each in measures)
        shares = [each.whole for _, each in measures if each.whole]
        count, total = sum(share.count for share in shares), sum(share.total for share in shares)
        sentences.append(
            f"{run.name} loses most BLEU with {losses[-1][1]} ({losses[-1][0]:.1f}) and least with {losses[0][1]} "
            f"({losses[0][0]:.1f}). Of the items and tags that were planted, {100 * count / total:.1f} % came back "
            "whole."
        )
    if len(findings.runs) > 1:
        names = [each.variant.name for each in findings.results if (each.p_corrected or 0.0) < SIGNIFICANCE_LEVEL]
        differ = f"by more than chance in {', '.join(names)}" if names else "in no variant by more than chance"
        sentences.append(f"The BLEU of the two runs' translations differs {differ}.")
    return sentences


def table(findings: Findings) -> tuple[list[str], list[list[str]]]:
    """Return the heading and the rows of the table of results: one row for each variant and run."""
    two = len(findings.runs) > 1
    heading = ["variant", *["run"] * two, "lines", "clean BLEU", "BLEU", "loss", "whole", *["p"] * two]
    rows = []
    for result in findings.results:
        for number, (run, measures) in enumerate(zip(findings.runs, result.runs, strict=True)):
            is_first, is_last = number == 0, number == len(findings.runs) - 1
            rows.append(
                [
                    result.variant.name if is_first else "",
                    *[run.name] * two,
                    f"{len(result.variant.lines):,}" if is_first else "",
                    f"{measures.clean:.1f}",
                    f"{measures.bleu:.1f}",
                    format_interval(measures.loss, signed=True, decimals=1),
                    _share(measures.whole),
                    *[format_p(result.p_corrected) if is_last else ""] * two,
                ]
            )
    return heading, rows


def text_table(findings: Findings) -> str:
    """Return the table in columns of even width, for a terminal."""
    heading, rows = table(findings)
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [heading, *rows])
    return "\n".join(line.rstrip() for line in lines)


def _share(share: Share | None) -> str:
    if share is None:
        return ""
    percent = Interval(100 * share.count / share.total, 100 * share.low, 100 * share.high)
    return format_interval(percent, decimals=1, unit=" %")
