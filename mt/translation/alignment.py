"""Word alignment by the decoder's attention.

The source and its translation go through the model once more (forced decoding), in fp32. The weights of one
cross-attention are added up from tokens to words. Two words are linked if each has the greatest weight for the other. A
source word without a link is linked to its best target word, if this has no link or is linked to a neighbor.

Two properties of the weights are chosen for each model at the end of its training: the decoder layer, and whether they
are from the step that predicts a token or from the next one, which reads it (Chen et al. 2020, "Shift-Att"). The choice
is made on validation pairs with the same name or number on both sides.
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
"""A word as in ``str.split``."""
WORD_OR_PUNCTUATION = regex.compile(r"[\p{L}\p{M}\p{N}]+|\S")
"""A word without the punctuation around it, or a punctuation character."""


@dataclass
class Aligner:
    """Aligns the words of sentence pairs by the attention of one model. A ``Translator`` holds it."""

    model: Seq2Seq
    """The model, in evaluation mode."""
    layer: TextLayer
    """The text layer of the model."""
    config: AlignmentConfig
    """The decoder layer of the attention weights, and their step."""
    batch_tokens: int
    """Maximum number of tokens of a batch on each side, padding included."""

    def __post_init__(self) -> None:
        limit = self.model.max_length
        self._max_tokens = MAX_SOURCE_TOKENS if limit is None else min(MAX_SOURCE_TOKENS, limit - 1)
        self._has_spaces = writes_spaces(self.layer.source_language), writes_spaces(self.layer.target_language)
        self._attention = cross_attention_names(self.model)[self.config.layer]

    def links(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[AlignmentLink]]:
        """Return the word alignment of each pair, as links between spans of characters.

        In a language that is written without spaces, each token counts as a word. Tokens after the first
        MAX_SOURCE_TOKENS have no links. A pair with an empty side has no links.
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
            for row, weights in zip(batch, self._attention_weights([pairs[row] for row in batch]), strict=True):
                links[row] = self._pair_links(pairs[row], (sources[row], targets[row]), weights)
        return links

    def _pair_links(
        self, pair: tuple[list[TokenSpan], list[TokenSpan]], texts: tuple[str, str], weights: np.ndarray
    ) -> list[AlignmentLink]:
        """Link the words of a pair, given the padded attention weights of its tokens (T, S)."""
        source, target = pair
        source_words, target_words = (_group_by_word(*side) for side in zip(pair, texts, self._has_spaces, strict=True))
        word_weights = _word_weights(weights[: len(target), : len(source)], source_words, target_words)
        return [
            AlignmentLink(
                source[source_words[i][0]].start,
                source[source_words[i][-1]].end,
                target[target_words[j][0]].start,
                target[target_words[j][-1]].end,
            )
            for i, j in _link_words(word_weights)
        ]

    def _attention_weights(self, pairs: Sequence[tuple[list[TokenSpan], list[TokenSpan]]]) -> np.ndarray:
        """Return the attention weights (B, T, S) of pairs, averaged over heads, for all target tokens except EOS."""
        sources, targets = ([[span.token for span in side] for side in sides] for sides in zip(*pairs, strict=True))
        maps = forced_attention(self.model, sources, targets, last=self._attention)
        weights = maps[self._attention].weights.mean(dim=1).float().cpu().numpy()  # (B, T + 1, S)
        return weights[:, 1:] if self.config.shift else weights[:, :-1]


def cross_attention_names(model: Seq2Seq) -> list[str]:
    """Return the names of the cross-attention modules, layer by layer."""
    return [name for name, _ in model.named_modules() if name.rpartition(".")[2] == "cross_attention"]


def _group_by_word(tokens: Sequence[TokenSpan], text: str, has_spaces: bool) -> list[list[int]]:
    """Group the indices of the tokens of a text by word.

    A token without characters, such as ▁ at the start of a word, belongs to the following word.

    Args:
        tokens: The tokens.
        text: The text.
        has_spaces: Whether the language separates words by spaces. If not, every token is a word.
    """
    starts = [match.start() for match in WORD_OR_PUNCTUATION.finditer(text)]
    groups: list[list[int]] = []
    previous_word: int | None = None
    for index, token in enumerate(tokens):
        word = bisect_right(starts, token.start) if token.end > token.start else None
        if groups and (previous_word is None or (has_spaces and word == previous_word)):
            groups[-1].append(index)
        else:
            groups.append([index])
        previous_word = word
    return groups


def _word_weights(weights: np.ndarray, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> np.ndarray:
    """Return the weights between words (target words, source words), given those between tokens (T, S).

    The weight between two words is the sum over the tokens of the source word, and the mean over those of the target
    word.
    """
    source_starts, target_starts = ([tokens[0] for tokens in words] for words in (sources, targets))
    by_source = np.add.reduceat(weights, source_starts, axis=1)
    lengths = np.array([len(tokens) for tokens in targets], np.float32)
    return np.add.reduceat(by_source, target_starts, axis=0) / lengths[:, None]


def _link_words(weights: np.ndarray) -> list[tuple[int, int]]:
    """Return the (source word, target word) indices of all links, given weights (target words, source words).

    Words that are each other's best match are linked. Another source word is linked to its best target word, if this
    has no such link or is linked to a neighbor of the source word.
    """
    best_source, best_target = weights.argmax(axis=1).tolist(), weights.argmax(axis=0).tolist()
    source_of = {target: source for target, source in enumerate(best_source) if best_target[source] == target}
    linked_sources = set(source_of.values())
    one_sided_links = [
        (source, target)
        for source, target in enumerate(best_target)
        if source not in linked_sources and (target not in source_of or abs(source_of[target] - source) == 1)
    ]
    return sorted([(source, target) for target, source in source_of.items()] + one_sided_links)


def choose_alignment(
    model: Seq2Seq, text_layer: TextLayer, pairs: Sequence[tuple[str, str]], batch_tokens: int
) -> AlignmentConfig:
    """Return the decoder layer and the step whose attention links the most names and numbers correctly.

    Args:
        model: The model, in evaluation mode.
        text_layer: The text layer of the model.
        pairs: Sources with their translations. A name or number that occurs once on both sides should be linked to
            itself alone. If no pair has one, a placeholder is inserted at the start of both sides of each pair.
        batch_tokens: Maximum number of tokens of a batch on each side, padding included.
    """
    anchored = [
        (source, target, name) for source, target in pairs for name in shared_names_and_numbers(source, target)[:1]
    ]
    if not anchored:
        anchor = placeholder(0) if text_layer.placeholder_count else "1"
        anchored = [(f"{anchor} {source}", f"{anchor} {target}", anchor) for source, target in pairs]
    sources, targets = [source for source, _, _ in anchored], [target for _, target, _ in anchored]

    def count_correct_links(config: AlignmentConfig) -> int:
        """Return the number of anchors that are linked to their translation, and to nothing else."""
        count = 0
        all_links = Aligner(model, text_layer, config, batch_tokens).links(sources, targets)
        for (source, target, anchor), links in zip(anchored, all_links, strict=True):
            source_start, target_start = source.index(anchor), target.index(anchor)
            source_end = source_start + len(anchor)
            anchor_links = [link for link in links if link.source_start < source_end and link.source_end > source_start]
            span = (
                min((link.target_start for link in anchor_links), default=0),
                max((link.target_end for link in anchor_links), default=0),
            )
            if span == (target_start, target_start + len(anchor)):
                count += 1
        return count

    configs = [
        AlignmentConfig(layer=layer, shift=shift)
        for layer in range(len(cross_attention_names(model)))
        for shift in (0, 1)
    ]
    return max(configs, key=count_correct_links)


def word_links(links: Sequence[AlignmentLink], source: str, target: str) -> list[tuple[int, int]]:
    """Return the pairs of indices of linked source and target words, sorted and without duplicates.

    Words are separated by whitespace, as in Pharaoh's format.
    """
    words = [[match.span() for match in SPLIT_WORD.finditer(text)] for text in (source, target)]
    starts = [[start for start, _ in side] for side in words]

    def word_at(side: int, start: int, end: int) -> int | None:
        """Return the index of the last word in a span of characters; None if the span is whitespace."""
        index = bisect_left(starts[side], end) - 1
        return index if index >= 0 and words[side][index][1] > start else None

    pairs = {
        (word_at(0, link.source_start, link.source_end), word_at(1, link.target_start, link.target_end))
        for link in links
    }
    return sorted((i, j) for i, j in pairs if i is not None and j is not None)
