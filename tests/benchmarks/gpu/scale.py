"""The sizes of the benchmark, on a GPU and at toy size, its made-up corpus, and the configs of its runs."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mt.cli.composition import compose_job
from mt.config import AugmentationConfig, TrainConfig

TOKENIZER = "tokenizer"
"""The name of the run folder with the tokenizer of all runs."""
NO_AUGMENTATION = [f"text.augmentation.{name}=0" for name in AugmentationConfig.model_fields]
TOY_SIZES = {
    "transformer": {"width": 32, "feed_forward": 64, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
    "rnn_attention": {"width": 32, "hidden": 48, "encoder_layers": 1},
}


@dataclass(frozen=True)
class Scale:
    device: str
    half_precision: str
    """The precision of the part ``resume`` that has a scaler."""
    words: int
    """Different words of each language."""
    pairs: int
    sentences: int
    """Test sentences, which are decoded."""
    vocabulary_size: int
    batch_tokens: int
    """Of a base model. A big one has twice as many, a small one SMALL_BATCH_TOKENS."""
    run_updates: int
    """Updates of the part ``base_run``."""
    resume_updates: int
    """Updates of the part ``resume``."""
    timed_updates: int

    @property
    def is_toy(self) -> bool:
        return self is TOY


SMALL_BATCH_TOKENS = 1024
GPU = Scale("cuda", "fp16", 20_000, 60_000, 1000, 32_000, 12_500, 240, 80, 60)
TOY = Scale("cpu", "fp32", 300, 400, 20, 700, 512, 12, 6, 4)


@dataclass(frozen=True)
class Setup:
    """What a part is given."""

    folder: Path
    """The folder of the benchmark, with the corpus and the runs."""
    data: Path
    """The folder with Multi30k."""
    scale: Scale

    @property
    def batches(self) -> Path:
        """The file with the padded batches of the other implementations."""
        return self.folder / "batches.safetensors"

    @property
    def _machine(self) -> Path:
        return self.folder / "machine.json"

    def write_product_gflops(self, rate: float) -> None:
        self._machine.write_text(json.dumps(rate))

    def product_gflops(self) -> float:
        """Return the rate of large matrix products that the part ``preparation`` measured."""
        return json.loads(self._machine.read_text())

    def config(
        self, name: str, model: str, *words: str, batch_tokens: int | None = None, augments: bool = False
    ) -> TrainConfig:
        """Return the config of a run on the made-up corpus.

        Args:
            name: The name of the run.
            model: The preset of the model.
            words: Further settings.
            batch_tokens: The size of a batch; None for that of the base models.
            augments: Whether training pairs are augmented.
        """
        folder, scale = self.folder, self.scale
        files = [f"data.{split}=[{folder}/{split}.xx,{folder}/{split}.yy]" for split in ("train", "valid", "test")]
        settings = {
            "name": name, "model": model, "tokenizer.vocabulary_size": scale.vocabulary_size,
            "training.batch_tokens": batch_tokens or scale.batch_tokens, "training.max_updates": 1000,
            "training.validate_every": 1000, "training.valid_bleu_pairs": min(100, scale.sentences),
            "decoding.max_length_ratio": 1.2,
        }  # fmt: skip
        own = [] if name == TOKENIZER else [f"tokenizer.reuse={folder}/runs/{TOKENIZER}"]
        languages = ["data=files", "data.source_language=xx", "data.target_language=yy", "data.cleaning=false"]
        values = [f"{key}={value}" for key, value in settings.items()]
        return self.compose(model, *languages, *files, *values, *own, *([] if augments else NO_AUGMENTATION), *words)

    def compose(self, model: str, *words: str) -> TrainConfig:
        """Return the config of a command line whose runs belong to the benchmark.

        Args:
            model: The name of the model's preset, which decides how toys are small.
            words: The command line.
        """
        scale = self.scale
        words = (*words, f"runs={self.folder}/runs", f"training.device={scale.device}")
        if scale.is_toy:
            sizes = TOY_SIZES["rnn_attention" if model.startswith("rnn") else "transformer"]
            words = (*words, *(f"model.{key}={value}" for key, value in sizes.items()))
        job = compose_job("train", TrainConfig, words)
        return job.config


def write_corpus(folder: Path, scale: Scale) -> None:
    """Write sentences as long as news (26 words on average), words as frequent as in language (Zipf), each word
    translated by another."""
    random = np.random.default_rng(1)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    count = scale.words
    vocabulary = ["".join(random.choice(letters, random.integers(2, 11))) for _ in range(2 * count)]
    probability = 1 / np.arange(1, count + 1)
    probability /= probability.sum()
    valid = min(500, scale.sentences)
    for split, pairs in (("train", scale.pairs), ("valid", valid), ("test", scale.sentences)):
        lengths = np.clip(random.lognormal(3.1, 0.55, pairs).astype(int), 1, 100)
        drawn = np.split(random.choice(count, lengths.sum(), p=probability), lengths.cumsum()[:-1])
        for language, offset in (("xx", 0), ("yy", count)):
            lines = (" ".join(vocabulary[word + offset] for word in words) for words in drawn)
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))
