"""The optimizers, AdamW (Loshchilov & Hutter 2019) and Muon, and the learning-rate schedules."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mt.config import OptimizerConfig, ScheduleConfig
from mt.core.errors import InputError
from mt.distributed.replication import full_tensor, sharded_like
from mt.distributed.workers import Workers
from mt.models.seq2seq import Seq2Seq
from mt.training.muon import HIDDEN_MATRICES, Muon


def schedule_factor(config: ScheduleConfig, update: int, max_updates: int) -> float:
    """Returns the share of its peak that the learning rate has at ``update`` (the first is 1). This is a pure function,
    so that a resumed run needs no state of the schedule."""
    if update <= config.warmup:
        return update / config.warmup
    if config.kind == "inverse_sqrt":  # Vaswani et al. 2017, section 5.3
        return math.sqrt(max(config.warmup, 1) / update)
    done = min(1.0, (update - config.warmup) / (max_updates - config.warmup))
    return 1 - done if config.kind == "linear" else (1 + math.cos(math.pi * done)) / 2


class Optimizer:
    """One or two optimizers that share one learning-rate schedule.

    Muon updates the model's hidden matrices, unless it has none or ``kind`` is adamw; AdamW updates everything else.
    Embeddings and output layer learn at ``embedding_factor`` times the learning rate. Weight decay applies to matrices
    only.
    """

    def __init__(
        self,
        model: Seq2Seq,
        config: OptimizerConfig,
        schedule: ScheduleConfig,
        max_updates: int,
        workers: Workers,
    ) -> None:
        self.peak = config.learning_rate
        self.schedule = schedule
        self.workers = workers
        self.max_updates = max_updates
        by_muon = [] if config.kind == "adamw" else model.hidden_matrices
        if config.kind == "muon" and not by_muon:
            raise ValueError("kind=muon, but the model has no hidden matrices for Muon to move")
        taken = {id(parameter) for parameter in by_muon}
        others = [parameter for parameter in model.parameters() if id(parameter) not in taken]
        looked_up = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
        looked_up.add(id(model.output_weight))

        def group(name: str, parameters: list[nn.Parameter], weight_decay: float, rate_factor: float) -> dict:
            return {"name": name, "params": parameters, "weight_decay": weight_decay, "rate_factor": rate_factor}

        decay = config.weight_decay
        matrices = [p for p in others if p.ndim == 2 and id(p) not in looked_up]
        groups = [
            group(
                "embeddings and output layer", [p for p in others if id(p) in looked_up], decay, config.embedding_factor
            ),
            group("other matrices" if by_muon else HIDDEN_MATRICES, matrices, decay, 1.0),
            group("biases and other vectors", [p for p in others if p.ndim != 2], 0.0, 1.0),
        ]
        self.fused = others[0].device.type in ("cuda", "cpu")
        self.adamw = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=self.peak,
            betas=config.betas,
            eps=config.epsilon,
            fused=self.fused,
        )
        self.muon = Muon(by_muon, config, workers) if by_muon else None
        self.parts: list[torch.optim.Optimizer] = [self.adamw, self.muon] if self.muon else [self.adamw]

    def took_effect(self) -> dict[str, dict[str, str | int | float | bool | None]]:
        """Returns, by each parameter group's name, which optimizer updates the group and with which settings."""
        return {
            group["name"]: {
                "optimizer": type(part).__name__,
                "peak learning rate": self.peak * group["rate_factor"],
                "weight decay": group["weight_decay"],
                "parameters": sum(parameter.numel() for parameter in group["params"]),
                **(part.took_effect() if isinstance(part, Muon) else {}),
            }
            for part in self.parts
            for group in part.param_groups
        }

    def set_learning_rate(self, update: int) -> float:
        """Sets the learning rates for ``update`` (the first is 1). Returns that of the hidden layers."""
        rate = self.peak * schedule_factor(self.schedule, update, self.max_updates)
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = rate * group["rate_factor"]
        return rate

    def step(self, finite: Tensor) -> None:
        """Updates the weights if the gradients are ``finite``, a bool on their device that the CPU need not wait
        for."""
        if self.fused:
            self.adamw.found_inf = (~finite).float()  # type: ignore[attr-defined] # as GradScaler sets it
        elif not finite:
            return
        self.adamw.step()
        if self.muon:
            self.muon.step(finite)

    def zero_grad(self) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def _parameters(self) -> Sequence[tuple[str, torch.optim.Optimizer, nn.Parameter]]:
        """Returns every parameter with its optimizer and a name that stays the same from run to run."""
        return [
            (f"{number}.{index}", part, parameter)
            for number, part in enumerate(self.parts)
            for index, parameter in enumerate(p for group in part.param_groups for p in group["params"])
        ]

    def state_tensors(self) -> dict[str, Tensor]:
        """Returns, on the leader, everything that the next step depends on besides weights and schedule. The tensors
        are on the CPU. All workers have to call this, since each may hold a part; the others get an empty dict."""
        found: dict[str, Tensor] = {}
        for name, part, parameter in self._parameters():
            state = part.whole_state(parameter) if isinstance(part, Muon) else part.state[parameter]
            for key, value in state.items():
                whole = full_tensor(value)
                if self.workers.is_leader:
                    found[f"{name}.{key}"] = whole.cpu()
        return found

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Restores the state that ``state_tensors`` returned. Raises InputError if it is not that of this optimizer."""
        for name, part, parameter in self._parameters():
            own = {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
            kept = {"momentum_buffer"} if part is self.muon else {"step", "exp_avg", "exp_avg_sq"}
            fitting = all(value.shape in (parameter.shape, torch.Size()) for value in own.values())
            if own.keys() not in (set(), kept) or not fitting:
                raise InputError("the checkpoint's optimizer.safetensors does not fit this model and optimizer")
            if isinstance(part, Muon) and not part.moves(parameter):
                continue
            part.state[parameter] = {
                key: sharded_like(value.to(parameter.device), parameter) for key, value in own.items()
            }
