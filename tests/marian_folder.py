"""Makes folders of MarianMT as ``transformers`` saves them, with real SentencePiece models of different inventories, in
the layouts that OPUS-MT and other models have; and runs that begin with them."""

import functools
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
import transformers

from mt.config import AugmentationConfig, OptimizerConfig, TextConfig, TokenizerConfig, TrainConfig, TransformerConfig
from tests import toy

SYLLABLES = {
    "source": ["ba", "de", "fi", "go", "ku", "la", "mo", "ne", "pi", "ra", "su", "ti", "vo", "wa", "ze", "ä", "N", "S"],
    "target": ["bel", "dar", "fo", "gi", "kö", "lun", "mé", "nu", "po", "rist", "sa", "to", "vi", "x", "zu", "é", "A"],
}
EXTRA = ("漢", "½", ">>xx<<", ">>yy<<")
"""Pieces of a vocabulary that no SentencePiece model has: rare characters and names of languages."""


@dataclass(frozen=True)
class Layout:
    """How a folder differs from that of an OPUS-MT model, which has one vocabulary and one matrix for everything."""

    name: str
    config: dict[str, Any] = field(default_factory=dict)
    separate: bool = False
    start: str = "<pad>"
    kind: str = "unigram"


LAYOUTS = [
    Layout("OPUS-MT"),
    Layout("one vocabulary, untied output", {"tie_word_embeddings": False, "activation_function": "relu"}),
    Layout("one vocabulary, two embeddings", {"share_encoder_decoder_embeddings": False}),
    Layout("separate vocabularies", {"share_encoder_decoder_embeddings": False}, separate=True),
    Layout(
        "separate vocabularies, untied output",
        {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False, "activation_function": "gelu"},
        separate=True,
        kind="bpe",
    ),
    Layout("a start of its own, unscaled", {"scale_embedding": False, "activation_function": "silu"}, start="<s>"),
]


def write_folder(folder: Path, layout: Layout = LAYOUTS[0], **config: object) -> Path:
    """Writes a folder with every file that those of OPUS-MT on the hub have, and random weights.

    Args:
        folder: The folder.
        layout: What it looks like.
        config: Changes to config.json.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sides = {side: _sentencepiece(side, layout.kind) for side in SYLLABLES}
    for side, model in sides.items():
        (folder / f"{side}.spm").write_bytes(model)
    if layout.separate:
        vocabularies = [_vocabulary([model], layout.start, pad_last=False) for model in sides.values()]
    else:
        vocabularies = [_vocabulary(sides.values(), layout.start, pad_last=True)]
    for name, numbers in zip(("vocab.json", "target_vocab.json"), vocabularies, strict=False):
        (folder / name).write_text(json.dumps(numbers, indent=2), encoding="utf-8")
    settings = {"source_lang": "xx", "target_lang": "yy", "separate_vocabs": layout.separate}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "MarianTokenizer", "model_max_length": 512, **settings}), encoding="utf-8"
    )
    target = vocabularies[-1]
    torch.manual_seed(1)
    values = {
        "vocab_size": len(vocabularies[0]), "decoder_vocab_size": len(target), "d_model": 32, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48, "max_position_embeddings": 512, "activation_function": "swish", "scale_embedding": True,
        "pad_token_id": target["<pad>"], "eos_token_id": 0, "forced_eos_token_id": 0,
        "decoder_start_token_id": target[layout.start], **layout.config, **config,
    }  # fmt: skip
    model = transformers.MarianMTModel(transformers.MarianConfig(**values))
    _randomize(model, transformers.MarianTokenizer.from_pretrained(folder))
    model.generation_config.num_beams = 4
    model.generation_config.max_length = 512
    model.generation_config.bad_words_ids = [[target["<pad>"]]]
    model.save_pretrained(folder)
    return folder


@torch.no_grad()
def _randomize(model: transformers.MarianMTModel, tokenizer: transformers.MarianTokenizer) -> None:
    """Gives a model weights by which sentences have different translations, which end."""
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter) * (0.24 if parameter.ndim > 1 else 0.1))
    embeddings = {model.model.encoder.embed_tokens, model.model.decoder.embed_tokens}
    for embedding in embeddings:
        embedding.weight.mul_(1 if model.config.scale_embedding else 2.5)
        embedding.weight[tokenizer.pad_token_id] = 0.0
    for layer in model.model.decoder.layers:
        attention = layer.encoder_attn
        for matrix in (attention.q_proj, attention.k_proj):
            matrix.weight.mul_(2)
        for matrix in (attention.v_proj, attention.out_proj):
            matrix.weight.mul_(3)
    model.final_logits_bias.normal_(std=0.3)
    sources, targets = (sentences(side, 40, seed=7) for side in SYLLABLES)
    logits = model.eval()(**tokenizer(sources, text_target=targets, return_tensors="pt", padding=True)).logits
    # At three places in ten, the end is the most probable.
    model.final_logits_bias[0, 0] += (logits.amax(dim=-1) - logits[..., 0]).quantile(0.3)


def write_corpus(folder: Path) -> Path:
    """Writes the files of a corpus in the two invented languages, as ``toy.config`` expects them."""
    for seed, (split, count) in enumerate({"train": 300, "valid": 20, "test": 20}.items()):
        for language, side in (("xx", "source"), ("yy", "target")):
            lines = sentences(side, count, seed)
            toy.write_lines(folder / f"{split}.{language}", lines)
    return folder


def tuned(corpus, start, name="tuned", rate=None, model=None, **training) -> TrainConfig:
    """Returns a run of 20 updates. What the command line does not say comes from the folder that it begins with."""
    optimizer = {"kind": "adamw"} | ({} if rate is None else {"learning_rate": rate})
    return toy.config(
        corpus,
        name,
        text=TextConfig(augmentation=AugmentationConfig(**toy.UNCHANGED | {"slots": AugmentationConfig().slots})),
        tokenizer=TokenizerConfig(),
        model=model or TransformerConfig(architecture="transformer"),
        training={"init_from": str(start), "optimizer": OptimizerConfig.model_validate(optimizer), **training},
    )


def sentences(side: str, count: int, seed: int, words: int = 200) -> list[str]:
    """Returns sentences in one of two invented languages, which have some letters in common.

    Args:
        side: ``source`` or ``target``.
        count: How many.
        seed: With the same seed, those of one side are the translations of the other's, word by word.
        words: How many words the language has.
    """
    random = np.random.default_rng(ord(side[0]))
    lexicon = ["".join(random.choice(SYLLABLES[side], random.integers(1, 4))) for _ in range(words)]
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(lexicon, random.integers(2, 9))) + "." for _ in range(count)]


@functools.cache
def _sentencepiece(side: str, kind: str) -> bytes:
    """Trains a model as those of OPUS-MT are: without byte fallback, and with other special pieces than ours."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(side, 2000, seed=5, words=1500)),
        model_writer=model,
        model_type=kind,
        vocab_size=420,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


def _vocabulary(models: Iterable[bytes], start: str, pad_last: bool) -> dict[str, int]:
    """Returns a vocabulary as Marian's: </s>, <unk>, most pieces of all models in an order of its own, and other
    pieces. <pad> comes last in one for both languages, and early where two need the same number for it."""
    pieces: set[str] = set()
    for model in models:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        known = [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]
        pieces.update(known[: len(known) - 5])
    special = ["<pad>", *({start} - {"<pad>"})]
    names = ["</s>", "<unk>", *sorted(pieces, key=lambda piece: piece[::-1]), *EXTRA]
    names[len(names) if pad_last else 2 : 0] = special[::-1]
    return {name: number for number, name in enumerate(names)}
