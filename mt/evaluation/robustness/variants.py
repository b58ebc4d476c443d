"""Makes the variants of a test set: its sentences in uppercase, with typing errors, with planted items, and so on.

Items, such as numbers and URLs, are drawn, and found in translations, which must keep them unchanged. Random numbers
depend only on the seed, the name of the variant and the line number of the test sentence.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import regex

from mt.core.errors import InputError
from mt.core.language import TOUCHING, between_words, writes_spaces
from mt.core.randomness import generator
from mt.evaluation.systems import EvaluationSet
from mt.text.casing import to_uppercase
from mt.text.final_punctuation import FINAL_PUNCTUATION
from mt.text.layer import VARIATIONS
from mt.text.lexicon import Lexicon
from mt.text.numbers import find_numbers, is_plain_number
from mt.text.values import find_value_positions

ITEM_KINDS = {
    "number": "A number of five digits",
    "price": "A price such as 19.99 or 19,99",
    "code": "A code such as B-207",
    "url": "A URL",
    "email": "An e-mail address",
    "emoji": "An emoji",
    "name": "A name such as MapTool",
    "acronym": "An acronym such as BDX",
    "placeholder": "A placeholder such as {name}, %d, ${USER} or {{count}}",
}
"""Each kind of item → its description in the report."""

NAMES = "anna", "ben", "clara", "david", "emma", "felix"
SURNAMES = "berg", "lopez", "novak", "rossi", "smith", "weber"
DECIMAL_SEPARATORS = ".", ","
PAGES = "about", "help", "news", "shop", "start", "team"
EMOJI = "😀", "😂", "👍", "🎉", "🙏", "🔥", "😢", "🚀"
PLACEHOLDERS = "{name}", "%d", "%s", "${USER}", "{{count}}", "{0}", "%(total)s"

BOLD_TAG = re.compile("</?b>")
BARE_WORD = regex.compile(r"[^\s\p{C}\p{P}\p{S}](?:[^\s\x1c-\x1f]*[^\s\p{C}\p{P}\p{S}])?")
"""A word without the punctuation around it. Blanks separate words, among them \\x1c to \\x1f, as in ``str.split``."""

MIN_WORDS, MIN_CHARACTERS = 4, 8
"""Minimum length of a test sentence, in words or, in languages without spaces, in characters."""
SENTENCES_PER_LINE = 3
"""Test sentences on each line of the variant ``three_sentences``."""


def draw_item(kind: str, random: np.random.Generator) -> str:
    """Draw a random item of a kind in ITEM_KINDS."""
    match kind:
        case "number":
            return str(random.integers(10_000, 100_000))
        case "price":
            return f"{random.integers(2, 100)}{random.choice(DECIMAL_SEPARATORS)}{random.integers(100):02}"
        case "code":
            return f"{chr(ord('A') + int(random.integers(26)))}-{random.integers(100, 1000)}"
        case "url":
            return f"https://www.example.org/{random.choice(PAGES)}/{random.integers(1, 100)}"
        case "email":
            return f"{random.choice(NAMES)}.{random.choice(SURNAMES)}@example.org"
        case "name":
            return f"{random.choice(NAMES).title()}{random.choice(PAGES).title()}"
        case "acronym":
            return "".join(random.choice(list("BDFGKMPTVX"), 3, replace=False))
        case "emoji":
            return str(random.choice(EMOJI))
        case _:
            return str(random.choice(PLACEHOLDERS))


def find_item(text: str, item: str) -> tuple[int, int] | None:
    """Return the start and end of an item in a text, or None unless the text has it exactly once."""
    spans = _spans(text, item)
    return spans[0] if len(spans) == 1 else None


def without_item(text: str, item: str) -> str:
    """Return a text without the first occurrence of an item and the spaces in front of it.

    A text without the item is returned as it is.
    """
    start, end = min(_spans(text, item), default=(0, 0))
    return (text[:start].rstrip() + text[end:]).strip() if end else text


def _spans(text: str, item: str) -> list[tuple[int, int]]:
    """Return the start and end of each occurrence of an item in one piece. A number may have another format."""
    if not is_plain_number(item):
        return [(start, start + len(item)) for start in find_value_positions(item, text)]
    [(_, number)] = find_numbers(item)
    return [match.span() for match, digits in find_numbers(text) if digits == number]


def title(line: str, language: str) -> str:
    """Capitalize the first letter of every word, and leave the others as they are."""
    return re.sub(r"(?<!\S)[^\w\s]*\w", lambda start: to_uppercase(start[0], language), line)


def without_end(line: str) -> str:
    """Return a sentence without its final punctuation and the spaces around that. Other sentences stay as they are."""
    return FINAL_PUNCTUATION.sub("", line)


def with_item_at_end(line: str, item: str, has_spaces: bool) -> str:
    """Add an item to the end of a line, in front of its final punctuation: ``Come here 19.99.``

    Args:
        has_spaces: Whether the language of the line separates words by spaces. If not, there is no space between a
            letter of such a language and the item.
    """
    body = without_end(line)
    space = " " if body and (has_spaces or not re.match(f"[{TOUCHING}]", body[-1])) else ""
    return body + space + item + line[len(body) :]


def with_tag(line: str, has_spaces: bool, random: np.random.Generator) -> str:
    """Put one random word of a line into ``<b>…</b>``. A line without words is returned as it is.

    Args:
        has_spaces: Whether the language of the line separates words by spaces.
    """
    spans = word_spans(line, has_spaces)
    if not spans:
        return line
    start, end = spans[int(random.integers(len(spans)))]
    return f"{line[:start]}<b>{line[start:end]}</b>{line[end:]}"


def word_spans(line: str, has_spaces: bool) -> list[tuple[int, int]]:
    """Return the start and end of each word with two characters or more and at least one letter, without punctuation.

    Args:
        has_spaces: Whether the language separates words by spaces. If not, every two letters count as a word.
    """
    if not has_spaces:
        pairs = range(0, len(line) - 1, 2)
        return [(start, start + 2) for start in pairs if line[start : start + 2].isalpha()]
    return [word.span() for word in BARE_WORD.finditer(line) if len(word[0]) >= 2 and any(map(str.isalpha, word[0]))]


class TestPair(NamedTuple):
    """A test sentence and its reference."""

    number: int
    """Line number in the test set, from 1."""
    source: str
    reference: str


@dataclass(frozen=True)
class VariantLine:
    """One line of a variant: a changed source with its reference."""

    pairs: tuple[TestPair, ...]
    """The unchanged test sentences that the line is made of: one, or three."""
    source: str
    reference: str
    """The expected translation, without the planted item or tag."""
    item: str = ""
    """The planted item."""


@dataclass(frozen=True)
class Variant:
    """One kind of change, the lines with this change, and the rules for scoring their translations."""

    name: str
    rule: str
    """The change of the sentences, in words."""
    lines: list[VariantLine] = field(default_factory=list)
    planted: Literal["nothing", "item", "tag"] = "nothing"
    """What was added to the sources and must come back. It is removed from the translations before BLEU is computed."""
    lowercase: bool = False
    """Whether BLEU is computed on case-folded texts. They have ss for ß, because its capitals are SS."""
    without_end: bool = False
    """Whether the clean translations and references are scored without their final punctuation."""

    @property
    def is_tagged(self) -> bool:
        """Whether the lines are translated as HTML."""
        return self.planted == "tag"


@dataclass(frozen=True)
class RobustnessSet:
    """The chosen test sentences and all their variants."""

    chosen: list[TestPair]
    variants: list[Variant]
    skipped: list[str]
    """The names of the variants without lines, such as ``upper`` in a script without capitals."""


@dataclass(frozen=True)
class _Sentences:
    """The chosen test sentences, and further arguments of the functions in VARIANTS, which change them."""

    chosen: list[TestPair]
    source_language: str
    target_language: str
    seed: int
    lexicon: Lexicon
    """Word translations of the whole test set."""

    @property
    def writes_spaces(self) -> bool:
        """Whether the source language separates words by spaces."""
        return writes_spaces(self.source_language)

    def random(self, name: str, pair: TestPair) -> np.random.Generator:
        """Return the random number generator of one test sentence in the variant ``name``."""
        return generator(self.seed, f"robustness {name}", pair.number)

    def changed(self, rule: Callable[[TestPair], tuple[str, str]]) -> list[VariantLine]:
        """Return a line for each test sentence whose source ``rule`` changes. It returns a source and a reference."""
        lines = [VariantLine((pair,), *rule(pair)) for pair in self.chosen]
        return [line for line in lines if line.source != line.pairs[0].source]


def _varied(setting: str, sentences: _Sentences) -> list[VariantLine]:
    """Return the sentences as ``text.augmentation`` varies training pairs with one of its settings."""
    vary, language = VARIATIONS[setting], sentences.source_language
    return sentences.changed(lambda pair: vary(pair.source, pair.reference, language, sentences.random(setting, pair)))


def _in_case(rule: Callable[[str, str], str], sentences: _Sentences) -> list[VariantLine]:
    """Return the sentences in another casing, ``rule(source, language)``."""
    return sentences.changed(lambda pair: (rule(pair.source, sentences.source_language), pair.reference))


def _three_sentences(sentences: _Sentences) -> list[VariantLine]:
    """Return lines of three chosen sentences each. Up to two sentences are left over."""
    chosen, size = sentences.chosen, SENTENCES_PER_LINE
    source_space, target_space = between_words(sentences.source_language), between_words(sentences.target_language)
    groups = [tuple(chosen[start : start + size]) for start in range(0, len(chosen) - size + 1, size)]
    return [
        VariantLine(
            pairs,
            source_space.join(pair.source for pair in pairs),
            target_space.join(pair.reference for pair in pairs),
        )
        for pairs in groups
    ]


def _words(sentences: _Sentences) -> list[VariantLine]:
    """Return a line for each word of the chosen sentences that the lexicon translates, with the first such sentence."""
    lines: dict[str, VariantLine] = {}
    for pair in sentences.chosen:
        for word, translation in sentences.lexicon.matching_pairs(pair.source, pair.reference):
            heading, reference = (text[0].upper() + text[1:] for text in (word, translation))
            if heading != pair.source:
                lines.setdefault(heading, VariantLine((pair,), heading, reference))
    return list(lines.values())


def _with_words(form: Callable[[str, Sequence[str]], str], sentences: _Sentences) -> list[VariantLine]:
    """Return the sentences with at least two words that the lexicon translates, as ``form`` puts two of these words, in
    random order, into both sides."""

    def rule(pair: TestPair) -> tuple[str, str]:
        words = sentences.lexicon.matching_pairs(pair.source, pair.reference)
        if len(words) < 2:
            return pair.source, pair.reference
        chosen = sentences.random("words", pair).permutation(len(words))[:2].tolist()
        source_words, target_words = zip(*(words[index] for index in chosen), strict=True)
        return form(pair.source, source_words), form(pair.reference, target_words)

    return sentences.changed(rule)


def _item(kind: str, sentences: _Sentences) -> list[VariantLine]:
    """Return the sentences with an item of one kind at their end, except where a reference has this item already."""
    lines = []
    for pair in sentences.chosen:
        item = draw_item(kind, sentences.random(kind, pair))
        source = with_item_at_end(pair.source, item, sentences.writes_spaces)
        if find_item(source, item) and item not in pair.reference:
            lines.append(VariantLine((pair,), source, pair.reference, item))
    return lines


def _tag(sentences: _Sentences) -> list[VariantLine]:
    """Return the sentences with one word in a pair of HTML tags."""
    lines = sentences.changed(
        lambda pair: (with_tag(pair.source, sentences.writes_spaces, sentences.random("tag", pair)), pair.reference)
    )
    # A clean source with one of these characters would itself be read as markup.
    return [line for line in lines if not set("<>&") & set(line.pairs[0].source)]


VARIANTS: Sequence[tuple[Callable[[_Sentences], list[VariantLine]], Variant]] = (
    (partial(_in_case, to_uppercase),
     Variant("upper", "The whole line is in uppercase. BLEU is counted in lowercase.", lowercase=True)),
    (partial(_in_case, title),
     Variant("title", "Every Word Has A Capital. BLEU is counted in lowercase.", lowercase=True)),
    (partial(_varied, "lower_case"),
     Variant("lower", "The whole line is in lowercase. BLEU is counted in lowercase.", lowercase=True)),
    (partial(_varied, "unpunctuated"),
     Variant("no_end", "The final punctuation is missing, in the reference too. The clean translations are scored "
             "without theirs.", without_end=True)),
    (partial(_varied, "typos"),
     Variant("typos", "About one word of eight, and at least one, has a typing error: a letter is doubled, dropped, "
             "swapped with the next one or replaced by a neighbor on the keyboard.")),
    (_three_sentences,
     Variant("three_sentences", "Three sentences stand on one line. The clean translations are those of the single "
             "sentences, joined.")),
    (_words,
     Variant("word", "One word stands alone with a capital, like a heading. Its reference is the word of the reference "
             "that most often goes with it in the test set. BLEU is of single words in lowercase.", lowercase=True)),
    (partial(_with_words, lambda text, words: f"{words[0].capitalize()}: {text}"),
     Variant("label", "A word with a colon, like a label, stands in front of the sentence.")),
    (partial(_with_words, lambda text, words: f"({words[0]}) {text}"),
     Variant("bracket", "A word in brackets stands in front of the sentence.")),
    (partial(_with_words, lambda text, words: text.replace(words[0], "/".join(words))),
     Variant("slash", "A word has another one behind a slash.")),
    (lambda sentences: sentences.changed(
        lambda pair: (f"{without_end(pair.source)},", f"{without_end(pair.reference)},")),
     Variant("comma", "A comma takes the place of the final punctuation, in the reference too.")),
    *((partial(_item, kind),
       Variant(kind, f"{description} is added in front of the final punctuation. BLEU is of the rest of the "
               "line.", planted="item")) for kind, description in ITEM_KINDS.items()),
    (_tag,
     Variant("tag", "One word stands in <b>…</b> (decoding.markup=html). BLEU is of the text without tags.",
             planted="tag")),
)  # fmt: skip
"""The function that makes the lines of each variant, and the variant without lines."""


def make_lines(evaluation: EvaluationSet, max_sentences: int, seed: int) -> RobustnessSet:
    """Choose test sentences and make all their variants.

    Args:
        max_sentences: How many of the sentences that are long enough are chosen, evenly spaced.
        seed: Seed of all random changes.

    Raises:
        InputError: No test sentence is long enough.
    """
    assert evaluation.sources is not None and evaluation.source_language is not None
    pairs = _long_enough(evaluation.sources, evaluation.references, writes_spaces(evaluation.source_language))
    count = min(max_sentences, len(pairs))
    chosen = [pairs[number * len(pairs) // count] for number in range(count)]  # test sets are often sorted
    lexicon = Lexicon(zip(evaluation.sources, evaluation.references, strict=True))
    sentences = _Sentences(chosen, evaluation.source_language, evaluation.target_language, seed, lexicon)
    made = [replace(variant, lines=make(sentences)) for make, variant in VARIANTS]
    return RobustnessSet(
        chosen,
        [variant for variant in made if variant.lines],
        [variant.name for variant in made if not variant.lines],
    )


def _long_enough(sources: list[str], references: list[str], has_spaces: bool) -> list[TestPair]:
    """Return the test sentences with at least MIN_WORDS words or, without ``has_spaces``, MIN_CHARACTERS characters.

    Raises:
        InputError: There is none.
    """
    pairs = [TestPair(number, *pair) for number, pair in enumerate(zip(sources, references, strict=True), 1)]
    minimum, unit = (MIN_WORDS, "words") if has_spaces else (MIN_CHARACTERS, "characters")
    long = [pair for pair in pairs if len(pair.source.split() if has_spaces else pair.source.strip()) >= minimum]
    if not long:
        raise InputError(
            f"no sentence of the test set has {minimum} {unit} or more, so robustness cannot be measured; choose a run "
            "with a test set of longer sentences"
        )
    return long
