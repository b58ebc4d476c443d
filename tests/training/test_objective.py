"""The chunked losses against PyTorch's own formulas, values and gradients."""

from functools import partial

import pytest
import torch
from torch.nn import functional

from mt.config import TrainingConfig
from mt.data.batching.batch import collate
from mt.models.embedding import TokenEmbedding, cut_embeddings
from mt.training.objective import Objective, OutputLayer, cross_entropy, projected_loss, r_drop, simcut
from tests import toy

ALPHA = 3.0


def _tensors(rows, predictions, vocabulary=40):
    torch.manual_seed(0)
    features = [torch.randn(rows, 8, requires_grad=True) for _ in range(predictions)]
    output = OutputLayer(torch.randn(vocabulary, 8, requires_grad=True), torch.randn(vocabulary, requires_grad=True))
    return features, output, torch.randint(1, vocabulary, (rows,))


def _plain_cross_entropy(features, output, labels, smoothing):
    logits = functional.linear(features, *output)
    return functional.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")


def _divergence(one, other, output):
    """Return the sum of KL(one ‖ other)."""
    log_p, log_q = (functional.linear(features, *output).log_softmax(dim=-1) for features in (one, other))
    return functional.kl_div(log_q, log_p, log_target=True, reduction="sum")


def _plain_simcut(plain, cut, output, labels, smoothing):
    return _plain_cross_entropy(plain, output, labels, smoothing) + ALPHA * _divergence(plain, cut, output)


def _plain_r_drop(one, other, output, labels, smoothing):
    likelihoods = sum(_plain_cross_entropy(features, output, labels, smoothing) for features in (one, other))
    divergences = (_divergence(one, other, output) + _divergence(other, one, output)) / 2
    return (likelihoods + ALPHA * divergences) / 2


LOSSES = {
    "cross_entropy": (cross_entropy, _plain_cross_entropy, 1),
    "simcut": (partial(simcut, alpha=ALPHA), _plain_simcut, 2),
    "r_drop": (partial(r_drop, alpha=ALPHA), _plain_r_drop, 2),
}


@pytest.mark.parametrize("cached_logits", [1, 40 * 100, 2**17])  # 16, 100 and all rows of a part
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 512, 1300])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("has_bias", [True, False])
def test_projected_loss_equals_pytorch(name, rows, smoothing, cached_logits, has_bias, monkeypatch):
    monkeypatch.setattr("mt.training.objective.CACHED_LOGITS", cached_logits)
    ours, plain, predictions = LOSSES[name]
    features, output, labels = _tensors(rows, predictions)
    output = output if has_bias else OutputLayer(output.weight)
    loss = projected_loss(ours(smoothing), output, labels, *features) / rows
    expected_loss = plain(*features, output, labels, smoothing) / rows
    assert torch.allclose(loss, expected_loss, rtol=1e-5)
    inputs = (*features, *output) if has_bias else (*features, output.weight)
    actual, expected = (torch.autograd.grad(value, inputs) for value in (loss, expected_loss))
    for our_gradient, theirs in zip(actual, expected, strict=True):
        assert torch.allclose(our_gradient, theirs, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_projected_loss_under_bf16_autocast(name):
    ours, plain, predictions = LOSSES[name]
    features, output, labels = _tensors(600, predictions, vocabulary=50)
    with torch.autocast("cpu", torch.bfloat16):
        loss = projected_loss(ours(0.1), output, labels, *features)
    exact = plain(*features, output, labels, 0.1)
    assert torch.isclose(loss, exact, rtol=4e-3)
    actual, expected = (torch.autograd.grad(value, (*features, *output)) for value in (loss, exact))
    for our_gradient, theirs in zip(actual, expected, strict=True):
        assert our_gradient.dtype == torch.float32
        assert (our_gradient - theirs).norm() < 0.02 * theirs.norm()


def _model(architecture, dropout):
    return toy.model(architecture, 300, dropout=dropout)


@pytest.mark.parametrize("architecture", toy.MODELS)
class TestObjective:
    BATCH = collate([[5, 6, 7], [8], [9, 10]], [[11, 12], [13, 14, 15], [16]])

    def _loss(self, architecture, dropout=0.0, training=True, **settings):
        objective = Objective(_model(architecture, dropout), TrainingConfig(**settings)).train(training)
        return objective(self.BATCH)

    def test_consistency_objectives_without_noise_equal_cross_entropy(self, architecture):
        expected = self._loss(architecture)
        for settings in ({"objective": "r_drop"}, {"objective": "simcut", "cutoff": 0.0}):
            assert torch.isclose(self._loss(architecture, **settings), expected)

    def test_consistency_objectives_increase_with_noise(self, architecture):
        plain, little, much = (
            self._loss(architecture, objective="simcut", cutoff=cutoff, consistency=100.0) for cutoff in (0.0, 0.2, 0.6)
        )
        assert plain < little < much
        weak, strong = (
            self._loss(architecture, dropout=0.2, objective="r_drop", consistency=alpha) for alpha in (1.0, 100.0)
        )
        assert weak < strong

    def test_objective_in_evaluation_mode_is_cross_entropy(self, architecture):
        losses = [
            self._loss(architecture, dropout=0.3, training=False, objective=objective)
            for objective in ("cross_entropy", "simcut", "r_drop")
        ]
        assert torch.equal(losses[0], losses[1]) and torch.equal(losses[0], losses[2])

    @pytest.mark.parametrize("objective", ["cross_entropy", "simcut", "r_drop"])
    def test_objective_of_empty_batch_has_zero_gradients(self, architecture, objective):
        model = _model(architecture, dropout=0.1)
        loss = Objective(model, TrainingConfig(objective=objective)).train()(collate([], []))
        loss.backward()
        assert loss == 0
        assert all(torch.count_nonzero(parameter.grad) == 0 for parameter in model.parameters())


def _trace_whole(monkeypatch, backend):
    """Lets torch.compile fail where it would run Python between its kernels, and takes away its code generator, which
    needs half a minute: ``backend`` takes what was traced."""
    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend, fullgraph=True))


def _random_batch(pairs, source_length, target_length):
    return collate(*(torch.randint(4, 300, (pairs, n)).tolist() for n in (source_length, target_length)))


@pytest.mark.slow
def test_projected_loss_sums_bf16_weight_gradient_in_fp32():
    """A sum of 40 chunks in bf16 would be off by several times its rounding."""
    torch.manual_seed(0)
    weight = torch.randn(50, 16).bfloat16().requires_grad_()
    features, labels = torch.randn(40 * 512, 16).bfloat16().requires_grad_(), torch.randint(1, 50, (40 * 512,))
    exact = weight.detach().float().requires_grad_()
    ours, expected = (
        torch.autograd.grad(projected_loss(cross_entropy(0.0), OutputLayer(w), labels, x), w)[0].float()
        for w, x in ((weight, features), (exact, features.detach().float().requires_grad_()))
    )
    assert (ours - expected).norm() < 0.004 * expected.norm()


def test_compiled_objective_has_equal_gradients_without_recompiling(monkeypatch):
    _trace_whole(monkeypatch, "aot_eager")
    model = _model("transformer", dropout=0.0)
    plain, compiled = (Objective(model, TrainingConfig(compile=how)).train() for how in (False, True))
    for number, shape in enumerate([(3, 5, 7), (4, 9, 200)]):
        batch, found = _random_batch(*shape), []
        for objective in (plain, compiled):
            with torch._dynamo.config.patch(error_on_recompile=number > 0):
                loss = objective(batch)
            found.append([loss, *torch.autograd.grad(loss, list(model.parameters()))])
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.slow
def test_compiled_objective_applies_dropout_and_cutoff(monkeypatch):
    traced = []

    def run_as_it_is(graph, inputs):
        traced.append(graph)
        return graph

    _trace_whole(monkeypatch, run_as_it_is)
    batch = _random_batch(3, 5, 7)
    for dropout, settings in (0.5, {}), (0.0, {"objective": "simcut", "cutoff": 0.5}):
        objective = Objective(_model("transformer", dropout), TrainingConfig(**settings, compile=True)).train()
        traced.clear()
        assert len({objective(batch).item() for _ in range(3)}) == 3
        assert traced


def test_cut_embeddings_zeroes_vectors_within_context():
    torch.manual_seed(0)
    embedding = _model("transformer", 0.0).encoder.embedding.tokens
    pieces = torch.randint(4, 300, (100, 50))
    with cut_embeddings(embedding, 0.25):
        zero = embedding(pieces) == 0
    assert torch.equal(zero.any(dim=-1), zero.all(dim=-1))
    assert zero.all(dim=-1).float().mean().item() == pytest.approx(0.25, abs=0.02)
    fresh = TokenEmbedding(300, 8)
    random_state = torch.get_rng_state()
    embedding(pieces), fresh(pieces)
    assert torch.equal(torch.get_rng_state(), random_state)  # nothing is drawn where nothing is cut
