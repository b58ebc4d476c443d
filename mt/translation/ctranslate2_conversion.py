"""Conversion of a trained Transformer to a model of CTranslate2 (https://opennmt.net/CTranslate2).

The weights keep their values. Those of query, key and value are joined into one matrix. Sinusoidal positions are stored
as a table, because CTranslate2 computes them differently: it counts from 1, and does not interleave sines and cosines.
"""

from pathlib import Path
from typing import Any, assert_never

import numpy as np
from torch import Tensor, nn

from mt.config import ModelConfig, RNNAttentionConfig, TransformerConfig
from mt.core.installation import optional_packages
from mt.models.attention import MultiHeadAttention
from mt.models.embedding import Embedding
from mt.models.transformer import DecoderLayer, EncoderLayer, Residual, Transformer
from mt.tokenizer.tokenizer import BOS, EOS, PAD, UNK
from mt.translation.trained_model import TrainedModel

SINUSOIDAL_POSITIONS = 2048
"""The length of the table of sinusoidal positions, EOS included."""
CTRANSLATE2_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}
"""CTranslate2's name of each activation."""


def import_ctranslate2() -> Any:
    """Return the optional package ctranslate2.

    Raises:
        InputError: It is not installed.
    """
    with optional_packages():
        import ctranslate2
    return ctranslate2


def max_positions(config: TransformerConfig) -> int:
    """Return the maximum number of tokens, EOS included, of a source or target of the converted model."""
    match config.positions:
        case "learned":
            return config.max_positions
        case "sinusoidal":
            return SINUSOIDAL_POSITIONS
        case _:
            assert_never(config.positions)


def ctranslate2_obstacles(config: ModelConfig) -> list[str]:
    """Return every reason why CTranslate2 cannot run an architecture, or an empty list if it can."""
    match config:
        case TransformerConfig():
            return []
        case RNNAttentionConfig():
            return [f"model.architecture={config.architecture}: CTranslate2 runs Transformers only"]
        case _:
            assert_never(config)


def write_model(trained: TrainedModel, folder: Path, quantization: str | None = None) -> None:
    """Write model.bin, config.json and the vocabularies into an existing folder.

    Args:
        quantization: The number format of the stored weights, by CTranslate2's name; None keeps fp32.

    Raises:
        InputError: CTranslate2 is not installed.
    """
    spec = _specification(trained)
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))


def _specification(trained: TrainedModel) -> Any:
    """Return a TransformerSpec of CTranslate2 with the model's weights."""
    model, config = trained.model, trained.description.model
    assert isinstance(model, Transformer) and isinstance(config, TransformerConfig)
    specs = import_ctranslate2().specs
    spec = specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=config.norm == "pre",
        activation=getattr(specs.Activation, CTRANSLATE2_ACTIVATIONS[config.activation]),
    )
    _set_embedding(spec.encoder, spec.encoder.embeddings[0], model.encoder.embedding, config)
    _set_embedding(spec.decoder, spec.decoder.embeddings, model.decoder.embedding, config)
    spec.decoder.projection.weight = _to_numpy(model.output_weight)
    if model.output_bias is not None:
        spec.decoder.projection.bias = _to_numpy(model.output_bias)
    for layer_spec, encoder_layer in zip(spec.encoder.layer, model.encoder.layers, strict=True):
        _set_attention(layer_spec.self_attention, encoder_layer.self_attention, encoder_layer.around_attention)
        _set_feed_forward(layer_spec.ffn, encoder_layer)
    for layer_spec, layer in zip(spec.decoder.layer, model.decoder.layers, strict=True):
        _set_attention(layer_spec.self_attention, layer.self_attention, layer.around_self_attention)
        _set_attention(layer_spec.attention, layer.cross_attention, layer.around_cross_attention)
        _set_feed_forward(layer_spec.ffn, layer)
    if config.norm == "pre":
        _set_norm(spec.encoder.layer_norm, model.encoder.norm)
        _set_norm(spec.decoder.layer_norm, model.decoder.norm)

    for tokenizer, register in (
        (trained.tokenizers.source, spec.register_source_vocabulary),
        (trained.tokenizers.target, spec.register_target_vocabulary),
    ):
        register(tokenizer.all_subwords())
    start = PAD if config.decoder_start == "pad" else BOS
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = trained.tokenizers.target.subwords(
        [UNK, start, EOS]
    )
    spec.config.decoder_start_token = spec.config.bos_token
    if language := trained.tokenizers.source.language:  # CTranslate2 puts its token in front of each source
        spec.config.add_source_bos, spec.config.bos_token = True, f">>{language}<<"
    spec.config.add_source_eos = True
    return spec


def _set_attention(spec: Any, attention: MultiHeadAttention, around: Residual) -> None:
    # Self-attention has one matrix for Q, K and V. Cross-attention has one for Q, and one for K and V.
    *inputs, output = spec.linear
    projections = [attention.query, attention.key, attention.value]
    groups = [projections] if len(inputs) == 1 else [projections[:1], projections[1:]]
    for linear, layers in zip(inputs, groups, strict=True):
        _set_linear(linear, *layers)
    _set_linear(output, attention.output)
    _set_norm(spec.layer_norm, around.norm)


def _set_feed_forward(spec: Any, layer: EncoderLayer | DecoderLayer) -> None:
    _set_linear(spec.linear_0, layer.feed_forward.inner)
    _set_linear(spec.linear_1, layer.feed_forward.outer)
    _set_norm(spec.layer_norm, layer.around_feed_forward.norm)


def _set_embedding(side: Any, tokens: Any, embedding: Embedding, config: TransformerConfig) -> None:
    tokens.weight = _to_numpy(embedding.tokens.weight)
    side.scale_embeddings = config.scale_embeddings  # multiplied by √width
    table = _to_numpy(embedding.positions(0, max_positions(config)))
    # On a GPU, CTranslate2 may pad a batch to a multiple of 8. The added positions are never used.
    side.position_encodings.encodings = np.pad(table, ((0, -len(table) % 8), (0, 0)))


def _set_linear(spec: Any, *layers: nn.Linear) -> None:
    """Set weight and bias to those of ``layers``, stacked where CTranslate2 computes several in one product."""
    spec.weight = np.concatenate([_to_numpy(layer.weight) for layer in layers])
    spec.bias = np.concatenate([_to_numpy(layer.bias) for layer in layers])


def _set_norm(spec: Any, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm)
    spec.gamma, spec.beta = _to_numpy(norm.weight), _to_numpy(norm.bias)


def _to_numpy(weight: Tensor) -> np.ndarray:
    # CTranslate2 quantizes in place, so it gets a copy.
    return weight.detach().cpu().numpy().copy()
