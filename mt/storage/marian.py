"""Reads folders of Hugging Face's MarianMT, such as the OPUS-MT models, as models of this project.

``transformers`` is not needed, and only the special tokens get other ids (see ``vocabulary``). Weights are converted to
our names and order, and back. Their values stay the same. Models with sinusoidal positions need another order of
features: our position vectors alternate sines and cosines, and those of ``transformers`` have all sines before all
cosines.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, assert_never

import pydantic
import torch
from torch import Tensor

from mt.config import DecodingConfig, ModelConfig, PiecesConfig, TransformerConfig
from mt.core.errors import InputError
from mt.core.files import read_file
from mt.core.language import UNKNOWN_LANGUAGE, is_registered
from mt.storage.model_description import ModelDescription, TextLayerDescription
from mt.storage.model_folder import ModelFolder, Shapes
from mt.storage.validation import GET_AGAIN, read_json_mapping, read_safetensors, short_list, validate
from mt.storage.vocabulary import Vocabulary, is_unigram, text_pieces
from mt.storage.weights import NUMBER_FORMATS, Tensors

logger = logging.getLogger(__name__)

HF_WEIGHTS = "model.safetensors"
HF_CONFIG = "config.json"
HF_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "swish"}
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

GENERATION = "generation_config.json"
TOKENIZER = "tokenizer_config.json"
OUR_ACTIVATIONS = {name: own for own, name in HF_ACTIVATIONS.items()} | {"silu": "silu"}
"""Activation of ``transformers`` → our name. It knows one function as both ``silu`` and ``swish``."""
MARIAN_KEYS = {own: name for name, own in SETTINGS.items()} | {"beam_size": "num_beams"}
"""Our setting → MarianMT's name of it, for messages."""
UNSUPPORTED: Mapping[str, float | None] = {
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "repetition_penalty": 1,
    "encoder_repetition_penalty": 1,
    "diversity_penalty": 0,
    "min_length": 0,
    "min_new_tokens": 0,
    "forced_bos_token_id": None,
    "begin_suppress_tokens": None,
    "do_sample": False,
}
"""Settings of ``generate`` that our search lacks → the value, besides null, with which they have no effect."""
TO_SAFETENSORS = (
    'python -c "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer; '
    "[kind.from_pretrained('{0}').save_pretrained('{1}') for kind in (AutoTokenizer, AutoModelForSeq2SeqLM)]\""
)
"""Command that converts a model with pickled weights to a folder with model.safetensors."""
LANGUAGE_CODE = r"[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*"
MIN_KNOWN_SHARE = 0.1
"""Minimum share of a SentencePiece model's pieces that the vocabulary file must have. A matching one has nearly all."""


class Vocabularies(NamedTuple):
    """The source and the target vocabulary of one model. They are equal if they are joint."""

    source: Vocabulary
    target: Vocabulary

    def order(self, name: str) -> Tensor:
        """Return the token ids in ``transformers`` of the rows of our weight ``name``, (V,) int64."""
        return torch.tensor((self.source if name.startswith("encoder.") else self.target).order)


def exported_weights(
    weights: Tensors,
    position_tables: Tensors,
    config: TransformerConfig,
    vocabularies: Vocabularies,
) -> Tensors:
    """Return weights with the names and the order of ``transformers``. Tied weights occur once.

    Args:
        weights: Our weights by name, "output.bias" included.
        position_tables: ``encoder`` and ``decoder`` → position vectors (positions, D) to save; empty for none.
        config: The model's settings.
        vocabularies: The vocabularies of both sides.
    """
    features = _feature_order(config)
    exported: Tensors = {}
    for name, weight in weights.items():
        if "embedding.positions" not in name:
            weight = _reordered(name, weight, vocabularies.order(name).argsort(), features)
            exported_name, *_ = _possible_names(name, vocabularies.target.joint, config.tie_embeddings)
            exported[exported_name] = weight[None] if name == OUR_BIAS else weight
    for side, table in position_tables.items():
        exported[f"model.{side}.{POSITIONS_KEY}"] = table[:, features]
    return {name: weight.contiguous() for name, weight in exported.items()}


def _problem(copies: Tensors, expected: tuple[int, ...], tied: bool) -> str | None:
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


class _Config(pydantic.BaseModel):
    """The relevant part of config.json, with the defaults of ``transformers``."""

    model_config = pydantic.ConfigDict(strict=True)

    vocab_size: int = 58101
    decoder_vocab_size: int | None = None
    d_model: int = 1024
    encoder_layers: int = 12
    decoder_layers: int = 12
    encoder_attention_heads: int = 16
    decoder_attention_heads: int = 16
    encoder_ffn_dim: int = 4096
    decoder_ffn_dim: int = 4096
    activation_function: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    scale_embedding: bool = False
    share_encoder_decoder_embeddings: bool = True
    tie_word_embeddings: bool = True
    max_position_embeddings: int = 1024
    pad_token_id: int = 58100
    eos_token_id: int = 0
    decoder_start_token_id: int | None = None
    normalize_before: Literal[False] = False
    normalize_embedding: Literal[False] = False
    static_position_embeddings: Literal[True] = True

    @property
    def start_token(self) -> int:
        return self.pad_token_id if self.decoder_start_token_id is None else self.decoder_start_token_id


class _TokenizerConfig(pydantic.BaseModel):
    """The relevant part of tokenizer_config.json."""

    source_lang: str | None = None
    target_lang: str | None = None
    separate_vocabs: bool = False


def is_transformers_folder(folder: Path) -> bool:
    """Return whether a folder has a config.json, and neither the config.yaml nor the model.yaml of this project.

    The model can be of any architecture of ``transformers``; only ``MarianFolder.read_description`` refuses others.
    """
    return (folder / HF_CONFIG).is_file() and not any(
        (folder / name).exists() for name in ("model.yaml", "config.yaml")
    )


def read_search(folder: Path) -> tuple[dict[str, Any], DecodingConfig]:
    """Read the settings of ``generate`` from a folder of ``transformers``, and return them and our settings of the
    search that they have."""
    path = folder / GENERATION
    path = path if path.is_file() else folder / HF_CONFIG  # older folders have all of it there
    generation = read_json_mapping(path)
    penalty = generation.get("length_penalty")
    search = {"beam_size": generation.get("num_beams") or 1, "length_penalty": 1.0 if penalty is None else penalty}
    return generation, validate(path, DecodingConfig, search, keys=MARIAN_KEYS)


class MarianFolder(ModelFolder):
    """A MarianMT folder. Each file is read and checked when it is first needed."""

    files = [
        "config.json",
        "model.safetensors",
        "generation_config.json",
        "source.spm",
        "target.spm",
        "tokenizer_config.json",
        "vocab.json",
        "target_vocab.json",
    ]

    def verify(self) -> None:
        """Check the tokenizer files against config.json, and log that the model has no placeholders.

        The weights have no checksum, and ``read_weights`` checks their names and shapes.
        """
        self.read_tokenizer_files()
        logger.info(
            "%s: a MarianMT model, without placeholders: lines go to it as they are (text.enabled=false)", self.path
        )

    def read_tokenizer_files(self) -> dict[str, bytes]:
        return {f"{side}.model": model for side, (model, _) in self._tokenizers.items()}

    def read_weights(self, config: ModelConfig, shapes: Shapes) -> Tensors:
        """Read the weights, with our names and order, in fp32.

        Raises:
            InputError: The file is missing or corrupted, or its tensors do not fit config.json.
        """
        assert isinstance(config, TransformerConfig)
        vocabularies = Vocabularies(*(vocabulary for _, vocabulary in self._tokenizers.values()))
        path = self.path / HF_WEIGHTS
        if not path.is_file():
            reason = "no such file, and pickles are not read, because opening one could run code in it"
            if (self.path / f"{HF_WEIGHTS}.index.json").exists():
                reason = "no such file, and weights in several files are not read"
            raise InputError(f"{path}: {reason}. This makes it: {TO_SAFETENSORS.format(self.path, self.path)}")
        tensors = read_safetensors(path)
        weights: Tensors = {}
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
                weight = next(iter(copies.values())).float().reshape(shape)
                weights[name] = _reordered(name, weight, vocabularies.order(name), _feature_order(config).argsort())
        problems += [
            f"{name} is not part of the model that {HF_CONFIG} describes"
            for name, tensor in tensors.items()
            if not (name.endswith(POSITIONS_KEY) and _is_sinusoidal(tensor, config.width))
        ]
        if problems:
            raise InputError(f"{path}: {short_list(problems, 3)}; {GET_AGAIN}")
        return weights

    def read_description(self) -> ModelDescription:
        generation, decoding = read_search(self.path)
        if ignored := self._unsupported(generation):
            settings = ", ".join(f"{name}={generation[name]}" for name in ignored)
            logger.warning(
                "%s: our search ignores %s; compare some translations with those of transformers", self.path, settings
            )
        target, vocabulary = self._tokenizers["target"]
        config = self._model_config
        model = {
            **{own: getattr(config, name) for name, own in SETTINGS.items()},
            "architecture": "transformer",
            "activation": OUR_ACTIVATIONS[config.activation_function],
            "norm": "post",
            "output_bias": True,
            "decoder_start": "pad" if config.start_token == config.pad_token_id else "bos",
        }
        source_language, target_language = (
            code if code and re.fullmatch(LANGUAGE_CODE, code) else UNKNOWN_LANGUAGE
            for code in (self._tokenizer_config.source_lang, self._tokenizer_config.target_lang)
        )
        pieces = self._tokenizers["source"][1].pieces
        codes = [piece[2:-2] for piece in pieces if re.fullmatch(f">>{LANGUAGE_CODE}<<", piece)]
        own = {
            "source_language": UNKNOWN_LANGUAGE if codes and not is_registered(source_language) else source_language,
            "text": TextLayerDescription(enabled=False),
        }
        description = {
            **own,
            # Without target_language=…, lines begin with their tokens, and may be of any of these languages.
            "target_language": UNKNOWN_LANGUAGE if target_language in codes else target_language,
            "directions": [own | {"target_language": code} for code in codes],
            "model": validate(self.path / HF_CONFIG, TransformerConfig, model, keys=MARIAN_KEYS),
            "tokenizer": PiecesConfig(
                kind="unigram" if is_unigram(target) else "bpe",
                vocabulary_size=len(vocabulary.pieces),
                joint=vocabulary.joint,
            ),
            "decoding": decoding,
            "confidence": None,
        }
        return validate(self.path / HF_CONFIG, ModelDescription, description, keys=MARIAN_KEYS)

    @cached_property
    def _model_config(self) -> _Config:
        values = read_json_mapping(self.path / HF_CONFIG)
        if (kind := values.get("model_type")) != "marian":
            raise InputError(
                f"{self.path / HF_CONFIG}: model_type={kind!r} is not supported: of the architectures of transformers, "
                "only marian is; take a MarianMTModel"
            )
        config = validate(self.path / HF_CONFIG, _Config, values)
        if errors := list(_validation_errors(config)):
            raise InputError(f"{self.path / HF_CONFIG}: this model cannot be used: {'; '.join(errors)}")
        return config

    @cached_property
    def _tokenizer_config(self) -> _TokenizerConfig:
        path = self.path / TOKENIZER
        settings = validate(path, _TokenizerConfig, read_json_mapping(path)) if path.is_file() else _TokenizerConfig()
        if self._model_config.share_encoder_decoder_embeddings and settings.separate_vocabs:
            raise InputError(
                f"{path}: separate_vocabs=true contradicts share_encoder_decoder_embeddings=true in {HF_CONFIG}; "
                f"{GET_AGAIN}"
            )
        return settings

    @cached_property
    def _tokenizers(self) -> dict[str, tuple[bytes, Vocabulary]]:
        """``source`` and ``target`` → the SentencePiece model, with the vocabulary appended, and the vocabulary."""
        config = self._model_config
        target_list = "target_vocab.json" if self._tokenizer_config.separate_vocabs else "vocab.json"
        return {
            "source": self._tokenizer("source.spm", "vocab.json", config.vocab_size),
            "target": self._tokenizer("target.spm", target_list, config.decoder_vocab_size or config.vocab_size),
        }

    def _tokenizer(self, file: str, vocabulary_file: str, size: int) -> tuple[bytes, Vocabulary]:
        numbers = read_json_mapping(self.path / vocabulary_file)
        # The length comes first: config.json may claim any size.
        if len(numbers) != size or sorted(n for n in numbers.values() if type(n) is int) != list(range(size)):
            raise InputError(
                f"{self.path / vocabulary_file}: has {len(numbers):,} pieces, but must number from 0 to {size - 1}, "
                f"once each, as many as {HF_CONFIG} says (vocab_size, decoder_vocab_size); {GET_AGAIN}"
            )
        if "<unk>" not in numbers:
            raise InputError(f"{self.path / vocabulary_file}: has no piece <unk>; {GET_AGAIN}")
        config = self._model_config
        vocabulary = Vocabulary(
            pieces=sorted(numbers, key=lambda piece: numbers[piece]),
            pad=config.pad_token_id,
            unk=numbers["<unk>"],
            start=config.start_token,
            eos=config.eos_token_id,
            joint=config.share_encoder_decoder_embeddings,
        )
        try:
            vocabulary.check()
        except ValueError as error:
            raise InputError(f"{self.path / HF_CONFIG}: does not fit {vocabulary_file}: {error}; {GET_AGAIN}") from None
        path = self.path / file
        model = read_file(path)
        try:
            pieces = text_pieces(model)
        except (ValueError, IndexError):
            pieces = []
        if not pieces:
            raise InputError(f"{path}: cannot be read: it is corrupted or no SentencePiece model; {GET_AGAIN}")
        known = sum(piece in numbers for piece in pieces)
        if known < MIN_KNOWN_SHARE * len(pieces):
            raise InputError(
                f"{self.path / vocabulary_file}: fits another tokenizer than {file}: it has {known:,} of its "
                f"{len(pieces):,} pieces; {GET_AGAIN}"
            )
        return vocabulary.appended_to(model), vocabulary

    def _unsupported(self, generation: Mapping[str, Any]) -> list[str]:
        """Return the names of settings in ``generation`` that our search lacks and that would change translations."""
        vocabulary = self._tokenizers["target"][1]
        special = (vocabulary.pad, vocabulary.unk, vocabulary.start)
        suppressed_tokens = [*special, *([token] for token in special)]
        ignored = [name for name, neutral in UNSUPPORTED.items() if generation.get(name) not in (None, neutral)]
        for name in ("suppress_tokens", "bad_words_ids"):
            tokens = generation.get(name)
            if isinstance(tokens, list) and any(token not in suppressed_tokens for token in tokens):
                ignored.append(name)
        return ignored


def _validation_errors(config: _Config) -> Iterator[str]:
    if config.activation_function not in OUR_ACTIVATIONS:
        yield f"activation_function={config.activation_function!r}: supported are {', '.join(OUR_ACTIVATIONS)}"
    for name in ("attention_heads", "ffn_dim"):
        encoder, decoder = (getattr(config, f"{side}_{name}") for side in ("encoder", "decoder"))
        if encoder != decoder:
            yield f"encoder_{name}={encoder} and decoder_{name}={decoder}: only the same in both is supported"
    if config.share_encoder_decoder_embeddings and config.decoder_vocab_size not in (None, config.vocab_size):
        yield (
            f"share_encoder_decoder_embeddings with vocab_size={config.vocab_size} and "
            f"decoder_vocab_size={config.decoder_vocab_size}"
        )
    if config.max_position_embeddings < 2:
        yield f"max_position_embeddings={config.max_position_embeddings}: a sentence has at least two tokens"
    if config.decoder_start_token_id == config.eos_token_id:
        yield "decoder_start_token_id is eos_token_id: only pad_token_id or a token of its own is supported"
