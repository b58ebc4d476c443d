"""Reports how many pairs of a split were read, kept and dropped."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mt.data.readers.split import InputFile

MAX_FILE_LINES = 20
"""The most files that the report has a line each for."""


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

    def with_files_kept(self, ids: Sequence[int] | np.ndarray) -> "SplitReport":
        """Return the report with the number of kept pairs of each file.

        Args:
            ids: The numbers of the kept pairs, counted from the first pair that was read, in ascending order.
        """
        ends = np.cumsum([0, *(file.pairs for file in self.files)])
        counts = np.diff(np.searchsorted(ids, ends)).tolist()
        files = (replace(file, kept=count) for file, count in zip(self.files, counts, strict=True))
        return replace(self, files=tuple(files))

    def after_dropping(self, counts: dict[str, int]) -> "SplitReport":
        """Return the report with more dropped pairs, given their number for each reason."""
        return replace(self, kept=self.kept - sum(counts.values()), dropped=self.dropped | counts)
