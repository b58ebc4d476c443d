"""The stage between the corpus and the text layer: judges every pair by the rules.

Only training pairs are dropped. Validation and test pairs, which have been held out before, are only counted, so that
two runs with different rules have the same test set.
"""

import datasets
import numpy as np
from tqdm import tqdm

from mt.config import DataConfig
from mt.core.columns import evenly_spaced_rows, tables
from mt.data.cleaning.batch import Batch, read_texts
from mt.data.cleaning.findings import Findings
from mt.data.cleaning.language_identification import Identifier
from mt.data.cleaning.rules import RULES, Measures
from mt.data.cleaning.sides import Side, check_languages
from mt.data.corpus import KEYS, Corpus

PROBED_PAIRS = 50_000
"""The number of training pairs that show the usual scripts and words of either side."""


def find_faulty(corpus: Corpus, config: DataConfig) -> Findings:
    """Apply the rules that ``config`` names.

    Args:
        corpus: With the columns KEYS in every split.
        config: Where it comes from.

    Raises:
        InputError: The sides are exchanged, or both are in one language.
    """
    splits = {"train": corpus.train, "valid": corpus.valid, "test": corpus.test}
    pairs = datasets.concatenate_datasets(
        [split.select_columns(["source", "target", *KEYS]) for split in splits.values()]
    )
    findings = Findings(config.cleaning_rules, {name: len(split) for name, split in splits.items()})
    measures = Measures(
        pairs,
        len(corpus.train),
        lengths=np.zeros((len(pairs), 2), np.int32),
        keys=np.zeros((len(pairs), 2), np.int64),
    )
    _judge_batches(measures, findings, _learn_sides(measures, config), config.max_length)
    for name in findings.rules:
        if judge := RULES[name].judge:
            judge(measures, findings)
    return findings


def _learn_sides(measures: Measures, config: DataConfig) -> tuple[Side, Side]:
    identifier = Identifier()
    source, target = Side(config.source_language, identifier), Side(config.target_language, identifier)
    rows = evenly_spaced_rows(measures.learnt, PROBED_PAIRS, round_down=True)
    for sources, targets in read_texts(measures.pairs, rows):
        source.learn(sources)
        target.learn(targets)
    if "language" in config.cleaning_rules:
        check_languages(source, target, f"{config.without_rule('language')} trains on them all the same")
    return source, target


def _judge_batches(measures: Measures, findings: Findings, sides: tuple[Side, Side], max_length: int) -> None:
    """Apply the rules that judge batches, and measure the pairs for the other rules."""
    if "language" in findings.rules:
        findings.scores["language"] = np.empty(len(measures.pairs), np.float32)
    end = 0
    with tqdm(total=len(measures.pairs), desc="cleaning", unit=" pairs", disable=None, leave=False) as bar:
        for table in tables(measures.pairs, ("source", "target", *KEYS)):
            start, end = end, end + len(table)
            texts = table["source"].to_pylist(), table["target"].to_pylist()
            batch = Batch(texts, np.stack([table[key].to_numpy() for key in KEYS], axis=1), sides, max_length)
            measures.lengths[start:end] = batch.lengths
            measures.keys[start:end] = batch.keys_without_digits()
            if "language" in findings.rules:
                findings.scores["language"][start:end] = batch.margins
                findings.exchanged[start:end] = batch.exchanged
            for name in findings.rules:
                if find := RULES[name].find:
                    findings.mark(name, start + np.flatnonzero(find(batch)))
            bar.update(len(table))
