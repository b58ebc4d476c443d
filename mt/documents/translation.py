"""Translate documents: their lines go through the translator, and come back in the documents' own formats.

The lines of all documents are translated together, each distinct line once. Finished lines are kept in a journal beside
the output, which the same command continues after it was stopped.
"""

import hashlib
import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import BinaryIO

from tqdm import tqdm

from mt.config import TranslateConfig, as_folders
from mt.core.errors import InputError
from mt.core.files import make_folder, resolved, write_atomically
from mt.core.output import is_device, partial_file
from mt.core.wording import counted
from mt.data.parsers.document import Document, Languages
from mt.data.parsers.layout import Line
from mt.documents.formats import read_document
from mt.documents.jobs import DocumentJob
from mt.storage.folders import open_folder
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)

WINDOW_LINES = 512
"""How many lines are translated before they are written to the journal."""


def translate_documents(config: TranslateConfig, jobs: Sequence[DocumentJob], translator: Translator) -> None:
    """Translate documents, each to its output.

    Raises:
        InputError: One cannot be read. Then none is written.
        RunError: Another process is writing the same output.
    """
    languages = Languages(translator.layer.source_language, translator.layer.target_language)
    documents = [read_document(job.path, job.format, languages, config.retranslate) for job in jobs]
    unfinished = [(job, document, document.lines()) for job, document in zip(jobs, documents, strict=True)]
    lines = list(dict.fromkeys(line for _, _, lines in unfinished for line in lines))
    logger.info("%s lines to translate in %s", f"{len(lines):,}", counted(len(documents), "document"))
    has_journal = config.output is not None and not is_device(config.output)
    with partial_file(config.output, at_end="remove") if config.output and has_journal else nullcontext() as journal:
        for translations in _translate(config, translator, lines, journal):
            while unfinished and all(line in translations for line in unfinished[0][2]):
                job, document, lines_of_document = unfinished.pop(0)
                _write(job, document, [translations[line] for line in lines_of_document])


def _translate(
    config: TranslateConfig, translator: Translator, lines: Sequence[Line], journal: BinaryIO | None
) -> Iterator[dict[Line, str]]:
    """Yield the translations so far, after each window and once at least."""
    checksum = _job_checksum(config, lines) if journal else ""
    entries = _read_journal(journal, checksum) if journal else []
    translations = dict(zip(lines, entries[1:], strict=False))
    if translations:
        logger.info("%s of %s lines were translated before: going on", f"{len(translations):,}", f"{len(lines):,}")
    yield translations
    with tqdm(total=len(lines), initial=len(translations), unit=" lines", disable=None, leave=False) as bar:
        for start in range(len(translations), len(lines), WINDOW_LINES):
            window = lines[start : start + WINDOW_LINES]
            numbers = range(start, start + len(window))
            new = translator.translate([line.text for line in window], numbers, markup=[line.markup for line in window])
            if journal:
                added = new if entries or start else [checksum, *new]
                journal.write("".join(f"{json.dumps(entry)}\n" for entry in added).encode())
                journal.flush()
            translations |= zip(window, new, strict=True)
            bar.update(len(window))
            yield translations


def _read_journal(journal: BinaryIO, checksum: str) -> list[str]:
    """Return the entries of a journal: the job's checksum, and a translation for each of the first lines.

    Incomplete entries are cut off, and so are all entries of another job.
    """
    entries: list[str] = []
    end = 0
    journal.seek(0)
    for line in journal:
        try:
            entry = json.loads(line)
        except ValueError:
            break
        if not line.endswith(b"\n") or not isinstance(entry, str) or (not entries and entry != checksum):
            break
        entries.append(entry)
        end += len(line)
    journal.truncate(end)
    return entries


def _job_checksum(config: TranslateConfig, lines: Sequence[Line]) -> str:
    """Return a checksum of everything that decides the translations: lines, settings, and the model's files."""
    digest = hashlib.sha256(repr((lines, config.decoding, config.text, config.precision)).encode())
    for folder in as_folders(config.run):
        digest.update(open_folder(folder).checksum().encode())
    return digest.hexdigest()


def _write(job: DocumentJob, document: Document, translations: Sequence[str]) -> None:
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
    kept = f", {document.translated:,} had a translation already" if document.translated else ""
    logger.info("%s: %s translated%s", job.path, counted(len(document.passages) - skipped, "passage"), kept)
    if skipped:
        reason = "their translation is empty or has other format directives, such as %s, than the text"
        logger.warning("%s: %s left as they are: %s", job.path, counted(skipped, "passage"), reason)
