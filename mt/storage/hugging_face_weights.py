"""Our Transformer's weights under the names that Hugging Face's ``transformers`` gives them.

The numbers stay the same. Where positions are sinusoidal, the features change their order: our position vectors have
sines and cosines in turn, those of ``transformers`` have all sines in front of all cosines.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from mt.config import TransformerConfig
from mt.models.positions import LearnedPositions, sinusoidal_positions
from mt.models.transformer import Transformer
from mt.storage.weights import weights_of
from mt.text.tokenizer import TokenizerPair
from mt.text.vocabulary import Vocabulary

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
BIAS = "final_logits_bias"


def renamed_weights(
    model: Transformer, config: TransformerConfig, tokenizers: TokenizerPair, positions: int
) -> dict[str, Tensor]:
    """Returns the weights as ``transformers`` saves them: tied ones once.

    Args:
        model: The model.
        config: Its settings.
        tokenizers: Its tokenizers. Their pieces get the numbers that they had where they come from.
        positions: The number of sinusoidal positions that are saved, if they are.
    """
    order = _order_of_features(config)
    found = {BIAS: torch.zeros(1, len(model.output_weight))}
    for name, weight in weights_of(model).items():
        if name in EMBEDDINGS:
            shared = tokenizers.joint and config.tie_embeddings
            vocabulary = (tokenizers.source if name.startswith("encoder.") else tokenizers.target).vocabulary
            rows = weight[torch.tensor(vocabulary.order).argsort()] if vocabulary else weight
            found[SHARED if shared else EMBEDDINGS[name]] = rows[:, order]
        elif name == "output.bias":
            vocabulary = tokenizers.target.vocabulary
            found[BIAS] = (weight[torch.tensor(vocabulary.order).argsort()] if vocabulary else weight)[None]
        elif "embedding.positions" not in name:
            found[renamed(name)] = _reordered(name, weight, order)
    if config.norm == "pre":
        # MarianMT does not save its positions, but computes them.
        found |= dict(_positions(model, positions, order))
    return {name: weight.contiguous() for name, weight in found.items()}


def weight_from(name: str, weight: Tensor, config: TransformerConfig, vocabulary: Vocabulary) -> Tensor:
    """Returns a weight of ``transformers`` as ours.

    Args:
        name: Our name for it.
        weight: What is saved under their name.
        config: The model's settings.
        vocabulary: The pieces of its side.
    """
    if name == "output.bias":
        return weight[0, vocabulary.order]
    features = _order_of_features(config).argsort()
    return weight[vocabulary.order][:, features] if name in EMBEDDINGS else _reordered(name, weight, features)


def positions_in_halves(length: int, width: int) -> Tensor:
    """Returns the table (length, width) of positions that MarianMT computes: all sines, then all cosines."""
    table = sinusoidal_positions(length, width)
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


def _order_of_features(config: TransformerConfig) -> Tensor:
    """Returns for each feature of the exported model which of ours it is, (D,)."""
    features = torch.arange(config.width)
    return features if config.positions == "learned" else torch.cat([features[0::2], features[1::2]])


def renamed(name: str) -> str:
    """Returns the name there of a weight other than embeddings.

    ``encoder.layers.0.around_attention.norm.weight`` → ``model.encoder.layers.0.self_attn_layer_norm.weight``
    """
    if name == "output.bias":
        return BIAS
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


def _positions(model: Transformer, count: int, order: Tensor) -> Iterator[tuple[str, Tensor]]:
    for side, embedding in (("encoder", model.encoder.embedding), ("decoder", model.decoder.embedding)):
        positions = embedding.positions
        length = len(positions.weight) if isinstance(positions, LearnedPositions) else count
        yield f"model.{side}.embed_positions.weight", positions(0, length).detach()[:, order]
