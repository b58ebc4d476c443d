"""``python -m mt.comparison``: makes a report from finished runs or files of translations."""

import logging
from pathlib import Path

import torch

from mt.comparison.findings import compare_systems
from mt.comparison.report import PAGE, write_report
from mt.comparison.systems import System, open_systems
from mt.config import CompareConfig
from mt.device import choose_device, limit_kernel_caches
from mt.errors import InputError
from mt.files import resolved

logger = logging.getLogger(__name__)


def compare(config: CompareConfig) -> None:
    """Compares the systems, writes the report and logs the verdict.

    Raises:
        InputError: A run or file is unfinished, damaged or not comparable with the others.
    """
    limit_kernel_caches()
    if config.threads:
        torch.set_num_threads(config.threads)
    choose_device(config.device)  # refuses a missing device before any work is done
    evaluation, systems = open_systems(config)
    output = Path(config.output) if config.output else _default_output(systems)
    resolved(output)  # refuses links that lead in a circle
    if output.exists() and not output.is_dir():
        raise InputError(f"output={output}: is a file; the report is a folder")
    output.mkdir(parents=True, exist_ok=True)
    findings = compare_systems(evaluation, systems, config)
    write_report(findings, output, config.randomization_trials)
    for contrast in findings.contrasts:
        logger.info("\n%s", contrast.conclusions.words)
    logger.info("\nreport: %s", output / PAGE)


def _default_output(systems: list[System]) -> Path:
    """Returns the folder FIRST-vs-SECOND beside the last system. Names include the number of seeds if above one."""
    names = [
        (system.first.origin.resolve().name if system.runs else system.first.origin.stem)
        + (f"-{len(system.outputs)}-seeds" if len(system.outputs) > 1 else "")
        for system in systems
    ]
    return systems[-1].first.origin.resolve().parent / "-vs-".join(names)
