"""The outputs of a command that translates lines, and the record with which the same command continues them.

The record, ``NAME.partial.json``, has the number of finished lines and the sizes of the outputs up to these. It is
written after each window of lines, and removed once the outputs are complete.
"""

import contextlib
import hashlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from mt.config import TranslateConfig, as_folders
from mt.core.errors import InputError
from mt.core.files import read_file, resolved
from mt.core.json_file import read_json, write_json
from mt.core.output import is_device, partial_file, partial_path
from mt.storage.folders import open_folder

logger = logging.getLogger(__name__)


@dataclass
class LineOutputs:
    """The open outputs: the translations, and if they are asked for the word alignments."""

    streams: list[BinaryIO]
    lines: int
    """The number of finished lines."""
    record: Path | None
    """The path of the record; None if the outputs cannot be continued."""
    job: str
    """The checksum of everything that the outputs depend on."""

    def write(self, rows: Sequence[Sequence[bytes]]) -> None:
        """Append the lines of a window to the outputs, then update the record. A row has one text for each output."""
        for stream, column in zip(self.streams, zip(*rows, strict=True), strict=True):
            stream.writelines(column)
            stream.flush()
            if self.record:
                os.fsync(stream.fileno())
        self.lines += len(rows)
        if self.record:
            sizes = [os.path.getsize(stream.fileno()) for stream in self.streams]
            write_json(self.record, {"job": self.job, "lines": self.lines, "sizes": sizes})


@contextmanager
def line_outputs(config: TranslateConfig) -> Iterator[LineOutputs]:
    """Context manager: open the outputs of a config, and continue those that the same command has left.

    Files appear under their paths only when they are complete. Outputs can be continued if they and the input are
    files.

    Raises:
        RunError: Another process is writing the same output.
    """
    alignments = config.decoding.alignments
    settings = {"output": config.output} | ({"decoding.alignments": alignments} if alignments else {})
    inputs = [Path(path) for path in (config.input, config.reference) if path is not None]
    outputs = [path for path in settings.values() if path and not is_stream(path, sys.stdout) and not is_device(path)]
    resumes = config.input is not None and len(outputs) == len(settings) and all(path.is_file() for path in inputs)
    with ExitStack() as stack:
        streams = [stack.enter_context(_output(name, path, resumes)) for name, path in settings.items()]
        if resumes:
            record = Path(f"{partial_path(outputs[0])}.json")
            stats = [(resolved(path), path.stat().st_size, path.stat().st_mtime_ns) for path in inputs]
            job = job_checksum(config, stats)
            lines = _truncate_to_record(record, job, streams)
            yield LineOutputs(streams, lines, record, job)
        else:
            yield LineOutputs(streams, 0, None, "")
    if resumes:
        record.unlink(missing_ok=True)


def job_checksum(config: TranslateConfig, inputs: object) -> str:
    """Return a checksum of everything that translations depend on: inputs, settings and the files of the models."""
    digest = hashlib.sha256(repr((inputs, config.decoding, config.text, config.precision, config.confidence)).encode())
    if config.text.terms:
        digest.update(read_file(Path(config.text.terms)))
    for folder in as_folders(config.run):
        digest.update(open_folder(folder).checksum().encode())
    return digest.hexdigest()


def is_stream(path: str, stream: TextIO | None) -> bool:
    """Return whether a path, such as ``/dev/stdout``, is the file, device or pipe of a stream."""
    try:
        return stream is not None and os.path.samestat(os.stat(path), os.fstat(stream.fileno()))
    except (OSError, ValueError):  # no such file, or a stream without a file descriptor
        return False


def _truncate_to_record(record: Path, job: str, streams: Sequence[BinaryIO]) -> int:
    """Truncate outputs to the lines that the record of the same job names, and return their number; otherwise to
    nothing."""
    lines, sizes = 0, [0] * len(streams)
    with contextlib.suppress(InputError):  # there is none, or it is damaged
        content = read_json(record, "job", "lines", "sizes")
        begun = [os.path.getsize(stream.fileno()) for stream in streams]
        if content["job"] == job and all(size <= own for size, own in zip(content["sizes"], begun, strict=True)):
            lines, sizes = content["lines"], content["sizes"]
            logger.info("continuing an interrupted job after %s lines", f"{lines:,}")
    if not lines:
        record.unlink(missing_ok=True)
    for stream, size in zip(streams, sizes, strict=True):
        stream.truncate(size)
    return lines


@contextmanager
def _output(name: str, path: str | None, resumes: bool) -> Iterator[BinaryIO]:
    """Open the output path of the setting ``name``: standard output for None, a device or pipe, or a file."""
    if path is None or is_stream(path, sys.stdout):
        yield sys.stdout.buffer
    elif is_device(path):
        with Path(path).open("wb") as output:
            yield output
    else:
        with partial_file(path, name, resumes) as output:
            yield output
