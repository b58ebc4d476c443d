"""IBM model 1 compared with plain Python, and the threshold of its scores in simulated corpora."""

import math
from collections import Counter

import numpy as np
import pytest

from mt.data.cleaning import translations
from mt.data.cleaning.translations import (
    EM_ITERATIONS,
    SMOOTHING,
    UNALIGNED,
    IBMModel1,
    classify_translations,
    truncated_words,
)

PAIRS = [
    ("red house", "rotes haus"), ("red boat", "rotes boot"), ("old house", "altes haus"), ("old boat", "altes boot"),
    ("the house", "das haus"), ("the red boat", "das rote boot"), ("red", "haus"), ("once", "einst"),
]  # fmt: skip


def _stems(texts):
    words = [[word[:5] for word in text.split()] for text in texts]
    times = Counter(word for text in words for word in text)
    return [[word for word in text if times[word] > 1] for text in words]


def _scores_by_hand(given, predicted):
    """Return the scores of one direction, without the contribution of each pair to its own counts."""
    times = Counter(word for text in predicted for word in text)
    alone = {word: count / times.total() for word, count in times.items()}
    texts = list(zip(given, predicted, strict=True))
    probable = {(f, e): 1 / len(times) for fs, es in texts for f in fs for e in es}

    def parts(fs, e):
        total = sum(probable[f, e] for f in fs) + alone[e]
        return {f: probable[f, e] / total for f in fs}

    for iteration in range(EM_ITERATIONS):
        count = Counter()
        for fs, es in texts:
            for e in es:
                count.update({(f, e): part for f, part in parts(fs, e).items()})
        total = Counter()
        for (f, _), part in count.items():
            total[f] += part
        if iteration < EM_ITERATIONS - 1:
            probable = {(f, e): part / total[f] for (f, e), part in count.items()}
    scores = []
    for fs, es in texts:
        score = 0.0
        for e in es:
            left = [max(0, count[f, e] - parts(fs, e)[f]) / (total[f] + SMOOTHING) for f in fs]
            score += math.log((1 - UNALIGNED) * sum(left) / max(1, len(left)) / alone[e] + UNALIGNED)
        scores.append(score)
    return scores


def test_ibm_model_scores_equal_plain_python(monkeypatch):
    monkeypatch.setattr(translations, "CHUNK_PAIRS", 3)
    sources, targets = (list(side) for side in zip(*PAIRS, strict=True))
    model = IBMModel1([(sources[:5], targets[:5]), (sources[5:], targets[5:])])
    stems = _stems(sources), _stems(targets)
    expected = np.add(_scores_by_hand(*stems), _scores_by_hand(*stems[::-1]))
    scores, lengths = model.scores(model.learned, is_learned=True)
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    assert lengths.tolist() == [len(source) + len(target) for source, target in zip(*stems, strict=True)]
    assert scores[-1] == 0 == lengths[-1]  # words of a single pair are unknown


def test_ibm_model_scores_new_pairs():
    sources, targets = (list(side) for side in zip(*(PAIRS[:6] * 5), strict=True))
    model = IBMModel1([(sources, targets)])
    pairs = ["old house", "old house", "a cat", ""], ["altes haus", "rotes boot", "", "x"]
    scores, lengths = model.scores(model.to_indices(truncated_words(pairs)))
    assert scores[0] > 0 > scores[1] and scores[2:].tolist() == [0, 0]
    assert lengths.tolist() == [4, 4, 0, 0]
    empty = IBMModel1([([], [])])
    assert empty.scores(empty.to_indices(truncated_words((["a"], ["b"]))))[0].tolist() == [0]


def test_truncated_words_keeps_same_share_of_both_sides():
    source, target = (" ".join(f"{side}{number}" for number in range(count)) for side, count in (("s", 60), ("t", 40)))
    sources, targets = truncated_words(([source, "ein Haus ein Haus"], [target, "一座房子"]))
    assert list(map(len, sources)) == [30, 2] and list(map(len, targets)) == [20, 4]


@pytest.mark.parametrize("share", [0.0, 0.002, 0.02, 0.3])
def test_classify_translations_is_close_to_best_threshold(share):
    random = np.random.default_rng(2)
    number = 30_000
    lengths = random.choice([4, 10, 30], number)
    is_bad = random.random(number) < share * np.where(lengths == 30, 2, 0.5)
    good, bad = random.normal(lengths, 1 + lengths / 5), random.normal(-0.5 * lengths, 1 + lengths / 10)
    scores = np.where(is_bad, bad, good).astype(np.float32)
    rematched = random.choice([4, 10, 30], number)
    random_scores = random.normal(-0.5 * rematched, 1 + rematched / 10).astype(np.float32)
    is_translation = classify_translations(scores, lengths, random_scores, rematched)
    best = 0
    for length in (4, 10, 30):
        order = np.argsort(scores[lengths == length])
        wrong = np.cumsum(np.where(is_bad[lengths == length][order], -1, 1))
        best += is_bad[lengths == length].sum() + min(0, wrong.min())
    wrong = (is_translation == is_bad).sum()
    assert wrong <= 1.2 * best + 0.0005 * number
    if share == 0.3:
        assert is_translation[is_bad].mean() < 0.1
