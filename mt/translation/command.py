"""``python translate.py``: finds the input, and translates it as lines of text or as documents.

The lines of all documents are translated together, each distinct line once, and the translations are written in the
documents' formats. Finished translations are kept in a record beside the output. After an interruption, the same
command continues from the record.
"""

import glob
import io
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from tqdm import tqdm

from mt.config import TranslateConfig
from mt.core.coded_text import CodedText, restored
from mt.core.device import warn_of_slow_precision
from mt.core.errors import InputError, counted
from mt.core.files import COMPRESSIONS, make_folder, matching_files, read_lines, resolved, write_atomically
from mt.core.output import ResumableOutputs, is_device, refuse_to_overwrite, resumable_outputs
from mt.distributed.launch import work_together
from mt.distributed.workers import Workers
from mt.formats.document import Document, Languages
from mt.formats.layout import LayoutLine
from mt.formats.registry import (
    AS_LINES,
    FORMAT_BY_SUFFIX,
    KNOWN_SUFFIXES,
    DocumentFormat,
    detect_content,
    detect_format,
    read_document,
)
from mt.text.line import Line
from mt.translation.lines import check_line_files, job_checksum, translate_lines
from mt.translation.translator import Translator, lead_or_help

logger = logging.getLogger(__name__)

DOCUMENT_WINDOW_LINES = 512
"""The number of lines that are translated before their translations are written to the record."""


@dataclass(frozen=True)
class DocumentJob:
    """A document to translate: its file, its format and its output file. ``translate_documents`` does the job."""

    path: Path
    format: DocumentFormat
    output: Path | None
    """The file to write the translation to. None: standard output."""


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
        config.run, config.decoding, str(workers.device), config.precision, config.text, workers, asked=config.asked
    )
    if config.confidence:
        translator.confidence.required()
    lead_or_help(workers, translator, partial(_translate_input, config, documents, translator))
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
    warn_of_slow_precision(config.precision, translator.device)
    if documents:
        translate_documents(config, documents, translator)
    elif config.input and Path(config.input).is_file():
        translate_lines(config, translator, read_lines(Path(config.input)))
    else:
        with nullcontext(sys.stdin.buffer) if config.input is None else Path(config.input).open("rb") as stream:
            if not stream.isatty():  # only now, because it waits for the first bytes
                refuse_document_in_stream(config, stream)
            translate_lines(config, translator, stream)


def document_jobs(config: TranslateConfig) -> list[DocumentJob]:
    """Return a job for each document that the setting ``input`` names; no jobs if the input is lines of text.

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
    """Raise InputError if a stream of lines begins like an archive or XML, unless the settings say that it is lines.

    Nothing is read from the stream. Of one in which a program writes a line at a time, this sees only the first.
    """
    if config.format != "auto" or not isinstance(stream, io.BufferedReader):
        return
    if (name := detect_content(stream.peek(), "the input")) != "lines":
        raise InputError(f"the input is a document ({name}); set input=FILE to translate it as one. {AS_LINES}")


def _jobs_of_folder(config: TranslateConfig, pattern: str, output: Path | None) -> list[DocumentJob]:
    """Return jobs for the documents in a folder and its subfolders, or that match a pattern, sorted by path.

    An output file has the input's path below the output folder, with .po instead of .pot. Files of other kinds are left
    out, with a warning.

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
    files = matching_files(expression)
    formats = {file: _format_in_folder(file, config.format) for file in files}
    unknown = [str(file) for file, name in formats.items() if name == "lines"]
    if len(unknown) == len(files):
        raise InputError(
            f"input={pattern}: no document among {counted(len(files), 'file')}; check the path, or set format "
            f"({KNOWN_SUFFIXES})"
        )
    if unknown:
        shown = ", ".join(unknown[:3]) + (" …" if len(unknown) > 3 else "")
        message = (
            "%s left out, because it is no document that can be translated: %s; set format to read all files in it"
        )
        logger.warning(message, counted(len(unknown), "file"), shown)
    return [
        DocumentJob(
            file, name, output / file.relative_to(top).with_suffix(".po" if file.suffix == ".pot" else file.suffix)
        )
        for file, name in formats.items()
        if name != "lines"
    ]


def _format_in_folder(path: Path, setting: DocumentFormat) -> DocumentFormat:
    """Return the format of a file in a folder. A file that cannot be translated, such as an image, has ``lines``."""
    try:
        return detect_format(path, setting)
    except InputError:
        return "lines"


def _refuse_settings_for_lines(config: TranslateConfig, jobs: Sequence[DocumentJob]) -> None:
    """Raise InputError if a setting is given that has no meaning for these documents."""
    decoding = config.decoding
    advice = "leave it out, or set format=lines to translate the input as lines of text"
    refusals = {
        f"reference={config.reference} is not for documents": config.reference is not None,
        f"decoding.n_best={decoding.n_best} is not for documents, which get one translation": decoding.n_best > 1,
        "decoding.alignments is not for documents": decoding.alignments is not None,
        f"decoding.markup={decoding.markup} is not for documents, whose format says what tags they have": (
            decoding.markup in ("html", "xml")
        ),
        "confidence=true is not for documents": config.confidence,
    }
    for message, is_given in refusals.items():
        if is_given:
            raise InputError(f"{message}; {advice}")


def translate_documents(config: TranslateConfig, jobs: Sequence[DocumentJob], translator: Translator) -> None:
    """Translate documents, and write each to the output of its job as soon as its lines are translated.

    Raises:
        InputError: A document cannot be read; then no translation is written.
        RunError: Another process is writing the same output.
    """
    languages = Languages(*translator.layer.direction)
    documents = _read_all(config, jobs, languages)
    unfinished = [(job, document, document.lines()) for job, document in zip(jobs, documents, strict=True)]
    lines = list(dict.fromkeys(line for _, _, lines in unfinished for line in lines))
    logger.info("translating %s in %s", counted(len(lines), "distinct line"), counted(len(documents), "document"))
    with resumable_outputs([config.output], partial(job_checksum, config, lines), only_record=True) as outputs:
        for translations in _translate_distinct(translator, lines, outputs):
            while unfinished and all(line in translations for line in unfinished[0][2]):
                job, document, lines_of_document = unfinished.pop(0)
                _write(job, document, [translations[line] for line in lines_of_document])


def _read_all(config: TranslateConfig, jobs: Sequence[DocumentJob], languages: Languages) -> list[Document]:
    """Read the documents of all jobs. Raise InputError with a line for each one that cannot be read."""
    documents, errors = [], []
    for job in jobs:
        try:
            documents.append(read_document(job.path, job.format, languages, config.retranslate, config.skip_keys))
        except InputError as error:
            errors.append(str(error))
    if errors:
        raise InputError("\n".join(errors))
    if config.skip_keys and not any(document.left_out for document in documents):
        keys = [passage.key for document in documents for passage in document.passages if passage.key]
        known = f"a key is, for example, {keys[0]}" if keys else "there are no keys"
        logger.warning("skip_keys=%s matches no key: %s", ",".join(config.skip_keys), known)
    return documents


def _translate_distinct(
    translator: Translator, lines: Sequence[LayoutLine], outputs: ResumableOutputs
) -> Iterator[dict[LayoutLine, CodedText]]:
    """Translate distinct lines, and append their translations to the record.

    Yields:
        Line → translation for all lines so far: first for those in the record, then again after each window.
    """
    recorded = (record for window in outputs.values for record in window)
    translations = {
        line: restored(line.text, text, codes) for line, (text, codes) in zip(lines, recorded, strict=False)
    }
    yield translations
    with tqdm(total=len(lines), initial=outputs.lines, unit=" lines", disable=None, leave=False) as bar:
        for start in range(outputs.lines, len(lines), DOCUMENT_WINDOW_LINES):
            window = lines[start : start + DOCUMENT_WINDOW_LINES]
            asked = [Line(**line._asdict(), number=number) for number, line in enumerate(window, start)]
            new = [CodedText("") if best.is_source else best.coded for (best,) in translator.hypotheses(asked)]
            records = [(text, [(code.number, code.position) for code in codes]) for text, codes in new]
            outputs.append(len(window), value=records)
            translations |= zip(window, new, strict=True)
            bar.update(len(window))
            yield translations


def _write(job: DocumentJob, document: Document, translations: Sequence[CodedText]) -> None:
    """Write a document with the translations of its lines, and log how many passages were translated."""
    try:
        content, skipped = document.render(translations)
    except InputError as error:
        raise InputError(f"{job.path}: {error}") from None
    if job.output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    elif is_device(job.output):
        job.output.write_bytes(content)
    else:
        output = resolved(job.output)
        make_folder(output.parent)
        write_atomically(output, content)
    total, kept = len(document.passages), document.translated
    others = (f", {kept:,} had a translation already" if kept else "") + (
        f"; {counted(document.left_out, 'key')} left out" if document.left_out else ""
    )
    done = f"{total - len(skipped):,} of {counted(total, 'passage')}" if skipped else counted(total, "passage")
    logger.info("%s: %s translated%s", job.path, done, others)
    if skipped:
        logger.warning(
            "%s: not understood and left unchanged: %s, first at %s %d: no translation, one with other placeholders "
            "(such as %%s) or markup, a message or tag that could not be parsed, alternatives (one | many), links to "
            "missing headings, or tracked changes (accept or reject them first); translate by hand",
            job.path,
            counted(len(skipped), "passage"),
            document.unit,
            skipped[0],
        )
