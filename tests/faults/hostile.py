"""Model and run folders as an attacker would write them: opening one gives the model or one message."""

import json
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import matplotlib
import torch
import yaml
from safetensors.torch import load_file, save_file

from mt.config import CompareConfig, TrainConfig
from mt.core.errors import InputError
from mt.core.process import machine_trouble
from mt.data.cleaning.findings import DROPPED
from mt.evaluation.comparison.command import compare
from mt.evaluation.runs import read_run
from mt.storage.run_folder import CHECKPOINTS, SOURCE_WORDS, WEIGHTS, checkpoint_folders, read_config
from mt.storage.validation import read_json, write_json
from mt.storage.weights import read_tensors
from mt.training.checkpoint import newest_checkpoint
from mt.training.command import train
from mt.translation.trained_model import open_model
from tests import toy
from tests.faults.outcome import Outcome
from tests.processes import PROJECT

SECRET = "what must not be read"


class Exploit:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.trace),)


def exploits(folder: Path, times: int, seed: int, run: Path) -> Outcome:
    """Hand-made malice under every name that is read."""
    outcome = Outcome("malicious model folder")
    trace = folder / "trace"
    for what, attack in _attacks(trace, folder):
        copy = _copy(run, folder, "attacked")
        attack(copy)
        _record_checksums(copy)
        troubles = _open_everything(copy)
        if trace.exists():
            troubles.append("something was executed")
        outcome.judge([f"{what}: {trouble}" for trouble in troubles])
    return outcome


def _attacks(trace: Path, folder: Path) -> Iterator[tuple[str, Callable[[Path], object]]]:
    payload = pickle.dumps(Exploit(trace))
    outside = folder / "outside"
    outside.mkdir(exist_ok=True)
    for name in ("config.yaml", "model.yaml", "tokenizer.model", "model.safetensors", "results.json", "provenance.json",
                 "metrics.jsonl", SOURCE_WORDS, DROPPED):  # fmt: skip
        (outside / name).write_text(SECRET)
        yield f"a pickle named {name}", lambda run, name=name: (run / name).write_bytes(payload)
        yield f"{name} links out", lambda run, name=name: _link(run / name, outside / name)
        yield f"{name} is a folder", lambda run, name=name: ((run / name).unlink(), (run / name).mkdir())
        yield f"{name} links to itself", lambda run, name=name: ((run / name).unlink(), (run / name).symlink_to(name))
    for name in (CHECKPOINTS, "scored", "scored/test.hypothesis"):
        yield f"{name} links in a circle", lambda run, name=name: _link_in_a_circle(run / name)
    yield "checkpoints link out", lambda run: _link(run / CHECKPOINTS, outside)
    for name in ("progress.json", "model.safetensors", "optimizer.safetensors"):
        yield (
            f"a pickle named {name} in the checkpoint",
            lambda run, name=name: _checkpoint_file(run, name).write_bytes(payload),
        )
    for tag in ("!!python/object/apply:os.mkdir", "!!python/object/new:os.mkdir", "!!python/name:os.system"):
        yield f"YAML tag {tag}", lambda run, tag=tag: _replace(run, "name: ", f"name: {tag} ['{trace}'] #")
    bomb = "a: &a [x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(20)
    )
    for name in ("config.yaml", "model.yaml"):
        yield f"a nest of lists in {name}", lambda run, name=name: (run / name).write_text("[" * 100_000)
        yield f"a bomb of aliases in {name}", lambda run, name=name: (run / name).write_text("format: 1\n" + bomb)
    yield "a nest of lists in JSON", lambda run: (run / "results.json").write_text("[" * 100_000)
    for key in ("width", "feed_forward", "encoder_layers"):
        yield f"model.{key} of a billion", lambda run, key=key: _edit(run, "model", key, 10**9)
    yield "model.width of 64,000", lambda run: _edit(run, "model", "width", 64_000)
    yield "a huge declared tensor", lambda run: _declare(run / "model.safetensors", [2**40, 2**20])
    yield "tensors that overlap", lambda run: _declare(run / "model.safetensors", [1])
    yield "another model's weights", _double
    for key, value in (("update", -1), ("batch", -1), ("metrics_bytes", "all"), ("scaler", [1])):
        yield f"progress with {key}={str(value)[:9]}", lambda run, key=key, value=value: _progress(run, key, value)


def comparisons(folder: Path, times: int, seed: int, run: Path) -> Outcome:
    """Runs whose config says that they were trained on the reader's own files, on datasets of the hub and on recipes:
    a comparison opens none of them, starts no program and asks no network. A module of datasets in place of a dataset
    is refused."""
    outcome = Outcome("comparison of a malicious run")
    outside = folder / "outside"
    outside.mkdir()
    for name in ("secret.tsv", "secret.xx", "secret.yy"):
        (outside / name).write_text(SECRET)
    languages = {"source_language": "xx", "target_language": "yy"}
    secrets = [str(outside / "secret.xx"), str(outside / "secret.yy")]
    forged = {
        "files of the reader": {"kind": "files", "train": secrets},
        "a recipe": {"kind": "recipe", "recipe": "tatoeba_en_fr"},
        "/etc/passwd": {"kind": "files", "train": ["/etc/passwd", "/etc/group"]},
        "a table of the reader": {"kind": "table", "train": str(outside / "secret.tsv")},
        "a dataset of the hub": {"kind": "hub", "path": "someone/something"},
        "pickles by a module of datasets": {"kind": "hub", "path": "pandas"},
    }
    refusals = {"pickles by a module of datasets": "path=pandas is not a dataset"}
    for what, data in list(forged.items())[:times]:
        copy = _copy(run, folder, "attacked")
        config = yaml.safe_load((copy / "config.yaml").read_text())
        (copy / "config.yaml").write_text(yaml.safe_dump(config | {"data": data | languages}))
        _record_checksums(copy)
        expected = refusals.get(what)
        report = folder / "report"
        little = {"timed_sentences": 0, "studied_sentences": 0, "output": str(report)}
        with _watched((copy, folder / "whole", report)) as troubles:
            try:
                compare(CompareConfig.model_validate({"first": str(copy), "second": str(folder / "whole")} | little))
                if expected is not None:
                    troubles.append("was not refused")
            except InputError as error:
                if expected is None or expected not in str(error):
                    troubles.append(f"was not compared: {error}")
            except Exception as error:  # whatever it is, it is what is looked for
                troubles.append(f"{type(error).__name__}: {error}")
        outcome.judge([f"{what}: {trouble}" for trouble in troubles])
    return outcome


_watchers: list[Callable[[str, tuple], None]] = []


@contextmanager
def _watched(folders: tuple[Path, ...]) -> Iterator[list[str]]:
    """Collects every file that is opened outside of these folders and of what is installed here, every program that is
    started and every connection."""
    if not _watchers:  # the interpreter never forgets a hook
        sys.addaudithook(lambda event, arguments: [watch(event, arguments) for watch in _watchers] and None)
    installed = (
        sys.prefix,
        sys.base_prefix,
        Path(torch.__file__).parents[1],
        PROJECT / "mt",
        matplotlib.get_cachedir(),
    )
    ours = [str(Path(place).resolve()) for place in (*folders, *installed)] + ["/proc", "/sys", "/dev", "/usr/share"]
    seen: list[str] = []

    def watch(event: str, arguments: tuple) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not any(path == place or path.startswith(f"{place}/") for place in ours):
                seen.append(f"opened {path}")
        elif event in ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec") or event.startswith("socket."):
            seen.append(f"{event} {arguments}")

    _watchers.append(watch)
    try:
        yield seen
    finally:
        _watchers.remove(watch)


def _open_everything(run: Path) -> list[str]:
    """Open a malicious folder with each function that reads one. At least one must refuse it."""
    refused, troubles = 0, []
    for read in (open_model, read_run, _read_checkpoint, _report, _train_on):
        try:
            read(run)
        except InputError as error:
            refused += 1
            if SECRET in str(error):
                troubles.append(f"{read.__name__} shows what lies outside")
        except Exception as error:  # whatever it is, it is what is looked for
            if message := machine_trouble(error):
                refused += SECRET not in message
            else:
                troubles.append(f"{read.__name__}: {type(error).__name__}: {error}")
    return troubles if refused else [*troubles, "was not noticed"]


def _read_checkpoint(run: Path) -> None:
    if checkpoint := newest_checkpoint(run):
        read_tensors(checkpoint.folder / WEIGHTS), read_tensors(checkpoint.folder / "optimizer.safetensors")


def _report(run: Path) -> None:
    """What the same command does with a finished run."""
    train(_config_of(run))


def _train_on(run: Path) -> None:
    """One update more."""
    config = _config_of(run)
    longer = config.training.model_copy(update={"max_updates": config.training.max_updates + 1})
    train(config.model_copy(update={"training": longer}))


def _config_of(run: Path) -> TrainConfig:
    """What its owner would train it with, whatever config.yaml says now."""
    whole = read_config(run.parent / "whole")
    return whole.model_copy(update={"name": run.name, "runs": str(run.parent)})


def _copy(run: Path, folder: Path, name: str) -> Path:
    """Makes a copy beside the run as it was."""
    if not (folder / "whole").exists():
        shutil.copytree(run, folder / "whole")
    shutil.rmtree(folder / name, ignore_errors=True)
    return Path(shutil.copytree(run, folder / name))


def _record_checksums(run: Path) -> None:
    """Record the checksums of changed files, if they can be read: who changes a file on purpose would do so."""
    with suppress(OSError, InputError):
        toy.record_checksums(run)


def _link(path: Path, to: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(to.resolve())


def _link_in_a_circle(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    other = path.with_name("round")
    path.symlink_to(other.name)
    other.symlink_to(path.name)


def _checkpoint_file(run: Path, name: str) -> Path:
    folders = checkpoint_folders(run)
    return folders[max(folders)] / name


def _replace(run: Path, old: str, new: str) -> None:
    path = run / "config.yaml"
    path.write_text(path.read_text().replace(old, new, 1))


def _edit(run: Path, section: str, key: str, value: object) -> None:
    for path in (run / "config.yaml", run / "model.yaml"):
        config = yaml.safe_load(path.read_text())
        config[section][key] = value
        path.write_text(yaml.safe_dump(config))


def _declare(path: Path, shape: list[int]) -> None:
    """Says that the first tensor has another shape."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header[next(name for name in header if name != "__metadata__")]["shape"] = shape
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def _double(run: Path) -> None:
    """Weights twice as long."""
    tensors = load_file(run / "model.safetensors")
    save_file({name: torch.cat([tensor, tensor]) for name, tensor in tensors.items()}, run / "model.safetensors")


def _progress(run: Path, key: str, value: object) -> None:
    path = _checkpoint_file(run, "progress.json")
    write_json(path, read_json(path) | {key: value})
