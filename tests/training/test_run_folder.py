"""What a run folder holds, and what is never written to it or read from it."""

import errno
import json
import shutil
from collections import Counter

import pytest
import torch
from safetensors.torch import load_file

from mt.core.errors import InputError, Interrupted, RunError
from mt.metrics.word_counts import read_word_counts
from mt.storage.run_folder import read_config
from mt.training.checkpoint import checkpoint_folders
from mt.training.command import _log_file, _only_process, train
from mt.translation.translator import Translator
from tests import toy
from tests.training.runs import read_metrics, read_results


def test_average_is_the_mean_of_the_last_checkpoints(folder):
    config = toy.config(
        folder, training={"weights": "average", "average": 3, "keep_last": 3, "save_every": 5, "max_updates": 20}
    )
    train(config)
    folders = list(checkpoint_folders(config.folder).values())
    assert [path.name for path in folders] == ["step_10", "step_15", "step_20"]
    several = [load_file(path / "model.safetensors") for path in folders]
    for name, tensor in load_file(config.folder / "model.safetensors").items():
        assert torch.allclose(tensor, sum(weights[name] for weights in several) / 3, atol=1e-7)


def test_a_run_counts_the_words_of_its_training_targets(shared_runs):
    counted = read_word_counts(shared_runs["transformer-1"], "yy")
    assert counted == Counter((shared_runs.folder / "train.yy").read_text().split())


def test_two_processes_cannot_train_one_run(folder):
    config = toy.config(folder)
    config.folder.mkdir(parents=True)
    with _only_process(config.folder), pytest.raises(RunError, match="another process"):
        train(config)


def test_a_disk_without_locks_is_warned_of(folder, monkeypatch, caplog):
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
def test_the_log_says_why_a_run_ended(tmp_path, error, expected):
    with pytest.raises(type(error)), _log_file(tmp_path / "train.log"):
        raise error
    log = (tmp_path / "train.log").read_text()
    assert log.endswith(expected)
    assert ("Traceback" in log) == isinstance(error, KeyError)


@pytest.mark.parametrize("place", [".lock", "train.log", "checkpoints", "tensorboard"])
def test_nothing_is_written_through_a_link_out_of_the_folder(folder, place):
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


def test_a_run_folder_holds_what_it_promises(shared_runs):
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


def test_tensorboard_shows_figures_samples_and_attention(shared_runs):
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


def test_a_refused_run_takes_no_file_of_the_user_with_it(folder):
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
