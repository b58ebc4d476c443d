"""Exports a trained Transformer as a model of CTranslate2 (https://opennmt.net/CTranslate2):
``python -m mt export format=ctranslate2 run=RUN output=FOLDER``.

The weights are the same numbers in another order: those of query, key and value are in one matrix. Sinusoidal positions
are exported as a table, because CTranslate2 would compute other ones: it counts from 1 and does not interleave sines
and cosines.
"""

import errno
import logging
import tempfile
from pathlib import Path
from typing import Any, cast

import numpy as np
from torch import Tensor, nn

from mt.config import ExportConfig, TransformerConfig
from mt.core.errors import InputError
from mt.core.files import new_folder, refuse_taken
from mt.export.card import model_card, warn_of_losses, write_card
from mt.models.attention import MultiHeadAttention
from mt.models.embedding import Embedding, LearnedPositions, sinusoidal_positions
from mt.models.transformer import DecoderLayer, EncoderLayer, FeedForward, Residual, Transformer
from mt.storage.run_folder import TrainedModel, open_model
from mt.text.tokenizer import BOS, EOS, PAD, UNK

logger = logging.getLogger(__name__)

EXPORT = "ctranslate2"
"""The folder, inside a run folder, that holds the export of its weights."""
POSITIONS = 2048
"""How many sinusoidal positions the table has, that of EOS included."""

USAGE = """\
`ctranslate2.Translator(FOLDER)` loads the model. It takes and gives the pieces of the SentencePiece models that lie
beside it: tokenizer.model, or source.model and target.model.
"""


def library() -> Any:
    """Returns the package ctranslate2, which is optional, and which nothing else imports.

    Raises:
        InputError: It is not installed; the message says how to install it.
    """
    try:
        import ctranslate2
    except ImportError as error:
        raise InputError(
            f"CTranslate2 is not installed ({error}): pip install -e '.[fast]' beside pyproject.toml, "
            "or pip install ctranslate2"
        ) from None
    return ctranslate2


def export(config: ExportConfig) -> None:
    """Writes a folder with the model, its tokenizer and a README.md.

    Raises:
        InputError: The run cannot be read, CTranslate2 is not installed or cannot run the model, or the output exists
            and is not an empty folder.
    """
    library()  # raises now, before any work, if it is missing
    output = refuse_taken("output", config.output)
    run = Path(config.run)
    trained = open_model(run)
    if reasons := obstacles(trained):
        raise InputError(f"{config.run}: CTranslate2 cannot run this model: {'; '.join(reasons)}")
    with new_folder(output) as folder:
        write_model(trained, folder, config.quantization)
        trained.tokenizers.save(folder)
        write_card(folder, model_card(trained, run, config.license, USAGE))
    logger.info("exported the model for CTranslate2 to %s", config.output)
    warn_of_losses(trained, config.output)


def positions_of(config: TransformerConfig) -> int:
    """Returns the most pieces, EOS included, that the exported model can take or write."""
    return config.max_positions if config.positions == "learned" else POSITIONS


def obstacles(trained: TrainedModel) -> list[str]:
    """Returns every reason why CTranslate2 cannot run a model; the list is empty if it can."""
    if isinstance(trained.model, Transformer):
        return []
    return [f"model.architecture={trained.description.model.architecture}: CTranslate2 runs Transformers only"]


def write_model(trained: TrainedModel, folder: Path, quantization: str | None = None) -> None:
    """Writes model.bin, config.json and the vocabularies, which list the pieces, into a folder that exists.

    Args:
        quantization: The number format in which the weights are stored, by CTranslate2's name for it; None keeps them
            as they are.

    Raises:
        InputError: CTranslate2 is not installed.
    """
    spec = _specification(trained)
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))


def export_into(run: Path, trained: TrainedModel) -> dict[str, bytes]:
    """Exports the model, keeps the export in the run folder, and returns its contents by file name.

    An export that is already there is compared with the new one but never loaded. Run folders come from anywhere, and
    CTranslate2 trusts what a model.bin says of itself, sizes included, in a way in which only code may be trusted.
    Making the export anew takes about as long as checking the old one against a checksum would. So an export that is
    stale, damaged or forged is replaced, and two processes that export at the same time each use their own. If the run
    folder cannot be written to, it keeps what it has, and a warning is logged.

    Raises:
        InputError: CTranslate2 is not installed.
    """
    with tempfile.TemporaryDirectory() as place:
        write_model(trained, Path(place))
        files = {path.name: path.read_bytes() for path in Path(place).iterdir()}
    folder = run / EXPORT
    try:
        if not _holds(folder, files):
            with new_folder(folder) as partial:
                for name, content in files.items():
                    (partial / name).write_bytes(content)
            logger.info("exported the model for CTranslate2 to %s", folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return files  # another process has just put its own export there
        logger.warning("%s: the export cannot be kept there: %s", folder, error.strerror)
    return files


def _holds(folder: Path, files: dict[str, bytes]) -> bool:
    """Returns whether a folder has exactly these files."""
    if not folder.is_dir() or {path.name for path in folder.iterdir()} != files.keys():
        return False
    # A file whose size is wrong need not be read.
    return all(
        (folder / name).is_file()
        and (folder / name).stat().st_size == len(content)
        and (folder / name).read_bytes() == content
        for name, content in files.items()
    )


def _specification(trained: TrainedModel) -> Any:
    """Returns a TransformerSpec of CTranslate2 with the model's weights."""
    model, config = trained.model, trained.description.model
    assert isinstance(model, Transformer) and isinstance(config, TransformerConfig)
    specs = library().specs
    spec = specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=config.norm == "pre",
        activation=getattr(specs.Activation, {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}[config.activation]),
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
        register(tokenizer.pieces(range(tokenizer.vocabulary_size)))
    start = PAD if config.decoder_start == "pad" else BOS
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = trained.tokenizers.target.pieces(
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
    if isinstance(embedding.positions, LearnedPositions):
        table = _array(embedding.positions.weight)
        # On a GPU, CTranslate2 may lengthen a batch to a multiple of 8; nothing reads the rows added here.
        side.position_encodings.encodings = np.pad(table, ((0, -len(table) % 8), (0, 0)))
    else:
        side.position_encodings.encodings = sinusoidal_positions(POSITIONS, config.width).numpy()


def _set_linear(spec: Any, *layers: nn.Linear) -> None:
    """Sets the weight and bias of ``layers``, one below the other where CTranslate2 computes several in one product."""
    spec.weight = np.concatenate([_array(layer.weight) for layer in layers])
    spec.bias = np.concatenate([_array(layer.bias) for layer in layers])


def _set_norm(spec: Any, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm)
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(weight: Tensor) -> np.ndarray:
    # A copy: CTranslate2 quantises in place.
    return weight.detach().cpu().numpy().copy()
