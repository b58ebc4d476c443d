"""Word alignment by attention, and the choice of the attention."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from mt.models.attention import RecordableAttention
from mt.models.seq2seq import Memory, Seq2Seq, State
from mt.storage.model_description import AlignmentConfig
from mt.text.placeholders import placeholder
from mt.text.placement import AlignmentLink
from mt.tokenizer.tokenizer import BOS
from mt.translation.alignment import Aligner, _group_by_word, _link_words, _word_weights, choose_alignment, word_links
from tests import languages

LAYER = languages.layer("en", "de")
TOKENIZERS = LAYER.tokenizers


class GivenAttention(RecordableAttention):
    """Records the weights that it is called with."""

    def forward(self, weights: Tensor) -> None:
        if self.recorder is not None:
            self.recorder.record(weights, weights)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cross_attention = GivenAttention()


class Copying(Seq2Seq):
    """Attends to the first source token that equals the target token, in one layer and at one step.

    Elsewhere, it attends to the first token.
    """

    def __init__(self, depth: int, config: AlignmentConfig, max_length: int | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))
        self.weight = nn.Parameter(torch.zeros(1, 1))
        self.config, self.limit = config, max_length
        self.batches: list[tuple[int, int, int]] = []

    def encode(self, source: Tensor) -> Memory:
        return Memory(source[..., None].float(), source != 0)

    def decode(self, memory: Memory, target: Tensor) -> Tensor:
        source = memory.features[..., 0].long()
        assert (target[:, 0] == BOS).all()
        self.batches.append((len(source), source.shape[1], target.shape[1]))
        copies = source[:, None] == target[:, :, None]  # (B, T, S)
        copies &= copies.cumsum(dim=-1) == 1
        if not self.config.shift:
            copies = copies.roll(-1, dims=1)
        for number, layer in enumerate(self.layers):
            weights = copies * float(number == self.config.layer)
            weights[..., 0] += 0.5
            # The two heads have different weights, whose mean is used.
            noise = torch.zeros_like(weights)
            noise[..., -1] = 1.5
            layer.cross_attention(torch.stack([weights + noise, weights - noise], dim=1))
        return torch.zeros(*target.shape, 1)

    @property
    def output_weight(self) -> Tensor:
        return self.weight

    @property
    def max_length(self) -> int | None:
        return self.limit

    def start(self, memory: Memory) -> State:
        raise NotImplementedError

    def advance(self, pieces: Tensor, state: object) -> tuple[Tensor, State]:
        raise NotImplementedError


CONFIGS = [AlignmentConfig(layer=layer, shift=shift) for layer in range(3) for shift in (0, 1)]


def aligned(model: Seq2Seq, config: AlignmentConfig, sources: list[str], targets: list[str], batch_tokens: int = 4000):
    return Aligner(model, LAYER, config, batch_tokens).links(sources, targets)


@pytest.mark.parametrize("other", CONFIGS, ids=str)
@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_links_follow_the_configured_attention(config, other):
    source, target = "a b c d e", "e d c b a"
    (links,) = aligned(Copying(3, config), other, [source], [target])
    linked = {
        (source[link.source_start : link.source_end], target[link.target_start : link.target_end]) for link in links
    }
    assert (linked == {(letter, letter) for letter in "abcde"}) is (other == config)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_choose_alignment_finds_the_aligning_attention(config):
    pairs = [("in 7 ba", "ba mo 7 de"), ("foo 5 bar", "la 5 ku la"), ("no names", "ku la")]
    assert choose_alignment(Copying(3, config), LAYER, pairs, 4000) == config
    assert choose_alignment(Copying(3, config), LAYER, [], 4000) == AlignmentConfig()


@pytest.mark.parametrize(("slots", "anchor"), [(languages.SLOTS, placeholder(0)), (0, "1")], ids=["slots", "no slots"])
def test_choose_alignment_inserts_anchor_if_pairs_share_no_name(slots, anchor):
    layer = languages.layer("en", "de", slots=slots, enabled=slots > 0)
    texts: set[str] = set()

    class Recording(Copying):
        def decode(self, memory: Memory, target: Tensor) -> Tensor:
            texts.update(layer.tokenizers.source.decode(memory.features[..., 0].long().tolist()))
            texts.update(layer.tokenizers.target.decode(target.tolist()))
            return super().decode(memory, target)

    choose_alignment(Recording(1, AlignmentConfig()), layer, [("foo", "ku"), ("ba", "fi")], 4000)
    assert texts == {f"{anchor} {text}" for text in ("foo", "ba", "ku", "fi")}


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([[0.9, 0.1], [0.2, 0.8]], [(0, 0), (1, 1)]),
        ([[0.1, 0.9], [0.8, 0.2]], [(0, 1), (1, 0)]),
        ([[0.5, 0.1, 0.4]], [(0, 0), (1, 0)]),
        ([[0.1, 0.4, 0.5]], [(1, 0), (2, 0)]),
        ([[0.9, 0.1], [0.8, 0.2]], [(0, 0), (1, 1)]),
        ([[0.6, 0.4, 0.1], [0.1, 0.2, 0.7]], [(0, 0), (1, 0), (2, 1)]),
    ],
    ids=["diagonal", "crossing", "next neighbor", "previous neighbor", "free target", "two links"],
)
def test_link_words_joins_best_matches_and_neighbors(weights, expected):
    assert _link_words(np.array(weights)) == expected


def test_word_weights_are_source_sums_and_target_means():
    weights = np.array([[1.0, 2.0, 4.0], [10.0, 20.0, 40.0], [100.0, 200.0, 400.0]], np.float32)
    assert _word_weights(weights, [[0], [1, 2]], [[0], [1, 2]]).tolist() == [[1.0, 6.0], [55.0, 330.0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the dogcatcher, sees", ["the", "dogcatcher", ",", "sees"]),
        (f"x{placeholder(0)}y {placeholder(1)}", ["x", placeholder(0), "y", placeholder(1)]),
    ],
    ids=["punctuation", "placeholders"],
)
def test_group_by_word_joins_tokens_of_a_word(text, words):
    assert _grouped(text, has_spaces=True) == words


def test_group_by_word_without_spaces_keeps_tokens_apart():
    tokens = _grouped("dogcatcher", has_spaces=False)
    assert "".join(tokens) == "dogcatcher" and len(tokens) > 1


def _grouped(text: str, has_spaces: bool) -> list[str]:
    (tokens,) = TOKENIZERS.source.spans([text])
    groups = _group_by_word(tokens, text, has_spaces)
    assert [index for group in groups for index in group] == list(range(len(tokens)))
    return [text[tokens[group[0]].start : tokens[group[-1]].end].strip() for group in groups]


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([], []),
        ([(3, 5, 0, 2), (0, 2, 4, 5)], [(0, 1), (1, 0)]),
        ([(0, 1, 0, 1), (1, 2, 1, 2)], [(0, 0)]),
        ([(1, 4, 0, 5)], [(1, 1)]),
        ([(2, 3, 0, 2), (0, 2, 2, 4)], []),
        ([(6, 8, 5, 6)], [(2, 1)]),
    ],
    ids=["none", "sorted", "duplicate", "last word of span", "whitespace", "control character"],
)
def test_word_links_are_sorted_pairs_of_words(links, expected):
    assert word_links([AlignmentLink(*link) for link in links], "ba de\x1ffi", "ku  mo") == expected


LINES = st.text(st.sampled_from("abcdé 1😀\u2028ß{x}"), max_size=8)


@settings(max_examples=40)
@given(st.lists(st.tuples(LINES, LINES), max_size=6), st.integers(1, 60), st.sampled_from([None, 1, 4]))
@example([("", ""), ("a", ""), ("", "a"), ("a", "a")], 10, None)
def test_links_do_not_depend_on_batch(pairs, batch_tokens, max_length):
    config = AlignmentConfig(layer=0, shift=1)
    model = Copying(1, config, max_length)
    links = aligned(model, config, [source for source, _ in pairs], [target for _, target in pairs], batch_tokens)
    for rows, width, height in model.batches:
        assert rows == 1 or rows * max(width, height) <= batch_tokens
        assert max_length is None or max(width, height) <= max_length
    assert links == [aligned(model, config, [source], [target])[0] for source, target in pairs]


def test_lone_surrogates_are_aligned():
    assert aligned(Copying(1, AlignmentConfig()), AlignmentConfig(), ["a \ud800 b"], ["\udfff b"])[0]
