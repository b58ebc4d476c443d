"""BPE-dropout has the probabilities of its definition, and depends only on the sentence and its key."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pyarrow
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mt.data.pairs import TOKENS
from mt.tokenizer.sampling import bpe_dropout
from tests.tokenizer.samples import samples_of
from tests.tokenizer.test_tokenizer import ANY_TEXT, BPE, EXACT, WITH_PLACEHOLDERS, sentences


def dropout_probabilities(word: tuple[str, ...], scores: dict[str, float], dropped: float) -> dict[tuple, float]:
    """The probability of each cut by BPE-dropout: in each step, the best merge that is not skipped is made."""
    merges = sorted(
        (-scores[left + right], index)
        for index, (left, right) in enumerate(zip(word, word[1:], strict=False))
        if left + right in scores
    )
    probabilities = {word: dropped ** len(merges)}
    for rank, (_, index) in enumerate(merges):
        merged = (*word[:index], word[index] + word[index + 1], *word[index + 2 :])
        for cut, probability in dropout_probabilities(merged, scores, dropped).items():
            probabilities[cut] = probabilities.get(cut, 0) + dropped**rank * (1 - dropped) * probability
    return probabilities


@pytest.mark.parametrize("word", ["abab", "aabab", "cabba", "bbb"])
@pytest.mark.parametrize("dropped", [0.1, 0.5])
def test_bpe_dropout_has_the_probabilities_of_its_definition(word, dropped):
    scores = {"a": -9.0, "b": -9.0, "ab": -2.0, "ba": -1.0, "bb": -2.0, "aba": -3.0, "abab": -4.0, "ca": -5.0}
    times = 20_000
    random = Random(1)
    drawn = Counter(tuple(bpe_dropout(word, scores, dropped, random)) for _ in range(times))
    expected = dropout_probabilities(tuple(word), scores, dropped)
    assert set(drawn) <= set(expected)
    for way, probability in expected.items():
        deviation = np.sqrt(probability * (1 - probability) / times)
        assert drawn[way] / times == pytest.approx(probability, abs=4.5 * deviation + 1e-9), way


def test_bpe_dropout_prefers_high_scores_and_left_positions():
    def cut(word: str, scores: dict[str, float], dropped: float = 0.0) -> list[str]:
        return bpe_dropout(word, scores, dropped, Random(1))

    scores = {"a": -9.0, "b": -9.0, "ab": -2.0, "ba": -1.0}
    assert cut("abab", scores) == ["a", "ba", "b"]
    assert cut("aab", scores) == ["a", "ab"]
    assert cut("aaa", {"a": -9.0, "aa": -1.0}) == ["aa", "a"]
    # The vocabulary lacks c, but not ac.
    assert cut("acab", {"a": -9.0, "b": -9.0, "ac": -1.0}) == ["ac", "a", "b"]
    assert cut("abab", scores, dropped=1.0) == ["a", "b", "a", "b"]


def test_samples_depend_on_their_key_only(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*sentences(40, seed=1), "ba 漢字 é 漢", " ".join(sentences(3, seed=2))]
    tokens = BPE.encode(texts)
    keys = np.arange(len(texts), dtype=np.uint64)

    def samples(order: np.ndarray, at_once: int) -> list[list[int]]:
        sampler = BPE.sampler(0.6)
        drawn: list[list[int]] = [[]] * len(texts)
        for start in range(0, len(texts), at_once):
            rows = order[start : start + at_once]
            sampled = sampler.sample(pyarrow.array([tokens[row] for row in rows], TOKENS), keys[rows]).to_pylist()
            for row, sample in zip(rows, sampled, strict=True):
                drawn[row] = sample
        return drawn

    forward = np.arange(len(texts))
    once = samples(forward, 100)
    assert once != tokens
    assert BPE.decode(once) == texts
    # What was drawn before is remembered, and changes nothing. Nor does what is forgotten.
    assert samples(forward[::-1], 3) == once
    monkeypatch.setattr("mt.tokenizer.sampling.MAX_CACHED_SEGMENTATIONS", 10)
    assert samples(forward, 3) == once
    assert samples(forward[::-1], 7) == once
    word = max(texts[-1].split(), key=len)
    assert len({tuple(sample) for sample in samples_of(BPE, word, 0.6, range(100))}) > 4


def test_samples_of_slices_equal_those_of_tables() -> None:
    tokens = pyarrow.array([*BPE.encode(sentences(5)), [], *BPE.encode(["ba"])], TOKENS)
    sampler = BPE.sampler(0.5)
    keys = np.arange(7, dtype=np.uint64)
    whole = sampler.sample(tokens, keys)
    assert sampler.sample(tokens.slice(2, 5), keys[2:]) == whole[2:]
    assert whole[5].as_py() == []
    assert len(sampler.sample(tokens[:0], keys[:0])) == 0


def test_samples_are_equal_in_every_process(tmp_path):
    """SentencePiece's own sampling is not, whatever its seed."""
    (tmp_path / "model").write_bytes(BPE.model)
    text = sentences(1, seed=9)[0]
    code = (
        "from pathlib import Path; from mt.tokenizer.tokenizer import Tokenizer;"
        "from tests.tokenizer.samples import samples_of;"
        f"tokenizer = Tokenizer(Path({str(tmp_path / 'model')!r}).read_bytes());"
        f"print(samples_of(tokenizer, {text!r}, 0.3, range(20)))"
    )
    printed = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=Path(__file__).parents[2]).strip()
    assert printed == str(samples_of(BPE, text, 0.3, range(20)))


@given(ANY_TEXT)
@example("ba  de\t\u3000fi 漢字 é ﬁ")
def test_sampling_without_dropout_is_encode(text):
    for tokenizer in (BPE, EXACT["bpe"], WITH_PLACEHOLDERS["bpe"]):
        assert samples_of(tokenizer, text, 0.0, [1]) == tokenizer.encode([text])


@given(ANY_TEXT, st.integers(0, 2**64 - 1))
@example("ba \ud83d de", 0)
def test_samples_decode_to_the_same_text(text: str, key: int) -> None:
    for tokenizer in (BPE, EXACT["bpe"], WITH_PLACEHOLDERS["bpe"]):
        usual = tokenizer.decode(tokenizer.encode([text]))
        assert tokenizer.decode(samples_of(tokenizer, text, 0.5, [key])) == usual
