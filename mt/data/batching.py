"""Plans which pairs go together in a batch, for a whole epoch and without their text, and builds the padded tensors.

The plan is a function of the unsampled lengths, the weights, the seed, the epoch and the budget. It depends neither on
what ran before nor on how many workers share the work, so an epoch can be entered at any batch.

Subword sampling and augmentation make equal lengths unequal, so that up to a third of every batch would be padding.
Therefore the pairs of up to WINDOW planned batches are drawn together and then divided again into as many batches.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow
import torch
from pyarrow.compute import list_value_length, match_substring_regex
from torch import Tensor

from mt.config import AugmentationConfig
from mt.core.columns import numbers, tables
from mt.core.randomness import generator, key
from mt.data.augmentation import Augmentation
from mt.text import number_words
from mt.text.layer import TextLayer
from mt.text.lexicon import Lexicon
from mt.text.tokenizer import BOS, EOS, PAD

if TYPE_CHECKING:
    import datasets

SIDES = ("source", "target")
ENCODED = ("source_ids", "target_ids")
WINDOW = 64
"""Largest number of planned batches whose pairs are divided into batches again after they were changed or sampled."""
DRAWN_AT_ONCE = 1_000_000
"""Number of random numbers that are held at a time while an epoch is planned."""
SAMPLES = pyarrow.schema([("id", pyarrow.int64()), *((name, pyarrow.list_(pyarrow.int32())) for name in ENCODED)])
OfTexts: TypeAlias = tuple[Lexicon, np.ndarray]
"""What has to be known of all training texts: words that translate each other, and (N,) bool, which sources have a
number word."""


@dataclass(frozen=True)
class Batch:
    """A batch of sentence pairs, padded on the right with PAD."""

    ids: Tensor  # (B,) int64, the ids of the pairs
    source: Tensor  # (B, S) int64, … EOS
    target: Tensor  # (B, T + 1) int64, BOS … EOS
    target_positions: Tensor  # (R,) int64, where ``target_output``, flattened, is not padding
    source_tokens: int
    """Number of tokens in ``source``, with EOS and without padding."""
    target_tokens: int
    """R, the number of tokens in ``target_output``, with EOS and without padding."""

    @classmethod
    def of(cls, ids: Tensor, source: Tensor, target: Tensor) -> "Batch":
        """Makes a batch and finds the positions that are not padding. Finding them later, in the middle of a step on a
        GPU, would make the GPU wait."""
        positions = (target[:, 1:] != PAD).flatten().nonzero().squeeze(1)
        source_tokens = int((source != PAD).sum())
        return cls(ids, source, target, positions, source_tokens=source_tokens, target_tokens=len(positions))

    @property
    def target_input(self) -> Tensor:
        """Input of the decoder, BOS …: (B, T)."""
        return self.target[:, :-1]

    @property
    def target_output(self) -> Tensor:
        """Pieces that the decoder should predict, … EOS: (B, T)."""
        return self.target[:, 1:]

    def halves(self) -> list["Batch"]:
        """Returns two batches with half of the pairs each, or this batch alone if it has a single pair."""
        middle = len(self.ids) // 2
        return [self._rows(slice(0, middle)), self._rows(slice(middle, None))] if middle else [self]

    def _rows(self, rows: slice) -> "Batch":
        def shortened(pieces: Tensor) -> Tensor:
            return pieces[:, : int((pieces != PAD).sum(dim=1).max())]

        return Batch.of(self.ids[rows], shortened(self.source[rows]), shortened(self.target[rows]))

    def twice(self) -> "Batch":
        """Returns a batch with all pairs followed by the same pairs again. The first half of its ``target_positions``
        are those of the pairs, and the second half those of the same pairs again."""
        return replace(
            self,
            ids=self.ids.repeat(2),
            source=self.source.repeat(2, 1),
            target=self.target.repeat(2, 1),
            target_positions=torch.cat([self.target_positions, self.target_positions + self.target_output.numel()]),
            source_tokens=2 * self.source_tokens,
            target_tokens=2 * self.target_tokens,
        )

    def to(self, device: torch.device | str) -> "Batch":
        """Returns the batch on a device. A copy from pinned memory to a GPU runs in parallel with other work."""
        beside = torch.device(device).type == "cuda"
        return replace(
            self,
            ids=self.ids.to(device, non_blocking=beside),
            source=self.source.to(device, non_blocking=beside),
            target=self.target.to(device, non_blocking=beside),
            target_positions=self.target_positions.to(device, non_blocking=beside),
        )

    def pin_memory(self) -> "Batch":
        """Returns the batch in pinned memory, from which a GPU copies by itself."""
        return replace(
            self,
            ids=self.ids.pin_memory(),
            source=self.source.pin_memory(),
            target=self.target.pin_memory(),
            target_positions=self.target_positions.pin_memory(),
        )


def no_pairs() -> Batch:
    """Returns a batch of padding alone, for a worker without a share: a batch can have fewer pairs than workers."""
    return Batch(
        ids=torch.empty(0, dtype=torch.int64),
        source=torch.tensor([[EOS]]),
        target=torch.tensor([[BOS, PAD]]),
        target_positions=torch.empty(0, dtype=torch.int64),
        source_tokens=0,
        target_tokens=0,
    )


def collate(
    ids: Sequence[int] | np.ndarray, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Batch:
    """Makes a batch from the pieces of B pairs, which come without BOS and EOS."""
    return Batch.of(torch.tensor(ids, dtype=torch.int64), _padded(sources, first=()), _padded(targets, first=(BOS,)))


@dataclass(frozen=True)
class Plan:
    """The batches of an epoch."""

    batches: list[np.ndarray]
    """The row numbers of each batch."""
    joined: dict[int, tuple[int, ...]]
    """The rows that are joined to a row and make one pair with it. They are in no batch themselves."""


def plan_epoch(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    weights: np.ndarray,
    seed: int,
    epoch: int,
    batch_tokens: int,
    joined: float = 0.0,
) -> Plan:
    """Plans the batches of an epoch.

    A row of weight w occurs ⌊w⌋ times, and once more with probability w - ⌊w⌋. In every batch, the number of rows times
    the longest length is at most ``batch_tokens`` on each side. A single row that is longer than that has a batch of
    its own.

    Args:
        source_lengths: (N,), the number of pieces of each row, EOS included.
        target_lengths: (N,), likewise.
        weights: (N,) floats.
        seed, epoch: Determine the draws for fractional weights, the order of rows of equal lengths, and the order of
            the batches.
        batch_tokens: The budget: the most tokens of a batch on each side, padding included.
        joined: The share of the rows that are joined with one or two others.
    """
    random = generator(seed, "epoch", epoch)
    times = _times(weights, random)
    rows = np.repeat(np.arange(len(times), dtype=np.int32), times)
    random.shuffle(rows)

    followers: dict[int, tuple[int, ...]] = {}
    if joined:
        rows, followers = _join(rows, times, (source_lengths, target_lengths), joined, generator(seed, "joined", epoch))
        source_lengths, target_lengths = (
            _lengths_of_joined(lengths, followers) for lengths in (source_lengths, target_lengths)
        )
    longest, place = _places(source_lengths[rows], target_lengths[rows])
    del source_lengths, target_lengths, weights, times
    batches = _cut(*_by_length(rows, longest, place), batch_tokens)
    return Plan([batches[number] for number in random.permutation(len(batches))], followers)


def _times(weights: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Returns how often each row occurs, (N,) int32. A part of the rows at a time, because what is drawn takes more
    memory than the result."""
    times = np.empty(len(weights), dtype=np.int32)
    for start in range(0, len(weights), DRAWN_AT_ONCE):
        some = weights[start : start + DRAWN_AT_ONCE]
        whole = np.floor(some).astype(np.int64)
        times[start : start + len(some)] = whole + (random.random(len(some)) < some - whole)
    return times


def _join(
    rows: np.ndarray, times: np.ndarray, lengths: Sequence[np.ndarray], share: float, random: np.random.Generator
) -> tuple[np.ndarray, dict[int, tuple[int, ...]]]:
    """Joins some rows, which are in random order, with those that come next.

    Rows that occur several times in the epoch are not joined, nor are those that would be longer than every row of the
    corpus: a model with learned positions may have no position for their ends.

    Args:
        rows: The rows of the epoch.
        times: (N,), how often each row occurs.
        lengths: The lengths (N,) of the sources and of the targets, EOS included.
        share: The share of the rows to join.
        random: Decides how many are joined each time.

    Returns:
        The rows that are left, and those that are joined to some of them.
    """
    candidates = rows[: round(share * len(rows))]
    candidates = candidates[times[candidates] == 1].tolist()
    longest = [int(side.max()) for side in lengths]
    followers: dict[int, tuple[int, ...]] = {}
    start = 0
    for size in random.integers(2, 4, len(candidates) // 2).tolist():
        first, *others = candidates[start : start + size]
        start += size
        together = [int(side[[first, *others]].sum()) - len(others) for side in lengths]
        if others and all(one <= most for one, most in zip(together, longest, strict=True)):
            followers[first] = tuple(others)
        if start >= len(candidates):
            break
    left = np.ones(len(times), dtype=bool)
    left[[row for group in followers.values() for row in group]] = False
    return rows[left[rows]], followers


def _lengths_of_joined(lengths: np.ndarray, joined: dict[int, tuple[int, ...]]) -> np.ndarray:
    """Returns the lengths (N,), where those that others are joined to have the length of all of them together."""
    together = lengths.copy()
    for first, others in joined.items():
        together[first] += sum(int(lengths[row]) - 1 for row in others)
    return together


class TrainingBatches:
    """Batches of the encoded training pairs, epoch after epoch."""

    def __init__(
        self,
        pairs: "datasets.Dataset",
        layer: TextLayer,
        augmentation: AugmentationConfig,
        sampling: float,
        seed: int,
        batch_tokens: int,
        rank: int = 0,
        workers: int = 1,
        gather: Callable[[pyarrow.Table], list[pyarrow.Table]] = lambda own: [own],
        once: Callable[[Callable[[], OfTexts]], OfTexts] = lambda make: make(),
    ) -> None:
        """
        Args:
            pairs: From ``encode_pairs``, with a weight for each pair.
            layer: Makes pieces of pairs that are changed or cut in another way.
            augmentation: How often pairs are changed.
            sampling: The strength of subword sampling (see ``Tokenizer.sample``); 0 turns it off.
            seed: Determines the plan, the changes and the sampling.
            batch_tokens: The most source tokens and the most target tokens in a batch, padding included. They are
                counted before pairs are changed or sampled, which lengthens sentences a little.
            rank, workers: Every batch is divided into ``workers`` shares; this worker gets number ``rank``.
            gather: Takes a table of this worker and returns those of all workers, in the order of their ranks. All
                workers call it equally often.
            once: Calls the given function on one worker, and returns its result on all of them.
        """
        self._encoded = pairs
        self._longest = {side: int(self._lengths(side).max()) for side in SIDES}
        self._pairs = pairs.with_format("arrow").select_columns(["id", *ENCODED])
        self._texts = pairs.with_format("arrow").select_columns(list(SIDES))
        self._layer = layer
        self._augmentation = None
        if not augmentation.is_off:
            lexicon, with_numbers = once(
                lambda: (
                    Lexicon(self._all_texts() if augmentation.slots else ()),
                    _with_numbers(pairs, layer.source_language),
                )
            )
            self._augmentation = Augmentation(augmentation, layer, seed, lexicon, with_numbers)
        self._joined = augmentation.joined
        self._sampling = sampling
        self._seed = seed
        self._batch_tokens = batch_tokens
        self._rank = rank
        self._workers = workers
        self._gather = gather
        self._ahead: dict[tuple[int, int], list[pyarrow.Table]] = {}
        """This worker's pairs of the next window, by the window's epoch and number."""
        self._planned: tuple[int, Plan] = (-1, Plan([], {}))

    def _all_texts(self) -> Iterator[tuple[str, str]]:
        """Yields all pairs, a thousand from one place and a thousand from another, because corpora are often sorted."""
        starts = np.arange(0, len(self._texts), 1000)
        for start in generator(0, "lexicon").permutation(starts).tolist():
            table = self._texts[start : start + 1000]
            yield from zip(*(table[side].to_pylist() for side in SIDES), strict=True)

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """Yields this worker's part of each batch of an epoch, from batch ``start`` on. A part may be empty.

        The earlier batches are not made. Where pairs are changed or sampled, at most one window of them is so again.
        """
        if self._sampling or self._augmentation is not None:
            yield from self._drawn_epoch(number, start)
            return
        for batch in self._plan(number).batches[start:]:
            rows = self._share(batch)
            yield _collate_table(self._pairs[rows]) if len(rows) else no_pairs()

    def _drawn_epoch(self, number: int, start: int) -> Iterator[Batch]:
        windows = _windows(self._plan(number).batches)
        first = 0
        for place, window in enumerate(windows):
            past, first = first, first + len(window)
            if first <= start:
                continue
            own = self._ahead.pop((number, place), None) or [self._draw(number, self._own_rows(window))]
            samples = pyarrow.concat_tables(self._gather(pyarrow.concat_tables(own).combine_chunks()))
            # The next window's pairs are drawn while these batches are handed out, some of them with each batch.
            last = place + 1 == len(windows)
            epoch, following = (number + 1, 0) if last else (number, place + 1)
            upcoming = (_windows(self._plan(number + 1).batches) if last else windows)[following : following + 1]
            rows = self._own_rows(upcoming[0]) if upcoming else np.empty(0, dtype=np.int64)
            ahead: list[pyarrow.Table] = []
            batches = _cut_anew(samples, len(window), generator(self._seed, "window", number, place))
            parts = np.array_split(rows, len(window))
            for index, (batch, part) in enumerate(zip(batches, parts, strict=True), start=past):
                ahead.append(self._draw(epoch, part))
                if index >= start:
                    share = self._share(batch)
                    yield _collate_table(samples.take(share)) if len(share) else no_pairs()
            self._ahead = {(epoch, following): ahead}

    def _share(self, rows: np.ndarray) -> np.ndarray:
        return rows[self._rank :: self._workers]

    def _own_rows(self, window: list[np.ndarray]) -> np.ndarray:
        """Returns the rows of a window that this worker draws."""
        return np.array_split(np.concatenate(window), self._workers)[self._rank]

    def batches_in_epoch(self, number: int) -> int:
        return len(self._plan(number).batches)

    @property
    def longer_than_a_batch(self) -> int:
        """Number of pairs that alone exceed the budget of a batch on either side. Each is a batch by itself."""
        longest = np.maximum(self._lengths("source"), self._lengths("target"))
        return int((longest > self._batch_tokens).sum())

    def _lengths(self, side: str) -> np.ndarray:
        """Returns the lengths (N,) of the sources or targets, EOS included. They are read anew each time, so that they
        take no memory during an epoch."""
        return numbers(self._encoded, f"{side}_length") + 1

    def _plan(self, number: int) -> Plan:
        if self._planned[0] != number:
            # These columns are not kept in variables, so that ``plan_epoch`` can free them when it has read them.
            plan = plan_epoch(
                self._lengths("source"),
                self._lengths("target"),
                numbers(self._encoded, "weight"),
                self._seed,
                number,
                self._batch_tokens,
                self._joined,
            )
            self._planned = number, plan
        return self._planned[1]

    def _draw(self, epoch: int, rows: np.ndarray) -> pyarrow.Table:
        """Returns the given pairs as pieces, changed by augmentation and cut by subword sampling."""
        return self._sample(epoch, rows) if self._sampling else self._change(epoch, rows)

    def _change(self, epoch: int, rows: np.ndarray) -> pyarrow.Table:
        """Returns the given pairs as pieces, those changed that augmentation changes in this epoch."""
        table = self._pairs[rows].cast(SAMPLES)
        assert self._augmentation is not None
        joined = self._plan(epoch).joined
        is_changed = self._augmentation.is_changed(epoch, rows)
        is_changed |= np.fromiter((row in joined for row in rows.tolist()), bool, len(rows))
        places = np.flatnonzero(is_changed)
        if not len(places):
            return table
        tokenizers = self._layer.tokenizers
        sources, targets = zip(*self._marked_texts(epoch, rows[places]), strict=True)
        changed = zip(tokenizers.source.encode(sources), tokenizers.target.encode(targets), strict=True)
        sides = [table[name].combine_chunks().to_numpy(zero_copy_only=False) for name in ENCODED]
        for place, pair in zip(places.tolist(), changed, strict=True):
            for side, pieces in zip(sides, self._not_too_long(epoch, rows[place], pair), strict=True):
                side[place] = pieces
        kind = SAMPLES.field(ENCODED[0]).type
        return pyarrow.table([table["id"], *(pyarrow.array(side, kind) for side in sides)], schema=SAMPLES)

    def _sample(self, epoch: int, rows: np.ndarray) -> pyarrow.Table:
        """Returns the given pairs as pieces, changed by augmentation and cut by subword sampling."""
        ids = self._pairs[rows]["id"].to_pylist()
        tokenizers = self._layer.tokenizers
        pairs = []
        texts = self._marked_texts(epoch, rows) if len(rows) else []
        for row, number, (source, target) in zip(rows.tolist(), ids, texts, strict=True):
            keys = (key(self._seed, f"sampling {side}", epoch, number) for side in SIDES)
            pair = (
                tokenizers.source.sample(source, self._sampling, next(keys)),
                tokenizers.target.sample(target, self._sampling, next(keys)),
            )
            pairs.append(self._not_too_long(epoch, row, pair))
        sides = [list(side) for side in zip(*pairs, strict=True)] or [[], []]
        return pyarrow.table([ids, *sides], schema=SAMPLES)

    def _marked_texts(self, epoch: int, rows: np.ndarray) -> list[tuple[str, str]]:
        """Returns the texts of pairs as the tokenizer gets them, each joined with others and changed as planned."""
        joined = self._plan(epoch).joined
        groups = [(row, *joined.get(row, ())) for row in rows.tolist()]
        table = self._texts[np.concatenate([np.array(group) for group in groups])]
        sources, targets = (iter(table[side].to_pylist()) for side in SIDES)
        texts = []
        for group in groups:
            source, target = ([next(side) for _ in group] for side in (sources, targets))
            if self._augmentation is None:
                texts.append(self._layer.prepare_pair(source[0], target[0]))
            else:
                texts.append(self._augmentation.pair(epoch, group[0], source, target))
        return texts

    def _not_too_long(
        self, epoch: int, row: int, pair: tuple[list[int], list[int]]
    ) -> tuple[Sequence[int], Sequence[int]]:
        """Returns a pair or, if one side has more pieces than every sentence of the corpus, the unchanged pair: a model
        with learned positions may have no position for the end of anything longer.

        Both sides are unchanged then, because a slot in one belongs to a slot in the other.
        """
        if all(len(pieces) < self._longest[side] for side, pieces in zip(SIDES, pair, strict=True)):
            return pair
        group = self._pairs[[row, *self._plan(epoch).joined.get(row, ())]]
        source, target = ([piece for one in group[name].to_pylist() for piece in one] for name in ENCODED)
        return source, target


def evaluation_batches(pairs: "datasets.Dataset", batch_tokens: int) -> Iterator[Batch]:
    """Yields every encoded pair once, in the same batches each time.

    The longest pairs come first, so that a batch too large for the memory fails at once and not after all the others.
    """
    source, target = (numbers(pairs, f"{side}_length") + 1 for side in SIDES)
    encoded = pairs.with_format("arrow").select_columns(["id", *ENCODED])
    for rows in reversed(_cut(*_by_length(np.arange(len(pairs)), *_places(source, target)), batch_tokens)):
        yield _collate_table(encoded[rows])


def _places(source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the longer length of each row (N,), and where it has to stand among the others (N,), so that neighbours
    have similar lengths. Both are arrays of small numbers.

    The longer side decides how many rows fit into a batch, so the rows are sorted by its length. Those of one such
    length run from a longer source to a longer target, those of the next the other way round, so that the shorter sides
    of neighbours agree, too.

    Args:
        source, target: The lengths (N,) of the rows.
    """
    longest = np.maximum(source, target)
    most = int(longest.max(initial=0))
    longest = longest.astype(np.min_scalar_type(most))
    place = (target - source).astype(np.min_scalar_type(-2 * (most + 1) ** 2))
    np.negative(place, out=place, where=longest % 2 == 0)
    place += longest.astype(place.dtype) * (2 * most + 1)
    return longest, place


def _by_length(rows: np.ndarray, longest: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorts the numbers (N,) of rows and their longer lengths by what ``_places`` returned. Rows of equal lengths keep
    their order."""
    order = np.argsort(place, kind="stable")  # in linear time for small numbers
    return rows[order], longest[order]


def _cut(rows: np.ndarray, longest: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Divides rows, as ``_by_length`` returns them, into batches that are as large as the budget allows."""
    batches = []
    start = 0
    while start < len(rows):
        window = longest[start : start + max(1, batch_tokens // int(longest[start]))]
        cost = window * np.arange(1, len(window) + 1)
        end = start + max(1, int(np.searchsorted(cost, batch_tokens, side="right")))
        batches.append(rows[start:end])
        start = end
    return batches


def _with_numbers(pairs: "datasets.Dataset", language: str) -> np.ndarray:
    """Returns (N,) bool: which sources have a number word."""
    if (pattern := number_words.pattern(language)) is None:
        return np.zeros(len(pairs), dtype=bool)
    return np.concatenate(
        [match_substring_regex(table["source"], pattern).to_numpy() for table in tables(pairs, ["source"])]
    )


def _windows(plan: list[np.ndarray]) -> list[list[np.ndarray]]:
    """Divides the batches of an epoch into windows of about equal size, at most WINDOW batches each."""
    count = -(-len(plan) // WINDOW)
    return [plan[len(plan) * number // count : len(plan) * (number + 1) // count] for number in range(count)]


def _cut_anew(samples: pyarrow.Table, count: int, random: np.random.Generator) -> list[np.ndarray]:
    """Divides samples into exactly ``count`` batches of similar lengths, as evenly as possible.

    Returns:
        The batches in random order, each an array of row numbers of ``samples``.
    """
    rows = random.permutation(len(samples))
    source, target = (list_value_length(samples[name]).to_numpy()[rows] + 1 for name in ENCODED)
    longest = np.maximum(source, target)
    by_length = _by_length(np.arange(len(rows)), *_places(source, target))

    def cut(budget: int) -> list[np.ndarray]:
        return _cut(*by_length, budget)

    # A larger budget never makes more batches, so bisection finds the smallest one that makes at most ``count``.
    budgets = range(int(longest.max()) * len(rows))
    batches = cut(bisect_left(budgets, True, lo=1, key=lambda budget: len(cut(budget)) <= count))
    while len(batches) < count:
        costs = [longest[batch].max() * len(batch) * (len(batch) > 1) for batch in batches]
        largest = int(np.argmax(costs))
        batches[largest : largest + 1] = np.array_split(batches[largest], 2)
    return [rows[batches[number]] for number in random.permutation(count)]


def _collate_table(table: pyarrow.Table) -> Batch:
    sources, targets = (table[name].combine_chunks().to_numpy(zero_copy_only=False) for name in ENCODED)
    return collate(table["id"].to_numpy(), sources, targets)


def _padded(sentences: Sequence[Sequence[int]], first: tuple[int, ...]) -> Tensor:
    """Returns a tensor (B, longest), whose rows hold ``first``, the sentence, EOS, and PAD up to the longest row."""
    width = max((len(pieces) for pieces in sentences), default=0) + len(first) + 1
    padded = np.full((len(sentences), width), PAD, dtype=np.int64)
    padded[:, : len(first)] = first
    for row, pieces in zip(padded, sentences, strict=True):
        end = len(first) + len(pieces)
        row[len(first) : end] = pieces
        row[end] = EOS
    return torch.from_numpy(padded)
