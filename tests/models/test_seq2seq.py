"""What every model must keep: causality, padding that changes nothing, cached = uncached, rows that go on alone."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from mt.data.batching.batch import collate
from mt.models.build import build_meta_model, build_model
from mt.models.embedding import TokenEmbedding
from mt.tokenizer.tokenizer import BOS
from tests import toy
from tests.models.pairs import SOURCES, TARGETS, decoded, three_pairs
from tests.processes import PROJECT

VOCABULARY = 30
TRANSFORMER = {
    "architecture": "transformer", "width": 16, "feed_forward": 24, "heads": 4, "encoder_layers": 2,
    "decoder_layers": 3, "dropout": 0.0,
}  # fmt: skip
RNN = {
    "architecture": "rnn", "width": 16, "hidden": 24, "encoder_layers": 2, "decoder_layers": 2,
    "dropout": 0.0,
}  # fmt: skip
MODELS = [
    TRANSFORMER,
    TRANSFORMER | {"norm": "post"},
    TRANSFORMER | {"positions": "learned"},
    RNN,
    RNN | {"attention": "dot", "layer_norm": False, "residual": False, "decoder_layers": 1},
    RNN | {"readout": False, "tie_embeddings": False, "encoder_layers": 1},
]


def _build(values, joint=True):
    return toy.model(vocabulary=VOCABULARY, joint=joint, **values)


@pytest.fixture(params=MODELS, ids=lambda values: "-".join(str(v) for v in values.values()))
def model(request):
    return _build(request.param)


@pytest.mark.parametrize("training", [True, False])
def test_decoder_is_causal(model, training):
    model.train(training)
    batch = three_pairs()
    embedded = []
    for part in model.modules():
        if isinstance(part, TokenEmbedding):
            part.register_forward_hook(lambda module, inputs, output: embedded.append(output))
    features = decoded(model, batch)
    target = embedded[-1]
    for t in range(features.shape[1]):
        (gradient,) = torch.autograd.grad(features[1, t].square().sum(), target, retain_graph=True)
        assert (gradient[1, : t + 1].abs().sum(dim=-1) > 0).all()
        assert (gradient[1, t + 1 :] == 0).all()
        assert (gradient[[0, 2]] == 0).all()


@pytest.mark.parametrize("training", [True, False])
def test_padding_does_not_change_logits(model, training):
    model.train(training)
    together = three_pairs()
    logits = model.project(decoded(model, together))
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = collate([source], [target])
        expected = model.project(decoded(model, alone))
        assert torch.allclose(logits[row, : len(target) + 1], expected[0], atol=1e-5)


def test_decode_step_equals_teacher_forcing(model):
    model.eval()
    batch = three_pairs()
    memory = model.encode(batch.source)
    expected = model.decode(memory, batch.target_input)
    state = model.init_state(memory)
    for t in range(batch.target_input.shape[1]):
        features, state = model.decode_step(batch.target_input[:, t], state)
        assert torch.allclose(features, expected[:, t], atol=1e-5)


def test_state_select_keeps_hypotheses(model):
    model.eval()
    source = three_pairs().source
    # Two beams each for sentences 2 and 0 (sentence 1 is finished), then the beams of the first change places.
    state = model.init_state(model.encode(source))
    _, state = model.decode_step(torch.full((3,), BOS), state)
    state = state.select(torch.tensor([[2, 2], [0, 0]]))
    _, state = model.decode_step(torch.tensor([20, 21, 22, 23]), state)
    state = state.select(torch.tensor([[1, 0], [2, 3]]))
    features, _ = model.decode_step(torch.tensor([24, 25, 26, 27]), state)
    for row, (sentence, prefix) in enumerate([(2, [21, 24]), (2, [20, 25]), (0, [22, 26]), (0, [23, 27])]):
        alone = model.encode(source[[sentence]])
        expected = model.decode(alone, torch.tensor([[BOS, *prefix]]))[0, -1]
        assert torch.allclose(features[row], expected, atol=1e-5)


@pytest.mark.parametrize("values", [TRANSFORMER, RNN], ids=["transformer", "rnn"])
@pytest.mark.parametrize(
    ("tied", "joint", "matrices"), [(True, True, 1), (True, False, 2), (False, True, 3), (False, False, 3)]
)
def test_tie_embeddings(values, tied, joint, matrices):
    model = _build(values | {"tie_embeddings": tied}, joint)
    looked_up = [part.weight for part in model.modules() if isinstance(part, TokenEmbedding)]
    assert len({id(weight) for weight in [*looked_up, model.output_weight]}) == matrices


@pytest.mark.parametrize("values", [TRANSFORMER, RNN], ids=["transformer", "rnn"])
def test_every_weight_gets_a_gradient(values):
    model = _build(values)
    batch = three_pairs()
    model.project(decoded(model, batch)).square().sum().backward()
    without = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert not without


@pytest.mark.parametrize(
    ("architecture", "changes"),
    [("transformer", {}), ("transformer", {"positions": "learned"}), ("transformer", {"norm": "post"}), ("rnn", {})],
)
def test_build_meta_model_has_shapes_of_model(tmp_path, architecture, changes):
    config = toy.config(tmp_path, architecture=architecture, model=changes).model
    source, target = SimpleNamespace(vocabulary_size=50), SimpleNamespace(vocabulary_size=40)
    tokenizers = SimpleNamespace(source=source, target=target, joint=False)
    random_state = torch.get_rng_state()
    shapes = build_meta_model(config, tokenizers)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(parameter.is_meta for parameter in shapes.parameters())
    model = build_model(config, tokenizers)
    assert shapes.parameter_count == model.parameter_count
    described, expected = shapes.state_dict(), model.state_dict()
    assert {name: (weight.shape, weight.dtype) for name, weight in described.items()} == {
        name: (weight.shape, weight.dtype) for name, weight in expected.items()
    }


def test_translating_does_not_import_compiler_or_datasets():
    """Each takes longer to import than to read a small model and translate with it."""
    runs = [str(PROJECT / "tests/releases/1.0.0" / name) for name in ("transformer", "rnn")]
    script = (
        "import sys\nfrom mt.translation.translator import Translator\n"
        f"for run in {runs!r}:\n    Translator.load(run).translate(['ba de fi'])\n"
        "    assert not {'torch._dynamo', 'datasets'} & sys.modules.keys(), run"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
