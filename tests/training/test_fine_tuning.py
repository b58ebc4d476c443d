"""Fine-tuning begins from another run's weights, tokenizer and settings. Dropout stays its own.

The weights stay, by their share, in those that a run validates and delivers, and nowhere else."""

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
from mt.training.checkpoint import START, newest_checkpoint
from mt.training.command import train
from mt.training.initial_weights import Blend
from mt.translation.translator import Translator
from tests import toy
from tests.processes import Together, finish
from tests.training.runs import read_metrics, read_results, read_validations, train_until


@pytest.mark.parametrize(
    ("architecture", "model", "message"),
    [
        ("transformer", {"width": 64, "dropout": 0.3}, r"^model\.width=64: .* or set model\.width=32$"),
        ("rnn", {}, r"is a transformer, this run a rnn_attention; .* one of model=transformer_"),
    ],
)
def test_init_from_another_model_names_the_settings_to_change(folder, shared_runs, architecture, model, message):
    base = shared_runs["transformer-1"]
    tuned = toy.config(folder, "tuned", architecture, model=model, training={"init_from": str(base)})
    with pytest.raises(InputError, match=message):
        train(tuned)


def test_settings_of_a_tokenizer_that_another_run_brings_are_that_runs_own(folder):
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


def test_fine_tuning_reads_nothing_through_a_link(folder):
    (folder / "secret").write_text("password: [")
    (folder / "origin").mkdir()
    (folder / "origin/model.yaml").symlink_to(folder / "secret")
    with pytest.raises(InputError, match="leads out of the folder") as refused:
        train(toy.config(folder, training={"init_from": str(folder / "origin")}))
    assert "password" not in str(refused.value)


@pytest.mark.parametrize("width", [TransformerConfig(architecture="transformer").width, 64])
@pytest.mark.parametrize(("typed", "expected"), [({}, 0.1), ({"dropout": 0.25}, 0.25)])
def test_dropout_is_never_inherited(monkeypatch, tmp_path, width, typed, expected):
    base = TransformerConfig(architecture="transformer", width=width, dropout=0.3)
    monkeypatch.setattr(run_state, "read_description", lambda path: SimpleNamespace(model=base))
    own = TransformerConfig(architecture="transformer", **typed)
    resolved = Resolved.of(toy.config(tmp_path).model_copy(update={"model": own}))
    tuned = run_state.inherit_model(Path("base"), resolved)
    assert (tuned.config.model.width, tuned.config.model.dropout) == (width, expected)
    assert tuned.is_given("model.dropout") == bool(typed)


SHARE = 0.25


def copies(of):
    return {name: weight.clone() for name, weight in weights_of(of).items()}


def assert_equal(ones, others):
    assert ones.keys() == others.keys()
    for name, one in ones.items():
        assert torch.equal(one, others[name]), name


def mean(start, learned):
    return {name: SHARE * start[name].double() + (1 - SHARE) * learned[name].double() for name in start}


def assert_close(ones, others):
    assert ones.keys() == others.keys()
    for name, one in ones.items():
        torch.testing.assert_close(one.double(), others[name], rtol=1e-6, atol=1e-7)


def test_a_model_is_blended_for_a_while_and_has_its_own_weights_again():
    first, learned = toy.model(seed=1), toy.model(seed=2)
    start, own = copies(first), copies(learned)
    blend = Blend(weights_of(first), SHARE)
    with torch.no_grad():
        next(first.parameters()).zero_()  # the start was copied
    with blend.applied_to(learned):
        assert_close(weights_of(learned), mean(start, own))
        assert_equal(blend.unblended(learned), own)
    assert_equal(weights_of(learned), own)
    assert_equal(blend.unblended(learned), own)
    assert_close(blend.blended(own), mean(start, own))


def test_a_share_of_nothing_copies_nothing():
    learned = toy.model(seed=2)
    blend = Blend(weights_of(learned), 0.0)
    own = weights_of(learned)
    assert not blend.start and blend.blended(own) is own
    with blend.applied_to(learned):
        assert not blend._unblended
        assert all(blend.unblended(learned)[name].data_ptr() == weight.data_ptr() for name, weight in own.items())


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
def test_what_is_delivered_is_the_blend_and_training_resumes_without_it(base, weights):
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
    assert_close(load_file(blended.folder / "model.safetensors"), mean(start, learned[weights]))


def test_what_is_validated_is_the_blend(base):
    """The loss of the last validation is that of the weights that are delivered."""
    config = tuned(base, "validated", weights="last")
    train(config)
    losses = [line["loss"] for line in read_validations(config.folder)]
    again = tuned(base, "again", start=config.folder, start_share=0.0, max_updates=6)  # validates what it begins with
    train(again)
    first = next(line["loss"] for line in read_metrics(again.folder) if line["split"] == "valid")
    assert len(losses) == 3 and losses[-1] == pytest.approx(first, rel=1e-5)


def test_a_stopped_run_resumes_bitwise_from_the_weights_that_it_kept(base, tmp_path, monkeypatch):
    """Those in the other folder may be others, or gone, when it goes on. A signal comes in a validation, too."""
    start = tmp_path / "start"
    shutil.copytree(base.folder, start)
    whole, stopped = tuned(base, "whole", start), tuned(base, "stopped", start)
    train(whole)
    train_until(stopped, 7)
    assert_equal(load_file(stopped.folder / START), load_file(base.folder / "model.safetensors"))
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


def test_workers_with_sharded_weights_deliver_the_blend(base):
    config = tuned(base, "sharded", weights="last", shard=True)
    status, said = finish(Together(toy.words(config), 2))
    assert status == 0, said
    start, learned = (
        load_file(one) for one in (config.folder / START, config.folder / "checkpoints/step_20/model.safetensors")
    )
    assert_equal(start, load_file(base.folder / "model.safetensors"))
    assert any(not torch.equal(start[name], weight) for name, weight in learned.items())
    assert_close(load_file(config.folder / "model.safetensors"), mean(start, learned))


def test_damage_to_the_weights_that_it_began_with_is_named(base):
    config = tuned(base, "corrupted")
    train_until(config, 7)
    kept = config.folder / START
    content = bytearray(kept.read_bytes())
    content[-5] ^= 1
    kept.write_bytes(content)
    with pytest.raises(InputError, match=r"start\.safetensors: corrupted"):
        train(config)
    kept.unlink()
    with pytest.raises(InputError, match=r"start\.safetensors: no such file"):
        train(config)
