"""The loop that everybody writes around ``torch.nn.Transformer``."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from mt.text.tokenizer import PAD
from tests.benchmarks import task


class PlainTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(task.VOCABULARY, task.WIDTH, padding_idx=PAD)
        self.dropout = nn.Dropout(task.DROPOUT)
        self.transformer = nn.Transformer(
            task.WIDTH,
            task.HEADS,
            task.LAYERS,
            task.LAYERS,
            task.FEED_FORWARD,
            task.DROPOUT,
            batch_first=True,
        )
        self.output = nn.Linear(task.WIDTH, task.VOCABULARY, bias=False)
        nn.init.normal_(self.embedding.weight, std=task.WIDTH**-0.5)
        self.output.weight = self.embedding.weight

        position = torch.arange(512).unsqueeze(1)  # (P, 1)
        frequency = torch.exp(torch.arange(0, task.WIDTH, 2) * (-math.log(10000.0) / task.WIDTH))  # (D/2,)
        positions = torch.zeros(512, task.WIDTH)  # (P, D)
        positions[:, 0::2] = torch.sin(position * frequency)
        positions[:, 1::2] = torch.cos(position * frequency)
        self.register_buffer("positions", positions)
        self.positions: Tensor

    def embed(self, ids: Tensor) -> Tensor:
        """(B, T) → (B, T, D)"""
        embedded = self.embedding(ids) * math.sqrt(task.WIDTH)
        return self.dropout(embedded + self.positions[: ids.shape[1]])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S), target (B, T) → logits (B, T, V)"""
        length = target.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)  # (T, T)
        padding = source == PAD  # (B, S)
        features = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=future,
            src_key_padding_mask=padding,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.output(features)


def make_step(precision: str) -> Callable[[Tensor, Tensor], None]:
    """A training step on source (B, S) and target (B, T+1) ids."""
    return step_of(PlainTransformer(), precision)


def step_of(model: nn.Module, precision: str) -> Callable[[Tensor, Tensor], None]:
    """A training step of a model that goes from source (B, S) and target (B, T) to logits (B, T, V)."""
    model.train()
    optimizer = task.adamw(model)

    def step(source: Tensor, target: Tensor) -> None:
        with task.autocast(precision):
            logits = model(source, target[:, :-1])  # (B, T, V)
            loss = functional.cross_entropy(
                logits.flatten(0, 1),
                target[:, 1:].flatten(),
                ignore_index=PAD,
                label_smoothing=task.LABEL_SMOOTHING,
            )
        task.update(model, optimizer, loss)

    return step
