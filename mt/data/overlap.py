"""Find sentences that occur more than once: in the training pairs, on both sides of a pair, or in two splits.

Sentences are compared by their ``sentence_key``, which ignores case, punctuation and white space.
"""

import logging
from collections.abc import Iterable
from functools import partial

import datasets
import numpy as np
import pyarrow
from pyarrow import compute

from mt.core.columns import numbers
from mt.data.cache import select_rows
from mt.data.pairs import KEYS
from mt.data.sentence_key import combined_hash

logger = logging.getLogger(__name__)

FORMS = "but for case, punctuation and white space"


def log_repetitions(train: datasets.Dataset, evaluation: dict[str, datasets.Dataset]) -> None:
    """Log the number of repeated training pairs, of training pairs with equal sides, and of validation and test sources
    that are also training sources. These are often mistakes in the data. Nothing is changed.

    Args:
        train: The training pairs.
        evaluation: Maps ``valid`` and ``test`` to their pairs.
    """
    source_keys, target_keys = (numbers(train, key) for key in KEYS)
    repeated = len(train) - len(np.unique(combined_hash(source_keys, target_keys)))
    equal_sides = int((source_keys == target_keys).sum())
    for count, description in ((repeated, "repeat an earlier one"), (equal_sides, "have one text on both sides")):
        if count:
            logger.info("train: %s of %s pairs %s, %s", f"{count:,}", f"{len(train):,}", description, FORMS)
    for split, pairs in evaluation.items():
        if known := int(_is_in(numbers(pairs, KEYS[0]), source_keys).sum()):
            logger.warning(
                "%s: %s of its %s sources also stand in the training data, %s; remove them there if scores are to tell "
                "how the model translates new text",
                split, f"{known:,}", f"{len(pairs):,}", FORMS,
            )  # fmt: skip


def without_shared_sentences(
    pairs: datasets.Dataset, others: Iterable[datasets.Dataset]
) -> tuple[datasets.Dataset, dict[str, np.ndarray]]:
    """Drop the pairs that have a source or a target in common with other pairs.

    Args:
        pairs: The training pairs of one corpus.
        others: The validation pairs and the test pairs.

    Returns:
        The remaining pairs, and a dict that maps the reason to the ids of the pairs that were dropped for it.
    """
    others = list(others)
    is_shared = np.zeros(len(pairs), dtype=bool)
    for key in KEYS:
        is_shared |= _is_in(numbers(pairs, key), np.concatenate([numbers(other, key) for other in others]))
    if not is_shared.any():
        return pairs, {}
    selection = ("shared", [other._fingerprint for other in others])
    dropped = {"shared with valid or test": numbers(pairs, "id")[is_shared]}
    return select_rows(pairs, selection, partial(np.flatnonzero, ~is_shared)), dropped


def _is_in(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return whether each value also occurs among the others, (N,) bool. The others are held in a hash table."""
    return compute.is_in(pyarrow.array(values), value_set=pyarrow.array(others)).to_numpy(zero_copy_only=False)
