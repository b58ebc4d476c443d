"""Makes the lines of every variant out of a test set.

Everything random depends on the seed, the variant and the number of the test sentence, and on nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from mt.comparison.systems import EvaluationSet
from mt.errors import InputError
from mt.language import writes_spaces
from mt.randomness import generator
from mt.robustness import variants
from mt.robustness.items import KINDS, Kind, draw, find

Value = TypeVar("Value")

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
    """Whether BLEU is counted in lower case."""
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
    chosen = evenly(long, sentences)

    def rewritten(name: str, rule: Callable[[str, np.random.Generator], str]) -> list[Line]:
        """Applies a rule to the chosen sources and leaves the references as they are."""
        sources = [rule(pair.source, generator(seed, f"robustness {name}", pair.number)) for pair in chosen]
        return [Line((pair,), source, pair.reference) for pair, source in zip(chosen, sources, strict=True)]

    made = [
        Variant("upper", "The whole line is in capitals. BLEU is counted in lower case.",
                _if_any_changed(rewritten("upper", lambda line, _: variants.upper(line))), lowercase=True),
        Variant("title", "Every Word Has A Capital. BLEU is counted in lower case.",
                _if_any_changed(rewritten("title", lambda line, _: variants.title(line))), lowercase=True),
        Variant("lower", "The whole line is in lower case. BLEU is counted in lower case.",
                _if_any_changed(rewritten("lower", lambda line, _: variants.lower(line))), lowercase=True),
        Variant("no_end", "The final punctuation is missing, in the reference too. The clean translations are scored "
                "without theirs.", _without_end(chosen), without_end=True),
        Variant("typos", "One word of eight, and at least one, has a typing mistake: a letter is doubled, dropped, "
                "swapped with the next one or replaced by a neighbour on the keyboard.",
                _changed(rewritten("typos", lambda line, random: variants.with_typos(line, source_language, random)))),
        Variant("three_sentences", "Three sentences stand on one line. The clean translations are those of the single "
                "sentences, joined.", _together(chosen, between(source_language), between(target_language))),
    ]  # fmt: skip
    for kind in KINDS:
        lines = _with_item_at_end(chosen, kind, evaluation, seed)
        made.append(
            Variant(kind, f"{WHAT[kind]} is added in front of the final punctuation. BLEU is of the rest of the line.",
                    lines, "item at the end")
        )  # fmt: skip
    for kind in KINDS:
        lines = _with_item_inside(long, kind, evaluation, seed)
        made.append(
            Variant(f"{kind}_inside", f"{WHAT[kind]} stands where a name stood, in the reference too.",
                    evenly(lines, sentences) if len(lines) >= FEWEST_NAMES else [], "item inside")
        )  # fmt: skip
    tagged = rewritten("tag", lambda line, random: variants.with_tag(line, spaces, random))
    made.append(
        Variant("tag", "One word stands in <b>…</b> (decoding.markup=html). BLEU is of the text without tags.",
                [line for line in _changed(tagged) if not set("<>&") & set(line.pairs[0].source)], "tag")
    )  # fmt: skip
    named = _with_tagged_name(long)
    made.append(
        Variant("tag_on_name", "A name that stands in the reference, too, is in <b>…</b> (decoding.markup=html). It is "
                "in place if the same name is in <b>…</b> in the translation.",
                evenly(named, sentences) if len(named) >= FEWEST_NAMES else [], "tag on a name")
    )  # fmt: skip
    return Lines(
        chosen,
        [variant for variant in made if variant.lines],
        {variant.name: _why_left_out(variant) for variant in made if not variant.lines},
    )


def between(language: str) -> str:
    """Returns what stands between two sentences on one line."""
    return " " if writes_spaces(language) else ""


def evenly(values: list[Value], most: int) -> list[Value]:
    """Returns at most so many of the values, evenly spaced."""
    count = min(most, len(values))
    return [values[place * len(values) // count] for place in range(count)]


def _long_enough(sources: list[str], references: list[str], spaces: bool) -> list[Pair]:
    least = f"{FEWEST_WORDS} words" if spaces else f"{FEWEST_CHARACTERS} characters"
    pairs = [Pair(number, *pair) for number, pair in enumerate(zip(sources, references, strict=True), 1)]
    found = [
        pair
        for pair in pairs
        if (len(pair.source.split()) >= FEWEST_WORDS if spaces else len(pair.source.strip()) >= FEWEST_CHARACTERS)
    ]
    if not found:
        raise InputError(f"no sentence of the test set has {least} or more: there is nothing to measure")
    return found


def _changed(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line.source != line.pairs[0].source]


def _if_any_changed(lines: list[Line]) -> list[Line]:
    """Returns all lines, or none of them if the script knows no capitals."""
    return lines if _changed(lines) else []


def _without_end(chosen: list[Pair]) -> list[Line]:
    """Returns the pairs that have final punctuation on both sides, without it."""
    lines = [Line((pair,), variants.without_end(pair.source), variants.without_end(pair.reference)) for pair in chosen]
    return [line for line in _changed(lines) if line.source and line.reference != line.pairs[0].reference]


def _together(chosen: list[Pair], between_sources: str, between_references: str) -> list[Line]:
    threes = [tuple(chosen[start : start + TOGETHER]) for start in range(0, len(chosen) - TOGETHER + 1, TOGETHER)]
    return [
        Line(
            pairs,
            between_sources.join(pair.source for pair in pairs),
            between_references.join(pair.reference for pair in pairs),
        )
        for pairs in threes
    ]


def _with_item_at_end(chosen: list[Pair], kind: Kind, evaluation: EvaluationSet, seed: int) -> list[Line]:
    lines = []
    for pair in chosen:
        item = _drawn(kind, kind, pair, evaluation, seed)
        assert evaluation.source_language is not None
        source = variants.with_item_at_end(pair.source, item[0], writes_spaces(evaluation.source_language))
        lines.append(Line((pair,), source, pair.reference, item))
    return [line for line in lines if find(line.source, line.item) and not _holds(line.reference, line.item)]


def _with_item_inside(pairs: list[Pair], kind: Kind, evaluation: EvaluationSet, seed: int) -> list[Line]:
    lines = []
    for pair in pairs:
        name = variants.shared_name(pair.source, pair.reference)
        if name is not None:
            item = _drawn(f"{kind}_inside", kind, pair, evaluation, seed)
            source, reference = (text.replace(name, item[0]) for text in (pair.source, pair.reference))
            lines.append(Line((pair,), source, reference, item))
    return [line for line in lines if find(line.source, line.item) and find(line.reference, line.item)]


def _with_tagged_name(pairs: list[Pair]) -> list[Line]:
    lines = []
    for pair in pairs:
        name = variants.shared_name(pair.source, pair.reference)
        if name is not None and not set("<>&") & set(pair.source):
            lines.append(Line((pair,), pair.source.replace(name, f"<b>{name}</b>"), pair.reference, (name,)))
    return lines


def _drawn(name: str, kind: Kind, pair: Pair, evaluation: EvaluationSet, seed: int) -> tuple[str, ...]:
    assert evaluation.source_language is not None
    random = generator(seed, f"robustness {name}", pair.number)
    return draw(kind, random, evaluation.source_language, evaluation.target_language)


def _holds(text: str, item: tuple[str, ...]) -> bool:
    return any(form in text for form in item)


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
