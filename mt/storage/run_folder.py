"""The files of a run folder: its config, and the test set as it was scored."""

import hashlib
import os
from pathlib import Path
from typing import Any

import yaml

from mt.config import Section, TrainConfig
from mt.config.resolved import flat_values
from mt.core.errors import InputError, damaged_file
from mt.core.files import read_file, read_lines, write_atomically
from mt.storage.validation import read_yaml_mapping, validate

CONFIG = "config.yaml"
MODEL = "model.yaml"
WEIGHTS = "model.safetensors"
METRICS = "metrics.jsonl"
CHOICE = "choice.json"
RESULTS = "results.json"
PROVENANCE = "provenance.json"
RESOLVED_SETTINGS = "resolved_settings"
"""Key of provenance.json: the resolved settings."""
LOG = "train.log"
TENSORBOARD = "tensorboard"
SCORED = "scored"
COMPARED = (CONFIG, METRICS, PROVENANCE, *(f"{SCORED}/test.{name}" for name in ("source", "reference", "hypothesis")))
"""The files of a finished run that a comparison reads, besides those with a checksum of their own."""
FILES = "files"
"""Key of results.json: the checksum of each file in COMPARED."""
CHECKPOINTS = "checkpoints"
SOURCE_WORDS = "source_words.json"
"""The number of occurrences of each word of the training sources, for spelling correction."""

# fmt: off
MAY_DIFFER_ON_RESUME = (
    "name", "runs", "training.device", "training.threads", "training.workers", "training.shard",
    "training.compile", "training.log_every", "choice",
)
# fmt: on
"""Settings that may change when a run resumes: its location, hardware, logging and the origin of its chosen settings.
On other hardware, with other threads or workers, or compiled, the result is no longer bitwise the same."""


def file_checksums(run: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in COMPARED."""
    return {name: hashlib.sha256(read_file(run / name)).hexdigest() for name in COMPARED}


def refuse_changed_files(run: Path, results: dict) -> None:
    """Raise InputError if a file has changed since a finished run was scored.

    Args:
        run: The run's folder.
        results: The content of its results.json.
    """
    recorded = results.get(FILES)
    if not isinstance(recorded, dict):
        raise damaged_file(run / RESULTS, FILES)
    checksums = file_checksums(run)
    if changed := [name for name in COMPARED if recorded.get(name) != checksums[name]]:
        raise InputError(f"{run / changed[0]}: damaged or changed since the run was scored")


def read_scored(run: Path) -> dict[str, list[str]]:
    """Return the lines of source, reference and hypothesis of a finished run's test set, as they were scored.

    Raises:
        InputError: A file is missing, or they have different numbers of lines, or none.
    """
    lines = {
        name: [line.decode("utf-8", errors="replace") for line in read_lines(run / SCORED / f"test.{name}")]
        for name in ("source", "reference", "hypothesis")
    }
    if len({len(part) for part in lines.values()}) != 1:
        counts = ", ".join(f"{name} {len(part)}" for name, part in lines.items())
        raise InputError(f"{run / SCORED}: the files have different numbers of lines: {counts}")
    if not lines["source"]:
        raise InputError(f"{run / SCORED}: there is not one test sentence in it")
    return lines


def read_config(run: Path) -> TrainConfig:
    """Read the config of a run. Raise InputError if it is missing or wrong."""
    path = run / CONFIG
    return validate(path, TrainConfig, read_yaml_mapping(path), "not a config of this version")


def write_config(run: Path, config: TrainConfig) -> None:
    """Write config.yaml, resolved and complete."""
    write_atomically(run / CONFIG, as_yaml(config.model_dump(mode="json")))


def as_yaml(values: dict[str, Any]) -> str:
    return str(yaml.safe_dump(values, sort_keys=False, allow_unicode=True))


def config_differences(old: Section, new: Section) -> dict[str, tuple[object, object]]:
    """Return the keys with different values in two configs, or in the same section of two, with both values.

    Keys of MAY_DIFFER_ON_RESUME are left out. Two spellings of the same path are equal.
    """
    before, after = flat_config(old), flat_config(new)
    return {
        key: (before.get(key), after.get(key))
        for key in before | after
        if key not in MAY_DIFFER_ON_RESUME and not _are_equal(before.get(key), after.get(key))
    }


def _are_equal(old: object, new: object) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        return os.path.abspath(old) == os.path.abspath(new)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_are_equal, old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_are_equal(old[name], new[name]) for name in old)
    return old == new


def flat_config(config: Section) -> dict[str, object]:
    """Return every value of a config under its full key, such as ``training.schedule.kind``."""
    return dict(flat_values(config.model_dump(mode="json")))
