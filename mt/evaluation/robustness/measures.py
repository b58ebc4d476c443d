"""Measures how well runs translate each variant: BLEU and what it loses, and whether planted items came back."""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mt.core.language import between_words
from mt.core.randomness import generator
from mt.evaluation.robustness import items, variants
from mt.evaluation.robustness.lines import Line, Variant
from mt.metrics.scoring import CorpusMetric, Interval, corpus_metrics, sentence_chrf
from mt.metrics.significance import (
    blocks_of,
    bootstrap_scores,
    holm,
    middle_95,
    randomisation_test,
    sum_blocks,
    wilson_95,
)

BOOTSTRAP_SAMPLES = 2_000
TRIALS = 20_000
"""Random exchanges of each randomisation test."""
PLACES_APART = 2
"""An item is in its place if the number of words in front of it differs from the reference's by no more than this."""
ITEM = "X"
"""What stands for an item inside a sentence when BLEU is counted."""
WELL_TAGGED = re.compile(r"[^<>]*<b>([^<>]+)</b>[^<>]*")


@dataclass(frozen=True)
class Share:
    """A share of the lines of a variant, with its 95 % interval (Wilson 1927)."""

    count: int
    total: int
    low: float
    high: float


@dataclass(frozen=True)
class Measures:
    """How one run translates one variant."""

    clean: float
    """BLEU of the translations of the clean sentences that the variant was made of."""
    bleu: float
    """BLEU of the translations of the variant."""
    loss: Interval
    """``clean`` minus ``bleu``, with the interval of the paired bootstrap over the sentences."""
    whole: Share | None
    """The share of the lines in which the planted item or tag came back whole and once; None if none was planted."""
    in_place: Share | None
    """The share of the lines in which an item inside the sentence came back so, at the place of the reference, or in
    which a tag is on the name that it was on."""
    clean_outputs: list[str]
    """For each line, the translation of the clean sentence."""
    outputs: list[str]
    """For each line, the translation of the variant."""
    chrf_losses: list[float]
    """For each line, the chrF2 of the clean translation minus that of the variant's, both as they are scored."""


@dataclass(frozen=True)
class Result:
    """How each run translates one variant."""

    variant: Variant
    signature: str
    """sacreBLEU's signature of the BLEU."""
    of_runs: list[Measures]
    p: float | None
    """p of the paired randomisation test between two runs' translations of the variant; None if there is one run."""
    p_corrected: float | None
    """The same, corrected for the number of variants (Holm 1979)."""


def measure(
    all_variants: Sequence[Variant], translations: Sequence[Mapping[str, str]], target_language: str, seed: int
) -> list[Result]:
    """Measures every variant.

    Args:
        translations: For each of one or two runs, the translation of every source, clean or not.
        seed: Seed of the bootstrap and of the random exchanges.
    """
    metric = corpus_metrics(target_language)[0]
    space = between_words(target_language)
    measured = [[_of_run(variant, of_run, metric, space, seed) for of_run in translations] for variant in all_variants]
    p: list[float | None] = [None] * len(all_variants)
    p_corrected = p
    if len(translations) == 2:
        tested = [
            _p(variant, [one.outputs for one in of_runs], metric, seed)
            for variant, of_runs in zip(all_variants, measured, strict=True)
        ]
        p, p_corrected = [*tested], [*holm(tested)]
    signatures = [
        metric.signature.replace("case:mixed", "case:lc") if variant.lowercase else metric.signature
        for variant in all_variants
    ]
    return [Result(*values) for values in zip(all_variants, signatures, measured, p, p_corrected, strict=True)]


def _of_run(variant: Variant, translations: Mapping[str, str], metric: CorpusMetric, space: str, seed: int) -> Measures:
    lines = variant.lines
    clean_outputs = [space.join(translations[pair.source] for pair in line.pairs) for line in lines]
    clean_references = [space.join(pair.reference for pair in line.pairs) for line in lines]
    outputs = [translations[line.source] for line in lines]
    texts = _scored_clean(variant, clean_outputs, clean_references), _scored(variant, outputs)
    blocks = _blocks(lines)
    clean, changed = (sum_blocks(metric.counts(*pair), blocks) for pair in texts)
    drawn = bootstrap_scores([clean, changed], metric.score, BOOTSTRAP_SAMPLES, generator(seed, "bootstrap"))
    scores = [float(metric.score(counts.sum(axis=0))) for counts in (clean, changed)]
    chrf = zip(*(sentence_chrf(*pair) for pair in texts), strict=True)
    pairs = list(zip(lines, outputs, strict=True))
    came_back = _is_well_tagged if variant.is_tagged else _is_whole
    in_place = {"item inside": _is_in_place, "tag on a name": _is_on_the_name}.get(variant.planted)
    return Measures(
        scores[0],
        scores[1],
        Interval(scores[0] - scores[1], *middle_95(drawn[0] - drawn[1])),
        None if variant.planted == "nothing" else _share([came_back(line, output) for line, output in pairs]),
        None if in_place is None else _share([in_place(line, output) for line, output in pairs]),
        clean_outputs,
        outputs,
        [before - after for before, after in chrf],
    )


def _p(variant: Variant, outputs: Sequence[list[str]], metric: CorpusMetric, seed: int) -> float:
    first, second = (sum_blocks(metric.counts(*_scored(variant, one)), _blocks(variant.lines)) for one in outputs)
    return randomisation_test(first, second, metric.score, TRIALS, generator(seed, "randomisation")).p


def _blocks(lines: Sequence[Line]) -> np.ndarray:
    """Numbers the lines, (N,): those that were made of the same clean source depend on each other."""
    return blocks_of(["\n".join(pair.source for pair in line.pairs) for line in lines])


def _scored(variant: Variant, outputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns what is scored of the translations of a variant, and of its references."""
    scored = [_without_planted(variant, line, output) for line, output in zip(variant.lines, outputs, strict=True)]
    references = [
        _with_a_word_for_item(line, line.reference) if variant.planted == "item inside" else line.reference
        for line in variant.lines
    ]
    return _in_case(variant, scored), _in_case(variant, references)


def _scored_clean(variant: Variant, outputs: Sequence[str], references: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns what is scored of the translations of clean sentences, and of their references."""
    if variant.without_end:
        outputs, references = ([variants.without_end(text) for text in texts] for texts in (outputs, references))
    return _in_case(variant, outputs), _in_case(variant, references)


def _in_case(variant: Variant, texts: Sequence[str]) -> list[str]:
    return [text.casefold() for text in texts] if variant.lowercase else list(texts)


def _without_planted(variant: Variant, line: Line, output: str) -> str:
    """Returns a translation as it is scored, but for its case.

    Tags and an item at the end are taken out. An item inside the sentence counts as one word.
    """
    if variant.planted == "item at the end":
        return items.without(output, line.item)
    if variant.is_tagged:
        return html.unescape(variants.TAG.sub("", output))
    return _with_a_word_for_item(line, output) if variant.planted == "item inside" else output


def _with_a_word_for_item(line: Line, text: str) -> str:
    """Returns a text with one word in place of the item, like the name that stood there.

    BLEU would count the parts of a URL as so many words, all of them right, that they made up for the other words of
    the sentence.
    """
    found = items.find(text, line.item)
    return text[: found[0]] + ITEM + text[found[1] :] if found else text


def _is_well_tagged(line: Line, output: str) -> bool:
    tagged = WELL_TAGGED.fullmatch(output)
    return tagged is not None and bool(tagged[1].strip())


def _is_on_the_name(line: Line, output: str) -> bool:
    tagged = WELL_TAGGED.fullmatch(output)
    return tagged is not None and html.unescape(tagged[1]).strip() == line.item[0]


def _is_whole(line: Line, output: str) -> bool:
    return items.find(output, line.item) is not None


def _is_in_place(line: Line, output: str) -> bool:
    ours, theirs = items.find(output, line.item), items.find(line.reference, line.item)
    if ours is None or theirs is None:
        return False
    return abs(len(output[: ours[0]].split()) - len(line.reference[: theirs[0]].split())) <= PLACES_APART


def _share(found: Sequence[bool]) -> Share:
    count, total = sum(found), len(found)
    return Share(count, total, *wilson_95(count, total))
