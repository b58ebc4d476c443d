"""Plans which pairs go together in a batch, for an epoch and without their text.

The plan is a function of the unsampled lengths, the weights, the seed, the epoch and the budget. It depends neither on
what ran before nor on how many workers share the work, so an epoch can be entered at any batch.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mt.core.columns import numbers
from mt.core.randomness import generator

if TYPE_CHECKING:
    import datasets

MAX_DRAWS = 1_000_000
"""Number of random numbers that are held at a time while an epoch is planned."""

Lengths: TypeAlias = tuple[np.ndarray, np.ndarray]
"""The numbers of tokens of the sources (N,) and of the targets (N,), EOS included."""


@dataclass(frozen=True)
class Plan:
    """The batches of an epoch."""

    batches: list[np.ndarray]
    """The row numbers of each batch."""
    joined: dict[int, tuple[int, ...]]
    """Maps a row to the rows that are joined to it and make one pair with it. They are in no batch themselves."""

    def group(self, row: int) -> tuple[int, ...]:
        """Return a row and the rows that are joined to it."""
        return row, *self.joined.get(row, ())


def encoded_lengths(pairs: "datasets.Dataset") -> Lengths:
    """Return the lengths of encoded pairs, EOS included."""
    return numbers(pairs, "source_length") + 1, numbers(pairs, "target_length") + 1


def plan_epoch(
    lengths: Lengths, weights: np.ndarray, seed: int, epoch: int, batch_tokens: int, joined: float = 0.0
) -> Plan:
    """Plan the batches of an epoch.

    A row of weight w occurs ⌊w⌋ times, and once more with probability w - ⌊w⌋. In every batch, the number of rows times
    the longest length is at most ``batch_tokens`` on each side. A single row that is longer than that has a batch of
    its own.

    Args:
        lengths: The lengths of the N rows.
        weights: (N,) floats.
        seed, epoch: Determine the draws for fractional weights, the order of rows of equal lengths, and the order of
            the batches.
        batch_tokens: The budget: the most tokens of a batch on each side, padding included.
        joined: The share of the rows that are joined with one or two others.
    """
    random = generator(seed, "epoch", epoch)
    repetitions = draw_repetitions(weights, random)
    rows = np.repeat(np.arange(len(repetitions), dtype=np.int32), repetitions)
    random.shuffle(rows)

    followers: dict[int, tuple[int, ...]] = {}
    if joined:
        rows, lengths, followers = _join(rows, repetitions, lengths, joined, generator(seed, "joined", epoch))
    lengths = lengths[0][rows], lengths[1][rows]
    del weights, repetitions  # the memory is needed for sorting
    order, longest = sort_by_length(lengths)
    batches = _cut(rows[order], longest, batch_tokens)
    return Plan([batches[number] for number in random.permutation(len(batches))], followers)


def plan_in_order(lengths: Lengths, batch_tokens: int) -> list[np.ndarray]:
    """Return batches of all rows, each once, from the shortest rows to the longest."""
    return _cut(*sort_by_length(lengths), batch_tokens)


def plan_anew(lengths: Lengths, count: int, random: np.random.Generator) -> list[np.ndarray]:
    """Divide rows into exactly ``count`` batches of similar lengths, as evenly as possible.

    Returns:
        The batches in random order, each an array of row numbers.
    """
    shuffled = random.permutation(len(lengths[0]))
    lengths = lengths[0][shuffled], lengths[1][shuffled]
    longest = np.maximum(*lengths)
    rows, sorted_lengths = sort_by_length(lengths)

    def cut(budget: int) -> list[np.ndarray]:
        return _cut(rows, sorted_lengths, budget)

    # A larger budget never makes more batches, so bisection finds the smallest one that makes at most ``count``.
    budgets = range(int(longest.max()) * len(rows))
    batches = cut(bisect_left(budgets, True, lo=1, key=lambda budget: len(cut(budget)) <= count))
    while len(batches) < count:
        costs = [longest[batch].max() * len(batch) * (len(batch) > 1) for batch in batches]
        largest = int(np.argmax(costs))
        batches[largest : largest + 1] = np.array_split(batches[largest], 2)
    return [shuffled[batches[number]] for number in random.permutation(count)]


def draw_repetitions(weights: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return how often each row occurs in an epoch, (N,) int32.

    It draws for a part of the rows at a time, because the random numbers take more memory than the result.
    """
    repetitions = np.empty(len(weights), dtype=np.int32)
    for start in range(0, len(weights), MAX_DRAWS):
        part = weights[start : start + MAX_DRAWS]
        floor = np.floor(part).astype(np.int64)
        repetitions[start : start + len(part)] = floor + (random.random(len(part)) < part - floor)
    return repetitions


def _join(
    rows: np.ndarray, repetitions: np.ndarray, lengths: Lengths, share: float, random: np.random.Generator
) -> tuple[np.ndarray, Lengths, dict[int, tuple[int, ...]]]:
    """Join some rows, which are in random order, with the rows that follow them.

    Rows that occur several times in the epoch are not joined, nor are those that would be longer than every row of the
    corpus: a model with learned positions may have no position for their ends.

    Args:
        rows: The rows of the epoch.
        repetitions: (N,), how often each row occurs.
        lengths: The lengths of the N rows.
        share: The share of the rows to join.
        random: Decides how many are joined each time.

    Returns:
        The rows that are left, the lengths of the N rows after joining, and the rows that are joined to some.
    """
    candidates = rows[: round(share * len(rows))]
    candidates = candidates[repetitions[candidates] == 1]
    max_lengths = [side.max() for side in lengths]
    lengths = lengths[0].copy(), lengths[1].copy()
    followers: dict[int, tuple[int, ...]] = {}
    for group in np.split(candidates, np.cumsum(random.integers(2, 4, len(candidates) // 2))):
        total = [side[group].sum() - (len(group) - 1) for side in lengths]  # one EOS instead of several
        if len(group) > 1 and total[0] <= max_lengths[0] and total[1] <= max_lengths[1]:
            first, *others = group.tolist()
            followers[first] = tuple(others)
            lengths[0][first], lengths[1][first] = total
    is_left = np.ones(len(repetitions), dtype=bool)
    is_left[[row for group in followers.values() for row in group]] = False
    return rows[is_left[rows]], lengths, followers


def sort_by_length(lengths: Lengths) -> tuple[np.ndarray, np.ndarray]:
    """Return the row numbers (N,), sorted so that neighbours have similar lengths on both sides, and the longer length
    (N,) of each. Rows of equal lengths keep their order.

    The longer side decides how many rows fit into a batch, so the rows are sorted by its length. Those of one such
    length run from a longer source to a longer target, those of the next the other way round, so that the shorter sides
    of neighbours agree, too.
    """
    source, target = lengths
    longest = np.maximum(source, target)
    # Small integers are sorted in linear time.
    small = np.min_scalar_type(-1 - int(longest.max(initial=0)))
    longest = longest.astype(small)
    difference = (target - source).astype(small)
    np.negative(difference, out=difference, where=longest % 2 == 0)
    order = np.lexsort((difference, longest))
    return order, longest[order]


def _cut(rows: np.ndarray, longest: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Divide rows that are sorted by their longer length into batches that are as large as the budget allows."""
    batches = []
    start = 0
    while start < len(rows):
        window = longest[start : start + max(1, batch_tokens // int(longest[start]))]
        cost = window * np.arange(1, len(window) + 1)
        end = start + max(1, int(np.searchsorted(cost, batch_tokens, side="right")))
        batches.append(rows[start:end])
        start = end
    return batches
