"""Writes the table of synthetic pairs, with a record for resuming a stopped command.

Pairs are written to ``NAME.jsonl.partial``, a window of lines at a time. After each window, the record
``NAME.provenance.json`` gets the number of translated lines and the size of the table. A command that resumes after a
kill truncates the table to this size, so the finished table is the same as without the kill.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import TypeAdapter, ValidationError

from mt.core.errors import InputError, damaged_file
from mt.core.json_file import read_json, write_json
from mt.core.output import partial_file, partial_path
from mt.core.wording import format_value
from mt.training.provenance import code_revision

MAX_EXAMPLES = 10
"""Maximum number of recorded examples of each reason to leave a line out."""
DELETE_TO_BEGIN_ANEW = "delete it, and the table that it describes, to begin anew"

Conditions = dict[str, str | int | float | bool | None]
"""Everything that determines the content of a table: settings, checksums of the models and of the lines, by name."""


@dataclass
class PassProgress:
    """The progress of one pass of translation, as the record has it."""

    lines: int = 0
    """The number of translated lines."""
    pairs: int = 0
    """The number of pairs that were written."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Reason → number of lines that are left out."""
    examples: dict[str, list[dict[str, str | int]]] = field(default_factory=dict)
    """Reason → number, text and translation of the first MAX_EXAMPLES lines that are left out."""

    def leave_out(self, reason: str, number: int, line: str, translation: str) -> None:
        """Count a line that is left out, and keep it among the examples. ``number`` is its number from 1."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < MAX_EXAMPLES:
            text, readable = (text.encode("utf-8", "replace").decode() for text in (line, translation))
            shown.append({"line": number, "text": text, "translation": readable})


@dataclass
class TableRecord:
    """The content of NAME.provenance.json."""

    made_with: Conditions
    code_revision: str | None
    """The commit of the code that began the table; None if it is not known."""
    passes: list[PassProgress]
    resolved_settings: list[dict[str, Any]] = field(default_factory=list)
    """The decoding settings, engine, device and precision of each pass."""
    size: int = 0
    """The size of the table in bytes, up to the last complete window."""
    finished: bool = False


@dataclass(frozen=True)
class Table:
    """A table that is being written, and its record. ``open_table`` makes it."""

    output: Path
    """The path of the finished table."""
    record: TableRecord
    """Callers change the progress of its passes; ``write`` saves it."""
    stream: BinaryIO
    """The partial file."""

    def write(self, rows: Sequence[bytes]) -> None:
        """Append rows to the table, add their size to the record, and save the record."""
        content = b"".join(rows)
        self.stream.write(content)
        self.stream.flush()
        os.fsync(self.stream.fileno())
        self.record.size += len(content)
        write_json(record_path(self.output), asdict(self.record))

    def finish(self) -> None:
        """Record that the table is complete.

        Raises:
            InputError: The table has no pairs.
        """
        if not self.record.size:
            lines = sum(done.lines for done in self.record.passes)
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out(self.record.passes).items())
            raise InputError(
                f"none of {lines:,} lines gave a pair; check that the input fits the run and that its training is "
                f"finished: {reasons}"
            )
        self.record.finished = True
        self.write([])


def left_out(passes: Sequence[PassProgress]) -> dict[str, int]:
    """Return reason → number of lines that are left out, over all passes."""
    return dict(sum((Counter(done.left_out) for done in passes), Counter()))


def record_path(output: Path) -> Path:
    """Return the path of the record of a table, NAME.provenance.json."""
    return output.with_suffix(".provenance.json")


def finished_passes(output: Path, made_with: Conditions) -> list[PassProgress] | None:
    """Return the progress of the passes of a finished table, or None if it is unfinished or does not exist.

    Args:
        output: The path of the finished table.
        made_with: The conditions that a finished or unfinished table must have been made with.

    Raises:
        InputError: A table of this name was made under other conditions, has no record, or differs from it.
    """
    path = record_path(output)
    for file in (output, path):
        if file.is_dir():
            raise InputError(f"output={output}: {file} is a folder; take another name")
    if not path.exists():
        if output.exists():
            raise InputError(f"output={output} exists already; take another name")
        return None
    record = _read(path)
    if output.exists() or partial_path(output).exists():
        _refuse_other_settings(output, record.made_with, made_with)
    if not output.exists():
        return None
    if not record.finished or output.stat().st_size != record.size:
        raise InputError(f"output={output} is not the table that {path} describes; take another name")
    return record.passes


@contextmanager
def open_table(output: Path, made_with: Conditions, passes: int) -> Iterator[Table]:
    """Context manager: begin a table, or resume an unfinished one. At the end of the block, the table gets its name.

    Args:
        output: The path of the finished table.
        made_with: The conditions, which a new record gets.
        passes: The number of passes.

    Raises:
        InputError: The unfinished table or its record is damaged.
        RunError: Another process is writing the table.
    """
    path = record_path(output)
    with partial_file(output) as stream:
        begun = os.path.getsize(stream.fileno())
        if not begun:
            path.unlink(missing_ok=True)  # the record of a table that somebody has removed
        new = TableRecord(made_with, code_revision(), [PassProgress() for _ in range(passes)])
        record = _read(path) if path.exists() else new
        if begun < record.size:
            raise damaged_file(partial_path(output), f"shorter than {path} says", "delete both files to begin anew")
        stream.truncate(record.size)
        try:
            yield Table(output, record, stream)
        except BaseException:
            if not record.size:
                path.unlink(missing_ok=True)
            raise


def _read(path: Path) -> TableRecord:
    try:
        return TypeAdapter(TableRecord).validate_python(read_json(path, remedy=DELETE_TO_BEGIN_ANEW))
    except ValidationError:
        raise damaged_file(path, "wrong or missing values", DELETE_TO_BEGIN_ANEW) from None


def _refuse_other_settings(output: Path, before: Conditions, now: Conditions) -> None:
    if differing := [key for key in dict.fromkeys([*before, *now]) if before.get(key) != now.get(key)]:
        lines = "\n".join(
            f"  {key}: {format_value(before.get(key))} then, now {format_value(now.get(key))}" for key in differing
        )
        raise InputError(
            f"output={output} was made, or begun, with other settings or files:\n{lines}\ntake another name, or delete "
            f"the table and {record_path(output)}"
        )
