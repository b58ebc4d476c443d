"""Measures the translations of each variant: BLEU and its loss, and whether planted items came back."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mt.core.language import between_words
from mt.core.randomness import generator
from mt.evaluation.robustness import items
from mt.evaluation.robustness.lines import Line, Variant
from mt.evaluation.robustness.variants import TAG, without_end
from mt.metrics.bleu import Bleu
from mt.metrics.chrf import Chrf
from mt.metrics.metric import Metric
from mt.metrics.significance import (
    Interval,
    block_numbers,
    holm,
    paired_intervals,
    randomisation_test,
    sum_blocks,
    wilson_95,
)

BOOTSTRAP_SAMPLES = 2_000
TRIALS = 20_000
"""Random exchanges of each randomisation test."""
MAX_WORDS_APART = 2
"""An item is in its place if the number of words in front of it differs from the reference's by no more than this."""
ITEM = "X"
"""Replaces an item inside a sentence when BLEU is counted."""
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
    """The results of one run for one variant."""

    clean: float
    """BLEU of the translations of the clean sentences."""
    bleu: float
    """BLEU of the translations of the variant."""
    loss: Interval
    """``clean`` minus ``bleu``, with the interval of the paired bootstrap over the sentences."""
    whole: Share | None
    """The share of the lines with the planted item or tag complete and once in the translation; None if none was
    planted."""
    in_place: Share | None
    """The share of the lines with an item also in the place of the reference, or a tag on the same name; None without
    items inside or tags on names."""
    clean_outputs: list[str]
    """For each line, the translation of the clean sentence."""
    outputs: list[str]
    """For each line, the translation of the variant."""
    chrf_losses: list[float]
    """For each line, the chrF2 of the clean translation minus that of the variant's, both as they are scored."""


@dataclass(frozen=True)
class Result:
    """The results of each run for one variant."""

    variant: Variant
    signature: str
    """sacreBLEU's signature of the BLEU."""
    runs: list[Measures]
    p: float | None
    """p of the paired randomisation test between two runs' translations of the variant; None if there is one run."""
    p_corrected: float | None
    """The same, corrected for the number of variants (Holm 1979)."""


def measure(
    variants: Sequence[Variant], translations: Sequence[Mapping[str, str]], target_language: str, seed: int
) -> list[Result]:
    """Measure every variant.

    Args:
        translations: For each of one or two runs, the translation of every source, clean or not.
        seed: Seed of the bootstrap and of the random exchanges.
    """
    metric, space = Bleu(target_language), between_words(target_language)
    measures = [[_measure(variant, run, metric, space, seed) for run in translations] for variant in variants]
    p: list[float | None] = [None] * len(variants)
    p_corrected = p
    if len(translations) == 2:
        tested = [_p(variant, runs, metric, seed) for variant, runs in zip(variants, measures, strict=True)]
        p, p_corrected = [*tested], [*holm(tested)]
    signatures = [
        metric.signature.replace("case:mixed", "case:lc") if variant.lowercase else metric.signature
        for variant in variants
    ]
    return [Result(*values) for values in zip(variants, signatures, measures, p, p_corrected, strict=True)]


def _measure(variant: Variant, translations: Mapping[str, str], metric: Metric, space: str, seed: int) -> Measures:
    lines = variant.lines
    clean_outputs = [space.join(translations[pair.source] for pair in line.pairs) for line in lines]
    clean_references = [space.join(pair.reference for pair in line.pairs) for line in lines]
    outputs = [translations[line.source] for line in lines]
    texts = _scored(variant, outputs), _scored_clean(variant, clean_outputs, clean_references)
    first, second = (sum_blocks(metric.statistics(*each), _blocks(lines)) for each in texts)
    random = generator(seed, "bootstrap")
    changed, clean, loss = paired_intervals(first, second, metric.score, BOOTSTRAP_SAMPLES, random)
    chrf = [Chrf("").segment_scores(*each) for each in texts]
    complete, in_place = CHECKS[variant.planted]
    return Measures(
        clean.score,
        changed.score,
        loss,
        _share(complete, lines, outputs),
        _share(in_place, lines, outputs),
        clean_outputs,
        outputs,
        [before - after for after, before in zip(*chrf, strict=True)],
    )


def _p(variant: Variant, runs: Sequence[Measures], metric: Metric, seed: int) -> float:
    blocks = _blocks(variant.lines)
    first, second = (sum_blocks(metric.statistics(*_scored(variant, run.outputs)), blocks) for run in runs)
    return randomisation_test(first, second, metric.score, TRIALS, generator(seed, "randomisation")).p


def _blocks(lines: Sequence[Line]) -> np.ndarray:
    """Return the block of each line, (N,): lines of the same clean source depend on each other."""
    return block_numbers(["\n".join(pair.source for pair in line.pairs) for line in lines])


def _scored(variant: Variant, outputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the scored texts of the translations of a variant, and of its references."""
    scored = [_without_planted(variant, line, output) for line, output in zip(variant.lines, outputs, strict=True)]
    references = [
        _with_a_word_for_item(line, line.reference) if variant.planted == "item inside" else line.reference
        for line in variant.lines
    ]
    return _in_case(variant, scored), _in_case(variant, references)


def _scored_clean(variant: Variant, outputs: Sequence[str], references: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the scored texts of the translations of clean sentences, and of their references."""
    if variant.without_end:
        outputs, references = ([without_end(text) for text in texts] for texts in (outputs, references))
    return _in_case(variant, outputs), _in_case(variant, references)


def _in_case(variant: Variant, texts: Sequence[str]) -> list[str]:
    return [text.casefold() for text in texts] if variant.lowercase else list(texts)


def _without_planted(variant: Variant, line: Line, output: str) -> str:
    """Return a translation without tags or an item at the end, and with one word for an item inside."""
    if variant.planted == "item at the end":
        return items.without(output, line.item)
    if variant.is_tagged:
        return html.unescape(TAG.sub("", output))
    return _with_a_word_for_item(line, output) if variant.planted == "item inside" else output


def _with_a_word_for_item(line: Line, text: str) -> str:
    """Return a text with one word for the item, like the name that stood there.

    BLEU would count the parts of a URL as so many words, all of them right, that they made up for the other words of
    the sentence.
    """
    span = items.find(text, line.item)
    return text[: span[0]] + ITEM + text[span[1] :] if span else text


def _is_well_tagged(line: Line, output: str) -> bool:
    match = WELL_TAGGED.fullmatch(output)
    return match is not None and bool(match[1].strip())


def _is_on_the_name(line: Line, output: str) -> bool:
    match = WELL_TAGGED.fullmatch(output)
    return match is not None and html.unescape(match[1]).strip() == line.item[0]


def _is_complete(line: Line, output: str) -> bool:
    return items.find(output, line.item) is not None


def _is_in_place(line: Line, output: str) -> bool:
    span, expected = items.find(output, line.item), items.find(line.reference, line.item)
    if span is None or expected is None:
        return False
    return abs(len(output[: span[0]].split()) - len(line.reference[: expected[0]].split())) <= MAX_WORDS_APART


Check = Callable[[Line, str], bool]
CHECKS: dict[str, tuple[Check | None, Check | None]] = {
    "nothing": (None, None),
    "item at the end": (_is_complete, None),
    "item inside": (_is_complete, _is_in_place),
    "tag": (_is_well_tagged, None),
    "tag on a name": (_is_well_tagged, _is_on_the_name),
}
"""For each kind of planting, the checks that it came back, and in its place; None where there is no such check."""


def _share(check: Check | None, lines: Sequence[Line], outputs: Sequence[str]) -> Share | None:
    if check is None:
        return None
    count, total = sum(map(check, lines, outputs)), len(lines)
    return Share(count, total, *wilson_95(count, total))
