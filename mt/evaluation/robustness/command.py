"""``python -m mt robustness``: translates changed test sentences, and reports how much BLEU each change costs.

The report is robustness.html for people, robustness.md for a pull request, and robustness.json for programs.
"""

import logging
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import mean

from mt.config import CompareConfig, EvaluationConfig, RobustnessConfig
from mt.core.errors import InputError
from mt.core.language import ANY_DIRECTION, AskedDirection
from mt.evaluation.robustness.measures import TRIALS, VariantResult, measure_variants
from mt.evaluation.robustness.variants import RobustnessSet, make_lines
from mt.evaluation.systems import EvaluationSet, System, directions_to_score, open_systems, report_parent
from mt.evaluation.translation import prepare_device, translate_with_progress
from mt.metrics.significance import BOOTSTRAP_SAMPLES, SIGNIFICANCE_LEVEL
from mt.reporting.figures import as_picture, plot_intervals
from mt.reporting.pages import Report, report_folder
from mt.storage.folders import is_model_without_run, open_folder, resolve_model_path
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)

ROBUSTNESS_REPORT = Report(Path(__file__).parent, "robustness.html", "robustness.md", "robustness.json")
MAX_WORST_LINES = 5
"""Lines that the page shows for each variant."""
SMALL_LOSS = 1
"""Losses of less BLEU are not stated in the summary."""


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
    skipped: list[str]
    """The names of the variants without lines."""
    seed: int


def measure_robustness(config: RobustnessConfig) -> None:
    """Translate every variant of the test set with one or two runs, and write the report and log its summary. Several
    directions have a report each.

    Raises:
        InputError: A run is unfinished or corrupted, two runs have different test sets, no test sentence is long
            enough,
            or the output is a file.
    """
    prepare_device(config)
    directions = directions_to_score(config)
    reports = [_measure(config, asked, len(directions) > 1) for asked in directions]
    for number, run in enumerate(reports[0].runs if len(reports) > 1 else ()):
        losses: dict[str, list[float]] = {}
        for result in chain.from_iterable(own.results for own in reports):
            losses.setdefault(result.variant.name, []).append(result.runs[number].scores.loss.score)
        shown = ", ".join(f"{name} {mean(own):.1f}" for name, own in losses.items())
        logger.info("\n%s: mean loss of BLEU over %d directions: %s", run.name, len(directions), shown)


def _measure(config: RobustnessConfig, asked: AskedDirection, is_one_of_several: bool) -> RobustnessFindings:
    """Measure the robustness in one direction."""
    evaluation, systems = open_runs(config, asked)
    output = report_folder(config.output, _default_output(config), evaluation.key if is_one_of_several else "")
    lines = make_lines(evaluation, config.sentences, config.seed)
    translators = [
        Translator.load(system.first.origin, config.decoding, config.device, asked=system.first.asked)
        for system in systems
    ]
    output.mkdir(parents=True, exist_ok=True)
    pairs = list(zip(systems, translators, strict=True))
    translations = [_translate(translator, system.name, lines) for system, translator in pairs]
    results = measure_variants(lines.variants, translations, evaluation.target_language, config.seed)
    runs = [
        MeasuredRun(system.name, str(system.first.origin), translator.config.model_dump(mode="json"))
        for system, translator in pairs
    ]
    findings = RobustnessFindings(evaluation, runs, len(lines.chosen), results, lines.skipped, config.seed)
    write_robustness_report(findings, output)
    logger.info("\n%s", "\n".join(summary(findings)))
    if lines.skipped:
        logger.info("variants skipped, because they change no chosen sentence: %s", ", ".join(lines.skipped))
    logger.info("\nreport: %s", output / ROBUSTNESS_REPORT.page)
    return findings


def _folders(config: RobustnessConfig) -> list[Path]:
    return [Path(folder) for (folder,) in config.systems]


def open_runs(config: RobustnessConfig, asked: AskedDirection = ANY_DIRECTION) -> tuple[EvaluationSet, list[System]]:
    """Return the test set and the runs, which have distinct names.

    Raises:
        InputError: A run is unfinished or corrupted, the runs have different test sets, or there is only a model
            without a test set.
    """
    for folder in _folders(config):
        open_folder(folder)  # refuses a file, which a comparison takes for translations
    if all(is_model_without_run(resolve_model_path(folder)) for folder in _folders(config)):
        raise InputError(
            f"run={config.run} is a model without a run, so it has no test set; add second=RUN, a finished run whose "
            "test set both translate"
        )
    if config.second:
        return open_systems(CompareConfig(first=config.run, second=config.second), asked)
    return open_systems(EvaluationConfig(run=config.run), asked)


def _default_output(config: RobustnessConfig) -> Path:
    """Return the default folder of the report: RUN/robustness or, for two runs, FIRST-vs-SECOND-robustness beside the
    second."""
    folders = _folders(config)
    if len(folders) == 1:
        return folders[0].resolve() / "robustness"
    first, second = (folder.resolve().name for folder in folders)
    return report_parent(folders) / f"{first}-vs-{second}-robustness"


def _translate(translator: Translator, name: str, lines: RobustnessSet) -> dict[str, str]:
    """Translate the clean and the changed sentences, each distinct one once.

    Args:
        name: The label of the progress bar.

    Returns:
        Source sentence → its translation.
    """
    clean = [pair.source for variant in lines.variants for line in variant.lines for pair in line.pairs]
    plain, tagged = (
        [line.source for variant in lines.variants if variant.is_tagged == is_tagged for line in variant.lines]
        for is_tagged in (False, True)
    )
    translations: dict[str, str] = {}
    for sources, is_tagged in (([*clean, *plain], False), (tagged, True)):
        distinct = list(dict.fromkeys(sources))
        outputs = translate_with_progress(translator, distinct, name, "html" if is_tagged else None)
        translations |= zip(distinct, outputs, strict=True)
    return translations


def write_robustness_report(findings: RobustnessFindings, folder: Path) -> None:
    """Write robustness.html, robustness.md and robustness.json into an existing folder. Reports in it
    are replaced."""
    results = findings.results
    values = {
        "findings": findings,
        "summary": summary(findings),
        "worst": [(result, worst_lines(result)) for result in results],
        "samples": BOOTSTRAP_SAMPLES,
        "trials": TRIALS,
        "level": SIGNIFICANCE_LEVEL,
        "signatures": sorted({result.signature for result in results}),
    }
    losses = {run.name: [result.runs[n].scores.loss for result in results] for n, run in enumerate(findings.runs)}
    label = "loss of BLEU against the clean sentences, with 95 % intervals"
    picture = plot_intervals([result.variant.name for result in results], losses, label)
    numbers = {
        "source_language": findings.evaluation.source_language,
        "target_language": findings.evaluation.target_language,
        "sentences": findings.sentences,
        "seed": findings.seed,
        "runs": findings.runs,
        "left_out": findings.skipped,
        "variants": [
            {
                "name": result.variant.name,
                "rule": result.variant.rule,
                "signature": result.signature,
                "p": result.p,
                "p_corrected": result.p_corrected,
                "runs": [run.scores for run in result.runs],
                "lines": _lines(result),
            }
            for result in results
        ],
    }
    ROBUSTNESS_REPORT.write(folder, values, as_picture(picture), numbers)


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
        losses = {result.variant.name: result.runs[number].scores.loss.score for result in findings.results}
        worst = max(losses, key=losses.__getitem__)
        small = [name for name, loss in losses.items() if loss < SMALL_LOSS]
        shares = [share for result in findings.results if (share := result.runs[number].scores.whole)]
        count, total = sum(share.count for share in shares), sum(share.total for share in shares)
        sentences.append(
            f"{run.name} loses most BLEU in the variant {worst} ({losses[worst]:.1f}), and less than {SMALL_LOSS} in "
            f"{', '.join(small) or 'no variant'}. Of the planted items and tags, {100 * count / total:.1f} % are "
            "preserved."
        )
    if len(findings.runs) > 1:
        names = [result.variant.name for result in findings.results if (result.p_corrected or 0.0) < SIGNIFICANCE_LEVEL]
        sentences.append(f"The BLEU of the two runs differs significantly in {', '.join(names) or 'no variant'}.")
    return sentences
