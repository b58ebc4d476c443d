"""Which words of a translation come from which words of its source, read off the decoder's attention.

The source and its translation go through the model once more (forced decoding), in fp32. For every piece of the
translation, the weights of one of the decoder's attentions to the source say from which source piece it comes.

Which layer that is, and whether the weights are those of the step that predicts a piece or of the next one, which reads
it (Chen et al. 2020, "Shift-Att"), is chosen for each model at the end of its training: what links names and numbers
best that stand on both sides of validation pairs.
"""

from bisect import bisect_left
from collections.abc import Sequence

import regex
import torch
from torch import Tensor

from mt.config import AlignmentConfig
from mt.data.batching import collate
from mt.model.attention import record_attention
from mt.model.seq2seq import Seq2Seq
from mt.text.augmentation import names_and_numbers
from mt.text.layer import TextLayer
from mt.text.placement import Link
from mt.text.slots import slot
from mt.text.tokenizer import PieceSpan, TokenizerPair

LEAST_WEIGHT = 0.2
"""A source piece to which no target piece is linked gets a link only if its largest weight is at least this."""
WORD = regex.compile(r"\S+")


class Aligner:
    """Aligns texts by the attention of one model."""

    def __init__(self, model: Seq2Seq, tokenizers: TokenizerPair, place: AlignmentConfig, batch_tokens: int) -> None:
        """
        Args:
            model: The model, in evaluation mode.
            tokenizers: Its tokenizers.
            place: Which of its weights align.
            batch_tokens: The most pieces of a batch on each side, padding included.
        """
        self._model = model
        self._tokenizers = tokenizers
        self._batch_tokens = batch_tokens
        self._place = place

    def links(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[Link]]:
        """Returns the links between the pieces of each pair.

        Every target piece is linked to the source piece that has most weight for it. A source piece that then has no
        link gets one to the target piece for which it has most weight, if that is at least LEAST_WEIGHT.

        With learned positions, pieces beyond the last position have no link. If one side of a pair has no pieces, there
        are no links.
        """
        most = None if self._model.max_length is None else self._model.max_length - 1
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
                found[row] = [
                    Link(source[one].start, source[one].end, target[other].start, target[other].end)
                    for one, other in _linked(weights[number, : len(target), : len(source)])
                ]
        return found

    def _weights(self, pairs: Sequence[tuple[list[PieceSpan], list[PieceSpan]]]) -> Tensor:
        """Returns the weights (B, T, S) of the attention that aligns, for all target pieces, without BOS and EOS."""
        sources, targets = ([[one.piece for one in side] for side in sides] for sides in zip(*pairs, strict=True))
        batch = collate(range(len(pairs)), sources, targets).to(self._model.output_weight.device)
        with torch.inference_mode(), record_attention(self._model) as maps:
            self._model.decode(self._model.encode(batch.source), batch.target_input)
        layers = [seen[0].weights for name, seen in maps.items() if name.endswith("cross_attention")]
        weights = layers[self._place.layer].mean(dim=1)  # (B, T + 1, S)
        return weights[:, 1:] if self._place.shift else weights[:, :-1]


def _linked(weights: Tensor) -> list[tuple[int, int]]:
    """Returns the numbers of the source and target pieces that weights (T, S) link."""
    by_target = weights.argmax(dim=1).tolist()
    links = [(one, other) for other, one in enumerate(by_target)]
    largest, by_source = weights.max(dim=0)
    left = set(range(weights.shape[1])).difference(by_target)
    return links + [(one, int(by_source[one])) for one in sorted(left) if largest[one] >= LEAST_WEIGHT]


def best_place(
    model: Seq2Seq, layer: TextLayer, pairs: Sequence[tuple[str, str]], batch_tokens: int
) -> AlignmentConfig:
    """Returns which weights of a model align best.

    Args:
        model: The model, in evaluation mode.
        layer: Its text layer.
        pairs: Sources with their translations. Names and numbers that stand once on either side should be linked. If no
            pair has any, a slot in front of both sides takes their place.
        batch_tokens: The most pieces of a batch on each side, padding included.
    """
    named = [(source, target, name) for source, target in pairs for name in names_and_numbers(source, target)[:1]]
    if not named:
        mark = slot(0) if layer.slots else "1"
        named = [(f"{mark} {source}", f"{mark} {target}", mark) for source, target in pairs]
    sources, targets = [source for source, _, _ in named], [target for _, target, _ in named]
    with record_attention(model) as maps:
        depth = sum(name.endswith("cross_attention") for name in maps)

    def share_of_right_links(place: AlignmentConfig) -> float:
        found = Aligner(model, layer.tokenizers, place, batch_tokens).links(sources, targets)
        right = [
            _meets(link.source_start, link.source_end, source.index(name), len(name))
            for (source, target, name), links in zip(named, found, strict=True)
            for link in links
            if _meets(link.target_start, link.target_end, target.index(name), len(name))
        ]
        return sum(right) / max(1, len(right))

    places = [AlignmentConfig(layer=number, shift=shift) for number in range(depth) for shift in (0, 1)]
    return max(places, key=share_of_right_links)


def _meets(start: int, end: int, other: int, length: int) -> bool:
    """Returns whether two stretches of text have a character in common."""
    return start < other + length and end > other


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
