"""What the tests of whole runs share: their only worker, what a run has written, and a way to stop it."""

import json
import os
import signal

import torch

from mt.distributed.workers import Workers
from mt.training.updater import Updater

ALONE = Workers(torch.device("cpu"))
"""The only process of a run."""


def read_metrics(run):
    """What is reproducible of metrics.jsonl: all but times."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "target_tokens_per_second")} for line in lines]


def read_results(config):
    return json.loads((config.folder / "results.json").read_text())


def stop_after(monkeypatch, updates):
    """Sends this process a SIGTERM at the end of each of the given updates."""
    real_update = Updater.update

    def update(self, ready):
        result = real_update(self, ready)
        if self.progress.update in updates:
            updates.remove(self.progress.update)
            os.kill(os.getpid(), signal.SIGTERM)
        return result

    monkeypatch.setattr(Updater, "update", update)
