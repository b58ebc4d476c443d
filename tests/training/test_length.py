"""Tests of ``training.epochs``: the number of updates, resuming, and conflicts with ``max_updates``."""

import dataclasses
import math

import pytest

from mt.core.errors import InputError
from mt.storage.run_folder import read_config
from mt.training.command import train
from tests import toy
from tests.cli.test_composition import config_errors, train_config
from tests.training.runs import has_weights_of, make_trainer, read_results, train_until


@pytest.mark.parametrize("batching", ["padded", "packed"])
def test_epochs_set_max_updates(folder, batching):
    config = toy.config(folder, training={"epochs": 3.25, "accumulate": 2, "batching": batching})
    data = toy.prepared(config)
    weights = [number / len(data.train) for number in range(len(data.train))]  # each epoch draws other pairs
    weighted = data.train.remove_columns("weight").add_column("weight", weights)
    trainer = make_trainer(config, data=dataclasses.replace(data, train=weighted))
    *others, last = (len(list(trainer.batches.epoch(number))) for number in range(4))
    assert trainer.config.training.max_updates == math.ceil((sum(others) + last / 4) / 2) > 5


def test_run_of_epochs_resumes_and_grows_bitwise(folder):
    def run(**length):
        return toy.config(folder, str(list(length)), training=length)

    batches = make_trainer(toy.config(folder)).batches.batches_in_epoch(0)
    train_until(run(epochs=0.5), 3)
    for epochs in 0.5, 1:
        config, same = run(epochs=epochs), run(max_updates=math.ceil(epochs * batches))
        train(config)
        train(same)
        assert has_weights_of(config, same) and read_results(config)["epochs"] == read_results(same)["epochs"] >= epochs
        assert read_config(config.folder).training.max_updates == same.training.max_updates
    with pytest.raises(InputError, match=r"another config:\n  training.epochs: 1.0 in the run, now 0.5\n"):
        train(run(epochs=0.5))


def test_last_given_length_replaces_the_other(tmp_path):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text("# @package _global_\ntraining:\n  epochs: 3\n")
    assert train_config("experiment=multi30k_speedrun", "training.epochs=0.01").training.max_updates == 1200
    assert train_config("experiment=mine", "training.max_updates=900", config_dir=tmp_path).training.epochs is None
    assert (
        "max_updates and training.epochs both set" in config_errors("training.epochs=3", "training.max_updates=900")[0]
    )
