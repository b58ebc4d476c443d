"""Loads parallel text of every kind as ``datasets`` data sets, which are memory-mapped Arrow files, read once and then
cached.

The two sides of a pair are never separated: a pair that cannot be used is dropped as a whole, counted and reported.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import datasets
import huggingface_hub
import numpy as np
import pyarrow
from datasets.table import concat_tables
from pyarrow import compute

from mt.config import DataConfig, FilesConfig, MixtureConfig, RecipeConfig, SingleCorpusConfig, TableConfig
from mt.core.columns import ROWS_AT_ONCE, evenly_spaced_rows, numbers, tables
from mt.core.errors import InputError
from mt.data.cache import cached_table, chosen, digest
from mt.data.pairs import FAULT, KEYS, PAIR_HASH
from mt.data.readers import FileRead, concatenated, read_split, refuse_missing_files
from mt.data.split import hold_out
from mt.text.slots import TAG

logger = logging.getLogger(__name__)

SIDES = ("source", "target")
MIXING = 0x9E3779B97F4A7C15 - 2**64
"""An odd number by which one hash is multiplied before another is added, so that the sum is a hash of both."""
NUMBERED = pyarrow.schema([("id", pyarrow.int64()), ("weight", pyarrow.float32())])
LINES_OF_FILES = 20
"""The most files of a pile that the report has a line each for."""
OTHER_FORM = "with other case, punctuation or white space"


@dataclass(frozen=True)
class SplitReport:
    """How many pairs of one split of one corpus were read, kept and dropped; read = kept + all that were dropped."""

    split: str
    origin: str
    read: int
    kept: int
    dropped: dict[str, int]
    """The number of dropped pairs for each reason."""
    files: tuple[FileRead, ...] = ()
    """The files of a pile; () for anything else."""
    files_kept: tuple[int, ...] = ()
    """How many pairs of each of them were kept."""

    def __str__(self) -> str:
        reasons = "".join(f", {count:,} {reason}" for reason, count in self.dropped.items())
        return f"{self.split}: {self.origin}: {self.read:,} pairs read, {self.kept:,} kept{reasons}"

    def lines_of_files(self) -> list[str]:
        """Returns a line for each file. Of more than LINES_OF_FILES, only for those of which the smallest part was
        kept, and one for all others."""
        share = {
            number: kept / max(1, file.pairs)
            for number, (file, kept) in enumerate(zip(self.files, self.files_kept, strict=True))
        }
        shown = sorted(sorted(share, key=share.__getitem__)[:LINES_OF_FILES])
        lines = [self._line_of(number) for number in shown]
        if rest := share.keys() - shown:
            read = sum(self.files[number].pairs for number in rest)
            kept = sum(self.files_kept[number] for number in rest)
            lines.append(f"{self.split}:   {len(rest)} more files: {read:,} pairs read, {kept:,} kept")
        return lines

    def _line_of(self, number: int) -> str:
        file, kept = self.files[number], self.files_kept[number]
        what = f"left out: {file.left_out}" if file.left_out else f"{file.pairs:,} pairs read, {kept:,} kept"
        return f"{self.split}:   {file.name}: {what}"

    def with_files_kept(self, ids: Sequence[int] | np.ndarray) -> "SplitReport":
        """Returns the report with ``files_kept``. ``ids`` are the numbers of the kept pairs, counted from the first
        pair that was read, in ascending order."""
        ends = np.cumsum([0, *(file.pairs for file in self.files)])
        return replace(self, files_kept=tuple(np.diff(np.searchsorted(ids, ends)).tolist()))

    def after_dropping(self, counts: dict[str, int]) -> "SplitReport":
        """Returns the report with more dropped pairs: ``counts`` holds their number for each reason."""
        return replace(self, kept=self.kept - sum(counts.values()), dropped=self.dropped | counts)


@dataclass(frozen=True)
class Corpus:
    """The training, validation and test pairs of a run.

    The columns are ``id`` int64 (the pair's number in its split; in a mixture, the numbers continue from corpus to
    corpus), ``source`` and ``target`` string, KEYS and PAIR_HASH int64; in ``train`` also ``weight`` float32.
    """

    train: datasets.Dataset
    valid: datasets.Dataset
    test: datasets.Dataset
    report: list[SplitReport]

    def without_keys(self) -> "Corpus":
        """Returns the corpus without the hashes of its sentences and pairs, which training does not need."""
        train, valid, test = (pairs.remove_columns([*KEYS, PAIR_HASH]) for pairs in (self.train, self.valid, self.test))
        return replace(self, train=train, valid=valid, test=test)


def load_corpus(config: DataConfig, tell: bool = True) -> Corpus:
    """Reads all data that ``config`` names, or finds them in the cache of ``datasets``.

    Only training pairs are dropped, validation and test data stay whole. A training pair is dropped if a side is empty
    or not UTF-8, or if it is in the second or a later corpus of a mixture and shares a sentence with validation or
    test. A missing validation or test split is held out of the training pairs. Validation and test data of a mixture
    come from its first corpus.

    Text is never held in memory. Of the 64-bit hashes by which equal sentences are found, some 70 bytes a pair are, and
    only as long as the cache does not have the result.

    Args:
        config: What to read.
        tell: Whether to log what is often a mistake in the data, such as repeated pairs.

    Raises:
        InputError: Something is missing, damaged, empty or of another form than ``config`` says.
    """
    _silence_libraries()
    corpora: tuple[SingleCorpusConfig, ...] = config.corpora if isinstance(config, MixtureConfig) else (config,)
    refuse_missing_files(corpora)
    training, report = _read_training(corpora, config.weight if isinstance(config, MixtureConfig) else 1.0)
    evaluation: dict[str, datasets.Dataset] = {}
    for split in ("valid", "test"):
        if found := read_split(corpora[0], split):
            pairs, count = found.pairs, len(found.pairs)
            evaluation[split] = pairs.remove_columns(FAULT).add_column("id", np.arange(count))
            report.append(
                SplitReport(split, found.origin, count, count, {}, found.files).with_files_kept(np.arange(count))
            )
    if missing := [split for split in ("test", "valid") if split not in evaluation]:
        training[0], held_out = _hold_out(training[0], corpora[0], missing)
        for split, pairs in held_out.items():
            evaluation[split] = pairs
            report.append(SplitReport(split, f"held out of {report[0].origin}", len(pairs), len(pairs), {}))
        counts = {f"held out for {split}": len(pairs) for split, pairs in held_out.items()}
        report[0] = report[0].after_dropping(counts)
    # The other corpora of a mixture often repeat sentences of the first one.
    for number in range(1, len(training)):
        equal, shared = share_a_sentence(training[number], list(evaluation.values()))
        if shared.any():
            key = ("shared", [pairs._fingerprint for pairs in evaluation.values()])
            training[number] = chosen(training[number], key, partial(np.flatnonzero, ~shared))
            counts = {
                "shared with valid or test": int(equal.sum()),
                f"shared with valid or test {OTHER_FORM}": int((shared & ~equal).sum()),
            }
            report[number] = report[number].after_dropping({reason: n for reason, n in counts.items() if n})
    first_id = 0
    for number, pairs in enumerate(training):
        report[number] = report[number].with_files_kept(numbers(pairs, "id") - first_id)
        first_id += report[number].read
    if tell:
        _tell_peculiarities(concatenated(training), evaluation)
    train = concatenated([_with_tags(*each) for each in zip(training, corpora, strict=True)])
    return Corpus(train, evaluation["valid"], evaluation["test"], report)


def _silence_libraries() -> None:
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    huggingface_hub.utils.disable_progress_bars()
    huggingface_hub.utils.logging.set_verbosity_error()


def _read_training(
    corpora: Sequence[SingleCorpusConfig], weight: float
) -> tuple[list[datasets.Dataset], list[SplitReport]]:
    """Reads the usable training pairs of each corpus, and reports on them.

    The pairs are numbered on from corpus to corpus. Their weight is the corpus's own times ``weight``.
    """
    training: list[datasets.Dataset] = []
    report: list[SplitReport] = []
    first_id = 0
    for corpus in corpora:
        found = read_split(corpus, "train")
        assert found, "only validation and test can be missing"
        pairs, origin = _numbered(found.pairs, first_id, weight * corpus.weight), found.origin
        usable, dropped = _usable(pairs)
        if not len(usable):
            reasons = ", ".join(f"{count:,} {fault}" for fault, count in dropped.items())
            raise InputError(f"{origin}: of {len(pairs):,} training pairs none can be used: {reasons}")
        training.append(usable)
        report.append(SplitReport("train", origin, len(pairs), len(usable), dropped, found.files))
        first_id += len(pairs)
    return training, report


def _with_tags(pairs: datasets.Dataset, corpus: SingleCorpusConfig) -> datasets.Dataset:
    """Returns the pairs of a corpus, with a tag in front of each source if the corpus is tagged."""
    if not (isinstance(corpus, FilesConfig | TableConfig) and corpus.tagged):
        return pairs
    return pairs.map(
        lambda batch: {"source": [f"{TAG} {source}" for source in batch["source"]]},
        batched=True,
        new_fingerprint=digest((pairs._fingerprint, TAG)),
    )


def _numbered(pairs: datasets.Dataset, first_id: int, weight: float) -> datasets.Dataset:
    """Returns the pairs with two more columns: their ids, which ascend from ``first_id``, and their weight."""

    def batches() -> Iterator[pyarrow.RecordBatch]:
        for start in range(0, len(pairs), ROWS_AT_ONCE):
            ids = np.arange(start, min(start + ROWS_AT_ONCE, len(pairs))) + first_id
            yield pyarrow.record_batch([ids, np.full(len(ids), weight, dtype=np.float32)], schema=NUMBERED)

    numbered = cached_table(digest(("numbered", len(pairs), first_id, weight)), NUMBERED, batches)
    place = digest((pairs._fingerprint, numbered._fingerprint))
    return datasets.Dataset(concat_tables([pairs.data, numbered.data], axis=1), fingerprint=place)


def _tell_peculiarities(train: datasets.Dataset, evaluation: dict[str, datasets.Dataset]) -> None:
    """Logs what is often a mistake in the data, but often not. Nothing is changed.

    Pairs are counted by their hashes, so that by chance a count may be off by one: see ``sentence_key``.
    """
    keys = [numbers(train, key) for key in KEYS]
    distinct = _number_of_different(numbers(train, PAIR_HASH))
    forms = _number_of_different(keys[0] * MIXING + keys[1])
    alike = np.flatnonzero(keys[0] == keys[1])
    equal = sum(
        compute.sum(compute.equal(table["source"], table["target"])).as_py()
        for table in tables(train, ("source", "target"), alike)
    )
    for count, what in (
        (len(train) - distinct, "repeat an earlier one"),
        (distinct - forms, f"repeat an earlier one {OTHER_FORM}"),
        (equal, "have one text on both sides"),
    ):
        if count:
            logger.info("train: %s of %s pairs %s", f"{count:,}", f"{len(train):,}", what)
    for split, pairs in evaluation.items():
        own = numbers(pairs, KEYS[0])
        rows = np.flatnonzero(_is_in(keys[0], own))
        if nearly := int(_is_in(own, keys[0][rows]).sum()):
            there = _different_texts(train, "source", rows)
            known = sum(text in there for text in pairs["source"])
            more = f", {nearly - known:,} more {OTHER_FORM}" if nearly > known else ""
            logger.warning(
                "%s: %s of its %s sources also stand in the training data%s",
                split,
                f"{known:,}",
                f"{len(pairs):,}",
                more,
            )


def share_a_sentence(pairs: datasets.Dataset, others: Sequence[datasets.Dataset]) -> tuple[np.ndarray, np.ndarray]:
    """Returns which pairs have a source or target that also occurs on the same side of one of the others.

    Returns:
        (N,) bool, whether the texts are equal; and (N,) bool, whether they are the same (``mt.data.split``).
    """
    near = np.zeros(len(pairs), dtype=bool)
    for key in KEYS:
        near |= _is_in(numbers(pairs, key), np.concatenate([numbers(other, key) for other in others]))
    known = {side: set().union(*(_different_texts(other, side) for other in others)) for side in SIDES}
    rows = np.flatnonzero(near)
    equal = np.zeros(len(pairs), dtype=bool)
    equal[rows] = [
        source in known["source"] or target in known["target"]
        for table in tables(pairs, SIDES, rows)
        for source, target in zip(*(table[side].to_pylist() for side in SIDES), strict=True)
    ]
    return equal, near


def _is_in(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Returns (N,) bool: whether a value also occurs among the others, which should be few."""
    return compute.is_in(pyarrow.array(values), value_set=pyarrow.array(others)).to_numpy(zero_copy_only=False)


def _different_texts(pairs: datasets.Dataset, side: str, rows: np.ndarray | None = None) -> set[str]:
    return {text for table in tables(pairs, (side,), rows) for text in table[side].to_pylist()}


def _number_of_different(values: np.ndarray) -> int:
    values = np.sort(values)
    return min(1, len(values)) + int(np.count_nonzero(values[1:] != values[:-1]))


def _usable(pairs: datasets.Dataset) -> tuple[datasets.Dataset, dict[str, int]]:
    """Returns the pairs without a fault, and how often each fault occurs."""
    faults = pairs.data.column(FAULT)
    counts = {entry["values"]: entry["counts"] for entry in compute.value_counts(faults).to_pylist() if entry["values"]}
    if counts:
        pairs = chosen(pairs, "usable", lambda: np.flatnonzero(compute.equal(faults, "").to_numpy()))
    return pairs.remove_columns(FAULT), counts


def _hold_out(
    train: datasets.Dataset, corpus: SingleCorpusConfig, splits: Sequence[str]
) -> tuple[datasets.Dataset, dict[str, datasets.Dataset]]:
    """Holds pairs out of the training pairs.

    Returns:
        The remaining training pairs, and the pairs of each split. A split is as large as ``corpus`` says, but at most
        a tenth of the training pairs.
    """
    assert not isinstance(corpus, RecipeConfig), "recipes write all their splits"
    wanted = {"valid": corpus.valid_pairs, "test": corpus.test_pairs}
    most = max(1, len(train) // 10)
    for split in splits:
        if wanted[split] > most:
            logger.info("%s: data.%s_pairs=%d is cut to %d, a tenth of the pairs", split, split, wanted[split], most)
    sizes = [min(wanted[split], most) for split in splits]
    if sum(sizes) >= len(train):
        raise InputError(f"{len(train)} training pairs are too few to hold {' and '.join(splits)} pairs out of")

    @cache
    def part() -> np.ndarray:
        return hold_out(numbers(train, PAIR_HASH), (numbers(train, KEYS[0]), numbers(train, KEYS[1])), sizes)

    def pairs_of(number: int) -> datasets.Dataset:
        return chosen(train, ("held out", sizes, number), lambda: np.flatnonzero(part() == number))

    return pairs_of(0), {split: pairs_of(number).remove_columns("weight") for number, split in enumerate(splits, 1)}


def evenly_spaced(pairs: datasets.Dataset, count: int) -> datasets.Dataset:
    """Returns ``count`` pairs at even distances, because corpora are often sorted; all pairs if there are fewer."""
    if count >= len(pairs):
        return pairs
    return pairs.select(evenly_spaced_rows(len(pairs), count))
