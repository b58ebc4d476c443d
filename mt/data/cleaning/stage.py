"""Apply the cleaning rules to all pairs of a corpus, after it is loaded and before the text layer sees it.

Only training pairs are dropped later. Faulty validation and test pairs are counted and kept, so that runs with
different rules have the same test set.

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
from mt.data.cleaning.sides import BatchLanguageIdentifier, CorpusSide, check_languages
from mt.data.cleaning.translations import IBMModel1
from mt.data.corpus import Corpus
from mt.data.pairs import KEYS, SIDES, read_texts, side_texts

logger = logging.getLogger(__name__)

PROBED_PAIRS = 50_000
"""The maximum number of training pairs in the sample for the statistics of ``CorpusSide``."""

MIN_PAIRS = 500
"""Shifted lines are not searched for in fewer training pairs."""
SAMPLED_PAIRS = 2000
"""The maximum number of training pairs in the sample that is searched for shifted lines."""
WINDOW_PAIRS = 50
"""The number of consecutive pairs of the sample in a window. Mean scores of windows are compared."""
OFFSETS = (-3, -2, -1, 1, 2, 3)
MIN_ALIGNED_SCORE = 1.0
"""If the mean score per word of every window is larger, the lines are not shifted, and no other offset is tried."""
MIN_GAIN = 0.5
"""The smallest mean gain in the score per word that indicates a shift. The gain of a pair is clipped to -1 … 1. Without
a shift, the gains of other offsets are mostly negative; with a shift, most gains of the right offset are 1."""


def find_faulty_pairs(corpus: Corpus, config: DataConfig, symbols: Sequence[str] = ()) -> CleaningFindings:
    """Apply the cleaning rules of ``config`` to all pairs of a corpus.

    Args:
        corpus: The corpus. Every split must have the columns KEYS.
        config: The section ``data`` of the settings.
        symbols: The user-defined symbols. They are removed from the texts before the rules for single pairs.

    Raises:
        InputError: The sides of the corpus are swapped, or both are in one language.
    """
    splits = {"train": corpus.train, "valid": corpus.valid, "test": corpus.test}
    pairs = datasets.concatenate_datasets([split.select_columns([*SIDES, *KEYS]) for split in splits.values()])
    findings = CleaningFindings(config.cleaning_rules, {name: len(split) for name, split in splits.items()})
    identifier = BatchLanguageIdentifier()
    source, target = sides = (
        CorpusSide(config.source_language, identifier),
        CorpusSide(config.target_language, identifier),
    )
    for sources, targets in read_texts(pairs, evenly_spaced_rows(len(corpus.train), PROBED_PAIRS, round_down=True)):
        source.add_texts(sources)
        target.add_texts(targets)
    if "language" in config.cleaning_rules:
        check_languages(source, target, f"To train on them in spite of this, set {config.without_rule('language')}.")
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
                findings.is_swapped[start:end] = batch.is_swapped
            for name in findings.rules:
                if match_batch := RULES[name].match_batch:
                    findings.record(name, start + np.flatnonzero(match_batch(batch)))
            bar.update(len(table))
    for name in findings.rules:
        if match_corpus := RULES[name].match_corpus:
            findings.record(name, match_corpus(pairs, findings))
    return findings


def warn_of_shifted_lines(corpus: Corpus) -> None:
    """Log a warning if the training lines seem to be shifted, with the file and line where the shift begins.

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
    """Find the clearest shift of the training lines; None if they are not shifted.

    Returns:
        The largest mean gain of a window, the offset from each source to its target in lines, and the id of the first
        shifted pair of the sample.
    """
    ids = numbers(train, "id")
    rows = evenly_spaced_rows(len(ids), SAMPLED_PAIRS, round_down=True)

    def scores(offset: int) -> np.ndarray:
        """Return the score per word of each sampled source with the target at an offset, (R,); NaN if it has none."""
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
        gains = np.clip(scores(offset) - aligned, -1, 1)  # rare words have far larger gains
        known = np.flatnonzero(~np.isnan(gains))
        if len(known) < WINDOW_PAIRS:  # where every second line is blank, for example
            continue
        means = _window_means(gains[known])
        if means.max() > MIN_GAIN:
            end = int(np.argmax(means > MIN_GAIN)) + WINDOW_PAIRS
            start = np.argmin(np.cumsum([0, *gains[known[:end]]]))  # the gains before the shift are negative
            shifts.append((float(means.max()), offset, int(ids[rows[known[start]]])))
    return max(shifts, default=None)


def _window_means(values: np.ndarray) -> np.ndarray:
    """Return the mean of each WINDOW_PAIRS consecutive values."""
    return np.convolve(values, np.full(WINDOW_PAIRS, 1 / WINDOW_PAIRS), "valid")
