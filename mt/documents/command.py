"""``python translate.py``: translates lines of text, or documents."""

import logging
import sys
from contextlib import nullcontext
from pathlib import Path

import torch

from mt.config import TranslateConfig
from mt.core.device import limit_kernel_caches, slow_precision_warning
from mt.core.errors import InputError
from mt.core.files import read_lines
from mt.documents.jobs import document_jobs, refuse_document_in_stream
from mt.documents.translation import translate_documents
from mt.translation.lines import check_line_files, translate_lines
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)


def translate(config: TranslateConfig) -> None:
    """Translate ``input`` into ``output``: documents, or lines of text with one output line for each input line.

    Raises:
        InputError: The run folder, the input, the reference or the output cannot be used.
        RunError: Another process is writing the same output, or the model's scores are not finite.
    """
    limit_kernel_caches()
    if config.threads:
        torch.set_num_threads(config.threads)
    if config.input is None and sys.stdin is None:
        raise InputError("there is no standard input to read; set input=FILE")
    documents = document_jobs(config)
    if config.output is None and sys.stdout is None:
        raise InputError("there is no standard output to write to; set output=FILE")
    if not documents:
        check_line_files(config)
    translator = Translator.load(config.run, config.decoding, config.device, config.precision, config.text)
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
    translator.statistics.log(are_lines=not documents)
