"""The table of pairs and the progress of each pass, with which a stopped command resumes.

Pairs are written to ``NAME.jsonl.partial``, a window of lines at a time. Then ``NAME.provenance.json`` records how many
lines are done and how many bytes they take. After a kill, the bytes behind these are cut off, so the finished table is
the same as without one.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import TypeAdapter, ValidationError

from mt.core.errors import InputError
from mt.core.json_file import read_json, write_json
from mt.core.output import partial_file, partial_path
from mt.core.wording import format_value
from mt.training.provenance import code_revision

MAX_EXAMPLES = 10
"""Maximum number of recorded examples of each reason to leave a line out."""


Conditions = dict[str, str | int | float | bool | None]
"""Everything that determines the content of a table."""


@dataclass
class PassProgress:
    """The progress of one pass."""

    lines: int = 0
    pairs: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    """The number of lines without a pair, for each reason."""
    examples: dict[str, list[dict[str, str | int]]] = field(default_factory=dict)
    """The first of them."""

    def leave_out(self, reason: str, number: int, line: str, translation: str) -> None:
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
    passes: list[PassProgress]
    resolved_settings: list[dict[str, Any]] = field(default_factory=list)
    """The resolved settings of each pass."""
    size: int = 0
    """The size of the finished part of the table, in bytes."""
    finished: bool = False


@dataclass(frozen=True)
class Table:
    """A table that is being written."""

    output: Path
    record: TableRecord
    """``write`` saves changes."""
    stream: BinaryIO

    def write(self, rows: Sequence[bytes]) -> None:
        """Write rows, and then save the record."""
        content = b"".join(rows)
        self.stream.write(content)
        self.stream.flush()
        os.fsync(self.stream.fileno())
        self.record.size += len(content)
        write_json(record_path(self.output), asdict(self.record))

    def finish(self) -> None:
        """Record that the table is complete.

        Raises:
            InputError: There is not one pair in it.
        """
        if not self.record.size:
            lines = sum(done.lines for done in self.record.passes)
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out(self.record.passes).items())
            raise InputError(f"of {lines:,} lines none gave a pair that can be used: {reasons}")
        self.record.finished = True
        self.write([])


def left_out(passes: Sequence[PassProgress]) -> dict[str, int]:
    """Return the number of lines without a pair over all passes, for each reason."""
    return dict(sum((Counter(done.left_out) for done in passes), Counter()))


def record_path(output: Path) -> Path:
    return output.with_suffix(".provenance.json")


def finished_passes(output: Path, made_with: Conditions) -> list[PassProgress] | None:
    """Return the passes of a finished table, or None if it is unfinished or does not exist.

    Raises:
        InputError: A table of this name was made, or begun, with other settings, or has no record.
    """
    path = record_path(output)
    for each in (output, path):
        if each.is_dir():
            raise InputError(f"{each} is a folder")
    if not path.exists():
        if output.exists():
            raise InputError(f"output={output} exists already: give output another name")
        return None
    record = _read(path)
    if output.exists() or partial_path(output).exists():
        _refuse_other_settings(output, record.made_with, made_with)
    if not output.exists():
        return None
    if not record.finished or output.stat().st_size != record.size:
        raise InputError(f"output={output} is not the table that {path} tells of: give output another name")
    return record.passes


@contextmanager
def open_table(output: Path, made_with: Conditions, passes: int) -> Iterator[Table]:
    """Begin an unfinished table, or resume it.

    Args:
        output: The finished table's path.
        made_with: Everything that determines its content.
        passes: The number of passes.

    Raises:
        RunError: Another process is writing it.
    """
    path = record_path(output)
    with partial_file(output) as stream:
        begun = os.path.getsize(stream.fileno())
        if not begun:
            path.unlink(missing_ok=True)  # that of a table which somebody has removed
        new = TableRecord(made_with, code_revision(), [PassProgress() for _ in range(passes)])
        record = _read(path) if path.exists() else new
        if begun < record.size:
            raise InputError(
                f"{partial_path(output)}: damaged: it is shorter than {path} says. Remove both to begin anew"
            )
        stream.truncate(record.size)
        try:
            yield Table(output, record, stream)
        except BaseException:
            if not record.size:
                path.unlink(missing_ok=True)
            raise


def _read(path: Path) -> TableRecord:
    try:
        return TypeAdapter(TableRecord).validate_python(read_json(path))
    except ValidationError:
        raise InputError(f"{path}: damaged or of another version: remove it to begin anew") from None


def _refuse_other_settings(output: Path, before: Conditions, now: Conditions) -> None:
    if differing := [key for key in dict.fromkeys([*before, *now]) if before.get(key) != now.get(key)]:
        lines = "\n".join(
            f"  {key}: {format_value(before.get(key))} then, now {format_value(now.get(key))}" for key in differing
        )
        raise InputError(
            f"output={output} was made, or begun, in another way:\n{lines}\ngive output another name, or remove it and "
            f"{record_path(output)}"
        )
