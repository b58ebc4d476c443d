"""The chunked losses against PyTorch's own formulas, values and gradients."""

from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch.nn import functional

from mt.config import TrainingConfig
from mt.data.batching.batch import collate
from mt.models.embedding import TokenEmbedding, cut_embeddings
from mt.training.objective import Objective, OutputLayer, cross_entropy, projected_loss, r_drop, simcut
from tests import toy
from tests.models.pairs import decoded

ALPHA = 3.0


def _tensors(rows, predictions, vocabulary=40):
    torch.manual_seed(0)
    features = [torch.randn(rows, 8, requires_grad=True) for _ in range(predictions)]
    return features, torch.randn(vocabulary, 8, requires_grad=True), torch.randint(1, vocabulary, (rows,))


def _plain_cross_entropy(features, weight, labels, smoothing):
    return functional.cross_entropy(features @ weight.T, labels, label_smoothing=smoothing, reduction="sum")


def _divergence(one, other, weight):
    """KL(one ‖ other), summed"""
    log_p, log_q = ((features @ weight.T).log_softmax(dim=-1) for features in (one, other))
    return functional.kl_div(log_q, log_p, log_target=True, reduction="sum")


def _plain_simcut(plain, cut, weight, labels, smoothing):
    return _plain_cross_entropy(plain, weight, labels, smoothing) + ALPHA * _divergence(plain, cut, weight)


def _plain_r_drop(one, other, weight, labels, smoothing):
    likelihoods = sum(_plain_cross_entropy(features, weight, labels, smoothing) for features in (one, other))
    divergences = (_divergence(one, other, weight) + _divergence(other, one, weight)) / 2
    return (likelihoods + ALPHA * divergences) / 2


LOSSES = {
    "cross_entropy": (cross_entropy, _plain_cross_entropy, 1),
    "simcut": (partial(simcut, alpha=ALPHA), _plain_simcut, 2),
    "r_drop": (partial(r_drop, alpha=ALPHA), _plain_r_drop, 2),
}


@pytest.mark.parametrize("cached_logits", [1, 40 * 100, 2**17])  # 16, 100 and all rows of a part
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 511, 512, 1300])
@pytest.mark.parametrize("name", LOSSES)
def test_loss_and_gradients_equal_pytorchs(name, rows, smoothing, cached_logits, monkeypatch):
    monkeypatch.setattr("mt.training.objective.CACHED_LOGITS", cached_logits)
    ours, plain, predictions = LOSSES[name]
    features, weight, labels = _tensors(rows, predictions)
    loss = projected_loss(ours(smoothing), OutputLayer(weight), labels, *features) / rows
    expected_loss = plain(*features, weight, labels, smoothing) / rows
    assert torch.allclose(loss, expected_loss, rtol=1e-5)
    actual, expected = (torch.autograd.grad(value, (*features, weight)) for value in (loss, expected_loss))
    for our_gradient, theirs in zip(actual, expected, strict=True):
        assert torch.allclose(our_gradient, theirs, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_a_bias_is_the_weight_of_a_feature_that_is_always_one(name):
    ours, _, predictions = LOSSES[name]
    features, weight, labels = _tensors(600, predictions)
    bias = torch.randn(len(weight), requires_grad=True)
    loss = projected_loss(ours(0.1), OutputLayer(weight, bias), labels, *features)
    longer = [functional.pad(one, (0, 1), value=1.0) for one in features]
    expected = projected_loss(ours(0.1), OutputLayer(torch.cat([weight, bias[:, None]], dim=1)), labels, *longer)
    assert torch.allclose(loss, expected, rtol=1e-5)
    actual, expected = (torch.autograd.grad(value, (*features, weight, bias)) for value in (loss, expected))
    for one, other in zip(actual, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("name", LOSSES)
def test_under_bf16_autocast_it_stays_close_to_the_formula(name):
    ours, plain, predictions = LOSSES[name]
    features, weight, labels = _tensors(600, predictions, vocabulary=50)
    with torch.autocast("cpu", torch.bfloat16):
        loss = projected_loss(ours(0.1), OutputLayer(weight), labels, *features)
    exact = plain(*features, weight, labels, 0.1)
    assert torch.isclose(loss, exact, rtol=4e-3)
    actual, expected = (torch.autograd.grad(value, (*features, weight)) for value in (loss, exact))
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

    def test_without_noise_two_predictions_are_one(self, architecture):
        expected = self._loss(architecture)
        for settings in ({"objective": "r_drop"}, {"objective": "simcut", "cutoff": 0.0}):
            assert torch.isclose(self._loss(architecture, **settings), expected)

    def test_noise_is_what_is_punished(self, architecture):
        plain, little, much = (
            self._loss(architecture, objective="simcut", cutoff=cutoff, consistency=100.0) for cutoff in (0.0, 0.2, 0.6)
        )
        assert plain < little < much
        weak, strong = (
            self._loss(architecture, dropout=0.2, objective="r_drop", consistency=alpha) for alpha in (1.0, 100.0)
        )
        assert weak < strong

    def test_validation_is_the_cross_entropy_alone(self, architecture):
        losses = [
            self._loss(architecture, dropout=0.3, training=False, objective=objective)
            for objective in ("cross_entropy", "simcut", "r_drop")
        ]
        assert torch.equal(losses[0], losses[1]) and torch.equal(losses[0], losses[2])

    @pytest.mark.parametrize("objective", ["cross_entropy", "simcut", "r_drop"])
    def test_a_worker_without_pairs_takes_part_and_adds_nothing(self, architecture, objective):
        model = _model(architecture, dropout=0.1)
        loss = Objective(model, TrainingConfig(objective=objective)).train()(collate([], []))
        loss.backward()
        assert loss == 0
        assert all(torch.count_nonzero(parameter.grad) == 0 for parameter in model.parameters())

    def test_cutting_ends_with_its_context(self, architecture):
        model, features = _model(architecture, 0.0), []
        for share in (None, 0.5, None):
            with nullcontext() if share is None else cut_embeddings(model, share):
                features.append(decoded(model, self.BATCH))
        assert torch.equal(features[0], features[2]) and not torch.allclose(features[0], features[1])


def _trace_whole(monkeypatch, backend):
    """Lets torch.compile fail where it would run Python between its kernels, and takes away its code generator, which
    needs half a minute: ``backend`` takes what was traced."""
    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend, fullgraph=True))


def _random_batch(pairs, source_length, target_length):
    return collate(*(torch.randint(4, 300, (pairs, n)).tolist() for n in (source_length, target_length)))


@pytest.mark.slow
def test_the_gradient_of_a_bf16_weight_is_summed_over_chunks_in_fp32():
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


def test_compiled_once_for_all_lengths_gradients_are_the_same(monkeypatch):
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
def test_what_is_compiled_drops_and_cuts(monkeypatch):
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


def test_whole_vectors_are_cut_as_often_as_asked():
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
