"""Change training pairs, so that a model learns to translate text as people type it: in small letters, with words in
capitals, with typing errors, without a full stop. More pairs get placeholders than the numbers and links of the
corpus alone would give.

The changes of a pair in an epoch depend on the seed, the epoch and the pair alone.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import regex
from pyarrow.compute import match_substring_regex

from mt.config import AugmentationConfig
from mt.core.columns import tables
from mt.core.language import between_words
from mt.core.randomness import Generators, generator
from mt.core.splices import Splice, apply_splices
from mt.data.pairs import SIDES, side_texts
from mt.text.casing import in_capitals, in_small_letters
from mt.text.final_punctuation import FINAL_PUNCTUATION, without_final_punctuation
from mt.text.keyboard import with_a_typo
from mt.text.layer import TextLayer
from mt.text.lexicon import Lexicon
from mt.text.numbers import LETTERS, shared_numbers
from mt.text.numbers import pattern as number_word_pattern
from mt.text.placeholders import CORPUS_TAG, FIRST_NUMBER_PLACEHOLDER, PLACEHOLDER, placeholder
from mt.text.shared_values import Replacement

if TYPE_CHECKING:
    import datasets

NUMBERS_OF_PLACEHOLDERS = (0.5, 0.75, 0.9, 1.0)
"""The cumulative probabilities of one, two, three and four placeholders in a pair that gets placeholders. A model that
rarely sees lines with several placeholders drops or exchanges some of them."""
NEW_PLACEHOLDERS_ALONE = 0.45
"""The share of the pairs with placeholders in which all placeholders are inserted: at the ends, or before a comma, of
both sides. In the other pairs, placeholders replace names and numbers that both sides share, and words with their
translations; placeholders are inserted only if there are too few of these."""
NEW_PLACEHOLDERS_OF_NUMBERS = 0.15
"""The share of number placeholders among the placeholders that are inserted or that replace words without digits."""
NUMBERS_IN_WORDS = 0.6
"""The share of the pairs with the same number word on both sides, such as ten, in which a placeholder replaces this
word. Most corpora have more number words than numbers in digits, and both teach a model the words that follow a
number."""
WORDS_WITH_A_TYPO = 1 / 8
"""The share of the words with a typing error in a source that gets typing errors."""
MAX_WORDS_IN_CAPITALS = 3
"""The most words in a row that are put into capitals."""

NAME_OR_NUMBER = regex.compile(r"(?<![\w'’-])(?:\p{Lu}\p{L}[\p{L}\p{M}]*|[0-9]+)(?![\w'’-])")

Change = Callable[[str, str, np.random.Generator], tuple[str, str]]
"""Returns a changed source and target, given a source, its target and a source of random numbers."""

SYMBOLS = ("–", "/", "&", "+", "~")
COMMA = regex.compile(r"(?<=[\p{L}\p{M}])[,;，；、،]")


class CorpusStatistics(NamedTuple):
    """The statistics of N training pairs that augmentation needs."""

    lexicon: Lexicon
    """Words with their translations; empty if augmentation replaces no words by placeholders."""
    has_number_word: np.ndarray
    """(N,) bool: whether the source of each pair has a number word, such as ten."""


class _Draws(NamedTuple):
    """The random decisions about each of N pairs in one epoch."""

    change: np.ndarray
    """(N,) float32 from 0 to 1: selects one of ``Augmentation._changes``, or none."""
    placeholders: np.ndarray
    """(N,) bool: whether the pair gets placeholders for names, numbers and words."""
    number_words: np.ndarray
    """(N,) bool: whether placeholders replace the number words of the pair."""
    symbols: np.ndarray
    """(N,) bool: whether the pair gets one of SYMBOLS."""


class Augmentation:
    """Changes the texts of training pairs at random. The ``PairSampler`` of a run holds one instance."""

    def __init__(self, config: AugmentationConfig, layer: TextLayer, seed: int, statistics: CorpusStatistics) -> None:
        """
        Args:
            config: The share of the pairs for each kind of change.
            layer: The text layer, which puts placeholders into the pairs.
            seed: Determines all changes.
            statistics: The statistics of all training pairs.
        """
        self._lexicon = statistics.lexicon
        self._layer = layer
        self._seed = seed
        self._has_number_word = statistics.has_number_word & bool(config.slots)
        self._placeholder_share = config.slots
        # Only marks that placeholders stand for: from marks that are common, a model would unlearn how to use them.
        self._symbols = [symbol for symbol in SYMBOLS if layer.is_value(symbol)]
        self._symbol_generators = Generators(seed, "symbol of a pair")
        self._symbol_share = config.symbols if self._symbols else 0.0
        self._generators = Generators(seed, "augmentation of a pair")
        self._languages = layer.source_language, layer.target_language
        self._between = [between_words(language) for language in self._languages]
        language = layer.source_language
        # A pair gets change i if its ``_Draws.change`` lies between limits i - 1 and i, so the order must stay.
        shares = config.lower_case, config.capitals, config.unpunctuated, config.typos
        self._changes: tuple[Change, ...] = (
            lambda source, target, random: (in_small_letters(source, language), target),
            lambda source, target, random: (with_capitals(source, random, language), target),
            lambda source, target, random: without_final_punctuation(source, target),
            lambda source, target, random: (with_typos(source, random, language), target),
        )
        self._limits = np.array(list(accumulate(shares)))
        self._draws = lru_cache(maxsize=1)(self._draw)

    def is_changed(self, epoch: int, rows: np.ndarray) -> np.ndarray:
        """Return whether the pair in each of some rows (B,) is changed in an epoch, (B,) bool."""
        draws = self._draws(epoch)
        of_values = draws.placeholders[rows] | draws.number_words[rows] | draws.symbols[rows]
        return (draws.change[rows] < self._limits[-1]) | of_values

    def pair(self, epoch: int, row: int, sources: Sequence[str], targets: Sequence[str]) -> tuple[str, str]:
        """Return the changed source and target of a pair, prepared for the tokenizer.

        A tag stays in front of the source, whatever is changed.

        Args:
            epoch: The epoch.
            row: The row of the pair, on which the changes depend.
            sources: The source of the pair, and the sources of the pairs that are joined to it.
            targets: The target of the pair, and the targets of the pairs that are joined to it.
        """
        tag = next((f"{CORPUS_TAG} " for source in sources if source.startswith(CORPUS_TAG)), "")
        sources = [source.removeprefix(tag) for source in sources]
        source, target = (between.join(side) for between, side in zip(self._between, (sources, targets), strict=True))
        if self._draws(epoch).symbols[row]:
            words = self._word_pairs(source, target)
            random = self._symbol_generators.at(epoch, row)
            source, target = with_symbol(sources, targets, words, self._symbols, self._between, random)
        source, target = self._changed(epoch, row, source, target)
        return tag + source, target

    def _changed(self, epoch: int, row: int, source: str, target: str) -> tuple[str, str]:
        """Return the changed source and target of a pair without a tag, prepared for the tokenizer."""
        draws = self._draws(epoch)
        random = self._generators.at(epoch, row)
        number = int(np.searchsorted(self._limits, draws.change[row], side="right"))
        change = self._changes[number] if number < len(self._changes) else None
        if draws.placeholders[row] or draws.number_words[row]:
            # Placeholders come first: after a change of case the words would no longer be found.
            source, target = self._with_placeholders(
                source, target, draws.placeholders[row], draws.number_words[row], random
            )
            return change(source, target, random) if change else (source, target)
        if number == 0:
            # Small letters come last, because the text layer would give names their capitals back. A model must also
            # translate lines without these capitals, which it gets from programs without a text layer.
            return self._changes[0](*self._layer.prepare_pair(source, target), random)
        if change:
            source, target = change(source, target, random)
        return self._layer.prepare_pair(source, target)

    def _word_pairs(self, source: str, target: str) -> list[tuple[str, str]]:
        """Return the names, numbers and words of the lexicon that occur once in a source, with their translations."""
        names = ((name, name) for name in names_and_numbers(source, target))
        return list(dict.fromkeys([*names, *self._lexicon.pairs_of(source, target)]))

    def _with_placeholders(
        self, source: str, target: str, of_words: bool, of_number_words: bool, random: np.random.Generator
    ) -> tuple[str, str]:
        """Return the source and target of a pair with placeholders, prepared for the tokenizer.

        Args:
            source, target: The pair.
            of_words: Whether to put one to four placeholders in place of names, numbers and words. If there are too few
                of these, placeholders are inserted.
            of_number_words: Whether to put placeholders in place of the number words that both sides share.
            random: Decides on the number and the positions of the placeholders.
        """
        count, replaced = 0, list[Replacement]()
        if of_number_words:
            pairs = shared_numbers(source, target, self._languages)
            replaced = [Replacement(word, translation, True) for word, translation in pairs]
        if of_words:
            count = 1 + bisect_right(NUMBERS_OF_PLACEHOLDERS, random.random())
            if random.random() >= NEW_PLACEHOLDERS_ALONE:
                candidates = self._word_pairs(source, target)
                chosen = [candidates[index] for index in random.permutation(len(candidates))[:count].tolist()]
                number_words = {words.source for words in replaced}
                replaced += [
                    Replacement(word, translation, _is_number(word, random))
                    for word, translation in chosen
                    if word not in number_words
                ]
        order = random.permutation(self._layer.placeholder_count).tolist()
        source, target = self._layer.prepare_pair(source, target, replaced, order)
        for _ in range(count - len(replaced)):
            first = FIRST_NUMBER_PLACEHOLDER if _is_number("", random) else 0
            unused = next(
                (placeholder(first + number) for number in order if placeholder(first + number) not in source), None
            )
            if unused:
                source, target = with_new_placeholder(unused, source, target, self._between, random)
        return in_ascending_order(source, target)

    def _draw(self, epoch: int) -> _Draws:
        count = len(self._has_number_word)
        change, placeholders = generator(self._seed, "augmentation", epoch).random((count, 2), dtype=np.float32).T
        in_words = generator(self._seed, "numbers in words", epoch).random(count, dtype=np.float32)
        symbols = generator(self._seed, "symbols", epoch).random(count, dtype=np.float32)
        return _Draws(
            change.copy(),
            placeholders < self._placeholder_share,
            self._has_number_word & (in_words < NUMBERS_IN_WORDS),
            symbols < self._symbol_share,
        )


def _is_number(word: str, random: np.random.Generator) -> bool:
    """Decide whether a placeholder that replaces a word, or that is inserted (""), is a number placeholder."""
    return word.isdigit() or random.random() < NEW_PLACEHOLDERS_OF_NUMBERS


def names_and_numbers(source: str, target: str) -> list[str]:
    """Return the capitalised words and the numbers that occur exactly once in the source and once in the target."""
    words, other_words = NAME_OR_NUMBER.findall(source), NAME_OR_NUMBER.findall(target)
    return [
        word
        for word in dict.fromkeys(words)
        if words.count(word) == source.count(word) == 1 == other_words.count(word) == target.count(word)
    ]


def with_new_placeholder(
    new: str, source: str, target: str, between: Sequence[str], random: np.random.Generator
) -> tuple[str, str]:
    """Return a source and target with a placeholder inserted at corresponding positions.

    These are the beginnings, the ends, the positions before the final punctuation or, if both sides have equally many
    commas, the positions before the same one of these.

    Args:
        new: The placeholder.
        source, target: The pair.
        between: The separator of two words of the source, and of the target: a blank or nothing.
        random: Decides on the position.
    """
    draw = random.random()
    commas = [[comma.start() for comma in COMMA.finditer(text)] for text in (source, target)]
    comma = int(random.integers(len(commas[0]))) if len(commas[0]) == len(commas[1]) > 0 else None
    sides = []
    for text, blank, starts in zip((source, target), between, commas, strict=True):
        end = FINAL_PUNCTUATION.search(text)
        if comma is not None and draw < 0.5:
            start = starts[comma]
        elif draw < 0.15:
            start = 0
        elif draw < 0.5 or not end:
            start = len(text)
        else:
            start = end.start()
        inserted = f"{blank}{new}" if start else f"{new}{blank}"
        sides.append(f"{text[:start]}{inserted}{text[start:]}")
    return sides[0], sides[1]


def in_ascending_order(source: str, target: str) -> tuple[str, str]:
    """Return a pair whose placeholders are renamed so that those of each kind are numbered upwards in the source, as in
    lines to translate."""
    placeholders = PLACEHOLDER.findall(source)
    exchanged: dict[int, str] = {}
    for of_numbers in (False, True):
        kind = [token for token in placeholders if (token >= placeholder(FIRST_NUMBER_PLACEHOLDER)) == of_numbers]
        exchanged |= str.maketrans(dict(zip(kind, sorted(kind), strict=True)))
    return source.translate(exchanged), target.translate(exchanged)


def with_capitals(text: str, random: np.random.Generator, language: str) -> str:
    """Return a text with one to MAX_WORDS_IN_CAPITALS words in a row, chosen at random, in capitals."""
    words = list(LETTERS.finditer(text))
    if not words:
        return text
    count = int(random.integers(1, MAX_WORDS_IN_CAPITALS + 1))
    first = int(random.integers(len(words)))
    start, end = words[first].start(), words[min(first + count, len(words)) - 1].end()
    return text[:start] + in_capitals(text[start:end], language) + text[end:]


def with_typos(text: str, random: np.random.Generator, language: str) -> str:
    """Return a text with a typing error in about every eighth word, and in at least one.

    Args:
        text: Any text. If it has no word of two letters, it is returned unchanged.
        random: Decides on the words and the errors.
        language: The language of the text, which determines the layout of the keyboard.
    """
    words = [word for word in LETTERS.finditer(text) if len(word[0]) > 1]
    if not words:
        return text
    has_typo = random.random(len(words)) < WORDS_WITH_A_TYPO
    has_typo[random.integers(len(words))] = True
    return apply_splices(
        text,
        (
            Splice(word.start(), word.end(), with_a_typo(word[0], random, language))
            for word in compress(words, has_typo)
        ),
    )


def corpus_statistics(pairs: "datasets.Dataset", language: str, needs_lexicon: bool) -> CorpusStatistics:
    """Return the statistics of all training pairs.

    Args:
        pairs: The training pairs.
        language: Their source language.
        needs_lexicon: Whether to learn the lexicon from the pairs. Otherwise it is empty.
    """
    return CorpusStatistics(Lexicon(_mixed_texts(pairs) if needs_lexicon else ()), _has_number_word(pairs, language))


def _mixed_texts(pairs: "datasets.Dataset") -> Iterator[tuple[str, str]]:
    """Yield all pairs in blocks of a thousand, the blocks in random order, because corpora are often sorted."""
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


def with_symbol(
    sources: Sequence[str],
    targets: Sequence[str],
    words: Sequence[tuple[str, str]],
    symbols: Sequence[str],
    between: Sequence[str],
    random: np.random.Generator,
) -> tuple[str, str]:
    """Return a source and a target with a symbol and a blank in front of corresponding parts.

    - Of joined pairs, the part is the last pair. Final punctuation in front of it is removed.
    - Of a single pair, it is the text after a comma, which is removed; or a word and its translation. If there is
      neither, it is the whole sentences.

    Args:
        sources, targets: The texts of one pair, or of several pairs to join.
        words: Words of a single pair that occur once in the source and whose translations occur once in the target,
            with their translations.
        symbols: The symbols to choose from.
        between: The separator of two words of the source, and of the target: a blank or nothing.
        random: Decides on the symbol and the part.
    """
    symbol = symbols[int(random.integers(len(symbols)))]
    commas = [[comma.start() for comma in COMMA.finditer(side[-1])] for side in (sources, targets)]
    heads, tails = ("", ""), (sources[-1], targets[-1])
    if len(sources) > 1:
        source, target = (blank.join(side[:-1]) for blank, side in zip(between, (sources, targets), strict=True))
        heads = without_final_punctuation(source, target)
    elif len(commas[0]) == len(commas[1]) > 0 and (random.random() < 0.5 or not words):
        index = int(random.integers(len(commas[0])))
        cuts = [side[index] for side in commas]
        heads = sources[0][: cuts[0]], targets[0][: cuts[1]]
        tails = sources[0][cuts[0] + 1 :].lstrip(), targets[0][cuts[1] + 1 :].lstrip()
    elif words:
        word, translation = words[int(random.integers(len(words)))]
        return sources[0].replace(word, f"{symbol} {word}"), targets[0].replace(translation, f"{symbol} {translation}")
    sides = zip(heads, tails, between, strict=True)
    source, target = (f"{head}{blank if head else ''}{symbol} {tail}" for head, tail, blank in sides)
    return source, target
