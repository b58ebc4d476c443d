"""Converts the weights of Transformers in ``transformers`` to our names and order, and back.

The values stay the same. Models with sinusoidal positions need another order of features: our position vectors
alternate sines and cosines, and those of ``transformers`` have all sines before all cosines.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never

import torch
from torch import Tensor

from mt.config import TransformerConfig
from mt.core.errors import InputError
from mt.storage.hub import TO_SAFETENSORS
from mt.storage.model_folder import Shapes
from mt.storage.validation import GET_AGAIN, read_safetensors
from mt.storage.vocabulary import Vocabulary
from mt.storage.weights import NUMBER_FORMATS, short_list

Activation = Literal["relu", "gelu", "silu"]
HF_WEIGHTS = "model.safetensors"
HF_CONFIG = "config.json"
HF_ACTIVATIONS: Mapping[Activation, str] = {"relu": "relu", "gelu": "gelu", "silu": "swish"}
"""Value of ``model.activation`` → its name in ``transformers``."""
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
"""Our name of a submodule of a layer → its name in ``transformers``, which has no module for the feed-forward block."""
SETTINGS = {
    "d_model": "width",
    "scale_embedding": "scale_embeddings",
    "tie_word_embeddings": "tie_embeddings",
    "encoder_layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "decoder_attention_heads": "heads",
    "encoder_attention_heads": "heads",
    "decoder_ffn_dim": "feed_forward",
    "encoder_ffn_dim": "feed_forward",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
}
"""Setting in the config.json of ``transformers`` → our setting."""
EMBEDDINGS = {
    "encoder.embedding.tokens.weight": "model.encoder.embed_tokens.weight",
    "decoder.embedding.tokens.weight": "model.decoder.embed_tokens.weight",
    "output.weight": "lm_head.weight",
}
SHARED = "model.shared.weight"
BIAS = "final_logits_bias"
OUR_BIAS = "output.bias"
POSITIONS_KEY = "embed_positions.weight"


@dataclass(frozen=True)
class Vocabularies:
    """The source and the target vocabulary of one model. They are equal if they are joint."""

    source: Vocabulary
    target: Vocabulary

    def order(self, name: str) -> Tensor:
        """Return the token ids in ``transformers`` of the rows of our weight ``name``, (V,) int64."""
        return torch.tensor((self.source if name.startswith("encoder.") else self.target).order)


def exported_weights(
    weights: Mapping[str, Tensor],
    position_tables: Mapping[str, Tensor],
    config: TransformerConfig,
    vocabularies: Vocabularies,
) -> dict[str, Tensor]:
    """Return weights with the names and the order of ``transformers``. Tied weights occur once.

    Args:
        weights: Our weights by name, "output.bias" included.
        position_tables: ``encoder`` and ``decoder`` → position vectors (positions, D) to save; empty for none.
        config: The model's settings.
        vocabularies: The vocabularies of both sides.
    """
    features = _feature_order(config)
    exported: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if "embedding.positions" not in name:
            weight = _reordered(name, weight, vocabularies.order(name).argsort(), features)
            exported_name, *_ = _possible_names(name, vocabularies.target.joint, config.tie_embeddings)
            exported[exported_name] = weight[None] if name == OUR_BIAS else weight
    for side, table in position_tables.items():
        exported[f"model.{side}.{POSITIONS_KEY}"] = table[:, features]
    return {name: weight.contiguous() for name, weight in exported.items()}


def read_marian_weights(
    folder: Path, config: TransformerConfig, vocabularies: Vocabularies, shapes: Shapes
) -> dict[str, Tensor]:
    """Read the weights of a MarianMT folder, and return them with our names and order, in fp32.

    Args:
        folder: The MarianMT folder.
        config: The model's settings.
        vocabularies: The vocabularies of both sides.
        shapes: The shapes of our weights, by our names.

    Raises:
        InputError: The file is missing or damaged, or its tensors do not fit config.json.
    """
    path = folder / HF_WEIGHTS
    if not path.is_file():
        reason = "no such file, and pickles are not read, because opening one could run code in it"
        if (folder / f"{HF_WEIGHTS}.index.json").exists():
            reason = "no such file, and weights in several files are not read"
        raise InputError(f"{path}: {reason}. This makes it: {TO_SAFETENSORS.format(folder, folder)}")
    tensors = read_safetensors(path)
    weights: dict[str, Tensor] = {}
    problems: list[str] = []
    for name, shape in shapes.items():
        candidates = _possible_names(name, vocabularies.target.joint, config.tie_embeddings)
        copies = {candidate: tensors.pop(candidate) for candidate in candidates if candidate in tensors}
        expected = (1, *shape) if candidates[0] == BIAS else tuple(shape)
        if not copies:
            problems.append(f"{candidates[0]} is missing")
        elif problem := _problem(copies, expected, config.tie_embeddings):
            problems.append(problem)
        else:
            weight = next(iter(copies.values())).float()
            weight = weight[0] if name == OUR_BIAS else weight
            weights[name] = _reordered(name, weight, vocabularies.order(name), _feature_order(config).argsort())
    problems += [
        f"{name} is no part of the model that {HF_CONFIG} describes"
        for name, tensor in tensors.items()
        if not (name.endswith(POSITIONS_KEY) and _is_sinusoidal(tensor, config.width))
    ]
    if problems:
        raise InputError(f"{path}: {short_list(problems)}; {GET_AGAIN}")
    return weights


def _problem(copies: Mapping[str, Tensor], expected: tuple[int, ...], tied: bool) -> str | None:
    """Return the reason why the saved tensors of one of our weights cannot be used; None if they can.

    Args:
        copies: Name in the file → tensor. Tied weights may be saved several times.
        expected: The shape that each must have.
        tied: Whether all must be equal.
    """
    for name, tensor in copies.items():
        if tuple(tensor.shape) != expected:
            return f"{name} has shape {tuple(tensor.shape)}, but {HF_CONFIG} says {expected}"
    (name, first), *others = copies.items()
    if tied and not all(torch.equal(first, other) for _, other in others):
        return f"{' and '.join(copies)} differ, but {HF_CONFIG} says that they are the same"
    if first.dtype not in NUMBER_FORMATS:
        return f"{name} is {first.dtype}"
    return None if first.float().isfinite().all() else f"{name} has numbers that are not finite"


def _possible_names(name: str, joint: bool, tied: bool) -> list[str]:
    """Return the names under which ``transformers`` may have saved our weight ``name``, the preferred one first.

    Args:
        joint: Whether both languages share one vocabulary.
        tied: Whether embeddings and output layer share one matrix. If so, all saved tensors with these names must be
            equal; otherwise the first saved one counts.
    """
    if name not in EMBEDDINGS:
        return [_renamed(name)]
    if tied and joint:
        return [SHARED, *EMBEDDINGS.values()]
    if tied:
        return [EMBEDDINGS[name], *([EMBEDDINGS["output.weight"]] if name.startswith("decoder.") else [])]
    # Version 5 saves the shared matrix, too, although it uses the others.
    return [EMBEDDINGS[name], *([SHARED] if name != "output.weight" else [])]


def _is_sinusoidal(table: Tensor, width: int) -> bool:
    """Return whether a saved table (positions, D) has the sinusoidal position vectors of MarianMT."""
    if table.ndim != 2 or table.shape[1] != width:  # before a table of that many rows is made
        return False
    frequencies = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(len(table), dtype=torch.float64)[:, None] * frequencies
    return torch.allclose(table.double(), torch.cat([angles.sin(), angles.cos()], dim=1), atol=1e-3)


def _feature_order(config: TransformerConfig) -> Tensor:
    """Return, for each feature in the order of ``transformers``, the index of our feature, (D,) int64."""
    features = torch.arange(config.width)
    match config.positions:
        case "learned":
            return features
        case "sinusoidal":
            return torch.cat([features[0::2], features[1::2]])
        case _:
            assert_never(config.positions)


def _renamed(name: str) -> str:
    """Return the name in ``transformers`` of a weight other than embeddings.

    ``encoder.layers.0.around_attention.norm.weight`` → ``model.encoder.layers.0.self_attn_layer_norm.weight``
    """
    if name == OUR_BIAS:
        return BIAS
    side, *parts, kind = name.split(".")
    if parts == ["norm"]:  # after the last layer
        return f"model.{side}.layer_norm.{kind}"
    layers, number, *parts = parts
    return ".".join(["model", side, layers, number, *(MODULES[part] for part in parts if part in MODULES), kind])


def _reordered(name: str, weight: Tensor, tokens: Tensor, features: Tensor) -> Tensor:
    """Return our weight ``name`` with permuted rows and columns.

    Args:
        tokens: The permutation of token ids, (V,), for the weights that have a row per token.
        features: The permutation of features, (D,), for the input or output dimension that has them.
    """
    if name == OUR_BIAS:
        return weight[tokens]
    if name in EMBEDDINGS:
        return weight[tokens][:, features]
    *_, module, kind = name.split(".")
    if module in ("norm", "output", "outer"):  # these have output features
        return weight[features]
    return weight[:, features] if kind == "weight" else weight
