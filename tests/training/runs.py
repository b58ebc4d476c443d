"""Helpers of the tests of whole runs: a single worker, readers of records, and a way to stop a run."""

import json
import os
import signal

import pytest
import torch

from mt.config.resolved import Resolved
from mt.core.errors import Interrupted
from mt.distributed.workers import Workers
from mt.training.command import train
from mt.training.trainer import Trainer
from mt.training.updater import Updater
from tests import toy

ALONE = Workers(torch.device("cpu"))
"""The only process of a run."""


def read_lines(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def read_metrics(run):
    """Return the reproducible part of metrics.jsonl, without times."""
    times = ("seconds", "target_tokens_per_second")
    return [{name: value for name, value in line.items() if name not in times} for line in read_lines(run)]


def read_validations(run):
    return [line for line in read_metrics(run) if line["split"] == "valid"]


def has_weights_of(config, other_config):
    """Return whether two runs have the same weights, bit for bit."""
    one, other = ((each.folder / "model.safetensors").read_bytes() for each in (config, other_config))
    return one == other


def read_results(config):
    return json.loads((config.folder / "results.json").read_text())


def make_trainer(config, checkpoint=None, data=None):
    """Create the folder and the trainer of a run in this process."""
    config.folder.mkdir(parents=True, exist_ok=True)
    data = data or toy.prepared(config, config.folder if checkpoint else None)
    return Trainer(Resolved(config), data, ALONE, checkpoint)


def train_until(config, *updates):
    """Train a run that gets a SIGTERM at the end of each of these updates, and resume it after all except the last
    one."""
    real_update = Updater.train_step
    for last in updates:

        def update(self, ready, last=last):
            result = real_update(self, ready)
            if self.progress.update == last:
                os.kill(os.getpid(), signal.SIGTERM)
            return result

        with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted) as stopped:
            patch.setattr(Updater, "train_step", update)
            train(config)
        assert stopped.value.signal_number == signal.SIGTERM
