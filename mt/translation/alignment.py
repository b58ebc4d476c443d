"""Word alignment by the decoder's attention.

The source and its translation go through the model once more (forced decoding), in fp32. The weights of one of the
decoder's attentions to the source are added up from tokens to words. Two words are linked if each has the greatest
weight for the other. A source word without a link joins the link of its neighbor, or a target word without one.

The decoder layer of the weights, and whether they are from the step that predicts a token or from the next one, which
reads it (Chen et al. 2020, "Shift-Att"), are chosen for each model at the end of its training, by validation pairs with
a name or a number on both sides.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import regex

from mt.config import MAX_SOURCE_TOKENS
from mt.core.language import writes_spaces
from mt.models.seq2seq import Seq2Seq
from mt.storage.model_description import AlignmentConfig
from mt.text.layer import TextLayer
from mt.text.lexicon import shared_names_and_numbers
from mt.text.placeholders import placeholder
from mt.text.placement import AlignmentLink
from mt.tokenizer.tokenizer import TokenSpan
from mt.translation.engine import plan_batches
from mt.translation.hypotheses import forced_attention

SPLIT_WORD = regex.compile(r"[^\s\x1c-\x1f]+")
"""A word of ``str.split``."""
WORD_OR_PUNCTUATION = regex.compile(r"[\p{L}\p{M}\p{N}]+|\S")
"""A word without the punctuation around it, or a punctuation character."""


@dataclass
class Aligner:
    """Aligns the words of sentence pairs by the attention of one model. A ``Translator`` holds it."""

    model: Seq2Seq
    """The model, in evaluation mode."""
    layer: TextLayer
    """Its text layer."""
    setting: AlignmentConfig
    """The decoder layer whose attention aligns, and the step of its weights."""
    batch_tokens: int
    """Maximum number of tokens of a batch on each side, padding included."""

    def __post_init__(self) -> None:
        limit = self.model.max_length
        self._max_tokens = MAX_SOURCE_TOKENS if limit is None else min(MAX_SOURCE_TOKENS, limit - 1)
        self._has_spaces = writes_spaces(self.layer.source_language), writes_spaces(self.layer.target_language)
        self._attention = cross_attention_names(self.model)[self.setting.layer]

    def links(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[AlignmentLink]]:
        """Return the word alignment of each pair, as links between spans of characters.

        In a language that is written without spaces, each token counts as a word. Tokens after the first
        MAX_SOURCE_TOKENS have no links. A pair with an empty side has none.
        """
        tokenizers = self.layer.tokenizers
        spans = tokenizers.source.spans(sources), tokenizers.target.spans(targets)
        pairs = [
            (source[: self._max_tokens], target[: self._max_tokens]) for source, target in zip(*spans, strict=True)
        ]
        links: list[list[AlignmentLink]] = [[] for _ in pairs]
        rows = [row for row, (source, target) in enumerate(pairs) if source and target]
        for batch in plan_batches([max(map(len, pairs[row])) + 1 for row in rows], 1, self.batch_tokens, cores=1):
            batch = [rows[index] for index in batch]
            for row, weights in zip(batch, self._weights([pairs[row] for row in batch]), strict=True):
                links[row] = self._pair_links(pairs[row], (sources[row], targets[row]), weights)
        return links

    def _pair_links(
        self, pair: tuple[list[TokenSpan], list[TokenSpan]], texts: tuple[str, str], weights: np.ndarray
    ) -> list[AlignmentLink]:
        """Link the words of a pair, given the padded attention weights of its tokens (T, S)."""
        source, target = pair
        source_words, target_words = (_words(*side) for side in zip(pair, texts, self._has_spaces, strict=True))
        of_words = _word_weights(weights[: len(target), : len(source)], source_words, target_words)
        return [
            AlignmentLink(
                source[source_words[i][0]].start,
                source[source_words[i][-1]].end,
                target[target_words[j][0]].start,
                target[target_words[j][-1]].end,
            )
            for i, j in _linked(of_words)
        ]

    def _weights(self, pairs: Sequence[tuple[list[TokenSpan], list[TokenSpan]]]) -> np.ndarray:
        """Return the weights (B, T, S) of the aligning attention, for all target tokens without BOS and EOS."""
        sources, targets = ([[span.token for span in side] for side in sides] for sides in zip(*pairs, strict=True))
        maps = forced_attention(self.model, sources, targets, last=self._attention)
        weights = maps[self._attention].weights.mean(dim=1).float().cpu().numpy()  # (B, T + 1, S)
        return weights[:, 1:] if self.setting.shift else weights[:, :-1]


def cross_attention_names(model: Seq2Seq) -> list[str]:
    """Return the names of the decoder's attentions to the source, layer by layer."""
    return [name for name, _ in model.named_modules() if name.rpartition(".")[2] == "cross_attention"]


def _words(tokens: Sequence[TokenSpan], text: str, has_spaces: bool) -> list[list[int]]:
    """Group the indices of a text's tokens by word. A token without characters, such as ▁ at the start of a word,
    belongs to the word behind it.

    Args:
        tokens: The tokens.
        text: The text.
        has_spaces: Whether the language separates words by spaces. If not, every token is a word.
    """
    starts = [match.start() for match in WORD_OR_PUNCTUATION.finditer(text)]
    groups: list[list[int]] = []
    last: int | None = None
    for index, token in enumerate(tokens):
        word = bisect_right(starts, token.start) if token.end > token.start else None
        if groups and (last is None or (has_spaces and word == last)):
            groups[-1].append(index)
        else:
            groups.append([index])
        last = word
    return groups


def _word_weights(weights: np.ndarray, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> np.ndarray:
    """Return the weights between words (target words, source words), given those of their tokens (T, S).

    They are the sum over the source tokens and the mean over the target tokens of a word.
    """
    source_starts, target_starts = ([tokens[0] for tokens in words] for words in (sources, targets))
    by_source = np.add.reduceat(weights, source_starts, axis=1)
    lengths = np.array([len(tokens) for tokens in targets], np.float32)
    return np.add.reduceat(by_source, target_starts, axis=0) / lengths[:, None]


def _linked(weights: np.ndarray) -> list[tuple[int, int]]:
    """Return the (source word, target word) indices of all links, given weights (target words, source words)."""
    best_source, best_target = weights.argmax(axis=1).tolist(), weights.argmax(axis=0).tolist()
    source_of = {target: source for target, source in enumerate(best_source) if best_target[source] == target}
    linked = set(source_of.values())
    left = [
        (source, target)
        for source, target in enumerate(best_target)
        if source not in linked and (target not in source_of or abs(source_of[target] - source) == 1)
    ]
    return sorted([(source, target) for target, source in source_of.items()] + left)


def choose_alignment(
    model: Seq2Seq, text_layer: TextLayer, pairs: Sequence[tuple[str, str]], batch_tokens: int
) -> AlignmentConfig:
    """Return the attention of a model that aligns best.

    Args:
        model: The model, in evaluation mode.
        text_layer: Its text layer.
        pairs: Sources with their translations. A name or number that stands once on both sides should be linked to
            itself and to nothing else. Where no pair has any, a placeholder is put in front of both sides of each.
        batch_tokens: Maximum number of tokens of a batch on each side, padding included.
    """
    named = [
        (source, target, name) for source, target in pairs for name in shared_names_and_numbers(source, target)[:1]
    ]
    if not named:
        anchor = placeholder(0) if text_layer.placeholder_count else "1"
        named = [(f"{anchor} {source}", f"{anchor} {target}", anchor) for source, target in pairs]
    sources, targets = [source for source, _, _ in named], [target for _, target, _ in named]

    def correct_links(setting: AlignmentConfig) -> int:
        count = 0
        all_links = Aligner(model, text_layer, setting, batch_tokens).links(sources, targets)
        for (source, target, name), links in zip(named, all_links, strict=True):
            start, begin = source.index(name), target.index(name)
            met = [link for link in links if link.source_start < start + len(name) and link.source_end > start]
            span = (
                min((link.target_start for link in met), default=0),
                max((link.target_end for link in met), default=0),
            )
            count += span == (begin, begin + len(name))
        return count

    settings = [
        AlignmentConfig(layer=layer, shift=shift)
        for layer in range(len(cross_attention_names(model)))
        for shift in (0, 1)
    ]
    return max(settings, key=correct_links)


def word_links(links: Sequence[AlignmentLink], source: str, target: str) -> list[tuple[int, int]]:
    """Return the indices of linked source and target words, in order and each pair once.

    Words are separated by whitespace, as in Pharaoh's format.
    """
    words = [[match.span() for match in SPLIT_WORD.finditer(text)] for text in (source, target)]
    starts = [[start for start, _ in side] for side in words]

    def word_at(side: int, start: int, end: int) -> int | None:
        """Return the index of the word at some characters, None if they are whitespace."""
        index = bisect_left(starts[side], end) - 1
        return index if index >= 0 and words[side][index][1] > start else None

    pairs = {
        (word_at(0, link.source_start, link.source_end), word_at(1, link.target_start, link.target_end))
        for link in links
    }
    return sorted((i, j) for i, j in pairs if i is not None and j is not None)
