"""One split of a corpus: its pairs and files, and the report on how many pairs were read, kept and dropped."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import datasets
import numpy as np

MAX_FILE_LINES = 20
"""The most files that the report has a line each for."""


@dataclass(frozen=True)
class InputFile:
    """An input file, or one pair of files, and how many of its pairs are used."""

    paths: tuple[str, ...]
    pairs: int = 0
    sha256: str = ""
    """Of the sentences (``sentences_sha256``). "" for a file that was left out."""
    left_out: str = ""
    """Why the file is bad and nothing of it is used; "" for a good one."""
    kept: int = 0
    """The number of pairs that are used."""

    @property
    def name(self) -> str:
        return " + ".join(self.paths)

    @property
    def kept_share(self) -> float:
        return self.kept / max(1, self.pairs)

    def __str__(self) -> str:
        counts = f"{self.pairs:,} pairs read, {self.kept:,} kept"
        return f"{self.name}: {f'left out: {self.left_out}' if self.left_out else counts}"


@dataclass(frozen=True)
class Split:
    """One split of a corpus."""

    pairs: datasets.Dataset
    """With PAIRS as its columns."""
    origin: str
    """What it is called in messages."""
    files: tuple[InputFile, ...] = ()
    """The files, in the order of their pairs, where the config names many; () for anything else."""


@dataclass(frozen=True)
class SplitReport:
    """How many pairs of one split of one corpus were read, kept and dropped; read = kept + all that were dropped."""

    split: str
    origin: str
    read: int
    kept: int
    dropped: dict[str, int]
    """The number of dropped pairs for each reason."""
    files: tuple[InputFile, ...] = ()
    """The files, where the config names many; () for anything else."""
    first_id: int = 0
    """The id of the first pair that was read."""

    def __str__(self) -> str:
        reasons = "".join(f", {count:,} {reason}" for reason, count in self.dropped.items())
        return f"{self.split}: {self.origin}: {self.read:,} pairs read, {self.kept:,} kept{reasons}"

    def file_lines(self) -> list[str]:
        """Return a line for each file. Of more than MAX_FILE_LINES, those with the smallest share of kept pairs have
        one each, and all others one together."""
        order = sorted(range(len(self.files)), key=lambda number: self.files[number].kept_share)
        lines = [str(self.files[number]) for number in sorted(order[:MAX_FILE_LINES])]
        if rest := [self.files[number] for number in order[MAX_FILE_LINES:]]:
            read, kept = sum(file.pairs for file in rest), sum(file.kept for file in rest)
            lines.append(f"{len(rest)} more files: {read:,} pairs read, {kept:,} kept")
        return [f"{self.split}:   {line}" for line in lines]

    def without(self, dropped: Mapping[str, np.ndarray]) -> "SplitReport":
        """Return the report after pairs were dropped.

        Args:
            dropped: The ids of dropped pairs for each reason, in ascending order. Those of other corpora do not count.
        """
        edges = self.first_id + np.cumsum([0, *([file.pairs for file in self.files] or [self.read])])
        by_file = {reason: np.diff(np.searchsorted(ids, edges)) for reason, ids in dropped.items()}
        counts = {reason: int(of_reason.sum()) for reason, of_reason in by_file.items() if of_reason.any()}
        lost = sum(by_file.values(), np.zeros(len(edges) - 1, dtype=int)).tolist()
        files = tuple(replace(file, kept=file.kept - count) for file, count in zip(self.files, lost, strict=False))
        return replace(self, kept=self.kept - sum(counts.values()), dropped=self.dropped | counts, files=files)
