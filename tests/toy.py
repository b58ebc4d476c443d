"""A toy language that a tiny model learns in seconds: made-up words, translated by copying or reversing them."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from mt.config import AugmentationConfig, TrainConfig
from mt.core.errors import format_value
from mt.distributed.workers import Workers
from mt.models.build import build_for_sizes
from mt.models.seq2seq import Seq2Seq
from mt.storage.model_description import AlignmentConfig, ModelDescription, TextLayerDescription
from mt.storage.run_folder import COMPARED, FILE_CHECKSUMS, RESULTS, file_checksums, flat_config
from mt.storage.validation import read_json, write_json
from mt.text.layer import TextLayer
from mt.text.line import Line
from mt.text.placeholders import count_placeholders
from mt.tokenizer.tokenizer import TokenizerPair
from mt.training.preparation import PreparedData, prepare, read_corpus

SYLLABLES = ["ba", "de", "fi", "go", "ku", "la", "mo", "ne", "pi", "ra", "su", "ti", "vo", "wa", "ze"]


MODELS = {
    "transformer": {
        "architecture": "transformer", "width": 32, "feed_forward": 64, "heads": 2, "encoder_layers": 1,
        "decoder_layers": 1,
    },
    "rnn": {"architecture": "rnn_attention", "width": 32, "hidden": 48, "encoder_layers": 1, "decoder_layers": 2},
}  # fmt: skip
"""One small model of each architecture."""

SLOTS = 4
UNCHANGED = dict.fromkeys(AugmentationConfig.model_fields, 0.0)
"""Pairs stay as they are: the toy language has neither names nor capitals."""
CHANGED = UNCHANGED | {"slots": 0.3, "typos": 0.2}
CHANGED |= dict.fromkeys(("joined", "symbols", "unpunctuated", "lower_case"), 0.1)
"""Many pairs are changed."""


def sentences(count: int, seed: int, longest: int = 8) -> list[str]:
    """Distinct sentences of 2 to ``longest`` syllables."""
    random = np.random.default_rng(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        words = random.choice(SYLLABLES, random.integers(2, longest + 1))
        found[" ".join(words)] = None
    return list(found)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_corpus(folder: Path, task: str, train: int = 3000, valid: int = 40, longest: int = 8) -> None:
    """train, valid and test as ``SPLIT.xx`` and ``SPLIT.yy``; the task is copy or reverse."""
    lines = sentences(train + valid + 40, seed=1, longest=longest)
    for split, part in (("train", lines[valid + 40 :]), ("valid", lines[:valid]), ("test", lines[valid : valid + 40])):
        targets = part if task == "copy" else [" ".join(reversed(line.split())) for line in part]
        write_lines(folder / f"{split}.xx", part)
        write_lines(folder / f"{split}.yy", targets)


def config(folder: Path, name: str = "toy", architecture: str = "transformer", **changes: dict) -> TrainConfig:
    """A run on that corpus, a second or so for 20 updates; ``changes`` by section, e.g. training={"max_updates": 5}."""
    values = {
        "name": name,
        "runs": str(folder / "runs"),
        "data": {
            "kind": "files",
            "cleaning": False,  # the toy language's translations are copies, or in no known language
            "source_language": "xx",
            "target_language": "yy",
            **{
                split: (str(folder / f"{split}.xx"), str(folder / f"{split}.yy"))
                for split in ("train", "valid", "test")
            },
        },
        "text": {"slots": SLOTS, "augmentation": UNCHANGED},
        "tokenizer": {"kind": "bpe", "vocabulary_size": 320},
        "model": MODELS[architecture],
        "training": {
            "max_updates": 20,
            "batch_tokens": 256,
            "validate_every": 10,
            "valid_bleu_pairs": 8,
            "log_every": 5,
            "precision": "fp32",
            "schedule": {"kind": "linear", "warmup": 5},
            "optimizer": {"kind": "adamw", "learning_rate": 5e-3, "embedding_factor": 1.0},
        },
        "decoding": {"beam_size": 2},
    }
    for section, change in changes.items():
        values[section] = values[section] | change if isinstance(change, dict) else change
    return TrainConfig.model_validate(values)


def model(
    architecture: str = "transformer", vocabulary: int = 20, joint: bool = True, seed: int = 0, **changes: object
) -> Seq2Seq:
    """A model with random weights."""
    torch.manual_seed(seed)
    settings = config(Path(), architecture=architecture, model=changes).model
    return build_for_sizes(settings, vocabulary, vocabulary, joint)


def prepared(config: TrainConfig, tokenizer_from: Path | None = None) -> PreparedData:
    """What a run learns from, as a single worker prepares it."""
    alone = Workers(torch.device("cpu"))
    return prepare(config, *read_corpus(config, tokenizer_from, alone), {}, tokenizer_from, alone)


def layer(tokenizers: TokenizerPair, **rules: object) -> TextLayer:
    """The text layer of the toy language."""
    return TextLayer(TextLayerDescription.model_validate(rules), tokenizers, "xx", "yy")


def line(text: str, markup: Literal["html", "xml"] | None = None, **asked: object) -> Line:
    return Line(**asked).with_text(text, markup)


def description(config: TrainConfig, tokenizers: TokenizerPair) -> ModelDescription:
    text = layer(tokenizers, enabled=count_placeholders(tokenizers) > 0).config
    return ModelDescription.of(config, {config.data.direction: text}, AlignmentConfig())


def copy_to_change(run: Path, to: Path) -> Path:
    """Copy a finished run for a test that changes its files."""
    return Path(shutil.copytree(run, to))


def change_json(path: Path, change: Callable[[dict], object]) -> None:
    """Change the content of a sealed JSON file, and record the new checksum of a file that results.json knows."""
    content = read_json(path)
    change(content)
    write_json(path, content)
    if path.name in COMPARED and (path.parent / RESULTS).is_file():
        record_checksums(path.parent)


def record_checksums(run: Path) -> None:
    """Record the files of a finished run as they are now in its results.json, after a test has changed them."""
    write_json(run / RESULTS, read_json(run / RESULTS) | {FILE_CHECKSUMS: file_checksums(run)})


def words(config: TrainConfig) -> list[str]:
    """What one would type behind ``train.py`` for this config."""
    model = {"transformer": "transformer_small", "rnn_attention": "rnn_attention"}[config.model.architecture]
    settings = flat_config(config)
    del settings["data.kind"], settings["model.architecture"]
    return ["data=files", f"model={model}", *(f"{key}={format_value(value)}" for key, value in settings.items())]
