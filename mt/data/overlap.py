"""Find sentences that occur more than once: in the training pairs, on both sides of a pair, or in two splits.

Sentences and pairs are compared by their hashes. Rarely, two different ones have the same hash by chance and are
counted as equal: see ``sentence_key``.
"""

import logging
from collections.abc import Iterable, Sequence
from functools import partial

import datasets
import numpy as np
import pyarrow
from pyarrow import compute

from mt.core.columns import numbers, tables
from mt.data.cache import select_rows
from mt.data.pairs import KEYS, PAIR_HASH, SIDES, side_texts
from mt.data.sentence_key import combined_hash

logger = logging.getLogger(__name__)

OTHER_FORM = "with other case, punctuation or white space"


def log_repetitions(train: datasets.Dataset, evaluation: dict[str, datasets.Dataset]) -> None:
    """Log the number of repeated training pairs, of training pairs with equal sides, and of validation and test sources
    that are also training sources. These are often mistakes in the data. Nothing is changed.

    Args:
        train: The training pairs.
        evaluation: Maps ``valid`` and ``test`` to their pairs.
    """
    source_keys, target_keys = (numbers(train, key) for key in KEYS)
    pairs = len(np.unique(numbers(train, PAIR_HASH)))
    forms = len(np.unique(combined_hash(source_keys, target_keys)))
    same_key = np.flatnonzero(source_keys == target_keys)
    equal_sides = sum(
        compute.sum(compute.equal(table["source"], table["target"])).as_py() for table in tables(train, SIDES, same_key)
    )
    for count, description in (
        (len(train) - pairs, "repeat an earlier one"),
        (pairs - forms, f"repeat an earlier one {OTHER_FORM}"),
        (equal_sides, "have one text on both sides"),
    ):
        if count:
            logger.info("train: %s of %s pairs %s", f"{count:,}", f"{len(train):,}", description)
    for split, held_out in evaluation.items():
        _log_known_sources(split, held_out, train, source_keys)


def _log_known_sources(split: str, pairs: datasets.Dataset, train: datasets.Dataset, train_keys: np.ndarray) -> None:
    """Log how many sources of a split are also training sources. ``train_keys`` are the keys of the latter."""
    keys = numbers(pairs, KEYS[0])
    rows = np.flatnonzero(_is_in(train_keys, keys))
    if not (same_form := int(_is_in(keys, train_keys[rows]).sum())):
        return
    known = _distinct_texts(train, "source", rows)
    equal = sum(text in known for text in pairs["source"])
    more = f", {same_form - equal:,} more {OTHER_FORM}" if same_form > equal else ""
    logger.warning(
        "%s: %s of its %s sources also stand in the training data%s; remove them there if scores are to tell how "
        "the model translates new text",
        split, f"{equal:,}", f"{len(pairs):,}", more,
    )  # fmt: skip


def without_shared_sentences(
    pairs: datasets.Dataset, others: Iterable[datasets.Dataset]
) -> tuple[datasets.Dataset, dict[str, np.ndarray]]:
    """Drop the pairs that have a source or a target in common with other pairs.

    Args:
        pairs: The training pairs of one corpus.
        others: The validation pairs and the test pairs.

    Returns:
        The remaining pairs, and a dict that maps each reason to the ids of the pairs that were dropped for it.
    """
    others = list(others)
    equal, same = _shares_sentence(pairs, others)
    if not same.any():
        return pairs, {}
    key = ("shared", [other._fingerprint for other in others])
    ids = numbers(pairs, "id")
    dropped = {
        "shared with valid or test": ids[equal],
        f"shared with valid or test {OTHER_FORM}": ids[same & ~equal],
    }
    return select_rows(pairs, key, partial(np.flatnonzero, ~same)), dropped


def _shares_sentence(pairs: datasets.Dataset, others: Sequence[datasets.Dataset]) -> tuple[np.ndarray, np.ndarray]:
    """Find the pairs that share a source or a target with the others.

    Returns:
        (N,) bool for pairs that share an equal text, and (N,) bool for pairs that share a text with an equal
        ``sentence_key``, which ignores case, punctuation and white space.
    """
    same = np.zeros(len(pairs), dtype=bool)
    for key in KEYS:
        same |= _is_in(numbers(pairs, key), np.concatenate([numbers(other, key) for other in others]))
    sources, targets = (set[str]().union(*(_distinct_texts(other, side) for other in others)) for side in SIDES)
    rows = np.flatnonzero(same)
    equal = np.zeros(len(pairs), dtype=bool)
    equal[rows] = [
        source in sources or target in targets
        for table in tables(pairs, SIDES, rows)
        for source, target in zip(*side_texts(table), strict=True)
    ]
    return equal, same


def _is_in(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return whether each value also occurs among the others, (N,) bool. The others are held in a hash table."""
    return compute.is_in(pyarrow.array(values), value_set=pyarrow.array(others)).to_numpy(zero_copy_only=False)


def _distinct_texts(pairs: datasets.Dataset, side: str, rows: np.ndarray | None = None) -> set[str]:
    return {text for table in tables(pairs, (side,), rows) for text in table[side].to_pylist()}
