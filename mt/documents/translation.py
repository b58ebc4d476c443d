"""Translates documents: their lines go through the translator, and come back in the documents' own formats.

The lines of all documents are translated in one go, each line once however often it occurs. What is finished is kept in
a journal beside the output, from which the same command goes on after it was stopped.
"""

import glob
import hashlib
import json
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tqdm import tqdm

from mt.config import TranslateConfig
from mt.core.errors import InputError, RunError
from mt.core.files import make_folder, resolved, try_lock, write_atomically
from mt.data.parsers.document import Document, Languages
from mt.data.parsers.layout import Line
from mt.documents.formats import COMPRESSIONS, DocumentFormat, format_of, known_endings, read_document
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)

WINDOW_LINES = 512
"""How many lines are translated before they are written to the journal."""


@dataclass(frozen=True)
class Named:
    """A document by its name."""

    path: Path
    format: DocumentFormat
    output: Path | None
    """Where its translation goes. None: to standard output."""


def named_documents(config: TranslateConfig) -> list[Named]:
    """Returns the documents that the input names; none if it is lines.

    Raises:
        InputError: There is no such file, the output is no place for the translations, or a setting is for lines.
    """
    if config.input is None:
        if config.format not in ("auto", "lines"):
            raise InputError(f"format={config.format}: a document is read from a file: give input=FILE")
        return []
    path = Path(config.input)
    is_folder = path.is_dir() or (not path.exists() and "*" in config.input)
    if is_folder:
        found = list(_in_folder(config))
    else:
        if not path.exists():
            raise InputError(f"input={path}: no such file")
        kind = format_of(path, config.format)
        if kind == "lines":
            if config.format == "auto" and config.output and (other := format_of(Path(config.output))) != "lines":
                raise InputError(f"output={config.output} is of the format {other}, but the input, {path}, is not")
            return []
        output = None if config.output is None else Path(config.output)
        found = [Named(path, kind, output)]
    _refuse_settings_for_lines(config)
    _refuse_to_overwrite(found)
    return found


def translate_documents(config: TranslateConfig, named: Sequence[Named], translator: Translator) -> None:
    """Translates documents, each to its output.

    Raises:
        InputError: One cannot be read. Then none is written.
        RunError: Another process is writing the same output.
    """
    languages = Languages(translator.layer.source_language, translator.layer.target_language)
    documents = [read_document(one.path, one.format, languages, config.retranslate) for one in named]
    of_each = [document.lines() for document in documents]
    lines = list(dict.fromkeys(line for own in of_each for line in own))
    numbers = {line: number for number, line in enumerate(lines)}
    logger.info("%s lines to translate in %s", f"{len(lines):,}", _counted(len(documents), "document"))
    with _journal(config, lines) as (before, journal):
        written = 0
        for done in _translated(translator, lines, before, journal):
            while written < len(named) and all(numbers[line] < len(done) for line in of_each[written]):
                translations = [done[numbers[line]] for line in of_each[written]]
                _write(named[written], documents[written], translations)
                written += 1


def _translated(
    translator: Translator, lines: Sequence[Line], done: list[str], journal: BinaryIO | None
) -> Iterator[list[str]]:
    """Yields the translations so far, window by window, and once at least."""
    yield done
    with tqdm(total=len(lines), initial=len(done), unit=" lines", disable=None, leave=False) as bar:
        while len(done) < len(lines):
            window = lines[len(done) : len(done) + WINDOW_LINES]
            new = translator.translate(
                [line.text for line in window],
                range(len(done), len(done) + len(window)),
                markup=[line.markup for line in window],
            )
            if journal is not None:
                journal.write("".join(f"{json.dumps(one)}\n" for one in new).encode())
                journal.flush()
            done += new
            bar.update(len(new))
            yield done


def _write(named: Named, document: Document, translations: Sequence[str]) -> None:
    try:
        content, left = document.written(translations)
    except InputError as error:
        raise InputError(f"{named.path}: {error}") from None
    if named.output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    elif named.output.exists() and not named.output.is_file():  # a device or a pipe
        named.output.write_bytes(content)
    else:
        place = resolved(named.output)
        make_folder(place.parent)
        write_atomically(place, content)
    kept = f", {document.translated:,} had a translation already" if document.translated else ""
    logger.info("%s: %s translated%s", named.path, _counted(len(document.passages) - left, "passage"), kept)
    if left:
        reason = "their translation is empty or has other format directives, such as %s, than the text"
        logger.warning("%s: %s left as they are: %s", named.path, _counted(left, "passage"), reason)


@contextmanager
def _journal(config: TranslateConfig, lines: Sequence[Line]) -> Iterator[tuple[list[str], BinaryIO | None]]:
    """Opens the journal of a job: a file with one translation a line, behind a line that tells the job.

    Yields the translations that are in it already, and the file to add others to; none if the output is no file. If the
    job succeeds, the journal is removed.
    """
    if config.output is None or (Path(config.output).exists() and Path(config.output).is_char_device()):
        with nullcontext():
            yield [], None
        return
    place = Path(f"{resolved(config.output)}.partial")
    if place.is_dir():
        raise InputError(f"output={config.output}: its journal would be {place}, which is a folder")
    if not place.parent.is_dir():
        raise InputError(f"output={config.output}: the folder does not exist")
    with place.open("a+b") as journal:
        if not try_lock(journal, place):
            raise RunError(f"output={config.output}: another process is writing {place}")
        done, end = _read_journal(journal, job := _job(config, lines))
        journal.truncate(end)
        if not end:
            journal.write(f"{json.dumps(job)}\n".encode())
        elif done:
            logger.info("%s of %s lines were translated before: going on", f"{len(done):,}", f"{len(lines):,}")
        journal.flush()
        try:
            yield done, journal
        except BaseException:
            if done:
                logger.warning("not finished: the lines translated so far are in %s; the same command goes on", place)
            else:
                place.unlink()
            raise
        place.unlink()


def _read_journal(journal: BinaryIO, job: str) -> tuple[list[str], int]:
    """Returns the translations in a journal, and where the last complete one ends; none if it is another job's."""
    journal.seek(0)
    done: list[str] = []
    end = 0
    for number, line in enumerate(journal):
        try:
            content = json.loads(line)
        except ValueError:
            break
        if not line.endswith(b"\n") or not isinstance(content, str) or (number == 0 and content != job):
            break
        if number:
            done.append(content)
        end += len(line)
    return done, end


def _job(config: TranslateConfig, lines: Sequence[Line]) -> str:
    """Returns a digest of all that decides the translations: lines, settings, and the model's files."""
    digest = hashlib.sha256(repr((lines, config.decoding, config.text, config.precision)).encode())
    for folder in (config.run,) if isinstance(config.run, str) else config.run:
        for name in ("model.yaml", "model.safetensors"):
            with Path(folder, name).open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _in_folder(config: TranslateConfig) -> Iterator[Named]:
    """Yields the documents in a folder and the folders in it, or those that match a pattern, by name."""
    assert config.input is not None
    if config.output is None:
        raise InputError(f"input={config.input} is several files: give output=FOLDER")
    output = Path(config.output)
    if output.exists() and not output.is_dir():
        raise InputError(f"input={config.input} is several files, and output={config.output} is no folder")
    if Path(config.input).is_dir():
        top, pattern = Path(config.input), str(Path(glob.escape(config.input), "**"))
    else:
        before, _, _ = config.input.partition("*")
        top, pattern = Path(before).parent if not before.endswith("/") else Path(before), config.input
        pattern = re.sub(r"[?[]", r"[\g<0>]", pattern)  # only * is a wildcard
    if resolved(output).is_relative_to(resolved(top)) and "**" in pattern:
        raise InputError(f"output={config.output} is inside the input, {config.input}, and would be read the next time")
    files = sorted({Path(file) for file in glob.glob(pattern, recursive=True) if Path(file).is_file()})
    kinds = [(file, format_of(file, config.format)) for file in files]
    unknown = [file for file, kind in kinds if kind == "lines"]
    if len(unknown) == len(files):
        raise InputError(f"input={config.input}: no document among {len(files):,} files. {known_endings()}")
    if unknown:
        logger.warning(
            "%s left out, which are no documents by their names: %s%s",
            _counted(len(unknown), "file"),
            ", ".join(map(str, unknown[:3])),
            " …" if len(unknown) > 3 else "",
        )
    for file, kind in kinds:
        if kind != "lines":
            yield Named(
                file, kind, output / file.relative_to(top).with_suffix(".po" if file.suffix == ".pot" else file.suffix)
            )


def _refuse_settings_for_lines(config: TranslateConfig) -> None:
    advice = "format=lines treats the input as lines"
    if config.reference is not None:
        raise InputError(f"reference={config.reference} is for lines, and the input is a document: {advice}")
    if config.decoding.is_given("n_best") and config.decoding.n_best > 1:
        raise InputError(f"decoding.n_best={config.decoding.n_best} is for lines: a document has one translation")
    if config.decoding.alignments is not None:
        raise InputError(f"decoding.alignments is for lines, and the input is a document: {advice}")
    if config.decoding.markup is not None:
        raise InputError(f"decoding.markup is for lines: what the tags of a document are, its format says; {advice}")


def _refuse_to_overwrite(found: Sequence[Named]) -> None:
    read = {resolved(one.path) for one in found}
    written: dict[Path, Path] = {}
    for one in found:
        if one.output is None:
            continue
        if one.output.suffix in COMPRESSIONS:
            raise InputError(f"{one.output}: documents are written uncompressed: leave out {one.output.suffix}")
        if (place := resolved(one.output)) in read:
            raise InputError(f"output={one.output} would overwrite the input: give output another name")
        if place.is_dir():
            raise InputError(f"output={one.output} is a folder")
        if place in written:
            raise InputError(f"{one.path} and {written[place]} would both be written to {one.output}")
        written[place] = one.path


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
