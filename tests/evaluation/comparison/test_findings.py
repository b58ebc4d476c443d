"""What is looked at, and what it cost."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mt.config import CompareConfig
from mt.evaluation import translation
from mt.evaluation.comparison.attention import MAX_MAP_BYTES, _entropies, sentences_to_show, study_attention
from mt.evaluation.comparison.command import cost_table
from mt.evaluation.comparison.findings import compare_systems
from mt.evaluation.runs import Run
from mt.evaluation.systems import EvaluationSet, Output, System, open_systems
from mt.evaluation.translation import Cost, comparable_bleu
from mt.metrics.metric import Chrf
from mt.reporting.pages import format_p
from mt.translation.translator import Translator
from tests.clock import Clock


@pytest.fixture
def systems(runs):
    return open_systems(CompareConfig(first=str(runs["transformer-1"]), second=str(runs["rnn-1"])))


def test_sentences_to_show_are_median_long_and_most_different():
    lines = ["é" * (MAX_MAP_BYTES // 20 * n // 2) for n in range(1, 21)] + [" ", "x" * (MAX_MAP_BYTES + 1)]
    differences = [0.0] * 22
    differences[3], differences[5], differences[20], differences[21] = 10.0, -30.0, 99.0, -99.0
    assert sentences_to_show(EvaluationSet(lines, lines, "xx", "yy"), differences) == [10, 19, 5]
    longer_reference = EvaluationSet(["a"] * 3, ["", "x" * (MAX_MAP_BYTES + 1), "a"], "xx", "yy")
    assert sentences_to_show(longer_reference, [0.0] * 3) == [2]
    assert sentences_to_show(EvaluationSet(["", " "], ["a", "a"], "xx", "yy"), [0.0] * 2) == []


def test_study_attention_uses_reference_and_all_rows(systems):
    evaluation, (system, _) = systems
    found = study_attention(system.first, evaluation, [4], [1, 2, 3], "cpu")
    translator = Translator.load(system.first.origin, device="cpu")
    (one,) = found.maps
    assert one.target_tokens[:-1] == translator.tokenizers.target.subwords(
        translator.tokenizers.target.encode([evaluation.references[4]])[0]
    )
    pairs = [(evaluation.sources[row], evaluation.references[row]) for row in (1, 2, 3)]
    seen = [translator.attention(*pair) for pair in pairs]
    expected = [value for layer in _entropies(seen) for value in layer.entropy]
    assert [value for layer in found.attention for value in layer.entropy] == pytest.approx(expected, rel=1e-4)


def test_comparable_bleu_requires_equal_measurement(systems):
    _, (first, second) = systems
    assert comparable_bleu([first, second], 20.0) == 20.0
    run = second.runs[0]
    training = run.config.training.model_copy(update={"valid_bleu_pairs": 3})
    for change in (
        {"config": run.config.model_copy(update={"training": training})},
        {"provenance": run.provenance | {"data": run.provenance["data"] | {"valid": {}}}},
        {"results": run.results | {"bleu_signature": "tok:char"}},
    ):
        other = replace(second, outputs=[replace(second.first, run=replace(run, **change))])
        assert comparable_bleu([first, other], 20.0) is None


def test_decoding_speeds_are_those_of_the_fastest_round(monkeypatch):
    clock = Clock()
    rounds = {"A": iter([1.0, 0.25, 0.5]), "B": iter([2.0, 2.0, 4.0])}

    class Fake:
        def __init__(self, name):
            self.name = name

        def translate(self, lines):
            if len(lines) == 8:  # all of them at once
                self.each = next(rounds[self.name])
            if len(lines) != 2:  # not what only warms it up
                clock.seconds += len(lines) * (self.each if len(lines) == 8 else 4 * self.each)

    monkeypatch.setattr(translation, "time", clock)
    monkeypatch.setattr(translation.Translator, "load", lambda folder, decoding, device, asked: Fake(folder))
    monkeypatch.setattr(translation, "ROUNDS", 3)
    outputs = [SimpleNamespace(origin=name, decoding=None, asked=None) for name in ("A", "B")]
    speeds = translation._decoding_speeds(outputs, list("abcdefgh"), "cpu")
    assert [list(each.values()) for each in speeds.values()] == [[4.0, 1.0], [0.5, 0.125]]


def test_training_costs_are_means_over_runs():
    def run(updates, minutes, tokens, reached_after):
        results = {"parameters": 7, "updates": updates, "target_tokens": tokens, "training_minutes": minutes}
        results["peak_memory_bytes"] = updates * 10
        metrics = [
            {"split": "valid", "step": 1, "bleu": bleu, "seconds": seconds, "target_tokens": seconds * 100}
            for bleu, seconds in ((None, 1), (10.0, 2), (30.0, reached_after), (40.0, 999))
        ]
        return Output(Path("x"), [], Run(Path("x"), None, results, {}, metrics))

    found = translation._training_costs(System("A", [run(10, 1.0, 600, 60), run(30, 2.0, 2400, 180)]), 30.0)
    assert Cost(**found) == Cost(7, 20, 1500, 1.5, (10 + 20) / 2, 200, 2.0, 12000)
    never = Cost(**translation._training_costs(System("A", [run(10, 1.0, 600, 60)]), 50.0))
    assert never.minutes_to_reach is never.target_tokens_to_reach is None


def test_cost_table_labels_and_formats_costs():
    cost = Cost(
        parameters=1000, updates=20, target_tokens=3000, training_minutes=4.0, target_tokens_per_second=12.5,
        peak_memory_bytes=6 * 2**20, minutes_to_reach=7.0, target_tokens_to_reach=800,
        sentences_per_second_batched=90.0, sentences_per_second_singly=10.0,
    )  # fmt: skip
    assert cost_table([cost, None], 30.2999) == {
        "parameters": ["1,000"], "updates": ["20"], "target tokens seen": ["3,000"], "minutes of training": ["4"],
        "target tokens/s in training": ["12.5"], "peak memory, MiB": ["6"],
        "minutes to validation BLEU 30.29": ["7"], "target tokens to validation BLEU 30.29": ["800"],
        "translating, sentences/s, batched": ["90"], "translating, sentences/s, one at a time": ["10"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("p", "expected"),
    [(0.03125, "≤ 0.0313"), (0.0007, "≤ 0.0007"), (0.0, "≤ 0.0001"), (0.1, "0.100"), (1.0, "1.000"), (None, "–")],
)
def test_format_p_rounds_bounds_up(p, expected):
    assert format_p(p) == expected


def test_compare_systems_subtracts_baseline_chrf(systems):
    evaluation, both = systems
    config = CompareConfig(
        first="a", second="b", timed_sentences=0, studied_sentences=0, bootstrap_samples=100, examples=2
    )
    found, maps = compare_systems(evaluation, both, config)
    first, second = (Chrf("yy").segment_scores(system.first.hypotheses, evaluation.references) for system in both)
    (contrast,) = found.verdicts
    expected = [theirs - ours for ours, theirs in zip(first, second, strict=True)]
    assert contrast.chrf_differences == pytest.approx(expected) and max(map(abs, expected)) > 1
    assert found.systems[0].cost.sentences_per_second_batched is None and maps == {}
    assert found.test_pairs_with_a_repeated_source == 0
    sources = [*evaluation.sources[:1] * 3, *evaluation.sources[3:]]
    found, _ = compare_systems(replace(evaluation, sources=sources), both, config)
    assert found.test_pairs_with_a_repeated_source == 3
