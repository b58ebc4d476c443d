"""A model that could never be trained in the memory of this machine is refused, and leaves nothing."""

import re

import pytest
import torch

from mt.core.errors import InputError
from mt.distributed.workers import Workers
from mt.models.build import build_model, build_shapes
from mt.training import command
from mt.training.command import train
from tests import toy


def test_twelve_bytes_a_parameter_must_fit_and_spread_over_workers_four_and_their_share(tmp_path, monkeypatch):
    toy.write_corpus(tmp_path, "copy", train=60)
    config = toy.config(tmp_path)
    workers = Workers(torch.device("cpu"))
    tokenizers = toy.prepared(config).tokenizers
    parameters = build_model(config.model, tokenizers).parameter_count
    sharded = toy.config(tmp_path, training={"shard": True})
    for size, settings, needed in ((1, config, 12), (2, config, 12), (2, sharded, 8)):
        workers.size = size
        monkeypatch.setattr(command, "memory_bytes", lambda device, there=needed * parameters: there)
        command.refuse_what_cannot_fit(settings, tokenizers, workers)
        monkeypatch.setattr(command, "memory_bytes", lambda device, there=needed * parameters - 1: there)
        with pytest.raises(InputError, match=f"the model has {parameters:,} parameters, .*take a smaller model"):
            command.refuse_what_cannot_fit(settings, tokenizers, workers)
    # The message tells how much is missing, in GB of which 1000 MB make one.
    workers.size = 1
    large = toy.config(tmp_path, model={"width": 4096, "feed_forward": 4096})
    many = build_shapes(large.model, tokenizers).parameter_count
    assert many > 10**8
    monkeypatch.setattr(command, "memory_bytes", lambda device: 1_250_000_001)
    needed = f"which need at least {12 * many / 1e9:,.1f} GB for training, but cpu has 1.3 GB of memory"
    with pytest.raises(InputError, match=re.escape(f"the model has {many:,} parameters, {needed}")):
        command.refuse_what_cannot_fit(large, tokenizers, workers)
    # Four workers on one machine share its memory.
    workers.local_size = 4
    monkeypatch.setattr(command, "memory_bytes", lambda device: 12 * parameters)
    with pytest.raises(InputError, match="take a smaller model"):
        command.refuse_what_cannot_fit(config, tokenizers, workers)


def test_a_run_folder_whose_files_have_too_long_paths_leaves_no_folder(tmp_path):
    toy.write_corpus(tmp_path, "copy", train=60)
    origin = tmp_path / "origin"
    origin.mkdir()
    before = set(tmp_path.iterdir())
    longest = f"{origin}{'/../origin' * ((4095 - len(str(origin))) // 10)}"
    with pytest.raises((OSError, InputError)):  # OSError before Python 3.14
        train(toy.config(tmp_path, training={"init_from": longest}))
    assert set(tmp_path.iterdir()) == before


def test_a_refused_model_leaves_no_folder(tmp_path):
    toy.write_corpus(tmp_path, "copy", train=60)
    before = set(tmp_path.iterdir())
    config = toy.config(tmp_path, model={"width": 65_536, "encoder_layers": 256})
    with pytest.raises(InputError, match="GB of memory"):
        train(config)
    assert set(tmp_path.iterdir()) == before
