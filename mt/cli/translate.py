"""``python translate.py``: translates a file or standard input to a file or standard output, in bounded memory."""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TextIO

import torch
from tqdm import tqdm

from mt.config import TranslateConfig
from mt.core.device import limit_kernel_caches, slow_precision_warning
from mt.core.errors import InputError
from mt.core.files import read_lines, resolved
from mt.core.output import is_device, partial_file, partial_path
from mt.core.terminal import visible
from mt.documents.jobs import document_jobs
from mt.documents.translation import translate_documents
from mt.translation.results import LINE_BREAKS, Alignment, ScoredText, Statistics
from mt.translation.translator import Translator, windows

logger = logging.getLogger(__name__)


def translate(config: TranslateConfig) -> None:
    """Writes one line of output for each line of input, in order, or the documents that the input names.

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
        _refuse_to_overwrite(config)
        _refuse_other_counts(config)
        if config.retranslate:
            raise InputError("retranslate=true is for documents, and the input is lines")
    translator = Translator.load(config.run, config.decoding, config.device, config.precision, config.text)
    if doubt := slow_precision_warning(config.precision, translator.device):
        logger.warning("%s", doubt)
    if documents:
        translate_documents(config, documents, translator)
    else:
        _translate_lines(config, translator)
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


def _translate_lines(config: TranslateConfig, translator: Translator) -> None:
    shown = visible if config.output is None and sys.stdout.isatty() else str  # a model can write any byte
    if config.input is None:
        lines = _text(sys.stdin.buffer, "the input")
    else:
        lines = _text(read_lines(Path(config.input)), config.input)
    references = None if config.reference is None else _text(read_lines(Path(config.reference)), config.reference)
    alignments = config.decoding.alignments
    a_person_types = config.input is None and sys.stdin.isatty()
    with (
        _output("output", config.output) as output,
        nullcontext() if alignments is None else _output("decoding.alignments", alignments) as links,
        tqdm(unit=" lines", disable=None, leave=False) as bar,
    ):
        written = 0
        for window in windows(lines, one_by_one=a_person_types):
            progress = _progress_of(window, bar)
            for line, alignment in _translated(translator, window, written, references, config, progress):
                output.write(shown(line).encode() + b"\n")
                if links is not None:
                    links.write(_in_pharaohs_format(alignment).encode() + b"\n")
            output.flush()
            if links is not None:
                links.flush()
            written += len(window)
            bar.set_postfix_str("", refresh=False)
            bar.update(len(window))
        if references is not None and next(references, None) is not None:
            raise InputError(f"reference={config.reference} has more lines than the input's {written}")
    if written == 0:
        logger.warning("the input has no lines")


def _progress_of(window: list[str], bar: tqdm) -> Callable[[int, int], None]:
    """Return a function that shows on a progress bar how many of the batches of a window are done."""
    began = time.monotonic()

    def show(done: int, total: int) -> None:
        seconds = (time.monotonic() - began) * (total / done - 1)
        bar.set_postfix_str(f"next {len(window):,}: {done / total:.0%}, {seconds:,.0f} s to go")

    return show


def _refuse_to_overwrite(config: TranslateConfig) -> None:
    """Raises InputError if what is written would take the place of a folder, of what is read, or of each other."""
    written = {"output": config.output, "decoding.alignments": config.decoding.alignments}
    taken = {
        resolved(path): f"the {name}, {path}"
        for name, path in (("input", config.input), ("reference", config.reference))
        if path is not None
    }
    for name, path in written.items():
        if path is None:
            continue
        if resolved(path).is_dir():
            raise InputError(f"{name}={path} is a folder")
        if config.input is None and _is_stream(str(partial_path(path)), sys.stdin):
            raise InputError(f"{name}={path} would overwrite the input, {partial_path(path)}")
        if name != "output" and config.output is None and _is_stream(path, sys.stdout):
            raise InputError(f"{name}={path} is the standard output, which has the translations: give output=FILE")
        for place in (resolved(path), partial_path(path)):
            if place in taken:
                raise InputError(f"{name}={path} would overwrite {taken[place]}")
        if not is_device(path):
            taken |= dict.fromkeys((resolved(path), partial_path(path)), f"{name}={path}")


def _refuse_other_counts(config: TranslateConfig) -> None:
    """Raises InputError if the input and the reference have different numbers of lines.

    This is checked before any work, but only if both are regular files, which can be read twice.
    """
    paths = [Path(path) for path in (config.input, config.reference) if path is not None]
    if len(paths) == 2 and all(path.is_file() and not path.is_relative_to("/dev") for path in paths):
        lines, references = (sum(1 for _ in read_lines(path)) for path in paths)
        if lines != references:
            raise InputError(f"reference={config.reference} has {references:,} lines, but the input {lines:,}")


def _translated(
    translator: Translator,
    window: list[str],
    first_line: int,
    references: Iterator[str] | None,
    config: TranslateConfig,
    after_batch: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[str, Alignment | None]]:
    """Yields the output lines for one window of input lines, each with its word alignment, if that is wanted."""
    aligned = config.decoding.alignments is not None
    if references is not None:
        expected = list(islice(references, len(window)))
        if len(expected) < len(window):
            raise InputError(
                f"reference={config.reference} has {first_line + len(expected)} lines, fewer than the input"
            )
        scored = translator.score(window, expected, aligned)
        yield from ((_as_json(line, [one]), one.alignment) for line, one in zip(window, scored, strict=True))
        return
    numbers = range(first_line, first_line + len(window))
    hypotheses = translator.hypotheses(window, numbers, after_batch, aligned)
    found = enumerate(zip(window, hypotheses, strict=True), first_line + 1)
    if empty := [number for number, (line, best) in found if line.strip() and not best[0].text]:
        others = f" and {len(empty) - 1} of those after it" if len(empty) > 1 else ""
        logger.warning("line %d%s: not blank, but the translation is empty", empty[0], others)
    if translator.config.n_best > 1:
        for line, several in zip(window, hypotheses, strict=True):
            yield _as_json(line, several), several[0].alignment
    else:
        yield from ((best[0].text, best[0].alignment) for best in hypotheses)


def _in_pharaohs_format(alignment: Alignment | None) -> str:
    return " ".join(f"{source}-{target}" for source, target in alignment or ())


def _as_json(source: str, hypotheses: list[ScoredText]) -> str:
    found = [
        {"text": one.text, "score": one.score}
        | ({} if one.alignment is None else {"alignment": _in_pharaohs_format(one.alignment)})
        for one in hypotheses
    ]
    line = json.dumps({"source": source, "hypotheses": found}, ensure_ascii=False)
    return LINE_BREAKS.sub(lambda found: "".join(f"\\u{ord(character):04x}" for character in found.group()), line)


def _text(lines: Iterable[bytes], name: str) -> Iterator[str]:
    """Decodes lines of UTF-8.

    What is not UTF-8 becomes U+FFFD, with a warning that names ``name``. A CR at the end of a line and a byte-order
    mark at the start of the first are dropped.
    """
    broken = 0
    for number, line in enumerate(lines):
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        text = content.decode("utf-8", errors="replace")
        if "\ufffd" in text and text.encode() != content:
            broken += 1
            if broken == 1:
                logger.warning(
                    "line %d of %s is not UTF-8: invalid bytes are replaced by \N{REPLACEMENT CHARACTER}",
                    number + 1,
                    name,
                )
        yield text.removeprefix("\ufeff") if number == 0 else text
    if broken > 1:
        logger.warning("%s: %d lines were not UTF-8", name, broken)


def _is_stream(path: str, stream: TextIO | None) -> bool:
    """Returns whether a path, such as ``/dev/stdout``, is the very file, device or pipe that ``stream`` stands for."""
    try:
        return stream is not None and os.path.samestat(os.stat(path), os.fstat(stream.fileno()))
    except (OSError, ValueError):  # no such file, or a stream without a file descriptor
        return False


@contextmanager
def _output(name: str, path: str | None) -> Iterator[BinaryIO]:
    """Open the output that a setting names: standard output, a device or pipe, or a file that is complete or absent."""
    if path is None or _is_stream(path, sys.stdout):
        yield sys.stdout.buffer
    elif is_device(path):
        with Path(path).open("wb") as output:
            yield output
    else:
        with partial_file(path, name, resumes=False) as output:
            yield output
