"""Embeddings to begin with: counted from the pairs, and mixed into random ones."""

from types import SimpleNamespace

import datasets
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from mt.model.build import build_of_sizes
from mt.model.embedding import TokenEmbedding
from mt.text.tokenizer import PAD
from mt.training import initial_embeddings
from mt.training.initial_embeddings import SHARE, begin_with_co_occurrence, occurrences, piece_vectors
from mt.training.workers import Workers
from tests import toy

ALONE = Workers(torch.device("cpu"))
LISTS = datasets.Features({f"{side}_ids": datasets.List(datasets.Value("int32")) for side in ("source", "target")})


def _pairs(sources, targets):
    return datasets.Dataset.from_dict({"source_ids": sources, "target_ids": targets}, features=LISTS)


def _sentences(words, count):
    """Sentences of a language whose words are as frequent as those of others."""
    draw = np.random.default_rng(1)
    return [(draw.zipf(1.3, 8) % words).tolist() for _ in range(count)]


lines = st.lists(st.integers(0, 9), max_size=6)


@given(st.lists(st.tuples(lines, lines), min_size=1, max_size=8), st.sampled_from([0, 10]))
def test_each_piece_of_a_pair_is_counted_once(pairs, first_target):
    found = list(
        zip(*(part.tolist() for part in occurrences(_pairs(*zip(*pairs, strict=True)), first_target)), strict=True)
    )
    expected = {
        (piece, number)
        for number, (source, target) in enumerate(pairs)
        for piece in [*source, *(piece + first_target for piece in target)]
    }
    assert len(found) == len(set(found)) and set(found) == expected


def test_of_many_pairs_some_are_counted_at_even_distances(monkeypatch):
    monkeypatch.setattr(initial_embeddings, "MOST_PAIRS", 3)
    pieces, pairs = occurrences(_pairs([[n] for n in range(9)], [[] for _ in range(9)]), 0)
    assert (pieces.tolist(), pairs.tolist()) == ([0, 4, 8], [0, 1, 2])


@pytest.mark.parametrize("width", [12, 40])
def test_vectors_are_the_eigenvectors_of_the_cosines_but_the_first(width):
    """Compared with NumPy's decomposition of the whole matrix. With a width of 40 there are fewer pieces than that."""
    sentences = _sentences(20, 400)
    pieces, pairs = occurrences(_pairs(sentences, sentences[::-1]), 0)
    dense = np.zeros((20, 400))
    dense[pieces, pairs] = 1
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(dense @ dense.T)
    kept = slice(max(0, 19 - width), -1)
    expected = functional.normalize(torch.from_numpy(vectors[:, kept] * np.sqrt(values[kept])).float())
    found, counts = piece_vectors(pieces, pairs, 20, width)
    assert found.shape == (20, width) and counts.tolist() == np.count_nonzero(dense, axis=1).tolist()
    assert torch.allclose(found @ found.t(), expected @ expected.t(), atol=1e-4)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("architecture", ["transformer", "rnn"])
def test_words_that_translate_each_other_begin_side_by_side(architecture, joint):
    words = 100
    sources = _sentences(words, 3000)
    first = words if joint else 0  # the target's words have numbers of their own, or those of another vocabulary
    pairs = _pairs(sources, [[word + first for word in reversed(source)] for source in sources])
    config = toy.config(toy.Path(), architecture=architecture, model={"width": 128}).model
    size = words + first + 1
    torch.manual_seed(1)
    model = build_of_sizes(config, size, size, joint)
    before = [part.weight.detach().clone() for part in model.modules() if isinstance(part, TokenEmbedding)]
    begin_with_co_occurrence(model, pairs, joint, ALONE)
    after = [part.weight.detach() for part in model.modules() if isinstance(part, TokenEmbedding)]
    assert len(after) == (1 if joint else 2)
    unit = [functional.normalize(table) for table in after]
    nearest = (unit[0][:words] @ unit[-1][first : first + words].t()).argmax(dim=1)
    seen = torch.tensor([sum(word in source for source in sources) > 1 for word in range(words)])
    seen[PAD] = False
    assert (nearest == torch.arange(words))[seen].float().mean() > 0.95
    for old, new in zip(before, after, strict=True):
        assert torch.equal(new[-1], old[-1])  # no pair has this piece
        assert float(new.norm(dim=1)[1:-1].mean()) == pytest.approx(float(old.norm(dim=1)[1:-1].mean()), rel=0.1)
        random = float(functional.cosine_similarity(new, old)[1:-1].mean())
        assert random == pytest.approx((1 - SHARE**2) ** 0.5, abs=0.1)


def test_a_worker_that_does_not_count_begins_with_the_same():
    pairs = _pairs(_sentences(30, 200), _sentences(30, 200))
    models = []
    answer: list = []
    for rank in (0, 1):
        torch.manual_seed(1)
        models.append(build_of_sizes(toy.config(toy.Path()).model, 31, 31, True))

        def from_leader(make, rank=rank):
            if rank == 0:
                answer.append(make())
            return answer[0]

        begin_with_co_occurrence(
            models[-1], pairs if rank == 0 else None, True, SimpleNamespace(from_leader=from_leader)
        )
    for ours, theirs in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(ours, theirs)
