"""Our Transformer's weights under the names that Hugging Face's ``transformers`` gives them.

The numbers stay the same. Where positions are sinusoidal, the features change their order: our position vectors have
sines and cosines in turn, those of ``transformers`` have all sines in front of all cosines.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from mt.config import TransformerConfig
from mt.exchange.ctranslate2 import positions_of
from mt.model.embedding import LearnedPositions
from mt.model.transformer import Transformer
from mt.weights import weights_of

MODULES = {
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
    "around_attention": "self_attn_layer_norm",
    "around_self_attention": "self_attn_layer_norm",
    "around_cross_attention": "encoder_attn_layer_norm",
    "around_feed_forward": "final_layer_norm",
    "inner": "fc1",
    "outer": "fc2",
}
"""What ``transformers`` calls the parts of a layer. The feed-forward block itself has no name there."""
EMBEDDINGS = {
    "encoder.embedding.tokens.weight": "model.encoder.embed_tokens.weight",
    "decoder.embedding.tokens.weight": "model.decoder.embed_tokens.weight",
    "output.weight": "lm_head.weight",
}
SHARED = "model.shared.weight"


def renamed_weights(model: Transformer, config: TransformerConfig, joint: bool) -> dict[str, Tensor]:
    """Returns the weights as ``transformers`` saves them: tied ones once.

    Args:
        model: The model.
        config: Its settings.
        joint: Whether its vocabulary is joint.
    """
    order = _order_of_features(config)
    found = {}
    for name, weight in weights_of(model).items():
        if name in EMBEDDINGS:
            shared = joint and config.tie_embeddings
            found[SHARED if shared else EMBEDDINGS[name]] = weight[:, order]
        elif "embedding.positions" not in name:
            found[_renamed(name)] = _reordered(name, weight, order)
    found["final_logits_bias"] = torch.zeros(1, len(model.output_weight))
    if config.norm == "pre":
        # MarianMT does not save its positions, but computes them.
        found |= dict(_positions(model, config, order))
    return {name: weight.contiguous() for name, weight in found.items()}


def _order_of_features(config: TransformerConfig) -> Tensor:
    """Returns for each feature of the exported model which of ours it is, (D,)."""
    features = torch.arange(config.width)
    return features if config.positions == "learned" else torch.cat([features[0::2], features[1::2]])


def _renamed(name: str) -> str:
    """``encoder.layers.0.around_attention.norm.weight`` → ``model.encoder.layers.0.self_attn_layer_norm.weight``"""
    side, *parts, kind = name.split(".")
    if parts == ["norm"]:  # behind the last layer
        return f"model.{side}.layer_norm.{kind}"
    layers, number, *parts = parts
    theirs = [MODULES[part] for part in parts if part in MODULES]
    return ".".join(["model", side, layers, number, *theirs, kind])


def _reordered(name: str, weight: Tensor, order: Tensor) -> Tensor:
    """Returns a weight of a layer with the features that it reads or writes in another order."""
    *_, module, kind = name.split(".")
    if module in ("norm", "output", "outer"):  # these write the features
        return weight[order]
    return weight[:, order] if kind == "weight" else weight


def _positions(model: Transformer, config: TransformerConfig, order: Tensor) -> Iterator[tuple[str, Tensor]]:
    for side, embedding in (("encoder", model.encoder.embedding), ("decoder", model.decoder.embedding)):
        positions = embedding.positions
        if isinstance(positions, LearnedPositions):
            table = positions.weight.detach()
        else:
            table = positions(0, positions_of(config))[:, order]
        yield f"model.{side}.embed_positions.weight", table
