"""Data parallelism: replicas whose gradients are averaged (DDP), or one model sharded over the workers (FSDP2).

FSDP2 is imported when a model is sharded, because that import takes a second or two. Before it, there can be no sharded
module or tensor.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from mt.core.device import autocast
from mt.distributed.workers import Workers

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.tensor import DTensor


def replicate(module: nn.Module, example: object, workers: Workers, precision: torch.dtype) -> nn.Module:
    """Wrap a loss module in DDP, which averages gradients over the workers. A single worker gets the module itself.

    DDP regroups gradients after the first backward pass, in the order in which they came. From three workers on, the
    groups decide the order in which terms are added, so a resumed run would make its first update with other roundings.
    So the first backward pass is made here, and its gradients are thrown away.

    Args:
        module: Computes the loss of a batch in its forward pass.
        example: A batch for the first backward pass, on the training device.
        workers: All of them have to call this.
        precision: The number format of the forward pass.
    """
    if workers.size == 1:
        return module
    devices = [workers.device] if workers.device.type == "cuda" else None
    # The table of positions grows with the longest sentence, so its size differs from worker to worker.
    constants = [name for name, _ in module.named_buffers()]
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, constants)
    replica = DistributedDataParallel(module, device_ids=devices, gradient_as_bucket_view=True)
    with autocast(workers.device, precision):
        loss = replica(example)
    loss.backward()
    replica.zero_grad()
    return replica


def shard(module: nn.Module, blocks: Sequence[nn.Module], workers: Workers) -> nn.Module:
    """Shard the weights, gradients and optimizer state of a loss module over the workers (FSDP2), and return it.

    Args:
        module: Computes the loss of a batch in its forward pass.
        blocks: Its submodules to wrap, inner ones first. The weights of a block are gathered while it computes; those
            that belong to no block are gathered during the whole pass.
        workers: All of them have to call this.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    # PyTorch warns of what in-place operations on a block's output would do. There are none.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")
    warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk of memory")
    for part in module.modules():
        if isinstance(part, nn.RNNBase):
            # On a GPU it moves the weights to where FSDP2 does not look for them: they would never change.
            part.flatten_parameters = lambda: None  # type: ignore[method-assign]
    mesh = init_device_mesh(workers.device.type, (workers.size,))
    for block in blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(module, mesh=mesh)
    return module


@contextmanager
def unsharded(replica: nn.Module) -> Iterator[None]:
    """Give every worker all the weights within this context, so that each can use the model on its own."""
    parts = [part for part in replica.modules() if _is_sharded_module(part)]
    for part in parts:
        part.set_reshard_after_forward(False, recurse=False)
        part.unshard()
    yield
    for part in parts:
        part.set_reshard_after_forward(part is not replica, recurse=False)
        part.reshard()


def gradient_sync(replica: nn.Module, enabled: bool) -> AbstractContextManager:
    """Return a context for a forward and backward pass.

    Unless ``enabled``, its gradients are accumulated locally, and exchanged together with those of a later pass.
    """
    if _is_sharded_module(replica):
        replica.set_requires_gradient_sync(enabled)
    if isinstance(replica, DistributedDataParallel) and not enabled:
        return replica.no_sync()
    return nullcontext()


def full_tensor(tensor: Tensor) -> Tensor:
    """Return the full tensor of one that may be sharded. All workers have to call this."""
    return tensor.full_tensor() if is_sharded(tensor) else tensor


def sharded_like(tensor: Tensor, pattern: Tensor) -> Tensor:
    """Return this worker's shard of a full tensor if ``pattern``, of the same shape, is sharded; else the tensor."""
    if is_sharded(pattern) and tensor.shape == pattern.shape:
        from torch.distributed.tensor import distribute_tensor

        return distribute_tensor(tensor, pattern.device_mesh, pattern.placements, src_data_rank=None)
    return tensor


def is_sharded(tensor: Tensor) -> "TypeGuard[DTensor]":
    imported = sys.modules.get("torch.distributed.tensor")
    return imported is not None and isinstance(tensor, imported.DTensor)


def _is_sharded_module(module: nn.Module) -> "TypeGuard[FSDPModule]":
    imported = sys.modules.get("torch.distributed.fsdp")
    return imported is not None and isinstance(module, imported.FSDPModule)
