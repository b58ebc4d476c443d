"""``python -m mt compare``: writes a report that compares finished runs, models or files of translations."""

import logging
from pathlib import Path

from mt.config import CompareConfig
from mt.evaluation.comparison.findings import compare_systems
from mt.evaluation.comparison.report import COMPARISON_REPORT, write_comparison_report
from mt.evaluation.comparison.segment_scores import read_scores
from mt.evaluation.comparison.verdict import refuse_too_few_trials
from mt.evaluation.reports import report_folder
from mt.evaluation.systems import System, open_systems, report_parent
from mt.evaluation.translation import prepare_device, with_translations

logger = logging.getLogger(__name__)


def compare(config: CompareConfig) -> None:
    """Compare the systems, write the report, and log the verdicts.

    Raises:
        InputError: A run is unfinished, a run or file is damaged or not comparable with the others, or the significance
            tests have too few trials.
    """
    refuse_too_few_trials(config)
    prepare_device(config)
    evaluation, systems = open_systems(config)
    given = read_scores(config, evaluation)
    output = report_folder(config.output, _default_output(systems))
    output.mkdir(parents=True, exist_ok=True)
    systems = with_translations(evaluation, systems, config.device)
    findings, maps = compare_systems(evaluation, systems, config, given)
    write_comparison_report(evaluation, systems, findings, maps, output, config.randomization_trials)
    for verdict in findings.verdicts:
        logger.info("\n%s", verdict.words)
    logger.info("\nreport: %s", output / COMPARISON_REPORT.page)


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
