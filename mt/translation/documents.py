"""Translates documents: passes their lines to the translator, and writes the translations in the documents' formats.

The lines of all documents are translated together, each distinct line once. Finished translations are recorded in a
file beside the output. After an interruption, the same command resumes from this record.
"""

import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tqdm import tqdm

from mt.config import TranslateConfig
from mt.core.coded_text import CodedText, restored
from mt.core.errors import InputError, counted
from mt.core.files import make_folder, resolved, write_atomically
from mt.core.output import ResumableOutputs, is_device, resumable_outputs
from mt.formats.document import Document, Languages
from mt.formats.layout import LayoutLine
from mt.formats.registry import DocumentFormat, read_document
from mt.text.line import Line
from mt.translation.lines import job_checksum
from mt.translation.translator import Translator

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


def translate_documents(config: TranslateConfig, jobs: Sequence[DocumentJob], translator: Translator) -> None:
    """Translate documents, and write each to the output of its job as soon as its lines are translated.

    Raises:
        InputError: A document cannot be read. No translation is written.
        RunError: Another process is writing the same output.
    """
    languages = Languages(*translator.layer.direction)
    documents = _read_documents(config, jobs, languages)
    unfinished = [(job, document, document.lines()) for job, document in zip(jobs, documents, strict=True)]
    lines = list(dict.fromkeys(line for _, _, lines in unfinished for line in lines))
    logger.info("translating %s in %s", counted(len(lines), "distinct line"), counted(len(documents), "document"))
    with resumable_outputs([config.output], partial(job_checksum, config, lines), only_record=True) as outputs:
        for translations in _translate_windows(translator, lines, outputs):
            while unfinished and all(line in translations for line in unfinished[0][2]):
                job, document, lines_of_document = unfinished.pop(0)
                _write_document(job, document, [translations[line] for line in lines_of_document])


def _read_documents(config: TranslateConfig, jobs: Sequence[DocumentJob], languages: Languages) -> list[Document]:
    """Read the documents of all jobs. Raise InputError with a line for each document that cannot be read."""
    documents, errors = [], []
    for job in jobs:
        try:
            documents.append(read_document(job.path, job.format, languages, config.retranslate, config.skip_keys))
        except InputError as error:
            errors.append(str(error))
    if errors:
        raise InputError("\n".join(errors))
    if config.skip_keys and not any(document.skipped for document in documents):
        keys = [passage.key for document in documents for passage in document.passages if passage.key]
        known = f"a key is, for example, {keys[0]}" if keys else "there are no keys"
        logger.warning("skip_keys=%s matches no key: %s", ",".join(config.skip_keys), known)
    return documents


def _translate_windows(
    translator: Translator, lines: Sequence[LayoutLine], outputs: ResumableOutputs
) -> Iterator[dict[LayoutLine, CodedText]]:
    """Translate distinct lines window by window, and append the translations to the record.

    Yields:
        Line → translation for all lines translated so far: first for the recorded lines, then after each window.
    """
    recorded = (record for window in outputs.values for record in window)
    translations = {
        line: restored(line.text, text, codes) for line, (text, codes) in zip(lines, recorded, strict=False)
    }
    yield translations
    with tqdm(total=len(lines), initial=outputs.lines, unit=" lines", disable=None, leave=False) as bar:
        for start in range(outputs.lines, len(lines), DOCUMENT_WINDOW_LINES):
            window = lines[start : start + DOCUMENT_WINDOW_LINES]
            numbered = [Line(**line._asdict(), number=number) for number, line in enumerate(window, start)]
            new = [CodedText("") if best.is_source else best.coded for (best,) in translator.hypotheses(numbered)]
            records = [(text, [(code.number, code.position) for code in codes]) for text, codes in new]
            outputs.append(len(window), value=records)
            translations |= zip(window, new, strict=True)
            bar.update(len(window))
            yield translations


def _write_document(job: DocumentJob, document: Document, translations: Sequence[CodedText]) -> None:
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
    total = len(document.passages)
    others = f", {document.translated:,} had a translation already" if document.translated else ""
    if document.skipped:
        others += f"; {counted(document.skipped, 'key')} skipped"
    done = f"{total - len(skipped):,} of {counted(total, 'passage')}" if skipped else counted(total, "passage")
    logger.info("%s: %s translated%s", job.path, done, others)
    if skipped:
        logger.warning(
            "%s: %s left untranslated, the first at %s %d. Possible causes: an empty translation, or one with other "
            "placeholders (such as %%s) or markup, a message or tag that could not be parsed, alternatives "
            "(one | many), links to missing headings, or tracked changes (accept or reject them first). Translate them "
            "by hand",
            job.path,
            counted(len(skipped), "passage"),
            document.unit,
            skipped[0],
        )
