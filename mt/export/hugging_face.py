"""Exports a trained Transformer as a model of Hugging Face's ``transformers``:
``python -m mt export format=hugging_face run=RUN output=FOLDER``.

``transformers`` has three architectures that compute what ours does: Pegasus (pre-norm, sinusoidal positions),
Blenderbot (pre-norm, learned positions) and MarianMT (post-norm, sinusoidal positions). Nothing of that library is
needed to write the folder.

The tokenizer is MarianTokenizer, because it calls SentencePiece. A ``tokenizer.json`` could hold pieces and merges, but
not SentencePiece's normalization, and would lose combining marks and decomposed Hangul.
"""

import json
import logging
from pathlib import Path

import torch
from safetensors.torch import save

from mt.config import MAX_SOURCE_TOKENS, ExportConfig, TransformerConfig
from mt.core.errors import InputError
from mt.core.files import atomic_folder, resolve_new_folder, write_atomically
from mt.export.card import write_card
from mt.models.transformer import Transformer
from mt.storage.marian import HF_ACTIVATIONS, SETTINGS, Vocabularies, exported_weights
from mt.storage.model_description import ModelDescription
from mt.storage.vocabulary import Vocabulary
from mt.storage.weights import weights_of
from mt.tokenizer.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from mt.translation.ctranslate2_conversion import max_positions
from mt.translation.trained_model import TrainedModel, open_model

logger = logging.getLogger(__name__)

ARCHITECTURES = {
    ("pre", "sinusoidal"): ("pegasus", "PegasusForConditionalGeneration"),
    ("pre", "learned"): ("blenderbot", "BlenderbotForConditionalGeneration"),
    ("post", "sinusoidal"): ("marian", "MarianMTModel"),
}
"""(``model.norm``, ``model.positions``) → model type and class in ``transformers``."""

TAGS = {"library_name": "transformers", "pipeline_tag": "translation"}
HUGGING_FACE_USAGE = """\
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder = "FOLDER"
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)
batch = tokenizer(["Hello."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
```

The tokenizer needs `pip install sentencepiece`. `transformers` before version 5 also runs
`pipeline("translation", FOLDER, num_beams={num_beams})`, which gives the same translations as `generate`. Without
`num_beams`, it searches with a beam of 4.

`ct2-transformers-converter --model FOLDER --output_dir OUTPUT` converts a Pegasus model, and one that was fine-tuned
from a MarianMT model, for CTranslate2. With `beam_size={num_beams}` and `length_penalty={length_penalty}`,
`translate_batch` gives the same translations. For any other model, use mt-trainer and the trained model:
`python -m mt export format=ctranslate2 run=RUN output=OUTPUT`.

`generate` searches as the program that trained the model does: beam size, length penalty and stopping rule are in
`generation_config.json`, and scores are defined alike. Two things differ. The longest translation is the same for all
lines ({max_length} pieces), and at this length the end counts as certain. A line that begins with `>>` and has `<<` in
it loses all up to there, which MarianTokenizer takes for the name of a language.
"""


def export_hugging_face(config: ExportConfig) -> None:
    """Write a folder with the model, its tokenizer and a model card, and warn of functions that are lost.

    Raises:
        InputError: The run cannot be read, no architecture of ``transformers`` holds the model, or the output exists
            and is not an empty folder.
    """
    output = resolve_new_folder(config.output)
    trained = open_model(Path(config.run))
    if reasons := transformers_obstacles(trained):
        raise InputError(f"{config.run}: transformers cannot run this model: {'; '.join(reasons)}; export another")
    settings = trained.description.model
    assert isinstance(trained.model, Transformer) and isinstance(settings, TransformerConfig)
    tokenizers = trained.tokenizers
    vocabularies = Vocabularies(
        *(_vocabulary(tokenizer, tokenizers.joint, settings) for tokenizer in (tokenizers.source, tokenizers.target))
    )
    generation = _generation_config(trained.description, settings, vocabularies.target)
    with atomic_folder(output) as folder:
        weights = {"output.bias": torch.zeros(len(vocabularies.target.pieces))} | weights_of(trained.model)
        tables = {}
        if settings.norm == "pre":  # MarianMT computes its positions
            for side, part in (("encoder", trained.model.encoder), ("decoder", trained.model.decoder)):
                tables[side] = part.embedding.positions(0, max_positions(settings)).detach()
        weights = exported_weights(weights, tables, settings, vocabularies)
        write_atomically(folder / "model.safetensors", save(weights, metadata={"format": "pt"}))
        _write_json(folder / "config.json", _model_config(settings, vocabularies))
        _write_json(folder / "generation_config.json", generation)
        _write_tokenizer(folder, trained, settings, vocabularies)
        write_card(folder, trained, config, HUGGING_FACE_USAGE.format(**generation), **TAGS)
    logger.info("exported the model for transformers to %s", config.output)


def transformers_obstacles(trained: TrainedModel) -> list[str]:
    """Return all reasons why no architecture of ``transformers`` can hold a model; an empty list if one can."""
    config = trained.description.model
    if not isinstance(config, TransformerConfig):
        return [f"model.architecture={config.architecture}: it has no such architecture for translation"]
    if (config.norm, config.positions) not in ARCHITECTURES:
        return [f"model.positions={config.positions} with model.norm={config.norm}: it has no such Transformer"]
    reasons = []
    if config.norm == "pre" and not config.tie_embeddings:
        reasons.append("model.tie_embeddings=false with model.norm=pre")
    if config.norm == "pre" and not trained.tokenizers.joint:
        reasons.append("tokenizer.joint=false with model.norm=pre")
    if reasons:
        reasons[-1] += ": its pre-norm models (Pegasus, Blenderbot) have one matrix for source, target and output"
    return reasons


def _vocabulary(tokenizer: Tokenizer, joint: bool, config: TransformerConfig) -> Vocabulary:
    """Return the vocabulary of one side of the exported model.

    A tokenizer that came from a MarianMT model gets that model's ids back; any other keeps its ids.

    Args:
        tokenizer: The tokenizer of that side.
        joint: Whether both sides share the tokenizer.
        config: The model's settings.
    """
    start = PAD if config.decoder_start == "pad" else BOS
    pieces = tokenizer.subwords(range(tokenizer.vocabulary_size))
    return tokenizer.vocabulary or Vocabulary(pieces, PAD, UNK, start, EOS, joint)


def _model_config(config: TransformerConfig, vocabularies: Vocabularies) -> dict[str, object]:
    """Return the content of config.json."""
    model_type, name = ARCHITECTURES[config.norm, config.positions]
    source, target = vocabularies.source, vocabularies.target
    marian = {
        "decoder_vocab_size": len(target.pieces),
        "share_encoder_decoder_embeddings": target.joint and config.tie_embeddings,
    }
    return {
        "model_type": model_type,
        "architectures": [name],
        "dtype": "float32",
        "is_encoder_decoder": True,
        "vocab_size": len(source.pieces),
        **(marian if model_type == "marian" else {}),
        **{name: getattr(config, own) for name, own in SETTINGS.items()},
        "max_position_embeddings": max_positions(config),
        "activation_function": HF_ACTIVATIONS[config.activation],
        "activation_dropout": config.dropout,
        # CTranslate2's converter asks for these.
        **({"normalize_before": True, "normalize_embedding": False} if model_type == "pegasus" else {}),
        # Blenderbot would otherwise forbid that three pieces of the source come back.
        **({"encoder_no_repeat_ngram_size": 0} if model_type == "blenderbot" else {}),
        **_numbers(config, target),
    }


def padding_token(config: TransformerConfig, vocabulary: Vocabulary) -> int:
    """Return the id of the exported model's padding token.

    CTranslate2's converter makes Pegasus start with this token. What pads is masked, so any token will do.
    """
    return vocabulary.start if config.norm == "pre" else vocabulary.pad


def _numbers(config: TransformerConfig, vocabulary: Vocabulary) -> dict[str, int]:
    return {
        "pad_token_id": padding_token(config, vocabulary),
        "bos_token_id": vocabulary.start,
        "eos_token_id": vocabulary.eos,
        "decoder_start_token_id": vocabulary.start,
        "forced_eos_token_id": vocabulary.eos,
    }


def _generation_config(
    description: ModelDescription, config: TransformerConfig, vocabulary: Vocabulary
) -> dict[str, object]:
    """Return the content of generation_config.json: the model's decoding settings as settings of ``transformers``."""
    decoding = description.decoding
    longest_source = MAX_SOURCE_TOKENS if decoding.max_source_length == "auto" else decoding.max_source_length
    longest = int(longest_source * decoding.max_length_ratio) + decoding.max_length_extra
    return {
        "num_beams": decoding.beam_size,
        "length_penalty": decoding.length_penalty,
        "early_stopping": True,  # a sentence is finished when num_beams of its hypotheses are
        # ``transformers`` counts BOS and EOS, too. The decoder reads BOS and all other pieces, but not EOS.
        "max_length": min(longest + 2, max_positions(config) + 1),
        "do_sample": False,
        "suppress_tokens": sorted({vocabulary.pad, vocabulary.unk, vocabulary.start}),
        **_numbers(config, vocabulary),
    }


def _write_tokenizer(
    folder: Path, trained: TrainedModel, config: TransformerConfig, vocabularies: Vocabularies
) -> None:
    """Write the files of MarianTokenizer into a folder."""
    target = vocabularies.target
    files = {"vocab.json": vocabularies.source} | ({} if target.joint else {"target_vocab.json": target})
    for name, vocabulary in files.items():
        _write_json(folder / name, {piece: number for number, piece in enumerate(vocabulary.pieces)})
    for side, tokenizer in (("source", trained.tokenizers.source), ("target", trained.tokenizers.target)):
        appended = tokenizer.vocabulary
        write_atomically(
            folder / f"{side}.spm", appended.removed_from(tokenizer.model) if appended else tokenizer.model
        )
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": trained.description.source_language,
        "target_lang": trained.description.target_language,
        "separate_vocabs": not target.joint,
        "model_max_length": max_positions(config),
        "pad_token": target.pieces[padding_token(config, target)],
        "eos_token": target.pieces[target.eos],
        "unk_token": target.pieces[target.unk],
        **({"bos_token": target.pieces[target.start]} if target.start != target.pad else {}),
        "split_special_tokens": True,  # "</s>" in a line is text like any other
        "clean_up_tokenization_spaces": False,
    }
    _write_json(folder / "tokenizer_config.json", settings)


def _write_json(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
