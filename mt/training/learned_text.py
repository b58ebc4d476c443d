"""The values that a text layer learns from the training text before the first update: word counts, usual lengths,
final punctuation."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import datasets
import numpy as np
from pyarrow.compute import count_substring_regex
from pyarrow.compute import sum as sum_of

from mt.config import MAX_SOURCE_TOKENS, TextLayerConfig, TrainConfig
from mt.config.text import Terms
from mt.core.columns import numbers, tables, texts
from mt.core.language import writes_spaces
from mt.data.corpus import Corpus, evenly_spaced
from mt.storage.model_description import TextLayerDescription
from mt.storage.model_folder import terms_checksum
from mt.text.layer import TextLayer
from mt.text.normalization.final_punctuation import learn_final_marks
from mt.text.normalization.spelling import MIN_WORD_COUNT, Spelling, count_source_words
from mt.text.placeholders.placeholders import PLACEHOLDER
from mt.text.placeholders.values import DOTS, ELLIPSIS, IN_WORD
from mt.text.segmentation.sentences import usual_max_sentences
from mt.text.subwords.tokenizer import Tokenizer, TokenizerPair
from mt.translation.trained_model import read_spelling

SENTENCE_LINES = 20_000
"""Training sources in which sentences are counted."""
WORD_LINES = 2_000_000
"""Training sources in which words are counted."""
LENGTH_QUANTILES = {"long_source": 0.999, "usual_source": 0.95}
"""Length limits of TextLayerDescription, each with its quantile of the training sources' lengths (docs/lab-notebook.md,
"Long sentences")."""
MIN_SYMBOL_COUNT, MIN_SYMBOL_SHARE = 1000, 0.1
"""A punctuation mark or symbol with fewer occurrences, and fewer per training source, is rare. Of marks put between the
words of everyday sentences, a small model keeps those with 93 to 780 occurrences in 4 to 28 %, one with 1,090 in 57 %
(docs/lab-notebook.md, "Rare characters")."""

LearnedSettings = dict[str, object]
"""Learned fields of TextLayerDescription by name."""


def text_layer(
    config: TrainConfig,
    tokenizers: TokenizerPair,
    learned: Mapping[str, object],
    spelling: Spelling | None,
    terms: Terms,
) -> TextLayer:
    """Build the text layer of a run.

    Args:
        config: The config of the run, with the settings of the text layer.
        tokenizers: The tokenizers of the run.
        learned: Learned fields of TextLayerDescription by name.
        spelling: The word counts for correcting typing errors; None to correct none.
        terms: The glossary.
    """
    settings = {name: getattr(config.text, name) for name in TextLayerConfig.model_fields}
    rules = TextLayerDescription(**settings | dict(learned) | {"terms": terms_checksum(terms)})
    return TextLayer(rules, tokenizers, config.data.source_language, config.data.target_language, spelling, terms)


def learn_text_settings(
    config: TrainConfig, corpus: Corpus, origin: Path | None
) -> tuple[LearnedSettings, Spelling | None]:
    """Learn fields of TextLayerDescription, and the word counts for correcting typing errors.

    The fields are ``max_sentences``, ``final_marks`` and ``min_word_count``.

    Args:
        config: The config of the run.
        corpus: The corpus of the run.
        origin: The folder of the run to resume or of the base run, whose word counts are included; None if there is
            none.

    Returns:
        The learned fields by name, and the word counts; None instead of these if typing errors are not corrected.
    """
    language = config.data.source_language
    if not config.text.enabled:
        return {}, None
    lines = evenly_spaced(corpus.train, SENTENCE_LINES)
    learned: LearnedSettings = {"max_sentences": usual_max_sentences(texts(lines, "source"), language)}
    if not writes_spaces(language):
        return learned, None
    learned["final_marks"] = learn_final_marks(
        zip(texts(lines, "source"), texts(lines, "target"), strict=True), language
    )
    known = read_spelling(origin) if origin else None
    if known and origin == config.folder:
        return learned | {"min_word_count": known.min_count}, known
    counts = count_source_words(texts(evenly_spaced(corpus.train, WORD_LINES), "source"), language)
    if known:
        counts = known.counts_with(counts)
    if not counts:  # the text consists of numbers, for example
        return learned, None
    spelling = Spelling(counts, language, target_language=config.data.target_language)
    return learned | {"min_word_count": MIN_WORD_COUNT}, spelling


def rare_characters(train: datasets.Dataset, tokenizer: Tokenizer, base: TextLayerDescription | None) -> dict[str, int]:
    """Count the occurrences of each rare character of the vocabulary in the training sources.

    A letter or digit is rare if it does not occur at all. Another character is rare if it occurs fewer times than
    MIN_SYMBOL_COUNT and MIN_SYMBOL_SHARE per pair. Several full stops count as an ellipsis.

    Args:
        train: The encoded training pairs.
        tokenizer: The tokenizer of the sources.
        base: The text layer of the base run, whose counts are added; None if there is none. Only characters that were
            rare there can be rare.

    Returns:
        Lower-case character → count.
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
    min_symbol_count = min(MIN_SYMBOL_COUNT, MIN_SYMBOL_SHARE * len(train))
    return {
        character: count
        for character, count in sorted(counts.items())
        if count < (1 if IN_WORD.match(character) else min_symbol_count)
        and (base is None or character in base.rare_characters)
        and not PLACEHOLDER.match(character)
    }


def length_limits(train: datasets.Dataset, base: TextLayerDescription | None) -> LearnedSettings:
    """Return the length limits of the text layer by name: LENGTH_QUANTILES of the sources' lengths in tokens, but at
    most MAX_SOURCE_TOKENS.

    Args:
        train: The encoded training pairs.
        base: The text layer of the base run, whose limits are lower bounds; None if there is none.
    """
    lengths = numbers(train, "source_length")
    limits: LearnedSettings = {}
    for name, share in LENGTH_QUANTILES.items():
        quantile = int(np.quantile(lengths, share, method="inverted_cdf"))
        limits[name] = min(MAX_SOURCE_TOKENS, max(quantile, getattr(base, name) if base else 1))
    return limits
