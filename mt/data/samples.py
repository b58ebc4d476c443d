"""Make the tokens of training pairs for one epoch: join pairs, augment them, and sample their subwords.

Augmentation changes pairs so that a model learns to translate text as users type it: in lowercase, with uppercase
words, with typing errors, without final punctuation. It also inserts placeholders into more pairs than those with
numbers and links. The kinds of changes are defined by the phenomena of ``mt.text``.

The processes of ``parallel.py`` import this file, so it must not import large libraries such as PyTorch.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow
from pyarrow.compute import list_value_length, match_substring_regex

from mt.config import EXCLUSIVE_SHARES, AugmentationConfig
from mt.core.columns import tables
from mt.core.randomness import generator, key, random_bits
from mt.data.pairs import ID_COLUMNS, SIDES, TOKENS, side_texts
from mt.text.layer import VARIATIONS, TextLayer
from mt.text.lexicon import SYMBOLS, Lexicon, find_word_pairs, insert_placeholders, insert_symbol, reduce_to_word
from mt.text.numbers import number_word_pattern
from mt.text.placeholders import CORPUS_TAG
from mt.text.target_tags import split_tag

if TYPE_CHECKING:
    import datasets

NUMBERS_IN_WORDS = 0.6
"""A placeholder replaces the number word, such as ten, in this share of the pairs with the same one on both sides. Most
corpora have more number words than numbers in digits, and both show a model which words follow a number."""


class CorpusStatistics(NamedTuple):
    """The statistics of N training pairs for augmentation."""

    lexicons: list[Lexicon]
    """The words of each direction with their translations; empty if placeholders replace no words."""
    directions: np.ndarray
    """(N,): the number of each pair's direction."""
    has_number_word: np.ndarray
    """(N,) bool: whether the source of each pair has a number word, such as ten."""


class _Draws(NamedTuple):
    """The random decisions for each of N pairs in one epoch."""

    change: np.ndarray
    """(N,) float32 from 0 to 1: selects one of EXCLUSIVE_SHARES, or none."""
    placeholders: np.ndarray
    """(N,) bool: whether placeholders replace names, numbers and words of the pair."""
    number_words: np.ndarray
    """(N,) bool: whether placeholders replace the number words of the pair."""
    symbols: np.ndarray
    """(N,) bool: whether one of SYMBOLS is inserted into the pair."""
    words: np.ndarray
    """(N,) bool: whether the pair is reduced to a single word."""


class Augmentation:
    """Changes the texts of training pairs at random. A ``SampleMaker`` holds one."""

    def __init__(
        self, config: AugmentationConfig, layers: Sequence[TextLayer], seed: int, statistics: CorpusStatistics
    ) -> None:
        """
        Args:
            config: The share of the pairs for each kind of change.
            layers: The text layer of each direction, which inserts placeholders.
            seed: Determines all changes.
            statistics: The statistics of all training pairs.
        """
        self._lexicons = statistics.lexicons
        self._layers = layers
        self.directions = statistics.directions
        self._seed = seed
        self._has_number_word = statistics.has_number_word & bool(config.slots)
        self._config = config
        # Only symbols that placeholders replace. Otherwise the model would unlearn the use of common symbols.
        self._symbols = [symbol for symbol in SYMBOLS if layers[0].is_value(symbol)]
        self._symbol_share = config.symbols if self._symbols else 0.0
        # A change is made if ``_Draws.change`` of the pair lies between the previous limit and that of the change.
        self._limits = np.array(list(accumulate(getattr(config, name) for name in EXCLUSIVE_SHARES)))
        self._draws = lru_cache(maxsize=1)(self._draw)

    def is_changed(self, epoch: int, rows: np.ndarray) -> np.ndarray:
        """Return for each row (B,) whether its pair is changed in an epoch, (B,) bool."""
        draws = self._draws(epoch)
        changed = draws.placeholders[rows] | draws.number_words[rows] | draws.symbols[rows] | draws.words[rows]
        return (draws.change[rows] < self._limits[-1]) | changed

    def augment(self, epoch: int, row: int, sources: Sequence[str], targets: Sequence[str]) -> tuple[str, str]:
        """Join the given pairs, change them at random, and prepare them for the tokenizer.

        A tag at the start of a source is moved to the start of the result, unchanged.

        Args:
            epoch: The epoch.
            row: The row of the first pair. It determines the changes.
            sources: The sources of the pairs to join.
            targets: The targets of these pairs.

        Returns:
            The source and the target.
        """
        direction = int(self.directions[row])
        layer, lexicon = self._layers[direction], self._lexicons[direction]
        sources, targets = (list(map(layer.hide_symbols, side)) for side in (sources, targets))
        known = CORPUS_TAG, *layer.config.tags
        tags, sources = map(list, zip(*(split_tag(source, known) for source in sources), strict=True))
        tag = max(tags)  # pairs with different target tags are not joined
        between_sides = layer.between
        source, target = (between.join(side) for between, side in zip(between_sides, (sources, targets), strict=True))
        draws = self._draws(epoch)
        if draws.words[row] or draws.symbols[row]:
            words = find_word_pairs(lexicon, source, target)
            random = generator(self._seed, "symbol of a pair", epoch, row)
        if draws.words[row]:
            source, target = reduce_to_word(source, target, words, random)
        elif draws.symbols[row]:
            source, target = insert_symbol(sources, targets, words, self._symbols, between_sides, random)
        random = generator(self._seed, "augmentation of a pair", epoch, row)
        has_placeholders, has_number_words = draws.placeholders[row], draws.number_words[row]
        number = int(np.searchsorted(self._limits, draws.change[row], side="right"))
        name = EXCLUSIVE_SHARES[number] if number < len(self._limits) else None
        vary = VARIATIONS[name] if name else lambda source, target, language, random: (source, target)
        language = layer.source_language
        if has_placeholders or has_number_words:
            # Placeholders are inserted first, because the words would no longer be found after a change of case.
            pair = insert_placeholders(source, target, has_placeholders, has_number_words, lexicon, layer, random)
            source, target = vary(*pair, language, random)
        elif name == "lower_case":
            # The text is lowercased last, because the text layer would capitalize names again. A model must also
            # translate lowercase lines as they are, because programs without a text layer send such lines.
            source, target = vary(*layer.prepare_pair(source, target), language, random)
        else:
            source, target = layer.prepare_pair(*vary(source, target, language, random))
        return tag + source, target

    def _draw(self, epoch: int) -> _Draws:
        """Draw the random decisions of an epoch."""

        def draw(name: str, *columns: int) -> np.ndarray:
            shape = len(self._has_number_word), *columns
            return generator(self._seed, name, epoch).random(shape, dtype=np.float32)

        change, placeholders = draw("augmentation", 2).T
        return _Draws(
            change.copy(),
            placeholders < self._config.slots,
            self._has_number_word & (draw("numbers in words") < NUMBERS_IN_WORDS),
            draw("symbols") < self._symbol_share,
            draw("words") < self._config.words,
        )


def corpus_statistics(
    pairs: "datasets.Dataset", languages: Sequence[str], directions: np.ndarray, needs_lexicon: bool
) -> CorpusStatistics:
    """Return the statistics of all training pairs.

    Args:
        pairs: The training pairs, grouped by direction.
        languages: The source language of each direction.
        directions: (N,), the number of each pair's direction.
        needs_lexicon: Whether to learn the lexicons from the pairs. Otherwise they are empty.
    """
    edges = np.searchsorted(directions, range(len(languages) + 1)).tolist()
    parts = [pairs.select(range(*edge)) for edge in pairwise(edges)]
    return CorpusStatistics(
        [Lexicon(_mixed_texts(part) if needs_lexicon else ()) for part in parts],
        directions,
        np.concatenate([_has_number_word(part, own) for part, own in zip(parts, languages, strict=True)]),
    )


def _mixed_texts(pairs: "datasets.Dataset") -> Iterator[tuple[str, str]]:
    """Yield all pairs in blocks of a thousand, in random order of the blocks, because corpora are often sorted."""
    texts = pairs.with_format("arrow").select_columns(list(SIDES))
    starts = np.arange(0, len(pairs), 1000)
    for start in generator(0, "lexicon").permutation(starts).tolist():
        yield from zip(*side_texts(texts[start : start + 1000]), strict=True)


def _has_number_word(pairs: "datasets.Dataset", language: str) -> np.ndarray:
    """Return whether the source of each pair has a number word of its language, (N,) bool."""
    if (pattern := number_word_pattern(language)) is None:
        return np.zeros(len(pairs), dtype=bool)
    return np.concatenate(
        [match_substring_regex(table["source"], pattern).to_numpy() for table in tables(pairs, ["source"])]
    )


SAMPLES = pyarrow.schema([("id", pyarrow.int64()), *((name, TOKENS) for name in ID_COLUMNS)])
"""The columns of samples: the id of each pair, and its token ids without BOS and EOS."""


class SampleRequest(NamedTuple):
    """B encoded pairs to sample from."""

    epoch: int
    encoded: pyarrow.Table
    """The pairs before augmentation and subword sampling, with the columns of SAMPLES."""
    changed: np.ndarray
    """(C,), the positions of the pairs to augment."""
    groups: list[tuple[int, ...]]
    """The row of each pair to augment, followed by the rows that are joined to it."""
    sources: list[str]
    """The sources of all rows in ``groups``, in order."""
    targets: list[str]
    """The targets of all rows in ``groups``, in order."""


class SampleMaker:
    """Makes samples of encoded pairs without access to the corpus. A ``TrainingBatches`` and each of its processes hold
    one.

    A sample depends only on the seed, the epoch and the pair.
    """

    def __init__(
        self,
        layers: Sequence[TextLayer],
        augmentation: AugmentationConfig,
        sampling: float,
        seed: int,
        statistics: CorpusStatistics | None,
    ) -> None:
        """
        Args:
            layers: The text layer of each direction, which encodes changed texts.
            augmentation: The settings of augmentation.
            sampling: The strength of subword sampling; 0 turns it off.
            seed: Determines the samples.
            statistics: The corpus statistics that augmentation needs; None if augmentation is off.
        """
        self._arguments = layers, augmentation, sampling, seed, statistics
        self._seed = seed
        tokenizers = layers[0].tokenizers
        self._tokenizers = tokenizers.source, tokenizers.target
        self._prefixes = [layer.tokenizers.source.prefix for layer in layers]
        self.augmentation = Augmentation(augmentation, layers, seed, statistics) if statistics else None
        self._samplers = []
        if sampling:
            sampler = self._tokenizers[0].sampler(sampling)
            self._samplers = [sampler, sampler if tokenizers.is_shared else tokenizers.target.sampler(sampling)]

    def __reduce__(self) -> tuple:
        return SampleMaker, self._arguments

    @property
    def is_identity(self) -> bool:
        """Whether every sample equals the encoded pair."""
        return not self._samplers and self.augmentation is None

    def __call__(self, request: SampleRequest) -> pyarrow.Table:
        """Return a sample of each pair, with the columns of SAMPLES. A sample can be longer than every encoded pair."""
        samples = request.encoded
        if self.augmentation is not None and len(request.changed):
            edges = pairwise([0, *accumulate(map(len, request.groups))])
            pairs = [
                self.augmentation.augment(request.epoch, row, request.sources[start:end], request.targets[start:end])
                for (row, *_), (start, end) in zip(request.groups, edges, strict=True)
            ]
            sides = zip(self._tokenizers, zip(*pairs, strict=True), strict=True)
            sources, targets = (tokenizer.encode(texts) for tokenizer, texts in sides)
            for source, (row, *_) in zip(sources, request.groups, strict=True):
                prefix = self._prefixes[self.augmentation.directions[row]]
                if source[: len(prefix)] == self._prefixes[0]:  # otherwise the text begins with another token
                    source[: len(prefix)] = prefix
            samples = replace_tokens(samples, request.changed, [sources, targets])
        if not self._samplers:
            return samples
        ids = samples["id"].to_numpy().view(np.uint64)
        columns = []
        for side, name, sampler in zip(SIDES, ID_COLUMNS, self._samplers, strict=True):
            keys = random_bits(np.array([key(self._seed, f"sampling {side}", request.epoch)], np.uint64), ids)
            columns.append(sampler.sample(samples[name].combine_chunks(), keys))
        return pyarrow.table([samples["id"], *columns], schema=SAMPLES)


def replace_tokens(samples: pyarrow.Table, positions: np.ndarray, tokens: Sequence[list[list[int]]]) -> pyarrow.Table:
    """Replace the source and target tokens of the samples at some positions, (P,)."""
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
