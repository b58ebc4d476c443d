"""Writes the report: robustness.html for people, robustness.md for a pull request, robustness.json for programs."""

from dataclasses import asdict, dataclass
from pathlib import Path

from mt.evaluation.reports import interval_bars
from mt.evaluation.robustness.measures import TRIALS, VariantResult
from mt.evaluation.systems import EvaluationSet
from mt.metrics.significance import BOOTSTRAP_SAMPLES, SIGNIFICANCE_LEVEL
from mt.reporting.figures import as_picture
from mt.reporting.pages import Report

ROBUSTNESS_REPORT = Report(Path(__file__).parent, "robustness.html", "robustness.md", "robustness.json")
MAX_WORST_LINES = 5
"""Lines that the page shows for each variant."""


@dataclass(frozen=True)
class MeasuredRun:
    """A run, as the report names it: its name, its folder and its search settings."""

    name: str
    folder: str
    decoding: dict


@dataclass(frozen=True)
class RobustnessFindings:
    """The content of the report."""

    evaluation: EvaluationSet
    runs: list[MeasuredRun]
    sentences: int
    """The number of chosen test sentences."""
    results: list[VariantResult]
    left_out: list[str]
    """The names of the variants without lines."""
    seed: int


def write_robustness_report(findings: RobustnessFindings, folder: Path) -> None:
    """Write robustness.html, robustness.md and robustness.json into an existing folder. Reports in it
    are replaced."""
    values = {
        "findings": findings,
        "summary": summary(findings),
        "worst": [(result, worst_lines(result)) for result in findings.results],
        "samples": BOOTSTRAP_SAMPLES,
        "trials": TRIALS,
        "level": SIGNIFICANCE_LEVEL,
        "signatures": sorted({result.signature for result in findings.results}),
    }
    results = findings.results
    losses = {run.name: [result.runs[n].scores.loss for result in results] for n, run in enumerate(findings.runs)}
    label = "loss of BLEU against the clean sentences, with 95 % intervals"
    picture = interval_bars([result.variant.name for result in results], losses, label)
    ROBUSTNESS_REPORT.write(folder, values, as_picture(picture), report_json(findings))


def report_json(findings: RobustnessFindings) -> dict:
    """Return the content of robustness.json, with every number and every line."""
    return {
        "source_language": findings.evaluation.source_language,
        "target_language": findings.evaluation.target_language,
        "sentences": findings.sentences,
        "seed": findings.seed,
        "runs": [asdict(run) for run in findings.runs],
        "left_out": findings.left_out,
        "variants": [
            {
                "name": result.variant.name,
                "rule": result.variant.rule,
                "signature": result.signature,
                "p": result.p,
                "p_corrected": result.p_corrected,
                "runs": [asdict(run.scores) for run in result.runs],
                "lines": _lines(result),
            }
            for result in findings.results
        ],
    }


def _lines(result: VariantResult) -> list[dict]:
    """Return the lines of a variant as robustness.json lists them, with the translations and losses of each run."""
    return [
        {
            "numbers": [pair.number for pair in line.pairs],
            "source": line.source,
            "reference": line.reference,
            "clean_outputs": [run.clean_outputs[number] for run in result.runs],
            "outputs": [run.outputs[number] for run in result.runs],
            "chrf_losses": [run.chrf_losses[number] for run in result.runs],
            "item": line.item,
        }
        for number, line in enumerate(result.variant.lines)
    ]


def worst_lines(result: VariantResult) -> list[dict]:
    """Return up to MAX_WORST_LINES lines that lose most chrF2, on average over the runs, the largest loss first."""
    losing = [line for line in _lines(result) if sum(line["chrf_losses"]) > 0]
    return sorted(losing, key=lambda line: -sum(line["chrf_losses"]))[:MAX_WORST_LINES]


def summary(findings: RobustnessFindings) -> list[str]:
    """Return a text on the results of each run and, with two runs, a further one on their differences."""
    sentences = []
    for number, run in enumerate(findings.runs):
        scores = [(result.variant.name, result.runs[number].scores) for result in findings.results]
        losses = sorted((run_scores.loss.score, name) for name, run_scores in scores)
        shares = [run_scores.whole for _, run_scores in scores if run_scores.whole]
        count, total = sum(share.count for share in shares), sum(share.total for share in shares)
        sentences.append(
            f"{run.name} loses most BLEU with {losses[-1][1]} ({losses[-1][0]:.1f}) and least with {losses[0][1]} "
            f"({losses[0][0]:.1f}). Of the items and tags that were planted, {100 * count / total:.1f} % came back "
            "whole."
        )
    if len(findings.runs) > 1:
        names = [result.variant.name for result in findings.results if (result.p_corrected or 0.0) < SIGNIFICANCE_LEVEL]
        differ = f"by more than chance in {', '.join(names)}" if names else "in no variant by more than chance"
        sentences.append(f"The BLEU of the two runs' translations differs {differ}.")
    return sentences
