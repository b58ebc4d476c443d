"""Exports a trained Transformer as a model of Hugging Face's ``transformers``:
``python -m mt export format=hugging_face run=RUN output=FOLDER``.

``transformers`` has three architectures that compute what ours does: Pegasus (pre-norm, sinusoidal positions),
Blenderbot (pre-norm, learned positions) and MarianMT (post-norm, sinusoidal positions). Nothing of that library is
needed to write the folder.

The tokenizer is MarianTokenizer, because it asks SentencePiece itself. A ``tokenizer.json`` can hold the pieces and
merges, too, but not SentencePiece's normalisation: it would lose combining marks and decomposed Hangul.
"""

import json
import logging
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from mt.config import MAX_PIECES, ExportConfig, ModelDescription, TransformerConfig
from mt.core.errors import InputError
from mt.core.files import new_folder, refuse_taken, write_atomically
from mt.export.card import model_card, warn_of_losses, write_card
from mt.models.transformer import Transformer
from mt.storage.marian_weights import SETTINGS, Vocabularies, exported_weights
from mt.storage.weights import weights_of
from mt.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, TokenizerPair
from mt.translation.ctranslate2_conversion import max_positions
from mt.translation.trained_model import TrainedModel, open_model

logger = logging.getLogger(__name__)

ARCHITECTURES = {
    ("pre", "sinusoidal"): ("pegasus", "PegasusForConditionalGeneration"),
    ("pre", "learned"): ("blenderbot", "BlenderbotForConditionalGeneration"),
    ("post", "sinusoidal"): ("marian", "MarianMTModel"),
}
"""The type and the class in ``transformers`` of a Transformer with this norm and these positions."""

TAGS = {"library_name": "transformers", "pipeline_tag": "translation"}
USAGE = """\
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder = "FOLDER"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)
batch = tokenizer(["Hello."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
```

The tokenizer needs `pip install sentencepiece`. `transformers` before version 5 also runs
`pipeline("translation", FOLDER)`.

`generate` searches as the program that trained the model does: beam size, length penalty and stopping rule are in
`generation_config.json`, and scores are defined alike. Two things differ. The longest translation is the same for all
lines ({max_length} pieces), and at this length the end counts as certain. A line that begins with `>>` and has `<<` in
it loses all up to there, which MarianTokenizer takes for the name of a language.
"""


def export(config: ExportConfig) -> None:
    """Write a folder with the model, its tokenizer and a model card.

    Raises:
        InputError: The run cannot be read, no architecture of ``transformers`` holds the model, or the output exists
            and is not an empty folder.
    """
    output = refuse_taken("output", config.output)
    run = Path(config.run)
    trained = open_model(run)
    if reasons := obstacles(trained):
        raise InputError(f"{config.run}: transformers cannot run this model: {'; '.join(reasons)}")
    settings = trained.description.model
    assert isinstance(trained.model, Transformer) and isinstance(settings, TransformerConfig)
    special = _special_pieces(trained.tokenizers.target, settings)
    generation = _generation_config(trained.description, settings, special)
    usage = USAGE.replace("{max_length}", str(generation["max_length"]))
    with new_folder(output) as folder:
        weights = _weights(trained, trained.model, settings)
        write_atomically(folder / "model.safetensors", save(weights, metadata={"format": "pt"}))
        _write_json(folder / "config.json", _model_config(settings, trained.tokenizers, special))
        _write_json(folder / "generation_config.json", generation)
        _write_tokenizer(folder, trained, max_positions(settings), special)
        write_card(folder, model_card(trained, run, config.license, usage, TAGS))
    logger.info("exported the model for transformers to %s", config.output)
    warn_of_losses(trained, config.output)


def obstacles(trained: TrainedModel) -> list[str]:
    """Return every reason why no architecture of ``transformers`` holds a model; the list is empty if one does."""
    config = trained.description.model
    if not isinstance(config, TransformerConfig):
        return [f"model.architecture={config.architecture}: it has no such architecture for translation"]
    if (config.norm, config.positions) not in ARCHITECTURES:
        return [f"model.positions={config.positions} with model.norm={config.norm}: it has no such Transformer"]
    if config.norm == "post":
        return []
    found = []
    if not config.tie_embeddings:
        found.append("model.tie_embeddings=false with model.norm=pre")
    if not trained.tokenizers.joint:
        found.append("tokenizer.joint=false with model.norm=pre")
    if found:
        found[-1] += ": its pre-norm models (Pegasus, Blenderbot) have one matrix for source, target and output"
    return found


def _weights(trained: TrainedModel, model: Transformer, settings: TransformerConfig) -> dict[str, Tensor]:
    tokenizers = trained.tokenizers
    vocabularies = Vocabularies(tokenizers.source.vocabulary, tokenizers.target.vocabulary)
    weights = {"output.bias": torch.zeros(tokenizers.target.vocabulary_size)} | weights_of(model)
    tables = {}
    if settings.norm == "pre":  # MarianMT computes its positions
        for side, embedding in (("encoder", model.encoder.embedding), ("decoder", model.decoder.embedding)):
            tables[side] = embedding.positions(0, max_positions(settings)).detach()
    return exported_weights(weights, tables, settings, vocabularies, tokenizers.joint)


def _special_pieces(tokenizer: Tokenizer, config: TransformerConfig) -> dict[str, int]:
    """Return the number of each special piece in the exported model: where it came from another, those of that one."""
    theirs = tokenizer.vocabulary
    if theirs:
        return {"pad": theirs.pad, "unk": theirs.unk, "start": theirs.start, "eos": theirs.eos}
    return {"pad": PAD, "unk": UNK, "start": PAD if config.decoder_start == "pad" else BOS, "eos": EOS}


def _model_config(config: TransformerConfig, tokenizers: TokenizerPair, special: dict[str, int]) -> dict[str, object]:
    """Return the content of config.json."""
    model_type, name = ARCHITECTURES[config.norm, config.positions]
    shared = tokenizers.joint and config.tie_embeddings
    marian = {
        "decoder_vocab_size": tokenizers.target.vocabulary_size,
        "share_encoder_decoder_embeddings": shared,
    }
    return {
        "model_type": model_type,
        "architectures": [name],
        "dtype": "float32",
        "is_encoder_decoder": True,
        "vocab_size": tokenizers.source.vocabulary_size,
        **(marian if model_type == "marian" else {}),
        **{name: getattr(config, own) for name, own in SETTINGS.items()},
        "max_position_embeddings": max_positions(config),
        "activation_function": "swish" if config.activation == "silu" else config.activation,
        "activation_dropout": config.dropout,
        # Blenderbot would otherwise forbid that three pieces of the source come back.
        **({"encoder_no_repeat_ngram_size": 0} if model_type == "blenderbot" else {}),
        **_numbers(special),
    }


def _numbers(special: dict[str, int]) -> dict[str, int]:
    return {
        "pad_token_id": special["pad"],
        "bos_token_id": special["start"],
        "eos_token_id": special["eos"],
        "decoder_start_token_id": special["start"],
        "forced_eos_token_id": special["eos"],
    }


def _generation_config(
    description: ModelDescription, config: TransformerConfig, special: dict[str, int]
) -> dict[str, object]:
    """Return the content of generation_config.json: our beam search in the words of ``transformers``."""
    decoding = description.decoding
    longest_source = MAX_PIECES if decoding.max_source_length == "auto" else decoding.max_source_length
    longest = int(longest_source * decoding.max_length_ratio) + decoding.max_length_extra
    return {
        "num_beams": decoding.beam_size,
        "length_penalty": decoding.length_penalty,
        "early_stopping": True,  # a sentence is finished when num_beams of its hypotheses are
        # Here BOS and EOS count. The decoder reads BOS and all other pieces, but not EOS.
        "max_length": min(longest + 2, max_positions(config) + 1),
        "do_sample": False,
        "suppress_tokens": sorted({special[name] for name in ("pad", "unk", "start")}),
        **_numbers(special),
    }


def _write_tokenizer(folder: Path, trained: TrainedModel, positions: int, special: dict[str, int]) -> None:
    """Write the files of MarianTokenizer. The numbers of the pieces are SentencePiece's own, or those that they had
    where the tokenizer came from."""
    tokenizers = trained.tokenizers
    separate = not tokenizers.joint
    for side, tokenizer in (("target", tokenizers.target), ("source", tokenizers.source)):
        theirs = tokenizer.vocabulary
        write_atomically(folder / f"{side}.spm", theirs.removed_from(tokenizer.model) if theirs else tokenizer.model)
        names = theirs.pieces if theirs else tokenizer.subwords(range(tokenizer.vocabulary_size))
        if side == "source" or separate:
            file = "vocab.json" if side == "source" else "target_vocab.json"
            _write_json(folder / file, {piece: number for number, piece in enumerate(names)})
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": trained.description.source_language,
        "target_lang": trained.description.target_language,
        "separate_vocabs": separate,
        "model_max_length": positions,
        **{f"{name}_token": names[special[name]] for name in ("pad", "eos")},
        "unk_token": tokenizers.source.subwords([UNK])[0],
        **({"bos_token": names[special["start"]]} if special["start"] != special["pad"] else {}),
        "split_special_tokens": True,  # "</s>" in a line is text like any other
        "clean_up_tokenization_spaces": False,
    }
    _write_json(folder / "tokenizer_config.json", settings)


def _write_json(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
