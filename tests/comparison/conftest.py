"""Finished toy runs to compare: two architectures, two seeds each."""

from pathlib import Path

import pytest
import torch

from mt.training.command import train
from tests import toy


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run folders by name, ``transformer-1``, ``transformer-2``, ``rnn-1``, ``rnn-2``; not to be changed."""
    folder = tmp_path_factory.mktemp("comparison")
    toy.write_corpus(folder, "reverse", train=600)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = {}
    for architecture in toy.MODELS:
        for seed in (1, 2):
            config = toy.config(folder, f"{architecture}-{seed}", architecture, seed=seed, training={"max_updates": 80})
            train(config)
            found[config.name] = config.folder
    torch.set_num_threads(threads)
    return found
