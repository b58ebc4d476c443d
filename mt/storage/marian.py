"""Reads a folder of Hugging Face's MarianMT, such as the OPUS-MT models, as a model of this project.

It is read anew whenever it is opened; nothing is written. The weights are the same numbers in another order (see
``hugging_face_weights``), and the pieces keep their numbers but for the special ones (see ``mt.text.vocabulary``).
Nothing of ``transformers`` is needed, and nothing in the folder is executed: pickles are refused.
"""

import functools
import json
import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import pydantic
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from mt.config import DecodingConfig, ModelDescription, PiecesConfig, TextDescription, TransformerConfig
from mt.core.errors import InputError
from mt.models.build import build_shapes
from mt.storage.hugging_face_weights import BIAS, EMBEDDINGS, SHARED, positions_in_halves, renamed, weight_from
from mt.storage.weights import NUMBER_FORMATS, weights_of
from mt.text.tokenizer import Tokenizer, TokenizerPair
from mt.text.vocabulary import Vocabulary

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
FILES = [
    CONFIG,
    WEIGHTS,
    "generation_config.json",
    "source.spm",
    "target.spm",
    "tokenizer_config.json",
    "vocab.json",
    "target_vocab.json",
]
POSITIONS = "embed_positions.weight"
TO_SAFETENSORS = (
    'python -c "from transformers import MarianMTModel, MarianTokenizer; '
    "[kind.from_pretrained('{0}').save_pretrained('{1}') for kind in (MarianTokenizer, MarianMTModel)]\""
)
"""Makes a folder with model.safetensors of a model, or of a folder, without."""
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")
"""OWNER/NAME, perhaps with @REVISION."""
ACTIVATIONS: Mapping[str, Literal["relu", "gelu", "silu"]] = {
    "relu": "relu",
    "gelu": "gelu",
    "swish": "silu",
    "silu": "silu",
}
THEIR_NAMES = {
    "width": "d_model",
    "heads": "encoder_attention_heads",
    "feed_forward": "encoder_ffn_dim",
    "beam_size": "num_beams",
}
"""What the settings are called there that can be out of bounds only in our model."""
NOT_FOLLOWED: Mapping[str, float | None] = {
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
"""Settings of ``generate`` that would change translations and that our search lacks, with the values that ask for
nothing. So does null."""
UNKNOWN_LANGUAGE = "und"
LANGUAGE_CODE = r"[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*"
LEAST_SHARE = 0.1
"""Of a SentencePiece model's pieces that its vocabulary must have. One that fits has nearly all of them."""

Read = TypeVar("Read", bound=pydantic.BaseModel)
logger = logging.getLogger(__name__)


class _Config(pydantic.BaseModel):
    """What matters in config.json, with the defaults of ``transformers``."""

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


class _Generation(pydantic.BaseModel):
    """What matters in generation_config.json. Older folders have it in config.json."""

    num_beams: int | None = None
    length_penalty: float | None = None


class _TokenizerConfig(pydantic.BaseModel):
    """What matters in tokenizer_config.json."""

    source_lang: str | None = None
    target_lang: str | None = None
    separate_vocabs: bool = False


def is_marian(folder: Path) -> bool:
    """Returns whether a folder is one of ``transformers``, and not a run or model folder of this project."""
    return (folder / CONFIG).is_file() and not any((folder / name).exists() for name in ("model.yaml", "config.yaml"))


def located(given: str | Path) -> Path:
    """Returns the folder that a user means: itself, or that of a model of the hub, which is fetched if need be.

    Args:
        given: A folder, or OWNER/NAME of a model of the hub, perhaps with @REVISION. What is inside of a folder that
            exists, such as runs/first, is never looked for on the hub.

    Raises:
        InputError: The hub cannot be reached, or has no such model.
    """
    return fetched(str(given)) if _is_of_the_hub(str(given)) else Path(given)


def name_on_the_hub(given: str | Path) -> str | None:
    """Returns OWNER/NAME@COMMIT of a model of the hub, which is fetched if need be; None for a folder.

    Raises:
        InputError: See ``located``.
    """
    return f"{str(given).partition('@')[0]}@{located(given).name}" if _is_of_the_hub(str(given)) else None


def _is_of_the_hub(name: str) -> bool:
    return not (Path(name).exists() or Path(name).parent.is_dir()) and HUB_NAME.fullmatch(name) is not None


@functools.cache
def fetched(name: str) -> Path:
    """Returns the folder to which the hub's library has fetched a model. It is asked once in a process.

    Args:
        name: OWNER/NAME, perhaps with @REVISION.

    Raises:
        InputError: See ``located``.
    """
    import huggingface_hub  # takes a while, and is needed for the hub only

    repository, _, revision = name.partition("@")
    try:
        folder = Path(huggingface_hub.snapshot_download(repository, revision=revision or None, allow_patterns=FILES))
    except Exception as error:  # of many kinds: no network, no such model, no permission, a full disk
        reason = " ".join(str(error).split())
        raise InputError(
            f"{name}: no such folder, and the model could not be fetched from the Hugging Face hub: {reason[:300]}"
        ) from None
    if not (folder / WEIGHTS).is_file():
        raise InputError(
            f"{name}: has no {WEIGHTS}, and pickles are not read, because opening one could run code in it. This makes "
            f"a folder with one: {TO_SAFETENSORS.format(repository, repository.rpartition('/')[2])}"
        )
    return folder


def describe(folder: Path) -> tuple[ModelDescription, TokenizerPair]:
    """Reads all but the weights.

    Raises:
        InputError: A file is missing or damaged, or no model of this project computes what the folder says. The message
            names the file.
    """
    values = _json(folder / CONFIG)
    if (kind := values.get("model_type")) != "marian":
        raise InputError(
            f"{folder / CONFIG}: model_type={kind!r} is not supported: of the architectures of transformers, only "
            "marian (MarianMTModel) is"
        )
    config = _checked(folder / CONFIG, _Config, values)
    if wrong := list(_contradictions(config)):
        raise InputError(f"{folder / CONFIG}: {'; '.join(wrong)}")
    tokenizers, settings = _read_tokenizers(folder, config)
    path = folder / "generation_config.json"
    path, generation = (path, _json(path)) if path.is_file() else (folder / CONFIG, values)
    search = _checked(path, _Generation, generation)
    decoding = _checked(
        path,
        DecodingConfig,
        {
            "beam_size": search.num_beams or 1,
            "length_penalty": 1.0 if search.length_penalty is None else search.length_penalty,
        },
    )
    if ignored := _not_followed(generation, tokenizers):
        logger.warning("%s: not followed: %s", folder, ", ".join(f"{name}={generation[name]}" for name in ignored))
    try:
        return _described(config, decoding, settings, tokenizers), tokenizers
    except pydantic.ValidationError as error:  # sizes that are out of all bounds, for instance
        raise InputError(f"{folder / CONFIG}: {_mistakes(error)}") from None


def _not_followed(generation: dict[str, Any], tokenizers: TokenizerPair) -> list[str]:
    """Returns the settings of ``generate`` that would change translations and that our search lacks."""
    ours = tokenizers.target.vocabulary
    assert ours
    never_written = [ours.pad, ours.unk, ours.start, [ours.pad], [ours.unk], [ours.start]]
    forbidden = {name: generation.get(name) for name in ("suppress_tokens", "bad_words_ids")}
    return [
        *(name for name, nothing in NOT_FOLLOWED.items() if generation.get(name) not in (None, nothing)),
        *(
            name
            for name, pieces in forbidden.items()
            if isinstance(pieces, list) and any(piece not in never_written for piece in pieces)
        ),
    ]


def _described(
    config: _Config, decoding: DecodingConfig, settings: _TokenizerConfig, tokenizers: TokenizerPair
) -> ModelDescription:
    model = TransformerConfig(
        architecture="transformer",
        width=config.d_model,
        feed_forward=config.encoder_ffn_dim,
        heads=config.encoder_attention_heads,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        activation=ACTIVATIONS[config.activation_function],
        norm="post",
        tie_embeddings=config.tie_word_embeddings,
        scale_embeddings=config.scale_embedding,
        output_bias=True,
        decoder_start="pad" if config.decoder_start_token_id in (None, config.pad_token_id) else "bos",
    )
    return ModelDescription(
        source_language=_language(settings.source_lang),
        target_language=_language(settings.target_lang),
        text=TextDescription(enabled=False),
        model=model,
        tokenizer=PiecesConfig(
            kind="unigram" if tokenizers.source.is_unigram else "bpe",
            vocabulary_size=tokenizers.target.vocabulary_size,
            joint=tokenizers.joint,
        ),
        decoding=decoding,
    )


def read_weights(folder: Path, model: TransformerConfig, tokenizers: TokenizerPair) -> dict[str, Tensor]:
    """Reads the weights under the names of this project, in fp32.

    Args:
        folder: The folder.
        model: The settings of the model, which ``describe`` returned.
        tokenizers: Its tokenizers.

    Raises:
        InputError: The file is missing or damaged, or its tensors are not those that config.json describes.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        reason = "no such file, and pickles are not read, because opening one could run code in it"
        if (folder / f"{WEIGHTS}.index.json").exists():
            reason = "no such file, and weights in several files are not read"
        raise InputError(f"{path}: {reason}. This makes it: {TO_SAFETENSORS.format(folder, folder)}")
    theirs = _tensors(path)
    found: dict[str, Tensor] = {}
    wrong: list[str] = []
    for name, shape in ((name, tuple(one.shape)) for name, one in weights_of(build_shapes(model, tokenizers)).items()):
        names = _names_of(name, tokenizers.joint, model.tie_embeddings)
        here = {one: theirs.pop(one) for one in names if one in theirs}
        expected = (1, *shape) if names[0] == BIAS else shape
        if not here:
            wrong.append(f"{names[0]} is missing")
            continue
        first, *others = here.values()
        if misshapen := [one for one, tensor in here.items() if tuple(tensor.shape) != expected]:
            shape = tuple(here[misshapen[0]].shape)
            wrong.append(f"{misshapen[0]} has shape {shape}, but {CONFIG} says {expected}")
        elif model.tie_embeddings and not all(torch.equal(first, other) for other in others):
            wrong.append(f"{' and '.join(here)} differ, but {CONFIG} says that they are the same")
        elif first.dtype not in NUMBER_FORMATS:
            wrong.append(f"{names[0]} is {first.dtype}")
        elif not first.float().isfinite().all():
            wrong.append(f"{next(iter(here))} has numbers that are not finite")
        else:
            vocabulary = (tokenizers.source if name.startswith("encoder.") else tokenizers.target).vocabulary
            assert vocabulary is not None
            found[name] = weight_from(name, first.float(), model, vocabulary)
    wrong += [
        f"{name} is no part of the model that {CONFIG} describes"
        for name, tensor in theirs.items()
        if not (name.endswith(POSITIONS) and _are_sinusoids(tensor, model))
    ]
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise InputError(f"{path}: {'; '.join(wrong[:3])}{more}")
    return found


def _names_of(name: str, joint: bool, tied: bool) -> list[str]:
    """Returns the names under which ``transformers`` may have saved a weight of ours. All that are there are the same
    tensor if embeddings are tied; otherwise the first counts."""
    if name not in EMBEDDINGS:
        return [renamed(name)]
    if tied:
        if joint:
            return [SHARED, *EMBEDDINGS.values()]
        return [EMBEDDINGS[name], *([EMBEDDINGS["output.weight"]] if name.startswith("decoder.") else [])]
    # Version 5 saves the shared matrix, too, though it then uses the others.
    return [EMBEDDINGS[name], *([SHARED] if name != "output.weight" else [])]


def _are_sinusoids(table: Tensor, model: TransformerConfig) -> bool:
    """Returns whether a table of positions, which some folders have, is what MarianMT computes anyway."""
    if table.ndim != 2 or table.shape[1] != model.width:  # before a table of that many rows is made
        return False
    computed = positions_in_halves(len(table), model.width)
    return table.shape == computed.shape and torch.allclose(table.float(), computed, atol=1e-3)


def _contradictions(config: _Config) -> Iterator[str]:
    if config.activation_function not in ACTIVATIONS:
        yield f"activation_function={config.activation_function!r}: supported are {', '.join(ACTIVATIONS)}"
    for name in ("attention_heads", "ffn_dim"):
        sides = [getattr(config, f"{side}_{name}") for side in ("encoder", "decoder")]
        if sides[0] != sides[1]:
            yield f"encoder_{name}={sides[0]} and decoder_{name}={sides[1]}: only the same in both is supported"
    if config.share_encoder_decoder_embeddings and config.decoder_vocab_size not in (None, config.vocab_size):
        yield (
            f"share_encoder_decoder_embeddings with vocab_size={config.vocab_size} and "
            f"decoder_vocab_size={config.decoder_vocab_size}"
        )
    if config.max_position_embeddings < 2:
        yield f"max_position_embeddings={config.max_position_embeddings}: a sentence has at least two pieces"
    if config.decoder_start_token_id == config.eos_token_id:
        yield "decoder_start_token_id is eos_token_id: only pad_token_id or a piece of its own is supported"


def _read_tokenizers(folder: Path, config: _Config) -> tuple[TokenizerPair, _TokenizerConfig]:
    path = folder / "tokenizer_config.json"
    settings = _checked(path, _TokenizerConfig, _json(path)) if path.is_file() else _TokenizerConfig()
    joint = config.share_encoder_decoder_embeddings
    if joint and settings.separate_vocabs:
        raise InputError(
            f"{path}: separate_vocabs, but {CONFIG} says that both languages share their embeddings "
            "(share_encoder_decoder_embeddings)"
        )
    sizes = config.vocab_size, config.decoder_vocab_size or config.vocab_size
    lists = "vocab.json", "target_vocab.json" if settings.separate_vocabs else "vocab.json"
    sides = (
        _read_tokenizer(folder, file, pieces, size, config)
        for file, pieces, size in zip(("source.spm", "target.spm"), lists, sizes, strict=True)
    )
    return TokenizerPair(*sides), settings


def _read_tokenizer(folder: Path, file: str, pieces: str, size: int, config: _Config) -> Tokenizer:
    """Reads the SentencePiece model of one side, and the vocabulary that numbers its pieces."""
    numbers = _json(folder / pieces)
    # The length comes first: config.json may claim any size.
    if len(numbers) != size or sorted(n for n in numbers.values() if type(n) is int) != list(range(size)):
        raise InputError(
            f"{folder / pieces}: has {len(numbers):,} pieces, but must number from 0 to {size - 1}, once each, "
            f"as many as {CONFIG} says (vocab_size, decoder_vocab_size)"
        )
    if "<unk>" not in numbers:
        raise InputError(f"{folder / pieces}: has no piece <unk>")
    start = config.pad_token_id if config.decoder_start_token_id is None else config.decoder_start_token_id
    vocabulary = Vocabulary(
        pieces=sorted(numbers, key=lambda piece: numbers[piece]),
        pad=config.pad_token_id,
        unk=numbers["<unk>"],
        start=start,
        eos=config.eos_token_id,
        joint=config.share_encoder_decoder_embeddings,
    )
    try:
        vocabulary.refuse_impossible_numbers()
    except ValueError as error:
        raise InputError(f"{folder / CONFIG}: does not fit {pieces}: {error}") from None
    path = folder / file
    try:
        model = path.read_bytes()
        tokenizer = Tokenizer(vocabulary.appended_to(model)) if model else None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if tokenizer is None:
        raise InputError(f"{path}: cannot be read: it is empty")
    cuts = tokenizer.cuts_into
    known = sum(piece in numbers for piece in cuts)
    if known < LEAST_SHARE * len(cuts):
        raise InputError(
            f"{folder / pieces}: fits another tokenizer than {file}: it has {known:,} of its {len(cuts):,} pieces"
        )
    if known < len(cuts):
        logger.debug("%s: %d of %d pieces are not in %s and become <unk>", path, len(cuts) - known, len(cuts), pieces)
    return tokenizer


def _language(code: str | None) -> str:
    """Returns a language as the folder names it; the code of an unknown one if it does not or has no code."""
    return code if code and re.fullmatch(LANGUAGE_CODE, code) else UNKNOWN_LANGUAGE


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (OSError, SafetensorError, NotImplementedError) as error:
        raise InputError(f"{path}: damaged or not a safetensors file: {error}") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(values, ensure_ascii=False).encode()  # JSON can hold halves of characters, which are no text
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: cannot be read: it does not consist of keys and values")
    return values


def _checked(path: Path, schema: type[Read], values: dict[str, Any]) -> Read:
    try:
        return schema.model_validate(values)
    except pydantic.ValidationError as error:
        raise InputError(f"{path}: {_mistakes(error)}") from None


def _mistakes(error: pydantic.ValidationError) -> str:
    """Returns the first mistakes, under the names that the keys have in the folder's files."""
    found = []
    for each in error.errors()[:3]:
        key = ".".join(THEIR_NAMES.get(str(part), str(part)) for part in each["loc"])
        reason = "; ".join(each["msg"].removeprefix("Value error, ").splitlines())
        found.append(f"{key}: {reason}" if key else reason)
    return "; ".join(found)
