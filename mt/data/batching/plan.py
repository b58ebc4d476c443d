"""Plan the batches of an epoch from the lengths of the encoded pairs, without their text.

The plan is a function of the lengths before subword sampling, the weights, the seed, the epoch and the maximum number
of tokens. It depends neither on earlier epochs nor on the number of workers, so a run can resume at any batch.

Lengths are numbers of tokens, EOS included, in an array (2, N): those of N sources, then those of N targets.
"""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from mt.core.randomness import generator

MAX_DRAWS = 1_000_000
"""The maximum number of random numbers in memory at a time while an epoch is planned."""


@dataclass(frozen=True)
class Plan:
    """The batches of an epoch. A row is the position of a pair in the training pairs, from 0."""

    batches: list[np.ndarray]
    """The rows of each batch, in the order of training."""
    joined: dict[int, tuple[int, ...]]
    """Maps a row to the rows whose sentences are appended to it. The appended rows are not in a batch themselves."""

    tokens: np.ndarray
    """(2,), the number of source tokens and of target tokens of the epoch."""

    def group(self, row: int) -> tuple[int, ...]:
        """Return the row, followed by the rows that are joined to it."""
        return row, *self.joined.get(row, ())


def plan_epoch(
    lengths: np.ndarray,
    weights: np.ndarray,
    seed: int,
    epoch: int,
    batch_tokens: int,
    joined: float = 0.0,
    *,
    packed: bool = False,
    directions: np.ndarray | None = None,
) -> Plan:
    """Plan the batches of an epoch.

    A row of weight w occurs ⌊w⌋ times, and once more with probability w - ⌊w⌋. In every padded batch, the number of
    rows times the longest length is at most ``batch_tokens`` on each side. A row that is longer than ``batch_tokens``
    is a batch by itself. Packed batches have at most ``batch_tokens`` tokens on average.

    Args:
        lengths: (2, N), the lengths of N rows.
        weights: (N,) float.
        seed, epoch: Determine the draws for fractional weights, the order of rows of equal lengths, and the order of
            the batches.
        batch_tokens: The maximum number of tokens of a batch on each side, padding included.
        joined: The share of the rows that are joined with one or two other rows of the same direction.
        packed: Whether the batches are packed. They then consist of random rows, with about the same number of tokens.
        directions: (N,), the direction of each row; None for a single direction.
    """
    random = generator(seed, "epoch", epoch)
    repetitions = draw_repetitions(weights, random)
    rows = np.repeat(np.arange(len(repetitions), dtype=np.int32), repetitions)
    random.shuffle(rows)

    followers: dict[int, tuple[int, ...]] = {}
    if joined:
        candidates = rows[: round(joined * len(rows))]
        candidates = candidates[repetitions[candidates] == 1]
        directions = np.zeros(len(weights)) if directions is None else directions
        candidates = candidates[np.argsort(directions[candidates], kind="stable")]
        lengths, followers = _join_rows(candidates, directions, lengths, generator(seed, "joined", epoch))
        is_kept = np.ones(len(repetitions), dtype=bool)
        is_kept[[row for group in followers.values() for row in group]] = False
        rows = rows[is_kept[rows]]
    lengths = lengths.take(rows, axis=1)
    del weights, repetitions  # the memory is needed for sorting
    tokens = lengths.sum(axis=1)
    if packed:
        return Plan(_divide_evenly(rows, lengths, batch_tokens), followers, tokens)
    order, longest = sort_by_length(lengths)
    batches = _fill_batches(rows[order], longest, batch_tokens)
    return Plan([batches[number] for number in random.permutation(len(batches))], followers, tokens)


def _divide_evenly(rows: np.ndarray, lengths: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Divide rows, in order, into batches with about the same number of tokens.

    Args:
        rows: (N,).
        lengths: (2, N), the lengths of these rows.
        batch_tokens: The maximum of the mean number of tokens of a batch on the longer side.
    """
    ends = lengths.sum(axis=0).cumsum()
    count = -(-int(lengths.sum(axis=1).max(initial=0)) // batch_tokens)
    batches = np.split(rows, np.searchsorted(ends, np.arange(1, count) * (ends[-1] / count))) if count else []
    return [batch for batch in batches if len(batch)]  # a long row can span several, which leaves empty ones


def plan_by_length(lengths: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Return batches of all N rows, each row once, from the shortest rows to the longest.

    Args:
        lengths: (2, N), the lengths of the rows.
        batch_tokens: The maximum number of tokens of a batch on each side, padding included.
    """
    return _fill_batches(*sort_by_length(lengths), batch_tokens)


def replan(lengths: np.ndarray, count: int, random: np.random.Generator) -> list[np.ndarray]:
    """Divide rows into exactly ``count`` batches of rows of similar lengths, with similar numbers of tokens.

    Args:
        lengths: (2, N), the lengths of the rows.
        count: The number of batches, at most N.
        random: Determines the order of rows of equal lengths, and of the batches.

    Returns:
        The batches in random order, each an array of row numbers.
    """
    shuffled = random.permutation(lengths.shape[1])
    lengths = lengths.take(shuffled, axis=1)
    longest = lengths.max(axis=0)
    rows, sorted_lengths = sort_by_length(lengths)

    def batches_within(budget: int) -> list[np.ndarray]:
        return _fill_batches(rows, sorted_lengths, budget)

    # A larger budget never gives more batches, so bisection finds the smallest budget with at most ``count`` batches.
    budgets = range(int(longest.max()) * len(rows))
    batches = batches_within(bisect_left(budgets, True, lo=1, key=lambda budget: len(batches_within(budget)) <= count))
    while len(batches) < count:
        costs = [longest[batch].max() * len(batch) if len(batch) > 1 else 0 for batch in batches]
        largest = int(np.argmax(costs))
        batches[largest : largest + 1] = np.array_split(batches[largest], 2)
    return [shuffled[batches[number]] for number in random.permutation(count)]


def draw_repetitions(weights: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw the number of occurrences of each row in an epoch, (N,) int32.

    A row of weight w, of ``weights`` (N,), occurs ⌊w⌋ times, and once more with probability w - ⌊w⌋.
    """
    # Random numbers are drawn for a part of the rows at a time, because they take more memory than the result.
    repetitions = np.empty(len(weights), dtype=np.int32)
    for start in range(0, len(weights), MAX_DRAWS):
        part = weights[start : start + MAX_DRAWS]
        floor = np.floor(part).astype(np.int64)
        repetitions[start : start + len(part)] = floor + (random.random(len(part)) < part - floor)
    return repetitions


def _join_rows(
    candidates: np.ndarray, directions: np.ndarray, lengths: np.ndarray, random: np.random.Generator
) -> tuple[np.ndarray, dict[int, tuple[int, ...]]]:
    """Form groups of two or three rows, each of which becomes one pair.

    A group that would be longer than every row of the corpus is not formed, because a model with learned positions may
    lack positions for its last tokens.

    Args:
        candidates: The rows to form groups of, in random order, grouped by direction. Each occurs once in the epoch.
        directions: (N,), the direction of each row of the corpus.
        lengths: (2, N), the lengths of the rows of the corpus.
        random: Decides whether a group has two rows or three.

    Returns:
        The lengths (2, N) after joining, and a dict that maps the first row of each group to its other rows.
    """
    max_lengths = lengths.max(axis=1)
    lengths = lengths.copy()
    followers: dict[int, tuple[int, ...]] = {}
    for group in np.split(candidates, np.cumsum(random.integers(2, 4, len(candidates) // 2))):
        total = lengths[:, group].sum(axis=1) - (len(group) - 1)  # one EOS instead of several
        is_usable = len(group) > 1 and directions[group[0]] == directions[group[-1]]
        if is_usable and (total <= max_lengths).all():
            first, *others = group.tolist()
            followers[first] = tuple(others)
            lengths[:, first] = total
    return lengths, followers


def sort_by_length(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort rows so that neighbors have similar lengths on both sides.

    The rows are sorted by the length of their longer side, which determines how many rows fit into a batch. Among rows
    of the same longer length, rows with a longer source are first if this length is odd, and rows with a longer target
    if it is even, so that the shorter sides of neighbors are similar, too. Rows of equal lengths keep their order.

    Args:
        lengths: (2, N), the lengths of the rows.

    Returns:
        The row numbers in sorted order (N,), and the length of the longer side of each in the same order (N,).
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


def _fill_batches(rows: np.ndarray, longest: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Divide sorted rows, in order, into the largest possible batches.

    Args:
        rows, longest: The result of ``sort_by_length``.
        batch_tokens: The maximum number of tokens of a batch on each side, padding included.
    """
    batches = []
    start = 0
    while start < len(rows):
        window = longest[start : start + max(1, batch_tokens // int(longest[start]))]
        cost = window * np.arange(1, len(window) + 1)
        end = start + max(1, int(np.searchsorted(cost, batch_tokens, side="right")))
        batches.append(rows[start:end])
        start = end
    return batches
