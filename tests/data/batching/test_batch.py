"""Packed batches: pairs, rows and sizes."""

import numpy as np
import pyarrow
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.data.batching.batch import PackedShape, divide_evenly, pack
from mt.data.samples import SAMPLES
from mt.tokenizer.tokenizer import BOS, EOS, PAD

TOKENS = st.lists(st.integers(4, 99), max_size=25)
PAIRS = st.lists(st.tuples(TOKENS, TOKENS), max_size=14)


def table(pairs):
    ids = [100 + 3 * number for number in range(len(pairs))]
    return pyarrow.table([ids, [s for s, _ in pairs], [t for _, t in pairs]], schema=SAMPLES)


@given(PAIRS, st.integers(16, 400), st.integers(16, 400), st.integers(4, 40), st.integers(1, 40))
def test_pack_places_every_sentence_once(pairs, source, target, sentences, longest):
    batch = pack(table(pairs), PackedShape(source, target, sentences, longest))
    sources, targets, labels = batch.unpack()
    for side, row, expected in (
        (sources, sources.tokens, [[*tokens, EOS] for tokens, _ in pairs]),
        (targets, targets.tokens, [[BOS, *tokens] for _, tokens in pairs]),
        (targets, labels, [[*tokens, EOS] for _, tokens in pairs]),
    ):
        offsets = side.offsets.tolist()
        assert offsets[0] == 0 and offsets[-1] == len(row)
        sentences = torch.split(row, np.diff(offsets).tolist())
        assert [tokens.tolist() for tokens in sentences[: len(pairs)]] == expected
        assert all((tokens == PAD).all() and len(tokens) <= side.longest for tokens in sentences[len(pairs) :])
        positions = torch.split(side.positions, np.diff(offsets).tolist())[: len(pairs)]
        assert [part.tolist() for part in positions] == [list(range(len(tokens))) for tokens in expected]
    assert batch.source_tokens == sum(len(tokens) + 1 for tokens, _ in pairs)
    assert batch.target_tokens == sum(len(tokens) + 1 for _, tokens in pairs)
    assert batch.shape.sizes == [len(part) for part in batch.rows.split(batch.shape.sizes)]


@given(PAIRS, st.integers(10, 100))
def test_packed_batch_to_padded_keeps_pairs(pairs, batch_tokens):
    batch = pack(table(pairs), PackedShape(300, 300, 30, 26))
    padded = batch.to_padded(batch_tokens)
    assert sum(part.target_tokens for part in padded) == batch.target_tokens
    by_id = {}
    for part in padded:
        assert len(part.ids) <= 1 or part.source.numel() <= batch_tokens
        for number, source, target in zip(part.ids.tolist(), part.source, part.target, strict=False):
            by_id[number] = source[source != PAD].tolist(), target[target != PAD].tolist()
    ids = table(pairs)["id"].to_pylist()
    assert by_id == {number: ([*s, EOS], [BOS, *t, EOS]) for number, (s, t) in zip(ids, pairs, strict=True)}


@given(st.integers(1, 60), st.integers(1, 8), st.integers(0, 99))
def test_divide_evenly_balances_tokens(count, batches, seed):
    random = np.random.default_rng(seed)
    source = random.integers(1, 30, count + batches)
    lengths = np.stack([source, np.rint(source * random.uniform(0.8, 1.2, len(source))).astype(int).clip(1)])
    divided = divide_evenly(lengths, batches, random)
    assert sorted(np.concatenate(divided).tolist()) == list(range(count + batches))
    assert all(len(batch) for batch in divided)
    sums = np.array([lengths[:, batch].sum(axis=1) for batch in divided])
    assert (np.ptp(sums, axis=0) <= 1.5 * lengths.max()).all()


@pytest.mark.parametrize(("tokens", "max_padding"), [(1024, 0.03), (12_500, 0.01)])
def test_packed_shape_leaves_little_padding(tokens, max_padding):
    random = np.random.default_rng(0)  # sentences as long as news
    source = np.clip(random.lognormal(3.1, 0.55, tokens * 64 // 24).astype(int), 2, 120)
    target = np.clip((source * random.uniform(0.85, 1.15, len(source))).astype(int), 2, 120)
    lengths = np.stack([source, target])
    count = -(-int(lengths.sum(axis=1).max()) // tokens)
    shape = PackedShape.from_means(lengths.sum(axis=1) / count, len(source) / count, 120)
    batches = divide_evenly(lengths, count, random)
    assert all(shape.enlarged_for(lengths[:, batch]) == shape for batch in batches)
    unused = 1 - lengths.sum(axis=1) / count / np.array([shape.source, shape.target])
    assert (unused > 0).all() and (unused < max_padding).all()
