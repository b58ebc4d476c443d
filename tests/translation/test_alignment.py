"""Links follow the attention that was chosen, and the one that knows best is chosen."""

import random
import re

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from mt.config import AlignmentConfig, TransformerConfig
from mt.data.batching import collate
from mt.model.attention import RecordableAttention, record_attention
from mt.model.build import build_model
from mt.model.seq2seq import Memory, Seq2Seq, State
from mt.text.placement import Link
from mt.text.slots import slot
from mt.text.tokenizer import BOS, TokenizerPair
from mt.translation.alignment import LEAST_WEIGHT, Aligner, _linked, best_place, word_links
from tests import languages

LAYER = languages.layer("en", "de")
TOKENIZERS = LAYER.tokenizers


class Planned(RecordableAttention):
    """Has the weights that it was planned to have."""

    def forward(self, weights: Tensor) -> None:
        if self.recorder is not None:
            self.recorder.keep(weights, weights)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cross_attention = Planned()


class Copying(Seq2Seq):
    """Attends to the source piece that is the same as the target piece, in one layer and one of its rows alone.

    Elsewhere it attends to the first piece, or to the one at the same place backwards.
    """

    def __init__(self, depth: int, place: AlignmentConfig, longest: int | None = None, heads: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))
        self.weight = nn.Parameter(torch.zeros(1, 1))
        self.place, self.longest, self.heads = place, longest, heads
        self.batches: list[tuple[int, int, int]] = []

    def encode(self, source: Tensor) -> Memory:
        return Memory(source[..., None].float(), source != 0)

    def decode(self, memory: Memory, target: Tensor) -> Tensor:
        source = memory.features[..., 0].long()
        assert (target[:, 0] == BOS).all()
        self.batches.append((len(source), source.shape[1], target.shape[1]))
        for number, layer in enumerate(self.layers):
            same = torch.zeros(len(source), target.shape[1], source.shape[1])
            for row in range(len(source)):
                for place in range(1, target.shape[1]):
                    matches = (source[row] == target[row, place]).nonzero().flatten().tolist()
                    read_at = place if self.place.shift else place - 1
                    if number == self.place.layer and matches:
                        same[row, read_at, matches[0]] = 1.0
            same[..., 0] += 0.5
            # Heads say different things, and their mean counts.
            noise = torch.zeros_like(same)
            noise[..., -1] = 1.5 if self.heads > 1 else 0.0
            layer.cross_attention(torch.stack([same + noise, *[same - noise / (self.heads - 1)] * (self.heads - 1)], 1))
        return torch.zeros(*target.shape, 1)

    def start(self, memory: Memory) -> State:
        raise NotImplementedError

    def advance(self, pieces: Tensor, state: object) -> tuple[Tensor, State]:
        raise NotImplementedError

    @property
    def output_weight(self) -> Tensor:
        return self.weight

    @property
    def max_length(self) -> int | None:
        return self.longest


PLACES = [AlignmentConfig(layer=layer, shift=shift) for layer in range(3) for shift in (0, 1)]


def aligned(model: Seq2Seq, place: AlignmentConfig, sources: list[str], targets: list[str], batch_tokens: int = 4000):
    return Aligner(model, TOKENIZERS, place, batch_tokens).links(sources, targets)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_links_follow_the_chosen_attention(place: AlignmentConfig) -> None:
    model = Copying(3, place)
    source, target = "abcde", "edcba"
    (links,) = aligned(model, place, [source], [target])
    ends = {(link.source_start, link.source_end, link.target_start, link.target_end) for link in links}
    assert {(4 - number, 5 - number, number, number + 1) for number in range(5)} <= ends
    for other in PLACES:
        if other != place:
            (wrong,) = aligned(model, other, [source], [target])
            right = [link for link in wrong if source[link.source_start : link.source_end] ==
                     target[link.target_start : link.target_end] != ""]  # fmt: skip
            assert len(right) < 5


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_place_that_knows_best_is_chosen(place: AlignmentConfig) -> None:
    pairs = [("foo Anna bar", "ku la Anna"), ("in 1999 ba", "ba mo de 1999"), ("no names", "ku la")]
    assert best_place(Copying(3, place), LAYER, pairs, 4000) == place
    assert best_place(Copying(3, place), LAYER, [], 4000) == AlignmentConfig()


@pytest.mark.parametrize(("slots", "mark"), [(languages.SLOTS, slot(0)), (0, "1")])
def test_without_names_something_stands_in_front_that_both_sides_share(slots: int, mark: str) -> None:
    layer = languages.layer("en", "de", slots=slots, rules=int(slots > 0))
    texts: set[str] = set()

    class Listening(Copying):
        def encode(self, source: Tensor) -> Memory:
            texts.update(layer.tokenizers.source.decode(source.tolist()))
            return super().encode(source)

    best_place(Listening(1, AlignmentConfig()), layer, [("foo", "ku"), ("ba", "fi")], 4000)
    assert texts == {f"{mark} foo", f"{mark} ba"}


def test_a_single_layer_of_equals_is_the_first() -> None:
    assert best_place(Copying(2, AlignmentConfig(layer=7)), LAYER, [("Anna", "Anna")], 4000) == AlignmentConfig()


@given(st.integers(1, 6), st.integers(1, 6), st.randoms(use_true_random=False))
def test_links_of_pieces(rows: int, columns: int, draw: random.Random) -> None:
    weights = torch.tensor([[draw.choice([0.0, 0.1, 0.19, 0.21, 0.3, 0.5, draw.random()]) for _ in range(columns)]
                            for _ in range(rows)])  # fmt: skip
    values = weights.tolist()
    expected = [(values[row].index(max(values[row])), row) for row in range(rows)]
    for column in range(columns):
        column_values = [values[row][column] for row in range(rows)]
        if all(column != one for one, _ in expected[:rows]) and max(column_values) >= LEAST_WEIGHT:
            expected.append((column, column_values.index(max(column_values))))
    assert _linked(weights) == expected


def test_the_least_weight() -> None:
    weights = torch.tensor([[0.8, 0.19, 0.01], [0.5, 0.2, 0.3]])
    assert LEAST_WEIGHT == 0.2
    assert _linked(weights) == [(0, 0), (0, 1), (1, 1), (2, 1)]


TEXTS = st.lists(st.sampled_from(["ba", "moku", "x", " ", "  ", "\t", "\u3000", "好"]), max_size=10).map("".join)


@given(TEXTS, TEXTS, st.data())
@example("a b", "c d", None)
def test_links_of_words(source: str, target: str, data: st.DataObject | None) -> None:
    def stretch(text: str) -> tuple[int, int]:
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        return start, end

    links = []
    if data is not None:
        links = [Link(*stretch(source), *stretch(target)) for _ in range(data.draw(st.integers(0, 8)))]
    words = [[match.span() for match in re.finditer(r"\S+", text)] for text in (source, target)]

    def at(side: int, start: int, end: int) -> int | None:
        """The last word that has a character of the stretch, or one on both sides of an empty stretch."""
        found = [number for number, (first, last) in enumerate(words[side]) if first < end and last > start]
        return found[-1] if found else None

    expected = set()
    for link in links:
        one, other = at(0, link.source_start, link.source_end), at(1, link.target_start, link.target_end)
        if one is not None and other is not None:
            expected.add((one, other))
    assert word_links(links, source, target) == sorted(expected)


LINES = st.text(st.sampled_from("abcdé 1😀\u2028ß{x}"), max_size=8)


@settings(max_examples=40)
@given(st.lists(st.tuples(LINES, LINES), max_size=6), st.integers(1, 60), st.sampled_from([None, 1, 4]))
@example([("", ""), ("a", ""), ("", "a"), ("a", "a")], 10, None)
def test_batches_change_no_link(pairs: list[tuple[str, str]], batch_tokens: int, longest: int | None) -> None:
    place = AlignmentConfig(layer=0, shift=1)
    sources, targets = [one for one, _ in pairs], [other for _, other in pairs]
    model = Copying(1, place, longest, heads=1)
    found = aligned(model, place, sources, targets, batch_tokens)
    assert len(found) == len(pairs)
    for rows, width, height in model.batches:
        assert rows == 1 or rows * max(width, height) <= batch_tokens
        assert longest is None or max(width, height) <= longest
    for links, source, target in zip(found, sources, targets, strict=True):
        assert links == aligned(Copying(1, place, longest, heads=1), place, [source], [target])[0]
        cut = None if longest is None else longest - 1
        pieces = [TOKENIZERS.source.spans([source])[0][:cut], TOKENIZERS.target.spans([target])[0][:cut]]
        if not all(pieces):
            assert links == []
            continue
        # Every target piece has a link, and only pieces have.
        ends = [{(one.start, one.end) for one in side} for side in pieces]
        assert {(link.target_start, link.target_end) for link in links} == ends[1]
        assert {(link.source_start, link.source_end) for link in links} <= ends[0]


def test_of_a_real_model_it_is_the_mean_of_the_heads_without_bos_and_eos() -> None:
    config = TransformerConfig(
        architecture="transformer", width=16, feed_forward=32, heads=2, encoder_layers=1, decoder_layers=2
    )
    torch.manual_seed(3)
    model = build_model(config, TokenizerPair(TOKENIZERS.source, TOKENIZERS.target)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    source, target = "the dog sees\u2028it", "ku la mo"
    pieces = TOKENIZERS.source.spans([source])[0], TOKENIZERS.target.spans([target])[0]
    batch = collate([0], *([[one.piece for one in side]] for side in pieces))
    with torch.inference_mode(), record_attention(model) as maps:
        model.decode(model.encode(batch.source), batch.target_input)
    for layer in (0, 1):
        weights = maps[f"decoder.layers.{layer}.cross_attention"][0].weights[0].mean(0)
        for shift in (0, 1):
            chosen = weights[shift : shift + len(pieces[1]), : len(pieces[0])]
            expected = [
                Link(pieces[0][one].start, pieces[0][one].end, pieces[1][other].start, pieces[1][other].end)
                for one, other in _linked(chosen)
            ]
            (links,) = aligned(model, AlignmentConfig(layer=layer, shift=shift), [source], [target])
            assert links == expected


def test_half_a_surrogate_pair_is_a_character_like_others() -> None:
    assert aligned(Copying(1, AlignmentConfig()), AlignmentConfig(), ["a \ud800 b"], ["\udfff b"])[0]
