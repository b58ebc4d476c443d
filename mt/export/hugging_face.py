"""Exports a trained Transformer as a model of Hugging Face's ``transformers``:
``python -m mt export format=hugging_face run=RUN output=FOLDER``.

``transformers`` has three architectures that are equal to ours: Pegasus (pre-norm, sinusoidal positions), Blenderbot
(pre-norm, learned positions) and MarianMT (post-norm, sinusoidal positions). The export does not need the library.

The tokenizer is MarianTokenizer, because it calls SentencePiece. A ``tokenizer.json`` can represent pieces and merges,
but not SentencePiece's normalization: it would lose combining marks and decomposed Hangul.
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

`ct2-transformers-converter --model FOLDER --output_dir OUTPUT` converts Pegasus models and models that were fine-tuned
from MarianMT for CTranslate2. With `beam_size={num_beams}` and `length_penalty={length_penalty}`,
`translate_batch` gives the same translations. For any other model, use mt-trainer and the trained model:
`python -m mt export format=ctranslate2 run=RUN output=OUTPUT`.

`generate` searches like mt-trainer: beam size, length penalty and stopping rule are in `generation_config.json`, and
scores have the same definition. There are two differences. The length limit is the same for all lines ({max_length}
tokens), and at this limit the end-of-sentence token has probability 1. If a line begins with `>>`, MarianTokenizer
removes it up to the next `<<`, because it reads this as the name of a language.
"""


def export_hugging_face(config: ExportConfig) -> None:
    """Write a folder with the model, its tokenizer and a model card, and warn of lost functions of the text layer.

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
        if settings.norm == "pre":  # MarianMT computes its positions, the others read them from a table
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
    """Return every reason why ``transformers`` has no architecture for a model, or an empty list if it has one."""
    config = trained.description.model
    if not isinstance(config, TransformerConfig):
        return [f"model.architecture={config.architecture}: it has no such translation model"]
    if (config.norm, config.positions) not in ARCHITECTURES:
        return [f"model.positions={config.positions} with model.norm={config.norm}: it has no such Transformer"]
    reasons = []
    if config.norm == "pre":
        if not config.tie_embeddings:
            reasons.append("model.tie_embeddings=false with model.norm=pre")
        if not trained.tokenizers.joint:
            reasons.append("tokenizer.joint=false with model.norm=pre")
    if reasons:
        reasons[-1] += ": its pre-norm models (Pegasus, Blenderbot) have one matrix for source, target and output"
    return reasons


def _vocabulary(tokenizer: Tokenizer, joint: bool, config: TransformerConfig) -> Vocabulary:
    """Return the vocabulary of one side of the exported model.

    A tokenizer from a MarianMT model gets the ids that it had there. Any other tokenizer keeps its ids.

    Args:
        tokenizer: The tokenizer of that side.
        joint: Whether both sides share the tokenizer.
        config: The model's settings.
    """
    start = PAD if config.decoder_start == "pad" else BOS
    return tokenizer.vocabulary or Vocabulary(tokenizer.all_subwords(), PAD, UNK, start, EOS, joint)


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
        **{name: getattr(config, setting) for name, setting in SETTINGS.items()},
        "max_position_embeddings": max_positions(config),
        "activation_function": HF_ACTIVATIONS[config.activation],
        "activation_dropout": config.dropout,
        # CTranslate2's converter asks for these.
        **({"normalize_before": True, "normalize_embedding": False} if model_type == "pegasus" else {}),
        # By default, Blenderbot forbids three tokens in a row that are in the source.
        **({"encoder_no_repeat_ngram_size": 0} if model_type == "blenderbot" else {}),
        **_special_token_ids(config, target),
    }


def _padding_token_id(config: TransformerConfig, vocabulary: Vocabulary) -> int:
    """Return the id of the exported model's padding token.

    CTranslate2's converter makes this the first token of Pegasus. Padding is masked, so any token can be used for it.
    """
    return vocabulary.start if config.norm == "pre" else vocabulary.pad


def _special_token_ids(config: TransformerConfig, vocabulary: Vocabulary) -> dict[str, int]:
    """Return the ids of special tokens, by their names in config.json and generation_config.json."""
    return {
        "pad_token_id": _padding_token_id(config, vocabulary),
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
        # ``transformers`` counts BOS and EOS. The decoder reads all of these tokens except EOS.
        "max_length": min(longest + 2, max_positions(config) + 1),
        "do_sample": False,
        "suppress_tokens": sorted({vocabulary.pad, vocabulary.unk, vocabulary.start}),
        **_special_token_ids(config, vocabulary),
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
        content = appended.removed_from(tokenizer.model) if appended else tokenizer.model
        write_atomically(folder / f"{side}.spm", content)
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": trained.description.source_language,
        "target_lang": trained.description.target_language,
        "separate_vocabs": not target.joint,
        "model_max_length": max_positions(config),
        "pad_token": target.pieces[_padding_token_id(config, target)],
        "eos_token": target.pieces[target.eos],
        "unk_token": target.pieces[target.unk],
        **({"bos_token": target.pieces[target.start]} if target.start != target.pad else {}),
        "split_special_tokens": True,  # "</s>" in a line is ordinary text
        "clean_up_tokenization_spaces": False,
    }
    _write_json(folder / "tokenizer_config.json", settings)


def _write_json(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
