"""Tests of the run folder: its contents, locks, links, and refused runs that leave no folder."""

import errno
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from mt.core.errors import InputError, Interrupted, RunError
from mt.distributed.workers import Workers
from mt.models.build import build_model
from mt.storage.folders import read_description
from mt.storage.model_folder import NativeFolder
from mt.storage.run_folder import TERMS, checkpoint_folders, read_config
from mt.training import command
from mt.training.command import _log_to_file, _run_lock, train
from mt.translation.translator import Translator
from tests import toy
from tests.training.runs import read_metrics, read_results


def test_weights_average_is_mean_of_last_checkpoints(folder):
    config = toy.config(
        folder, training={"weights": "average", "average": 3, "keep_last": 3, "save_every": 5, "max_updates": 20}
    )
    train(config)
    folders = list(checkpoint_folders(config.folder).values())
    assert [path.name for path in folders] == ["step_10", "step_15", "step_20"]
    several = [load_file(path / "model.safetensors") for path in folders]
    for name, tensor in load_file(config.folder / "model.safetensors").items():
        assert torch.allclose(tensor, sum(weights[name] for weights in several) / 3, atol=1e-7)


def test_run_lock_excludes_second_process(folder):
    config = toy.config(folder)
    config.folder.mkdir(parents=True)
    with _run_lock(config.folder), pytest.raises(RunError, match="another process"):
        train(config)


def test_run_lock_warns_without_file_locks(folder, monkeypatch, caplog):
    def lockless(*arguments):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", lockless)
    config = toy.config(folder)
    train(config)
    assert read_config(config.folder) == config
    assert read_results(config)["updates"] == 20 and "this file system has no locks" in caplog.text


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RunError("diverged"), "ERROR diverged\n"),
        (KeyError("x"), "KeyError: 'x'\n"),
        (Interrupted(1, "saved"), "saved\n"),
    ],
)
def test_log_file_has_final_exception(tmp_path, error, expected):
    with pytest.raises(type(error)), _log_to_file(tmp_path / "train.log"):
        raise error
    log = (tmp_path / "train.log").read_text()
    assert log.endswith(expected)
    assert ("Traceback" in log) == isinstance(error, KeyError)


@pytest.mark.parametrize("place", [".lock", "train.log", "checkpoints", "tensorboard"])
def test_run_folder_refuses_links_out(folder, place):
    config = toy.config(folder)
    config.folder.mkdir(parents=True)
    mine = folder / "mine"
    if "." in place:
        mine.write_text("mine")
    else:
        (mine / ".unfinished.partial").mkdir(parents=True)
    (config.folder / place).symlink_to(mine)
    with pytest.raises(InputError, match=f"{place}: a link that leads out of the folder"):
        train(config)
    assert mine.read_text() == "mine" if mine.is_file() else len(list(mine.iterdir())) == 1


def test_run_folder_contents(shared_runs):
    folder, run = shared_runs.folder, shared_runs["transformer-1"]
    names = {path.name for path in run.iterdir()}
    assert names >= {
        "config.yaml", "model.yaml", "tokenizer.model", "model.safetensors", "checkpoints", "metrics.jsonl",
        "results.json", "scored", "provenance.json", "tensorboard", "train.log",
    }  # fmt: skip
    results = json.loads((run / "results.json").read_text())
    assert {"bleu", "bleu_signature", "chrf", "chrf_signature", "ter", "ter_signature"} <= results.keys()
    assert (run / "scored/test.source").read_text() == (folder / "test.xx").read_text()
    assert (run / "scored/test.reference").read_text() == (folder / "test.yy").read_text()
    assert (
        Translator.load(run, device="cpu").translate((folder / "test.xx").read_text().splitlines())
        == (run / "scored/test.hypothesis").read_text().splitlines()
    )


def test_tensorboard_contents(shared_runs):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = shared_runs["transformer-1"]
    board = EventAccumulator(str(run / "tensorboard"))
    board.Reload()
    tags = board.Tags()
    for split in ("train", "valid"):
        lines = [line for line in read_metrics(run) if line["split"] == split]
        for name in lines[0].keys() - {"step", "split"}:
            points = [(point.step, point.value) for point in board.Scalars(f"{split}/{name}")]
            assert points == [(line["step"], pytest.approx(line[name], rel=1e-5)) for line in lines]
    assert tags["images"] == ["cross-attention/layer_1"]
    assert any("samples" in tag for tag in tags["tensors"])
    assert "train/target_tokens_per_second" in tags["scalars"]


def test_refused_run_keeps_files_of_user(folder):
    config = toy.config(folder, tokenizer={"vocabulary_size": 100_000})
    for mine in (["notes.txt"], []):
        config.folder.mkdir(parents=True)
        for name in mine:
            (config.folder / name).write_text("mine")
        with pytest.raises(InputError, match="more than the training text supports"):
            train(config)
        assert config.folder.exists() == bool(mine)
        if mine:
            assert (config.folder / "notes.txt").read_text() == "mine"
            shutil.rmtree(config.folder)


def test_check_memory_limits(tmp_path, monkeypatch):
    toy.write_corpus(tmp_path, "copy", train=60)
    config = toy.config(tmp_path)
    workers = Workers(torch.device("cpu"))
    tokenizers = toy.prepared(config).tokenizers
    parameters = build_model(config.model, tokenizers).parameter_count
    sharded = toy.config(tmp_path, training={"shard": True})
    for size, settings, needed in ((1, config, 12), (2, config, 12), (2, sharded, 8)):
        workers.size = size
        monkeypatch.setattr(command, "memory_bytes", lambda device, there=needed * parameters: there)
        command.check_memory(settings, tokenizers, workers)
        monkeypatch.setattr(command, "memory_bytes", lambda device, there=needed * parameters - 1: there)
        with pytest.raises(InputError, match=f"the model has {parameters:,} parameters, .*choose a smaller model"):
            command.check_memory(settings, tokenizers, workers)
    # Four workers on one machine share its memory.
    workers.local_size = 4
    monkeypatch.setattr(command, "memory_bytes", lambda device: 12 * parameters)
    with pytest.raises(InputError, match="choose a smaller model"):
        command.check_memory(config, tokenizers, workers)


def test_too_long_path_leaves_no_folder(tmp_path):
    toy.write_corpus(tmp_path, "copy", train=60)
    origin = tmp_path / "origin"
    origin.mkdir()
    before = set(tmp_path.iterdir())
    longest = f"{origin}{'/../origin' * ((4095 - len(str(origin))) // 10)}"
    with pytest.raises((OSError, InputError)):  # OSError before Python 3.14
        train(toy.config(tmp_path, training={"init_from": longest}))
    assert set(tmp_path.iterdir()) == before


def test_too_large_model_leaves_no_folder(tmp_path):
    toy.write_corpus(tmp_path, "copy", train=60)
    before = set(tmp_path.iterdir())
    config = toy.config(tmp_path, model={"width": 65_536, "encoder_layers": 256})
    with pytest.raises(InputError, match="GB of memory"):
        train(config)
    assert set(tmp_path.iterdir()) == before


def test_glossary_is_copied_and_must_not_change(tmp_path: Path) -> None:
    toy.write_corpus(tmp_path, "copy", train=200)
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("ba\tba\nde fi\tde fi|zuzu\n")
    text = {"terms": str(glossary), "slots": toy.SLOTS}
    begun = toy.config(tmp_path, text=text, training={"max_updates": 10})
    train(begun)
    assert NativeFolder(begun.folder).read_terms() == {"ba": ("ba",), "de fi": ("de fi", "zuzu")}
    glossary.write_text("ba\tzaza\n")
    with pytest.raises(InputError, match=r"text\.terms=.*terms\.tsv has changed since .*toy was begun"):
        train(toy.config(tmp_path, text=text, training={"max_updates": 20}))
    glossary.unlink()
    assert Translator.load(begun.folder, device="cpu").translate(["ba"]) == ["ba"]
    with pytest.raises(InputError, match=r"terms\.tsv: no such file"):
        train(toy.config(tmp_path, name="other", text=text))
    (begun.folder / TERMS).unlink()
    with pytest.raises(InputError, match=r"terms\.json"):
        Translator.load(begun.folder)
    assert read_description(begun.folder).text.terms is not None


def test_glossary_without_translations_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    toy.write_corpus(tmp_path, "copy", train=200)
    (tmp_path / "terms.tsv").write_text("ba = ba\nfi go\n")
    text = {"terms": str(tmp_path / "terms.tsv"), "slots": toy.SLOTS}
    train(toy.config(tmp_path, text=text, training={"max_updates": 6}))
    assert caplog.text.count("terms.tsv: has one column, so its terms stay untranslated: 2.") == 1
