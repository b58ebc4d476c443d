"""provenance.json: the data of a run, and the code, libraries, machine and resolved settings of each start.

A run has its first start, and another one each time it is resumed. A resumed run must have the data of the first start,
and another precision causes a warning.
"""

import hashlib
import logging
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field, NonNegativeInt

from mt.config import PileConfig, TrainConfig, single_corpora
from mt.core.device import instruction_sets, multiplied_by, precision_name, processor_name, recurrent_layers_need_fp32
from mt.core.errors import InputError, counted
from mt.core.installation import IS_INSTALLED, PACKAGE
from mt.data.batching.batches import TrainingBatches
from mt.data.corpus import Corpus, evenly_spaced_pairs, load_corpus
from mt.data.pairs import sentences_sha256
from mt.distributed.workers import Workers
from mt.storage.folders import resolve_model_path
from mt.storage.run_folder import CONFIG, PROVENANCE, RESOLVED_SETTINGS, is_hub_name
from mt.storage.validation import StrictRecord, read_json, validate_recorded
from mt.storage.vocabulary import character_coverage, normalization
from mt.training.optimizer import ConditionValue, Optimizer, ResolvedSettings
from mt.training.preparation import PreparedData
from mt.training.updater import feed_process_count

logger = logging.getLogger(__name__)

PACKAGES = (
    "torch", "sentencepiece", "sentencex", "regex", "num2words", "simplemma", "datasets", "sacrebleu", "hydra-core",
    "numpy",
)  # fmt: skip
"""The libraries whose versions can change results."""
BATCHES = "batches"
"""The heading of the settings of batches among the resolved settings."""

MAX_LISTED_FILES = 10
"""Maximum number of changed files in a message."""


class _Start(StrictRecord):
    """One start of the run, after ``update`` updates: 0 for the first, more for a resumed run."""

    update: NonNegativeInt
    code_revision: str | None
    libraries: dict[str, ConditionValue]
    python: str
    machine: dict[str, ConditionValue]
    resolved_settings: ResolvedSettings
    origins: dict[str, str]


class _File(StrictRecord):
    """An input file, or a pair of source and target file, as ``InputFile`` in ``mt.data.split``."""

    paths: list[str]
    pairs: NonNegativeInt
    sha256: str
    left_out: str


class _Split(StrictRecord):
    pairs: NonNegativeInt
    sha256: str


class _Data(StrictRecord):
    train: _Split
    valid: _Split
    test: _Split


class _Recorded(StrictRecord):
    """The schema of provenance.json, except for the checksum of the final weights."""

    data: _Data
    corpus: list[str]
    files: dict[str, list[_File]] = {}
    initial_weights: str | None
    base_model: str | None
    starts: Annotated[list[_Start], Field(min_length=1)]


def begin_provenance(
    config: TrainConfig,
    data: PreparedData,
    workers: Workers,
    settings: ResolvedSettings,
    origins: Mapping[str, str],
    initial_weights: str | None,
) -> dict:
    """Return the content of provenance.json for a new run, except for the checksum of its final weights.

    Args:
        config: The config of the run.
        data: The data of the run.
        workers: The processes that train together.
        settings: The settings that ``resolved_settings`` returned.
        origins: The origin of each key of the config that differs from its default.
        initial_weights: Checksum of the weights of ``training.init_from``; None without it.
    """
    start = {
        "update": 0,
        "code_revision": code_revision(),
        "libraries": {package: version(package) for package in PACKAGES},
        "python": platform.python_version(),
        "machine": {
            "system": platform.platform(),
            "processor": processor_name(),
            "instruction sets": ", ".join(instruction_sets()),
            "PyTorch's kernels are for": torch.backends.cpu.get_cpu_capability(),
            "gpu": torch.cuda.get_device_name(workers.device) if workers.device.type == "cuda" else None,
            "threads": torch.get_num_threads(),
            "workers": workers.size,
            "feed processes": feed_process_count(config, workers),
        },
        RESOLVED_SETTINGS: settings,
        "origins": dict(origins),
    }
    splits = {"train": data.train, "valid": data.corpus.valid, "test": data.corpus.test}
    return {
        "data": {name: {"pairs": len(split), "sha256": sentences_sha256(split)} for name, split in splits.items()},
        "corpus": data.corpus.checksums,
        **({"files": files} if (files := _files(data.corpus)) else {}),
        "initial_weights": initial_weights,
        "base_model": _base_model(config) if initial_weights else None,
        "starts": [start],
    }


def _base_model(config: TrainConfig) -> str | None:
    """Return the Hugging Face model that ``training.init_from`` names or was itself trained from, as OWNER/NAME@COMMIT.

    None if neither is recorded.
    """
    origin = config.training.init_from
    if not origin:
        return None
    if is_hub_name(origin):
        return f"{origin.partition('@')[0]}@{resolve_model_path(origin).name}"
    try:
        return read_provenance(Path(origin)).get("base_model")
    except InputError:  # a model folder has no provenance
        return None


def _files(corpus: Corpus) -> dict[str, list[dict]]:
    """Return the input files of each split as provenance.json records them; only of splits that are lists of files."""
    files: dict[str, list[dict]] = {}
    for report in corpus.report:
        if report.files:
            files.setdefault(report.split, []).extend(
                {name: getattr(file, name) for name in _File.model_fields} for file in report.files
            )
    return files


def resolved_settings(
    config: TrainConfig,
    data: PreparedData,
    workers: Workers,
    precision: torch.dtype,
    optimizer: Optimizer,
    batches: TrainingBatches,
) -> ResolvedSettings:
    """Return the resolved values of settings such as ``auto`` and null, and numbers of pairs, by heading and name.

    A comparison of two runs lists the entries that differ.

    Args:
        config: The config of the run.
        data: The data of the run.
        workers: The processes that train together.
        precision: The number format of training.
        optimizer: The optimizer, whose parameter groups are described.
        batches: The batches of the training pairs.
    """
    settings, device = config.training, workers.device
    sides = {"source": data.tokenizers.source, "target": data.tokenizers.target}
    dropped = data.corpus.report[0].dropped
    return {
        **optimizer.resolved_settings(),
        "arithmetic": {
            "device": device.type,
            "precision": precision_name(precision),
            "precision of LSTM layers": "fp32" if recurrent_layers_need_fp32(device) else precision_name(precision),
            "sharded": settings.shard,
            "compiled": settings.compile,
            **{
                f"{precision_name(dtype)} is multiplied by": multiplied_by(dtype, device, settings.compile)
                for dtype in (torch.float32, torch.bfloat16)
            },
        },
        "text": {
            "enabled": data.layer.config.enabled,
            "slots": data.layer.placeholder_count,
            "sentences of a line that is not cut": data.layer.config.max_sentences,
            "tokens of a sentence that is not cut": data.layer.config.long_source,
            "added to lines without final punctuation": " ".join(data.layer.config.final_marks),
            "typing errors are corrected": data.layer.corrects_typos(config.decoding.correct_typos),
        },
        "tokens": {
            # Read from the models and not from the config: another run may have trained them.
            **{f"{side} normalization": normalization(tokenizer.model) for side, tokenizer in sides.items()},
            **{f"{side} character coverage": character_coverage(tokenizer.model) for side, tokenizer in sides.items()},
            **{f"{side} vocabulary": tokenizer.vocabulary_size for side, tokenizer in sides.items()},
        },
        BATCHES: {"batching": "packed" if batches.packed_shape else "padded"},
        "cleaning": {rule: len(ids) for rule, ids in data.dropped.items()},
        "pairs": {
            **{f"held out for {split}": dropped.get(f"held out for {split}", 0) for split in ("valid", "test")},
            "translated at each validation": len(evenly_spaced_pairs(data.corpus.valid, settings.valid_bleu_pairs)),
            "longer than a batch": batches.num_oversized_pairs,
        },
    }


def read_provenance(run: Path) -> dict:
    """Return the content of provenance.json of a run.

    Raises:
        InputError: It is missing or corrupted.
    """
    content = read_json(run / PROVENANCE)
    validate_recorded(run / PROVENANCE, _Recorded, content)
    return content


def recorded_batching(run: Path) -> ConditionValue:
    """Return the batching of a run that is resumed: ``padded`` or ``packed``.

    Raises:
        InputError: provenance.json is missing or corrupted.
    """
    return read_provenance(run)["starts"][0][RESOLVED_SETTINGS].get(BATCHES, {}).get("batching")


def precision_of(start: dict) -> ConditionValue:
    """Return the resolved precision of a start, such as bf16."""
    return start[RESOLVED_SETTINGS]["arithmetic"]["precision"]


def code_revision() -> str | None:
    """Return the commit of this code, followed by a checksum if the code has uncommitted changes; None without git.

    For an installed wheel, return its version instead, because a repository around it is another project's.
    """
    if IS_INSTALLED:
        return f"mt-trainer {version('mt-trainer')}"
    try:
        revision = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=PACKAGE,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{revision}-{code_checksum(PACKAGE)[:12]}" if revision.endswith("-dirty") else revision


def code_checksum(package: Path) -> str:
    """Return the SHA-256 of all Python files in a folder and below, and of their paths."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\n{path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def warn_of_changed_data(config: TrainConfig) -> None:
    """Log a warning if the files of a finished run have other pairs now. Datasets of a hub or recipe are not
    checked."""
    if not all(isinstance(corpus, PileConfig) for corpus in single_corpora(config.data)):
        return
    try:
        if read_provenance(config.folder)["corpus"] == load_corpus(config.data, warn=False).checksums:
            return
        finding = "the results are not those of the current data, whose pairs have changed since"
    except (InputError, OSError) as error:
        finding = f"it cannot be checked whether the results are those of the current data: {error}"
    logger.warning(
        "%s: %s. To train on the current data, start a new run under another name (name=…)", config.folder, finding
    )


def resumed_provenance(config: TrainConfig, current: dict, update: int) -> dict:
    """Return the content of provenance.json for a run that is resumed, with its new start.

    Starts that ended before their first checkpoint are omitted. A warning is logged if the precision of this start
    differs from that of the last one.

    Args:
        config: The config of the run.
        current: The provenance of a new run under the current conditions, from ``begin_provenance``.
        update: The number of updates done.

    Raises:
        InputError: The data of the run have changed since it began.
    """
    run = config.folder
    recorded = read_provenance(run)
    # A run that starts as a copy of another run may have other data.
    has_begun, keeps_data = (run / CONFIG).exists(), "data" not in config.training.reset
    if changed := [
        split
        for split, digest in current["data"].items()
        if recorded["data"][split] != digest and (has_begun or (split == "train" and keeps_data))
    ]:
        files = _changed_files(recorded, current)
        named = f" in {counted(len(files), 'file')}: {', '.join(files[:MAX_LISTED_FILES])}" if files else ""
        raise InputError(
            f"{run}: the {' and '.join(changed)} pairs have changed since the run began (see {PROVENANCE}){named}; "
            "restore them, or start a new run under another name (name=…), with training.continue_from and "
            "training.reset=[data] to continue from the current weights"
        )
    (start,) = current["starts"]
    first, *others = recorded["starts"]
    starts = [first, *(other for other in others if other["update"] < update), start | {"update": update}]
    before, now = map(precision_of, starts[-2:])
    if before != now:
        logger.warning(
            "training.precision=%s means %s here, but meant %s up to update %d, so the results will differ. To avoid "
            "that, resume the run on a machine like the one before",
            config.training.precision,
            now,
            before,
            update,
        )
    # The checksum of the final weights is removed, because training changes them.
    kept = {name: value for name, value in recorded.items() if name != "weights_sha256"}
    kept |= {
        name: current[name] for name in ("data", "corpus", "files") if name in current
    }  # of moved files, or of other data
    return kept | {"starts": starts}


def _changed_files(recorded: dict, current: dict) -> list[str]:
    """Return the input files whose pairs are in only one of two contents of provenance.json.

    A moved file has the same pairs. Splits that are not lists of files have no records of files.
    """
    before, after = (
        {
            (split, file["sha256"] or file["paths"][0]): " + ".join(file["paths"])
            for split, files in provenance.get("files", {}).items()
            for file in files
        }
        for provenance in (recorded, current)
    )
    return sorted({(before | after)[key] for key in before.keys() ^ after.keys()})
