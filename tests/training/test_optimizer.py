"""Tests of AdamW and Muon, their parameter groups, and the learning-rate schedule."""

from functools import partial

import pytest
import torch

from mt.config import OptimizerConfig, ScheduleConfig, TrainingConfig
from mt.core.errors import InputError
from mt.distributed.launch import local_workers
from mt.distributed.replication import full_tensor, shard, sharded_like
from mt.distributed.workers import RankInfo, Workers, worker_group
from mt.training import optimizer as module
from mt.training.objective import Objective
from mt.training.optimizer import Optimizer, orthogonalize, schedule_factor
from tests import toy
from tests.training.runs import ALONE

FINITE = torch.tensor(True)


@pytest.mark.parametrize(
    ("kind", "updates", "factors"),
    [
        ("constant", 1100, {1: 0.01, 50: 0.5, 100: 1, 1100: 1}),
        ("inverse_sqrt", 10**6, {1: 0.01, 50: 0.5, 100: 1, 400: 0.5}),
        *((kind, 1100, {1: 0.01, 50: 0.5, 100: 1, 600: 0.5, 1100: 0}) for kind in ("linear", "cosine")),
    ],
)
def test_schedule_factor_by_kind(kind, updates, factors):
    schedule = ScheduleConfig(kind=kind, warmup=100)
    found = {update: schedule_factor(schedule, update, updates) for update in factors}
    assert found == pytest.approx(factors, abs=1e-12)
    falling = [schedule_factor(schedule, update, updates) for update in range(100, 1101)]
    assert falling == sorted(falling, reverse=True)


def test_schedule_factor_of_step_schedule():
    schedule = ScheduleConfig(kind="step", warmup=2, steps=(5, 8), factor=0.1)
    assert [schedule_factor(schedule, update, 10) for update in (1, 5, 6, 9)] == pytest.approx([0.5, 1, 0.1, 0.01])


def _model(tie_embeddings=True):
    return toy.model(
        width=8, feed_forward=16, encoder_layers=2, decoder_layers=2, positions="learned", tie_embeddings=tie_embeddings
    )


def _optimizer(model, warmup=100, workers=ALONE, **config):
    return Optimizer(model, OptimizerConfig(**config), ScheduleConfig(warmup=warmup), 100, workers)


@pytest.mark.parametrize("kind", ["muon", "auto"])
def test_muon_gets_hidden_matrices(kind):
    model = _model()
    optimizer = _optimizer(model, kind=kind)
    names = {id(p): name for name, p in model.named_parameters()}
    by_muon = {names[id(p)] for group in optimizer.parts[-1].param_groups for p in group["params"]}
    assert by_muon == {name for name, p in model.named_parameters() if ".layers." in name and p.ndim == 2}


@pytest.mark.parametrize("kind", ["adamw", "muon"])
@pytest.mark.parametrize("tied", [True, False])
def test_embedding_factor_multiplies_learning_rate(tied, kind):
    model = _model(tie_embeddings=tied)
    optimizer = _optimizer(model, warmup=4, kind=kind, learning_rate=2e-3, embedding_factor=3.0)
    assert optimizer.set_learning_rate(2) == pytest.approx(1e-3)
    rates = {id(p): group["lr"] for part in optimizer.parts for group in part.param_groups for p in group["params"]}
    for name, parameter in model.named_parameters():
        looked_up = name == "output.weight" or "tokens" in name or "positions" in name
        assert rates[id(parameter)] == pytest.approx(3e-3 if looked_up else 1e-3), name


@pytest.mark.parametrize(("iterations", "stack"), [(2, module.MAX_STACKED_ELEMENTS), (3, 200), (5, 1)])
def test_muon_equals_torch_muon(iterations, stack, monkeypatch):
    monkeypatch.setattr(module, "MAX_STACKED_ELEMENTS", stack)
    monkeypatch.setattr(module, "choose_precision", lambda wanted, device: torch.bfloat16)  # as torch's always does
    model = _model()
    optimizer = _optimizer(
        model, warmup=0, kind="muon", learning_rate=1e-2, muon_iterations=iterations, weight_decay=0.1
    )
    ours = model.hidden_matrices
    theirs = [torch.nn.Parameter(matrix.detach().clone()) for matrix in ours]
    reference = torch.optim.Muon(theirs, lr=1e-2, weight_decay=0.1, ns_steps=iterations, adjust_lr_fn="match_rms_adamw")
    for update in (1, 2, 3):
        _give_gradients(model, update)
        for one, other in zip(ours, theirs, strict=True):
            other.grad = one.grad.clone()
        reference.param_groups[0]["lr"] = optimizer.set_learning_rate(update)
        optimizer.step(FINITE)
        reference.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-4)


def test_stack_by_shape_limits_elements(monkeypatch):
    monkeypatch.setattr(module, "MAX_STACKED_ELEMENTS", 50)
    matrices = [torch.nn.Parameter(torch.zeros(shape)) for shape in [(4, 4), (8, 8), (4, 4), (4, 4), (4, 4), (8, 8)]]
    stacks = list(module._stack_by_shape(matrices))
    assert sorted(map(id, matrices)) == sorted(id(matrix) for stack in stacks for matrix in stack)
    assert [(len(stack), {tuple(matrix.shape) for matrix in stack}) for stack in stacks] == [
        (3, {(4, 4)}),
        (1, {(4, 4)}),
        (1, {(8, 8)}),
        (1, {(8, 8)}),
    ]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])  # fp16 has no numbers for the squares of the first and the last
@pytest.mark.parametrize("shape", [(3, 6, 6), (2, 4, 16), (2, 16, 4)])
def test_orthogonalize_keeps_singular_vectors(shape, scale, dtype):
    torch.manual_seed(0)
    matrices = torch.randn(shape) * scale
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    found = orthogonalize(matrices, 5, dtype)
    assert found.dtype == dtype
    within = u.mT @ found.float() @ v.mT  # diagonal where the vectors are the same
    values = within.diagonal(dim1=1, dim2=2)
    assert values.min() > 0.6 and values.max() < 1.3
    assert (within - values.diag_embed()).abs().max() < 0.05


def test_lstm_uses_adamw():
    (only,) = _optimizer(toy.model("rnn")).parts
    assert isinstance(only, torch.optim.AdamW)
    with pytest.raises(InputError, match="no matrix of a hidden layer is trained; set auto or adamw"):
        _optimizer(toy.model("rnn"), kind="muon")


@pytest.mark.parametrize(
    ("device", "capability", "expected"),
    [
        ("cpu", False, torch.float32),
        ("cpu", True, torch.bfloat16),
        ("cuda", (7, 5), torch.float16),
        ("cuda", (8, 0), torch.bfloat16),
        ("cuda", (9, 0), torch.bfloat16),
        ("mps", None, torch.float32),
    ],
)
def test_muon_dtype_by_device(monkeypatch, device, capability, expected):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: capability)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    matrix = torch.nn.Parameter(torch.ones(2, 3))
    assert module.Muon([matrix], OptimizerConfig(), Workers(torch.device(device))).dtype == expected


def test_muon_in_fp16_keeps_tiny_gradients(monkeypatch):
    """About as small as the smallest numbers of fp16: they are scaled before they are converted."""
    moved = {}
    for dtype in (torch.float16, torch.bfloat16):
        monkeypatch.setattr(module, "choose_precision", lambda wanted, device, dtype=dtype: dtype)
        model = _model()
        optimizer = _optimizer(model, warmup=0, kind="muon")
        _give_gradients(model, 1, factor=2e-6)
        before = [matrix.detach().clone() for matrix in model.hidden_matrices]
        optimizer.set_learning_rate(1)
        optimizer.step(FINITE)
        moved[dtype] = [one - other for one, other in zip(model.hidden_matrices, before, strict=True)]
    for half, brain in zip(*moved.values(), strict=True):
        assert half.abs().max() > 1e-4
        torch.testing.assert_close(half, brain, rtol=0, atol=1e-4)


def _give_gradients(model, seed, factor=1.0):
    torch.manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = sharded_like(torch.randn(parameter.shape) * factor, parameter)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_optimizer_skips_non_finite_gradients(kind, fused, bad):
    model = _model()
    optimizer = _optimizer(model, kind=kind, weight_decay=0.1)
    optimizer.fused = optimizer.adamw.defaults["fused"] = fused
    for group in optimizer.adamw.param_groups:
        group["fused"] = fused
    optimizer.set_learning_rate(50)
    for good_before in (False, True):
        if good_before:
            _give_gradients(model, 1)
            optimizer.step(FINITE)
        before = {name: tensor.clone() for name, tensor in (optimizer.state_tensors() | model.state_dict()).items()}
        _give_gradients(model, 2, factor=bad)
        optimizer.step(~FINITE)
        after = optimizer.state_tensors() | model.state_dict()
        for name, tensor in after.items():
            assert torch.equal(tensor, before.get(name, torch.zeros(()).expand_as(tensor))), name


def _three_steps(workers, sharded=False):
    """Weights and state after three steps with the same gradients on every worker."""
    model = _model()
    if sharded:
        shard(Objective(model, TrainingConfig()), model.blocks, workers)
    optimizer = _optimizer(model, workers=workers, kind="muon", weight_decay=0.01)
    for update in (1, 2, 3):
        _give_gradients(model, update)
        optimizer.set_learning_rate(update)
        optimizer.step(FINITE)
        optimizer.broadcast_shares()
        _give_gradients(model, update, factor=float("nan"))
        optimizer.step(~FINITE)
        optimizer.broadcast_shares()
    return model, optimizer


def _momenta(optimizer):
    """Of how many matrices a worker keeps the momentum, or a part of it."""
    return sum(bool(state) for state in optimizer.muon.state.values())


def _restore(optimizer, state, workers):
    """Loads what the main process has, as every worker reads it from the main process's checkpoint."""
    for part in optimizer.parts:
        part.state.clear()
    optimizer.load_state_tensors(workers.run_on_main(lambda: state))


def _as_worker(shard: bool, info: RankInfo):
    torch.set_num_threads(1)  # as in conftest.py
    with worker_group(torch.device("cpu"), info) as workers:
        model, optimizer = _three_steps(workers, shard)
        state = optimizer.state_tensors()
        workers.gather([len(state)])
        workers.gather([_momenta(optimizer)])
        _restore(optimizer, state, workers)
        workers.gather([_momenta(optimizer)])
        for parameter in model.parameters():
            full_tensor(parameter)


@pytest.mark.parametrize("shard", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_muon_of_two_workers_equals_one_worker(shard):
    one, its_optimizer = _three_steps(ALONE)
    rounding = 1e-6 if shard else 0.0  # in AdamW, at the edges of the parts
    as_worker = partial(_as_worker, shard)
    with local_workers(2, as_worker) as info, worker_group(torch.device("cpu"), info) as workers:
        two, their_optimizer = _three_steps(workers, shard)
        moved = len(their_optimizer.parts[-1].local_matrices)
        assert moved == len(two.hidden_matrices) if shard else 0 < moved < len(two.hidden_matrices)
        theirs, ours = their_optimizer.state_tensors(), its_optimizer.state_tensors()
        assert workers.gather([len(theirs)]) == [len(ours), 0], "gathered elsewhere than on the main process"
        matrices = len(two.hidden_matrices)
        kept = 2 * matrices if shard else matrices  # half of each, or half of them
        assert sum(workers.gather([_momenta(their_optimizer)])) == kept
        _restore(their_optimizer, theirs, workers)
        assert sum(workers.gather([_momenta(their_optimizer)])) == kept
        weights = [full_tensor(parameter) for parameter in two.parameters()]
    for (name, first), second in zip(one.named_parameters(), weights, strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=rounding, msg=name)
    assert theirs.keys() == ours.keys()
    for name in ours:
        torch.testing.assert_close(theirs[name], ours[name], rtol=0, atol=rounding, msg=name)


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_optimizer_step_moves_all_weights(kind):
    model = _model()
    optimizer = _optimizer(model, kind=kind)
    _give_gradients(model, seed=1)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer.set_learning_rate(50)
    optimizer.step(FINITE)
    assert not [name for name, parameter in model.named_parameters() if torch.equal(parameter, before[name])]
