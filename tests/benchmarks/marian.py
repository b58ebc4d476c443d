"""Hugging Face's Marian, the same size and shape as our post-norm Transformer."""

from collections.abc import Mapping

import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from mt.models.positions import sinusoidal_positions
from mt.text.tokenizer import BOS, EOS, PAD, UNK
from tests.benchmarks import task

ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
FEED_FORWARD = {
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "around_feed_forward.norm": "final_layer_norm",
}
NAMES = {
    "encoder": FEED_FORWARD
    | {f"self_attention.{ours}": f"self_attn.{theirs}" for ours, theirs in ATTENTION.items()}
    | {"around_attention.norm": "self_attn_layer_norm"},
    "decoder": FEED_FORWARD
    | {f"self_attention.{ours}": f"self_attn.{theirs}" for ours, theirs in ATTENTION.items()}
    | {f"cross_attention.{ours}": f"encoder_attn.{theirs}" for ours, theirs in ATTENTION.items()}
    | {
        "around_self_attention.norm": "self_attn_layer_norm",
        "around_cross_attention.norm": "encoder_attn_layer_norm",
    },
}
"""The parts of a layer: ours → theirs."""


def new_marian() -> MarianMTModel:
    return MarianMTModel(
        MarianConfig(
            vocab_size=task.VOCABULARY,
            d_model=task.WIDTH,
            encoder_layers=task.LAYERS,
            decoder_layers=task.LAYERS,
            encoder_attention_heads=task.HEADS,
            decoder_attention_heads=task.HEADS,
            encoder_ffn_dim=task.FEED_FORWARD,
            decoder_ffn_dim=task.FEED_FORWARD,
            max_position_embeddings=512,
            activation_function="relu",
            dropout=task.DROPOUT,
            scale_embedding=True,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            forced_eos_token_id=None,
            decoder_start_token_id=BOS,
        )
    )


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
            for ours, theirs in NAMES[stack].items():
                for kind in ("weight", "bias"):
                    tensor = weights[f"{stack}.layers.{layer}.{ours}.{kind}"]
                    copied[f"model.{stack}.layers.{layer}.{theirs}.{kind}"] = tensor
    marian.load_state_dict(copied)
