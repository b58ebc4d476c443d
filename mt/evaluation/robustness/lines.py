"""Makes the lines of every variant out of a test set.

Everything random depends on the seed, the variant and the number of the test sentence, and on nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from mt.core.errors import InputError
from mt.core.language import between_words, writes_spaces
from mt.core.randomness import generator
from mt.evaluation.robustness import variants
from mt.evaluation.robustness.items import KINDS, Kind, draw, find
from mt.evaluation.systems import EvaluationSet, evenly_spaced

FEWEST_WORDS, FEWEST_CHARACTERS = 4, 8
"""The length of the shortest sentences that are taken: in words, or in characters where no spaces separate words."""
FEWEST_NAMES = 20
"""The fewest pairs with a name for which the variants with an item inside the sentence are made."""
TOGETHER = 3
"""How many sentences stand on one line of ``three_sentences``."""
WHAT: dict[Kind, str] = {
    "number": "A number of five digits",
    "price": "A price such as 19.99",
    "code": "A code such as B-207",
    "url": "A URL",
    "email": "An e-mail address",
    "emoji": "An emoji",
    "placeholder": "A placeholder such as {name}, %d, ${USER} or {{count}}",
}
"""What is planted."""


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
    """What it was made of: one pair, or three."""
    source: str
    reference: str
    """What the translation should be, but for a tag, or an item at the end."""
    item: tuple[str, ...] = ()
    """The planted item, in each form in which it may come back, the planted one first; empty if there is none."""


@dataclass(frozen=True)
class Variant:
    """All lines of one variant, and how their translations are scored."""

    name: str
    rule: str
    """What was done to the sentences."""
    lines: list[Line]
    planted: Literal["nothing", "item at the end", "item inside", "tag", "tag on a name"] = "nothing"
    """What the translations have to keep. An item at the end, or tags, are taken out before BLEU is counted."""
    lowercase: bool = False
    """Whether BLEU is counted in lower case, in which ß is ss, because it is SS in capitals."""
    without_end: bool = False
    """Whether the clean translations and references are scored without their final punctuation."""

    @property
    def is_tagged(self) -> bool:
        """Whether tags were planted, so that the lines are translated with ``decoding.markup=html``."""
        return self.planted in ("tag", "tag on a name")


@dataclass(frozen=True)
class Lines:
    """What ``make_lines`` returns."""

    chosen: list[Pair]
    variants: list[Variant]
    left_out: dict[str, str]
    """The names of the variants that could not be made, each with the reason."""


def make_lines(evaluation: EvaluationSet, sentences: int, seed: int) -> Lines:
    """Makes the lines of every variant.

    Args:
        sentences: The most lines of a variant.

    Raises:
        InputError: No test sentence is long enough.
    """
    assert evaluation.sources is not None and evaluation.source_language is not None
    source_language, target_language = evaluation.source_language, evaluation.target_language
    spaces = writes_spaces(source_language)
    long = _long_enough(evaluation.sources, evaluation.references, spaces)
    chosen = evenly_spaced(long, sentences)
    named = [(pair, name) for pair in long if (name := variants.shared_name(pair.source, pair.reference))]

    def random(name: str, pair: Pair) -> np.random.Generator:
        return generator(seed, f"robustness {name}", pair.number)

    def rewritten(rule: Callable[[Pair], str]) -> list[Line]:
        """Applies a rule to the chosen pairs' sources and leaves the references as they are."""
        return [Line((pair,), rule(pair), pair.reference) for pair in chosen]

    def in_case(rule: Callable[[str], str]) -> list[Line]:
        """Returns all lines, or none of them if the script knows no capitals."""
        lines = rewritten(lambda pair: rule(pair.source))
        return lines if any(map(_is_changed, lines)) else []

    def at_end(kind: Kind) -> list[Line]:
        lines = []
        for pair in chosen:
            item = draw(kind, random(kind, pair), source_language, target_language)
            source = variants.with_item_at_end(pair.source, item[0], spaces)
            if find(source, item) and not any(form in pair.reference for form in item):
                lines.append(Line((pair,), source, pair.reference, item))
        return lines

    def inside(kind: Kind) -> list[Line]:
        lines = []
        for pair, name in named:
            item = draw(kind, random(f"{kind}_inside", pair), source_language, target_language)
            source, reference = (text.replace(name, item[0]) for text in (pair.source, pair.reference))
            if find(source, item) and find(reference, item):
                lines.append(Line((pair,), source, reference, item))
        return _enough(lines, sentences)

    typos = rewritten(lambda pair: variants.with_typos(pair.source, source_language, random("typos", pair)))
    tagged = rewritten(lambda pair: variants.with_tag(pair.source, spaces, random("tag", pair)))
    names = [
        Line((pair,), pair.source.replace(name, f"<b>{name}</b>"), pair.reference, (name,)) for pair, name in named
    ]
    made = [
        Variant("upper", "The whole line is in capitals. BLEU is counted in lower case.", in_case(str.upper),
                lowercase=True),
        Variant("title", "Every Word Has A Capital. BLEU is counted in lower case.", in_case(variants.title),
                lowercase=True),
        Variant("lower", "The whole line is in lower case. BLEU is counted in lower case.", in_case(str.lower),
                lowercase=True),
        Variant("no_end", "The final punctuation is missing, in the reference too. The clean translations are scored "
                "without theirs.", _without_end(chosen), without_end=True),
        Variant("typos", "One word of eight, and at least one, has a typing mistake: a letter is doubled, dropped, "
                "swapped with the next one or replaced by a neighbour on the keyboard.",
                list(filter(_is_changed, typos))),
        Variant("three_sentences", "Three sentences stand on one line. The clean translations are those of the single "
                "sentences, joined.", _together(chosen, source_language, target_language)),
        *(Variant(kind, f"{WHAT[kind]} is added in front of the final punctuation. BLEU is of the rest of the line.",
                  at_end(kind), "item at the end") for kind in KINDS),
        *(Variant(f"{kind}_inside", f"{WHAT[kind]} stands where a name stood, in the reference too. It counts as one "
                  "word.", inside(kind), "item inside") for kind in KINDS),
        Variant("tag", "One word stands in <b>…</b> (decoding.markup=html). BLEU is of the text without tags.",
                [line for line in tagged if _is_changed(line) and _is_plain(line)], "tag"),
        Variant("tag_on_name", "A name that stands in the reference, too, is in <b>…</b> (decoding.markup=html). It is "
                "in place if the same name is in <b>…</b> in the translation.",
                _enough(list(filter(_is_plain, names)), sentences), "tag on a name"),
    ]  # fmt: skip
    return Lines(
        chosen,
        [variant for variant in made if variant.lines],
        {variant.name: _why_left_out(variant) for variant in made if not variant.lines},
    )


def _long_enough(sources: list[str], references: list[str], spaces: bool) -> list[Pair]:
    """Returns the pairs whose source is long enough to be changed."""
    pairs = [Pair(number, *pair) for number, pair in enumerate(zip(sources, references, strict=True), 1)]
    if spaces:
        least, found = f"{FEWEST_WORDS} words", [pair for pair in pairs if len(pair.source.split()) >= FEWEST_WORDS]
    else:
        least = f"{FEWEST_CHARACTERS} characters"
        found = [pair for pair in pairs if len(pair.source.strip()) >= FEWEST_CHARACTERS]
    if not found:
        raise InputError(f"no sentence of the test set has {least} or more: there is nothing to measure")
    return found


def _is_changed(line: Line) -> bool:
    return line.source != line.pairs[0].source


def _is_plain(line: Line) -> bool:
    """Returns whether nothing in the clean source would be read as markup."""
    return not set("<>&") & set(line.pairs[0].source)


def _enough(lines: list[Line], most: int) -> list[Line]:
    """Returns at most so many of the lines with a name, evenly spaced; none if there are fewer than FEWEST_NAMES."""
    return evenly_spaced(lines, most) if len(lines) >= FEWEST_NAMES else []


def _without_end(chosen: list[Pair]) -> list[Line]:
    """Returns the pairs that have final punctuation on both sides, without it."""
    lines = [Line((pair,), variants.without_end(pair.source), variants.without_end(pair.reference)) for pair in chosen]
    return [line for line in lines if line.source and _is_changed(line) and line.reference != line.pairs[0].reference]


def _together(chosen: list[Pair], source_language: str, target_language: str) -> list[Line]:
    threes = [tuple(chosen[start : start + TOGETHER]) for start in range(0, len(chosen) - TOGETHER + 1, TOGETHER)]
    between = between_words(source_language), between_words(target_language)
    return [
        Line(pairs, between[0].join(pair.source for pair in pairs), between[1].join(pair.reference for pair in pairs))
        for pairs in threes
    ]


def _why_left_out(variant: Variant) -> str:
    if variant.planted in ("item inside", "tag on a name"):
        return (
            f"fewer than {FEWEST_NAMES} test pairs have a name that stands exactly once on both sides, and not at the "
            "beginning of a sentence"
        )
    return {
        "three_sentences": f"fewer than {TOGETHER} sentences were chosen",
        "no_end": "no chosen pair has final punctuation on both sides",
    }.get(variant.name, "no chosen sentence is changed by it")
