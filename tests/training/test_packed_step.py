"""Tests of train steps on packed batches: losses, gradients and weights equal those of padded batches."""

import weakref
from functools import partial

import numpy as np
import pyarrow
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.config import OptimizerConfig, ScheduleConfig, TrainingConfig, TransformerConfig
from mt.data.batching.batch import PackedShape, collate, pack
from mt.data.samples import SAMPLES
from mt.distributed.launch import local_workers
from mt.distributed.workers import Workers, worker_group
from mt.models.layers import Dropout
from mt.models.transformer import Transformer
from mt.training.objective import Objective
from mt.training.optimizer import Optimizer
from mt.training.packed_step import PackedStep
from tests import packed_attention  # noqa: F401
from tests.launches import Launches
from tests.training.runs import ALONE

SHAPE = PackedShape(source=256, target=288, sentences=40, longest=40)
VOCABULARY = 300


def _model(joint=True, seed=0, **options):
    torch.manual_seed(seed)
    values = {"width": 32, "feed_forward": 48, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    config = TransformerConfig(architecture="transformer", **values | options)
    model = Transformer(config, VOCABULARY, VOCABULARY if joint else VOCABULARY + 17, joint)
    with torch.no_grad():  # biases that are not zero, and norms that are not one
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model


def _sentences(count=12, seed=1):
    random = np.random.default_rng(seed)
    return [[random.integers(4, VOCABULARY, random.integers(1, 30)).tolist() for _ in range(count)] for _ in range(2)]


def _packed(sources, targets):
    return pack(pyarrow.table([list(range(len(sources))), sources, targets], schema=SAMPLES), SHAPE)


def _padded(sources, targets):
    return collate(sources, targets)


def _steps(model, config=None, workers=ALONE, precision=torch.float32, capturable=False, **training):
    """An objective, an optimizer, and a packed step that uses both."""
    objective = Objective(model, TrainingConfig(**training)).train()
    schedule = ScheduleConfig(warmup=0)
    optimizer = Optimizer(model, config or OptimizerConfig(learning_rate=4e-3), schedule, 100, workers, capturable)
    return objective, optimizer, PackedStep(objective, optimizer, 1.0, workers, precision, SHAPE)


def _padded_update(objective, optimizer, batches):
    tokens = sum(batch.target_tokens for batch in batches)
    losses = [objective(batch) for batch in batches]
    for loss in losses:
        (loss / tokens).backward()
    norm = optimizer.clip_and_step(1.0)
    optimizer.zero_grad()
    return sum(loss.item() for loss in losses), norm.item()


def _distance(first, second):
    """Of the weights, without the biases of keys: softmax ignores them, so their gradients are rounding errors, which
    AdamW scales up."""
    one, other = (
        torch.cat([p.detach().flatten() for name, p in model.named_parameters() if not name.endswith("key.bias")])
        for model in (first, second)
    )
    return ((one - other).norm() / other.norm()).item()


@pytest.mark.parametrize("objective", ["cross_entropy", "simcut", "r_drop"])
def test_packed_loss_and_gradients_equal_padded(objective):
    """In fp32: the loss to 1e-6, the gradient to 1e-5. SimCut with a cutoff of 0 and R-Drop without dropout predict
    everything twice alike."""
    model = _model()
    loss_module, _, step = _steps(model, objective=objective, **({"cutoff": 0.0} if objective == "simcut" else {}))
    sources, targets = _sentences()
    padded = _padded(sources, targets)
    expected = loss_module(padded)
    (expected / padded.target_tokens).backward()
    pairs = step.stacks.parameter_gradients
    gradient = torch.cat([parameter.grad.flatten() for parameter, _ in pairs])
    packed = _packed(sources, targets)
    step._scale.fill_(1 / packed.target_tokens)
    step._add_gradients(packed)
    assert packed.target_tokens == padded.target_tokens and packed.source_tokens == padded.source_tokens
    assert step.loss.item() == pytest.approx(expected.item(), rel=1e-6)
    ours = torch.cat([part.flatten() for _, part in pairs])
    assert (ours - gradient).norm() < 1e-5 * gradient.norm()


@settings(max_examples=12, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "width": st.sampled_from([20, 36, 60]),
            "heads": st.sampled_from([1, 2]),
            "feed_forward": st.sampled_from([1, 20, 60]),
            "encoder_layers": st.integers(1, 3),
            "decoder_layers": st.integers(1, 3),
            "norm": st.sampled_from(["pre", "post"]),
            "activation": st.sampled_from(["relu", "gelu", "silu"]),
            "tie_embeddings": st.booleans(),
            "output_bias": st.booleans(),
            "decoder_start": st.sampled_from(["bos", "pad"]),
            "scale_embeddings": st.booleans(),
        }
    ),
    st.sampled_from([{}, {"positions": "learned", "max_positions": 40}]),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), min_size=1, max_size=5),
)
def test_packed_gradients_equal_padded_for_any_model_and_length(options, positions, joint, lengths):
    """Sentences without tokens and of the maximum length, a single pair, and heads whose width is not a power of
    two."""
    _, _, step = _steps(_model(joint, **options, **positions))
    random = np.random.default_rng(0)
    sources, targets = (
        [random.integers(4, VOCABULARY, n).tolist() for n in side] for side in zip(*lengths, strict=True)
    )
    batch = _packed(sources, targets)
    assert step.prepare(batch) is None
    assert step.deviations[0] < 1e-6 and step.deviations[1] < 2e-5


def test_packed_step_restores_training_mode_after_kernel_error(monkeypatch):
    """Otherwise the padded updates that follow would have neither dropout nor label smoothing."""
    objective, _, step = _steps(_model(), label_smoothing=0.1)
    padded = _padded(*_sentences())
    loss = objective(padded).item()

    def fail(*arguments):
        raise RuntimeError("no kernel\nfor this card")

    monkeypatch.setattr("mt.models.packed_transformer.packed_attention", fail)
    assert step.prepare(_packed(*_sentences())) == "RuntimeError: no kernel"
    assert objective(padded).item() == loss


def test_packed_step_keeps_position_table_of_graph():
    model = _model()
    _, _, step = _steps(model)
    step.prepare(_packed(*_sentences()))
    positions = model.decoder.embedding.positions
    table = weakref.ref(positions.table)
    positions(0, 1000)
    assert table() is not None and table() is not positions.table


def test_capturable_optimizer_equals_plain_optimizer():
    """A CUDA graph reads them from tensors."""
    models = [_model(), _model()]
    config = OptimizerConfig(kind="muon", learning_rate=4e-3, weight_decay=0.1, embedding_factor=2.0)
    batch = _packed(*_sentences())
    for model, capturable in zip(models, (False, True), strict=True):
        _, _, step = _steps(model, config, capturable=capturable)
        step.prepare(batch)
        for update in (1, 2, 3):
            step.optimizer.set_learning_rate(update)
            step.train_step([batch], batch.target_tokens)
    assert _distance(*models) < 1e-4
    assert _distance(_model(), models[0]) > 0.01


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_packed_steps_equal_padded_steps(kind):
    """Of two batches each, one update with a gradient that is not finite."""
    first, second = _model(), _model()
    config = OptimizerConfig(kind=kind, learning_rate=4e-3, weight_decay=0.01)
    objective, optimizer, _ = _steps(first, config, accumulate=2)
    _, packed_optimizer, step = _steps(second, config, accumulate=2)
    for update in range(1, 7):
        pairs = [_sentences(seed=10 * update + number) for number in range(2)]
        for each in (optimizer, packed_optimizer):
            each.set_learning_rate(update)
        poisoned = update == 3
        with torch.no_grad():
            for model in (first, second):
                model.output.weight[5, 0] += float("inf") if poisoned else 0.0
        batches = [_padded(*pair) for pair in pairs]
        loss, norm = _padded_update(objective, optimizer, batches)
        step.prepare(_packed(*pairs[0]))
        step.train_step([_packed(*pair) for pair in pairs], sum(batch.target_tokens for batch in batches))
        if poisoned:
            assert not np.isfinite(norm) and not step.norm.isfinite()
            with torch.no_grad():
                for model in (first, second):
                    model.output.weight[5, 0] = 0.25
            continue
        assert step.loss.item() == pytest.approx(loss, rel=1e-5)
        assert step.norm.item() == pytest.approx(norm, rel=1e-3)
    assert _distance(second, first) < 5e-4  # what rounding grows to
    assert _distance(_model(), first) > 0.05


def test_prepare_detects_wrong_kernel_without_changing_weights(
    monkeypatch,
):
    model = _model(dropout=0.3)
    objective, optimizer, step = _steps(model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    batch = _packed(*_sentences())
    assert step.deviations is None and step.prepare(batch) is None
    assert max(step.deviations) < 1e-5
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert objective.training and all(not gradient.any() for gradient in step.stacks.gradients)
    from mt.models import packed_transformer as module

    right = module.packed_attention

    monkeypatch.setattr(module, "packed_attention", lambda *arguments, causal=False: right(*arguments[:5], False))
    assert "differs by" in (step.prepare(batch) or "")


def test_packed_dropout_has_loss_of_padded_dropout():
    """A packed step with dropout has the loss of a padded one on average, and masks that depend on the seed."""
    model = _model(dropout=0.2)
    objective, _, step = _steps(model)
    sources, targets = _sentences()
    packed, padded = _packed(sources, targets), _padded(sources, targets)

    def packed_loss(seed):
        torch.manual_seed(seed)
        step.loss.zero_()
        step._add_gradients(packed)
        return step.loss.item()

    assert packed_loss(1) == packed_loss(1) != packed_loss(2)
    losses = [packed_loss(seed) for seed in range(24)]
    expected = []
    with torch.no_grad():
        for seed in range(24):
            torch.manual_seed(seed)
            expected.append(objective(padded).item())
    spread = np.std(expected) / np.sqrt(12)
    assert abs(np.mean(losses) - np.mean(expected)) < 4 * spread
    assert np.std(losses) == pytest.approx(np.std(expected), rel=0.5)
    assert sum(isinstance(part, Dropout) for part in model.modules()) > 0


def test_packed_step_accepts_larger_batch():
    first, second = _model(), _model()
    objective, optimizer, _ = _steps(first)
    _, packed_optimizer, step = _steps(second)
    sources, targets = _sentences(40)
    batch = _packed(sources, targets)
    assert batch.shape != SHAPE
    for each in (optimizer, packed_optimizer):
        each.set_learning_rate(1)
    step.prepare(batch)
    step.train_step([batch], batch.target_tokens)
    _padded_update(objective, optimizer, [_padded(sources, targets)])
    assert _distance(second, first) < 1e-5


def _update_of_two(info):
    torch.set_num_threads(1)
    with worker_group(torch.device("cpu"), info) as workers:
        model = _model()
        _, optimizer, step = _steps(model, workers=workers)
        sources, targets = _sentences(24)
        own = [sentences[workers.rank :: 2] for sentences in (sources, targets)]
        tokens = sum(len(target) + 1 for target in targets)
        for update in (1, 2):
            optimizer.set_learning_rate(update)
            batch = _packed(*own)
            step.prepare(batch)
            step.train_step([batch], tokens)
        return model


@pytest.mark.slow
def test_packed_steps_of_two_workers_equal_one():
    with local_workers(2, partial(_update_of_two)) as info:
        ours = _update_of_two(info)
    alone = _model()
    objective, optimizer, _ = _steps(alone)
    for update in (1, 2):
        optimizer.set_learning_rate(update)
        _padded_update(objective, optimizer, [_padded(*_sentences(24))])
    assert _distance(ours, alone) < 1e-4  # AdamW divides tiny gradients by their own size, rounding errors included
    assert _distance(_model(), alone) > 0.01


def test_packed_step_launches_few_constant_kernels(monkeypatch):
    # Dropout and matrix products as on a GPU, instead of this project's CPU kernels.
    monkeypatch.setattr("mt.models.layers.eager_on_cpu", lambda x: False)
    model = _model(encoder_layers=6, decoder_layers=6, dropout=0.1)
    _, optimizer, step = _steps(model, precision=torch.bfloat16)
    optimizer.set_learning_rate(1)
    counts = []
    for seed in (1, 2, 3):
        batch = _packed(*_sentences(8 + seed, seed))
        step._inputs.rows.copy_(batch.rows)
        with Launches() as launches:
            step._add()
            step._finish()
        counts.append(launches.counts)
    assert counts[1] == counts[2]
    assert sum(counts[2].values()) <= 900


@pytest.mark.parametrize("objective", ["cross_entropy", "simcut", "r_drop"])
def test_packed_step_never_waits_for_gpu(objective, monkeypatch):
    """On the meta device, whatever needs a value on the CPU raises."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: False)  # no answer for meta
    model = _model(dropout=0.1).to("meta")
    workers = Workers(torch.device("meta"))
    _, optimizer, step = _steps(model, workers=workers, objective=objective)
    step._add()
    for parameter, gradient in step.stacks.parameter_gradients:
        parameter.grad = gradient
    assert optimizer.muon
    optimizer.muon.step(step._enabled)
    assert step.norm.device.type == "meta"
