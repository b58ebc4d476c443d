"""The command ``translate``: determines whether the input is lines of text or documents, and translates it."""

import glob
import io
import logging
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import BinaryIO

from mt.config import TranslateConfig
from mt.core.device import warn_of_slow_precision
from mt.core.errors import InputError, counted
from mt.core.files import COMPRESSIONS, matching_files, read_lines, resolved
from mt.core.output import refuse_to_overwrite
from mt.distributed.launch import run_workers
from mt.distributed.workers import Workers
from mt.formats.registry import (
    FORMAT_BY_SUFFIX,
    KNOWN_SUFFIXES,
    LINES_HINT,
    DocumentFormat,
    detect_content,
    detect_format,
)
from mt.translation.documents import DocumentJob, translate_documents
from mt.translation.lines import check_line_files, translate_lines
from mt.translation.translator import Translator, run_with_workers

logger = logging.getLogger(__name__)


def translate(config: TranslateConfig) -> None:
    """Translate ``input`` into ``output``: documents, or lines of text with one output line for each input line.

    Raises:
        InputError: The run folder, the input, the reference or the output cannot be used.
        RunError: Another process is writing the same output, or the model's scores are not finite.
    """
    run_workers(partial(_translate, config), config)


def _translate(config: TranslateConfig, workers: Workers) -> None:
    documents = workers.run_on_main(lambda: _check_and_list_jobs(config))
    translator = Translator.load(
        config.run, config.decoding, str(workers.device), config.precision, config.text, workers, asked=config.asked
    )
    if config.confidence:
        translator.confidence.require_fitted()
    run_with_workers(workers, translator, partial(_translate_input, config, documents, translator))
    if workers.is_main:
        translator.statistics.log(are_lines=not documents)


def _check_and_list_jobs(config: TranslateConfig) -> list[DocumentJob]:
    """Check the inputs and outputs, and return a job for each document; no jobs if the input is lines of text.

    Raises:
        InputError: See ``translate``.
    """
    if config.input is None and sys.stdin is None:
        raise InputError("there is no standard input to read; set input=FILE")
    documents = document_jobs(config)
    if config.output is None and sys.stdout is None:
        raise InputError("there is no standard output to write to; set output=FILE")
    if not documents:
        check_line_files(config)
    return documents


def _translate_input(config: TranslateConfig, documents: list[DocumentJob], translator: Translator) -> None:
    """Translate the documents; or the lines of the input, if there are no documents."""
    warn_of_slow_precision(config.precision, translator.device)
    if documents:
        translate_documents(config, documents, translator)
    elif config.input and Path(config.input).is_file():
        translate_lines(config, translator, read_lines(Path(config.input)))
    else:
        with nullcontext(sys.stdin.buffer) if config.input is None else Path(config.input).open("rb") as stream:
            if not stream.isatty():  # checked after the model is loaded, because it waits for the first bytes
                refuse_document_in_stream(config, stream)
            translate_lines(config, translator, stream)


def document_jobs(config: TranslateConfig) -> list[DocumentJob]:
    """Return a job for each document of the setting ``input``; no jobs if the input is lines of text.

    ``input`` is a document, a folder of documents, or a pattern such as ``po/*.po``.

    Raises:
        InputError: There is no such file, the translations cannot be written to the output, or a setting is only for
            lines of text.
    """
    if config.input is None:
        if config.format not in ("auto", "lines"):
            raise InputError(f"format={config.format} needs a document file; set input=FILE")
        return []
    path = Path(config.input)
    output = None if config.output is None else Path(config.output)
    if path.is_dir() or (not path.exists() and "*" in config.input):
        jobs = _jobs_of_folder(config, config.input, output)
    elif not path.exists():
        raise InputError(f"input={path}: no such file; check the path")
    elif (name := detect_format(path, config.format)) != "lines":
        jobs = [DocumentJob(path, name, output)]
    elif config.format == "auto" and output and (output_format := FORMAT_BY_SUFFIX.get(output.suffix.lower())):
        raise InputError(
            f"output={output} has the suffix of a {output_format} document, but input={path} is read as lines of text; "
            "set format if the input is a document, or rename the output"
        )
    else:
        return []
    _refuse_settings_for_lines(config, jobs)
    for suffix in {job.output.suffix for job in jobs if job.output} & COMPRESSIONS.keys():
        raise InputError(f"output={output}: documents are written uncompressed; leave out {suffix}")
    refuse_to_overwrite([(f"{job.path}: output", job.output) for job in jobs], [job.path for job in jobs])
    return jobs


def refuse_document_in_stream(config: TranslateConfig, stream: BinaryIO) -> None:
    """Raise InputError if a stream begins like an archive or XML, unless the setting ``format`` is ``lines``.

    Nothing is consumed from the stream. If a program writes one line at a time into it, only the first line is checked.
    """
    if config.format != "auto" or not isinstance(stream, io.BufferedReader):
        return
    if (name := detect_content(stream.peek(), "the input")) != "lines":
        raise InputError(f"the input is a document ({name}); set input=FILE to translate it as one. {LINES_HINT}")


def _jobs_of_folder(config: TranslateConfig, pattern: str, output: Path | None) -> list[DocumentJob]:
    """Return a job for each document in a folder and its subfolders, or of a pattern, sorted by path.

    An output file has the path of the input below the output folder, with .po instead of .pot. Files of other formats
    are skipped, with a warning.

    Args:
        pattern: The setting ``input``: a folder, or a pattern with ``*`` as its only wildcard.
        output: The output folder.
    """
    if output is None:
        raise InputError(f"input={pattern} is several files; set output=FOLDER")
    if output.exists() and not output.is_dir():
        raise InputError(f"input={pattern} is several files, but output={output} is a file; set output=FOLDER")
    top = Path(pattern)
    if top.is_dir():
        expression = str(Path(glob.escape(pattern), "**"))
    else:
        top = Path(f"{pattern.partition('*')[0]}x").parent
        expression = re.sub(r"[?[]", r"[\g<0>]", pattern)  # only * is a wildcard
    if resolved(output).is_relative_to(resolved(top)) and "**" in expression:
        raise InputError(
            f"output={output} is inside input={pattern}, so the next run would translate it too; choose another folder"
        )
    formats = {file: _format_in_folder(file, config.format) for file in matching_files(expression)}
    unknown = [str(file) for file, name in formats.items() if name == "lines"]
    if len(unknown) == len(formats):
        raise InputError(
            f"input={pattern}: no document among {counted(len(formats), 'file')}; check the path, or set format "
            f"({KNOWN_SUFFIXES})"
        )
    if unknown:
        shown = ", ".join(unknown[:3]) + (" …" if len(unknown) > 3 else "")
        logger.warning(
            "%s of unsupported format skipped: %s; set format to read all files in one format",
            counted(len(unknown), "file"),
            shown,
        )
    return [
        DocumentJob(
            file, name, output / file.relative_to(top).with_suffix(".po" if file.suffix == ".pot" else file.suffix)
        )
        for file, name in formats.items()
        if name != "lines"
    ]


def _format_in_folder(path: Path, setting: DocumentFormat) -> DocumentFormat:
    """Return the format of a file in a folder: ``lines`` for a file that is not a document, such as an image."""
    try:
        return detect_format(path, setting)
    except InputError:
        return "lines"


def _refuse_settings_for_lines(config: TranslateConfig, jobs: Sequence[DocumentJob]) -> None:
    """Raise InputError if a setting is given that does not apply to documents."""
    decoding = config.decoding
    hint = "leave it out, or set format=lines to translate the input as lines of text"
    refusals = {
        f"reference={config.reference} is not for documents": config.reference is not None,
        f"decoding.n_best={decoding.n_best} is not for documents, which get one translation": decoding.n_best > 1,
        "decoding.alignments is not for documents": decoding.alignments is not None,
        f"decoding.markup={decoding.markup} is not for documents, whose format determines their tags": (
            decoding.markup in ("html", "xml")
        ),
        "confidence=true is not for documents": config.confidence,
    }
    for message, is_given in refusals.items():
        if is_given:
            raise InputError(f"{message}; {hint}")
