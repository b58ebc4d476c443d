"""Finished runs of the toy language that tests read and never change, each trained once for all workers of pytest."""

import fcntl
from pathlib import Path

from mt.storage.run_folder import RESULTS
from mt.training.command import train
from tests import toy


class SharedRuns:
    """Run folders by architecture and seed, such as ``transformer-1``; the corpus is in ``folder``. ``directions-1`` is
    a Transformer from en to fr and back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def __getitem__(self, name: str) -> Path:
        architecture, _, seed = name.rpartition("-")
        training = {"max_updates": 80, "validate_every": 20}
        data = {}
        if architecture == "directions":
            architecture, data = "transformer", {"source_language": "en", "target_language": "fr", "reverse": True}
        config = toy.config(self.folder, name, architecture, seed=int(seed), training=training, data=data)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (self.folder / "test.yy").exists():
                toy.write_corpus(self.folder, "reverse", train=600)
            if not (config.folder / RESULTS).exists():
                train(config)
        return config.folder
