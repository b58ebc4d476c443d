"""Processes augment training pairs and sample subwords for a GPU, or as many as the user asks for."""

import pytest
import torch

from mt.training.updater import feed_process_count
from tests import toy


@pytest.mark.parametrize(
    ("setting", "device", "cores", "local_size", "sampling", "expected"),
    [
        ("auto", "cpu", 16, 1, 0.1, 0),
        ("auto", "cuda", 1, 1, 0.1, 1),
        ("auto", "cuda", 2, 1, 0.1, 2),
        ("auto", "cuda", 4, 1, 0.1, 3),
        ("auto", "cuda", 64, 1, 0.1, 8),
        ("auto", "cuda", 16, 4, 0.1, 3),
        ("auto", "cuda", 2, 4, 0.1, 1),
        ("auto", "cuda", 16, 1, 0.0, 0),
        (3, "cpu", 2, 1, 0.1, 3),
        (0, "cuda", 16, 1, 0.1, 0),
        (3, "cuda", 16, 1, 0.0, 0),
    ],
)
def test_processes_feed_a_gpu_if_there_is_work_for_them(
    tmp_path, monkeypatch, setting, device, cores, local_size, sampling, expected
):
    monkeypatch.setattr("mt.training.updater.available_cores", lambda: cores)
    config = toy.config(tmp_path, training={"feed_processes": setting}, tokenizer={"sampling": sampling})
    assert feed_process_count(config, torch.device(device), local_size) == expected


def test_augmentation_is_work_for_processes(tmp_path):
    config = toy.config(tmp_path, training={"feed_processes": 2}, text={"augmentation": toy.CHANGED})
    assert feed_process_count(config, torch.device("cpu"), 1) == 2
