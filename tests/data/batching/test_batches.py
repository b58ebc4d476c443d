"""Batches of an epoch: their pairs, sizes and order, for one worker and for several."""

import contextlib
import dataclasses
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import datasets
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.config import AugmentationConfig, TokenizerConfig
from mt.core.errors import RunError
from mt.data.batching.batch import PackedBatch, collate
from mt.data.batching.batches import BatchSettings, TrainingBatches, encoded_lengths, evaluation_batches
from mt.data.batching.plan import draw_repetitions, plan_epoch, replan, sort_by_length
from mt.data.samples import corpus_statistics
from mt.distributed.workers import Workers, interleave
from mt.text.placeholders import all_placeholders
from mt.tokenizer.tokenizer import BOS, EOS, PAD, TokenizerPair
from mt.tokenizer.training import train_tokenizer
from mt.training.preparation import drop_long_pairs, encode_pairs
from mt.training.updater import prefetch_updates
from tests import toy
from tests.processes import pool_processes
from tests.training.runs import ALONE

UNCHANGED = AugmentationConfig.model_validate(toy.UNCHANGED)
CHANGED = AugmentationConfig.model_validate(toy.CHANGED)
PLANNED_OR_CHANGED = pytest.mark.parametrize(("sampling", "augmentation"), [(0.0, UNCHANGED), (0.3, CHANGED)])

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=200)


def plan(lengths, weight=1.0, **changes):
    sides = np.array(lengths, dtype=np.int32).T
    arguments = {"seed": 1, "epoch": 0, "batch_tokens": 60} | changes
    return plan_epoch(sides, np.full(len(lengths), weight, dtype=np.float32), **arguments).batches


@given(lengths=LENGTHS, seed=st.integers(0, 5), epoch=st.integers(0, 5), batch_tokens=st.integers(1, 300))
def test_plan_epoch_covers_rows_within_batch_tokens(lengths, seed, epoch, batch_tokens):
    batches = plan(lengths, seed=seed, epoch=epoch, batch_tokens=batch_tokens)
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    for rows in batches:
        longest = max(max(lengths[row]) for row in rows)
        assert len(rows) == 1 or len(rows) * longest <= batch_tokens


def test_plan_epoch_differs_by_epoch_and_seed():
    lengths = [(5 + number % 7, 5 + number % 5) for number in range(500)]
    plans = [plan(lengths, seed=seed, epoch=epoch) for seed, epoch in [(1, 0), (1, 1), (2, 0)]]
    compositions = [{tuple(sorted(rows)) for rows in batches} for batches in plans]
    assert not compositions[0] & compositions[1]
    assert not compositions[0] & compositions[2]
    longest = [[max(max(lengths[row]) for row in rows) for rows in batches] for batches in plans]
    assert all(order not in (sorted(order), sorted(order)[::-1]) for order in longest)


def test_plan_epoch_leaves_little_padding():
    draw = np.random.default_rng(1)
    # The lengths of image captions.
    source = np.clip(draw.gamma(9, 1.7, 29_000), 4, 50).astype(int)
    target = np.clip(source * draw.normal(1.04, 0.17, 29_000), 4, 60).astype(int)
    batches = plan([*zip(source, target, strict=True)], batch_tokens=1500)
    for lengths in (source, target):
        assert lengths.sum() / sum(len(rows) * lengths[rows].max() for rows in batches) >= 0.95


def test_collate_pads_and_adds_bos_and_eos():
    batch = collate([[10, 11], [12]], [[13], [14, 15, 16]])
    assert batch.ids.tolist() == [0, 1]
    assert batch.source.tolist() == [[10, 11, EOS], [12, EOS, PAD]]
    assert batch.target_input.tolist() == [[BOS, 13, EOS, PAD], [BOS, 14, 15, 16]]
    assert batch.target_output.tolist() == [[13, EOS, PAD, PAD], [14, 15, 16, EOS]]
    assert (batch.source_tokens, batch.target_tokens) == (5, 6)
    assert {tensor.dtype for tensor in (batch.ids, batch.source, batch.target)} == {torch.int64}
    assert collate([[]], [[]]).target.tolist() == [[BOS, EOS]]


WORDS = ["kala", "mino", "tusa", "rebo", "lidu", "pona", "sitelen", "wawa", "jan", "soweli", "moku", "telo"]


@pytest.fixture(scope="module")
def tokenizers():
    tokenizer = train_tokenizer(
        [f"{first} {second}" for first in WORDS for second in WORDS],
        ("xx",),
        TokenizerConfig(vocabulary_size=318),
        placeholders=all_placeholders(toy.SLOTS),
    )
    return TokenizerPair(tokenizer, tokenizer)


@pytest.fixture(scope="module")
def layer(tokenizers):
    return toy.layer(tokenizers)


@pytest.fixture(scope="module")
def pairs(layer):
    draw = np.random.default_rng(1)
    sides = {
        side: [f"{number} " + " ".join(draw.choice(WORDS, draw.integers(1, 9))) for number in range(300)]
        for side in ("source", "target")
    }
    whole = datasets.Dataset.from_dict(sides | {"id": range(1000, 1300), "weight": [1.0] * 300})
    return encode_pairs(whole.select([*range(50), *range(90, 300)]), layer)


def training_batches(
    pairs,
    layer,
    augmentation=UNCHANGED,
    sampling=0.0,
    seed=1,
    batch_tokens=200,
    workers=ALONE,
    packed=False,
):
    return TrainingBatches(pairs, [layer], BatchSettings(augmentation, sampling, seed, batch_tokens, packed), workers)


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_batch_ids_identify_pairs(pairs, layer, tokenizers, sampling):
    texts = {pair["id"]: layer.prepare_pair(pair["source"], pair["target"]) for pair in pairs}
    seen = []
    for batch in training_batches(pairs, layer, UNCHANGED, sampling).epoch(0):
        sources = tokenizers.source.decode(batch.source.tolist())
        targets = tokenizers.target.decode(batch.target.tolist())
        for number, source, target in zip(batch.ids.tolist(), sources, targets, strict=True):
            assert (source, target) == texts[number]
        assert batch.source_tokens == int((batch.source != PAD).sum())
        assert batch.target_tokens == int((batch.target_output != PAD).sum())
        seen += batch.ids.tolist()
    assert sorted(seen) == sorted(texts)


class ThreadWorker(Workers):
    """A worker that is a thread of this process."""

    def __init__(self, rank, barrier, gathered):
        super().__init__(torch.device("cpu"))
        self.rank, self.size = rank, barrier.parties
        self._barrier, self._gathered = barrier, gathered

    def gather_objects(self, own):
        self._barrier.wait()
        self._gathered[self.rank] = own
        self._barrier.wait()
        return list(self._gathered)

    def run_on_main(self, make):
        return make()


def shares_of_workers(count, make):
    """Return the result of ``make`` for each of several workers, which run in threads."""
    barrier, gathered = threading.Barrier(count, timeout=60), [None] * count
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda rank: make(ThreadWorker(rank, barrier, gathered)), range(count)))


def rows_of(batches):
    return [
        [batch.pairs["id"].to_pylist(), batch.rows.tolist()]
        if isinstance(batch, PackedBatch)
        else [batch.ids.tolist(), batch.source.tolist(), batch.target.tolist()]
        for batch in batches
    ]


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr("mt.data.batching.batches.MAX_WINDOW_BATCHES", 5)


@PLANNED_OR_CHANGED
@pytest.mark.parametrize("packed", [False, True])
def test_epoch_starts_at_any_batch(pairs, layer, small_windows, sampling, augmentation, packed):
    make = partial(training_batches, pairs, layer, augmentation, sampling, batch_tokens=300, packed=packed)
    whole, after = (rows_of(make().epoch(number)) for number in (4, 5))
    batches = make()
    assert len(whole) == batches.batches_in_epoch(4) > 8
    for start in (0, 4, 5, 8, len(whole)):
        assert rows_of(batches.epoch(4, start)) == whole[start:]
        assert rows_of(batches.epoch(5)) == after
    with contextlib.closing(batches.epoch(4)) as unfinished:
        next(unfinished)
    assert rows_of(batches.epoch(4, 5)) == whole[5:]


@PLANNED_OR_CHANGED
def test_batches_of_window_are_not_ordered_by_length(pairs, layer, small_windows, sampling, augmentation):
    batches = training_batches(pairs, layer, augmentation, sampling, batch_tokens=300)
    widths = [batch.target.shape[1] for batch in batches.epoch(4)]
    assert sum(wider > width for width, wider in pairwise(widths)) < 0.7 * len(widths)


@PLANNED_OR_CHANGED
def test_packed_epoch_covers_pairs(pairs, layer, small_windows, sampling, augmentation):
    batches = training_batches(pairs, layer, augmentation, sampling, batch_tokens=300, packed=True)
    epoch = list(batches.epoch(4))
    ids = [number for batch in epoch for number in batch.pairs["id"].to_pylist()]
    assert len(ids) == len(set(ids)) and (augmentation.joined or len(ids) == len(pairs))
    assert any(batch.shape == batches.packed_shape for batch in epoch)  # few tokens, and sides of unrelated lengths
    mean = sum(batch.target_tokens for batch in epoch) / len(epoch)
    assert batches.packed_shape and 0.75 < mean / batches.packed_shape.target <= 1


@PLANNED_OR_CHANGED
def test_workers_share_packed_batches(pairs, layer, small_windows, sampling, augmentation):
    make = partial(training_batches, pairs, layer, augmentation, sampling, batch_tokens=300, packed=True)
    shares = shares_of_workers(2, lambda worker: list(make(workers=worker).epoch(4)))
    for batch, *parts in zip(make().epoch(4), *shares, strict=True):
        together = [part.to_padded(10_000)[0] for part in parts]
        assert sorted(batch.pairs["id"].to_pylist()) == sorted(sum((part.ids.tolist() for part in together), []))
        assert batch.target_tokens == sum(part.target_tokens for part in together)


def test_packed_shape_without_batches_in_first_epoch(pairs, layer):
    rare = pairs.remove_columns("weight").add_column("weight", [1e-9] * len(pairs))
    batches = training_batches(rare, layer, batch_tokens=300, packed=True)
    assert batches.batches_in_epoch(0) == 0 and batches.packed_shape
    lengths = encoded_lengths(pairs)
    assert batches.packed_shape.enlarged_for(lengths[:, [lengths.max(axis=0).argmax()]]) == batches.packed_shape


def test_subword_sampling_keeps_padding_and_batch_size(pairs, layer):
    layer = toy.layer(layer.tokenizers, enabled=False)
    texts = pairs.select_columns(["id", "source", "target", "weight"])
    many = datasets.concatenate_datasets([encode_pairs(texts, layer)] * 10)
    plain = list(training_batches(many, layer, batch_tokens=1000).epoch(0))
    for sampling in (0.1, 0.3):
        batches = list(training_batches(many, layer, UNCHANGED, sampling, batch_tokens=1000).epoch(0))
        assert len(batches) == len(plain)
        longer = sum(batch.target_tokens for batch in batches) / sum(batch.target_tokens for batch in plain)
        assert max(batch.target_output.numel() for batch in batches) < 1.1 * longer * 1000
        for side in ("target_output", "source"):
            padded = [getattr(batch, side) == PAD for batch in batches]
            assert torch.cat([part.flatten() for part in padded]).float().mean() < 0.1


@pytest.mark.parametrize("count", [1, 2, 5, 9])
@pytest.mark.parametrize("lengths", [[3] * 9, [1] * 8 + [50], [2, 3, 5, 8, 13, 21, 34, 55, 89]], ids=str)
def test_replan_returns_planned_number_of_batches(lengths, count):
    batches = replan(np.array([lengths, lengths]), count, np.random.default_rng(1))
    assert len(batches) == count and all(map(len, batches))
    assert sorted(np.concatenate(batches)) == list(range(9))


def test_replan_isolates_long_sample():
    lengths = np.array([4] * 300 + [300])
    assert sorted(map(len, replan(np.array([lengths, lengths]), 11, np.random.default_rng(1)))) == [1] + [30] * 10


@PLANNED_OR_CHANGED
def test_workers_share_batches_of_single_worker(pairs, layer, small_windows, sampling, augmentation):
    def batches_of(worker):
        batches = training_batches(pairs, layer, augmentation, sampling, batch_tokens=100, workers=worker)
        return [*batches.epoch(0, 7), *batches.epoch(1)]

    def sentences(batch):
        return [[token for token in row if token != PAD] for row in batch.target.tolist()] if len(batch.ids) else []

    for whole, *parts in zip(batches_of(ALONE), *shares_of_workers(3, batches_of), strict=True):
        assert interleave([part.ids.tolist() for part in parts]) == whole.ids.tolist()
        assert interleave([sentences(part) for part in parts]) == sentences(whole)


@PLANNED_OR_CHANGED
def test_processes_make_same_batches(pairs, layer, small_windows, sampling, augmentation):
    settings = BatchSettings(augmentation, sampling, seed=1, batch_tokens=100)
    alone = training_batches(pairs, layer, augmentation, sampling, batch_tokens=100)
    before = pool_processes()
    batches = TrainingBatches(pairs, [layer], dataclasses.replace(settings, processes=2), ALONE)
    with contextlib.closing(batches):
        assert rows_of(batches.epoch(0, 7)) == rows_of(alone.epoch(0, 7))
        started = pool_processes() - before
        assert bool(started) is not batches._make_samples.is_identity
        assert rows_of(batches.epoch(1)) == rows_of(alone.epoch(1))
    assert not started & pool_processes()


def test_feed_reports_killed_process(pairs, layer, small_windows):
    before = pool_processes()
    batches = TrainingBatches(pairs, [layer], BatchSettings(CHANGED, 0.3, 1, 100, processes=2), ALONE)
    updates = prefetch_updates(batches, 0, 0, 1, ALONE)
    next(updates)
    for process in pool_processes() - before:
        process.kill()
    with pytest.raises(RunError, match=r"a process that prepared the data has ended; .* out of memory"):
        list(updates)
    assert pool_processes() <= before


def test_samples_are_not_longer_than_longest_sentence(pairs, layer):
    batches = training_batches(pairs, layer, UNCHANGED, 0.9, batch_tokens=500)
    longest = max(pairs["source_length"]) + 1, max(pairs["target_length"]) + 1
    widths = [(batch.source.shape[1], batch.target_output.shape[1]) for batch in batches.epoch(0)]
    assert tuple(np.max(widths, axis=0)) <= longest
    plain = training_batches(pairs, layer, batch_tokens=500)
    assert sum(batch.source_tokens for batch in batches.epoch(0)) > sum(batch.source_tokens for batch in plain.epoch(0))


def tokens_of(batches):
    """Return the tokens of both sides of each pair, without padding."""
    return {
        number: ([token for token in source if token != PAD], [token for token in target if token != PAD])
        for batch in batches
        for number, source, target in zip(batch.ids.tolist(), batch.source.tolist(), batch.target.tolist(), strict=True)
    }


def with_a_long_pair(pairs, layer):
    """Add a pair of 60 words, so that no changed pair is longer than the longest sentence."""
    long = {"id": [1], "source": ["kala mino" + " kala mino" * 30], "target": ["moku" + " telo" * 60], "weight": [1.0]}
    texts = pairs.select_columns(list(long))
    return encode_pairs(datasets.concatenate_datasets([texts, datasets.Dataset.from_dict(long)]), layer)


def test_lexicon_is_learned_from_all_parts_of_corpus(monkeypatch):
    """The lexicon of a sorted corpus has words of its second half, although only a part of the corpus is counted."""
    monkeypatch.setattr("mt.text.lexicon.MAX_COUNTED_PAIRS", 4500)
    rows = [("kala", "moku"), *[("telo", "mino")] * 99] * 50 + [("pona", "sewi"), *[("ali", "wan")] * 99] * 50
    sides = {side: [pair[number] for pair in rows] for number, side in enumerate(("source", "target"))}
    sorted_corpus = datasets.Dataset.from_dict(sides)
    lexicon = corpus_statistics(sorted_corpus, ["xx"], np.zeros(len(rows), int), needs_lexicon=True).lexicons[0]
    assert lexicon.matching_pairs("kala pona", "moku sewi") == [("kala", "moku"), ("pona", "sewi")]


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_joined_pairs_become_one_pair(pairs, layer, sampling):
    pairs = with_a_long_pair(pairs, layer)
    joining = UNCHANGED.model_copy(update={"joined": 0.5})
    plain = tokens_of(list(training_batches(pairs, layer, batch_tokens=400).epoch(3)))
    batches = training_batches(pairs, layer, joining, sampling, 1, 400)
    joint = tokens_of(list(batches.epoch(3)))
    joined = {pairs["id"][first]: [pairs["id"][row] for row in rows] for first, rows in batches._plan(3).joined.items()}
    assert 0.4 < sum(len(others) + 1 for others in joined.values()) / len(plain) <= 0.5
    assert {len(others) for others in joined.values()} == {1, 2}
    assert sorted([*joint, *(other for others in joined.values() for other in others)]) == sorted(plain)
    if not sampling:
        texts = {pair["id"]: (pair["source"], pair["target"]) for pair in pairs}
        for first, (source, target) in joint.items():
            group = [first, *joined.get(first, ())]
            expected = layer.prepare_pair(*(" ".join(texts[number][side] for number in group) for side in range(2)))
            assert layer.tokenizers.source.decode([source])[0] == expected[0]
            assert layer.tokenizers.target.decode([target])[0] == expected[1]


def test_pairs_with_target_tags_are_not_joined(pairs, layer):
    rules = layer.config.model_copy(update={"tags": ("<2fr>",)})
    joining = UNCHANGED.model_copy(update={"joined": 0.5})
    assert not training_batches(pairs, dataclasses.replace(layer, config=rules), joining)._plan(3).joined


def test_plan_epoch_joins_only_unrepeated_rows():
    lengths = np.full(100, 5)
    lengths[0] = 50
    weights = np.where(np.arange(100) < 50, 2.0, 1.0)
    planned = plan_epoch(np.stack([lengths, lengths]), weights, 1, 0, 200, joined=0.9)
    assert planned.joined and all(row >= 50 for first, others in planned.joined.items() for row in (first, *others))
    times = np.bincount(np.concatenate(planned.batches), minlength=100)
    others = [row for rows in planned.joined.values() for row in rows]
    assert times.tolist() == [2] * 50 + [row not in others for row in range(50, 100)]


def test_evaluation_batches_cover_pairs_longest_first(pairs, layer):
    batches = list(evaluation_batches(pairs, batch_tokens=300))
    assert sorted(number for batch in batches for number in batch.ids.tolist()) == sorted(pairs["id"])
    widths = [max(batch.source.shape[1], batch.target_output.shape[1]) for batch in batches]
    assert widths == sorted(widths, reverse=True)
    assert all(max(batch.source.numel(), batch.target_output.numel()) <= 300 for batch in batches)


def test_drop_long_judges_both_sides(pairs):
    kept = drop_long_pairs(pairs, 20)["id"][:]
    assert 0 < len(kept) < len(pairs)
    assert kept == [pair["id"] for pair in pairs if max(pair["source_length"], pair["target_length"]) <= 20]
    assert drop_long_pairs(pairs, 1000) is pairs
    assert len(drop_long_pairs(pairs, 1)) == 0


def test_repeated_twice_appends_all_pairs_again():
    sources, targets = [[5, 6, 7], [8]], [[9], [10, 11]]
    twice = vars(collate(sources, targets).repeated_twice())
    expected = vars(collate(2 * sources, 2 * targets)) | {"ids": [0, 1, 0, 1]}
    for name, value in expected.items():
        assert torch.equal(torch.as_tensor(twice[name]), torch.as_tensor(value)), name


@given(
    lengths=st.sampled_from([3, 40, 200, 100_000]).flatmap(
        lambda most: st.lists(st.tuples(st.integers(1, most), st.integers(1, most)), max_size=60)
    ),
    kind=st.sampled_from([np.int32, np.int64]),
)
def test_sort_by_length_orders_both_sides(lengths, kind):
    source, target = np.array(lengths, dtype=kind).reshape(-1, 2).T
    longest = np.maximum(source, target)
    expected = np.lexsort((np.where(longest % 2, target - source, source - target), longest))
    rows, sorted_lengths = sort_by_length(np.stack([source, target]))
    assert rows.tolist() == expected.tolist()
    assert sorted_lengths.tolist() == longest[expected].tolist()


def test_plan_epoch_memory_per_pair():
    draw = np.random.default_rng(1)
    count = 200_000
    lengths = draw.integers(3, 120, (2, count), dtype=np.int32)
    tracemalloc.start()
    plan = plan_epoch(lengths, np.ones(count, dtype=np.float32), 1, 0, 4096)
    now, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(map(len, plan.batches)) == count
    assert now < 10 * count
    assert most < 40 * count


@given(weights=st.lists(st.floats(0, 4, width=32), min_size=1, max_size=50), at_once=st.integers(1, 60))
def test_draw_repetitions_is_independent_of_chunk_size(weights, at_once):
    values = np.array(weights, dtype=np.float32)
    whole = np.floor(values).astype(np.int64)
    expected = whole + (np.random.default_rng(3).random(len(values)) < values - whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mt.data.batching.plan.MAX_DRAWS", at_once)
        assert draw_repetitions(values, np.random.default_rng(3)).tolist() == expected.tolist()


@given(lengths=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=2, max_size=60))
def test_joined_pairs_are_at_most_longest_pair(lengths):
    sides = np.array(lengths, dtype=np.int32).T
    for first, others in plan_epoch(sides, np.ones(len(lengths)), 1, 0, 60, joined=0.9).joined.items():
        assert others
        assert (sides[:, [first, *others]].sum(axis=1) - len(others) <= sides.max(axis=1)).all()  # one EOS, not several
