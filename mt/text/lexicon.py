"""Inserts additional placeholders into training pairs, and learns a lexicon of words that they replace.

Training pairs need placeholders in all positions that values have in users' lines: before nouns, after prepositions, in
the middle of a sentence. Many corpora have few numbers and names. So placeholders replace other words, too, each
together with its translation. The lexicon has the translations; it is learned from co-occurrence counts.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import regex

from mt.core.language import TOUCHING
from mt.text.final_punctuation import FINAL_PUNCTUATION, strip_final_punctuation
from mt.text.layer import TextLayer
from mt.text.numbers import SIMPLE_WORD, shared_numbers
from mt.text.placeholders import FIRST_NUMBER_PLACEHOLDER, PLACEHOLDER, placeholder
from mt.text.values import TOUCHING_LETTER, Replacement

TWO_CHARACTERS = regex.compile(rf"(?=([{TOUCHING}]{{2}}))")
"""Two characters count as a word in languages without spaces, because most words of Chinese have two characters."""
MIN_SHARED_PAIRS = 5
"""Minimum number of sentence pairs with both words."""
MAX_PAIRS_SHARE = 0.01
"""Words in more than this share of the pairs are skipped: articles, pronouns, prepositions."""
MIN_DICE = 0.4
"""Minimum Dice coefficient of two words: twice the number of pairs with both words, divided by the sum of the numbers
of pairs with each word."""
MAX_COUNTED_PAIRS = 10_000_000
"""Maximum number of word pairs to count. It bounds time (seconds) and memory (about 300 MB)."""


PLACEHOLDER_COUNT_CDF = (0.5, 0.75, 0.9, 1.0)
"""The cumulative probabilities of one, two, three and four placeholders in a pair. Without pairs of several
placeholders, a model would drop or swap some of them."""
INSERTION_SHARE = 0.45
"""The share of the pairs whose placeholders are all inserted: at an end of both sides, or before a comma. In the other
pairs, placeholders replace shared names and numbers and words of the lexicon, and only missing ones are inserted."""
NUMBER_PLACEHOLDER_SHARE = 0.15
"""The share of number placeholders among placeholders that are inserted or replace words without digits."""
NAME_OR_NUMBER = regex.compile(r"(?<![\w'’-])(?:\p{Lu}\p{L}[\p{L}\p{M}]*|[0-9]+)(?![\w'’-])")

SYMBOLS = ("–", "/", "&", "+", "~")
COMMA = regex.compile(r"(?<=[\p{L}\p{M}])[,;，；、،]")


class Lexicon:
    """A bilingual lexicon: pairs of a source and a target word that are each other's best match by Dice coefficient."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        """
        Args:
            pairs: Sources and targets in random order. They are read until MAX_COUNTED_PAIRS word pairs are counted.
        """
        vocabularies: tuple[dict[str, int], dict[str, int]] = ({}, {})
        numbered: list[tuple[np.ndarray, np.ndarray]] = []
        counted = 0
        for texts in pairs:
            source, target = (
                np.array(
                    sorted({vocabulary.setdefault(word, len(vocabulary)) for word in lexicon_words(text.lower())}),
                    np.int64,
                )
                for vocabulary, text in zip(vocabularies, texts, strict=True)
            )
            numbered.append((source, target))
            counted += len(source) * len(target)
            if counted >= MAX_COUNTED_PAIRS:
                break
        sources, targets = map(list, vocabularies)
        self._target_of = _best_matches(numbered, sources, targets) if counted else {}

    def __len__(self) -> int:
        return len(self._target_of)

    def matching_pairs(self, source: str, target: str) -> list[tuple[str, str]]:
        """Return the (source word, target word) pairs of the lexicon that occur in a sentence pair.

        Both words occur exactly once on their side, and have the casing of the texts. The order is that of the source.
        """
        source_words, target_words = map(_unique_words, (source, target))
        translated = ((source_words[word], target_words.get(self._target_of.get(word, ""))) for word in source_words)
        return [(word, other) for word, other in translated if other is not None]


def _unique_words(text: str) -> dict[str, str]:
    """Map the lowercase form of each word that occurs once in a text, and not inside another word, to the word."""
    all_words = lexicon_words(text)
    counts = Counter(word.lower() for word in all_words)
    return {word.lower(): word for word in all_words if counts[word.lower()] == 1 and text.count(word) == 1}


def lexicon_words(text: str) -> list[str]:
    """Return the words of a text, then the two-character words of its parts in languages without spaces."""
    # A letter of these languages ends a word as a punctuation mark does.
    return SIMPLE_WORD.findall(TOUCHING_LETTER.sub("。", text)) + TWO_CHARACTERS.findall(text)


def _best_matches(pairs: list[tuple[np.ndarray, np.ndarray]], sources: list[str], targets: list[str]) -> dict[str, str]:
    """Map each source word to the target word with the highest Dice coefficient, if it is also the best for the target.

    Args:
        pairs: The word ids of the source and of the target of each pair, without repetitions.
        sources, targets: The words in the order of their ids.
    """
    times = [np.bincount(np.concatenate(side)) for side in zip(*pairs, strict=True)]
    keys = np.concatenate([(source[:, None] * len(targets) + target).ravel() for source, target in pairs])
    keys, together = np.unique(keys, return_counts=True)
    source, target = np.divmod(keys, len(targets))
    max_count = max(MIN_SHARED_PAIRS, MAX_PAIRS_SHARE * len(pairs))
    candidates = (together >= MIN_SHARED_PAIRS) & (times[0][source] <= max_count) & (times[1][target] <= max_count)
    source, target, together = source[candidates], target[candidates], together[candidates]
    dice = 2 * together / (times[0][source] + times[1][target])
    best = [np.zeros(len(names)) for names in (sources, targets)]
    np.maximum.at(best[0], source, dice)
    np.maximum.at(best[1], target, dice)
    chosen = (dice >= MIN_DICE) & (dice == best[0][source]) & (dice == best[1][target])
    return {
        sources[word]: targets[translation]
        for word, translation in zip(source[chosen].tolist(), target[chosen].tolist(), strict=True)
    }


def _gets_number_placeholder(word: str, random: np.random.Generator) -> bool:
    """Decide whether the placeholder for a word, or an inserted placeholder (""), is a number placeholder."""
    return word.isdigit() or random.random() < NUMBER_PLACEHOLDER_SHARE


def shared_names_and_numbers(source: str, target: str) -> list[str]:
    """Return the capitalized words and the numbers that occur exactly once in the source and once in the target."""
    words, other_words = NAME_OR_NUMBER.findall(source), NAME_OR_NUMBER.findall(target)
    return [
        word
        for word in dict.fromkeys(words)
        if {words.count(word), source.count(word), other_words.count(word), target.count(word)} == {1}
    ]


def insert_new_placeholder(
    new: str, source: str, target: str, between: Sequence[str], random: np.random.Generator
) -> tuple[str, str]:
    """Return a source and target with a placeholder inserted at corresponding positions.

    The position is the start, the end, before the final punctuation or, if both sides have the same number of commas,
    before the n-th comma.

    Args:
        new: The placeholder.
        source, target: The pair.
        between: The separator of words of the source, and of the target: a space or nothing.
        random: The source of the random decisions.
    """
    draw = random.random()
    commas = [[comma.start() for comma in COMMA.finditer(text)] for text in (source, target)]
    comma = int(random.integers(len(commas[0]))) if len(commas[0]) == len(commas[1]) > 0 else None
    sides = []
    for text, space, starts in zip((source, target), between, commas, strict=True):
        end = FINAL_PUNCTUATION.search(text)
        if comma is not None and draw < 0.5:
            start = starts[comma]
        elif draw < 0.15:
            start = 0
        elif draw < 0.5 or not end:
            start = len(text)
        else:
            start = end.start()
        inserted = f"{space}{new}" if start else f"{new}{space}"
        sides.append(f"{text[:start]}{inserted}{text[start:]}")
    return sides[0], sides[1]


def renumber_placeholders(source: str, target: str) -> tuple[str, str]:
    """Return a pair with placeholders in ascending order in the source, as in lines to translate.

    Number placeholders and the others are numbered separately.
    """
    placeholders = PLACEHOLDER.findall(source)
    renamed: dict[int, str] = {}
    for are_numbers in (False, True):
        kind = [token for token in placeholders if (token >= placeholder(FIRST_NUMBER_PLACEHOLDER)) == are_numbers]
        renamed |= str.maketrans(dict(zip(kind, sorted(kind), strict=True)))
    return source.translate(renamed), target.translate(renamed)


def find_word_pairs(lexicon: Lexicon, source: str, target: str) -> list[tuple[str, str]]:
    """Return the shared names and numbers and the words of the lexicon in a source, with their translations.

    Each occurs once on its side.
    """
    names = ((name, name) for name in shared_names_and_numbers(source, target))
    return list(dict.fromkeys([*names, *lexicon.matching_pairs(source, target)]))


def insert_placeholders(
    source: str,
    target: str,
    replace_words: bool,
    replace_number_words: bool,
    lexicon: Lexicon,
    layer: TextLayer,
    random: np.random.Generator,
) -> tuple[str, str]:
    """Return the source and target of a pair with placeholders, prepared for the tokenizer.

    Args:
        source, target: The pair.
        replace_words: Whether to replace one to four names, numbers and words by placeholders. If there are not enough
            of these, placeholders are inserted.
        replace_number_words: Whether to replace the number words that both sides share by placeholders.
        lexicon: The translations of words.
        layer: The text layer that prepares the pair.
        random: The source of the random decisions.
    """
    count, replaced = 0, list[Replacement]()
    if replace_number_words:
        pairs = shared_numbers(source, target, (layer.source_language, layer.target_language))
        replaced = [Replacement(word, translation, True) for word, translation in pairs]
    if replace_words:
        count = 1 + bisect_right(PLACEHOLDER_COUNT_CDF, random.random())
        if random.random() >= INSERTION_SHARE:
            candidates = find_word_pairs(lexicon, source, target)
            chosen = [candidates[index] for index in random.permutation(len(candidates))[:count].tolist()]
            number_words = {words.source for words in replaced}
            replaced += [
                Replacement(word, translation, _gets_number_placeholder(word, random))
                for word, translation in chosen
                if word not in number_words
            ]
    order = random.permutation(layer.placeholder_count).tolist()
    source, target = layer.prepare_pair(source, target, replaced, order)
    for _ in range(count - len(replaced)):
        first = FIRST_NUMBER_PLACEHOLDER if _gets_number_placeholder("", random) else 0
        unused = next(
            (placeholder(first + number) for number in order if placeholder(first + number) not in source), None
        )
        if unused:
            source, target = insert_new_placeholder(unused, source, target, layer.between, random)
    return renumber_placeholders(source, target)


def reduce_to_word(
    source: str, target: str, words: Sequence[tuple[str, str]], random: np.random.Generator
) -> tuple[str, str]:
    """Return one word of a pair and its translation with the final punctuation of the pair, in half of the calls
    capitalized.

    Args:
        source, target: The pair.
        words: Words of the source with their translations. If there are none, the pair is returned.
        random: The source of the random decisions.
    """
    if not words:
        return source, target
    word, translation = words[int(random.integers(len(words)))]
    if random.random() < 0.5:
        word, translation = (text[0].upper() + text[1:] for text in (word, translation))
    ends = (FINAL_PUNCTUATION.search(text) for text in (source, target))
    source, target = (text + (end[0] if end else "") for text, end in zip((word, translation), ends, strict=True))
    return source, target


def insert_symbol(
    sources: Sequence[str],
    targets: Sequence[str],
    words: Sequence[tuple[str, str]],
    symbols: Sequence[str],
    between: Sequence[str],
    random: np.random.Generator,
) -> tuple[str, str]:
    """Return a source and a target with a symbol and a space inserted in front of corresponding parts.

    - Of several pairs, which are joined, the part is the last pair. Final punctuation in front of it is removed.
    - Of a single pair, the part is the text after a comma, which is removed, or a word and its translation. If there is
      neither, the symbol is in front of the whole sentences.

    Args:
        sources, targets: The texts of one pair, or of several pairs.
        words: Words that occur once in the source of a single pair, with translations that occur once in its target.
        symbols: The symbols to choose from.
        between: The separator of words of the source, and of the target: a space or nothing.
        random: The source of the random decisions.
    """
    symbol = symbols[int(random.integers(len(symbols)))]
    commas = [[comma.start() for comma in COMMA.finditer(side[-1])] for side in (sources, targets)]
    heads, tails = ("", ""), (sources[-1], targets[-1])
    if len(sources) > 1:
        source, target = (space.join(side[:-1]) for space, side in zip(between, (sources, targets), strict=True))
        heads = strip_final_punctuation(source, target)
    elif len(commas[0]) == len(commas[1]) > 0 and (random.random() < 0.5 or not words):
        index = int(random.integers(len(commas[0])))
        cuts = [side[index] for side in commas]
        heads = sources[0][: cuts[0]], targets[0][: cuts[1]]
        tails = sources[0][cuts[0] + 1 :].lstrip(), targets[0][cuts[1] + 1 :].lstrip()
    elif words:
        word, translation = words[int(random.integers(len(words)))]
        return sources[0].replace(word, f"{symbol} {word}"), targets[0].replace(translation, f"{symbol} {translation}")
    sides = zip(heads, tails, between, strict=True)
    source, target = (f"{head}{space if head else ''}{symbol} {tail}" for head, tail, space in sides)
    return source, target
