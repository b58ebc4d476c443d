"""Two finished toy runs on sentences with capitals, names and full stops, of the same test set."""

from pathlib import Path

import numpy as np
import pytest

from mt.training.command import train
from tests import toy

NAMES = "Sula", "Viko", "Nepi"


def _sentence(words: list[str], name: str) -> str:
    middle = len(words) // 2
    return " ".join([words[0].capitalize(), *words[1:middle], name, *words[middle:]]) + "."


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Run folders that differ in their seed; not to be changed."""
    folder = tmp_path_factory.mktemp("robustness")
    toy.write_corpus(folder, "copy", train=600)
    for split in ("train", "valid", "test"):
        random = np.random.default_rng(1)
        lines = [line.split() for line in (folder / f"{split}.xx").read_text().splitlines()]
        made = [_sentence(words, NAMES[random.integers(len(NAMES))]) for words in lines]
        for side in ("xx", "yy"):
            (folder / f"{split}.{side}").write_text("".join(f"{line}\n" for line in made))
    found = []
    for seed in (1, 2):
        settings = {"max_updates": 100, "validate_every": 100, "log_every": 40}
        config = toy.config(folder, f"seed-{seed}", seed=seed, training=settings, decoding={"beam_size": 1})
        train(config)
        found.append(config.folder)
    return found
