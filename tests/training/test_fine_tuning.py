"""Fine-tuning begins from another run's weights, tokenizer and settings. Dropout stays its own."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from mt.config import TokenizerConfig, TransformerConfig
from mt.config.resolved import Resolved
from mt.core.errors import InputError
from mt.storage.run_folder import read_config
from mt.training import run_state
from mt.training.command import train
from tests import toy
from tests.training.runs import read_results, train_until


def test_fine_tuning_another_model_names_the_settings_to_change(folder, shared_runs):
    base = shared_runs["transformer-1"]
    tuned = toy.config(folder, "tuned", model={"width": 64, "dropout": 0.3}, training={"init_from": str(base)})
    with pytest.raises(InputError, match=r"^model\.width=64: .* or set model\.width=32$"):
        train(tuned)


def test_fine_tuning_another_architecture_names_the_models_to_take(folder, shared_runs):
    base = shared_runs["transformer-1"]
    tuned = toy.config(folder, "tuned", "rnn", training={"init_from": str(base)})
    with pytest.raises(InputError, match=r"is a transformer, this run a rnn_attention; .* one of model=transformer_"):
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
