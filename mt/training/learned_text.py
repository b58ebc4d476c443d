"""The facts that a text layer learns from the training text before the first update."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import datasets
import numpy as np
from pyarrow.compute import count_substring_regex
from pyarrow.compute import sum as sum_of

from mt.config import MAX_SOURCE_TOKENS, TextLayerConfig, TrainConfig
from mt.core.columns import numbers, tables, texts
from mt.core.language import writes_spaces
from mt.data.corpus import Corpus, evenly_spaced
from mt.storage.model_description import TextLayerDescription
from mt.text.layer import TextLayer
from mt.text.normalization.final_punctuation import learn_marks
from mt.text.normalization.spelling import MIN_WORD_COUNT, Spelling, count_words
from mt.text.placeholders.placeholders import PLACEHOLDER
from mt.text.placeholders.values import DOTS, ELLIPSIS, IN_WORD
from mt.text.segmentation.sentences import usual_max_sentences
from mt.text.subwords.tokenizer import Tokenizer, TokenizerPair
from mt.translation.trained_model import read_spelling

SENTENCE_LINES = 20_000
"""Training lines in which sentences are counted."""
WORD_LINES = 2_000_000
"""Training lines in which words are counted."""
LENGTH_QUANTILES = {"long_source": 0.999, "usual_source": 0.95}
"""Quantiles of the training sources' lengths that become limits (docs/lab-notebook.md, "Long sentences")."""
MIN_SYMBOL_COUNT, MIN_SYMBOL_SHARE = 1000, 0.1
"""A punctuation mark or symbol with fewer occurrences, and fewer per training source, is rare. Of marks put between the
words of everyday sentences, a small model keeps those with 93 to 780 occurrences in 4 to 28 %, one with 1,090 in 57 %
(docs/lab-notebook.md, "Rare characters")."""

Facts = dict[str, object]
"""Learned fields of TextLayerDescription."""


def text_layer(
    config: TrainConfig, tokenizers: TokenizerPair, facts: Mapping[str, object], spelling: Spelling | None
) -> TextLayer:
    """Return the text layer of a run, from its settings and learned facts."""
    settings = {name: getattr(config.text, name) for name in TextLayerConfig.model_fields}
    rules = TextLayerDescription(**settings | dict(facts))
    return TextLayer(rules, tokenizers, config.data.source_language, config.data.target_language, spelling)


def learn_facts(config: TrainConfig, corpus: Corpus, origin: Path | None) -> tuple[Facts, Spelling | None]:
    """Learn ``max_sentences``, ``final_marks`` and ``min_word_count`` of the text layer, and the words for correcting
    typing errors.

    Args:
        config: The run's config.
        corpus: Its corpus.
        origin: The folder of the resumed run or of the initial weights, whose words the model knows, too.

    Returns:
        The facts, and None for the spelling if typing errors are not corrected.
    """
    language = config.data.source_language
    if not config.text.enabled:
        return {}, None
    lines = evenly_spaced(corpus.train, SENTENCE_LINES)
    facts: Facts = {"max_sentences": usual_max_sentences(texts(lines, "source"), language)}
    if not writes_spaces(language):
        return facts, None
    facts["final_marks"] = learn_marks(zip(texts(lines, "source"), texts(lines, "target"), strict=True), language)
    known = read_spelling(origin) if origin else None
    if known and origin == config.folder:
        return facts | {"min_word_count": known.min_count}, known
    counts = count_words(texts(evenly_spaced(corpus.train, WORD_LINES), "source"), language)
    if known:
        counts = known.counts_with(counts)
    if not counts:  # there are only numbers, for instance
        return facts, None
    spelling = Spelling(counts, language, target_language=config.data.target_language)
    return facts | {"min_word_count": MIN_WORD_COUNT}, spelling


def rare_characters(train: datasets.Dataset, tokenizer: Tokenizer, base: TextLayerDescription | None) -> dict[str, int]:
    """Return the number of occurrences of the rare characters of a vocabulary: letters and digits that do not occur at
    all, and other characters that occur fewer than MIN_SYMBOL_COUNT times. An ellipsis counts as one, also if it is
    written as several full stops.

    Args:
        train: The encoded training pairs.
        tokenizer: The tokenizer of the sources.
        base: The text layer of the initial weights, whose training text counts, too.
    """
    times = np.zeros(tokenizer.vocabulary_size, dtype=np.int64)
    ellipses = 0
    for table in tables(train, ["source", "source_ids"]):
        tokens = table["source_ids"].combine_chunks().flatten().to_numpy()
        times += np.bincount(tokens, minlength=len(times))
        ellipses += sum_of(count_substring_regex(table["source"], rf"{DOTS}|{ELLIPSIS}")).as_py()
    counts = Counter(base.rare_characters if base else ())
    for subword, count in zip(tokenizer.subwords(range(len(times))), times.tolist(), strict=True):
        if tokenizer.has_subword(subword):
            for character in subword.lower():
                counts[character] += count
    counts[ELLIPSIS] = ellipses + (base.rare_characters.get(ELLIPSIS, 0) if base else 0)
    fewest_symbols = min(MIN_SYMBOL_COUNT, MIN_SYMBOL_SHARE * len(train))
    return {
        character: count
        for character, count in sorted(counts.items())
        if count < (1 if IN_WORD.match(character) else fewest_symbols)
        and (base is None or character in base.rare_characters)
        and not PLACEHOLDER.match(character)
    }


def length_limits(train: datasets.Dataset, base: TextLayerDescription | None) -> Facts:
    """Return the limits of the sources' lengths: LENGTH_QUANTILES of the encoded pairs, at least those of the base."""
    lengths = numbers(train, "source_length")
    limits: Facts = {}
    for name, share in LENGTH_QUANTILES.items():
        quantile = int(np.quantile(lengths, share, method="inverted_cdf"))
        limits[name] = min(MAX_SOURCE_TOKENS, max(quantile, getattr(base, name) if base else 1))
    return limits
