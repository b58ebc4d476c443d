"""How gradients move weights: AdamW (Loshchilov & Hutter 2019), Muon (Jordan et al. 2024), learning-rate schedules."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mt.config import OptimizerConfig, ScheduleConfig
from mt.errors import InputError
from mt.model.seq2seq import Seq2Seq
from mt.training.distributed import put_together, spread_like


def schedule_factor(config: ScheduleConfig, update: int, max_updates: int) -> float:
    """The share of its peak that the learning rate has at ``update`` (the first is 1): a pure function, so that a
    resumed run needs no state of it."""
    if update <= config.warmup:
        return update / config.warmup
    if config.kind == "inverse_sqrt":  # Vaswani et al. 2017, section 5.3
        return math.sqrt(max(config.warmup, 1) / update)
    done = min(1.0, (update - config.warmup) / (max_updates - config.warmup))
    return 1 - done if config.kind == "linear" else (1 + math.cos(math.pi * done)) / 2


class Optimizer:
    """One or two of torch's optimizers, moved together by one schedule.

    Muon takes the matrices inside the layers, AdamW the embeddings, output layer, biases and norms (and with
    kind=adamw everything); weight decay touches matrices alone.
    """

    def __init__(self, model: Seq2Seq, config: OptimizerConfig, schedule: ScheduleConfig, max_updates: int) -> None:
        self.schedule = schedule
        self.max_updates = max_updates
        parameters = list(model.parameters())
        looked_up = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
        looked_up.add(id(model.output_weight))
        hidden = [p for p in parameters if p.ndim == 2 and id(p) not in looked_up]
        other_matrices = [p for p in parameters if p.ndim == 2 and id(p) in looked_up]
        vectors = [p for p in parameters if p.ndim != 2]
        fused = parameters[0].device.type in ("cuda", "cpu")

        def adamw(matrices: list[nn.Parameter]) -> torch.optim.Optimizer:
            groups = [
                {"params": matrices, "weight_decay": config.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
            ]
            return torch.optim.AdamW(
                groups, lr=config.learning_rate, betas=config.betas, eps=config.epsilon, fused=fused
            )

        if config.kind == "adamw":
            self.parts: list[torch.optim.Optimizer] = [adamw(hidden + other_matrices)]
            self.peaks: list[float] = [config.learning_rate]
        else:
            muon = torch.optim.Muon(
                hidden,
                lr=config.muon_learning_rate,
                weight_decay=config.weight_decay,
                adjust_lr_fn="match_rms_adamw",
            )
            self.parts = [muon, adamw(other_matrices)]
            self.peaks = [config.muon_learning_rate, config.learning_rate]

    def set_learning_rate(self, update: int) -> float:
        """Sets the rates for ``update`` (from 1); returns AdamW's."""
        factor = schedule_factor(self.schedule, update, self.max_updates)
        for part, peak in zip(self.parts, self.peaks, strict=True):
            for group in part.param_groups:
                group["lr"] = peak * factor
        return self.peaks[-1] * factor

    def step(self) -> None:
        for part in self.parts:
            part.step()

    def zero_grad(self) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def _parameters(self) -> Sequence[tuple[str, torch.optim.Optimizer, nn.Parameter]]:
        """Every parameter with a name that stays the same from run to run."""
        return [
            (f"{number}.{index}", part, parameter)
            for number, part in enumerate(self.parts)
            for index, parameter in enumerate(p for group in part.param_groups for p in group["params"])
        ]

    def state_tensors(self) -> dict[str, Tensor]:
        """All that the next step depends on besides weights and schedule."""
        return {
            f"{name}.{key}": put_together(value).cpu()
            for name, part, parameter in self._parameters()
            for key, value in part.state[parameter].items()
        }

    def load_state_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Raises InputError if they are not those of this optimizer."""
        for name, part, parameter in self._parameters():
            own = {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
            kept = {"momentum_buffer"} if isinstance(part, torch.optim.Muon) else {"step", "exp_avg", "exp_avg_sq"}
            fitting = all(value.shape in (parameter.shape, torch.Size()) for value in own.values())
            if own.keys() not in (set(), kept) or not fitting:
                raise InputError("the checkpoint's optimizer.safetensors does not fit this model and optimizer")
            part.state[parameter] = {
                key: spread_like(value.to(parameter.device), parameter) for key, value in own.items()
            }
