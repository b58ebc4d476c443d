"""The names of the files in a run folder, and functions to read and write its config, its scored test set and its
results.json; the list of the runs in a folder, and the run nearest to a missing one.

PyTorch is not imported, so that paths are checked and ``python -m mt runs`` answers at once.
"""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Collection
from itertools import chain, islice
from pathlib import Path
from typing import Any

import yaml
from pydantic import FiniteFloat

from mt.config import (
    IGNORE_VALIDATION_ERRORS,
    REMOVED,
    RunListConfig,
    Section,
    TrainConfig,
    flat_values,
    without_removed,
)
from mt.core.errors import (
    RESTORE_OR_RETRAIN,
    InputError,
    aligned,
    corrupted_file,
    format_value,
    nearest,
    visible,
    wrong_keys,
)
from mt.core.files import read_file, read_lines, write_atomically
from mt.storage.validation import StrictRecord, is_number, read_json, read_yaml_mapping, validate, validate_recorded

CONFIG = "config.yaml"
MODEL = "model.yaml"
WEIGHTS = "model.safetensors"
METRICS_LOG = "metrics.jsonl"
CHOICE_FILE = "choice.json"
RESULTS = "results.json"
PROVENANCE = "provenance.json"
RESOLVED_SETTINGS = "resolved_settings"
"""Key of the resolved settings in provenance.json."""
LOG = "train.log"
TENSORBOARD = "tensorboard"
SCORED = "scored"
COMPARED = (
    CONFIG,
    METRICS_LOG,
    PROVENANCE,
    *(f"{SCORED}/test.{name}" for name in ("source", "reference", "hypothesis")),
)
"""The files of a finished run that comparisons read and that have no checksum of their own."""
FILE_CHECKSUMS = "files"
"""Key in results.json of the checksums of the files in COMPARED."""
CHECKPOINTS = "checkpoints"
SOURCE_WORDS = "source_words.json"
"""Word counts of the training sources, for spelling correction."""
TERMS = "terms.json"
"""The glossary that a model was trained with."""

RESTORE_OR_SCORE_AGAIN = "restore it from a backup, or delete results.json and start the same training command again"
"""The remedy for corrupted results: without results.json, the command scores the finished training again."""

# fmt: off
MAY_DIFFER_ON_RESUME = (
    "name", "runs", "training.device", "training.threads", "training.workers", "training.feed_processes",
    "training.shard", "training.compile", "training.log_every", "choice",
)
# fmt: on
"""Settings that may change when a run resumes: its location, hardware, logging and the origin of its chosen settings.
On other hardware, with other threads or workers, or compiled, the result is no longer bitwise the same."""

SIGNATURE_SUFFIX = "_signature"
"""The key of a metric and this suffix are the key of the metric's signature."""
INITIAL_BLEU = "initial_bleu"
"""The key of BLEU before fine-tuning."""
DIRECTIONS = "directions"
"""The key of the results of each of several directions, in the order of their lines in the files of test sentences."""

MAX_CANDIDATES = 1000
"""Maximum number of files and folders that may be runs, for the hint on a folder that is not a run."""
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")
"""A model on the Hugging Face hub: OWNER/NAME, optionally with @REVISION."""


def file_checksums(run: Path) -> dict[str, str]:
    """Return name → SHA-256 of each file in COMPARED."""
    return {name: hashlib.sha256(read_file(run / name)).hexdigest() for name in COMPARED}


def refuse_changed_files(run: Path, results: dict) -> None:
    """Raise InputError if a file has changed since a finished run was scored.

    Args:
        run: The run's folder.
        results: The content of its results.json.
    """
    recorded = results.get(FILE_CHECKSUMS)
    if not isinstance(recorded, dict):
        raise corrupted_file(run / RESULTS, wrong_keys([FILE_CHECKSUMS]), RESTORE_OR_SCORE_AGAIN)
    checksums = file_checksums(run)
    if changed := [name for name in COMPARED if recorded.get(name) != checksums[name]]:
        raise InputError(f"{run / changed[0]}: corrupted or changed since the run was scored; {RESTORE_OR_RETRAIN}")


def checkpoint_folders(run: Path) -> dict[int, Path]:
    """Map the update of each complete checkpoint of a run to its folder, oldest first."""
    paths = [path for path in (run / CHECKPOINTS).glob("step_*") if re.fullmatch(r"step_\d+", path.name)]
    return dict(sorted((int(path.name.removeprefix("step_")), path) for path in paths))


def read_scored(run: Path) -> dict[str, list[str]]:
    """Read the test set of a finished run as it was scored.

    Returns:
        ``source``, ``reference`` and ``hypothesis`` → the lines of the file.

    Raises:
        InputError: A file is missing, or the files have no lines or different numbers of lines.
    """
    lines = {
        name: [line.decode("utf-8", errors="replace") for line in read_lines(run / SCORED / f"test.{name}")]
        for name in ("source", "reference", "hypothesis")
    }
    if len({len(part) for part in lines.values()}) != 1:
        counts = ", ".join(f"{name} {len(part)}" for name, part in lines.items())
        raise InputError(f"{run / SCORED}: the files have different numbers of lines: {counts}; {RESTORE_OR_RETRAIN}")
    if not lines["source"]:
        raise InputError(f"{run / SCORED}: the files have no lines; {RESTORE_OR_RETRAIN}")
    return lines


def read_config(run: Path) -> TrainConfig:
    """Read config.yaml of a run, without settings that were removed since.

    Combinations of settings that this version refuses are accepted, because the version that wrote the file had them.

    Raises:
        InputError: The file is missing, corrupted or of another version.
    """
    path, summary = run / CONFIG, "not a config of this version"
    values = without_removed(read_yaml_mapping(path))
    return validate(path, TrainConfig, values, summary, context=IGNORE_VALIDATION_ERRORS)


def refuse_removed_settings(run: Path) -> None:
    """Raise InputError if config.yaml of an unfinished run has settings in use that this version lacks or refuses."""
    recorded = flat_values(read_yaml_mapping(run / CONFIG))
    reasons = [f"{key}={format_value(value)} was removed" for key, value in recorded if key in REMOVED and value]
    if reasons := [*reasons, *read_config(run).all_validation_errors()]:
        raise InputError(
            f"{run} was begun by an earlier version with settings that this one does not have: {'; '.join(reasons)}. "
            "Finish it with version 1.0.0, or start a new run under another name (name=…)"
        )


def write_config(run: Path, config: TrainConfig) -> None:
    """Write config.yaml with the value of every setting, defaults included."""
    write_atomically(run / CONFIG, as_yaml(config.model_dump(mode="json")))


def as_yaml(values: dict[str, Any]) -> str:
    return str(yaml.safe_dump(values, sort_keys=False, allow_unicode=True))


def config_differences(old: Section, new: Section, ignored: Collection[str] = ()) -> dict[str, tuple[object, object]]:
    """Return key → (old value, new value) of all settings that differ between two configs, or two sections of one kind.

    Keys in MAY_DIFFER_ON_RESUME are skipped, and settings of a corpus in ``ignored``. Two spellings of the same path
    are equal.
    """

    def normalized(value: object) -> object:
        match value:
            case str():
                return os.path.abspath(value)
            case list():
                return list(map(normalized, value))
            case dict():
                return {name: normalized(part) for name, part in value.items() if name not in ignored}
        return value

    before, after = flat_config(old), flat_config(new)
    return {
        key: (before.get(key), after.get(key))
        for key in before | after
        if key not in MAY_DIFFER_ON_RESUME
        and key.removeprefix("data.") not in ignored
        and normalized(before.get(key)) != normalized(after.get(key))
    }


def flat_config(config: Section) -> dict[str, object]:
    """Return full key, such as ``training.schedule.kind``, → value of every setting of a config."""
    return dict(flat_values(config.model_dump(mode="json")))


class _ConfidenceFigures(StrictRecord):
    """The figures of the confidence on the test set; see ``mt.training.final_outputs.measure_confidence``."""

    pairs: int
    calibration_error: FiniteFloat
    roc_area: FiniteFloat | None
    score_roc_area: FiniteFloat | None


class Results(StrictRecord):
    """The content of results.json: the values that each has, and further ones, such as ``ter``."""

    bleu: FiniteFloat
    bleu_signature: str
    chrf: FiniteFloat
    test_pairs: int
    parameters: FiniteFloat
    updates: FiniteFloat
    best_update: FiniteFloat
    target_tokens: FiniteFloat
    training_minutes: FiniteFloat
    peak_memory_bytes: FiniteFloat
    confidence: _ConfidenceFigures | None = None
    initial_bleu: FiniteFloat | None = None


def read_results(run: Path) -> dict:
    """Return the content of a run's results.json.

    Raises:
        InputError: The file is corrupted, lacks a required value, or has a score that is not a number.
    """
    results = read_json(run / RESULTS, remedy=RESTORE_OR_SCORE_AGAIN)
    validate_recorded(run / RESULTS, Results, results, RESTORE_OR_SCORE_AGAIN)
    if wrong := [metric for metric in _metrics(results) if not is_number(results.get(metric))]:
        raise corrupted_file(run / RESULTS, wrong_keys(wrong), RESTORE_OR_SCORE_AGAIN)
    return results


def scores_with_signatures(results: dict) -> dict[str, tuple[float, str]]:
    """Return key of a metric → its score on the test set and its signature, for all metrics in a results.json.

    A metric that the project got after the run was scored is missing.
    """
    return {metric: (results[metric], str(results[metric + SIGNATURE_SUFFIX])) for metric in _metrics(results)}


def _metrics(results: dict) -> list[str]:
    return [key.removesuffix(SIGNATURE_SUFFIX) for key in results if key.endswith(SIGNATURE_SUFFIX)]


def list_runs(config: RunListConfig) -> None:
    """Print a line for each run in the folder ``config.runs``, the newest last.

    Raises:
        InputError: The folder does not exist, or has no runs in it.
    """
    rows = sorted(map(_row, Path(config.runs).glob(f"*/{CONFIG}")))
    if not rows:
        raise InputError(f"runs={config.runs}: no such folder, or no runs in it; give the folder with the run folders")
    # Names are last, because they may have characters of other widths.
    headings = ("started", "languages", "model", "state", "BLEU", "chrF2", "validation", "metric", "run")
    print(visible(aligned([headings, *rows])), flush=True)


def _row(path: Path) -> list[str]:
    """Return the cells of the run with this config.yaml."""
    run = path.parent
    try:
        # Each of these settings has a line of its own. PyYAML would take 6 ms for the file.
        values = dict(re.findall(r"^  (\w+): '?(\S+?)'?$", path.read_text(encoding="utf-8"), re.MULTILINE))
        state = "no checkpoint"
        if (run / RESULTS).exists():
            values |= read_results(run)
            state = "stopped early" if values["stopped_early"] else "finished"
        elif folders := checkpoint_folders(run):
            update, folder = folders.popitem()
            values["best_valid_score"] = read_json(folder / "progress.json")["best_score"]
            state = f"update {update} of {values['max_updates']}"
        cells = [
            f"{values['source_language']}→{values['target_language']}",
            f"{values['architecture']} {values['width']}",
            state,
            *(
                "" if score is None else f"{abs(score):.2f}"
                for score in map(values.get, ("bleu", "chrf", "best_valid_score"))
            ),
            values["metric"],
        ]
    except (InputError, OSError, KeyError, TypeError, ValueError):
        cells = ["", "", "corrupted", *[""] * 4]
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(path.lstat().st_mtime))
    return [started, *cells, " ".join(run.name.split())]


def is_hub_name(name: str) -> bool:
    """Return whether a path is a name on the hub: there is neither such a path nor its parent. runs/NAME is none."""
    path = Path(name)
    is_local = path.exists() or path.parent.is_dir() or path.parts[0] == "runs"
    return not is_local and HUB_NAME.fullmatch(name) is not None


def nearest_run(path: Path) -> str:
    """Return a hint for a path that is not a run, as the end of a message: the newest run in or above a folder, or the
    run with the most similar name beside or below a missing path."""
    base = path if path.exists() else path.parent
    with contextlib.suppress(OSError):
        candidates = [base / "..", *islice(chain(base.glob("*"), base.glob("*/*")), MAX_CANDIDATES)]
        runs = [os.path.normpath(folder) for folder in candidates if (folder / MODEL).is_file()]
        if base == path and runs:
            return f"; did you mean {max(runs, key=os.path.getmtime)}?"
        names = {os.path.basename(run): run for run in runs}
        if near := nearest(path.name, list(names), min_similarity=0.75):
            return f"; did you mean {names[near]}?"
    return "; give the folder of a run, such as runs/NAME"
