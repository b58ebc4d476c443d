"""The loops of the tutorials: around ``torch.nn.Transformer``, and an LSTM called step by step whose additive attention
projects the keys anew."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from mt.config import TransformerConfig
from mt.tokenizer.tokenizer import PAD
from tests.benchmarks import task


class PlainTransformer(nn.Module):
    def __init__(self, size: TransformerConfig = task.TRANSFORMER, vocabulary: int = task.VOCABULARY) -> None:
        super().__init__()
        width = size.width
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=PAD)
        self.dropout = nn.Dropout(size.dropout)
        self.transformer = nn.Transformer(
            width, size.heads, size.encoder_layers, size.decoder_layers, size.feed_forward, size.dropout,
            batch_first=True,
        )  # fmt: skip
        self.output = nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.output.weight = self.embedding.weight

        position = torch.arange(512).unsqueeze(1)  # (P, 1)
        frequency = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))  # (D/2,)
        positions = torch.zeros(512, width)  # (P, D)
        positions[:, 0::2] = torch.sin(position * frequency)
        positions[:, 1::2] = torch.cos(position * frequency)
        self.register_buffer("positions", positions)
        self.positions: Tensor

    def embed(self, ids: Tensor) -> Tensor:
        """(B, T) → (B, T, D)"""
        embedded = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(embedded + self.positions[: ids.shape[1]])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S), target (B, T) → logits (B, T, V)"""
        length = target.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)  # (T, T)
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


class PlainAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(task.RNN_HIDDEN, task.WIDTH, bias=False)
        self.key = nn.Linear(task.RNN_HIDDEN, task.WIDTH, bias=False)
        self.score = nn.Linear(task.WIDTH, 1, bias=False)

    def forward(self, query: Tensor, memory: Tensor, padding: Tensor) -> Tensor:
        """query (B, 1, H), memory (B, S, H), padding (B, S) → context (B, 1, H)"""
        scores = self.score(torch.tanh(self.query(query) + self.key(memory))).squeeze(-1)  # (B, S)
        weights = scores.masked_fill(padding, -1e6).softmax(dim=-1)
        return torch.bmm(weights.unsqueeze(1), memory)


class PlainRNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        hidden = task.RNN_HIDDEN
        self.embedding = nn.Embedding(task.VOCABULARY, task.WIDTH, padding_idx=PAD)
        self.dropout = nn.Dropout(task.DROPOUT)
        self.encoder = nn.LSTM(
            task.WIDTH, hidden // 2, task.RNN_LAYERS, batch_first=True, bidirectional=True, dropout=task.DROPOUT
        )
        self.first_state = nn.Linear(hidden, 2 * hidden)
        self.attention = PlainAttention()
        self.decoder = nn.LSTM(task.WIDTH + hidden, hidden, batch_first=True)
        self.readout = nn.Linear(2 * hidden + task.WIDTH, task.WIDTH)
        self.output = nn.Linear(task.WIDTH, task.VOCABULARY, bias=False)
        nn.init.normal_(self.embedding.weight, std=task.WIDTH**-0.5)
        self.output.weight = self.embedding.weight

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S), target (B, T) → logits (B, T, V)"""
        lengths = (source != PAD).sum(dim=1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(self.embedding(source)), lengths, batch_first=True, enforce_sorted=False
        )
        outputs, (last, _) = self.encoder(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)  # (B, S, H)
        both = torch.cat([last[-2], last[-1]], dim=-1)  # (B, H)
        hidden, cell = (part.unsqueeze(0).contiguous() for part in self.first_state(both).tanh().chunk(2, dim=-1))
        embedded = self.dropout(self.embedding(target))  # (B, T, E)
        features = []
        for step in range(target.shape[1]):
            context = self.attention(hidden[-1].unsqueeze(1), memory, source == PAD)  # (B, 1, H)
            word = embedded[:, step : step + 1]
            state, (hidden, cell) = self.decoder(torch.cat([word, context], dim=-1), (hidden, cell))
            features.append(self.readout(torch.cat([state, context, word], dim=-1)).tanh())
        return self.output(self.dropout(torch.cat(features, dim=1)))


def training_step(model: nn.Module, precision: str) -> Callable[[Tensor, Tensor], None]:
    """Return a training step on source (B, S) and target (B, T+1) ids, which are on the device of the model.

    Args:
        model: From source (B, S) and target (B, T) to logits (B, T, V).
        precision: fp32 or bf16.
    """
    model.train()
    optimizer = task.adamw(model)

    def step(source: Tensor, target: Tensor) -> None:
        with task.autocast(precision, source.device):
            logits = model(source, target[:, :-1])  # (B, T, V)
            loss = functional.cross_entropy(
                logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD, label_smoothing=task.LABEL_SMOOTHING
            )
        task.update(model, optimizer, loss)

    return step
