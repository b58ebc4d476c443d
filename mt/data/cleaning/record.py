"""Which training pairs cleaning drops: taken out of the corpus, and recorded in the run.

A run that goes on reads the record, instead of judging the pairs again: newer rules might judge differently.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from pydantic import StrictInt, TypeAdapter

from mt.config import DataConfig
from mt.core.columns import numbers
from mt.core.errors import InputError
from mt.core.json_file import read_json, write_json
from mt.data.cleaning.findings import Findings
from mt.data.corpus import Corpus

DROPPED = "cleaning.json"

Dropped = Mapping[str, np.ndarray]
"""For each rule the ids of the pairs that it drops, in ascending order."""


def dropped_pairs(findings: Findings, corpus: Corpus) -> Dropped:
    """Returns which training pairs the rules find."""
    ids, found = numbers(corpus.train, "id"), findings.found["train"]
    return {rule: ids[found == number] for number, rule in enumerate(findings.rules, 1)}


def without_dropped(corpus: Corpus, dropped: Dropped, config: DataConfig) -> Corpus:
    """Returns the corpus without the training pairs that are dropped, and with its report completed.

    Raises:
        InputError: None is left.
    """
    ids = numbers(corpus.train, "id")
    is_kept = ~np.isin(ids, _all_ids(dropped))
    if not is_kept.any():
        counts = {rule: len(of_rule) for rule, of_rule in dropped.items() if len(of_rule)}
        worst = max(counts, key=counts.__getitem__)
        raise InputError(
            f"cleaning would drop all {len(ids):,} training pairs: "
            + ", ".join(f"{count:,} by the rule {rule}" for rule, count in counts.items())
            + f". {config.without_rule(worst)} leaves that rule out, data.cleaning=false drops none; "
            "python -m mt clean shows them"
        )
    report, first_id = list(corpus.report), 0
    for number, one in enumerate(report):
        if one.split == "train":
            of_corpus = first_id, first_id + one.read
            counts = {
                f"by cleaning: {rule}": int(np.diff(np.searchsorted(of_rule, of_corpus))[0])
                for rule, of_rule in dropped.items()
            }
            kept = ids[is_kept]
            kept = kept[slice(*np.searchsorted(kept, of_corpus))] - first_id
            one = one.after_dropping({reason: count for reason, count in counts.items() if count})
            report[number] = one.with_files_kept(kept)
            first_id += one.read
    return replace(corpus, train=corpus.train.select(np.flatnonzero(is_kept)), report=report)


def write_dropped(run: Path, dropped: Dropped) -> None:
    """Writes the record of a run."""
    write_json(run / DROPPED, {"dropped": {rule: ids.tolist() for rule, ids in dropped.items()}})


def read_dropped(run: Path) -> Dropped:
    """Reads the record of a run.

    Raises:
        InputError: It is missing or damaged.
    """
    content = read_json(run / DROPPED, "dropped")["dropped"]
    try:
        lists = TypeAdapter(dict[str, list[StrictInt]]).validate_python(content)
        dropped = {rule: np.array(ids, dtype=np.int64) for rule, ids in lists.items()}
        every = _all_ids(dropped)
        if len(np.unique(every)) < len(every) or any((np.diff(ids) < 0).any() for ids in dropped.values()):
            raise ValueError("ids that are not in order")
    except (ValueError, OverflowError):  # a checksum protects from accidents only
        raise InputError(f"{run / DROPPED}: damaged or of another version") from None
    return dropped


def _all_ids(dropped: Dropped) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *dropped.values()])
