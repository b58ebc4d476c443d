"""Judge all pairs of a corpus by the cleaning rules: the stage of the pipeline between the corpus and the text layer.

Only training pairs are dropped later. Faulty validation and test pairs are only counted, so that runs with different
rules have the same test set.

``warn_of_shifted_lines`` finds shifted lines: from some line on, each target belongs to a source a few lines before or
after it. IBM model 1 is trained on a sample of the sources, each paired with the target at some offset. Shifted lines
score far better at their offset than at offset 0. In repetitive corpora, the target of a neighbor scores nearly as well
as the right one, but never better.
"""

import logging
import re
from collections.abc import Sequence

import datasets
import numpy as np
from tqdm import tqdm

from mt.config import DataConfig
from mt.core.columns import evenly_spaced_rows, numbers, tables
from mt.data.cleaning.findings import CleaningFindings, training_files
from mt.data.cleaning.rules import RULES, PairBatch
from mt.data.cleaning.sides import CorpusSide, Identifier, check_languages
from mt.data.cleaning.translations import IBMModel1
from mt.data.corpus import Corpus
from mt.data.pairs import KEYS, SIDES, read_texts, side_texts

logger = logging.getLogger(__name__)

PROBED_PAIRS = 50_000
"""The most training pairs in the sample whose scripts, words and languages are counted."""

MIN_PAIRS = 500
"""In fewer training pairs, no shift is looked for."""
SAMPLED_PAIRS = 2000
"""The most training pairs in the sample."""
WINDOW_PAIRS = 50
"""The number of successive pairs of the sample whose mean scores are compared."""
OFFSETS = (-3, -2, -1, 1, 2, 3)
MIN_ALIGNED_SCORE = 1.0
"""If all windows have a larger mean score per word, no pairs are shifted, and no other offset is tried."""
MIN_GAIN = 0.5
"""The smallest mean gain in the score per word that shows a shift. The gain of a pair counts from -1 to 1. Without a
shift, the gains of other offsets are mostly negative; with one, most gains of the right offset are 1."""


def find_faulty_pairs(corpus: Corpus, config: DataConfig, symbols: Sequence[str] = ()) -> CleaningFindings:
    """Judge all pairs of a corpus by the rules that ``config`` names.

    Args:
        corpus: The corpus. Every split must have the columns KEYS.
        config: The section ``data`` of the settings.
        symbols: The user-defined symbols, which the rules for single pairs do not see.

    Raises:
        InputError: The sides of the corpus are exchanged, or both are in one language.
    """
    splits = {"train": corpus.train, "valid": corpus.valid, "test": corpus.test}
    pairs = datasets.concatenate_datasets([split.select_columns([*SIDES, *KEYS]) for split in splits.values()])
    findings = CleaningFindings(config.cleaning_rules, {name: len(split) for name, split in splits.items()})
    identifier = Identifier()
    source, target = sides = (
        CorpusSide(config.source_language, identifier),
        CorpusSide(config.target_language, identifier),
    )
    for sources, targets in read_texts(pairs, evenly_spaced_rows(len(corpus.train), PROBED_PAIRS, round_down=True)):
        source.learn(sources)
        target.learn(targets)
    if "language" in config.cleaning_rules:
        check_languages(source, target, f"{config.without_rule('language')} trains on them nevertheless.")
        findings.scores["language"] = np.empty(len(pairs), np.float32)
    symbol = re.compile("|".join(map(re.escape, symbols)))
    end = 0
    with tqdm(total=len(pairs), desc="cleaning", unit=" pairs", disable=None, leave=False) as bar:
        for table in tables(pairs, (*SIDES, *KEYS)):
            start, end = end, end + len(table)
            keys = np.stack([table[key].to_numpy() for key in KEYS], axis=1)
            sources, targets = ([symbol.sub("", text) for text in side] for side in side_texts(table))
            batch = PairBatch((sources, targets), keys, sides, config.max_length)
            findings.lengths[start:end] = batch.lengths
            findings.keys[start:end] = batch.keys_without_digits()
            if "language" in findings.rules:
                findings.scores["language"][start:end] = batch.margins
                findings.exchanged[start:end] = batch.exchanged
            for name in findings.rules:
                if find := RULES[name].find:
                    findings.record(name, start + np.flatnonzero(find(batch)))
            bar.update(len(table))
    for name in findings.rules:
        if judge := RULES[name].judge:
            findings.record(name, judge(pairs, findings))
    return findings


def warn_of_shifted_lines(corpus: Corpus) -> None:
    """Log a warning if the training lines seem to be shifted, with the file and the line where that begins.

    Args:
        corpus: The corpus before cleaning.
    """
    if len(corpus.train) < MIN_PAIRS or not (shift := find_shift(corpus.train)):
        return
    _, offset, first = shift
    name, start, _ = next(file for file in training_files(corpus) if first < file[2])
    logger.warning(
        "%s: lines seem shifted by %d from about line %s on: line N of the sources belongs to line N%+d of the "
        "targets. Compare the two sides there, and insert the missing line or remove the surplus one",
        name, abs(offset), f"{first - start + 1:,}", offset,
    )  # fmt: skip


def find_shift(train: datasets.Dataset) -> tuple[float, int, int] | None:
    """Return how clear a shift is, how many lines after its source each target stands, and the id of the first such
    pair of the sample. None if there is no shift."""
    ids = numbers(train, "id")
    rows = evenly_spaced_rows(len(ids), SAMPLED_PAIRS, round_down=True)

    def scores(offset: int) -> np.ndarray:
        """Return the score per word of each sampled source with the target at an offset, (R,); NaN without one."""
        partner_ids = ids[rows] + offset
        has_partner = np.isin(partner_ids, ids)
        partners = np.searchsorted(ids, partner_ids[has_partner])
        sides = zip(read_texts(train, rows[has_partner]), read_texts(train, partners), strict=True)
        model = IBMModel1((sources, targets) for (sources, _), (_, targets) in sides)
        sums, words = model.scores(model.learned, is_learned=True)
        per_word = np.full(len(rows), np.nan)
        per_word[has_partner] = sums / np.maximum(1, words)
        return per_word

    aligned = scores(0)
    if _window_means(aligned).min() > MIN_ALIGNED_SCORE:
        return None
    shifts = []
    for offset in OFFSETS:
        gains = np.clip(scores(offset) - aligned, -1, 1)  # single gains of rare words are far larger
        known = np.flatnonzero(~np.isnan(gains))
        if len(known) < WINDOW_PAIRS:  # where every second line is blank, for example
            continue
        means = _window_means(gains[known])
        if means.max() > MIN_GAIN:
            end = int(np.argmax(means > MIN_GAIN)) + WINDOW_PAIRS
            start = np.argmin(np.cumsum([0, *gains[known[:end]]]))  # up to there, the gains are negative
            shifts.append((float(means.max()), offset, int(ids[rows[known[start]]])))
    return max(shifts, default=None)


def _window_means(values: np.ndarray) -> np.ndarray:
    """Return the mean of each WINDOW_PAIRS successive values."""
    return np.convolve(values, np.full(WINDOW_PAIRS, 1 / WINDOW_PAIRS), "valid")
