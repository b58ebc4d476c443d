"""The record of the training pairs that cleaning drops, which the run folder keeps.

A resumed run reads the record instead of cleaning again, because newer rules might give another result.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from pydantic import StrictInt, TypeAdapter

from mt.config import DataConfig
from mt.core.columns import numbers
from mt.core.errors import InputError, damaged_file, wrong_keys
from mt.core.json_file import read_json, write_json
from mt.data.cleaning.findings import CleaningFindings
from mt.data.corpus import Corpus

DROPPED = "cleaning.json"
"""The name of the record in a run folder."""

Dropped = Mapping[str, np.ndarray]
"""Maps each rule to the ids of the training pairs that it drops, int64, in ascending order. A pair that several rules
find is listed once, for the first of them."""


def dropped_pairs(findings: CleaningFindings, corpus: Corpus) -> Dropped:
    """Return the ids of the training pairs that each rule finds, each pair for the first rule that finds it.

    Args:
        findings: The findings for ``corpus``.
        corpus: The corpus before cleaning.
    """
    ids = numbers(corpus.train, "id")
    return {rule: ids[findings.by_split["train"] == number] for number, rule in enumerate(findings.rules, 1)}


def without_dropped(corpus: Corpus, dropped: Dropped, config: DataConfig) -> Corpus:
    """Return a corpus without the dropped training pairs. Its report counts these pairs by rule.

    Args:
        corpus: The corpus before cleaning.
        dropped: The training pairs to drop.
        config: The section ``data`` of the settings, for the message of an InputError.

    Raises:
        InputError: No training pair is left.
    """
    ids = numbers(corpus.train, "id")
    is_kept = ~np.isin(ids, _all_ids(dropped))
    if not is_kept.any():
        counts = {rule: len(of_rule) for rule, of_rule in dropped.items() if len(of_rule)}
        raise InputError(
            f"cleaning would drop all {len(ids):,} training pairs: "
            + ", ".join(f"{count:,} by the rule {rule}" for rule, count in counts.items())
            + f". Look at them with python -m mt clean. {config.without_rule(max(counts, key=counts.__getitem__))} "
            "leaves that rule out, data.cleaning=false leaves out all rules"
        )
    reasons = {f"by cleaning: {rule}": of_rule for rule, of_rule in dropped.items()}
    report = [entry.without(reasons) if entry.split == "train" else entry for entry in corpus.report]
    return replace(corpus, train=corpus.train.select(np.flatnonzero(is_kept)), report=report)


def write_dropped(run: Path, dropped: Dropped) -> None:
    """Write the record of dropped pairs to a run folder."""
    write_json(run / DROPPED, {"dropped": {rule: ids.tolist() for rule, ids in dropped.items()}})


def read_dropped(run: Path) -> Dropped:
    """Read the record of dropped pairs from a run folder.

    Raises:
        InputError: The record is missing or damaged.
    """
    content = read_json(run / DROPPED, "dropped")["dropped"]
    try:
        lists = TypeAdapter(dict[str, list[StrictInt]]).validate_python(content)
        dropped = {rule: np.array(ids, dtype=np.int64) for rule, ids in lists.items()}
        all_ids = _all_ids(dropped)
        if len(np.unique(all_ids)) < len(all_ids) or any((np.diff(ids) < 0).any() for ids in dropped.values()):
            raise ValueError("ids that are not in order")
    except (ValueError, OverflowError):  # the checksum of a file that was changed on purpose can be right
        raise damaged_file(run / DROPPED, wrong_keys(["dropped"])) from None
    return dropped


def _all_ids(dropped: Dropped) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *dropped.values()])
