"""``python -m mt.comparison``: from finished runs to a report."""

import logging
from pathlib import Path

import torch

from mt.comparison.findings import compare_systems
from mt.comparison.report import JSON, PAGE, write_report
from mt.comparison.systems import System, open_systems
from mt.config import CompareConfig
from mt.device import choose_device
from mt.errors import InputError
from mt.files import new_folder

logger = logging.getLogger(__name__)


def compare(config: CompareConfig) -> None:
    """Writes the report and says the verdict.

    Raises InputError for runs that are unfinished, damaged or not comparable.
    """
    if config.threads:
        torch.set_num_threads(config.threads)
    choose_device(config.device)
    systems = open_systems(config.systems)
    output = Path(config.output) if config.output else _default_output(systems)
    if output.exists() and not (output / JSON).is_file():
        raise InputError(f"output={output} exists and holds no comparison: give another folder")
    findings = compare_systems(systems, config)
    with new_folder(output) as folder:
        write_report(findings, folder)
    for contrast in findings.contrasts:
        logger.info("\n%s", contrast.verdict.words)
    logger.info("\nreport: %s", output / PAGE)


def _default_output(systems: list[System]) -> Path:
    names = [system.first.folder.name for system in systems]
    return systems[-1].first.folder.parent / "-vs-".join(names)
