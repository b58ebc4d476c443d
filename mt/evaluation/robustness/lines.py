"""Makes the lines of every variant out of a test set.

Everything random depends on the seed, the variant and the number of the test sentence, and on nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal, NamedTuple

import numpy as np

from mt.core.errors import InputError
from mt.core.language import between_words, writes_spaces
from mt.core.randomness import generator
from mt.evaluation.robustness import variants
from mt.evaluation.robustness.items import DESCRIPTIONS, KINDS, Kind, draw, find
from mt.evaluation.systems import EvaluationSet, evenly_spaced

MIN_WORDS, MIN_CHARACTERS = 4, 8
"""Length of a sentence that is taken: in words, or in characters where no spaces separate words."""
MIN_NAMES = 20
"""Pairs with a name from which the variants with an item inside the sentence are made."""
SENTENCES_PER_LINE = 3
"""Of ``three_sentences``."""


class Pair(NamedTuple):
    """A test sentence and its reference."""

    number: int
    """Line in the test set, from 1."""
    source: str
    reference: str


@dataclass(frozen=True)
class Line:
    """One line of a variant."""

    pairs: tuple[Pair, ...]
    """The pairs that it is made of: one, or three."""
    source: str
    reference: str
    """The expected translation, without a tag or an item at the end."""
    item: tuple[str, ...] = ()
    """The planted item, in each form that the translation may have, the planted one first; empty if there is none."""

    @property
    def is_changed(self) -> bool:
        return self.source != self.pairs[0].source

    @property
    def is_plain(self) -> bool:
        """Whether nothing in the clean source would be read as markup."""
        return not set("<>&") & set(self.pairs[0].source)


@dataclass(frozen=True)
class Variant:
    """All lines of one variant, and how their translations are scored."""

    name: str
    rule: str
    """The change of the sentences, in words."""
    lines: list[Line] = field(default_factory=list)
    planted: Literal["nothing", "item at the end", "item inside", "tag", "tag on a name"] = "nothing"
    """What the translations have to keep. An item at the end, or tags, are taken out before BLEU is counted."""
    lowercase: bool = False
    """Whether BLEU is counted in lower case, in which ß is ss, because it is SS in capitals."""
    without_end: bool = False
    """Whether the clean translations and references are scored without their final punctuation."""

    @property
    def is_tagged(self) -> bool:
        """Whether tags were planted, so that the lines are translated as HTML."""
        return self.planted in ("tag", "tag on a name")


@dataclass(frozen=True)
class Lines:
    """The chosen sentences and the variants of them."""

    chosen: list[Pair]
    variants: list[Variant]
    left_out: dict[str, str]
    """The names of the variants without lines, each with the reason."""


@dataclass(frozen=True)
class _Sentences:
    """The test sentences that are long enough, and the ``count`` chosen ones among them."""

    pairs: list[Pair]
    count: int
    source_language: str
    target_language: str
    seed: int

    @cached_property
    def chosen(self) -> list[Pair]:
        return evenly_spaced(self.pairs, self.count)

    @cached_property
    def named(self) -> list[tuple[Pair, str]]:
        """The pairs with a name on both sides, with that name."""
        return [(pair, name) for pair in self.pairs if (name := variants.shared_name(pair.source, pair.reference))]

    @property
    def spaces(self) -> bool:
        return writes_spaces(self.source_language)

    def random(self, name: str, pair: Pair) -> np.random.Generator:
        return generator(self.seed, f"robustness {name}", pair.number)

    def item(self, kind: Kind, name: str, pair: Pair) -> tuple[str, ...]:
        return draw(kind, self.random(name, pair), self.source_language, self.target_language)

    def rewritten(self, rule: Callable[[Pair], str]) -> list[Line]:
        """Return the chosen pairs with their sources changed by a rule."""
        return [Line((pair,), rule(pair), pair.reference) for pair in self.chosen]

    def limited(self, lines: list[Line]) -> list[Line]:
        """Return up to ``count`` of the lines with a name, or none if there are fewer than MIN_NAMES."""
        return evenly_spaced(lines, self.count) if len(lines) >= MIN_NAMES else []


def _in_case(rule: Callable[[str], str], sentences: _Sentences) -> list[Line]:
    lines = sentences.rewritten(lambda pair: rule(pair.source))
    return lines if any(line.is_changed for line in lines) else []  # the script may have no capitals


def _without_end(sentences: _Sentences) -> list[Line]:
    """Return the pairs that have final punctuation on both sides, without it."""
    lines = [
        Line((pair,), variants.without_end(pair.source), variants.without_end(pair.reference))
        for pair in sentences.chosen
    ]
    return [line for line in lines if line.source and line.is_changed and line.reference != line.pairs[0].reference]


def _typos(sentences: _Sentences) -> list[Line]:
    lines = sentences.rewritten(
        lambda pair: variants.with_typos(pair.source, sentences.source_language, sentences.random("typos", pair))
    )
    return [line for line in lines if line.is_changed]


def _three_sentences(sentences: _Sentences) -> list[Line]:
    chosen, size = sentences.chosen, SENTENCES_PER_LINE
    source_space, target_space = between_words(sentences.source_language), between_words(sentences.target_language)
    groups = [tuple(chosen[start : start + size]) for start in range(0, len(chosen) - size + 1, size)]
    return [
        Line(
            pairs,
            source_space.join(pair.source for pair in pairs),
            target_space.join(pair.reference for pair in pairs),
        )
        for pairs in groups
    ]


def _item_at_end(kind: Kind, sentences: _Sentences) -> list[Line]:
    lines = []
    for pair in sentences.chosen:
        item = sentences.item(kind, kind, pair)
        source = variants.with_item_at_end(pair.source, item[0], sentences.spaces)
        if find(source, item) and not any(form in pair.reference for form in item):
            lines.append(Line((pair,), source, pair.reference, item))
    return lines


def _item_inside(kind: Kind, sentences: _Sentences) -> list[Line]:
    lines = []
    for pair, name in sentences.named:
        item = sentences.item(kind, f"{kind}_inside", pair)
        source, reference = (text.replace(name, item[0]) for text in (pair.source, pair.reference))
        if find(source, item) and find(reference, item):
            lines.append(Line((pair,), source, reference, item))
    return sentences.limited(lines)


def _tag(sentences: _Sentences) -> list[Line]:
    lines = sentences.rewritten(
        lambda pair: variants.with_tag(pair.source, sentences.spaces, sentences.random("tag", pair))
    )
    return [line for line in lines if line.is_changed and line.is_plain]


def _tag_on_name(sentences: _Sentences) -> list[Line]:
    lines = [
        Line((pair,), pair.source.replace(name, f"<b>{name}</b>"), pair.reference, (name,))
        for pair, name in sentences.named
    ]
    return sentences.limited([line for line in lines if line.is_plain])


VARIANTS: Sequence[tuple[Callable[[_Sentences], list[Line]], Variant]] = (
    (partial(_in_case, str.upper),
     Variant("upper", "The whole line is in capitals. BLEU is counted in lower case.", lowercase=True)),
    (partial(_in_case, variants.title),
     Variant("title", "Every Word Has A Capital. BLEU is counted in lower case.", lowercase=True)),
    (partial(_in_case, str.lower),
     Variant("lower", "The whole line is in lower case. BLEU is counted in lower case.", lowercase=True)),
    (_without_end,
     Variant("no_end", "The final punctuation is missing, in the reference too. The clean translations are scored "
             "without theirs.", without_end=True)),
    (_typos,
     Variant("typos", "One word of eight, and at least one, has a typing mistake: a letter is doubled, dropped, "
             "swapped with the next one or replaced by a neighbour on the keyboard.")),
    (_three_sentences,
     Variant("three_sentences", "Three sentences stand on one line. The clean translations are those of the single "
             "sentences, joined.")),
    *((partial(_item_at_end, kind),
       Variant(kind, f"{DESCRIPTIONS[kind]} is added in front of the final punctuation. BLEU is of the rest of the "
               "line.", planted="item at the end")) for kind in KINDS),
    *((partial(_item_inside, kind),
       Variant(f"{kind}_inside", f"{DESCRIPTIONS[kind]} stands where a name stood, in the reference too. It counts as "
               "one word.", planted="item inside")) for kind in KINDS),
    (_tag,
     Variant("tag", "One word stands in <b>…</b> (decoding.markup=html). BLEU is of the text without tags.",
             planted="tag")),
    (_tag_on_name,
     Variant("tag_on_name", "A name that stands in the reference, too, is in <b>…</b> (decoding.markup=html). It is in "
             "place if the same name is in <b>…</b> in the translation.", planted="tag on a name")),
)  # fmt: skip
"""All variants, without lines, and the functions that make their lines."""


def make_lines(evaluation: EvaluationSet, sentences: int, seed: int) -> Lines:
    """Make the lines of every variant.

    Args:
        sentences: The maximum number of lines of a variant.

    Raises:
        InputError: No test sentence is long enough.
    """
    assert evaluation.sources is not None and evaluation.source_language is not None
    pairs = _long_enough(evaluation.sources, evaluation.references, writes_spaces(evaluation.source_language))
    test_sentences = _Sentences(pairs, sentences, evaluation.source_language, evaluation.target_language, seed)
    made = [replace(variant, lines=make(test_sentences)) for make, variant in VARIANTS]
    return Lines(
        test_sentences.chosen,
        [variant for variant in made if variant.lines],
        {variant.name: _why_left_out(variant) for variant in made if not variant.lines},
    )


def _long_enough(sources: list[str], references: list[str], spaces: bool) -> list[Pair]:
    """Return the pairs whose source is long enough to be changed."""
    pairs = [Pair(number, *pair) for number, pair in enumerate(zip(sources, references, strict=True), 1)]
    if spaces:
        minimum, long = f"{MIN_WORDS} words", [pair for pair in pairs if len(pair.source.split()) >= MIN_WORDS]
    else:
        minimum = f"{MIN_CHARACTERS} characters"
        long = [pair for pair in pairs if len(pair.source.strip()) >= MIN_CHARACTERS]
    if not long:
        raise InputError(f"no sentence of the test set has {minimum} or more: there is nothing to measure")
    return long


def _why_left_out(variant: Variant) -> str:
    if variant.planted in ("item inside", "tag on a name"):
        return (
            f"fewer than {MIN_NAMES} test pairs have a name that stands exactly once on both sides, and not at the "
            "beginning of a sentence"
        )
    return {
        "three_sentences": f"fewer than {SENTENCES_PER_LINE} sentences were chosen",
        "no_end": "no chosen pair has final punctuation on both sides",
    }.get(variant.name, "no chosen sentence is changed by it")
