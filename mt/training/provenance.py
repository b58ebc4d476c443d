"""Records what a run was made from and with: code, libraries, machine, data, and the values its settings resolved to.

provenance.json describes how the run began. A run that goes on elsewhere, or with newer libraries, adds what is
different from then on to the list ``resumed``. Nothing that was true before is overwritten.
"""

import hashlib
import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from mt.config import TrainConfig
from mt.core.device import instruction_sets, multiplied_by, precision_name, processor_name, recurrent_layers_need_fp32
from mt.core.errors import InputError
from mt.core.installation import IS_INSTALLED
from mt.core.json_file import read_json
from mt.core.wording import format_value
from mt.data.corpus import Corpus, evenly_spaced
from mt.data.pairs import sentences_sha256
from mt.distributed.workers import Workers
from mt.storage.hub import pinned_hub_name
from mt.storage.run_folder import PROVENANCE, TOOK_EFFECT
from mt.training.optimizer import Optimizer
from mt.training.preparation import PreparedData

Value = str | int | float | bool | None

PACKAGE = Path(__file__).parents[1]
"""The folder of the code."""
MAY_CHANGE = ("code_revision", "libraries", "python", "machine", TOOK_EFFECT)
"""The entries of provenance.json that may be different when a run goes on."""


class _Resumed(BaseModel):
    """What was different when the run was resumed after ``update``: some of the entries that MAY_CHANGE names."""

    model_config = ConfigDict(strict=True)

    update: NonNegativeInt
    code_revision: str | None = None
    libraries: dict[str, Value] = {}
    python: str | None = None
    machine: dict[str, Value] = {}
    took_effect: dict[str, dict[str, Value]] = {}


class _File(BaseModel):
    """An input file, or a pair of files: see ``InputFile`` in ``mt.data.readers.split``."""

    model_config = ConfigDict(strict=True)

    paths: list[str]
    pairs: NonNegativeInt
    sha256: str
    left_out: str


class _Split(BaseModel):
    model_config = ConfigDict(strict=True)

    pairs: NonNegativeInt
    sha256: str


class _Data(BaseModel):
    model_config = ConfigDict(strict=True)

    train: _Split
    valid: _Split
    test: _Split


class _Recorded(BaseModel):
    """The content of provenance.json, but for the checksum of the final weights."""

    model_config = ConfigDict(strict=True)

    code_revision: str | None
    libraries: dict[str, Value]
    python: str
    machine: dict[str, Value]
    data: _Data
    files: dict[str, list[_File]] = {}
    initial_weights: str | None
    base_model: str | None
    took_effect: dict[str, dict[str, Value]]
    resumed: list[_Resumed]


def begin_provenance(
    data: PreparedData,
    workers: Workers,
    took_effect: dict[str, dict],
    initial_weights: str | None,
    base_model: str | None,
) -> dict:
    """Returns the content of provenance.json for a run that begins, except for the checksum of its final weights.

    Args:
        data: What the run learns from and is measured on.
        workers: The processes that train together.
        took_effect: What ``took_effect`` returned.
        initial_weights: Checksum of the weights that ``training.init_from`` brought; None if they were drawn at random.
        base_model: What ``base_model`` returned for ``training.init_from``.
    """
    packages = (
        "torch",
        "sentencepiece",
        "sentencex",
        "regex",
        "num2words",
        "datasets",
        "sacrebleu",
        "hydra-core",
        "numpy",
    )
    return {
        "code_revision": code_revision(),
        "libraries": {package: version(package) for package in packages},
        "python": platform.python_version(),
        "machine": {
            "system": platform.platform(),
            "processor": processor_name(),
            "instruction sets": ", ".join(instruction_sets()),
            "PyTorch's kernels are for": torch.backends.cpu.get_cpu_capability(),
            "gpu": torch.cuda.get_device_name(workers.device) if workers.device.type == "cuda" else None,
            "threads": torch.get_num_threads(),
            "workers": workers.size,
        },
        "data": {
            split: {"pairs": len(pairs), "sha256": sentences_sha256(pairs)}
            for split, pairs in (
                ("train", data.train),
                ("valid", data.corpus.valid),
                ("test", data.corpus.test),
            )
        },
        **({"files": files} if (files := _files(data.corpus)) else {}),
        "initial_weights": initial_weights,
        "base_model": base_model,
        TOOK_EFFECT: took_effect,
        "resumed": [],
    }


def base_model(origin: str) -> str | None:
    """Returns the model of the Hugging Face hub that the weights of a folder go back to, as OWNER/NAME@COMMIT; None if
    none is recorded.

    Args:
        origin: A run or model folder, or the name of a model of the hub.
    """
    if named := pinned_hub_name(origin):
        return named
    try:
        return read_provenance(Path(origin)).get("base_model")
    except InputError:  # a model folder has no provenance
        return None


def _files(corpus: Corpus) -> dict[str, list[dict]]:
    """Return the input files of each split that is read from many."""
    found: dict[str, list[dict]] = {}
    for report in corpus.report:
        if report.files:
            found.setdefault(report.split, []).extend(
                {"paths": list(file.paths), "pairs": file.pairs, "sha256": file.sha256, "left_out": file.left_out}
                for file in report.files
            )
    return found


def changed_files(recorded: dict, now: dict) -> Iterator[str]:
    """Yields a line for each input file that was not there, is no longer there, has other pairs, or was left out at
    one time only.

    Args:
        recorded: The content of provenance.json as read.
        now: What would be written for a run that begins now.
    """
    for split in dict.fromkeys([*recorded.get("files", {}), *now.get("files", {})]):
        before, after = (
            {tuple(map(os.path.abspath, file["paths"])): file for file in facts.get("files", {}).get(split, [])}
            for facts in (recorded, now)
        )
        for paths in dict.fromkeys([*before, *after]):
            old, new = before.get(paths), after.get(paths)
            name = " + ".join((new or old or {})["paths"])
            if old is None or new is None:
                yield f"{split}: {name}: {'new' if old is None else 'no longer among the files'}"
            elif new["left_out"] and not old["left_out"]:
                yield f"{split}: {name}: now left out: {new['left_out']}"
            elif old["left_out"] and not new["left_out"]:
                yield f"{split}: {name}: was left out and can be read now"
            elif old["sha256"] != new["sha256"]:
                yield f"{split}: {name}: has other pairs"


def took_effect(
    config: TrainConfig,
    data: PreparedData,
    workers: Workers,
    precision: torch.dtype,
    optimizer: Optimizer,
    longer_than_a_batch: int,
) -> dict[str, dict[str, Value]]:
    """Returns the values that the settings resolved to: what ``auto`` and null stand for, which optimizer updates each
    group of parameters, and how many pairs there were where a setting asks for a number of them.

    The values are grouped under headings. A comparison lists those that differ between two runs.
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
                f"{precision_name(each)} is multiplied by": multiplied_by(each, device, settings.compile)
                for each in (torch.float32, torch.bfloat16)
            },
        },
        "text": {
            "enabled": data.layer.config.enabled,
            "slots": data.layer.slots,
            "sentences of a line that is not cut": data.layer.config.most_sentences,
            "pieces of a sentence that is not cut": data.layer.config.long_source,
            "added to lines without final punctuation": " ".join(data.layer.config.final_marks),
            "fewest times that a word occurs for which an unknown one is taken": data.layer.config.fewest_times,
        },
        "pieces": {
            **{f"{side} normalization": tokenizer.normalization for side, tokenizer in sides.items()},
            **{f"{side} character coverage": tokenizer.character_coverage for side, tokenizer in sides.items()},
            **{f"{side} vocabulary": tokenizer.vocabulary_size for side, tokenizer in sides.items()},
        },
        "cleaning": {rule: len(ids) for rule, ids in data.dropped.items()},
        "pairs": {
            **{f"held out for {split}": dropped.get(f"held out for {split}", 0) for split in ("valid", "test")},
            "translated at each validation": len(evenly_spaced(data.corpus.valid, settings.valid_bleu_pairs)),
            "longer than a batch": longer_than_a_batch,
        },
    }


def read_provenance(run: Path) -> dict:
    """Read provenance.json of a run. Raise InputError if it is damaged."""
    content = read_json(run / PROVENANCE)
    try:
        _Recorded.model_validate(content)
    except ValidationError as error:
        wrong = ", ".join(dict.fromkeys(str(mistake["loc"][0]) for mistake in error.errors()))
        raise InputError(f"{run / PROVENANCE}: damaged or of another version: {wrong}") from None
    return content


def up_to(recorded: dict, update: int) -> dict:
    """Returns the content of provenance.json without the sessions that resumed the run at ``update`` or later. Nothing
    is left of them, because they were killed before they saved a checkpoint."""
    return recorded | {"resumed": [one for one in recorded["resumed"] if one["update"] < update]}


def gone_on(recorded: dict, now: dict, update: int) -> dict:
    """Returns the content of provenance.json for a run that goes on.

    Args:
        recorded: The content ``up_to`` that update.
        now: What would be written for a run that begins now.
        update: The last update that is done. This session begins with the next.
    """
    changed = _changes(latest(recorded), {name: now[name] for name in MAY_CHANGE})
    resumed = [*recorded["resumed"], *([{"update": update, **changed}] if changed else [])]
    # The checksum is left out, because the weights are about to change.
    return {name: value for name, value in recorded.items() if name != "weights_sha256"} | {"resumed": resumed}


def latest(recorded: dict) -> dict:
    """Returns the entries named in MAY_CHANGE, as recorded by the latest session of the run."""
    return _with_changes(recorded, lambda before, after, update: after)


def precision_of(facts: dict) -> Value:
    """Returns the number format of training; None if it is not recorded."""
    return facts.get(TOOK_EFFECT, {}).get("arithmetic", {}).get("precision")


def as_it_went(recorded: dict) -> dict:
    """Returns the content of provenance.json, where each value that changed when the run went on says so: ``bf16, from
    update 1,201 on fp32``. So two runs differ even if only some of their sessions did."""

    def told(before: Value, after: Value, update: int) -> str:
        return f"{format_value(before)}, from update {update + 1:,} on {format_value(after)}"

    return {name: value for name, value in recorded.items() if name != "resumed"} | _with_changes(recorded, told)


def _with_changes(recorded: dict, combined: Callable[[Value, Value, int], Value]) -> dict:
    """Returns the facts that may change, after each of their changes has been combined with the value before it.

    Args:
        recorded: The content of provenance.json.
        combined: Returns the combined value, given the value before a change, the value after it, and the update after
            which the change came.
    """
    facts = {name: recorded[name] for name in MAY_CHANGE}
    for change in recorded["resumed"]:
        changed = {name: change[name] for name in MAY_CHANGE if name in change}
        facts = _applied(facts, changed, combined, change["update"])
    return facts


def _applied(before: dict, changes: dict, combined: Callable[[Value, Value, int], Value], update: int) -> dict:
    after = dict(before)
    for name, value in changes.items():
        if isinstance(value, dict):
            after[name] = _applied(before.get(name) or {}, value, combined, update)
        else:
            after[name] = combined(before.get(name), value, update)
    return after


def _changes(before: dict, now: dict) -> dict:
    """Returns the values that are different now, or new. Sections are compared value by value."""
    found = {}
    for name, value in now.items():
        if isinstance(value, dict):
            if inner := _changes(before.get(name) or {}, value):
                found[name] = inner
        elif name not in before or before[name] != value:
            found[name] = value
    return found


def code_revision() -> str | None:
    """Returns the commit of the code, or None if git cannot tell. If the code has been changed since, a checksum of the
    changed code follows. For an installed wheel, returns its version: the repository around it, if there is one, is
    another project's."""
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
    """Returns the SHA-256 of all Python files in a folder."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\n{path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()
