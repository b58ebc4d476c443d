"""Finished toy runs to compare: two architectures, two seeds each."""

import fcntl
import os
from pathlib import Path

import pytest
import torch

from mt.training.command import train
from tests import toy


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run folders by name, ``transformer-1``, ``transformer-2``, ``rnn-1``, ``rnn-2``; not to be changed. Pytest's
    workers share them: the first trains them, and the others find them finished."""
    here = tmp_path_factory.getbasetemp()
    folder = (here.parent if "PYTEST_XDIST_WORKER" in os.environ else here) / "comparison"
    folder.mkdir(exist_ok=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = {}
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "train.xx").exists():
            toy.write_corpus(folder, "reverse", train=600)
        for architecture in toy.MODELS:
            for seed in (1, 2):
                settings = {"max_updates": 80, "validate_every": 20}
                config = toy.config(folder, f"{architecture}-{seed}", architecture, seed=seed, training=settings)
                train(config)
                found[config.name] = config.folder
    torch.set_num_threads(threads)
    return found
