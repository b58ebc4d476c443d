"""Hugging Face's ``MarianMTModel``, the same size and shape as our post-norm Transformer: training with the loss of
their ``Trainer``, and ``generate`` with the weights and the tokenizer of our run."""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel
from transformers.trainer_pt_utils import LabelSmoother

from mt.config import DecodingConfig, TransformerConfig
from mt.data.batching.batch import collate
from mt.models.embedding import sinusoidal_positions
from mt.tokenizer.tokenizer import BOS, EOS, PAD, UNK
from mt.translation.trained_model import open_model
from tests.benchmarks import task

ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
FEED_FORWARD = {
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "around_feed_forward.norm": "final_layer_norm",
}
NAMES = {
    "encoder": FEED_FORWARD
    | {f"self_attention.{name}": f"self_attn.{marian}" for name, marian in ATTENTION.items()}
    | {"around_attention.norm": "self_attn_layer_norm"},
    "decoder": FEED_FORWARD
    | {f"self_attention.{name}": f"self_attn.{marian}" for name, marian in ATTENTION.items()}
    | {f"cross_attention.{name}": f"encoder_attn.{marian}" for name, marian in ATTENTION.items()}
    | {"around_self_attention.norm": "self_attn_layer_norm", "around_cross_attention.norm": "encoder_attn_layer_norm"},
}
"""The parts of a layer: ours → Marian's."""


def new_marian(size: TransformerConfig = task.TRANSFORMER, vocabulary: int = task.VOCABULARY) -> MarianMTModel:
    config = MarianConfig(
        vocab_size=vocabulary, d_model=size.width, max_position_embeddings=512, scale_embedding=True,
        encoder_layers=size.encoder_layers, decoder_layers=size.decoder_layers,
        activation_function="relu", dropout=size.dropout,
        encoder_attention_heads=size.heads, decoder_attention_heads=size.heads,
        encoder_ffn_dim=size.feed_forward, decoder_ffn_dim=size.feed_forward,
        pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS, forced_eos_token_id=None, decoder_start_token_id=BOS,
    )  # fmt: skip
    return MarianMTModel(config)


def copy_into_marian(weights: Mapping[str, Tensor], marian: MarianMTModel) -> None:
    """Give Marian the weights of our post-norm Transformer with one tied vocabulary: the same function then.

    Raises KeyError or RuntimeError where the two differ in more than names.
    """
    copied = {"final_logits_bias": torch.zeros(1, task.VOCABULARY)}
    copied["final_logits_bias"][0, [PAD, UNK, BOS]] = -1e9
    vectors = weights["encoder.embedding.tokens.weight"]
    for name in ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"):
        copied[f"{name}.weight"] = vectors
    # Marian's own waves stand sines first, cosines after them; ours alternate, as in the paper.
    waves = sinusoidal_positions(marian.config.max_position_embeddings, task.WIDTH)
    for stack in ("encoder", "decoder"):
        copied[f"model.{stack}.embed_positions.weight"] = waves
        for layer in range(task.LAYERS):
            for name, marian_name in NAMES[stack].items():
                for kind in ("weight", "bias"):
                    tensor = weights[f"{stack}.layers.{layer}.{name}.{kind}"]
                    copied[f"model.{stack}.layers.{layer}.{marian_name}.{kind}"] = tensor
    marian.load_state_dict(copied)


def training_step(model: MarianMTModel, precision: str) -> Callable[[Tensor, Tensor], None]:
    """Return a training step on source (B, S) and target (B, T+1) ids, which are on the device of the model."""
    model.train()
    optimizer = task.adamw(model)
    smoother = LabelSmoother(epsilon=task.LABEL_SMOOTHING)

    def step(source: Tensor, target: Tensor) -> None:
        labels = target[:, 1:].masked_fill(target[:, 1:] == PAD, smoother.ignore_index)  # (B, T)
        with task.autocast(precision, source.device):
            output = model(source, source != PAD, target[:, :-1], use_cache=False)
            loss = smoother(output, labels)
        task.update(model, optimizer, loss)

    return step


def load_translator(run: Path, beam_size: int) -> Callable[[list[str]], list[str]]:
    """Return a function from lines to their translations."""
    trained = open_model(run)
    marian = new_marian().eval()
    copy_into_marian(trained.model.state_dict(), marian)
    tokenizer = trained.tokenizers.source
    limits = DecodingConfig()

    def translate(lines: list[str]) -> list[str]:
        pieces = tokenizer.encode(lines)
        order = sorted(range(len(lines)), key=lambda number: len(pieces[number]))
        translations = [""] * len(lines)
        for start in range(0, len(order), task.SENTENCES_A_BATCH):
            numbers = order[start : start + task.SENTENCES_A_BATCH]
            source = collate([pieces[n] for n in numbers], [[]] * len(numbers)).source  # (B, S)
            with torch.inference_mode():
                output = marian.generate(
                    input_ids=source,
                    attention_mask=source != PAD,
                    num_beams=beam_size,
                    do_sample=False,
                    max_new_tokens=int(source.shape[1] * limits.max_length_ratio) + limits.max_length_extra,
                )  # (B, T)
            for number, text in zip(numbers, tokenizer.decode(output.tolist()), strict=True):
                translations[number] = text
        return translations

    return translate
