"""Load the corpora of all kinds as datasets of the library ``datasets``.

Text is parsed once and then cached as memory-mapped Arrow files. The two sides of a pair are never separated: a pair
that cannot be used is dropped as a whole and counted by reason.
"""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

import datasets
import numpy as np
import pyarrow
from datasets.table import concat_tables
from pyarrow import compute

from mt.config import (
    DataConfig,
    MixtureConfig,
    PileConfig,
    RecipeConfig,
    SingleCorpusConfig,
    named_sets,
    single_corpora,
)
from mt.config.data import SPLITS, directed_corpora
from mt.core.columns import evenly_spaced_rows, numbers
from mt.core.errors import InputError
from mt.core.language import Direction
from mt.data.cache import cached_table, concatenate, digest, select_rows
from mt.data.pairs import EMPTY, FAULT, FAULTS, KEYS, PAIR_HASH, SIDES, UNREADABLE
from mt.data.readers import READERS, check_input_files
from mt.data.split import Split, SplitReport, drop_shared_sentences, hold_out, log_repetitions
from mt.text.placeholders import CORPUS_TAG

logger = logging.getLogger(__name__)

NUMBERED_COLUMNS = pyarrow.schema([("id", pyarrow.int64()), ("weight", pyarrow.float32())])
"""The columns that are added to training pairs when their corpus is loaded."""


@dataclass(frozen=True)
class Corpus:
    """The training, validation and test pairs of a run.

    The columns are:

    - ``id`` int64: the number of the pair in its split or validation set, from 0. In a mixture, the numbers continue
      from corpus to corpus.
    - ``source`` and ``target`` string.
    - KEYS and PAIR_HASH int64: hashes of the sentences and of the pair.
    - ``weight`` float32, only in ``train``: the number of uses of the pair in an epoch, on average.
    """

    train: datasets.Dataset
    valid: datasets.Dataset
    test: datasets.Dataset
    report: list[SplitReport]
    """Reports on the training splits, in the order of their pairs, then on the validation sets and the test splits."""

    def validation_sets(self) -> dict[str, datasets.Dataset]:
        """Return the pairs of each validation set by the prefix of its metrics: ``NAME.``, or "" for a set without a
        name."""
        sets = [entry for entry in self.report if entry.split == "valid"]
        parts = _split_consecutive(self.valid, [entry.kept for entry in sets])
        return {entry.prefix: pairs for entry, pairs in zip(sets, parts, strict=True)}

    def split_by_direction(self) -> "dict[Direction, Corpus]":
        """Return the part of each direction. In every split, the pairs of a direction are consecutive."""
        reports: dict[Direction, list[SplitReport]] = {}
        for entry in self.report:
            reports.setdefault(entry.direction, []).append(entry)
        if len(reports) == 1:
            return dict.fromkeys(reports, self)
        splits = [
            _split_consecutive(
                pairs, [sum(entry.kept for entry in entries if entry.split == split) for entries in reports.values()]
            )
            for split, pairs in (("train", self.train), ("valid", self.valid), ("test", self.test))
        ]
        return {direction: Corpus(*parts) for direction, *parts in zip(reports, *splits, reports.values(), strict=True)}

    @property
    def checksums(self) -> list[str]:
        """The checksums of all splits that were read. They include dropped pairs."""
        return [entry.sha256 for entry in self.report if entry.sha256]

    def drop_key_columns(self) -> "Corpus":
        """Drop the columns KEYS and PAIR_HASH, which training does not need."""
        train, valid, test = (pairs.remove_columns([*KEYS, PAIR_HASH]) for pairs in (self.train, self.valid, self.test))
        return replace(self, train=train, valid=valid, test=test)


def load_corpus(config: DataConfig, warn: bool = True) -> Corpus:
    """Load the training, validation and test pairs of ``config`` from files or from the cache.

    - A pair is dropped if one of its sides is empty. A training pair is also dropped if one of its sides is not UTF-8.
    - In a mixture, the validation and test pairs of a direction come from its first corpus. A split that the corpus
      lacks is held out of its training pairs.
    - Training pairs that share a sentence with validation or test pairs are dropped: in a mixture from all corpora
      except the first, and with several directions from all corpora.

    Text is never held in memory. If the cache lacks the result, hashes take about 70 bytes of memory per pair.

    Args:
        config: The section ``data`` of the settings.
        warn: Whether to log frequent errors in the data, such as repeated pairs.

    Raises:
        InputError: A file is missing, corrupted, empty or in another format than ``config`` says, no pair of a split
            can be used, or there are too few pairs to hold out validation and test pairs.
    """
    _silence_progress()
    check_input_files(single_corpora(config))
    corpora = directed_corpora(config)
    training, report = _read_training(corpora, config)
    held_out: dict[str, list[datasets.Dataset]] = {"valid": [], "test": []}
    several = len({corpus.direction for corpus in corpora}) > 1
    for number, corpus in enumerate(corpora):
        if number > 0 and corpus.direction == corpora[number - 1].direction:
            continue  # not the first corpus of its direction
        training[number], report[number], evaluation, entries = _read_evaluation(
            corpus, training[number], report[number], several
        )
        report += entries
        for split, pairs in evaluation.items():
            held_out[split].append(pairs)
    evaluation = {split: concatenate(parts) for split, parts in held_out.items()}
    # Corpora often repeat sentences of the first one. With several directions, a language can be on either side.
    evaluated = list(evaluation.values())
    if several:
        evaluated += map(_swap_sides, evaluation.values())
    for number in range(0 if several else 1, len(training)):
        training[number], dropped = drop_shared_sentences(training[number], evaluated)
        report[number] = report[number].with_dropped(dropped)
    if warn:
        log_repetitions(concatenate(training), evaluation)
    train = concatenate([_add_corpus_tag(pairs, corpus) for pairs, corpus in zip(training, corpora, strict=True)])
    return Corpus(train, evaluation["valid"], evaluation["test"], report)


def _read_evaluation(
    corpus: SingleCorpusConfig, train: datasets.Dataset, report: SplitReport, several: bool
) -> tuple[datasets.Dataset, SplitReport, dict[str, datasets.Dataset], list[SplitReport]]:
    """Read the validation and test pairs of a direction. Hold missing splits out of its training pairs.

    Args:
        corpus: The first corpus of the direction.
        train: The training pairs of this corpus.
        report: The report on the training pairs.
        several: Whether the model has several directions.

    Returns:
        The remaining training pairs and the report on them, a dict from split to its pairs, and the reports on these.
    """
    direction = corpus.direction
    key = f"{direction.key}." if several else ""
    evaluation: dict[str, datasets.Dataset] = {}
    entries: list[SplitReport] = []
    for split in SPLITS:
        parts: list[datasets.Dataset] = []
        for name, part in named_sets(corpus, split).items():
            if result := _read_split(part, split):
                pairs = result.pairs.add_column("id", np.arange(len(result.pairs)))
                usable, entry = _remove_faulty(pairs, _initial_report(split, result, direction), EMPTY, UNREADABLE)
                parts.append(usable)
                entries.append(replace(entry, prefix=f"{name}." if name else key))
        if parts:
            evaluation[split] = concatenate(parts)
    if missing := [split for split in ("test", "valid") if split not in evaluation]:
        train, held_out = _hold_out(train, corpus, missing)
        evaluation |= held_out
        for split, pairs in held_out.items():
            origin = f"held out of {report.origin}"
            entries.append(SplitReport(split, origin, len(pairs), direction=direction, prefix=key))
        report = report.with_dropped({f"held out for {split}": numbers(held_out[split], "id") for split in missing})
    return train, report, evaluation, entries


def _read_split(corpus: SingleCorpusConfig, split: str) -> Split | None:
    """Read a split of a corpus, and swap its sides if the corpus is reversed."""
    if not corpus.reverse:
        return READERS[type(corpus)](corpus, split)
    result = _read_split(corpus.towards(corpus.direction.opposite).model_copy(update={"reverse": False}), split)
    return result and replace(result, pairs=_swap_sides(result.pairs))


def _swap_sides(pairs: datasets.Dataset) -> datasets.Dataset:
    """Swap the sources and targets of pairs."""
    swapped_names = {name: other for sides in (SIDES, KEYS) for name, other in zip(sides, sides[::-1], strict=True)}
    return pairs.rename_columns(swapped_names).select_columns(pairs.column_names)


def _silence_progress() -> None:
    """Disable the progress bars and log messages of ``datasets`` and ``huggingface_hub``."""
    import huggingface_hub  # datasets depends on it

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    huggingface_hub.utils.disable_progress_bars()
    huggingface_hub.utils.logging.set_verbosity_error()


def _read_training(
    corpora: Sequence[SingleCorpusConfig], config: DataConfig
) -> tuple[list[datasets.Dataset], list[SplitReport]]:
    """Read the training pairs of each corpus, and drop those that cannot be used.

    Args:
        corpora: The corpora of a mixture, or a single one, grouped by direction.
        config: The section ``data`` of the settings.

    Returns:
        The pairs of each corpus, with the columns of NUMBERED_COLUMNS, and the report on each. The ids continue from
        corpus to corpus.
    """
    training: list[datasets.Dataset] = []
    report: list[SplitReport] = []
    first_id = 0
    splits = [split for corpus in corpora if (split := _read_split(corpus, "train"))]  # every corpus has one
    weights = direction_weights(corpora, [len(split.pairs) for split in splits], config)
    for corpus, split, weight in zip(corpora, splits, weights, strict=True):
        pairs = _add_numbers(split.pairs, first_id, weight)
        usable, entry = _remove_faulty(pairs, _initial_report("train", split, corpus.direction, first_id), *FAULTS)
        training.append(usable)
        report.append(entry)
        first_id += len(pairs)
    return training, report


def direction_weights(corpora: Sequence[SingleCorpusConfig], sizes: Sequence[int], config: DataConfig) -> list[float]:
    """Return for each corpus the weight of its pairs, given the weights of the corpora and the temperature.

    Args:
        corpora: The corpora.
        sizes: The number of pairs of each corpus.
        config: The section ``data`` of the settings.
    """
    if not isinstance(config, MixtureConfig):
        return [corpus.weight for corpus in corpora]
    weights = [config.weight * corpus.weight for corpus in corpora]
    pairs = dict.fromkeys((corpus.direction for corpus in corpora), 0.0)
    for corpus, weight, size in zip(corpora, weights, sizes, strict=True):
        pairs[corpus.direction] += weight * size
    largest = max(pairs.values())
    # A direction of n pairs gets c · n^(1/T) pairs of an epoch. The constant c makes the largest direction keep n
    # pairs.
    factors = {key: (largest / count) ** (1 - 1 / config.temperature) for key, count in pairs.items()}
    return [weight * factors[corpus.direction] for corpus, weight in zip(corpora, weights, strict=True)]


def _add_corpus_tag(pairs: datasets.Dataset, corpus: SingleCorpusConfig) -> datasets.Dataset:
    """Prepend CORPUS_TAG and a space to each source if the corpus is tagged."""
    if not (isinstance(corpus, PileConfig) and corpus.tagged):
        return pairs
    return pairs.map(
        lambda batch: {"source": [f"{CORPUS_TAG} {source}" for source in batch["source"]]},
        batched=True,
        new_fingerprint=digest((pairs._fingerprint, CORPUS_TAG)),
    )


def _add_numbers(pairs: datasets.Dataset, first_id: int, weight: float) -> datasets.Dataset:
    """Add the columns of NUMBERED_COLUMNS to pairs: consecutive ids from ``first_id``, and one weight for all pairs."""

    def columns() -> list[pyarrow.RecordBatch]:
        ids, weights = np.arange(first_id, first_id + len(pairs)), np.full(len(pairs), weight, np.float32)
        return [pyarrow.record_batch([ids, weights], NUMBERED_COLUMNS)]

    numbered = cached_table(digest(("numbered", len(pairs), first_id, weight)), NUMBERED_COLUMNS, columns)
    fingerprint = digest((pairs._fingerprint, numbered._fingerprint))
    return datasets.Dataset(concat_tables([pairs.data, numbered.data], axis=1), fingerprint=fingerprint)


def _initial_report(name: str, split: Split, direction: Direction, first_id: int = 0) -> SplitReport:
    """Return the report on the split ``name`` before any pairs are dropped."""
    sha256 = hashlib.sha256(numbers(split.pairs, PAIR_HASH).tobytes()).hexdigest()
    read = len(split.pairs)
    return SplitReport(name, split.origin, read, direction, files=split.files, first_id=first_id, sha256=sha256)


def _remove_faulty(pairs: datasets.Dataset, report: SplitReport, *faults: str) -> tuple[datasets.Dataset, SplitReport]:
    """Remove the pairs with one of ``faults``, and the column FAULT. Return the remaining pairs and the updated report.

    Raises:
        InputError: No pair is left.
    """
    column, ids = pairs.data.column(FAULT), numbers(pairs, "id")
    dropped = {fault: ids[compute.equal(column, fault).to_numpy()] for fault in faults}
    report = report.with_dropped(dropped)
    if not report.kept:
        reasons = ", ".join(f"{count:,} {fault}" for fault, count in report.dropped.items())
        raise InputError(
            f"{report.origin}: none of {report.read:,} {report.split} pairs can be used: {reasons}; check that the "
            "config names the right files or columns"
        )
    if report.dropped:
        is_faulty = compute.is_in(column, pyarrow.array(faults))
        pairs = select_rows(pairs, ("usable", faults), lambda: np.flatnonzero(~is_faulty.to_numpy()))
    return pairs.remove_columns(FAULT), report


def _hold_out(
    train: datasets.Dataset, corpus: SingleCorpusConfig, splits: Sequence[str]
) -> tuple[datasets.Dataset, dict[str, datasets.Dataset]]:
    """Hold validation or test pairs out of the training pairs.

    Args:
        train: The training pairs.
        corpus: The config of the corpus, with the size of each split. A split gets at most a tenth of the training
            pairs.
        splits: The splits to hold out: ``valid``, ``test`` or both.

    Returns:
        The remaining training pairs, and a dict that maps each split to its pairs.

    Raises:
        InputError: There are too few training pairs.
    """
    assert not isinstance(corpus, RecipeConfig), "recipes write all their splits"
    max_pairs = max(1, len(train) // 10)
    sizes = []
    for split in splits:
        wanted = getattr(corpus, f"{split}_pairs")
        if wanted > max_pairs:
            logger.info("%s: data.%s_pairs=%d is reduced to %d, a tenth of all pairs", split, split, wanted, max_pairs)
        sizes.append(min(wanted, max_pairs))
    if sum(sizes) >= len(train):
        raise InputError(
            f"{len(train)} training pairs are too few to hold {' and '.join(splits)} pairs out of; add training pairs, "
            "or name files for these splits"
        )

    @cache
    def parts() -> np.ndarray:
        return hold_out(numbers(train, PAIR_HASH), [numbers(train, key) for key in KEYS], sizes)

    def pairs_of(number: int) -> datasets.Dataset:
        return select_rows(train, ("held out", sizes, number), lambda: np.flatnonzero(parts() == number))

    return pairs_of(0), {split: pairs_of(number).remove_columns("weight") for number, split in enumerate(splits, 1)}


def _split_consecutive(pairs: datasets.Dataset, sizes: Sequence[int]) -> list[datasets.Dataset]:
    """Split pairs into consecutive parts of the given sizes."""
    return [pairs.select(range(end - size, end)) for size, end in zip(sizes, accumulate(sizes), strict=True)]


def evenly_spaced_pairs(pairs: datasets.Dataset, count: int) -> datasets.Dataset:
    """Return ``count`` evenly spaced pairs, because corpora are often sorted. If there are fewer pairs, return all."""
    if count >= len(pairs):
        return pairs
    return pairs.select(evenly_spaced_rows(len(pairs), count))
