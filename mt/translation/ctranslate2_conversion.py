"""Conversion of a trained Transformer to a model of CTranslate2 (https://opennmt.net/CTranslate2).

The weights are the same numbers in another order: those of query, key and value are in one matrix. Sinusoidal positions
are exported as a table, because CTranslate2 computes them differently: it counts from 1 and does not interleave sines
and cosines.
"""

import errno
import logging
import tempfile
from pathlib import Path
from typing import Any, assert_never, cast

import numpy as np
from torch import Tensor, nn

from mt.config import ModelConfig, RNNAttentionConfig, TransformerConfig
from mt.core.extras import optional_packages
from mt.core.files import new_folder
from mt.models.attention import MultiHeadAttention
from mt.models.embedding import Embedding
from mt.models.positions import LearnedPositions, Positions, SinusoidalPositions, sinusoidal_positions
from mt.models.transformer import DecoderLayer, EncoderLayer, FeedForward, Residual, Transformer
from mt.text.tokenizer import BOS, EOS, PAD, UNK
from mt.translation.trained_model import TrainedModel

logger = logging.getLogger(__name__)

EXPORT_FOLDER = "ctranslate2"
"""The folder inside a run folder that holds the converted weights."""
SINUSOIDAL_POSITIONS = 2048
"""Length of the table of sinusoidal positions, EOS included."""
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}
"""CTranslate2's name of each activation."""
NORMS = {"pre": True, "post": False}
"""Whether CTranslate2 calls a placement of LayerNorm ``pre_norm``."""


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
    return config.max_positions if config.positions == "learned" else SINUSOIDAL_POSITIONS


def obstacles(config: ModelConfig) -> list[str]:
    """Return every reason why CTranslate2 cannot run an architecture, or an empty list if it can."""
    match config:
        case TransformerConfig():
            known = config.positions in POSITION_TABLES
            return [] if known else [f"model.positions={config.positions}: CTranslate2 adds position vectors only"]
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


def export_into(run: Path, trained: TrainedModel) -> dict[str, bytes]:
    """Convert the model, keep the result in the run folder, and return its contents by file name.

    An existing export is compared with the new one and replaced if it differs, but never loaded: run folders come from
    anywhere, and CTranslate2 trusts a model.bin as one may only trust code. Converting anew takes about as long as
    verifying a checksum. Processes that export at the same time each use their own result. If the run folder is not
    writable, it stays as it is, and a warning is logged.

    Raises:
        InputError: CTranslate2 is not installed.
    """
    with tempfile.TemporaryDirectory() as temporary:
        write_model(trained, Path(temporary))
        files = {path.name: path.read_bytes() for path in Path(temporary).iterdir()}
    folder = run / EXPORT_FOLDER
    try:
        if not _holds(folder, files):
            with new_folder(folder) as partial:
                for name, content in files.items():
                    (partial / name).write_bytes(content)
            logger.info("exported the model for CTranslate2 to %s", folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another process has just put its own export there
            logger.warning("%s: the export cannot be kept there: %s", folder, error.strerror)
    return files


def _holds(folder: Path, files: dict[str, bytes]) -> bool:
    """Return whether a folder has exactly these files. A file of another size is not read."""
    if not folder.is_dir() or {path.name for path in folder.iterdir()} != files.keys():
        return False
    return all(
        (folder / name).is_file()
        and (folder / name).stat().st_size == len(content)
        and (folder / name).read_bytes() == content
        for name, content in files.items()
    )


def _specification(trained: TrainedModel) -> Any:
    """Return a TransformerSpec of CTranslate2 with the model's weights."""
    model, config = trained.model, trained.description.model
    assert isinstance(model, Transformer) and isinstance(config, TransformerConfig)
    specs = import_ctranslate2().specs
    spec = specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=NORMS[config.norm],
        activation=getattr(specs.Activation, ACTIVATIONS[config.activation]),
    )
    _set_embedding(spec.encoder, spec.encoder.embeddings[0], model.encoder.embedding, config)
    _set_embedding(spec.decoder, spec.decoder.embeddings, model.decoder.embedding, config)
    spec.decoder.projection.weight = _array(model.output_weight)
    if model.output_bias is not None:
        spec.decoder.projection.bias = _array(model.output_bias)
    for layer_spec, encoder_layer in zip(spec.encoder.layer, model.encoder.layers, strict=True):
        _set_encoder_layer(layer_spec, cast(EncoderLayer, encoder_layer))
    for layer_spec, decoder_layer in zip(spec.decoder.layer, model.decoder.layers, strict=True):
        _set_decoder_layer(layer_spec, decoder_layer)
    if config.norm == "pre":
        _set_norm(spec.encoder.layer_norm, model.encoder.norm)
        _set_norm(spec.decoder.layer_norm, model.decoder.norm)

    for tokenizer, register in (
        (trained.tokenizers.source, spec.register_source_vocabulary),
        (trained.tokenizers.target, spec.register_target_vocabulary),
    ):
        register(tokenizer.subwords(range(tokenizer.vocabulary_size)))
    start = PAD if config.decoder_start == "pad" else BOS
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = trained.tokenizers.target.subwords(
        [UNK, start, EOS]
    )
    spec.config.decoder_start_token = spec.config.bos_token
    spec.config.add_source_eos = True
    return spec


def _set_encoder_layer(spec: Any, layer: EncoderLayer) -> None:
    _set_self_attention(spec.self_attention, layer.self_attention, layer.around_attention)
    _set_feed_forward(spec.ffn, layer.feed_forward, layer.around_feed_forward)


def _set_decoder_layer(spec: Any, layer: DecoderLayer) -> None:
    _set_self_attention(spec.self_attention, layer.self_attention, layer.around_self_attention)
    cross = layer.cross_attention
    _set_linear(spec.attention.linear[0], cross.query)
    _set_linear(spec.attention.linear[1], cross.key, cross.value)
    _set_linear(spec.attention.linear[2], cross.output)
    _set_norm(spec.attention.layer_norm, layer.around_cross_attention.norm)
    _set_feed_forward(spec.ffn, layer.feed_forward, layer.around_feed_forward)


def _set_self_attention(spec: Any, attention: MultiHeadAttention, around: Residual) -> None:
    _set_linear(spec.linear[0], attention.query, attention.key, attention.value)
    _set_linear(spec.linear[1], attention.output)
    _set_norm(spec.layer_norm, around.norm)


def _set_feed_forward(spec: Any, feed_forward: FeedForward, around: Residual) -> None:
    _set_linear(spec.linear_0, feed_forward.inner)
    _set_linear(spec.linear_1, feed_forward.outer)
    _set_norm(spec.layer_norm, around.norm)


def _set_embedding(side: Any, tokens: Any, embedding: Embedding, config: TransformerConfig) -> None:
    tokens.weight = _array(embedding.tokens.weight)
    side.scale_embeddings = config.scale_embeddings  # multiplied by √width
    table = POSITION_TABLES[config.positions](embedding.positions)
    # On a GPU, CTranslate2 may lengthen a batch to a multiple of 8; nothing reads the rows added here.
    side.position_encodings.encodings = np.pad(table, ((0, -len(table) % 8), (0, 0)))


def _set_linear(spec: Any, *layers: nn.Linear) -> None:
    """Set weight and bias to those of ``layers``, stacked where CTranslate2 computes several in one product."""
    spec.weight = np.concatenate([_array(layer.weight) for layer in layers])
    spec.bias = np.concatenate([_array(layer.bias) for layer in layers])


def _set_norm(spec: Any, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm)
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _learned_table(positions: Positions) -> np.ndarray:
    assert isinstance(positions, LearnedPositions)
    return _array(positions.weight)


def _sinusoidal_table(positions: Positions) -> np.ndarray:
    assert isinstance(positions, SinusoidalPositions)
    return sinusoidal_positions(SINUSOIDAL_POSITIONS, positions.width).numpy()


POSITION_TABLES = {"learned": _learned_table, "sinusoidal": _sinusoidal_table}
"""For each exportable value of ``model.positions``, the function that returns the table of vectors."""


def _array(weight: Tensor) -> np.ndarray:
    # A copy: CTranslate2 quantises in place.
    return weight.detach().cpu().numpy().copy()
