"""Tests of data parallelism by threads: gradients equal those of the whole batch and are reproducible."""

import pytest
import torch

from mt.config import TrainingConfig
from mt.data.batching.batch import collate
from mt.distributed.workers import Workers
from mt.training.objective import Objective
from mt.training.thread_parallel import ThreadParallel, part_count, split_by_length
from tests import toy


def _batch(sentences=13):
    lengths = torch.randint(1, 9, (sentences,), generator=torch.Generator().manual_seed(3)).tolist()
    sources = [list(range(4, 4 + length)) for length in lengths]
    return collate(sources, [source[1:] for source in sources])


def _gradients(objective, parts, batch, repetitions=1):
    objective.zero_grad()
    torch.manual_seed(5)
    parallel = ThreadParallel(objective, parts)
    losses = [parallel.add_gradients(batch, 0.5) for _ in range(repetitions)]
    return losses, [parameter.grad.clone() for parameter in objective.parameters() if parameter.requires_grad]


@pytest.mark.parametrize("parts", [2, 3, 20])
@pytest.mark.parametrize("architecture", ["transformer", "rnn"])
def test_thread_gradients_equal_batch_gradients(architecture, parts):
    objective = Objective(toy.model(architecture, dropout=0.0), TrainingConfig(label_smoothing=0.1)).train()
    next(objective.parameters()).requires_grad_(False)
    batch = _batch()
    losses, gradients = _gradients(objective, parts, batch, repetitions=2)
    loss = objective(batch)
    expected = torch.autograd.grad(loss, [p for p in objective.parameters() if p.requires_grad])
    assert [value.item() for value in losses] == pytest.approx([loss.item()] * 2, rel=1e-6)
    for ours, whole in zip(gradients, expected, strict=True):
        torch.testing.assert_close(ours, whole, rtol=1e-4, atol=1e-5)


def test_thread_dropout_is_reproducible():
    threads = torch.get_num_threads()
    objective = Objective(toy.model(dropout=0.3), TrainingConfig()).train()
    results = [_gradients(objective, 3, _batch(40)) for _ in range(4)]
    for losses, gradients in results[1:]:
        assert losses == results[0][0]
        assert all(map(torch.equal, gradients, results[0][1]))
    (first, second), _ = _gradients(objective, 3, _batch(40), repetitions=2)
    assert first != second
    assert torch.get_num_threads() == threads


def test_split_by_length_reduces_padding():
    batch = _batch(50)
    parts = split_by_length(batch, 4)
    assert sorted(torch.cat([part.ids for part in parts]).tolist()) == list(range(50))
    tokens = [part.source_tokens + part.target_tokens for part in parts]
    assert max(tokens) < 1.5 * min(tokens)
    assert sum(part.padded_tokens for part in parts) < batch.padded_tokens


@pytest.mark.parametrize(("threads", "parts"), [(1, 1), (2, 2), (3, 3), (6, 3), (7, 1), (8, 4)])
def test_part_count_divides_the_number_of_threads(threads, parts, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    objective = Objective(toy.model(), TrainingConfig())
    assert part_count(objective, Workers(torch.device("cpu")), torch.float32) == parts
    assert part_count(objective, Workers(torch.device("cpu")), torch.bfloat16) == 1


@pytest.mark.parametrize("settings", [{"objective": "simcut"}, {"compile": True}])
def test_part_count_is_one_for_simcut_and_compile(settings, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    objective = Objective(toy.model(), TrainingConfig(**settings))
    assert part_count(objective, Workers(torch.device("cpu")), torch.float32) == 1
