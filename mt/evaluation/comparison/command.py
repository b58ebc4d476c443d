"""``python -m mt compare``: writes a report that compares finished runs, models or files of translations.

With ``robustness=true``, the command also writes a robustness report, and links it from the comparison.
"""

import logging
from pathlib import Path

from mt.config import CompareConfig, RobustnessConfig
from mt.core.errors import InputError
from mt.evaluation.comparison.findings import compare_systems
from mt.evaluation.comparison.report import COMPARISON_REPORT, write_comparison_report
from mt.evaluation.comparison.segment_scores import read_scores
from mt.evaluation.comparison.verdict import refuse_too_few_trials
from mt.evaluation.preparation import prepare_device, report_folder
from mt.evaluation.robustness import report as robustness_report
from mt.evaluation.robustness.command import measure_robustness
from mt.evaluation.robustness.variant_lines import make_lines
from mt.evaluation.systems import System, open_systems, report_parent
from mt.evaluation.translation import with_translations

logger = logging.getLogger(__name__)


def compare(config: CompareConfig) -> None:
    """Compare the systems, write the report, and log the verdicts.

    Raises:
        InputError: A run is unfinished, a run or file is damaged or not comparable with the others, the significance
            tests have too few trials, or robustness cannot be measured: a system is a file, or all test sentences are
            too short.
    """
    refuse_too_few_trials(config)
    prepare_device(config)
    evaluation, systems = open_systems(config)
    given = read_scores(config, evaluation)
    for system in systems if config.robustness else []:
        if not system.can_translate:
            raise InputError(
                f"robustness=true: {system.first.origin} is a file of translations, which cannot translate changed "
                "sentences; leave robustness=true out"
            )
    output = report_folder(config.output, _default_output(systems))
    if config.robustness:
        # Raises InputError for a test set of short sentences only, before an earlier report is removed.
        make_lines(evaluation, max_sentences=1, seed=1)
    output.mkdir(parents=True, exist_ok=True)
    robustness = _measure_robustness(systems, output, config) if config.robustness else None
    systems = with_translations(evaluation, systems, config.device)
    findings, maps = compare_systems(evaluation, systems, config, given)
    trials = config.randomization_trials
    write_comparison_report(evaluation, systems, findings, maps, output, trials=trials, robustness=robustness)
    for verdict in findings.verdicts:
        logger.info("\n%s", verdict.words)
    logger.info("\nreport: %s", output / COMPARISON_REPORT.page)


def _measure_robustness(systems: list[System], output: Path, config: CompareConfig) -> dict:
    """Write a robustness report on the first output of each of two systems into the comparison's folder.

    Returns:
        What the comparison shows of that report: its file names, its runs and its summary.
    """
    for name in (*COMPARISON_REPORT.files, *robustness_report.ROBUSTNESS_REPORT.files):
        # An earlier comparison would link the new robustness report, of other systems, until it is rewritten.
        (output / name).unlink(missing_ok=True)
    logger.info("measuring the robustness of the systems")
    first, second = (system.first.origin for system in systems)
    findings = measure_robustness(
        RobustnessConfig(
            run=str(first), second=str(second), output=str(output), device=config.device, threads=config.threads
        )
    )
    return {
        "page": robustness_report.ROBUSTNESS_REPORT.page,
        "json": robustness_report.ROBUSTNESS_REPORT.json,
        "runs": [str(first), str(second)],
        "words": robustness_report.summary(findings),
    }


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
