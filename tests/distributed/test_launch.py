"""``workers`` means as many workers as the machine can take."""

import pytest
import torch

from mt.config import TrainingConfig, TranslateConfig
from mt.core.errors import InputError
from mt.distributed.launch import worker_count
from mt.training.command import workers_on_cpu


def _count(workers, device, section=""):
    return worker_count(TrainingConfig(workers=workers), torch.device(device), 1, section)


def test_more_workers_than_devices_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert _count("auto", "cuda") == 2
    assert _count("auto", "cuda:1") == 1
    for device in ("cuda", "cuda:1", "mps"):
        with pytest.raises(InputError, match=f"^training.workers=3, but training.device={device} means .* training.w"):
            _count(3, device, "training.")
        with pytest.raises(InputError, match="^workers=3, .*: set workers=auto"):
            _count(3, device)


def test_many_more_workers_than_cores_are_refused(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert _count(8, "cpu") == 8
    with pytest.raises(InputError, match="has 2 CPU cores, which at most 8 workers may share"):
        _count(9, "cpu")


@pytest.mark.parametrize(
    ("threads", "batch_tokens", "expected"), [(0, 2048, 2), (0, 100_000, 16), (4, 100_000, 4), (0, 500, 1)]
)
def test_training_takes_every_core_that_a_batch_keeps_busy(monkeypatch, threads, batch_tokens, expected):
    monkeypatch.setattr("mt.training.command.cpu_threads", lambda: 16)
    settings = TrainingConfig(workers="auto", threads=threads, batch_tokens=batch_tokens)
    assert worker_count(settings, torch.device("cpu"), workers_on_cpu(settings)) == expected


def test_translating_takes_one_process_on_a_cpu():
    assert worker_count(TranslateConfig(run="runs/demo", workers="auto"), torch.device("cpu"), 1) == 1
