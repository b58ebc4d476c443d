"""Measures the translations of each variant: the loss of BLEU, and the share of planted items that came back."""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mt.core.language import between_words
from mt.core.randomness import generator
from mt.evaluation.robustness.variants import BOLD_TAG, Variant, find_item, without_end, without_item
from mt.metrics.metric import Bleu, Chrf, TextMetric
from mt.metrics.significance import (
    BOOTSTRAP_SAMPLES,
    Interval,
    block_numbers,
    holm,
    paired_intervals,
    randomization_test,
    sum_blocks,
    wilson_95,
)

TRIALS = 20_000
"""Random exchanges of each randomization test."""
WELL_TAGGED = re.compile(r"[^<>]*<b>\s*[^<>\s][^<>]*</b>[^<>]*")
"""A translation with one pair of tags around a text."""


@dataclass(frozen=True)
class CountedShare:
    """A share of the lines of a variant: ``count`` of ``total``, with the ends of its 95 % interval (Wilson 1927)."""

    count: int
    total: int
    low: float
    high: float


@dataclass(frozen=True)
class Scores:
    """The scores of one run for one variant."""

    clean: float
    """BLEU of the translations of the unchanged test sentences."""
    bleu: float
    """BLEU of the translations of the variant."""
    loss: Interval
    """``clean`` minus ``bleu``, with the 95 % interval of the paired bootstrap over the test sentences."""
    whole: CountedShare | None
    """The share of the lines whose translation has the planted item or tag complete and exactly once. None if nothing
    was planted."""


@dataclass(frozen=True)
class RunMeasures:
    """The scores of one run for one variant, with the translations and the counts that they are computed from."""

    scores: Scores
    counts: np.ndarray
    """The counts of BLEU for the translations of the variant, (B, C) for B distinct clean sources."""
    clean_outputs: list[str]
    """For each line, the translation of the unchanged sentence; of three sentences, joined."""
    outputs: list[str]
    """For each line, the translation of the changed sentence."""
    chrf_losses: list[float]
    """For each line, the chrF2 of the clean output minus that of the output, both computed after the changes that the
    variant makes for scoring."""


@dataclass(frozen=True)
class VariantResult:
    """The results of one variant: the measures of each run, and the test between two runs."""

    variant: Variant
    signature: str
    """sacreBLEU's signature of the BLEU of this variant."""
    runs: list[RunMeasures]
    p: float | None
    """p-value of the paired randomization test between the two runs' BLEU; None if there is one run."""
    p_corrected: float | None
    """``p`` corrected for the number of variants (Holm 1979); None if there is one run."""


def measure_variants(
    variants: Sequence[Variant], translations: Sequence[Mapping[str, str]], target_language: str, seed: int
) -> list[VariantResult]:
    """Score the translations of every variant, and test two runs against each other.

    Args:
        translations: For each of one or two runs, a mapping from every source, clean or changed, to its translation.
        seed: Seed of the bootstrap and of the randomization test.

    Returns:
        The results, in the order of ``variants``.
    """
    space = between_words(target_language)
    results = []
    for variant in variants:
        metric = Bleu.of_group([line.reference for line in variant.lines], target_language)
        runs = [_measure(variant, run, metric, space, seed) for run in translations]
        signature = metric.signature.replace("case:mixed", "case:lc") if variant.lowercase else metric.signature
        p = None
        if len(runs) == 2:
            first, second = (run.counts for run in runs)
            p = randomization_test(first, second, metric.score, TRIALS, generator(seed, "randomisation")).p
        results.append(VariantResult(variant, signature, runs, p, None))
    if len(translations) == 1:
        return results
    corrected = holm([result.p for result in results if result.p is not None])
    return [replace(result, p_corrected=p) for result, p in zip(results, corrected, strict=True)]


def _measure(
    variant: Variant, translations: Mapping[str, str], metric: TextMetric, space: str, seed: int
) -> RunMeasures:
    """Score the translations of one variant by one run.

    Args:
        translations: Source, clean or changed → its translation.
        space: What joins the translations of several sentences on a line: a space, or nothing.
    """
    lines = variant.lines
    clean_outputs = [space.join(translations[pair.source] for pair in line.pairs) for line in lines]
    clean_references = [space.join(pair.reference for pair in line.pairs) for line in lines]
    outputs = [translations[line.source] for line in lines]
    end = without_end if variant.without_end else str
    scored = [
        _scored(variant, outputs),
        tuple(_in_case(variant, map(end, texts)) for texts in (clean_outputs, clean_references)),
    ]
    # Lines with the same clean source are not independent, so they are resampled together.
    blocks = block_numbers(["\n".join(pair.source for pair in line.pairs) for line in lines])
    first, second = (sum_blocks(metric.statistics(*texts), blocks) for texts in scored)
    random = generator(seed, "bootstrap")
    changed, clean, loss = paired_intervals(first, second, metric.score, BOOTSTRAP_SAMPLES, random)
    after, before = (Chrf("").segment_scores(*texts) for texts in scored)
    share = None
    if variant.planted != "nothing":
        kept = [
            WELL_TAGGED.fullmatch(output) if variant.is_tagged else find_item(output, line.item)
            for line, output in zip(lines, outputs, strict=True)
        ]
        count, total = len(kept) - kept.count(None), len(kept)
        share = CountedShare(count, total, *wilson_95(count, total))
    chrf_losses = np.subtract(before, after).tolist()
    scores = Scores(clean.score, changed.score, loss, share)
    return RunMeasures(scores, first, clean_outputs, outputs, chrf_losses)


def _scored(variant: Variant, outputs: Sequence[str]) -> tuple[list[str], ...]:
    """Return the texts to score for a variant: the translations without planted items and tags, and the references."""
    if variant.planted == "item":
        outputs = [without_item(output, line.item) for line, output in zip(variant.lines, outputs, strict=True)]
    elif variant.planted == "tag":
        outputs = [html.unescape(BOLD_TAG.sub("", output)) for output in outputs]
    return _in_case(variant, outputs), _in_case(variant, [line.reference for line in variant.lines])


def _in_case(variant: Variant, texts: Iterable[str]) -> list[str]:
    return [text.casefold() if variant.lowercase else text for text in texts]
