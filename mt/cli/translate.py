"""``python translate.py``: translate lines of text, or documents."""

import logging
import sys
from pathlib import Path

import torch

from mt.config import TranslateConfig
from mt.core.device import limit_kernel_caches, slow_precision_warning
from mt.core.errors import InputError
from mt.documents.jobs import document_jobs
from mt.documents.translation import translate_documents
from mt.translation.lines import check_line_files, translate_lines
from mt.translation.results import Statistics
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)


def translate(config: TranslateConfig) -> None:
    """Write one line of output for each line of input, in order, or the documents that the input names.

    Raises:
        InputError: The run folder, the input, the reference or the output cannot be used.
        RunError: Another process is writing the same output, or the model's scores are not finite.
    """
    limit_kernel_caches()
    if config.threads:
        torch.set_num_threads(config.threads)
    if config.input is None and sys.stdin is None:
        raise InputError("there is no standard input: give input=FILE")
    documents = document_jobs(config)
    for name, path in (("input", config.input), ("reference", config.reference)):
        if path is not None and not documents and (not Path(path).exists() or Path(path).is_dir()):
            raise InputError(f"{name}={path}: no such file")
    if config.output is None and sys.stdout is None:
        raise InputError("there is no standard output: give output=FILE")
    if not documents:
        check_line_files(config)
    translator = Translator.load(config.run, config.decoding, config.device, config.precision, config.text)
    if doubt := slow_precision_warning(config.precision, translator.device):
        logger.warning("%s", doubt)
    if documents:
        translate_documents(config, documents, translator)
    else:
        translate_lines(config, translator)
    _log_statistics(translator.statistics, are_lines=not documents)


def _log_statistics(statistics: Statistics, are_lines: bool) -> None:
    if statistics.repaired_items:
        logger.warning(
            "of %s links, numbers and the like, the model dropped or doubled %s: they were put back or removed",
            f"{statistics.items:,}",
            f"{statistics.repaired_items:,}",
        )
    if statistics.long_sentences:
        logger.info(
            "sentences that are longer than nearly all of the training text, or have too many links and numbers, and "
            "were translated in parts: %s%s",
            f"{statistics.long_sentences:,}",
            f", the first in line {statistics.first_long_line}" if are_lines else "",
        )
    if statistics.corrections:
        logger.info(
            "words that the training text does not have, taken for typing errors: %s (%s%s); "
            "decoding.correct_typos=false leaves them as they are",
            f"{statistics.corrections:,}",
            ", ".join(f"{typed} → {word}" for typed, word in statistics.first_corrections.items()),
            " …" if statistics.has_more_corrections else "",
        )
