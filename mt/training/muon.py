"""The optimizer Muon (Jordan et al. 2024): updates a matrix by its orthogonalised momentum."""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from mt.config import OptimizerConfig
from mt.core.device import choose_precision, precision_name
from mt.distributed.replication import full_tensor, is_sharded, sharded_like
from mt.distributed.workers import Workers

HIDDEN_MATRICES = "hidden matrices"
"""The name of the parameter group of the hidden matrices, for Muon and AdamW."""
MOMENTUM = 0.95
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b and c of the polynomial a·x + b·x³ + c·x⁵. It drives singular values to about one, small ones the fastest."""
ADAMW_RMS = 0.2
"""Root mean square of AdamW's updates (Liu et al. 2025). Muon's are scaled to it, so that one learning rate fits
both."""
MAX_STACKED_ELEMENTS = 2**24
"""Elements of the matrices that are orthogonalised together: enough for computing to take longer than launching
kernels, and few enough to need little memory."""


def orthogonalise(matrices: Tensor, iterations: int, dtype: torch.dtype) -> Tensor:
    """Return matrices with the same singular vectors, but singular values of about one (Newton-Schulz iterations).

    Args:
        matrices: N matrices (N, R, C) in fp32 or bf16. They are scaled before they are converted, because fp16 has no
            very small or large numbers.
        iterations: The number of iterations. More bring the singular values nearer to one.
        dtype: The number format of the iterations and of the result.
    """
    a, b, c = COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = (x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)).to(dtype)
    for _ in range(iterations):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Muon with Nesterov momentum, as in torch.optim, but computed for stacks of matrices and divided among workers.

    Single matrices would need thousands of small kernels, which a GPU takes longer to launch than to compute, so
    matrices of one shape are stacked.

    Orthogonalising takes the same time however small a worker's share of the batch is (with five iterations, a third of
    an update of 1,536 tokens on a CPU). So each worker updates a share of the matrices and broadcasts them.
    """

    def __init__(self, matrices: Sequence[nn.Parameter], config: OptimizerConfig, workers: Workers) -> None:
        group = {"name": HIDDEN_MATRICES, "params": matrices, "weight_decay": config.weight_decay, "rate_factor": 1.0}
        super().__init__([group], {"lr": config.learning_rate})
        self.weight_decay = config.weight_decay
        self.iterations = config.muon_iterations
        self.workers = workers
        # The fastest format of the device, whatever the precision of training. The narrow range of fp16 suffices for
        # matrices whose norm is one. A processor without bf16 instructions would take fifty times as long in bf16 as in
        # fp32, longer than the rest of the update.
        self.dtype = choose_precision("auto", workers.device)
        # All workers have to take part in gathering a sharded matrix (FSDP2), so each updates its shard of all.
        sharded = any(is_sharded(matrix) for matrix in matrices)
        by_size = sorted(matrices, key=Tensor.numel, reverse=True)
        self.shares = [] if sharded else [by_size[rank :: workers.size] for rank in range(workers.size)]
        self.own = matrices if sharded else self.shares[workers.rank]
        self._ranks = {id(matrix): rank for rank, share in enumerate(self.shares) for matrix in share}
        """The rank of the worker that updates a matrix, by the matrix's id; empty if the matrices are sharded."""

    @torch.no_grad()
    def step(self, finite: Tensor) -> None:  # type: ignore[override]
        """Update this worker's matrices and momenta unless ``finite``, a bool tensor on their device, is false."""
        rate = self.param_groups[0]["lr"]
        for matrices in _stacks(self.own):
            weights: list[Tensor] = [*matrices]
            directions = orthogonalise(self._nesterov_means(matrices, finite), self.iterations, self.dtype).float()
            directions.mul_(finite * (rate * ADAMW_RMS * math.sqrt(max(matrices[0].shape))))
            if self.weight_decay:
                torch._foreach_mul_(weights, 1 - finite * (rate * self.weight_decay))
            steps = [sharded_like(step, weight) for step, weight in zip(directions, weights, strict=True)]
            torch._foreach_sub_(weights, steps)

    @torch.no_grad()
    def exchange(self) -> None:
        """Copy the updated matrices to all workers, after ``step``. All workers have to call this."""
        self.workers.broadcast_shares(self.shares)

    def _nesterov_means(self, matrices: Sequence[nn.Parameter], finite: Tensor) -> Tensor:
        """Update the momenta of N matrices (R, C). Return the unsharded Nesterov means of gradient and momentum (N, R,
        C).

        The means are converted to bf16 if they are to be orthogonalised in bf16, but not to fp16, whose range is too
        small.
        """
        momenta = [self._momentum(matrix) for matrix in matrices]
        momentum = torch.stack(momenta)
        # If the gradient is not finite, the momentum is averaged with itself, which leaves it bitwise unchanged.
        gradient = torch.stack([matrix.grad for matrix in matrices])  # type: ignore[misc]
        gradient = torch.where(finite, gradient, momentum)
        momentum.lerp_(gradient, 1 - MOMENTUM)
        if is_sharded(momentum):  # _foreach_copy_ does not take sharded tensors
            for matrix, part in zip(matrices, momentum.unbind(), strict=True):
                self.state[matrix]["momentum_buffer"] = part
        else:
            torch._foreach_copy_(momenta, momentum.unbind())
        means = full_tensor(gradient.lerp_(momentum, MOMENTUM))
        return means.bfloat16() if self.dtype == torch.bfloat16 else means

    def _momentum(self, matrix: nn.Parameter) -> Tensor:
        state = self.state[matrix]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        return state["momentum_buffer"]

    def resolved_settings(self) -> dict[str, str | float]:
        """Return the settings of Muon that AdamW lacks, by name."""
        return {"Newton-Schulz iterations": self.iterations, "orthogonalised in": precision_name(self.dtype)}

    def updates(self, matrix: nn.Parameter) -> bool:
        """Return whether this worker updates a matrix or a shard of it, and so holds its momentum."""
        return self._ranks.get(id(matrix), self.workers.rank) == self.workers.rank

    @torch.no_grad()
    def full_state(self, matrix: nn.Parameter) -> dict[str, Tensor]:
        """Return the unsharded momentum of a matrix on every worker. All workers have to call this."""
        momentum = self._momentum(matrix) if self.updates(matrix) else torch.empty_like(matrix)
        if id(matrix) in self._ranks:
            self.workers.broadcast(momentum, self._ranks[id(matrix)])
        return {"momentum_buffer": full_tensor(momentum)}


def _stacks(matrices: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Group matrices by shape. Yield them in lists of at most MAX_STACKED_ELEMENTS elements, but at least one
    matrix."""
    by_shape: dict[torch.Size, list[nn.Parameter]] = {}
    for matrix in matrices:
        by_shape.setdefault(matrix.shape, []).append(matrix)
    for shape, group in by_shape.items():
        size = max(1, MAX_STACKED_ELEMENTS // shape.numel())
        yield from (group[first : first + size] for first in range(0, len(group), size))
