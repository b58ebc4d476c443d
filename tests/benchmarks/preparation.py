"""What the contestants are given: a briefly trained run, batches of its corpus, sentences to translate."""

import subprocess
import sys
from itertools import islice
from pathlib import Path

import torch

from mt.config import KeptConfig
from mt.data.batching.batches import BatchSettings, TrainingBatches
from mt.data.corpus import load_corpus
from mt.distributed.workers import Workers
from mt.storage.run_folder import read_config
from mt.training.preparation import drop_long_pairs, encode_pairs
from mt.translation.trained_model import open_model
from tests.benchmarks import task


def train_run(folder: Path, corpus: Path | None) -> None:
    """Train ``folder/run`` through train.py, unless it is there, so long that its translations end.

    Post-norm, because Marian knows no other; without a corpus, on the default one.
    """
    data = ["data=tatoeba_en_fr"] if corpus is None else corpus_words(corpus, train="train", test="test_2016_flickr")
    settings = {
        "runs": folder.resolve(), "name": "run", "tokenizer.vocabulary_size": task.VOCABULARY,
        "model": "transformer_small", "model.width": task.WIDTH, "model.feed_forward": task.FEED_FORWARD,
        "model.heads": task.HEADS, "model.encoder_layers": task.LAYERS, "model.decoder_layers": task.LAYERS,
        "model.norm": "post", "training.threads": task.THREADS, "training.batch_tokens": 2048,
        "training.max_updates": 450, "training.validate_every": 450, "training.schedule.warmup": 50,
        "training.optimizer.kind": "muon",
    }  # fmt: skip
    overrides = [f"{name}={value}" for name, value in settings.items()]
    if subprocess.run([sys.executable, "train.py", *data, *overrides], cwd=task.PROJECT).returncode:
        sys.exit(f"without a trained run there is nothing to time; if {folder} is from older code, delete it")


def write_inputs(folder: Path, batches: int) -> float:
    """Write ``batches.safetensors``, ``test.source`` and ``test.target``; returns the padding of an
    epoch's targets as a share of its real target tokens."""
    config = read_config(folder / "run")
    trained = open_model(folder / "run")
    layer = trained.text_layer(KeptConfig(), next(iter(trained.description.layers)))
    corpus = load_corpus(config.data)
    pairs = drop_long_pairs(encode_pairs(corpus.train, layer), config.data.max_length)
    settings = BatchSettings(config.text.augmentation, 0.0, config.seed, task.BATCH_TOKENS)
    training = TrainingBatches(pairs, [layer], settings, Workers(torch.device("cpu")))
    first = [(batch.source, batch.target) for batch in islice(training.epoch(0), batches)]
    task.save_batches(first, folder / "batches.safetensors")

    for side in ("source", "target"):
        text = "".join(f"{line}\n" for line in corpus.test[side][: task.SENTENCES])
        (folder / f"test.{side}").write_text(text, encoding="utf-8", newline="\n")

    real = sum(batch.target_tokens for batch in training.epoch(0))
    positions = sum(batch.target_output.numel() for batch in training.epoch(0))
    return positions / real - 1


def corpus_words(corpus: Path, **names: str) -> list[str]:
    """Return the words of a command line for a folder that looks like Multi30k.

    Args:
        corpus: The folder.
        names: The name of the files of each split, such as ``test="test_2016_flickr"``.
    """
    files = {split: [_file(corpus, f"{name}.{language}") for language in ("en", "de")] for split, name in names.items()}
    languages = ["data.source_language=en", "data.target_language=de"]
    return ["data=files", *languages, *(f"data.{split}=[{','.join(pair)}]" for split, pair in files.items())]


def _file(corpus: Path, name: str) -> str:
    for path in (corpus / name, corpus / f"{name}.gz"):
        if path.exists():
            return str(path.resolve())
    sys.exit(f"{corpus}: neither {name} nor {name}.gz is there")
