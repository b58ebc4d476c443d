"""Tests of ``training.freeze``: frozen parts do not change and have no optimizer state."""

import pytest
import torch
from safetensors.torch import load_file

from mt.core.errors import InputError
from mt.storage.weights import weights_of
from mt.training.command import train
from mt.training.initial_weights import initial_model
from tests import toy
from tests.training.runs import ALONE, has_weights_of, train_until


@pytest.mark.parametrize(
    ("architecture", "kind", "parts", "frozen"),
    [
        ("transformer", "muon", ["encoder.layers.0", "embeddings"], ("encoder.layers.", "encoder.embedding.")),
        ("transformer", "auto", ["encoder", "decoder.layers"], ("encoder.", "decoder.layers.")),  # no matrix for Muon
        ("transformer", "adamw", ["encoder", "decoder"], ("encoder.", "decoder.")),  # not the output layer
        ("rnn", "adamw", ["encoder", "decoder.cross_attention"], ("encoder.", "decoder.cross_attention.")),
    ],
)
def test_freeze_keeps_parts_and_resumes_bitwise(folder, architecture, kind, parts, frozen):
    """With tied embeddings unless the decoder is frozen."""
    training = {"freeze": parts, "optimizer": {"kind": kind, "weight_decay": 0.1}, "validate_every": 6}
    training |= {"weights": "average", "average": 3, "keep_last": 3}
    model = toy.MODELS[architecture] | {"tie_embeddings": "decoder" not in parts}
    whole, broken = (
        toy.config(folder, name, architecture, model=model, training=training) for name in ("whole", "broken")
    )
    before = weights_of(initial_model(whole, toy.prepared(whole), ALONE, None)[0])
    train(whole)
    after = load_file(whole.folder / "model.safetensors")
    trained = 0
    for name, weight in after.items():
        assert torch.equal(weight, before[name]) == name.startswith(frozen), name
        trained += 0 if name.startswith(frozen) else weight.numel()
    state = load_file(whole.folder / "checkpoints/step_20/optimizer.safetensors")
    assert sum(value.numel() for name, value in state.items() if name.endswith(("exp_avg", "buffer"))) == trained
    train_until(broken, 7)
    train(broken)
    assert has_weights_of(whole, broken)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (["encoder", "encoder.layers.1"], "no part encoder.layers.1; did you mean encoder.layers.0?"),
        (["encoder", "decoder", "output"], "leaves nothing to train"),
    ],
)
def test_freeze_refuses_unknown_parts_before_reading_corpus(tmp_path, parts, message):
    with pytest.raises(InputError, match=message):
        train(toy.config(tmp_path, training={"freeze": parts}))  # there are no files
