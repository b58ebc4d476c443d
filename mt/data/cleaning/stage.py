"""Judge all pairs of a corpus by the cleaning rules: the stage of the pipeline between the corpus and the text layer.

Only training pairs are dropped later. Faulty validation and test pairs are only counted, so that runs with different
rules have the same test set.
"""

import re
from collections.abc import Sequence

import datasets
import numpy as np
from tqdm import tqdm

from mt.config import DataConfig
from mt.core.columns import evenly_spaced_rows, tables
from mt.data.cleaning.findings import CleaningFindings
from mt.data.cleaning.language_identification import Identifier
from mt.data.cleaning.rules import RULES, PairBatch
from mt.data.cleaning.sides import CorpusSide, check_languages
from mt.data.corpus import Corpus
from mt.data.pairs import KEYS, SIDES, read_texts, side_texts

PROBED_PAIRS = 50_000
"""The most training pairs in the sample whose scripts, words and languages are counted."""


def find_faulty(corpus: Corpus, config: DataConfig, symbols: Sequence[str] = ()) -> CleaningFindings:
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
    source, target = CorpusSide(config.source_language, identifier), CorpusSide(config.target_language, identifier)
    for sources, targets in read_texts(pairs, evenly_spaced_rows(len(corpus.train), PROBED_PAIRS, round_down=True)):
        source.learn(sources)
        target.learn(targets)
    if "language" in config.cleaning_rules:
        check_languages(source, target, f"{config.without_rule('language')} trains on them nevertheless.")
    _judge_batches(pairs, findings, (source, target), config.max_length, re.compile("|".join(map(re.escape, symbols))))
    for name in findings.rules:
        if judge := RULES[name].judge:
            findings.record(name, judge(pairs, findings))
    return findings


def _judge_batches(
    pairs: datasets.Dataset,
    findings: CleaningFindings,
    sides: tuple[CorpusSide, CorpusSide],
    max_length: int,
    symbol: re.Pattern[str],
) -> None:
    """Apply the rules that judge batches to texts without symbols, and fill in the measures for the other rules.

    If the rule ``language`` is on, the findings also get its scores and the exchanged pairs.
    """
    if "language" in findings.rules:
        findings.scores["language"] = np.empty(len(pairs), np.float32)
    end = 0
    with tqdm(total=len(pairs), desc="cleaning", unit=" pairs", disable=None, leave=False) as bar:
        for table in tables(pairs, (*SIDES, *KEYS)):
            start, end = end, end + len(table)
            keys = np.stack([table[key].to_numpy() for key in KEYS], axis=1)
            sources, targets = ([symbol.sub("", text) for text in side] for side in side_texts(table))
            batch = PairBatch((sources, targets), keys, sides, max_length)
            findings.lengths[start:end] = batch.lengths
            findings.keys[start:end] = batch.keys_without_digits()
            if "language" in findings.rules:
                findings.scores["language"][start:end] = batch.margins
                findings.exchanged[start:end] = batch.exchanged
            for name in findings.rules:
                if find := RULES[name].find:
                    findings.record(name, start + np.flatnonzero(find(batch)))
            bar.update(len(table))
