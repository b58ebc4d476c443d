"""Measures the translations of each variant: BLEU and its loss, and whether planted items came back."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mt.core.language import between_words
from mt.core.randomness import generator
from mt.evaluation.robustness import items
from mt.evaluation.robustness.lines import Line, Variant
from mt.evaluation.robustness.variants import BOLD_TAG, without_end
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
WELL_TAGGED = re.compile(r"[^<>]*<b>([^<>]+)</b>[^<>]*")


@dataclass(frozen=True)
class Share:
    """A share of the lines of a variant, with its 95 % interval (Wilson 1927)."""

    count: int
    total: int
    low: float
    high: float


@dataclass(frozen=True)
class Scores:
    """The scores of one run for one variant."""

    clean: float
    """BLEU of the translations of the clean sentences."""
    bleu: float
    """BLEU of the translations of the variant."""
    loss: Interval
    """``clean`` minus ``bleu``, with the interval of the paired bootstrap over the sentences."""
    whole: Share | None
    """The share of the lines with the planted item or tag complete and once in the translation; None if none was
    planted."""


@dataclass(frozen=True)
class Measures:
    """The results of one run for one variant."""

    scores: Scores
    counts: np.ndarray
    """Of BLEU in the translations of the variant, (B, C) for B distinct clean sources."""
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
    results = []
    for variant in variants:
        runs = [_measure(variant, run, metric, space, seed) for run in translations]
        signature = metric.signature.replace("case:mixed", "case:lc") if variant.lowercase else metric.signature
        results.append(Result(variant, signature, runs, None, None))
    if len(translations) == 1:
        return results
    random = [generator(seed, "randomisation") for _ in results]
    counts = [(result.runs[0].counts, result.runs[1].counts) for result in results]
    p = [randomisation_test(*both, metric.score, TRIALS, each).p for both, each in zip(counts, random, strict=True)]
    return [
        replace(result, p=own, p_corrected=corrected)
        for result, own, corrected in zip(results, p, holm(p), strict=True)
    ]


def _measure(variant: Variant, translations: Mapping[str, str], metric: Metric, space: str, seed: int) -> Measures:
    lines = variant.lines
    clean_outputs = [space.join(translations[pair.source] for pair in line.pairs) for line in lines]
    clean_references = [space.join(pair.reference for pair in line.pairs) for line in lines]
    outputs = [translations[line.source] for line in lines]
    end = without_end if variant.without_end else str
    texts = [
        _scored(variant, outputs),
        tuple(_in_case(variant, map(end, each)) for each in (clean_outputs, clean_references)),
    ]
    # Lines of the same clean source depend on each other.
    blocks = block_numbers(["\n".join(pair.source for pair in line.pairs) for line in lines])
    first, second = (sum_blocks(metric.statistics(*each), blocks) for each in texts)
    random = generator(seed, "bootstrap")
    changed, clean, loss = paired_intervals(first, second, metric.score, BOOTSTRAP_SAMPLES, random)
    after, before = (Chrf("").segment_scores(*each) for each in texts)
    share = None
    if variant.planted != "nothing":
        is_whole = _is_well_tagged if variant.is_tagged else _is_complete
        count, total = sum(map(is_whole, lines, outputs)), len(lines)
        share = Share(count, total, *wilson_95(count, total))
    chrf_losses = np.subtract(before, after).tolist()
    scores = Scores(clean.score, changed.score, loss, share)
    return Measures(scores, first, clean_outputs, outputs, chrf_losses)


def _scored(variant: Variant, outputs: Sequence[str]) -> tuple[list[str], ...]:
    """Return the translations of a variant without the planted items and tags, and the references, as scored."""
    if variant.planted == "item":
        outputs = [items.without(output, line.item) for line, output in zip(variant.lines, outputs, strict=True)]
    elif variant.planted == "tag":
        outputs = [html.unescape(BOLD_TAG.sub("", output)) for output in outputs]
    return _in_case(variant, outputs), _in_case(variant, [line.reference for line in variant.lines])


def _in_case(variant: Variant, texts: Iterable[str]) -> list[str]:
    return [text.casefold() if variant.lowercase else text for text in texts]


def _is_well_tagged(line: Line, output: str) -> bool:
    match = WELL_TAGGED.fullmatch(output)
    return match is not None and bool(match[1].strip())


def _is_complete(line: Line, output: str) -> bool:
    return items.find(output, line.item) is not None
