"""Changes training pairs, so that a model meets what people type: small letters, words in capitals, typing errors, no
full stop. And it meets more slots than the items of its corpus alone would give.

What becomes of a pair in an epoch depends on the seed, the epoch and the pair alone.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
import regex

from mt.config import AugmentationConfig
from mt.core.language import between_words
from mt.core.randomness import Generators, generator
from mt.text.case import in_capitals, in_small_letters
from mt.text.final_punctuation import FINAL_PUNCTUATION
from mt.text.keyboard import with_a_typo
from mt.text.layer import Replacement, TextLayer
from mt.text.lexicon import Lexicon
from mt.text.number_words import shared_numbers
from mt.text.slots import OF_NUMBERS, SLOT, TAG, slot

NUMBERS_OF_SLOTS = (0.5, 0.75, 0.9, 1.0)
"""Up to which random number, drawn from 0 to 1, a pair that gets slots gets one, two, three and four. Where lines with
several items are rare in training, models drop or exchange some of them."""
NEW_SLOTS_ALONE = 0.45
"""Of the pairs that get slots, the share in which all are new ones, put at the ends or in front of a comma of both
sides. In the others, slots take the place of names and numbers that both sides share, and of words with their
translations. Only if there are too few of these, new ones are put beside them."""
NEW_SLOTS_OF_NUMBERS = 0.15
"""The share of the slots of numbers among those that are new or stand for anything else than numbers, where numbers
have slots of their own."""
NUMBERS_IN_WORDS = 0.6
"""The share of the pairs with a number word on both sides, such as ten, in which a slot stands for it. Most corpora
have more of these than numbers in digits, and from both a model learns what stands behind numbers."""
WORDS_WITH_A_TYPO = 1 / 8
"""The share of the words of a source that get a typing error, if the source gets any."""
MOST_CAPITALS = 3
"""The most words in a row that are put into capitals."""
IN_SMALL_LETTERS = 0
"""The number of this change among those of a pair."""

WORD = regex.compile(r"\p{L}[\p{L}\p{M}]*")
NAME_OR_NUMBER = regex.compile(r"(?<![\w'’-])(?:\p{Lu}\p{L}[\p{L}\p{M}]*|[0-9]+)(?![\w'’-])")
COMMA = regex.compile(r"(?<=[\p{L}\p{M}])[,;，、；،]")


class Augmentation:
    """The changes of one run."""

    def __init__(
        self, config: AugmentationConfig, layer: TextLayer, seed: int, lexicon: Lexicon, with_numbers: np.ndarray
    ) -> None:
        """
        Args:
            config: How often each change is made.
            layer: Puts slots into the pairs.
            seed: Determines all changes.
            lexicon: Which words of a source and of its target slots may stand for, beside names and numbers.
            with_numbers: (N,) bool: which training pairs have a number word in their source.
        """
        self._lexicon = lexicon
        self._layer = layer
        self._seed = seed
        self._with_numbers = with_numbers & bool(config.slots)
        self._slots = config.slots
        self._generators = Generators(seed, "augmentation of a pair")
        changes: list[tuple[float, Callable[[str, str, np.random.Generator], tuple[str, str]]]] = [
            (  # IN_SMALL_LETTERS
                config.lower_case,
                lambda source, target, random: (in_small_letters(source, layer.source_language), target),
            ),
            (
                config.capitals,
                lambda source, target, random: (with_capitals(source, random, layer.source_language), target),
            ),
            (config.unpunctuated, lambda source, target, random: without_final_punctuation(source, target)),
            (
                config.typos,
                lambda source, target, random: (with_typos(source, random, layer.source_language), target),
            ),
        ]
        self._changes = [change for _, change in changes]
        self._limits = np.array(list(accumulate(share for share, _ in changes)))
        """A pair gets change i if its number, drawn uniformly from 0 to 1, lies between limits i - 1 and i."""
        self._between = between_words(layer.source_language), between_words(layer.target_language)
        self._languages = layer.source_language, layer.target_language
        self._drawn: tuple[int, np.ndarray, np.ndarray] = (-1, np.empty((0, 2)), np.empty(0))

    def is_changed(self, epoch: int, rows: np.ndarray) -> np.ndarray:
        """Returns which of some pairs are changed in an epoch, (B,) bool, given their rows (B,)."""
        draws, numbers = self._draws(epoch)
        case, slots = draws[rows].T
        return (case < self._limits[-1]) | (slots < self._slots) | numbers[rows]

    def pair(self, epoch: int, row: int, sources: Sequence[str], targets: Sequence[str]) -> tuple[str, str]:
        """Returns the texts of a pair for the tokenizer. A tag stays in front of its source, whatever is changed.

        Args:
            epoch: The epoch.
            row: The pair's row, on which its changes depend.
            sources: Its source, and those of the pairs that are joined to it.
            targets: Its target, and theirs.
        """
        tag = next((f"{TAG} " for source in sources if source.startswith(TAG)), "")
        source, target = self._changed(epoch, row, [source.removeprefix(tag) for source in sources], targets)
        return tag + source, target

    def _changed(self, epoch: int, row: int, sources: Sequence[str], targets: Sequence[str]) -> tuple[str, str]:
        """Does what ``pair`` does, for sources without a tag."""
        source, target = (between.join(texts) for between, texts in zip(self._between, (sources, targets), strict=True))
        draws, numbers_in_words = self._draws(epoch)
        case, slots = draws[row]
        random = self._generators.at(epoch, row)
        number = int(np.searchsorted(self._limits, case, side="right"))
        if slots >= self._slots and not numbers_in_words[row]:
            if number >= len(self._changes):
                return self._layer.mark_pair(source, target)
            if number != IN_SMALL_LETTERS:
                return self._layer.mark_pair(*self._changes[number](source, target, random))
            # Afterwards, because names would get their capitals back. A model is to know some lines without them, too:
            # those with a single capital, and those of other programs, where there is no text layer.
            return self._changes[number](*self._layer.mark_pair(source, target), random)
        # Words become slots before the case of the source is changed: afterwards they would no longer be found.
        count, words = 0, list[Replacement]()
        if numbers_in_words[row]:
            words = [Replacement(*one, True) for one in shared_numbers(source, target, self._languages)]
        if slots < self._slots:
            count = 1 + bisect_right(NUMBERS_OF_SLOTS, random.random())
            if random.random() >= NEW_SLOTS_ALONE:
                names = [(name, name) for name in names_and_numbers(source, target)]
                found = list(dict.fromkeys([*names, *self._lexicon.pairs_of(source, target)]))
                found = [found[place] for place in random.permutation(len(found))[:count].tolist()]
                taken = {one.source for one in words}
                words += [Replacement(*one, _is_number(one[0], random)) for one in found if one[0] not in taken]
        order = random.permutation(self._layer.slots).tolist()
        source, target = self._layer.mark_pair(source, target, words, order)
        for _ in range(count - len(words)):
            first = OF_NUMBERS if _is_number("", random) else 0
            unused = [one for one in (slot(first + each) for each in order) if one not in source]
            if unused:
                source, target = with_new_slot(unused[0], source, target, self._between, random)
        source, target = in_ascending_order(source, target)
        if number < len(self._changes):
            source, target = self._changes[number](source, target, random)
        return source, target

    def _draws(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns two random numbers for each pair, (N, 2), and in which pairs slots stand for number words, (N,)."""
        if self._drawn[0] != epoch:
            count = len(self._with_numbers)
            draws = generator(self._seed, "augmentation", epoch).random((count, 2), dtype=np.float32)
            chosen = generator(self._seed, "numbers in words", epoch).random(count, dtype=np.float32)
            in_words = self._with_numbers & (chosen < NUMBERS_IN_WORDS)
            self._drawn = epoch, draws, in_words
        return self._drawn[1:]


def _is_number(word: str, random: np.random.Generator) -> bool:
    """Return whether a slot that stands for a word, or for nothing, is one of numbers."""
    return word.isdigit() or random.random() < NEW_SLOTS_OF_NUMBERS


def names_and_numbers(source: str, target: str) -> list[str]:
    """Returns the capitalised words and the numbers that stand exactly once on both sides."""
    sides = [NAME_OR_NUMBER.findall(text) for text in (source, target)]
    return [
        word
        for word in dict.fromkeys(sides[0])
        if all(
            words.count(word) == 1 and text.count(word) == 1
            for words, text in zip(sides, (source, target), strict=True)
        )
    ]


def with_new_slot(
    new: str, source: str, target: str, between: Sequence[str], random: np.random.Generator
) -> tuple[str, str]:
    """Puts a slot in front of both sides, behind them, before the punctuation at their ends or, if both have equally
    many commas, before one of these.

    Args:
        new: What is put there.
        source, target: The pair.
        between: What stands between two words of the source, and of the target.
        random: Decides where.
    """
    place = random.random()
    commas = [[comma.start() for comma in COMMA.finditer(text)] for text in (source, target)]
    in_front_of = int(random.integers(len(commas[0]))) if len(commas[0]) == len(commas[1]) > 0 else None
    sides = []
    for text, blank, starts in zip((source, target), between, commas, strict=True):
        end = FINAL_PUNCTUATION.search(text)
        if in_front_of is not None and place < 0.5:
            start = starts[in_front_of]
        elif place < 0.15:
            start = 0
        elif place < 0.5 or not end:
            start = len(text)
        else:
            start = end.start()
        before, behind = (blank if start else ""), ("" if start else blank)
        sides.append(f"{text[:start]}{before}{new}{behind}{text[start:]}")
    return sides[0], sides[1]


def in_ascending_order(source: str, target: str) -> tuple[str, str]:
    """Exchanges the slots of a pair so that the numbers of either kind ascend in the source, as they do in lines to
    translate."""
    found = SLOT.findall(source)
    exchanged: dict[int, str] = {}
    for of_numbers in (False, True):
        kind = [one for one in found if (one >= slot(OF_NUMBERS)) == of_numbers]
        exchanged |= str.maketrans(dict(zip(kind, sorted(kind), strict=True)))
    return source.translate(exchanged), target.translate(exchanged)


def with_capitals(text: str, random: np.random.Generator, language: str) -> str:
    """Puts up to MOST_CAPITALS words in a row into capitals."""
    words = list(WORD.finditer(text))
    if not words:
        return text
    count = int(random.integers(1, MOST_CAPITALS + 1))
    first = int(random.integers(len(words)))
    start, end = words[first].start(), words[min(first + count, len(words)) - 1].end()
    return text[:start] + in_capitals(text[start:end], language) + text[end:]


def without_final_punctuation(source: str, target: str) -> tuple[str, str]:
    """Takes the punctuation from the ends of both sides, if both have some."""
    ends = [FINAL_PUNCTUATION.search(text) for text in (source, target)]
    if ends[0] and ends[1] and ends[0].start() and ends[1].start():
        return source[: ends[0].start()], target[: ends[1].start()]
    return source, target


def with_typos(text: str, random: np.random.Generator, language: str) -> str:
    """Puts a typing error into about every eighth word, and at least into one.

    Args:
        text: Any text.
        random: Decides where, and what.
        language: The text's language, which decides what keyboard it is typed on.
    """
    words = [word for word in WORD.finditer(text) if len(word[0]) > 1]
    if not words:
        return text
    wrong = random.random(len(words)) < WORDS_WITH_A_TYPO
    wrong[random.integers(len(words))] = True
    parts, end = [], 0
    for word, is_wrong in zip(words, wrong.tolist(), strict=True):
        if is_wrong:
            parts += [text[end : word.start()], with_a_typo(word[0], random, language)]
            end = word.end()
    return "".join([*parts, text[end:]])
