"""The facts that a text layer learns from the training text before the first update."""

from collections.abc import Mapping
from pathlib import Path

import datasets
import numpy as np

from mt.config import MAX_SOURCE_TOKENS, TextLayerConfig, TrainConfig
from mt.core.columns import numbers, texts
from mt.core.language import writes_spaces
from mt.data.corpus import Corpus, evenly_spaced
from mt.storage.model_description import TextLayerDescription
from mt.text.layer import TextLayer
from mt.text.normalization.final_punctuation import learn_marks
from mt.text.normalization.spelling import MIN_WORD_COUNT, Spelling, count_words
from mt.text.segmentation.sentences import usual_max_sentences
from mt.text.subwords.tokenizer import TokenizerPair
from mt.translation.trained_model import read_spelling

SENTENCE_LINES = 20_000
"""Training lines in which sentences are counted."""
WORD_LINES = 2_000_000
"""Training lines in which words are counted."""
LENGTH_QUANTILES = {"long_source": 0.999, "usual_source": 0.95}
"""Quantiles of the training sources' lengths that become limits (docs/lab-notebook.md, "Long sentences")."""

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


def length_limits(train: datasets.Dataset, base: TextLayerDescription | None) -> Facts:
    """Return the limits of the sources' lengths: LENGTH_QUANTILES of the encoded pairs, at least those of the base."""
    lengths = numbers(train, "source_length")
    limits: Facts = {}
    for name, share in LENGTH_QUANTILES.items():
        quantile = int(np.quantile(lengths, share, method="inverted_cdf"))
        limits[name] = min(MAX_SOURCE_TOKENS, max(quantile, getattr(base, name) if base else 1))
    return limits
