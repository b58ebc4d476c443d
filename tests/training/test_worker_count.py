"""``training.workers`` means as many workers as the machine can take."""

import pytest
import torch

from mt.config import TrainingConfig
from mt.core.errors import InputError
from mt.training.worker_count import feed_process_count, worker_count
from tests import toy


def test_more_workers_than_devices_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert worker_count(TrainingConfig(workers="auto"), torch.device("cuda")) == 2
    assert worker_count(TrainingConfig(workers="auto"), torch.device("cuda:1")) == 1
    for device in ("cuda", "cuda:1", "mps"):
        with pytest.raises(InputError, match="set training.workers=auto"):
            worker_count(TrainingConfig(workers=3), torch.device(device))


def test_many_more_workers_than_cores_are_refused(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert worker_count(TrainingConfig(workers=8), torch.device("cpu")) == 8
    with pytest.raises(InputError, match="has 2 CPU cores, which at most 8 workers may share"):
        worker_count(TrainingConfig(workers=9), torch.device("cpu"))


@pytest.mark.parametrize(
    ("workers", "threads", "batch_tokens", "expected"),
    [("auto", 0, 2048, 2), ("auto", 0, 100_000, 16), ("auto", 4, 100_000, 4), ("auto", 0, 500, 1), (3, 0, 500, 3)],
)
def test_auto_takes_every_core_that_a_batch_keeps_busy(monkeypatch, workers, threads, batch_tokens, expected):
    monkeypatch.setattr("mt.training.worker_count.cpu_threads", lambda: 16)
    settings = TrainingConfig(workers=workers, threads=threads, batch_tokens=batch_tokens)
    assert worker_count(settings, torch.device("cpu")) == expected


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
    monkeypatch.setattr("mt.training.worker_count.available_cores", lambda: cores)
    config = toy.config(tmp_path, training={"feed_processes": setting}, tokenizer={"sampling": sampling})
    assert feed_process_count(config, torch.device(device), local_size) == expected


def test_augmentation_is_work_for_processes(tmp_path):
    config = toy.config(tmp_path, training={"feed_processes": 2}, text={"augmentation": toy.CHANGED})
    assert feed_process_count(config, torch.device("cpu"), 1) == 2
