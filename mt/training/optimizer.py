"""The optimizers AdamW (Loshchilov & Hutter 2019) and Muon (Jordan et al. 2024), and their learning-rate schedule.

Muon updates a matrix by its orthogonalized momentum.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from mt.config import OptimizerConfig, ScheduleConfig
from mt.core.device import choose_precision, precision_name
from mt.core.errors import InputError
from mt.distributed.replication import full_tensor, is_sharded, sharded_like
from mt.distributed.workers import Workers
from mt.models.embedding import LearnedPositions
from mt.models.seq2seq import Seq2Seq
from mt.storage.weights import Tensors

ConditionValue = str | int | float | bool | None
ResolvedSettings = dict[str, dict[str, ConditionValue]]
"""Heading → name → value."""

HIDDEN_MATRICES = "hidden matrices"
"""The name of the parameter group of the hidden matrices, for Muon and AdamW."""
MOMENTUM = 0.95
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b and c of the polynomial a·x + b·x³ + c·x⁵. It drives singular values to about one, small ones the fastest."""
ADAMW_RMS = 0.2
"""Root mean square of AdamW's updates (Liu et al. 2025). Muon's are scaled to it, so that one learning rate fits
both."""
MAX_STACKED_ELEMENTS = 2**24
"""Maximum number of elements in a stack of matrices: enough that computing takes longer than launching kernels, and few
enough to need little memory."""


def orthogonalize(matrices: Tensor, iterations: int, dtype: torch.dtype) -> Tensor:
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
    """Muon with Nesterov momentum, as in torch.optim, but for stacks of matrices and divided among workers.

    Matrices of one shape are stacked, because a GPU takes longer to launch thousands of small kernels than to compute
    them.

    Orthogonalizing takes the same time however small a worker's share of the batch is (with five iterations, a third of
    an update of 1,536 tokens on a CPU). So each worker updates a share of the matrices and broadcasts them.
    """

    def __init__(self, matrices: Sequence[nn.Parameter], config: OptimizerConfig, workers: Workers) -> None:
        group = _parameter_group(HIDDEN_MATRICES, config.weight_decay, 1.0) | {"params": matrices}
        super().__init__([group], {"lr": config.learning_rate})
        self.iterations = config.muon_iterations
        self.workers = workers
        # The fastest format of the device, independent of the training precision. The narrow range of fp16 suffices
        # for matrices whose norm is one. Without bf16 instructions, bf16 would take fifty times as long as fp32, longer
        # than the rest of the update.
        self.dtype = choose_precision("auto", workers.device)
        # With FSDP2, gathering a matrix needs all workers, so each worker updates its shard of every matrix.
        sharded = any(is_sharded(matrix) for matrix in matrices)
        by_size = sorted(matrices, key=Tensor.numel, reverse=True)
        self.shares = [] if sharded else [by_size[rank :: workers.size] for rank in range(workers.size)]
        self.local_matrices = matrices if sharded else self.shares[workers.rank]
        self._ranks = {id(matrix): rank for rank, share in enumerate(self.shares) for matrix in share}
        """The rank of the worker that updates a matrix, by the matrix's id; empty if the matrices are sharded."""

    @torch.no_grad()
    def step(self, finite: Tensor) -> None:  # type: ignore[override]
        """Update this worker's matrices and momenta unless ``finite``, a bool tensor on their device, is false."""
        rate, weight_decay = (self.param_groups[0][name] for name in ("lr", "weight_decay"))
        for matrices in _stack_by_shape(self.local_matrices):
            weights: list[Tensor] = [*matrices]
            directions = orthogonalize(self._nesterov_means(matrices, finite), self.iterations, self.dtype).float()
            directions.mul_(finite * (rate * ADAMW_RMS * math.sqrt(max(matrices[0].shape))))
            if weight_decay:
                torch._foreach_mul_(weights, 1 - finite * (rate * weight_decay))
            steps = [sharded_like(step, weight) for step, weight in zip(directions, weights, strict=True)]
            torch._foreach_sub_(weights, steps)

    def _nesterov_means(self, matrices: Sequence[nn.Parameter], finite: Tensor) -> Tensor:
        """Update the momenta of N matrices (R, C). Return the unsharded Nesterov means of gradient and momentum (N, R,
        C).

        The means are in bf16 if the matrices are orthogonalized in bf16, else in fp32: the range of fp16 is too small.
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

    def is_local(self, matrix: nn.Parameter) -> bool:
        """Return whether this worker updates a matrix, or a shard of it, and holds its momentum."""
        return self._ranks.get(id(matrix), self.workers.rank) == self.workers.rank

    @torch.no_grad()
    def full_state(self, matrix: nn.Parameter) -> Tensors:
        """Return the unsharded momentum of a matrix on every worker. All workers have to call this."""
        momentum = self._momentum(matrix) if self.is_local(matrix) else torch.empty_like(matrix)
        if id(matrix) in self._ranks:
            self.workers.broadcast(momentum, self._ranks[id(matrix)])
        return {"momentum_buffer": full_tensor(momentum)}


def _stack_by_shape(matrices: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Group matrices by shape. Yield them in lists of at most MAX_STACKED_ELEMENTS elements, but at least one
    matrix."""
    by_shape: dict[torch.Size, list[nn.Parameter]] = {}
    for matrix in matrices:
        by_shape.setdefault(matrix.shape, []).append(matrix)
    for shape, group in by_shape.items():
        size = max(1, MAX_STACKED_ELEMENTS // shape.numel())
        yield from (group[first : first + size] for first in range(0, len(group), size))


class Optimizer:
    """AdamW, or Muon and AdamW, with one learning-rate schedule. The updater holds one.

    Muon updates the hidden matrices of the model, if it has any and ``kind`` is not adamw. AdamW updates all other
    parameters. Neither updates frozen ones. The learning rate of embeddings and output layer is multiplied by
    ``embedding_factor``. Only matrices have weight decay.
    """

    def __init__(
        self,
        model: Seq2Seq,
        config: OptimizerConfig,
        schedule: ScheduleConfig,
        max_updates: int,
        workers: Workers,
        capturable: bool = False,
    ) -> None:
        """
        Args:
            model: The model, on its device.
            config: The settings of the optimizers.
            schedule: The schedule of the learning rate.
            max_updates: The number of updates of the schedule.
            workers: The workers that train together.
            capturable: Whether a CUDA graph captures ``step``. Learning rates are then tensors on the device, so that
                each replay reads their current values.
        """
        self.peak_rate = config.learning_rate
        self.schedule = schedule
        self.max_updates = max_updates
        self.workers = workers
        hidden = [] if config.kind == "adamw" else model.hidden_matrices
        matrices = [matrix for matrix in hidden if matrix.requires_grad]
        if config.kind == "muon" and not matrices:
            raise InputError("training.optimizer.kind=muon: no matrix of a hidden layer is trained; set auto or adamw")
        by_muon = {id(matrix) for matrix in matrices}
        embeddings = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding | LearnedPositions)}
        embeddings.add(id(model.output_weight))
        groups = [
            _parameter_group("embeddings and output layer", config.weight_decay, config.embedding_factor),
            _parameter_group("other matrices" if matrices else HIDDEN_MATRICES, config.weight_decay, 1.0),
            _parameter_group("biases and other vectors", 0.0, 1.0),
        ]
        for parameter in model.parameters():
            if id(parameter) not in by_muon and parameter.requires_grad:
                number = 0 if id(parameter) in embeddings else 1 if parameter.ndim == 2 else 2
                groups[number]["params"].append(parameter)
        self.fused = model.device.type in ("cuda", "cpu")
        self.adamw = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=self.peak_rate,
            betas=config.betas,
            eps=config.epsilon,
            fused=self.fused,
            capturable=capturable,
        )
        self.muon = Muon(matrices, config, workers) if matrices else None
        self.parts: list[torch.optim.Optimizer] = [self.adamw, self.muon] if self.muon else [self.adamw]
        if capturable:
            for part in self.parts:
                for group in part.param_groups:
                    group["lr"] = torch.tensor(self.peak_rate, device=model.device)

    def resolved_settings(self) -> ResolvedSettings:
        """Describe each parameter group by its name: its optimizer, peak learning rate, weight decay and size."""
        return {
            group["name"]: {
                "optimizer": type(part).__name__,
                "peak learning rate": self.peak_rate * group["rate_factor"],
                "weight decay": group["weight_decay"],
                "parameters": sum(parameter.numel() for parameter in group["params"]),
                **(
                    {"Newton-Schulz iterations": part.iterations, "orthogonalized in": precision_name(part.dtype)}
                    if isinstance(part, Muon)
                    else {}
                ),
            }
            for part in self.parts
            for group in part.param_groups
        }

    def set_learning_rate(self, update: int, reductions: int = 0) -> float:
        """Set the learning rates of an update, numbered from 1. Return the rate of hidden layers.

        Args:
            update: The number of the update in the schedule.
            reductions: The number of times that the schedule ``plateau`` has lowered the rate.
        """
        rate = self.peak_rate * schedule_factor(self.schedule, update, self.max_updates, reductions)
        for part in self.parts:
            for group in part.param_groups:
                if torch.is_tensor(group["lr"]):
                    group["lr"].fill_(rate * group["rate_factor"])
                else:
                    group["lr"] = rate * group["rate_factor"]
        return rate

    def clip_and_step(self, clip_norm: float, enabled: Tensor | None = None) -> Tensor:
        """Clip the gradient, and update this worker's share of the weights if the gradient is finite.

        Args:
            clip_norm: The maximum norm of the gradient; 0: no clipping.
            enabled: A bool tensor, to update nothing if it is false. None: true.

        Returns:
            The norm of the gradient before clipping, a scalar on the device.
        """
        parameters = [parameter for _, _, parameter in self._parameters()]
        norm = full_tensor(torch.nn.utils.clip_grad_norm_(parameters, clip_norm or math.inf)).detach()
        finite = norm.isfinite()
        self.step(finite if enabled is None else finite & enabled)
        return norm

    def step(self, finite: Tensor) -> None:
        """Update this worker's share of the weights unless ``finite``, a bool tensor, is false. On a GPU, the CPU does
        not wait for its value."""
        if self.fused:
            self.adamw.found_inf = (~finite).float()  # type: ignore[attr-defined] # GradScaler sets this, too
        elif not finite:
            return
        self.adamw.step()
        if self.muon:
            self.muon.step(finite)

    @torch.no_grad()
    def broadcast_shares(self) -> None:
        """Broadcast the weights that each worker has updated, after ``step``. All workers have to call this."""
        if self.muon:
            self.workers.broadcast_shares(self.muon.shares)

    def zero_grad(self) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def _parameters(self) -> Sequence[tuple[str, torch.optim.Optimizer, nn.Parameter]]:
        """Return (name, optimizer, parameter) of every parameter. The name is the same in every process of a run."""
        return [
            (f"{number}.{index}", part, parameter)
            for number, part in enumerate(self.parts)
            for index, parameter in enumerate(p for group in part.param_groups for p in group["params"])
        ]

    def state_tensors(self) -> Tensors:
        """Return the unsharded optimizer state by name, on the CPU; empty except in the main process.

        All workers have to call this, because each may hold a part of the state.
        """
        tensors: Tensors = {}
        for name, part, parameter in self._parameters():
            state = part.full_state(parameter) if isinstance(part, Muon) else part.state[parameter]
            for key, value in state.items():
                tensor = full_tensor(value)
                if self.workers.is_main:
                    tensors[f"{name}.{key}"] = tensor.cpu()
        return tensors

    def load_state_tensors(self, tensors: Tensors) -> None:
        """Restore the state that ``state_tensors`` returned on the main process.

        Raises:
            InputError: The state belongs to another model or optimizer.
        """
        for name, part, parameter in self._parameters():
            state = {
                key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")
            }
            expected = {"momentum_buffer"} if part is self.muon else {"step", "exp_avg", "exp_avg_sq"}
            fits = all(value.shape in (parameter.shape, torch.Size()) for value in state.values())
            if state.keys() not in (set(), expected) or not fits:
                raise InputError(
                    "optimizer.safetensors in the newest checkpoint does not fit the model and optimizer of this run; "
                    "delete that checkpoint to resume from an older one, or train again under another name (name=…)"
                )
            if isinstance(part, Muon) and not part.is_local(parameter):
                continue
            part.state[parameter] = {
                key: sharded_like(value.to(parameter.device), parameter) for key, value in state.items()
            }


def schedule_factor(config: ScheduleConfig, update: int, max_updates: int, reductions: int = 0) -> float:
    """Return the learning rate of an update, numbered from 1, as a share of the peak (0–1).

    The result depends only on the arguments, so a checkpoint needs no schedule state except the number of
    ``reductions`` of ``plateau``.
    """
    if update <= config.warmup:
        return update / config.warmup
    done = min(1.0, (update - config.warmup) / max(1, max_updates - config.warmup))
    match config.kind:
        case "inverse_sqrt":  # Vaswani et al. 2017, section 5.3
            return math.sqrt(max(config.warmup, 1) / update)
        case "linear":
            return 1 - done
        case "cosine":
            return (1 + math.cos(math.pi * done)) / 2
        case "constant" | "step" | "plateau":
            return config.factor ** (reductions + sum(update > step for step in config.steps))


def _parameter_group(name: str, weight_decay: float, rate_factor: float) -> dict:
    return {"name": name, "params": [], "weight_decay": weight_decay, "rate_factor": rate_factor}
