"""The number of workers, and replicas of a loss module in a group of one process."""

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from mt.config import TrainingConfig
from mt.core.errors import InputError
from mt.distributed.launch import worker_count
from mt.distributed.replication import full_tensor, gradient_sync, is_sharded, replicate, sharded_like
from mt.distributed.workers import Workers
from mt.training.command import workers_on_cpu


def _count(workers, device, section=""):
    return worker_count(TrainingConfig(workers=workers), torch.device(device), 1, section)


def test_worker_count_refuses_more_workers_than_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert _count("auto", "cuda") == 2
    assert _count("auto", "cuda:1") == 1
    for device in ("cuda", "cuda:1", "mps"):
        with pytest.raises(InputError, match=f"^training.workers=3, but training.device={device} means .* training.w"):
            _count(3, device, "training.")
        with pytest.raises(InputError, match="^workers=3, .*: set workers=auto"):
            _count(3, device)


def test_worker_count_limits_workers_per_core(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert _count(8, "cpu") == 8
    with pytest.raises(InputError, match="at most 8 workers may share the 2 CPU cores"):
        _count(9, "cpu")


@pytest.mark.parametrize(
    ("threads", "batch_tokens", "expected"), [(0, 2048, 2), (0, 100_000, 16), (4, 100_000, 4), (0, 500, 1)]
)
def test_workers_on_cpu_by_batch_tokens(monkeypatch, threads, batch_tokens, expected):
    monkeypatch.setattr("mt.training.command.cpu_threads", lambda: 16)
    settings = TrainingConfig(workers="auto", threads=threads, batch_tokens=batch_tokens)
    assert worker_count(settings, torch.device("cpu"), workers_on_cpu(settings)) == expected


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("positions", torch.zeros(2))

    def forward(self, batch):
        return (self.weight * batch).sum()


@pytest.fixture
def group():
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("size", [1, 2])
def test_replicate_wraps_module_for_several_workers(group, size):
    module, workers = Loss(), Workers(torch.device("cpu"))
    workers.size = size
    replica = replicate(module, torch.arange(3.0), workers, torch.float32)
    assert isinstance(replica, DistributedDataParallel) == (size == 2) and (replica is module) == (size == 1)
    assert module.weight.grad is None or not module.weight.grad.any()
    if size == 2:
        assert replica.parameters_to_ignore == {"positions"} and not replica.modules_buffers
    for enabled in (False, True, False):
        with gradient_sync(replica, enabled):
            assert getattr(replica, "require_backward_grad_sync", enabled) == enabled
            replica(torch.arange(3.0)).backward()
    assert module.weight.grad.tolist() == [0, 3, 6]


def test_unsharded_tensors_are_unchanged():
    tensor = torch.ones(2)
    assert full_tensor(tensor) is sharded_like(tensor, torch.zeros(2)) is tensor and not is_sharded(tensor)
