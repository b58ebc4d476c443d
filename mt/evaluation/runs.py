"""Reads finished runs from their run folders, for comparison and robustness."""

import json
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from pydantic import FiniteFloat

from mt.config import TrainConfig
from mt.core.errors import InputError, corrupted_file
from mt.core.files import read_lines
from mt.core.language import Direction
from mt.storage.folders import refuse_unsafe_folder
from mt.storage.run_folder import (
    DIRECTIONS,
    METRICS_LOG,
    RESULTS,
    config_differences,
    read_config,
    read_results,
    read_scored,
    refuse_changed_files,
)
from mt.storage.validation import StrictRecord
from mt.training.provenance import read_provenance


class _Validation(StrictRecord):
    """The schema of the line of a validation in metrics.jsonl, with the values that a report needs. Other values are
    kept."""

    step: FiniteFloat
    bleu: FiniteFloat | None
    seconds: FiniteFloat
    target_tokens: FiniteFloat


@dataclass(frozen=True)
class Run:
    """The content of one run folder. ``Output.run`` holds it."""

    folder: Path
    config: TrainConfig
    results: dict
    """The content of results.json."""
    provenance: dict
    """The content of provenance.json."""
    validations: list[dict]
    """The records of metrics.jsonl that hold validation scores, oldest first."""
    scored: dict[str, list[str]] = field(default_factory=dict)
    """Each of source, reference and hypothesis → its lines for the test set."""

    def towards(self, direction: Direction) -> "Run":
        """Return the part of one of several directions: its lines, and its scores in place of the means."""
        parts = self.results[DIRECTIONS]
        start = sum(part["test_pairs"] for part in islice(parts.values(), list(parts).index(direction.key)))
        lines = slice(start, start + parts[direction.key]["test_pairs"])
        return replace(
            self,
            results=self.results | parts[direction.key],
            validations=[line | {"bleu": line[f"{direction.key}.bleu"]} for line in self.validations],
            scored={name: of_all[lines] for name, of_all in self.scored.items()},
        )


def read_run(folder: Path) -> Run:
    """Read the run folder of a finished run.

    Raises:
        InputError: The run is not finished, or one of its files is missing or corrupted.
    """
    refuse_unsafe_folder(folder)
    if not (folder / RESULTS).is_file():
        read_config(folder)  # raises a clearer error if the folder is not a run folder
        raise InputError(f"{folder} has no test scores yet; finish its training by running its train command again")
    results = read_results(folder)
    refuse_changed_files(folder, results)
    return Run(
        folder, read_config(folder), results, read_provenance(folder), learning_curve(folder), read_scored(folder)
    )


def learning_curve(run: str | Path, split: str = "valid") -> list[dict]:
    """Return the records of a run's metrics.jsonl, oldest first. The run need not be finished.

    Args:
        run: The run folder.
        split: ``train`` for training loss and speed, ``valid`` for validations, ``test`` for the final scores.

    Raises:
        InputError: The file is missing or corrupted.
    """
    path, records = Path(run) / METRICS_LOG, []
    schema = _Validation if split == "valid" else StrictRecord
    for number, line in enumerate(read_lines(path), 1):
        try:
            record = json.loads(line)
            if record["split"] == split:
                records.append(schema(**record).model_dump())
        except (ValueError, RecursionError, TypeError, KeyError):
            raise corrupted_file(path, f"line {number}") from None
    return records


def refuse_different_configs(first: Run, other: Run) -> None:
    """Raise InputError unless two runs of one system have different seeds, and otherwise the same settings and the same
    validation and test sets."""
    differing = config_differences(first.config, other.config)
    if "seed" not in differing:
        raise InputError(
            f"{other.folder} has the same seed as {first.folder}, {other.config.seed}; leave one of the two runs out"
        )
    hint = "the runs of one system differ in their seed alone, so give these two as two systems"
    if keys := [key for key in differing if key != "seed"]:
        raise InputError(f"{other.folder} and {first.folder} differ in {', '.join(keys)}; {hint}")
    # The training pairs may differ: which of them are too long can depend on the tokenizer, and for large corpora the
    # tokenizer depends on the seed.
    data = first.provenance["data"], other.provenance["data"]
    if changed := [split for split in ("valid", "test") if data[0][split] != data[1][split]]:
        raise InputError(f"{other.folder} and {first.folder} differ in their {' and '.join(changed)} pairs; {hint}")
