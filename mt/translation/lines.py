"""Translation of text line by line, from a file or standard input, in bounded memory."""

import hashlib
import json
import logging
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from mt.config import TranslateConfig, as_folders
from mt.core.errors import InputError, visible
from mt.core.files import read_file, read_lines, resolved
from mt.core.output import refuse_to_overwrite, resumable_outputs
from mt.storage.folders import open_folder
from mt.translation.engine import AfterBatch
from mt.translation.results import LINE_BREAKS, Alignment, ScoredText
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)

WINDOW_LINES = 4096
"""The maximum number of lines of a window, whose lines are translated together. It limits the memory."""
WINDOW_CHARACTERS = 2_000_000
"""The number of characters at which a window ends."""


def translate_lines(config: TranslateConfig, translator: Translator, lines: Iterable[bytes]) -> None:
    """Translate the lines of the input, and write one line of output for each.

    After an interruption, the same command resumes if the input and the outputs are files.

    Raises:
        InputError: The reference and the input have different numbers of lines.
        RunError: Another process is writing the same output.
    """
    # A model can write any byte, so control characters are escaped on a terminal.
    escape = visible if config.output is None and sys.stdout.isatty() else str
    reference = config.reference
    inputs = [Path(path) for path in (config.input, reference) if path is not None]
    job = None
    if config.input and all(path.is_file() for path in inputs):
        stats = [(resolved(path), path.stat().st_size, path.stat().st_mtime_ns) for path in inputs]
        job = partial(job_checksum, config, stats)
    paths = [config.output, *filter(None, [config.decoding.alignments])]
    with (
        resumable_outputs(paths, job) as outputs,
        tqdm(unit=" lines", disable=None, leave=False, initial=outputs.lines) as bar,
    ):
        decoded = islice(decode_lines(lines, config.input or "the input"), outputs.lines, None)
        references = None
        if reference is not None:
            references = islice(decode_lines(read_lines(Path(reference)), reference), outputs.lines, None)
        for window in windows(decoded, one_by_one=config.input is None and sys.stdin.isatty()):
            progress = progress_display(window, bar)
            translated = translate_window(translator, window, outputs.lines, references, config, progress)
            rows = [(escape(line), _pharaoh_format(alignment)) for line, alignment in translated]
            columns = ["".join(f"{text}\n" for text in column).encode() for column in zip(*rows, strict=True)]
            outputs.append(len(rows), columns[: len(paths)])
            bar.set_postfix_str("", refresh=False)
            bar.update(len(window))
        if references is not None and next(references, None) is not None:
            raise InputError(
                f"reference={reference} has more lines than the input's {outputs.lines}: "
                "give one reference line for each input line"
            )
    if outputs.lines == 0:
        logger.warning("the input has no lines: nothing was translated; check input=")


def job_checksum(config: TranslateConfig, inputs: object) -> str:
    """Return a checksum of the inputs, the settings and the models, on which the translations depend."""
    settings = config.asked, config.decoding, config.text, config.precision, config.confidence
    digest = hashlib.sha256(repr((inputs, *settings)).encode())
    if config.text.terms:
        digest.update(read_file(Path(config.text.terms)))
    for folder in as_folders(config.run):
        digest.update(open_folder(folder).checksum().encode())
    return digest.hexdigest()


def windows(lines: Iterable[str], one_by_one: bool = False) -> Iterator[list[str]]:
    """Group a stream of lines into windows of limited size, or into single lines, as for a person at a terminal."""
    window: list[str] = []
    characters = 0
    for line in lines:
        window.append(line)
        characters += len(line)
        if one_by_one or len(window) == WINDOW_LINES or characters >= WINDOW_CHARACTERS:
            yield window
            window, characters = [], 0
    if window:
        yield window


def progress_display(window: list[str], bar: tqdm) -> AfterBatch:
    """Return a function that shows the share of finished batches of a window on a progress bar."""
    start = time.monotonic()

    def show(done: int, total: int) -> None:
        seconds = (time.monotonic() - start) * (total / done - 1)
        bar.set_postfix_str(f"next {len(window):,}: {done / total:.0%}, {seconds:,.0f} s to go")

    return show


def check_line_files(config: TranslateConfig) -> None:
    """Raise InputError if the reference or an output cannot be used. This is called before any translation."""
    reference = config.reference
    if reference is not None and (not Path(reference).exists() or Path(reference).is_dir()):
        raise InputError(f"reference={reference}: no such file; check the path")
    outputs = {"output": config.output, "decoding.alignments": config.decoding.alignments}
    refuse_to_overwrite(outputs.items(), [config.input, reference])
    # Regular files can be read twice, so their lines are counted before any translation.
    paths = [Path(path) for path in (config.input, reference) if path is not None]
    if len(paths) == 2 and all(path.is_file() and not path.is_relative_to("/dev") for path in paths):
        lines, references = (sum(1 for _ in read_lines(path)) for path in paths)
        if lines != references:
            raise InputError(
                f"reference={reference} has {references:,} lines, but the input {lines:,}: "
                "give one reference line for each input line"
            )
    for key in ("retranslate", "skip_keys"):
        if getattr(config, key):
            raise InputError(f"{key} is for documents, but the input is lines of text: leave it out")


def translate_window(
    translator: Translator,
    window: list[str],
    first_line: int,
    references: Iterator[str] | None,
    config: TranslateConfig,
    after_batch: AfterBatch | None = None,
) -> list[tuple[str, Alignment | None]]:
    """Translate or score a window of input lines, and return each output line with its word alignment.

    Args:
        translator: The translator.
        window: The input lines.
        first_line: The number of the first input line, counted from 0.
        references: The remaining reference lines, which are scored; None: the lines are translated.
        config: The settings. Alignments are None unless ``decoding.alignments`` is set.
        after_batch: See ``Translator.hypotheses``.

    Raises:
        InputError: There are fewer reference lines than input lines.
    """
    aligned = config.decoding.alignments is not None
    if references is not None:
        targets = list(islice(references, len(window)))
        if len(targets) < len(window):
            raise InputError(
                f"reference={config.reference} has {first_line + len(targets)} lines, fewer than the input: "
                "give one reference line for each input line"
            )
        results = [[text] for text in translator.score(window, targets, aligned)]
    else:
        numbers = range(first_line, first_line + len(window))
        results = translator.hypotheses(window, numbers, after_batch, aligned, confident=config.confidence)
        pairs = enumerate(zip(window, results, strict=True), first_line + 1)
        if empty := [number for number, (line, best) in pairs if line.strip() and not best[0].text]:
            others = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
            logger.warning("line %d%s: the translation is empty; check the source text", empty[0], others)
    in_json = references is not None or translator.config.n_best > 1 or config.confidence
    return [
        (json_line(line, texts, config.confidence) if in_json else texts[0].text, texts[0].alignment)
        for line, texts in zip(window, results, strict=True)
    ]


def _pharaoh_format(alignment: Alignment | None) -> str:
    """Return an alignment as a line of Pharaoh's format, such as ``0-0 1-2``."""
    return " ".join(f"{source}-{target}" for source, target in alignment or ())


def json_line(source: str, hypotheses: list[ScoredText], confident: bool = False) -> str:
    """Return the translations of a line as a JSON object in one line, with the confidence of the best if requested."""
    records = [
        {"text": text.text, "score": text.score}
        | ({} if text.alignment is None else {"alignment": _pharaoh_format(text.alignment)})
        for text in hypotheses
    ]
    confidence = {"confidence": hypotheses[0].confidence} if confident else {}
    line = json.dumps({"source": source, **confidence, "hypotheses": records}, ensure_ascii=False)
    return LINE_BREAKS.sub(lambda match: "".join(f"\\u{ord(character):04x}" for character in match.group()), line)


def decode_lines(lines: Iterable[bytes], name: str) -> Iterator[str]:
    """Decode lines of UTF-8. ``name`` is the name of the input in warnings.

    Invalid bytes become U+FFFD, with a warning. A CR at the end of a line and a byte-order mark at the start of the
    first line are removed.
    """
    invalid_lines = 0
    for number, line in enumerate(lines):
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        text = content.decode("utf-8", errors="replace")
        if number == 0 and b"\r" in content:
            logger.warning("%s has CR inside line 1, but only LF ends a line; convert it: tr '\\r' '\\n'", name)
        if "\ufffd" in text and text.encode() != content:
            invalid_lines += 1
            if invalid_lines == 1:
                logger.warning(
                    "line %d of %s is not UTF-8: invalid bytes are replaced by \N{REPLACEMENT CHARACTER}; convert the "
                    "file to UTF-8",
                    number + 1,
                    name,
                )
        yield text.removeprefix("\ufeff") if number == 0 else text
    if invalid_lines > 1:
        logger.warning("%s: %d lines were not UTF-8; convert the file to UTF-8", name, invalid_lines)
