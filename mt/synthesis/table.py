"""The provenance of a table of synthetic pairs, NAME.provenance.json: its model and settings, and the counts
of skipped lines."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mt.core.errors import InputError, damaged_file
from mt.core.json_file import read_json, write_json
from mt.core.output import record_path, recorded_job
from mt.core.wording import format_value
from mt.training.provenance import code_revision

Conditions = dict[str, str | int | float | bool | None]
"""Everything that determines the content of a table: settings, checksums of the models and of the lines, by name."""


@dataclass
class TableProgress:
    """The progress of a table."""

    lines: int = 0
    """The number of translated lines."""
    pairs: int = 0
    """The number of pairs that were written."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Reason → number of lines that are left out."""


def provenance_path(output: Path) -> Path:
    """Return the path of the provenance of a table, NAME.provenance.json."""
    return output.with_suffix(".provenance.json")


def write_provenance(
    output: Path, size: int, made_with: Conditions, done: TableProgress, settings: dict[str, Any]
) -> None:
    """Write the provenance of a table.

    Args:
        output: The path of the table.
        size: Its size in bytes.
        made_with: Its conditions.
        done: Its progress.
        settings: The decoding settings, engine, device and precision.

    Raises:
        InputError: The table has no pairs.
    """
    if not size:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in done.left_out.items())
        raise InputError(
            f"none of {done.lines:,} lines gave a pair; check that the input fits the run and "
            f"that its training is finished: {reasons}"
        )
    provenance = {
        "made_with": made_with,
        "code_revision": code_revision(),
        "passes": [asdict(done)],
        "resolved_settings": [settings],
        "size": size,
    }
    write_json(provenance_path(output), provenance)


def finished_progress(output: Path, made_with: Conditions) -> TableProgress | None:
    """Return the progress of a finished table, or None if it is unfinished or does not exist.

    Args:
        output: The path of the finished table.
        made_with: The conditions that a finished or unfinished table must have been made with.

    Raises:
        InputError: A table of this name was made under other conditions, has no provenance, or differs from it.
    """
    path = provenance_path(output)
    remedy = f"take another name, or delete {output} and {path}"
    provenance = read_json(path, "made_with", "passes", "size", remedy=remedy) if output.exists() else {}
    before = provenance.get("made_with", recorded_job(output))
    before = before if isinstance(before, dict) else made_with
    if lines := [
        f"  {key}: {format_value(before.get(key))} then, now {format_value(made_with.get(key))}"
        for key in before | made_with
        if before.get(key) != made_with.get(key)  # a setting that is not recorded is null
    ]:
        message = f"output={output} was made, or begun, with other settings or files:"
        raise InputError("\n".join([message, *lines, remedy]))
    if not provenance:
        return None
    record_path(output).unlink(missing_ok=True)  # left by a process that was killed at the very end
    if output.stat().st_size != provenance["size"]:
        raise damaged_file(path, f"it does not describe {output}", remedy)
    (done,) = provenance["passes"]
    return TableProgress(done["lines"], done["pairs"], done["left_out"])
