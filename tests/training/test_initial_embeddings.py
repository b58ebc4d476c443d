"""Tests of co-occurrence embeddings: counting, decomposition, and mixing with random vectors."""

from types import SimpleNamespace

import datasets
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from mt.models.embedding import TokenEmbedding
from mt.tokenizer.tokenizer import PAD, SPECIAL_TOKENS
from mt.training import initial_weights
from mt.training.initial_weights import (
    COUNTED_SHARE,
    co_occurrence_vectors,
    initialize_by_co_occurrence,
    occurrences,
)
from tests import toy
from tests.training.runs import ALONE

FIRST = len(SPECIAL_TOKENS)
"""The number of the first piece that a text can have."""
INTEGER = datasets.Value("int32")
FEATURES = datasets.Features(
    {f"{side}_ids": datasets.List(INTEGER) for side in ("source", "target")}
    | {f"{side}_length": INTEGER for side in ("source", "target")}
)


def _pairs(sources, targets):
    columns = {"source": sources, "target": targets}
    values = {f"{side}_ids": lines for side, lines in columns.items()}
    values |= {f"{side}_length": [len(line) for line in lines] for side, lines in columns.items()}
    return datasets.Dataset.from_dict(values, features=FEATURES)


def _sentences(words, count):
    """Sentences of a language in which few words are frequent and many are rare, as in others."""
    draw = np.random.default_rng(1)
    return [(draw.zipf(1.3, 8) % words + FIRST).tolist() for _ in range(count)]


def _found(pairs, first_target=0):
    return list(zip(*(part.tolist() for part in occurrences(pairs, first_target)), strict=True))


def _expected(pairs, first_target=0):
    return {
        (piece, number)
        for number, (source, target) in enumerate(pairs)
        for piece in [*source, *(piece + first_target for piece in target)]
    }


lines = st.lists(st.integers(0, 9), max_size=6)


@given(st.lists(st.tuples(lines, lines), min_size=1, max_size=8), st.sampled_from([0, 10]))
def test_occurrences_count_token_once_per_pair(pairs, first_target):
    found = _found(_pairs(*zip(*pairs, strict=True)), first_target)
    assert len(found) == len(set(found)) and set(found) == _expected(pairs, first_target)


def test_occurrences_of_large_selection():
    """It is read as several tables, and its rows are not those of the table that it selects from."""
    words = _sentences(30, 13_000)
    chosen = list(range(12_500, 100, -1))
    found = _found(_pairs(words, words[::-1]).select(chosen))
    assert set(found) == _expected([(words[row], words[::-1][row]) for row in chosen])


@pytest.mark.parametrize(("name", "most"), [("MAX_PAIRS", 3), ("MAX_TOKENS", 6)])
def test_occurrences_sample_evenly_spaced_pairs(monkeypatch, name, most):
    monkeypatch.setattr(initial_weights, name, most)
    assert _found(_pairs([[n] for n in range(9)], [[n] for n in range(9)])) == [(0, 0), (4, 1), (8, 2)]


@pytest.mark.parametrize("at_once", [7, 20_000])
@pytest.mark.parametrize("width", [12, 40])
def test_co_occurrence_vectors_equal_numpy_decomposition(width, at_once, monkeypatch):
    """Compared with NumPy's decomposition of the whole matrix. With a width of 40 there are fewer pieces than that."""
    monkeypatch.setattr(initial_weights, "PAIRS_AT_ONCE", at_once)
    sentences = [[piece - FIRST for piece in sentence] for sentence in _sentences(20, 400)]
    pieces, pairs = occurrences(_pairs(sentences, sentences[::-1]), 0)
    dense = np.zeros((20, 400))
    dense[pieces, pairs] = 1
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(dense @ dense.T)
    kept = slice(max(0, 19 - width), -1)
    expected = functional.normalize(torch.from_numpy(vectors[:, kept] * np.sqrt(values[kept])).float())
    found = co_occurrence_vectors(pieces, pairs, 20, width)
    assert found.shape == (20, width)
    assert torch.allclose(found @ found.t(), expected @ expected.t(), atol=1e-4)


def test_co_occurrence_vectors_are_zero_for_rare_or_ubiquitous_tokens():
    sources = [[4, 5, 7], *([[4, 6], [4, 6], [4, 5]] * 5)]  # 7 stands in one pair, 4 in all
    found = co_occurrence_vectors(*occurrences(_pairs(sources, [[4]] * 16), 0), 8, 16)
    known = found.norm(dim=1)
    assert known[5:7].tolist() == pytest.approx([1, 1]) and known[[0, 1, 2, 3, 7]].tolist() == [0] * 5
    alike = co_occurrence_vectors(*occurrences(_pairs([[4, 5]] * 5, [[6]] * 5), 0), 7, 16)
    assert not alike.any()  # there is nothing to tell these pieces apart by


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("architecture", ["transformer", "rnn"])
def test_initialize_by_co_occurrence_aligns_translations(architecture, tied, joint):
    words = 100
    sources = _sentences(words, 3000)
    between = words if joint else 0  # the target's words have numbers of their own, or those of another vocabulary
    pairs = _pairs(sources, [[word + between for word in reversed(source)] for source in sources])
    model = toy.model(architecture, FIRST + words + between + 1, joint, seed=1, width=128, tie_embeddings=tied)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    initialize_by_co_occurrence(model, pairs, joint, ALONE)
    tables = {
        f"{name}.weight": part.weight.detach()
        for name, part in model.named_modules()
        if isinstance(part, TokenEmbedding)
    }
    assert len(tables) == (1 if joint and tied else 2)
    source, target = (functional.normalize(table) for table in (list(tables.values())[0], list(tables.values())[-1]))
    own, other = slice(FIRST, FIRST + words), slice(FIRST + between, FIRST + between + words)
    nearest = (source[own] @ target[other].t()).argmax(dim=1)
    seen = torch.tensor([sum(word in line for line in sources) > 1 for word in range(FIRST, FIRST + words)])
    assert (nearest == torch.arange(words))[seen].float().mean() > 0.95
    for name, now in tables.items():
        old = before.pop(name)
        assert torch.equal(now[:FIRST], old[:FIRST]) and not now[PAD].any()
        assert torch.equal(now[-1], old[-1])  # no pair has this piece
        changed = (now != old).any(dim=1)
        assert float(now[changed].norm(dim=1).mean()) == pytest.approx(float(old[changed].norm(dim=1).mean()), rel=0.1)
        random = float(functional.cosine_similarity(now[changed], old[changed]).mean())
        assert random == pytest.approx((1 - COUNTED_SHARE**2) ** 0.5, abs=0.1)
    for name, parameter in model.named_parameters():
        assert name in tables or torch.equal(parameter, before[name])


def test_initialize_by_co_occurrence_is_equal_on_all_workers():
    pairs = _pairs(_sentences(30, 200), _sentences(30, 200))
    models = []
    answer: list = []
    for rank in (0, 1):
        models.append(toy.model(vocabulary=40))

        def run_on_main(make, rank=rank):
            if rank == 0:
                answer.append(make())
            return answer[0]

        alone = SimpleNamespace(run_on_main=run_on_main)
        initialize_by_co_occurrence(models[-1], pairs if rank == 0 else None, True, alone)
    for ours, theirs in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(ours, theirs)
