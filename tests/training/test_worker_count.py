"""``training.workers`` means as many workers as the machine can take."""

import pytest
import torch

from mt.config import TrainingConfig
from mt.core.errors import InputError
from mt.training.worker_count import worker_count


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
