"""Find the documents that a command names, and the files that their translations are written to."""

import glob
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mt.config import TranslateConfig
from mt.core.errors import InputError
from mt.core.files import COMPRESSIONS, resolved
from mt.core.wording import counted
from mt.documents.formats import KNOWN_SUFFIXES, DocumentFormat, detect_format

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DocumentJob:
    """A document to translate."""

    path: Path
    format: DocumentFormat
    output: Path | None
    """The file of its translation. None: standard output."""


def document_jobs(config: TranslateConfig) -> list[DocumentJob]:
    """Return the documents in the input, which may be a file, a folder or a pattern; none if the input is lines.

    Raises:
        InputError: There is no such file, the translations cannot be written to the output, or a setting is
            for lines alone.
    """
    if config.input is None:
        if config.format not in ("auto", "lines"):
            raise InputError(f"format={config.format}: a document is read from a file: give input=FILE")
        return []
    path = Path(config.input)
    output = None if config.output is None else Path(config.output)
    if path.is_dir() or (not path.exists() and "*" in config.input):
        jobs = _jobs_of_folder(config, config.input, output)
    elif not path.exists():
        raise InputError(f"input={path}: no such file")
    elif (name := detect_format(path, config.format)) != "lines":
        jobs = [DocumentJob(path, name, output)]
    elif config.format == "auto" and output and (other := detect_format(output)) != "lines":
        raise InputError(f"output={output} is of the format {other}, but the input, {path}, is not")
    else:
        return []
    _refuse_settings_for_lines(config)
    _refuse_to_overwrite(jobs)
    return jobs


def _jobs_of_folder(config: TranslateConfig, pattern: str, output: Path | None) -> list[DocumentJob]:
    """Return the documents in a folder and its subfolders, or those that match a pattern, sorted by name."""
    if output is None:
        raise InputError(f"input={pattern} is several files: give output=FOLDER")
    if output.exists() and not output.is_dir():
        raise InputError(f"input={pattern} is several files, and output={output} is no folder")
    top = Path(pattern)
    if top.is_dir():
        expression = str(Path(glob.escape(pattern), "**"))
    else:
        top = Path(f"{pattern.partition('*')[0]}x").parent
        expression = re.sub(r"[?[]", r"[\g<0>]", pattern)  # only * is a wildcard
    if resolved(output).is_relative_to(resolved(top)) and "**" in expression:
        raise InputError(f"output={output} is inside the input, {pattern}, and would be read the next time")
    files = sorted({Path(file) for file in glob.glob(expression, recursive=True) if Path(file).is_file()})
    formats = {file: detect_format(file, config.format) for file in files}
    unknown = [str(file) for file, name in formats.items() if name == "lines"]
    if len(unknown) == len(files):
        raise InputError(f"input={pattern}: no document among {len(files):,} files. {KNOWN_SUFFIXES}")
    if unknown:
        shown = ", ".join(unknown[:3]) + (" …" if len(unknown) > 3 else "")
        logger.warning("%s left out, which are no documents by their names: %s", counted(len(unknown), "file"), shown)
    return [
        DocumentJob(
            file, name, output / file.relative_to(top).with_suffix(".po" if file.suffix == ".pot" else file.suffix)
        )
        for file, name in formats.items()
        if name != "lines"
    ]


def _refuse_settings_for_lines(config: TranslateConfig) -> None:
    decoding = config.decoding
    advice = "format=lines treats the input as lines"
    if config.reference is not None:
        raise InputError(f"reference={config.reference} is for lines, and the input is a document: {advice}")
    if decoding.differs_from_default("n_best") and decoding.n_best > 1:
        raise InputError(f"decoding.n_best={decoding.n_best} is for lines: a document has one translation")
    if decoding.alignments is not None:
        raise InputError(f"decoding.alignments is for lines, and the input is a document: {advice}")
    if decoding.markup is not None:
        raise InputError(f"decoding.markup is for lines: the format of a document says what its tags are; {advice}")


def _refuse_to_overwrite(jobs: Sequence[DocumentJob]) -> None:
    inputs = {resolved(job.path) for job in jobs}
    outputs: dict[Path, Path] = {}
    for job in jobs:
        if job.output is None:
            continue
        if job.output.suffix in COMPRESSIONS:
            raise InputError(f"{job.output}: documents are written uncompressed: leave out {job.output.suffix}")
        output = resolved(job.output)
        if output in inputs:
            raise InputError(f"output={job.output} would overwrite the input: give output another name")
        if output.is_dir():
            raise InputError(f"output={job.output} is a folder")
        if output in outputs:
            raise InputError(f"{job.path} and {outputs[output]} would both be written to {job.output}")
        outputs[output] = job.path
