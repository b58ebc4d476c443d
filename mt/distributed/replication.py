"""Data parallelism: replicas with averaged gradients (DDP), or one model that is sharded over the workers (FSDP2).

FSDP2 is imported when a model is sharded, because the import takes a second or two. Without it, no module or tensor can
be sharded.
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
    """Wrap a loss module in DDP, which averages gradients over the workers. Collective: all workers have to call this.

    This also runs a forward and backward pass, and discards its gradients. DDP regroups gradients after the first
    backward pass. With three or more workers, the groups determine the order of additions, so the first update of a
    resumed run would otherwise be rounded differently.

    Args:
        module: Computes the loss of a batch in its forward pass.
        example: A batch for the first pass, on the training device.
        workers: The group of workers.
        precision: The number format of the first pass.

    Returns:
        The wrapped module, or ``module`` itself if there is only one worker.
    """
    if workers.size == 1:
        return module
    devices = [workers.device] if workers.device.type == "cuda" else None
    # DDP would broadcast buffers, but the size of the table of positions depends on the sentences of the worker.
    constants = [name for name, _ in module.named_buffers()]
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, constants)
    replica = DistributedDataParallel(module, device_ids=devices, gradient_as_bucket_view=True)
    with autocast(workers.device, precision):
        loss = replica(example)
    loss.backward()
    replica.zero_grad()
    return replica


def shard(module: nn.Module, blocks: Sequence[nn.Module], workers: Workers) -> nn.Module:
    """Shard the weights, gradients and optimizer state of a loss module over the workers (FSDP2), in place.

    Collective: all workers have to call this.

    Args:
        module: Computes the loss of a batch in its forward pass.
        blocks: Submodules to shard one by one, inner ones first. The weights of a block are gathered during its
            computation. Weights outside of all blocks are gathered for the whole pass.
        workers: The group of workers.

    Returns:
        ``module``.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    # PyTorch warns of in-place operations on the output of a block. The models have none.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")
    warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk of memory")
    for part in module.modules():
        if isinstance(part, nn.RNNBase):
            # On a GPU, this method would move the weights to storage that FSDP2 does not know and never updates.
            part.flatten_parameters = lambda: None  # type: ignore[method-assign]
    mesh = init_device_mesh(workers.device.type, (workers.size,))
    for block in blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(module, mesh=mesh)
    return module


@contextmanager
def unsharded(replica: nn.Module) -> Iterator[None]:
    """Context manager: gather all weights of a sharded module on every worker, so that each can use the model by
    itself.

    Collective: all workers have to enter it. A module that is not sharded is unchanged.
    """
    parts = [part for part in replica.modules() if _is_sharded_module(part)]
    for part in parts:
        part.set_reshard_after_forward(False, recurse=False)
        part.unshard()
    yield
    for part in parts:
        part.set_reshard_after_forward(part is not replica, recurse=False)
        part.reshard()


def gradient_sync(replica: nn.Module, enabled: bool) -> AbstractContextManager:
    """Return a context manager for one forward and backward pass.

    Args:
        replica: The result of ``replicate`` or ``shard``.
        enabled: Whether to average the accumulated gradients over the workers after this pass. Otherwise they are
            accumulated locally.
    """
    if _is_sharded_module(replica):
        replica.set_requires_gradient_sync(enabled)
    if isinstance(replica, DistributedDataParallel) and not enabled:
        return replica.no_sync()
    return nullcontext()


def full_tensor(tensor: Tensor) -> Tensor:
    """Gather a sharded tensor from all workers (collective). A tensor that is not sharded is returned unchanged."""
    return tensor.full_tensor() if is_sharded(tensor) else tensor


def sharded_like(tensor: Tensor, pattern: Tensor) -> Tensor:
    """Shard a full tensor in the same way as ``pattern``, and return the shard of this worker.

    The tensor is returned unchanged if ``pattern`` is not sharded or has another shape.
    """
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
