"""One model on every worker: whole copies whose gradients are averaged (DDP), or shares of one model (FSDP2).

What FSDP2 needs is imported when a model is sharded: it takes a second or two, which a single worker should not wait.
Before that import there can be no sharded module or tensor.
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
from mt.data.batching import collate
from mt.distributed.workers import Workers
from mt.text.tokenizer import EOS

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.tensor import DTensor


def replicate(objective: nn.Module, workers: Workers, precision: torch.dtype) -> nn.Module:
    """Returns the objective wrapped by DDP, which averages gradients over the workers. With one
    worker, returns ``objective`` itself.

    DDP sends gradients in groups. After its first backward pass it forms these groups anew, in the order in which the
    gradients came, and from three workers on the groups decide in which order the terms of a sum are added. A run that
    goes on from a checkpoint would therefore make its first update with other roundings than the run that was not
    stopped. So the first backward pass is made here, on a batch of no meaning, and its gradients are thrown away.

    Args:
        objective: The module whose forward pass computes the loss of a batch.
        workers: All of them have to call this.
        precision: The type in which the forward pass computes.
    """
    if workers.size == 1:
        return objective
    devices = [workers.device] if workers.device.type == "cuda" else None
    # The table of positions grows with the longest sentence, so its size differs from worker to worker.
    constants = [name for name, _ in objective.named_buffers()]
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(objective, constants)
    replica = DistributedDataParallel(objective, device_ids=devices, gradient_as_bucket_view=True)
    batch = collate([0, 1], [[EOS] * 2] * 2, [[EOS] * 2] * 2).to(workers.device)
    with autocast(workers.device, precision):
        loss = replica(batch)
    loss.backward()
    replica.zero_grad()
    return replica


def shard(objective: nn.Module, blocks: Sequence[nn.Module], workers: Workers) -> nn.Module:
    """Returns the objective with weights, gradients and optimizer state spread over the workers (FSDP2).

    Args:
        objective: The module whose forward pass computes the loss.
        blocks: Its submodules to wrap, inner ones first. The weights of a block are gathered while it computes; those
            that belong to no block are gathered during the whole pass.
        workers: All of them have to call this.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    # PyTorch warns of what in-place operations on a block's output would do. There are none.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")
    warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk of memory")
    for part in objective.modules():
        if isinstance(part, nn.RNNBase):
            # On a GPU it moves the weights to where FSDP2 does not look for them: they would never change.
            part.flatten_parameters = lambda: None  # type: ignore[method-assign]
    mesh = init_device_mesh(workers.device.type, (workers.size,))
    for block in blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(objective, mesh=mesh)
    return objective


@contextmanager
def unsharded(replica: nn.Module) -> Iterator[None]:
    """Within this context every worker holds all the weights, and can use the model on its own."""
    parts = [part for part in replica.modules() if _is_sharded_module(part)]
    for part in parts:
        part.set_reshard_after_forward(False, recurse=False)
        part.unshard()
    yield
    for part in parts:
        part.set_reshard_after_forward(part is not replica, recurse=False)
        part.reshard()


def gradient_sync(replica: nn.Module, enabled: bool) -> AbstractContextManager:
    """Returns a context for a forward and backward pass. Unless ``enabled``, its gradients are added up locally, and
    are exchanged together with those of a later pass."""
    if _is_sharded_module(replica):
        replica.set_requires_gradient_sync(enabled)
    if isinstance(replica, DistributedDataParallel) and not enabled:
        return replica.no_sync()
    return nullcontext()


def full_tensor(tensor: Tensor) -> Tensor:
    """Returns the whole of a tensor that may be spread over the workers. All of them have to call this."""
    return tensor.full_tensor() if is_sharded(tensor) else tensor


def sharded_like(tensor: Tensor, pattern: Tensor) -> Tensor:
    """Returns this worker's part of a whole tensor, if ``pattern``, of the same shape, is spread over the workers;
    otherwise the tensor itself."""
    if is_sharded(pattern) and tensor.shape == pattern.shape:
        from torch.distributed.tensor import distribute_tensor

        return distribute_tensor(tensor, pattern.device_mesh, pattern.placements, src_data_rank=None)
    return tensor


def is_sharded(tensor: Tensor) -> "TypeGuard[DTensor]":
    """Returns whether a tensor is spread over the workers."""
    imported = sys.modules.get("torch.distributed.tensor")
    return imported is not None and isinstance(tensor, imported.DTensor)


def _is_sharded_module(module: nn.Module) -> "TypeGuard[FSDPModule]":
    imported = sys.modules.get("torch.distributed.fsdp")
    return imported is not None and isinstance(module, imported.FSDPModule)
