"""What every contestant shares: the model's size, the batches, the peers' update, what a precision means."""

from contextlib import AbstractContextManager
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mt.config import ModelConfig, RNNAttentionConfig, TransformerConfig
from mt.tokenizer.tokenizer import PAD

PROJECT = Path(__file__).parents[2]
VOCABULARY = 8000
WIDTH = 256
FEED_FORWARD = 1024
HEADS = 4
LAYERS = 3
RNN_HIDDEN = 464
RNN_LAYERS = 2
"""Of the encoder; with one of the decoder the LSTM is as large as the Transformer (7.6 million parameters)."""
DROPOUT = 0.1
TRANSFORMER = TransformerConfig(
    architecture="transformer",
    width=WIDTH,
    feed_forward=FEED_FORWARD,
    heads=HEADS,
    encoder_layers=LAYERS,
    decoder_layers=LAYERS,
    dropout=DROPOUT,
)
RNN = RNNAttentionConfig(
    architecture="rnn_attention", width=WIDTH, hidden=RNN_HIDDEN, encoder_layers=RNN_LAYERS, dropout=DROPOUT
)
LABEL_SMOOTHING = 0.1
LEARNING_RATE = 1e-3
CLIP_NORM = 1.0

THREADS = 2
BATCH_TOKENS = 4096
SENTENCES = 1000
"""How many are decoded."""
BEAM_SIZES = (5, 1)
"""Of searches; 1 is greedy."""
SENTENCES_A_BATCH = 32
"""In which a peer decodes them, sorted by length."""


def read_lines(path: Path) -> list[str]:
    """Lines end at \\n alone."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def save_batches(batches: list[tuple[Tensor, Tensor]], path: Path) -> None:
    """Write pairs of source (B, S) and target (B, T+1) ids, int64, padded."""
    tensors = {}
    for number, (source, target) in enumerate(batches):
        tensors[f"{number}.source"] = source
        tensors[f"{number}.target"] = target
    save_file(tensors, path)


def load_batches(path: Path) -> list[tuple[Tensor, Tensor]]:
    """The pairs that save_batches wrote, in the same order."""
    tensors = load_file(path)
    return [(tensors[f"{n}.source"], tensors[f"{n}.target"]) for n in range(len(tensors) // 2)]


def autocast(precision: str, device: torch.device) -> AbstractContextManager:
    """fp32: as it is; bf16: autocast around the forward pass and the loss."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, fused=True)


def update(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """The second half of everybody's training step."""
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
    optimizer.step()


def real_tokens(batches: list[tuple[Tensor, Tensor]]) -> tuple[int, int]:
    """Source pieces and target pieces to predict, without padding."""
    source_tokens = sum(int((source != PAD).sum()) for source, _ in batches)
    target_tokens = sum(int((target[:, 1:] != PAD).sum()) for _, target in batches)
    return source_tokens, target_tokens


def flops(model: ModelConfig, vocabulary: int, source_tokens: int, target_tokens: int) -> float:
    """Of the products with weights, forward and backward, that real tokens need; without those of attention itself."""
    count = _transformer_weights if isinstance(model, TransformerConfig) else _rnn_weights
    per_source, per_target = count(model)  # type: ignore[operator]
    return 6.0 * (source_tokens * per_source + target_tokens * (per_target + model.width * vocabulary))


def _transformer_weights(model: TransformerConfig) -> tuple[int, int]:
    """Those that a source token and a target token are multiplied by, without the output layer's."""
    square, feed_forward = model.width**2, 2 * model.width * model.feed_forward
    per_source = model.encoder_layers * (4 * square + feed_forward) + model.decoder_layers * 2 * square
    return per_source, model.decoder_layers * (6 * square + feed_forward)


def _rnn_weights(model: RNNAttentionConfig) -> tuple[int, int]:
    """Likewise, the keys projected once a sentence."""
    width, hidden, each = model.width, model.hidden, model.hidden // 2
    inputs = [width] + [hidden] * (model.encoder_layers - 1)
    per_source = sum(2 * 4 * each * (size + each) for size in inputs) + hidden * width
    gates = 4 * hidden * (width + 2 * hidden) + (model.decoder_layers - 1) * 4 * hidden * 2 * hidden
    return per_source, gates + hidden * width + (2 * hidden + width) * width
