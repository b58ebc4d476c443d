"""One split of a corpus as the readers return it."""

from dataclasses import dataclass

import datasets


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
