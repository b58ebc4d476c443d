"""The stage between the corpus and the text layer: judges every pair by the rules.

Only training pairs will be dropped. Validation and test pairs, which have been held out before, are judged by the same
rules, and it is told how many of them would be found; so two runs with different rules have the same test set.
"""

import logging
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from mt.config import DataConfig
from mt.data.cleaning.findings import Findings, Histogram
from mt.data.cleaning.language_identification import Identifier
from mt.data.cleaning.pairs import Pairs
from mt.data.cleaning.rules import OF_ONE_PAIR, Batch
from mt.data.cleaning.sides import Side, check_languages
from mt.data.cleaning.translations import score_translations
from mt.data.cleaning.whole_corpus import DEVIATIONS, boilerplate, duplicates, length_deviations, pair_hashes
from mt.data.corpus import KEYS, Corpus

logger = logging.getLogger(__name__)

PROBED = 50_000
"""From so many training pairs it is learnt which scripts and words are usual on either side."""


class _Marks:
    """The first rule that finds each pair, and the score that this rule judges by. Rules are applied one by one, in
    their order."""

    def __init__(self, rules: tuple[str, ...], number: int) -> None:
        self.rules = rules
        self.rule = np.zeros(number, dtype=np.int8)
        """The number of the rule, from 1; 0 for none."""
        self.score = np.full(number, np.nan, dtype=np.float32)

    def mark(self, rule: str, rows: np.ndarray, scores: np.ndarray | None = None) -> None:
        """Marks the pairs in some rows, except those that an earlier rule has found."""
        rows = rows[self.rule[rows] == 0]
        self.rule[rows] = self.rules.index(rule) + 1
        if scores is not None:
            self.score[rows] = scores[rows]

    def marked_by(self, rule: str) -> np.ndarray:
        """Returns which pairs a rule was the first to find, (N,) bool."""
        return self.rule == self.rules.index(rule) + 1

    def unmarked(self) -> np.ndarray:
        """Returns the rows of the pairs that no rule has found yet."""
        return np.flatnonzero(self.rule == 0)


class _Measured(NamedTuple):
    """What the rules that look at all pairs need to know of each."""

    lengths: np.ndarray
    """(N, 2) int32: the number of characters of each side."""
    keys: np.ndarray
    """(N, 2) int64: hashes of the two sides, which are equal if the texts differ in case, punctuation and digits."""
    margins: np.ndarray
    """(N,) float32: how much likelier another language is than the right one."""
    exchanged: np.ndarray
    """(N,) bool: whether each side is in the other side's language."""


def find_faulty(corpus: Corpus, config: DataConfig) -> Findings:
    """Applies the rules that ``config`` names.

    Args:
        corpus: With the columns KEYS in every split.

    Raises:
        InputError: The sides are exchanged, or both are in one language.
    """
    rules = config.cleaning_rules
    splits = {"train": corpus.train, "valid": corpus.valid, "test": corpus.test}
    pairs, learnt = Pairs(list(splits.values())), len(corpus.train)
    marks = _Marks(rules, len(pairs))
    sides = _learn_sides(pairs, learnt, config)
    measured = _judge_each(pairs, sides, config.max_length, marks)
    histograms = []

    def show(rule: str, scores: np.ndarray, random_scores: np.ndarray | None = None) -> None:
        found = marks.marked_by(rule)[:learnt]
        histograms.append(Histogram.of(rule, scores[:learnt], found, random_scores))

    if "language" in rules:
        show("language", measured.margins)
    if "length" in rules:
        deviations = length_deviations(measured.lengths, learnt)
        marks.mark("length", np.flatnonzero(np.abs(deviations) > DEVIATIONS), deviations)
        show("length", deviations)
    if "translation" in rules:
        rows = marks.unmarked()
        scored = score_translations(lambda chosen: pairs.texts(rows[chosen]), int((rows < learnt).sum()), len(rows))
        if scored is None:
            logger.warning("cleaning: there are too few pairs to learn which are translations: that rule finds none")
        else:
            scores = np.full(len(pairs), np.nan, dtype=np.float32)
            scores[rows] = scored.scores
            marks.mark("translation", rows[~scored.is_translation], scores)
            show("translation", scores, scored.random_scores)
    if "boilerplate" in rules:
        marks.mark("boilerplate", np.flatnonzero(boilerplate(measured.keys[:learnt])))
    if "duplicate" in rules:
        rows = marks.unmarked()
        rows = rows[rows < learnt]
        marks.mark("duplicate", rows[duplicates(pair_hashes(measured.keys[rows]))])

    ends = np.cumsum([len(split) for split in splits.values()])[:-1]
    return Findings(
        rules,
        dict(zip(splits, np.split(marks.rule, ends), strict=True)),
        dict(zip(splits, np.split(marks.score, ends), strict=True)),
        tuple(histograms),
        measured.exchanged[:learnt],
    )


def _learn_sides(pairs: Pairs, learnt: int, config: DataConfig) -> tuple[Side, Side]:
    identifier = Identifier()
    source, target = Side(config.source_language, identifier), Side(config.target_language, identifier)
    for sources, targets in pairs.texts(np.unique(np.linspace(0, learnt - 1, PROBED).astype(int))):
        source.learn(sources)
        target.learn(targets)
    if "language" in config.cleaning_rules:
        check_languages(source, target, f"{config.without_rule('language')} trains on them all the same")
    return source, target


def _judge_each(pairs: Pairs, sides: tuple[Side, Side], max_length: int, marks: _Marks) -> _Measured:
    """Applies the rules that judge each pair by itself, and measures what the others need."""
    number = len(pairs)
    measured = _Measured(
        np.zeros((number, 2), np.int32), np.zeros((number, 2), np.int64), np.zeros(number, np.float32),
        np.zeros(number, bool),
    )  # fmt: skip
    start = 0
    with tqdm(total=number, desc="cleaning", unit=" pairs", disable=None, leave=False) as bar:
        for table in pairs.tables(np.arange(number)):
            texts = table["source"].to_pylist(), table["target"].to_pylist()
            batch = Batch(texts, np.stack([table[key].to_numpy() for key in KEYS], axis=1), sides, max_length)
            rows = np.arange(start, start + len(table))
            measured.lengths[rows] = batch.lengths
            measured.keys[rows] = batch.keys_without_digits()
            if "language" in marks.rules:
                measured.margins[rows] = batch.margins()
                measured.exchanged[rows] = batch.exchanged()
            for rule in marks.rules:
                if rule in OF_ONE_PAIR:
                    marks.mark(rule, rows[batch.find(rule)], measured.margins if rule == "language" else None)
            start += len(table)
            bar.update(len(table))
    return measured
