"""Estimates of the parts of a run's time that do not depend on its number of updates."""

from dataclasses import dataclass

from mt.core.language import has_many_characters

CHARACTERS_PER_PIECE = {False: 4.2, True: 1.4}
"""Of languages with an alphabet, and of those with many characters."""
ALIGNED_PAIRS = 500
"""The most validation pairs by which the attention that aligns words is chosen, after the last update."""
PREPARING = 4.0
PREPARING_A_PAIR = 60e-6
"""Seconds until the first update, from the choice on, for the tokenizer and for cutting the pairs."""
SCORING = 3.0
SCORING_A_PAIR = 1e-3
"""Seconds for scores, word counts and files after the test set has been translated."""


@dataclass(frozen=True)
class CorpusFacts:
    """The facts about a corpus that the rules use, before there is a tokenizer."""

    pairs: int
    """Training pairs in an epoch, after cleaning. In a mixture, each corpus counts by its weight."""
    source_characters: float
    """Mean length of a source."""
    target_characters: float
    distinct_words: int | None
    """Of both sides; None if only some of the pairs were looked at."""
    valid_pairs: int
    test_pairs: int


@dataclass(frozen=True)
class Speed:
    """How fast a model is on this machine, in seconds."""

    update: float
    """The part of an update's time that does not depend on the batch."""
    token: float
    """The rest of it, for each target token of the batch."""
    greedy: float
    """Of greedy search, for each sentence."""
    beam: float
    """Of the search that the test set is translated with, for each sentence."""


def overhead_seconds(facts: CorpusFacts, speed: Speed) -> float:
    """Return about how many seconds a run takes after the choice, without updates and validations."""
    return PREPARING + PREPARING_A_PAIR * facts.pairs + seconds_after_training(facts, speed)


def seconds_after_training(facts: CorpusFacts, speed: Speed) -> float:
    """Return the estimated seconds of a run after its last validation."""
    testing = facts.test_pairs * (speed.beam + SCORING_A_PAIR) + min(facts.valid_pairs, ALIGNED_PAIRS) * speed.greedy
    return testing + SCORING


def tokens_of_text(characters: float, language: str) -> float:
    """Return about how many tokens a text of that many characters is cut into, EOS included."""
    return 1 + characters / CHARACTERS_PER_PIECE[has_many_characters(language)]
