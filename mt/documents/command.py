"""``python translate.py``: translates lines of text, or documents."""

import logging
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from mt.config import TranslateConfig
from mt.core.device import slow_precision_warning
from mt.core.errors import InputError
from mt.core.files import read_lines
from mt.distributed.launch import work_together
from mt.distributed.workers import Workers
from mt.documents.jobs import DocumentJob, document_jobs, refuse_document_in_stream
from mt.documents.translation import translate_documents
from mt.translation.lines import check_line_files, translate_lines
from mt.translation.sharing import lead_or_help
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)


def translate(config: TranslateConfig) -> None:
    """Translate ``input`` into ``output``: documents, or lines of text with one output line for each input line.

    Raises:
        InputError: The run folder, the input, the reference or the output cannot be used.
        RunError: Another process is writing the same output, or the model's scores are not finite.
    """
    work_together(partial(_translate, config), config)


def _translate(config: TranslateConfig, workers: Workers) -> None:
    documents = workers.run_on_leader(lambda: _jobs(config))
    translator = Translator.load(
        config.run, config.decoding, str(workers.device), config.precision, config.text, workers
    )
    if config.confidence:
        translator.confidence.required()
    lead_or_help(workers, [translator], partial(_translate_input, config, documents, translator))
    if workers.is_leader:
        translator.statistics.log(are_lines=not documents)


def _jobs(config: TranslateConfig) -> list[DocumentJob]:
    """Return a job for each document; no jobs if the input is lines of text. Raise InputError as ``translate`` does."""
    if config.input is None and sys.stdin is None:
        raise InputError("there is no standard input to read; set input=FILE")
    documents = document_jobs(config)
    if config.output is None and sys.stdout is None:
        raise InputError("there is no standard output to write to; set output=FILE")
    if not documents:
        check_line_files(config)
    return documents


def _translate_input(config: TranslateConfig, documents: list[DocumentJob], translator: Translator) -> None:
    if warning := slow_precision_warning(config.precision, translator.device):
        logger.warning("%s", warning)
    if documents:
        translate_documents(config, documents, translator)
    elif config.input and Path(config.input).is_file():
        translate_lines(config, translator, read_lines(Path(config.input)))
    else:
        with nullcontext(sys.stdin.buffer) if config.input is None else Path(config.input).open("rb") as stream:
            if not stream.isatty():  # only now, because it waits for the first bytes
                refuse_document_in_stream(config, stream)
            translate_lines(config, translator, stream)
