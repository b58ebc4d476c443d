"""Estimated times of a run's stages before and after training. They do not depend on the number of updates."""

from collections.abc import Callable
from dataclasses import dataclass

from mt.config import ModelConfig
from mt.core.language import has_many_characters

CHARACTERS_PER_TOKEN = {False: 4.2, True: 1.4}
"""True: of languages with many characters, such as Chinese. False: of languages with an alphabet."""
MAX_ALIGNMENT_PAIRS = 500
"""Validation pairs that the attention head for word alignment is chosen by, after the last update."""
MAX_CONFIDENCE_PAIRS = 1000
"""Validation pairs that the confidence is fitted on, after the last update, and test pairs that it is measured on."""
PREPARATION_SECONDS = 4.0
PREPARATION_SECONDS_PER_PAIR = 60e-6
"""Time for training the tokenizer and encoding the pairs, between the choice of settings and the first update."""
SCORING_SECONDS = 3.0
SCORING_SECONDS_PER_PAIR = 1e-3
"""Time for scores, word counts and files after the test set has been translated."""


@dataclass(frozen=True)
class CorpusSize:
    """The size of a corpus, counted before there is a tokenizer. choice.json records it."""

    pairs: int
    """Training pairs in an epoch, after cleaning. In a mixture, each corpus counts by its weight."""
    source_characters: float
    """Mean length of a source."""
    target_characters: float
    """Mean length of a target."""
    distinct_words: int | None
    """Different words of both sides together; None if only a sample of the pairs was read."""
    valid_pairs: int
    test_pairs: int


@dataclass(frozen=True)
class Speed:
    """The measured speed of one model on this machine, in seconds."""

    update: float
    """The constant part of an update's time."""
    token: float
    """The part of an update's time that grows with the batch, per target token."""
    greedy: float
    """Greedy search, per sentence."""
    beam: float
    """Beam search with the run's decoding settings, per sentence."""


Measure = Callable[[ModelConfig, int], Speed]
"""Measures the speed of a model, given its config and the size of its vocabulary."""


def overhead_seconds(corpus: CorpusSize, speed: Speed) -> float:
    """Estimate the seconds from the choice of settings to the end of the run, except for updates and validations."""
    preparation = PREPARATION_SECONDS + PREPARATION_SECONDS_PER_PAIR * corpus.pairs
    alignment = min(corpus.valid_pairs, MAX_ALIGNMENT_PAIRS) * speed.greedy
    confidence = sum(min(pairs, MAX_CONFIDENCE_PAIRS) for pairs in (corpus.valid_pairs, corpus.test_pairs)) * speed.beam
    scoring = corpus.test_pairs * (speed.beam + SCORING_SECONDS_PER_PAIR) + SCORING_SECONDS
    return preparation + alignment + confidence + scoring


def estimated_tokens(characters: float, language: str) -> float:
    """Estimate the number of tokens, EOS included, of a text with this many characters."""
    return 1 + characters / CHARACTERS_PER_TOKEN[has_many_characters(language)]
