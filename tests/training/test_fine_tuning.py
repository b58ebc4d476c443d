"""Tests of fine-tuning: inherited settings, and the interpolation with the base model (``training.start_share``)."""

import functools
import os
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from mt.config import TokenizerConfig, TransformerConfig
from mt.config.resolved import Resolved
from mt.core.errors import InputError, Interrupted
from mt.storage.run_folder import read_config
from mt.storage.weights import weights_of
from mt.training import run_state
from mt.training.checkpoint import INITIAL_WEIGHTS, newest_checkpoint
from mt.training.command import train
from mt.training.initial_weights import WeightInterpolation
from mt.translation.translator import Translator
from tests import toy
from tests.processes import Together, finish
from tests.training.runs import read_metrics, read_results, train_until


@pytest.mark.parametrize(
    ("architecture", "model", "message"),
    [
        ("transformer", {"width": 64, "dropout": 0.3}, r"^model\.width=64: .* or set model\.width=32$"),
        ("rnn", {}, r"is a transformer, this run a rnn_attention; .* one of model=transformer_"),
    ],
)
def test_init_from_refuses_other_model_settings(folder, shared_runs, architecture, model, message):
    base = shared_runs["transformer-1"]
    tuned = toy.config(folder, "tuned", architecture, model=model, training={"init_from": str(base)})
    with pytest.raises(InputError, match=message):
        train(tuned)


def test_init_from_inherits_tokenizer_settings(folder):
    base = toy.config(folder, "base", tokenizer={"joint": False, "vocabulary_size": 310})
    train(base)
    tuned = toy.config(folder, "tuned", tokenizer={"vocabulary_size": 5000}, training={"init_from": str(base.folder)})
    with pytest.raises(InputError, match=r"^tokenizer.vocabulary_size=5000: .* or set tokenizer.vocabulary_size=310$"):
        train(tuned)
    tuned = tuned.model_copy(update={"tokenizer": TokenizerConfig(sampling=0.1)})
    train_until(tuned, 7)
    # Before the first update, the weights that it began with are the best so far.
    begun = [load_file(run.folder / "model.safetensors") for run in (base, tuned)]
    assert all(torch.equal(begun[0][name], begun[1][name]) for name in begun[0])
    recorded = read_config(tuned.folder).tokenizer
    assert (recorded.joint, recorded.vocabulary_size, recorded.sampling) == (False, 310, 0.1)
    shutil.rmtree(base.folder)  # what a run needs to go on lies in its own folder
    train(tuned)
    assert read_results(tuned)["updates"] == 20


def test_init_from_does_not_follow_links(folder):
    (folder / "secret").write_text("password: [")
    (folder / "origin").mkdir()
    (folder / "origin/model.yaml").symlink_to(folder / "secret")
    with pytest.raises(InputError, match="leads out of the folder") as refused:
        train(toy.config(folder, training={"init_from": str(folder / "origin")}))
    assert "password" not in str(refused.value)


@pytest.mark.parametrize("width", [TransformerConfig(architecture="transformer").width, 64])
@pytest.mark.parametrize(("typed", "expected"), [({}, 0.1), ({"dropout": 0.25}, 0.25)])
def test_inherit_model_keeps_own_dropout(monkeypatch, tmp_path, width, typed, expected):
    base = TransformerConfig(architecture="transformer", width=width, dropout=0.3)
    monkeypatch.setattr(run_state, "read_description", lambda path: SimpleNamespace(model=base))
    own = TransformerConfig(architecture="transformer", **typed)
    resolved = Resolved.of(toy.config(tmp_path).model_copy(update={"model": own}))
    tuned = run_state.inherit_model(Path("base"), resolved)
    assert (tuned.config.model.width, tuned.config.model.dropout) == (width, expected)
    assert tuned.is_given("model.dropout") == bool(typed)


SHARE = 0.25
assert_equal = functools.partial(torch.testing.assert_close, rtol=0, atol=0)


def mean(start, learned):
    return {name: (SHARE * start[name].double() + (1 - SHARE) * learned[name].double()).float() for name in start}


def test_weight_interpolation_restores_trained_weights():
    first, learned = toy.model(seed=1), toy.model(seed=2)
    start, own = ({name: w.clone() for name, w in weights_of(model).items()} for model in (first, learned))
    interpolation = WeightInterpolation(weights_of(first), SHARE)
    with torch.no_grad():
        next(first.parameters()).zero_()  # the start was copied
    with interpolation.applied_to(learned):
        torch.testing.assert_close(weights_of(learned), mean(start, own))
        assert_equal(interpolation.trained_weights(learned), own)
    assert_equal(weights_of(learned), own)
    assert_equal(interpolation.trained_weights(learned), own)
    torch.testing.assert_close(interpolation.interpolated(own), mean(start, own))
    assert not WeightInterpolation(own, 0.0).initial_weights


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    toy.write_corpus(folder, "copy", train=300)
    config = toy.config(folder, "base")
    train(config)
    return config


def tuned(base, name, start=None, **training):
    values = {"init_from": str(start or base.folder), "start_share": SHARE, "max_updates": 20} | training
    return toy.config(base.folder.parent.parent, name, training=values)


@pytest.mark.parametrize("weights", ["last", "average", "best"])
def test_start_share_changes_only_final_weights(base, weights):
    settings = {"weights": weights, "keep_last": 2} | ({"average": 2} if weights == "average" else {})
    blended, plain = tuned(base, f"blended-{weights}", **settings), tuned(base, f"plain-{weights}", **settings)
    plain = plain.model_copy(update={"training": plain.training.model_copy(update={"start_share": 0.0})})
    train(blended)
    train(plain)
    for update in (10, 20):  # what training itself does is the same to the bit
        file = f"checkpoints/step_{update}/model.safetensors"
        assert (blended.folder / file).read_bytes() == (plain.folder / file).read_bytes()
    start = load_file(base.folder / "model.safetensors")
    trained = {
        update: load_file(blended.folder / f"checkpoints/step_{update}/model.safetensors") for update in (10, 20)
    }
    learned = {
        "last": trained[20],
        "average": {name: (trained[10][name] + trained[20][name]) / 2 for name in start},
        "best": (trained | {0: start})[read_results(blended)["best_update"]],
    }
    torch.testing.assert_close(load_file(blended.folder / "model.safetensors"), mean(start, learned[weights]))


def test_start_share_run_resumes_from_its_copy_of_weights(base, tmp_path, monkeypatch):
    """The base model changes before the run is resumed. A signal also interrupts a validation."""
    start = tmp_path / "start"
    shutil.copytree(base.folder, start)
    whole, stopped = tuned(base, "whole", start), tuned(base, "stopped", start)
    train(whole)
    train_until(stopped, 7)
    assert_equal(load_file(stopped.folder / INITIAL_WEIGHTS), load_file(base.folder / "model.safetensors"))
    shutil.copy(whole.folder / "checkpoints/step_20/model.safetensors", start / "model.safetensors")
    real = Translator.translate
    monkeypatch.setattr(
        Translator, "translate", lambda *rest, **options: os.kill(os.getpid(), signal.SIGINT) or real(*rest, **options)
    )
    with pytest.raises(Interrupted):
        train(stopped)
    checkpoint = newest_checkpoint(stopped.folder)
    assert checkpoint.progress.validation_due and checkpoint.progress.update == 10
    monkeypatch.setattr(Translator, "translate", real)
    train(stopped)
    for name in ("model.safetensors", "checkpoints/step_20/model.safetensors"):
        assert (whole.folder / name).read_bytes() == (stopped.folder / name).read_bytes()
    assert read_metrics(whole.folder) == read_metrics(stopped.folder)


def test_start_share_with_sharded_workers(base):
    config = tuned(base, "sharded", weights="last", shard=True)
    status, said = finish(Together(toy.words(config), 2))
    assert status == 0, said
    start, learned = (
        load_file(one)
        for one in (config.folder / INITIAL_WEIGHTS, config.folder / "checkpoints/step_20/model.safetensors")
    )
    assert_equal(start, load_file(base.folder / "model.safetensors"))
    assert any(not torch.equal(start[name], weight) for name, weight in learned.items())
    torch.testing.assert_close(load_file(config.folder / "model.safetensors"), mean(start, learned))


def test_corrupted_initial_weights_are_refused(base):
    config = tuned(base, "corrupted")
    train_until(config, 7)
    kept = config.folder / INITIAL_WEIGHTS
    content = bytearray(kept.read_bytes())
    content[-5] ^= 1
    kept.write_bytes(content)
    with pytest.raises(InputError, match=r"start\.safetensors: corrupted"):
        train(config)
    kept.unlink()
    with pytest.raises(InputError, match=r"start\.safetensors: no such file"):
        train(config)
