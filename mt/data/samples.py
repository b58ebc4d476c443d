"""Make the tokens of training pairs for one epoch: pairs are joined, changed by augmentation, and cut into sampled
subwords.

The processes of ``parallel.py`` import this file, so it imports nothing large, such as PyTorch.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow
from pyarrow.compute import list_value_length

from mt.config import AugmentationConfig
from mt.core.randomness import key, random_bits
from mt.data.augmentation import Augmentation, CorpusStatistics
from mt.data.pairs import ID_COLUMNS, SIDES, TOKENS
from mt.text.layer import TextLayer

SAMPLES = pyarrow.schema([("id", pyarrow.int64()), *((name, TOKENS) for name in ID_COLUMNS)])
"""The columns of samples: the id of each pair, and its token ids without BOS and EOS."""


class SampleRequest(NamedTuple):
    """B encoded pairs to sample from."""

    epoch: int
    encoded: pyarrow.Table
    """The pairs, neither changed nor sampled, with the columns of SAMPLES."""
    changed: np.ndarray
    """(C,), the positions of the pairs to augment."""
    groups: list[tuple[int, ...]]
    """For each of these, its row, followed by the rows that are joined to it."""
    sources: list[str]
    """The sources of all rows in ``groups``, in order."""
    targets: list[str]
    """The targets of all rows in ``groups``, in order."""


class SampleMaker:
    """Makes samples of encoded pairs, without access to the corpus. A ``PairSampler`` and its processes hold one each.

    A sample depends on the seed, the epoch and the pair alone.
    """

    def __init__(
        self,
        layer: TextLayer,
        augmentation: AugmentationConfig,
        sampling: float,
        seed: int,
        statistics: CorpusStatistics | None,
    ) -> None:
        """
        Args:
            layer: The text layer, which makes tokens of changed texts.
            augmentation: The settings of augmentation.
            sampling: The strength of subword sampling; 0 turns it off.
            seed: Determines the samples.
            statistics: The corpus statistics that augmentation needs; None if augmentation is off.
        """
        self._arguments = layer, augmentation, sampling, seed, statistics
        self._seed = seed
        self._tokenizers = layer.tokenizers.source, layer.tokenizers.target
        self.augmentation = Augmentation(augmentation, layer, seed, statistics) if statistics else None
        self._samplers = []
        if sampling:
            sampler = self._tokenizers[0].sampler(sampling)
            is_same = self._tokenizers[0] is self._tokenizers[1]
            self._samplers = [sampler, sampler if is_same else self._tokenizers[1].sampler(sampling)]

    def __reduce__(self) -> tuple:
        return SampleMaker, self._arguments

    @property
    def is_off(self) -> bool:
        """Whether every sample equals the encoded pair."""
        return not self._samplers and self.augmentation is None

    def __call__(self, request: SampleRequest) -> pyarrow.Table:
        """Return a sample of each pair, with the columns of SAMPLES. It may be longer than every encoded pair."""
        samples = request.encoded
        if self.augmentation is not None and len(request.changed):
            pairs = [
                self.augmentation.pair(request.epoch, group[0], request.sources[rows], request.targets[rows])
                for group, rows in zip(request.groups, _slices(request.groups), strict=True)
            ]
            sides = zip(self._tokenizers, zip(*pairs, strict=True), strict=True)
            samples = replaced(samples, request.changed, [tokenizer.encode(texts) for tokenizer, texts in sides])
        if not self._samplers:
            return samples
        ids = samples["id"].to_numpy().view(np.uint64)
        columns = []
        for side, name, sampler in zip(SIDES, ID_COLUMNS, self._samplers, strict=True):
            keys = random_bits(np.array([key(self._seed, f"sampling {side}", request.epoch)], np.uint64), ids)
            columns.append(sampler.sample(samples[name].combine_chunks(), keys))
        return pyarrow.table([samples["id"], *columns], schema=SAMPLES)


def _slices(groups: Sequence[Sequence[int]]) -> list[slice]:
    """Return the positions of each group in the concatenation of all groups."""
    ends = [0, *accumulate(map(len, groups))]
    return [slice(*positions) for positions in pairwise(ends)]


def replaced(samples: pyarrow.Table, positions: np.ndarray, tokens: Sequence[list[list[int]]]) -> pyarrow.Table:
    """Return samples with other source tokens and other target tokens at some positions, (P,)."""
    indices = np.arange(len(samples))
    indices[positions] = len(samples) + np.arange(len(positions))
    columns = [
        pyarrow.concat_arrays([samples[name].combine_chunks(), pyarrow.array(side, TOKENS)]).take(
            pyarrow.array(indices)
        )
        for name, side in zip(ID_COLUMNS, tokens, strict=True)
    ]
    return pyarrow.table([samples["id"], *columns], schema=SAMPLES)


def sample_lengths(samples: pyarrow.Table) -> np.ndarray:
    """Return the lengths of N samples, EOS included: (2, N), sources first."""
    return np.stack([list_value_length(samples[name]).to_numpy() + 1 for name in ID_COLUMNS])
