"""Groups hold every sentence once, and their figures are those of the definition."""

from pathlib import Path

import pytest
from sacrebleu import BLEU

from mt.evaluation.comparison.findings import bleu_by_length, clearest_wins
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.metrics.metric import Bleu, Chrf
from tests import toy

REFERENCES = toy.sentences(100, 3)
WORSE = ["za " + line if len(line.split()) > 5 else line for line in REFERENCES]


def _system(name, hypotheses):
    return System(name, [Output(Path(name), hypotheses, None)])


def _evaluation(references=REFERENCES, source_language="xx"):
    return EvaluationSet(references, references, source_language, "yy")


SYSTEMS = [_system("A", WORSE), _system("B", REFERENCES)]


def test_bleu_by_length_equals_bleu_of_each_group():
    groups = bleu_by_length(SYSTEMS, _evaluation())
    assert sum(group.count for group in groups) == len(REFERENCES)
    for group in groups:
        low, _, high = group.label.partition("–")
        rows = [n for n, line in enumerate(REFERENCES) if int(low) <= len(line.split()) <= int(high or low)]
        assert len(rows) == group.count
        # Of 4-grams there are too few in a group of shorter sentences.
        enough = sorted((len(REFERENCES[row].split()) for row in rows), reverse=True)[:10][-1]
        bleu = BLEU(max_ngram_order=min(4, enough))
        expected = bleu.corpus_score([WORSE[row] for row in rows], [[REFERENCES[row] for row in rows]])
        assert group.scores[0] == pytest.approx(expected.score)
        assert group.scores[1] == pytest.approx(100)
    assert groups[0].scores[0] == pytest.approx(100) and groups[-1].scores[0] < 95


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("count", [9, 10, 100])
def test_bleu_by_length_has_intervals_for_ten_sentences(count, outputs):
    references = ["ba de fi go za"] * count
    worse = [line if number % 3 else f"ba de {line}" for number, line in enumerate(references)]
    systems = [_system("A", references), System("B", [Output(Path("B"), worse, None)] * outputs)]
    (group,) = bleu_by_length(systems, _evaluation(references))
    score = BLEU().corpus_score(worse, [references], n_bootstrap=1000)
    assert group.scores == pytest.approx([100, score.score])
    assert group.half_widths == ([0, pytest.approx(score._ci, rel=0.25)] if count >= 10 and outputs == 1 else [])


@pytest.mark.parametrize("counts", [(30, 1), (1, 30), (9, 9, 9, 30)])
def test_bleu_by_length_merges_small_groups(counts):
    references = [" ".join(["ba"] * (length + 4)) for length, count in enumerate(counts) for _ in range(count)]
    sizes = [group.count for group in bleu_by_length([_system("A", references)], _evaluation(references))]
    assert min(sizes) >= 10 and sum(sizes) == sum(counts)


def test_bleu_by_length_does_not_favor_short_hypotheses():
    references = ["ba de fi go"] * 12
    systems = [_system("A", ["ba de fi"] * 12), _system("B", ["ba de fi za"] * 12)]
    (group,) = bleu_by_length(systems, _evaluation(references))
    assert group.scores[0] == 0 < group.scores[1]


def test_bleu_of_group_ignores_rare_ngram_lengths():
    references = ["ba de fi"] * 11 + ["ba de fi go"]
    assert Bleu.of_group(references, "yy").corpus_score(references, references) == pytest.approx(100)


def test_bleu_by_length_units_and_missing_sources():
    words = bleu_by_length(SYSTEMS, _evaluation(source_language=None))
    assert words == bleu_by_length(SYSTEMS, _evaluation())
    assert words == bleu_by_length(SYSTEMS, EvaluationSet(None, REFERENCES, None, "yy"))
    chinese = ["我今天早上去了学校。" * (1 + number % 3) for number in range(len(REFERENCES))]
    for language in ("zh", None):
        groups = bleu_by_length(SYSTEMS, EvaluationSet(chinese, REFERENCES, language, "yy"))
        assert [group.label for group in groups] == ["10", "20", "30"]


def test_clearest_wins_are_the_largest_chrf_differences():
    other = [line if number % 10 else "za za za" for number, line in enumerate(REFERENCES)]
    baseline, system = SYSTEMS[0].first, _system("C", other).first
    chrf = tuple(Chrf("yy").segment_scores(one.hypotheses, REFERENCES) for one in (baseline, system))
    of_baseline, of_system = clearest_wins(_evaluation(), (baseline, system), chrf, 5)
    differences = sorted(second - first for first, second in zip(*chrf, strict=True))
    assert [e.chrf[1] - e.chrf[0] for e in of_baseline] == differences[:5]
    assert [e.chrf[1] - e.chrf[0] for e in of_system] == differences[::-1][:5]
    for example in of_baseline + of_system:
        row = example.number - 1
        assert (example.source, example.hypotheses) == (REFERENCES[row], [WORSE[row], other[row]])
        assert example.chrf == Chrf("yy").segment_scores(example.hypotheses, [REFERENCES[row]] * 2)
    assert clearest_wins(_evaluation(), (baseline, baseline), (chrf[0], chrf[0]), 5) == ([], [])
