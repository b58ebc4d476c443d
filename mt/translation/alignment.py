"""Which words of a translation come from which words of its source, read off the decoder's attention.

The source and its translation go through the model once more (forced decoding), in fp32. The weights that one of the
decoder's attentions to the source gives the pieces are added up to weights between words. Two words are linked if each
has the greatest weight for the other. A source word that is left over joins the link of its neighbour, or a target word
that is left over, too.

Which layer the weights are from, and whether from the step that predicts a piece or from the next one, which reads it
(Chen et al. 2020, "Shift-Att"), is chosen for each model at the end of its training, by validation pairs in which a
name or a number stands on both sides.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import regex
import torch
from torch import Tensor

from mt.config import MAX_PIECES, AlignmentConfig
from mt.core.language import writes_spaces
from mt.data.augmentation import names_and_numbers
from mt.data.batching import collate
from mt.models.attention import record_attention
from mt.models.seq2seq import Seq2Seq
from mt.text.layer import TextLayer
from mt.text.placement import Link
from mt.text.slots import slot
from mt.text.tokenizer import PieceSpan

WORD = regex.compile(r"[^\s\x1c-\x1f]+")
"""What ``str.split`` takes for a word."""
PART_OF_A_LINE = regex.compile(r"[\p{L}\p{M}\p{N}]+|\S")
"""A word without the punctuation around it, or a punctuation mark."""


class Aligner:
    """Aligns texts by the attention of one model."""

    def __init__(self, model: Seq2Seq, layer: TextLayer, place: AlignmentConfig, batch_tokens: int) -> None:
        """
        Args:
            model: The model, in evaluation mode.
            layer: Its text layer.
            place: Which of its weights align.
            batch_tokens: The most pieces of a batch on each side, padding included.
        """
        self._model = model
        self._longest = MAX_PIECES if model.max_length is None else min(MAX_PIECES, model.max_length - 1)
        self._tokenizers = layer.tokenizers
        self._spaces = writes_spaces(layer.source_language), writes_spaces(layer.target_language)
        self._place = place
        self._batch_tokens = batch_tokens

    def links(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[Link]]:
        """Returns the links between the words of each pair, in characters.

        In a language that is written without spaces, pieces count as words. What lies beyond MAX_PIECES pieces has no
        links. Neither has a text whose other side is empty.
        """
        most = self._longest
        pairs = [
            (source[:most], target[:most])
            for source, target in zip(
                self._tokenizers.source.spans(sources), self._tokenizers.target.spans(targets), strict=True
            )
        ]
        found: list[list[Link]] = [[] for _ in pairs]
        rows = [row for row, (source, target) in enumerate(pairs) if source and target]
        rows.sort(key=lambda row: max(map(len, pairs[row])))
        while rows:
            count = max(1, self._batch_tokens // (max(map(len, pairs[rows[-1]])) + 1))
            rows, batch = rows[:-count], rows[-count:]
            weights = self._weights([pairs[row] for row in batch])
            for number, row in enumerate(batch):
                source, target = pairs[row]
                words = (
                    _words(source, sources[row], self._spaces[0]),
                    _words(target, targets[row], self._spaces[1]),
                )
                of_words = _weights_of_words(weights[number, : len(target), : len(source)], *words)
                found[row] = [
                    Link(
                        source[words[0][one][0]].start,
                        source[words[0][one][-1]].end,
                        target[words[1][other][0]].start,
                        target[words[1][other][-1]].end,
                    )
                    for one, other in _linked(of_words)
                ]
        return found

    def _weights(self, pairs: Sequence[tuple[list[PieceSpan], list[PieceSpan]]]) -> Tensor:
        """Returns the weights (B, T, S) of the attention that aligns, for all target pieces, without BOS and EOS."""
        sources, targets = ([[one.piece for one in side] for side in sides] for sides in zip(*pairs, strict=True))
        batch = collate(range(len(pairs)), sources, targets).to(self._model.device)
        with torch.inference_mode(), record_attention(self._model) as maps:
            self._model.decode(self._model.encode(batch.source), batch.target_input)
        layers = [seen[0].weights for name, seen in maps.items() if name.endswith("cross_attention")]
        weights = layers[self._place.layer].mean(dim=1).float()  # (B, T + 1, S)
        return weights[:, 1:] if self._place.shift else weights[:, :-1]


def _words(pieces: Sequence[PieceSpan], text: str, spaces: bool) -> list[list[int]]:
    """Groups the numbers of pieces by the words that they are parts of. A piece without characters, such as the mark of
    a word's start, belongs to the word behind it.

    Args:
        pieces: The pieces of the text.
        text: The text.
        spaces: Whether the language separates words by spaces. If not, every piece is a word.
    """
    starts = [match.start() for match in PART_OF_A_LINE.finditer(text)]
    groups: list[list[int]] = []
    last: int | None = None
    for number, piece in enumerate(pieces):
        word = bisect_right(starts, piece.start) if piece.end > piece.start else None
        if groups and (last is None or (spaces and word == last)):
            groups[-1].append(number)
        else:
            groups.append([number])
        last = word
    return groups


def _weights_of_words(weights: Tensor, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> Tensor:
    """Returns the weights between words (target words, source words), given those of their pieces (T, S).

    The weights of the source pieces of a word are added, and the mean is taken over the target pieces of a word.
    """
    by_source = torch.stack([weights[:, pieces].sum(dim=1) for pieces in sources], dim=1)
    return torch.stack([by_source[pieces].mean(dim=0) for pieces in targets])


def _linked(weights: Tensor) -> list[tuple[int, int]]:
    """Returns the links between source and target words, given their weights (target words, source words)."""
    best_source, best_target = weights.argmax(dim=1).tolist(), weights.argmax(dim=0).tolist()
    links = {other: one for other, one in enumerate(best_source) if best_target[one] == other}
    linked = set(links.values())
    left = [
        (one, other)
        for one, other in enumerate(best_target)
        if one not in linked and (other not in links or abs(links[other] - one) == 1)
    ]
    return sorted([(one, other) for other, one in links.items()] + left)


def best_place(
    model: Seq2Seq, layer: TextLayer, pairs: Sequence[tuple[str, str]], batch_tokens: int
) -> AlignmentConfig:
    """Returns which weights of a model align best.

    Args:
        model: The model, in evaluation mode.
        layer: Its text layer.
        pairs: Sources with their translations. A name or number that stands once on both sides should be linked to
            itself and to nothing else. Where no pair has any, a slot is put in front of both sides of each.
        batch_tokens: The most pieces of a batch on each side, padding included.
    """
    named = [(source, target, name) for source, target in pairs for name in names_and_numbers(source, target)[:1]]
    if not named:
        mark = slot(0) if layer.slots else "1"
        named = [(f"{mark} {source}", f"{mark} {target}", mark) for source, target in pairs]
    sources, targets = [source for source, _, _ in named], [target for _, target, _ in named]
    with record_attention(model) as maps:
        depth = sum(name.endswith("cross_attention") for name in maps)

    def linked_to_themselves(place: AlignmentConfig) -> int:
        count = 0
        found = Aligner(model, layer, place, batch_tokens).links(sources, targets)
        for (source, target, name), links in zip(named, found, strict=True):
            start, begin = source.index(name), target.index(name)
            met = [one for one in links if one.source_start < start + len(name) and one.source_end > start]
            span = min((one.target_start for one in met), default=0), max((one.target_end for one in met), default=0)
            count += span == (begin, begin + len(name))
        return count

    places = [AlignmentConfig(layer=number, shift=shift) for number in range(depth) for shift in (0, 1)]
    return max(places, key=linked_to_themselves)


def word_links(links: Sequence[Link], source: str, target: str) -> list[tuple[int, int]]:
    """Returns the numbers of the source and target words that links connect, in order and each pair once.

    Words are what white space separates, as in Pharaoh's format.
    """
    words = [[match.span() for match in WORD.finditer(text)] for text in (source, target)]
    starts = [[start for start, _ in side] for side in words]

    def word_at(side: int, start: int, end: int) -> int | None:
        """Returns the number of the word that characters belong to, None if they are white space."""
        number = bisect_left(starts[side], end) - 1
        return number if number >= 0 and words[side][number][1] > start else None

    found = {
        (word_at(0, link.source_start, link.source_end), word_at(1, link.target_start, link.target_end))
        for link in links
    }
    return sorted((one, other) for one, other in found if one is not None and other is not None)
