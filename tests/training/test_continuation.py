"""Tests of ``training.continue_from``: bitwise with equal settings, and as documented with others."""

import re

import pytest

from mt.core.errors import InputError
from mt.training.checkpoint import checkpoint_folders, newest_checkpoint
from mt.training.command import train
from mt.training.provenance import read_provenance
from tests import toy
from tests.in_process import call
from tests.training.runs import read_metrics, train_until

CHANGES = {"text": {"augmentation": toy.CHANGED}, "tokenizer": {"sampling": 0.2}, "model": {"dropout": 0.2}}


@pytest.mark.parametrize("weights", ["best", "average"])
def test_continue_from_with_equal_settings_is_bitwise_equal(folder, weights):
    training = {"max_updates": 23, "save_every": 6, "keep_last": 3, "weights": weights, "average": 3}
    training = {"optimizer": {"kind": "auto"}} | training if weights == "average" else training | {"average": 5}
    first = toy.config(folder, "first", **CHANGES, training=training)
    train(first)
    update = min(checkpoint_folders(first.folder))
    continued = {"continue_from": f"{first.folder}@{update}"}
    second = toy.config(folder, "second", **CHANGES, training=training | continued)
    train_until(second, 22)
    moved = first.folder.rename(folder / "moved")
    train(second)
    for path in moved.rglob("*.safetensors"):
        assert path.read_bytes() == (second.folder / path.relative_to(moved)).read_bytes(), path
    assert read_metrics(moved) == read_metrics(second.folder)
    assert (moved / "scored/test.hypothesis").read_bytes() == (second.folder / "scored/test.hypothesis").read_bytes()
    assert [start["update"] for start in read_provenance(second.folder)["starts"]] == [0, update, 22]


@pytest.fixture
def run_second(tmp_path, shared_runs):
    """Return a function that trains ``second``, which continues a run of 80 updates, by a command line."""
    base = shared_runs["transformer-1"]

    def run(*words):
        start = f"name=second runs={tmp_path} training.continue_from={base}".split()
        return call("train", *start, *words, folder=shared_runs.folder).stderr

    return run


def test_reset_restarts_optimizer_schedule_and_data(tmp_path, run_second):
    words = [
        "training.max_updates=85",
        "training.log_every=1",
        "training.schedule.warmup=3",
        "data.valid=[test.xx,test.yy]",
    ]
    run_second(*words, "training.optimizer.kind=muon", "training.reset=[optimizer,schedule,data]", "seed=2")
    progress = newest_checkpoint(tmp_path / "second").progress
    lines = [line for line in read_metrics(tmp_path / "second") if line["step"] >= 80]
    rates = [line["learning_rate"] for line in lines if line["split"] == "train"]
    assert rates[-5:] == pytest.approx([5e-3 * share for share in (1 / 3, 2 / 3, 1, 1 / 2, 0)])
    assert (progress.epoch, progress.batch) == (0, 5)
    assert [line["step"] for line in lines if line["split"] == "valid"] == [80, 80, 85]  # by another validation set


def test_continue_from_keeps_epoch_share_with_another_batch_size(tmp_path, shared_runs, run_second):
    before = newest_checkpoint(shared_runs["transformer-1"]).progress
    run_second("training.max_updates=81", "training.batch_tokens=128")
    after = newest_checkpoint(tmp_path / "second").progress
    assert (after.epoch, after.batch) == (before.epoch, 2 * before.batch + 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["seed=2"], "seed: 1 in .*, now 2 (needs a reset: data)"),
        (["model.width=64"], "model.width: 32 in .*, now 64 (needs a reset: run)"),
        (["model=rnn_attention"], "leave model out"),
        ([], "training.max_updates=80 includes the 80 updates"),
        (["data.train=[valid.xx,valid.yy]", "training.max_updates=90"], "the train pairs have changed"),
        (["training.continue_from=nowhere"], "no such run"),
    ],
)
def test_continue_from_refusals_leave_no_folder(tmp_path, run_second, words, message):
    assert re.search(re.escape(message).replace(r"\.\*", ".*"), run_second(*words))
    assert not (tmp_path / "second").exists()


def test_changed_settings_error_shows_continuing_command(folder):
    first = toy.config(folder, "first")
    train_until(first, 12)
    with pytest.raises(InputError) as refusal:
        train(toy.config(folder, "first", training={"batch_tokens": 128}))
    name, *words = refusal.value.args[0].splitlines()[-1].split("train.py ")[1].split()
    assert name == "name=first-2"
    assert "update 20" in call("train", name, *words, folder=folder).stderr
    train(first)
    with pytest.raises(InputError, match="has ended with another config") as refusal:
        train(toy.config(folder, "first", seed=2))
    assert "choose another name" in str(refusal.value) and "old values" not in str(refusal.value)
