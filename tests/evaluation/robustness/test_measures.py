"""What is measured of translations that are given."""

import numpy as np
import pytest

from mt.evaluation.robustness.command import MeasuredRun, RobustnessFindings, summary, worst_lines
from mt.evaluation.robustness.measures import RunMeasures, Scores, VariantResult, measure_variants
from mt.evaluation.robustness.variants import TestPair, Variant, VariantLine, make_lines
from mt.evaluation.systems import EvaluationSet
from mt.metrics.significance import Interval

SYLLABLES = ["ba", "de", "fi", "go", "ku", "la", "mo", "ne"]
SOURCES = [f"Ba {SYLLABLES[n % 8]} de fi {SYLLABLES[n // 8]} Sula go ku." for n in range(32)]
REFERENCES = [line.replace("go", "wa") for line in SOURCES]
LINES = make_lines(EvaluationSet(SOURCES, REFERENCES, "xx", "yy"), 500, 1)


def _perfect():
    """The reference of each line, with what was planted in it."""
    found = dict(zip(SOURCES, REFERENCES, strict=True))
    for variant in LINES.variants:
        for line in variant.lines:
            translation = line.reference
            if variant.planted == "item":
                translation = translation.replace(".", f" {line.item}.")
            elif variant.planted == "tag":
                translation = f"<b>Ba</b>{translation[2:]}"
            found[line.source] = translation
    return found


def _measured(*translations):
    return {result.variant.name: result for result in measure_variants(LINES.variants, translations, "yy", 1)}


def test_measure_variants_of_perfect_translations():
    for name, result in _measured(_perfect()).items():
        (one,) = result.runs
        assert one.scores.clean == one.scores.bleu == pytest.approx(100) and one.scores.loss == Interval(0, 0, 0), name
        assert one.scores.whole is None or one.scores.whole.count == one.scores.whole.total == len(result.variant.lines)
        assert result.p is result.p_corrected is None


def test_measure_variants_ignores_changed_casing():
    loud = {source: text.upper() for source, text in _perfect().items()}
    found = _measured(loud)
    assert all(found[name].runs[0].scores.bleu == pytest.approx(100) for name in ("upper", "title", "lower"))
    assert all(found[name].runs[0].scores.bleu < 50 for name in ("typos", "url", "no_end"))


def test_measure_variants_counts_added_punctuation():
    result = _measured({source: text.rstrip(".") + "." for source, text in _perfect().items()})["no_end"]
    assert result.runs[0].scores.clean == pytest.approx(100) and result.runs[0].scores.bleu < 95


def test_measure_variants_corrects_p_for_all_variants():
    worse = _perfect() | {line.source: "Zu." for line in _variant("typos").lines}
    found = _measured(_perfect(), worse)
    typos = found.pop("typos")
    assert typos.p < 0.001 and typos.p_corrected == pytest.approx(typos.p * len(LINES.variants))
    assert all(result.p == result.p_corrected == 1 for result in found.values())


def _variant(name) -> Variant:
    return next(variant for variant in LINES.variants if variant.name == name)


def test_measure_variants_resamples_by_source():
    """Of one sentence that stands there often, nothing is known about others: the interval is a point."""
    lines = make_lines(EvaluationSet(["Ba de fi go."] * 30, ["Wa de fi go ku."] * 30, "xx", "yy"), 500, 1)
    found = {line.source: "Wa de fi go." for variant in lines.variants for line in variant.lines}
    upper = next(variant for variant in lines.variants if variant.name == "upper")
    (result,) = measure_variants([upper], [found | {"Ba de fi go.": "Wa de fi go ku."}], "yy", 1)
    loss = result.runs[0].scores.loss
    assert loss.low == loss.score == loss.high > 10


def test_summary_states_losses_and_significant_variants():
    worse = _perfect() | {line.source: "Zu." for line in _variant("typos").lines}
    evaluation = EvaluationSet(SOURCES, REFERENCES, "xx", "yy")
    runs = [MeasuredRun(name, name, {}) for name in ("A", "B")]
    results = measure_variants(LINES.variants, [_perfect(), worse], "yy", 1)
    first, second, both = summary(RobustnessFindings(evaluation, runs, 32, results, [], 1))
    assert first.startswith("A loses most BLEU in the variant upper (0.0), and less than 1 in upper, title, lower, ")
    assert second.startswith("B loses most BLEU in the variant typos (100.0), and less than 1 in upper, ")
    assert second.endswith("100.0 % are preserved.") and "typos" not in second.partition("and")[2]
    assert both == "The BLEU of the two runs differs significantly in typos."
    same = summary(
        RobustnessFindings(evaluation, runs, 32, measure_variants(LINES.variants, [worse, worse], "yy", 1), [], 1)
    )
    assert same[-1].endswith("differs significantly in no variant.")


def test_worst_lines_lose_most_chrf():
    losses = [[float(n * 7 % 20) for n in range(20)], [-8.0] * 20]
    lines = [VariantLine((TestPair(n, "s", "r"),), "s", "r") for n in range(20)]
    blank = [""] * 20
    runs = [RunMeasures(Scores(0, 0, Interval(0, 0, 0), None), np.zeros((1, 10)), blank, blank, own) for own in losses]
    result = VariantResult(Variant("typos", "", lines), "", runs, None, None)
    assert [line["chrf_losses"][0] for line in worst_lines(result)] == [19, 18, 17, 16, 15]
    gains = VariantResult(result.variant, "", [runs[1]], None, None)
    assert worst_lines(gains) == []
