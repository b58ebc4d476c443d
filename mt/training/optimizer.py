"""The optimizers of a model, AdamW (Loshchilov & Hutter 2019) and Muon, and their learning-rate schedule."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mt.config import OptimizerConfig, ScheduleConfig
from mt.core.errors import InputError
from mt.distributed.replication import full_tensor, sharded_like
from mt.distributed.workers import Workers
from mt.models.positions import LearnedPositions
from mt.models.seq2seq import Seq2Seq
from mt.training.muon import HIDDEN_MATRICES, Muon


class Optimizer:
    """AdamW, or Muon and AdamW, with one learning-rate schedule. The updater holds one.

    Muon updates the hidden matrices of the model, if it has any and ``kind`` is not adamw. AdamW updates all other
    parameters. The learning rate of embeddings and output layer is multiplied by ``embedding_factor``. Only matrices
    have weight decay.
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
            max_updates: The number of updates of the run.
            workers: The workers that train together.
            capturable: Whether ``step`` is to be captured in a CUDA graph: learning rates are then tensors on the
                device, so that each replay reads the present ones.
        """
        self.peak_rate = config.learning_rate
        self.schedule = schedule
        self.max_updates = max_updates
        self.workers = workers
        matrices = [] if config.kind == "adamw" else model.hidden_matrices
        if config.kind == "muon" and not matrices:
            raise ValueError("kind=muon, but the model has no hidden matrices for Muon to update")
        by_muon = {id(matrix) for matrix in matrices}
        embeddings = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding | LearnedPositions)}
        embeddings.add(id(model.output_weight))
        groups = [
            _group("embeddings and output layer", config.weight_decay, config.embedding_factor),
            _group("other matrices" if matrices else HIDDEN_MATRICES, config.weight_decay, 1.0),
            _group("biases and other vectors", 0.0, 1.0),
        ]
        for parameter in model.parameters():
            if id(parameter) not in by_muon:
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

    def resolved_settings(self) -> dict[str, dict[str, str | int | float | bool | None]]:
        """Describe each parameter group by its name: its optimizer, peak learning rate, weight decay and size."""
        return {
            group["name"]: {
                "optimizer": type(part).__name__,
                "peak learning rate": self.peak_rate * group["rate_factor"],
                "weight decay": group["weight_decay"],
                "parameters": sum(parameter.numel() for parameter in group["params"]),
                **(part.resolved_settings() if isinstance(part, Muon) else {}),
            }
            for part in self.parts
            for group in part.param_groups
        }

    def set_learning_rate(self, update: int) -> float:
        """Set the learning rates of an update, numbered from 1. Return the rate of the hidden layers."""
        rate = self.peak_rate * schedule_factor(self.schedule, update, self.max_updates)
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

    def exchange(self) -> None:
        """Copy the shares of the weights to all workers, after ``step``. All workers have to call this."""
        if self.muon:
            self.muon.exchange()

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

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the unsharded state of the optimizers on the CPU by name; on other workers than the leader, nothing.

        All workers have to call this, because each may hold a part of the state.
        """
        tensors: dict[str, Tensor] = {}
        for name, part, parameter in self._parameters():
            state = part.full_state(parameter) if isinstance(part, Muon) else part.state[parameter]
            for key, value in state.items():
                tensor = full_tensor(value)
                if self.workers.is_leader:
                    tensors[f"{name}.{key}"] = tensor.cpu()
        return tensors

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Restore the state that ``state_tensors`` returned on the leader.

        Raises:
            InputError: The state belongs to another model or optimizer.
        """
        for name, part, parameter in self._parameters():
            own = {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
            expected = {"momentum_buffer"} if part is self.muon else {"step", "exp_avg", "exp_avg_sq"}
            fits = all(value.shape in (parameter.shape, torch.Size()) for value in own.values())
            if own.keys() not in (set(), expected) or not fits:
                raise InputError(
                    "optimizer.safetensors in the newest checkpoint does not fit the model and optimizer of this run; "
                    "delete that checkpoint to resume from an older one, or train again under another name (name=…)"
                )
            if isinstance(part, Muon) and not part.updates(parameter):
                continue
            part.state[parameter] = {
                key: sharded_like(value.to(parameter.device), parameter) for key, value in own.items()
            }


def schedule_factor(config: ScheduleConfig, update: int, max_updates: int) -> float:
    """Return the learning rate of an update, numbered from 1, as a share of the peak (0–1).

    This is a pure function, so that checkpoints need no state of the schedule.
    """
    if update <= config.warmup:
        return update / config.warmup
    if config.kind == "inverse_sqrt":  # Vaswani et al. 2017, section 5.3
        return math.sqrt(max(config.warmup, 1) / update)
    done = min(1.0, (update - config.warmup) / (max_updates - config.warmup))
    return 1 - done if config.kind == "linear" else (1 + math.cos(math.pi * done)) / 2


def _group(name: str, weight_decay: float, rate_factor: float) -> dict:
    return {"name": name, "params": [], "weight_decay": weight_decay, "rate_factor": rate_factor}
