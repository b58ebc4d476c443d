"""Measures how many target tokens a second the feed prepares for training, without a model: on a GPU, a small one takes
almost a million.

    python -m tests.benchmarks.feed [pairs=300000] [batch_tokens=12500] [seconds=60] [kinds=plain,sampling,…]
                                    [processes=0,1] [packed=false]

The corpus is made up: as long as news (27 tokens a sentence), words as frequent as in language, with names, numbers,
commas and full stops. Each kind is measured for some seconds, from the start of an epoch on.
"""

import os
import tempfile
import time
from contextlib import closing
from pathlib import Path

import datasets
import numpy as np
import torch

from mt.config import AugmentationConfig, TokenizerConfig
from mt.core.device import processor_name
from mt.data.batching import BatchSettings, TrainingBatches
from mt.data.encoding import encode_pairs
from mt.distributed.workers import Workers
from mt.storage.model_description import TextLayerDescription
from mt.text.layer import TextLayer
from mt.text.placeholders.placeholders import all_placeholders
from mt.text.subwords.training import train_tokenizers
from mt.training.feed import feed
from tests import options

WORDS = 200_000
"""Different words of each language. The most frequent one is one of twelve words."""
SAMPLING = 0.1
OFF = AugmentationConfig(**dict.fromkeys(AugmentationConfig.model_fields, 0.0))
KINDS = {
    "plain": (0.0, OFF),
    "sampling": (SAMPLING, OFF),
    "augmentation": (0.0, AugmentationConfig()),
    "both": (SAMPLING, AugmentationConfig()),
}


class Options(options.Options):
    pairs: int = 300_000
    batch_tokens: int = 12_500
    seconds: float = 60
    kinds: str = ",".join(KINDS)
    processes: str = "0,1"
    packed: bool = False


def made_up_pairs(count: int) -> datasets.Dataset:
    """Return pairs in which each word is translated by another. Names and numbers stay."""
    random = np.random.default_rng(1)
    syllables = np.array([first + second for first in "bcdfghjklmnpqrstvwxz" for second in "aeiouy"])
    rank = np.arange(1, WORDS + 1)
    probability = 1 / rank / (1 / rank).sum()
    # Rare words are longer, one in twenty is a name.
    sizes = np.clip(random.poisson(np.log10(rank) * 0.6), 1, 6)
    vocabularies = []
    for _ in range(2):
        parts = np.split(random.choice(syllables, sizes.sum()), sizes.cumsum()[:-1])
        vocabularies.append(np.array(["".join(part) for part in parts], dtype=object))
    names = np.flatnonzero(random.random(WORDS) < 0.05)
    vocabularies[0][names] = [name.capitalize() for name in vocabularies[0][names]]
    vocabularies[1][names] = vocabularies[0][names]
    lengths = np.clip(random.lognormal(2.75, 0.55, count).astype(int), 1, 100)
    words = random.choice(WORDS, lengths.sum(), p=probability)
    number = np.char.mod("%d", random.integers(2, 3000, len(words)))
    is_number, has_comma = random.random((2, len(words))) < [[0.02], [0.06]]
    sides = {}
    for side, vocabulary in zip(("source", "target"), vocabularies, strict=True):
        texts = np.where(is_number, number, vocabulary[words]) + np.where(has_comma, ",", "").astype(object)
        sentences = (" ".join(part) for part in np.split(texts, lengths.cumsum()[:-1]))
        sides[side] = [f"{text[:1].upper()}{text[1:].rstrip(',')}." for text in sentences]
    return datasets.Dataset.from_dict(sides | {"id": range(count), "weight": np.ones(count, dtype=np.float32)})


def tokens_per_second(batches: TrainingBatches, seconds: float) -> tuple[float, float]:
    """Return the target tokens a second, and the seconds until the first batch."""
    started = time.perf_counter()
    tokens = 0
    with closing(feed(batches, 0, 0, 1, Workers(torch.device("cpu")))) as updates:
        tokens += next(updates).target_tokens
        first = time.perf_counter() - started
        while time.perf_counter() - started < seconds:
            tokens += next(updates).target_tokens
        return tokens / (time.perf_counter() - started), first


def main() -> None:
    options = Options.parse(__doc__)
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        datasets.config.HF_DATASETS_CACHE = Path(folder)
        pairs = made_up_pairs(options.pairs)
        tokenizers = train_tokenizers(
            pairs, ("xx", "yy"), TokenizerConfig(vocabulary_size=32_000), 1, all_placeholders(10)
        )
        layer = TextLayer(TextLayerDescription(slots=10), tokenizers, "en", "fr")
        pairs = encode_pairs(pairs, layer)
        length = np.mean(pairs.data.column("target_length").to_numpy())
        print(f"{processor_name()}, {cores} cores; {options.pairs:,} pairs of {length:.1f} target tokens")
        for kind in options.kinds.split(","):
            sampling, augmentation = KINDS[kind]
            for processes in map(int, options.processes.split(",")):
                settings = BatchSettings(augmentation, sampling, 1, options.batch_tokens, options.packed, processes)
                batches = TrainingBatches(pairs, layer, settings, Workers(torch.device("cpu")))
                rate, first = tokens_per_second(batches, options.seconds)
                print(
                    f"{kind}, {processes} processes: {rate:,.0f} target tokens/s, the first after {first:.1f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
