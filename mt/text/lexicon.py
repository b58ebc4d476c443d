"""More placeholders in training pairs than values alone give, and word translations for these.

In training, placeholders are to stand where values stand in users' lines: before nouns, after prepositions, in the
middle of a sentence. Many corpora have few numbers and names. So placeholders replace other words, too, each together
with its translation. The lexicon is made from counts of the words that stand in the same pairs.
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
"""What counts as a word where words touch each other: two characters, as most words of Chinese have."""
MIN_SHARED_PAIRS = 5
"""Minimum number of pairs that hold both words."""
MAX_PAIRS_SHARE = 0.01
"""Words in more than this share of the pairs are left out: articles, pronouns, prepositions."""
MIN_DICE = 0.4
"""Minimum Dice coefficient of two words: twice the number of pairs that have both, over the sum of the numbers of
pairs that have the one and the other."""
MAX_COUNTED_PAIRS = 10_000_000
"""Maximum number of word pairs that are counted, which bounds time (seconds) and memory (some 300 MB)."""


NUMBERS_OF_PLACEHOLDERS = (0.5, 0.75, 0.9, 1.0)
"""The cumulative probabilities of one, two, three and four placeholders in a pair that gets placeholders. A model that
rarely sees lines with several placeholders drops or exchanges some of them."""
NEW_PLACEHOLDERS_ALONE = 0.45
"""The share of the pairs with placeholders in which all placeholders are inserted: at the ends, or before a comma, of
both sides. In the other pairs, placeholders replace names and numbers that both sides share, and words with their
translations; placeholders are inserted only if there are too few of these."""
NEW_PLACEHOLDERS_OF_NUMBERS = 0.15
"""The share of number placeholders among the placeholders that are inserted or that replace words without digits."""
NAME_OR_NUMBER = regex.compile(r"(?<![\w'’-])(?:\p{Lu}\p{L}[\p{L}\p{M}]*|[0-9]+)(?![\w'’-])")

SYMBOLS = ("–", "/", "&", "+", "~")
COMMA = regex.compile(r"(?<=[\p{L}\p{M}])[,;，；、،]")


class Lexicon:
    """A bilingual lexicon: pairs of a source and a target word that are each other's best match by Dice coefficient."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        """
        Args:
            pairs: Sources and targets, in an order that shows all kinds of them. They are read until MAX_COUNTED_PAIRS
                word pairs are counted.
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

    def pairs_of(self, source: str, target: str) -> list[tuple[str, str]]:
        """Return the (source word, target word) pairs of the lexicon that occur in a sentence pair.

        Both words occur exactly once on their side, and have the casing of the texts. The order is that of the source.
        """
        once = [_words_that_occur_once(text) for text in (source, target)]
        translated = ((once[0][word], once[1].get(self._target_of.get(word, ""))) for word in once[0])
        return [(word, other) for word, other in translated if other is not None]


def _words_that_occur_once(text: str) -> dict[str, str]:
    """Map the lower-case form of each word that occurs once in a text, and inside no other word, to the word."""
    all_words = lexicon_words(text)
    times = Counter(word.lower() for word in all_words)
    return {word.lower(): word for word in all_words if times[word.lower()] == 1 == text.count(word)}


def lexicon_words(text: str) -> list[str]:
    # Letters that words may touch are like punctuation to them.
    return SIMPLE_WORD.findall(TOUCHING_LETTER.sub("。", text)) + TWO_CHARACTERS.findall(text)


def _best_matches(pairs: list[tuple[np.ndarray, np.ndarray]], sources: list[str], targets: list[str]) -> dict[str, str]:
    """Map each source word that has a best match to its target word.

    Args:
        pairs: For each pair the numbers of the different words of its source and of its target.
        sources, targets: The words that the numbers stand for.
    """
    times = [np.bincount(np.concatenate(side)) for side in zip(*pairs, strict=True)]
    keys = np.concatenate([(source[:, None] * len(targets) + target).ravel() for source, target in pairs])
    keys, together = np.unique(keys, return_counts=True)
    source, target = np.divmod(keys, len(targets))
    most = max(MIN_SHARED_PAIRS, MAX_PAIRS_SHARE * len(pairs))
    usual = (together >= MIN_SHARED_PAIRS) & (times[0][source] <= most) & (times[1][target] <= most)
    source, target, together = source[usual], target[usual], together[usual]
    dice = 2 * together / (times[0][source] + times[1][target])
    best = [np.zeros(len(names)) for names in (sources, targets)]
    np.maximum.at(best[0], source, dice)
    np.maximum.at(best[1], target, dice)
    chosen = (dice >= MIN_DICE) & (dice == best[0][source]) & (dice == best[1][target])
    return {
        sources[word]: targets[translation]
        for word, translation in zip(source[chosen].tolist(), target[chosen].tolist(), strict=True)
    }


def _is_number(word: str, random: np.random.Generator) -> bool:
    """Decide whether a placeholder that replaces a word, or that is inserted (""), is a number placeholder."""
    return word.isdigit() or random.random() < NEW_PLACEHOLDERS_OF_NUMBERS


def shared_names_and_numbers(source: str, target: str) -> list[str]:
    """Return the capitalized words and the numbers that occur exactly once in the source and once in the target."""
    words, other_words = NAME_OR_NUMBER.findall(source), NAME_OR_NUMBER.findall(target)
    return [
        word
        for word in dict.fromkeys(words)
        if words.count(word) == source.count(word) == 1 == other_words.count(word) == target.count(word)
    ]


def insert_new_placeholder(
    new: str, source: str, target: str, between: Sequence[str], random: np.random.Generator
) -> tuple[str, str]:
    """Return a source and target with a placeholder inserted at corresponding positions.

    These are the beginnings, the ends, the positions before the final punctuation or, if both sides have equally many
    commas, the positions before the same one of these.

    Args:
        new: The placeholder.
        source, target: The pair.
        between: The separator of two words of the source, and of the target: a space or nothing.
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


def renumber_placeholders(source: str, target: str) -> tuple[str, str]:
    """Return a pair whose placeholders are renamed so that those of each kind are numbered upwards in the source, as in
    lines to translate."""
    placeholders = PLACEHOLDER.findall(source)
    exchanged: dict[int, str] = {}
    for of_numbers in (False, True):
        kind = [token for token in placeholders if (token >= placeholder(FIRST_NUMBER_PLACEHOLDER)) == of_numbers]
        exchanged |= str.maketrans(dict(zip(kind, sorted(kind), strict=True)))
    return source.translate(exchanged), target.translate(exchanged)


def find_word_pairs(lexicon: Lexicon, source: str, target: str) -> list[tuple[str, str]]:
    """Return the names, numbers and words of the lexicon that occur once in a source, with their translations."""
    names = ((name, name) for name in shared_names_and_numbers(source, target))
    return list(dict.fromkeys([*names, *lexicon.pairs_of(source, target)]))


def insert_placeholders(
    source: str,
    target: str,
    of_words: bool,
    of_number_words: bool,
    lexicon: Lexicon,
    layer: TextLayer,
    random: np.random.Generator,
) -> tuple[str, str]:
    """Return the source and target of a pair with placeholders, prepared for the tokenizer.

    Args:
        source, target: The pair.
        of_words: Whether to put one to four placeholders in place of names, numbers and words. If there are too few
            of these, placeholders are inserted.
        of_number_words: Whether to put placeholders in place of the number words that both sides share.
        lexicon: The translations of words.
        layer: The text layer that prepares the pair.
        random: Decides on the number and the positions of the placeholders.
    """
    count, replaced = 0, list[Replacement]()
    if of_number_words:
        pairs = shared_numbers(source, target, (layer.source_language, layer.target_language))
        replaced = [Replacement(word, translation, True) for word, translation in pairs]
    if of_words:
        count = 1 + bisect_right(NUMBERS_OF_PLACEHOLDERS, random.random())
        if random.random() >= NEW_PLACEHOLDERS_ALONE:
            candidates = find_word_pairs(lexicon, source, target)
            chosen = [candidates[index] for index in random.permutation(len(candidates))[:count].tolist()]
            number_words = {words.source for words in replaced}
            replaced += [
                Replacement(word, translation, _is_number(word, random))
                for word, translation in chosen
                if word not in number_words
            ]
    order = random.permutation(layer.placeholder_count).tolist()
    source, target = layer.prepare_pair(source, target, replaced, order)
    for _ in range(count - len(replaced)):
        first = FIRST_NUMBER_PLACEHOLDER if _is_number("", random) else 0
        unused = next(
            (placeholder(first + number) for number in order if placeholder(first + number) not in source), None
        )
        if unused:
            source, target = insert_new_placeholder(unused, source, target, layer.between, random)
    return renumber_placeholders(source, target)


def reduce_to_word(
    source: str, target: str, words: Sequence[tuple[str, str]], random: np.random.Generator
) -> tuple[str, str]:
    """Return one word of a pair and its translation, half of the time capitalized, with the final punctuation.

    Args:
        source, target: The pair.
        words: Words of the source with their translations; if there are none, the pair is returned.
        random: Decides on the word.
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
    """Return a source and a target with a symbol and a space in front of corresponding parts.

    - Of joined pairs, the part is the last pair. Final punctuation in front of it is removed.
    - Of a single pair, it is the text after a comma, which is removed; or a word and its translation. If there is
      neither, it is the whole sentences.

    Args:
        sources, targets: The texts of one pair, or of several pairs to join.
        words: Words of a single pair that occur once in the source and whose translations occur once in the target,
            with their translations.
        symbols: The symbols to choose from.
        between: The separator of two words of the source, and of the target: a space or nothing.
        random: Decides on the symbol and the part.
    """
    symbol = symbols[int(random.integers(len(symbols)))]
    commas = [[comma.start() for comma in COMMA.finditer(side[-1])] for side in (sources, targets)]
    heads, tails = ("", ""), (sources[-1], targets[-1])
    if len(sources) > 1:
        source, target = (blank.join(side[:-1]) for blank, side in zip(between, (sources, targets), strict=True))
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
    source, target = (f"{head}{blank if head else ''}{symbol} {tail}" for head, tail, blank in sides)
    return source, target
