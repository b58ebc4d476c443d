"""What is measured of translations that are given."""

from pathlib import Path

import pytest

from mt.config import DecodingConfig
from mt.evaluation.robustness.lines import Line, Pair, Variant, make_lines
from mt.evaluation.robustness.measures import Measures, Result, measure
from mt.evaluation.robustness.report import EXAMPLES, Findings, MeasuredRun, shown_lines, summary, worst_lines
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
            if variant.planted == "item at the end":
                translation = translation.replace(".", f" {line.item[-1]}.")
            elif variant.planted == "tag":
                translation = f"<b>Ba</b>{translation[2:]}"
            elif variant.planted == "tag on a name":
                translation = translation.replace(line.item[0], f"<b>{line.item[0]}</b>")
            found[line.source] = translation
    return found


def _measured(*translations):
    return {result.variant.name: result for result in measure(LINES.variants, translations, "yy", 1)}


def test_perfect_translations_lose_nothing():
    for name, result in _measured(_perfect()).items():
        (one,) = result.runs
        assert one.clean == one.bleu == pytest.approx(100) and one.loss == Interval(0, 0, 0), name
        for share in (one.whole, one.in_place):
            assert share is None or share.count == share.total == len(result.variant.lines)
        assert result.p is result.p_corrected is None


def test_an_item_in_another_place_is_whole():
    moved = _perfect()
    for variant in LINES.variants:
        if variant.planted == "item inside":
            for line in variant.lines:
                moved[line.source] = f"{line.item[0]} {line.reference.replace(' ' + line.item[0], '')}"
    for result in _measured(moved).values():
        if result.variant.planted == "item inside":
            (one,) = result.runs
            assert one.whole.count == one.whole.total == 32 and one.in_place.count == 0
            assert one.loss.low > 0


def test_an_item_counts_as_one_word_whatever_it_is():
    """Translations with the same mistakes lose the same, be the item a number or a URL of many words for BLEU."""
    wrong = {line.source: line.reference.replace("fi", "zu", 1) for variant in LINES.variants for line in variant.lines}
    found = _measured(_perfect() | wrong)
    inside = {name: one.runs[0].bleu for name, one in found.items() if name.endswith("_inside")}
    assert len(inside) == 7 and len({round(bleu, 9) for bleu in inside.values()}) == 1
    assert 0 < inside["url_inside"] < 95


@pytest.mark.parametrize("words", [2, 3])
def test_two_words_more_in_front_of_it_are_still_its_place(words):
    moved = {line.source: "x " * words + line.reference for variant in LINES.variants for line in variant.lines}
    result = _measured(_perfect() | moved)["code_inside"]
    assert result.runs[0].in_place.count == (32 if words == 2 else 0)


@pytest.mark.parametrize(
    ("tagged", "is_well"),
    [
        ("<b>Ba</b> de.", True), ("Ba <b>de fi</b>.", True), ("Ba de.", False), ("<b>Ba de.", False),
        ("</b>Ba<b> de.", False), ("<b>Ba</b> <b>de</b>.", False), ("<b></b>Ba.", False), ("<b> </b>Ba.", False),
        ("<i><b>Ba</b></i> de.", False), ("<b>Ba</b> < de.", False),
    ],
)  # fmt: skip
def test_tags_are_well_formed_or_not(tagged, is_well):
    changed = _perfect() | {line.source: tagged for variant in LINES.variants for line in variant.lines}
    assert _measured(changed)["tag"].runs[0].whole.count == (32 if is_well else 0)


def test_a_tag_is_in_its_place_on_the_name_alone():
    moved = {
        line.source: line.reference.replace(
            f"{line.item[0]} ", f"<b>{line.item[0]} </b>" if number % 2 else "<b>x</b> "
        )
        for variant in LINES.variants
        if variant.planted == "tag on a name"
        for number, line in enumerate(variant.lines)
    }
    (one,) = _measured(_perfect() | moved)["tag_on_name"].runs
    assert (one.whole.count, one.in_place.count, one.in_place.total) == (32, 16, 32)


def test_case_does_not_count_where_it_was_changed():
    loud = {source: text.upper() for source, text in _perfect().items()}
    found = _measured(loud)
    assert all(found[name].runs[0].bleu == pytest.approx(100) for name in ("upper", "title", "lower"))
    assert all(found[name].runs[0].bleu < 50 for name in ("typos", "url", "no_end"))


def test_final_punctuation_that_was_not_asked_for_counts():
    result = _measured({source: text.rstrip(".") + "." for source, text in _perfect().items()})["no_end"]
    assert result.runs[0].clean == pytest.approx(100) and result.runs[0].bleu < 95


def test_runs_that_differ_in_one_variant_alone():
    worse = _perfect() | {line.source: "Zu." for line in _variant("typos").lines}
    found = _measured(_perfect(), worse)
    typos = found.pop("typos")
    assert typos.p < 0.001 and typos.p_corrected == pytest.approx(typos.p * len(LINES.variants))
    assert all(result.p == result.p_corrected == 1 for result in found.values())


def _variant(name) -> Variant:
    return next(variant for variant in LINES.variants if variant.name == name)


def test_sentences_with_the_same_source_are_drawn_together():
    """Of one sentence that stands there often, nothing is known about others: the interval is a point."""
    lines = make_lines(EvaluationSet(["Ba de fi go."] * 30, ["Wa de fi go ku."] * 30, "xx", "yy"), 500, 1)
    found = {line.source: "Wa de fi go." for variant in lines.variants for line in variant.lines}
    upper = next(variant for variant in lines.variants if variant.name == "upper")
    (result,) = measure([upper], [found | {"Ba de fi go.": "Wa de fi go ku."}], "yy", 1)
    loss = result.runs[0].loss
    assert loss.low == loss.score == loss.high > 10


def test_the_summary_names_the_extremes():
    worse = _perfect() | {line.source: "Zu." for line in _variant("typos").lines}
    evaluation = EvaluationSet(SOURCES, REFERENCES, "xx", "yy")
    runs = [MeasuredRun(name, Path(name), DecodingConfig()) for name in ("A", "B")]
    results = measure(LINES.variants, [_perfect(), worse], "yy", 1)
    first, second, both = summary(Findings(evaluation, runs, 32, results, {}, 1))
    assert first.startswith("A loses most BLEU with ") and first.count("(0.0)") == 2
    assert second.startswith("B loses most BLEU with typos (100.0)") and second.endswith("100.0 % came back whole.")
    assert both.endswith("differs by more than chance in typos.")
    same = summary(Findings(evaluation, runs, 32, measure(LINES.variants, [worse, worse], "yy", 1), {}, 1))
    assert same[-1].endswith("differs in no variant by more than chance.")


def test_the_worst_lines_and_evenly_spaced_ones():
    losses = [[float(n * 7 % 20) for n in range(20)], [-8.0] * 20]
    lines = [Line((Pair(n, "s", "r"),), "s", "r") for n in range(20)]
    blank = [""] * 20
    runs = [Measures(0, 0, Interval(0, 0, 0), None, None, blank, blank, own) for own in losses]
    result = Result(Variant("typos", "", lines), "", runs, None, None)
    assert [line["chrf_losses"][0] for line in worst_lines(result)] == [19, 18, 17, 16, 15]
    assert [line["numbers"] for line in shown_lines(result)] == [[0], [4], [8], [12], [16]]
    gains = Result(result.variant, "", [runs[1]], None, None)
    assert worst_lines(gains) == [] and len(shown_lines(gains)) == EXAMPLES
