"""Tests of fitting and evaluating the quality estimation at the end of a run."""

import logging

import datasets
import pytest

from mt.config import KeptConfig
from mt.storage.folders import read_description
from mt.storage.model_description import ConfidenceConfig
from mt.training.command import train
from mt.training.final_outputs import fit_confidence, measure_confidence
from mt.translation.translator import Translator
from tests import toy
from tests.training.runs import ALONE, read_results, train_until

FITTED = ConfidenceConfig(**dict.fromkeys(ConfidenceConfig.model_fields, 0.0))


def copied(lines):
    return datasets.Dataset.from_dict({"source": lines, "target": lines})


def config(folder, valid=200, **training):
    """A run that learns to copy short sentences, but not long ones. No test pair is for training."""
    lines = toy.sentences(700, seed=1)
    for split, part in (("train", lines[300:]), ("valid", lines[:valid]), ("test", lines[200:300])):
        for suffix in ("xx", "yy"):
            (folder / f"{split}.{suffix}").write_text("".join(f"{line}\n" for line in part))
    return toy.config(folder, training={"max_updates": 160, "validate_every": 160, **training})


def test_resumed_run_fits_and_evaluates_confidence(tmp_path):
    settings = config(tmp_path)
    train_until(settings, 100)
    assert read_description(settings.folder).confidence is None
    train(settings)
    fitted = read_description(settings.folder).confidence
    assert isinstance(fitted, ConfidenceConfig) and fitted.score > 0
    figures = read_results(settings)["confidence"]
    assert figures["pairs"] == 100 and 0 < figures["calibration_error"] < 0.3
    assert 0.5 < figures["roc_area"] <= 1 and 0.5 < figures["score_roc_area"] <= 1
    ((best,),) = Translator.load(settings.folder).hypotheses(["ba de fi"], confident=True)
    assert 0 <= best.confidence <= 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"valid": 99}, "confidence: not fitted, because the validation set has fewer than 100 pairs"),
        ({}, "200 have less; 10 of each are needed"),
    ],
    ids=["few pairs", "all bad"],
)
def test_confidence_is_not_fitted_without_enough_examples(tmp_path, caplog, changes, message):
    caplog.set_level(logging.INFO)
    settings = config(tmp_path, **changes, max_updates=6, validate_every=6)
    train(settings)
    assert read_description(settings.folder).confidence is None and read_results(settings)["confidence"] is None
    assert message in caplog.text


def test_confidence_skips_untranslated_lines(shared_runs):
    translator = Translator.load(shared_runs["transformer-1"])
    pairs = copied(["12"] * 100)
    assert fit_confidence([(translator, pairs)], ALONE) is None
    translator.confidence.fitted = FITTED
    assert measure_confidence([(translator, pairs)], ALONE) is None


def test_measure_confidence_skips_inserted_terms(shared_runs, tmp_path):
    (tmp_path / "terms.tsv").write_text("ba\tzuzu\n")
    kept = KeptConfig(terms=str(tmp_path / "terms.tsv"))
    translator = Translator.load(shared_runs["transformer-1"], kept=kept)
    translator.confidence.fitted = FITTED
    assert measure_confidence([(translator, copied(["ba de", "de fi", "fi ba go"]))], ALONE)["pairs"] == 1


def test_measure_confidence_samples_large_test_set(shared_runs, monkeypatch):
    monkeypatch.setattr("mt.training.final_outputs.MAX_CONFIDENCE_PAIRS", 5)
    translator = Translator.load(shared_runs["transformer-1"])
    translator.confidence.fitted = FITTED
    assert measure_confidence([(translator, copied(toy.sentences(8, seed=2)))], ALONE)["pairs"] == 5
