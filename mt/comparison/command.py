"""``python -m mt.comparison``: from finished runs to a report."""

import logging
from pathlib import Path

import torch

from mt.comparison.findings import compare_systems
from mt.comparison.report import PAGE, write_report
from mt.comparison.systems import System, open_systems
from mt.config import CompareConfig
from mt.device import choose_device, keep_few_kernels
from mt.files import resolved

logger = logging.getLogger(__name__)


def compare(config: CompareConfig) -> None:
    """Writes the report and says the verdict.

    Raises InputError for runs that are unfinished, damaged or not comparable.
    """
    keep_few_kernels()
    if config.threads:
        torch.set_num_threads(config.threads)
    choose_device(config.device)  # to refuse a device that is not there before any work
    systems = open_systems(config.systems)
    output = Path(config.output) if config.output else _default_output(systems)
    resolved(output)  # to refuse links that lead in a circle
    output.mkdir(parents=True, exist_ok=True)
    findings = compare_systems(systems, config)
    write_report(findings, output)
    for contrast in findings.contrasts:
        logger.info("\n%s", contrast.verdict.words)
    logger.info("\nreport: %s", output / PAGE)


def _default_output(systems: list[System]) -> Path:
    """FIRST-vs-SECOND beside the second, with the number of seeds if there are several."""
    names = [
        system.first.folder.resolve().name + (f"-{len(system.runs)}-seeds" if len(system.runs) > 1 else "")
        for system in systems
    ]
    return systems[-1].first.folder.resolve().parent / "-vs-".join(names)
