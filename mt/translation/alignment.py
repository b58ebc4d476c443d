"""Which words of a translation come from which words of its source, read off the decoder's attention.

The source and its translation go through the model once more (forced decoding), in fp32. For every piece of the
translation, the weights of one attention to the source say how much each source piece has to do with it.

Which weights these are depends on the architecture. In a Transformer, the row of the decoder's input aligns better than
the row that predicts a piece, and a middle layer better than the last (Chen et al. 2020, "Shift-Att"). The LSTM attends
before it reads its input, so its row is the one that predicts the piece, and it has a single attention.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import regex
import torch

from mt.data.batching import collate
from mt.model.attention import record_attention
from mt.model.seq2seq import Seq2Seq
from mt.model.transformer import Transformer
from mt.text.markup import Link
from mt.text.tokenizer import TokenizerPair

WORD = regex.compile(r"\S+")


@dataclass(frozen=True)
class Place:
    """Where in a model the weights stand that align."""

    layer: int
    """The number of the decoder's layer, from 0 on."""
    shift: int
    """0: the row that predicts a piece. 1: the row that reads it."""


def usual_place(model: Seq2Seq) -> Place:
    """Returns where the weights of a model of this architecture align best."""
    return Place(len(model.decoder.layers) // 2, 1) if isinstance(model, Transformer) else Place(0, 0)


class Aligner:
    """Aligns texts by one model."""

    def __init__(self, model: Seq2Seq, tokenizers: TokenizerPair, batch_tokens: int) -> None:
        """
        Args:
            model: The model, in evaluation mode.
            tokenizers: Its tokenizers.
            batch_tokens: The most pieces of a batch on each side, padding included.
        """
        self._model = model
        self._tokenizers = tokenizers
        self._batch_tokens = batch_tokens
        self._place = usual_place(model)

    def links(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[Link]]:
        """Returns the links of each pair: one for every piece of the target, to the source piece that it comes from.

        Pieces beyond the last position of a model with learned positions have no link.
        """
        pieces = [
            (self._tokenizers.source.spans(source), self._tokenizers.target.spans(target))
            for source, target in zip(sources, targets, strict=True)
        ]
        most = self._model.max_length
        pieces = [(source[: most and most - 1], target[: most and most - 1]) for source, target in pieces]
        found: list[list[Link]] = [[] for _ in pieces]
        for rows in self._batches([max(len(source), len(target)) + 1 for source, target in pieces]):
            weights = self._weights([pieces[row] for row in rows])
            for row, one in zip(rows, weights, strict=True):
                source, target = pieces[row]
                if source and target:
                    best = one[: len(target), : len(source)].argmax(axis=1)
                    found[row] = [
                        Link(*source[place][1:], *span[1:]) for place, span in zip(best.tolist(), target, strict=True)
                    ]
        return found
