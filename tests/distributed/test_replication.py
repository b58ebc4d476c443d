"""Replicas of a loss module, in a group of one process."""

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from mt.distributed.replication import full_tensor, gradient_sync, is_sharded, replicate, sharded_like
from mt.distributed.workers import Workers


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
def test_several_workers_get_a_replica_without_gradients_and_one_gets_the_module(group, size):
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


def test_tensors_that_are_not_sharded_stay_as_they_are():
    tensor = torch.ones(2)
    assert full_tensor(tensor) is sharded_like(tensor, torch.zeros(2)) is tensor and not is_sharded(tensor)
