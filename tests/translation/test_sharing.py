"""Translation by several workers, which has to give the results of one."""

from functools import partial

import pytest
import torch

from mt.config.decoding import DecodingChoice
from mt.core.errors import InputError
from mt.distributed.launch import local_workers
from mt.distributed.workers import Workers, worker_group
from mt.storage.model_description import ConfidenceConfig
from mt.translation.results import Statistics
from mt.translation.translator import Translator, run_with_workers
from tests import toy

LINES = [
    "ba de fi", "", "de https://example.org/7 ba 12,50", "fi ba", "fi ba", "  ", "ba " * 70, "gu ha de ba fi", "x",
    "<b>ba</b> fi", "de de de", "ba fi gu ha ba",
]  # fmt: skip
REFERENCES = ["fi de ba", "x", "ba", "", *["ba de"] * 8]
FITTED = ConfidenceConfig(intercept=2, score=1, agreement=1, length_ratio=1, token_length=1, repaired=1)
SETTINGS = [
    DecodingChoice(beam_size=3, n_best=3),
    DecodingChoice(method="sample", seed=5),
    DecodingChoice(markup="html"),
]


def _load(run, workers=None):
    translators = [Translator.load(run, settings, "cpu", workers=workers) for settings in SETTINGS]
    translators[0].confidence.fitted = FITTED
    return translators


def _translate(several, results):
    results["n-best, aligned"] = several.hypotheses(LINES, range(100, 112), aligned=True)
    results["forced"] = several.score(LINES, REFERENCES, aligned=True)
    results["one line"] = several.hypotheses([toy.line("ba de")])
    results["confident"] = several.hypotheses([toy.line(line, confident=True) for line in LINES])
    results["no line"] = several.hypotheses([])


def _sample(sampled, results):
    results["sampled"] = sampled.hypotheses(LINES, range(7, 19))
    results["sampled, other numbers"] = sampled.hypotheses(LINES[::-1])


def _translate_markup(marked, results):
    results["in pieces"] = marked.hypotheses(["<p>ba de</p><p>fi 12</p>", "ba <i>de</i>"])


WORK = _translate, _sample, _translate_markup
"""What the main process does with the translator of each of SETTINGS."""


def _work(run, results, info):
    torch.set_num_threads(1)  # as in conftest.py
    with worker_group(torch.device("cpu"), info) as workers:
        translators = _load(run, workers)
        for translator, work in zip(translators, WORK, strict=True):
            run_with_workers(workers, translator, partial(work, translator, results))
        results["counts"] = [translator.statistics for translator in translators]


def _texts_and_scores(translations):
    """Return the translations without their scores, and the scores, whose last bits depend on the batch."""
    texts = [text for line in translations for text in (line if isinstance(line, list) else [line])]
    scores = [value or 0.0 for text in texts for value in (text.score, text.confidence)]
    return [
        (text.text, text.alignment, text.is_source, text.score is None, text.confidence is None) for text in texts
    ], scores


@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_several_workers_give_translations_of_one(shared_runs, size):
    run = shared_runs["transformer-1"]
    alone, together = {}, {}
    translators = _load(run)
    for translator, work in zip(translators, WORK, strict=True):
        work(translator, alone)
    with local_workers(size, partial(_work, run, {})) as info:
        _work(run, together, info)
    assert together.pop("counts") == [translator.statistics for translator in translators]
    assert translators[0].statistics.items and translators[0].statistics.repaired_items
    assert together.keys() == alone.keys()
    for name, translations in alone.items():
        texts, scores = _texts_and_scores(translations)
        texts_together, scores_together = _texts_and_scores(together[name])
        assert texts_together == texts, name
        assert scores_together == pytest.approx(scores, abs=1e-5), name


def test_statistics_add_sums_counts_and_keeps_first_lines():
    counts = Statistics(items=2, loops=1, first_long_line=9, first_corrections={"a": "b"})
    counts.add(Statistics(items=3, first_long_line=4, first_split_line=8, first_corrections={"c": "d"}))
    assert counts == Statistics(
        items=5, loops=1, first_long_line=4, first_split_line=8, first_corrections={"a": "b", "c": "d"}
    )


def test_worker_with_other_settings_is_rejected(shared_runs, monkeypatch):
    workers = Workers(torch.device("cpu"))
    monkeypatch.setattr(workers, "size", 2)
    monkeypatch.setattr(workers, "gather", lambda own: [*own, "those of another command"])
    with pytest.raises(InputError, match="the machines have different settings or models"):
        Translator.load(shared_runs["transformer-1"], device="cpu", workers=workers)
