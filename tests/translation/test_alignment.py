"""Links follow the attention that was chosen, and the one that knows best is chosen."""

import re

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
    return Aligner(model, LAYER, place, batch_tokens).links(sources, targets)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_links_follow_the_chosen_attention(place):
    model = Copying(3, place)
    source, target = "a b c d e", "e d c b a"
    (links,) = aligned(model, place, [source], [target])
    ends = {(link.source_start, link.source_end, link.target_start, link.target_end) for link in links}
    assert ends == {(8 - number, 9 - number, number, number + 1) for number in range(0, 9, 2)}
    for other in PLACES:
        if other != place:
            (wrong,) = aligned(model, other, [source], [target])
            right = [link for link in wrong if source[link.source_start : link.source_end] ==
                     target[link.target_start : link.target_end] != ""]  # fmt: skip
            assert len(right) < 5


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_place_that_knows_best_is_chosen(place):
    pairs = [("in 7 ba", "ba mo 7 de"), ("foo 5 bar", "la 5 ku la"), ("no names", "ku la")]
    assert choose_alignment(Copying(3, place), LAYER, pairs, 4000) == place
    assert choose_alignment(Copying(3, place), LAYER, [], 4000) == AlignmentConfig()


@pytest.mark.parametrize(("slots", "mark"), [(languages.SLOTS, placeholder(0)), (0, "1")])
def test_without_names_something_stands_in_front_that_both_sides_share(slots, mark):
    layer = languages.layer("en", "de", slots=slots, enabled=slots > 0)
    texts: set[str] = set()

    class Listening(Copying):
        def encode(self, source: Tensor) -> Memory:
            texts.update(layer.tokenizers.source.decode(source.tolist()))
            return super().encode(source)

    choose_alignment(Listening(1, AlignmentConfig()), layer, [("foo", "ku"), ("ba", "fi")], 4000)
    assert texts == {f"{mark} foo", f"{mark} ba"}


def test_a_single_layer_of_equals_is_the_first():
    assert choose_alignment(Copying(2, AlignmentConfig(layer=7)), LAYER, [("Anna", "Anna")], 4000) == AlignmentConfig()


@given(st.integers(1, 6), st.integers(1, 6), st.randoms(use_true_random=False))
def test_links_are_mutual_and_those_left_over_join_their_neighbors(rows, columns, draw):
    weights = [[draw.choice([0.0, 0.1, 0.3, 0.5, draw.random()]) for _ in range(columns)] for _ in range(rows)]
    of_target = [row.index(max(row)) for row in weights]
    of_source = [column.index(max(column)) for column in map(list, zip(*weights, strict=True))]
    mutual = {(one, other) for one, other in enumerate(of_source) if of_target[other] == one}
    expected = set(mutual)
    for one, other in enumerate(of_source):
        is_free = all(one != linked for linked, _ in mutual)
        its_own = [linked for linked, target in mutual if target == other]
        if is_free and (not its_own or abs(its_own[0] - one) == 1):
            expected.add((one, other))
    assert _link_words(torch.tensor(weights, dtype=torch.float64)) == sorted(expected)


def test_word_weights_are_those_of_their_pieces():
    weights = np.array([[1.0, 2.0, 4.0], [10.0, 20.0, 40.0], [100.0, 200.0, 400.0]], np.float32)
    assert _word_weights(weights, [[0], [1, 2]], [[0], [1, 2]]).tolist() == [[1.0, 6.0], [55.0, 330.0]]


def test_pieces_make_words():
    tokenizer = TOKENIZERS.source

    def words(text: str, has_spaces: bool = True) -> list[str]:
        (pieces,) = tokenizer.spans([text])
        groups = _group_by_word(pieces, text, has_spaces)
        assert [number for group in groups for number in group] == list(range(len(pieces)))
        return [text[pieces[group[0]].start : pieces[group[-1]].end].strip() for group in groups]

    assert words("the dogcatcher, sees") == ["the", "dogcatcher", ",", "sees"]
    assert words(f"x{placeholder(0)}y {placeholder(1)}") == ["x", placeholder(0), "y", placeholder(1)]
    assert (
        "".join(words("dogcatcher", has_spaces=False)) == "dogcatcher"
        and len(words("dogcatcher", has_spaces=False)) > 1
    )


TEXTS = st.lists(st.sampled_from(["ba", "moku", "x", " ", "  ", "\t", "\x1f", "\u3000", "好"]), max_size=10).map(
    "".join
)


@given(TEXTS, TEXTS, st.data())
@example("a b", "c d", None)
def test_links_of_words(source, target, data):
    def stretch(text: str) -> tuple[int, int]:
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        return start, end

    links = []
    if data is not None:
        links = [AlignmentLink(*stretch(source), *stretch(target)) for _ in range(data.draw(st.integers(0, 8)))]
    words = [[match.span() for match in re.finditer(r"[^\s\x1c-\x1f]+", text)] for text in (source, target)]

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
def test_batches_change_no_link(pairs, batch_tokens, longest):
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
        # Only words have links.
        for side, text, ends in (
            (pieces[0], source, {(link.source_start, link.source_end) for link in links}),
            (pieces[1], target, {(link.target_start, link.target_end) for link in links}),
        ):
            assert ends <= {(side[group[0]].start, side[group[-1]].end) for group in _group_by_word(side, text, True)}


def test_half_a_surrogate_pair_is_a_character_like_others():
    assert aligned(Copying(1, AlignmentConfig()), AlignmentConfig(), ["a \ud800 b"], ["\udfff b"])[0]
