"""Tests of the final outputs: results of a finished run, corrupted results, and scores before fine-tuning."""

import logging
import shutil
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from mt.config import TrainingConfig
from mt.core.errors import InputError
from mt.metrics.metric import Bleu
from mt.metrics.registry import METRICS
from mt.storage.run_folder import RESULTS, WEIGHTS, Results, read_scored
from mt.storage.validation import is_number, sealed, sha256
from mt.training.command import train
from mt.training.final_outputs import CONFIDENCE, initial_bleu, show_results, write_weights
from mt.training.initial_weights import WeightInterpolation
from mt.translation.translator import Translator
from tests import toy
from tests.training.runs import ALONE, read_results


def _results(**changes):
    known = dict.fromkeys([*Results.model_fields, *METRICS], 12) | {f"{key}_signature": "signature" for key in METRICS}
    return known | {CONFIDENCE: None} | changes


def _show(folder, **changes):
    (folder / RESULTS).write_text(sealed(_results(**changes)))
    show_results(folder)


def test_show_results_omits_unrecorded_metric(tmp_path, caplog):
    results = _results(bleu=33.456)
    del results["ter"], results["ter_signature"]
    (tmp_path / RESULTS).write_text(sealed(results))
    with caplog.at_level(logging.INFO):
        show_results(tmp_path)
    assert "test BLEU" in caplog.text and "33.46" in caplog.text and "test TER" not in caplog.text


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter", "parameters", "best_update", "training_minutes"])
@pytest.mark.parametrize("value", [None, 10**400, "33", True, [1], float("nan"), float("inf")])
def test_show_results_refuses_invalid_numbers(tmp_path, name, value):
    with pytest.raises(InputError, match=rf"{RESULTS}: corrupted, .*\(wrong or missing: {name}\); restore"):
        _show(tmp_path, **{name: value})


@pytest.mark.parametrize(
    "figures", [3, {}, {"pairs": 9, "calibration_error": 0.03, "roc_area": "0.8", "score_roc_area": None}]
)
def test_show_results_refuses_malformed_confidence(tmp_path, figures):
    with pytest.raises(InputError, match="wrong or missing: confidence"):
        _show(tmp_path, confidence=figures)


def test_show_results_shows_or_refuses_initial_bleu(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        _show(tmp_path, bleu=30.5, initial_bleu=29.25)
    assert "… before fine-tuning  29.25" in caplog.text
    with pytest.raises(InputError, match="wrong or missing: initial_bleu"):
        _show(tmp_path, initial_bleu="many")


def test_show_results_refuses_huge_number(tmp_path):
    text = sealed(_results()).rpartition(',\n  "sha256"')[0].replace("12", "9" * 5000, 1)
    (tmp_path / RESULTS).write_text(f'{text},\n  "sha256": "{sha256(text)}"\n}}\n')
    with pytest.raises(InputError, match=f"{RESULTS}: corrupted, or written by another version"):
        show_results(tmp_path)


def test_is_number_needs_finite_number():
    assert all(map(is_number, (0, -3, 1.5, 2**63)))
    assert not any(map(is_number, (None, True, "1", [], float("nan"), float("-inf"), 10**400, -(10**400))))


def test_write_weights_without_averaging(tmp_path):
    model = torch.nn.Linear(2, 3)
    for weights in ("last", "best"):  # the best ones are there already
        config = SimpleNamespace(folder=tmp_path, training=TrainingConfig(weights=weights))
        assert write_weights(config, model, WeightInterpolation({}, 0.0), {}) == 0
        assert torch.equal(load_file(tmp_path / WEIGHTS)["weight"], model.weight)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that has begun to copy, and one that started from its weights and has begun to reverse."""
    folders = [tmp_path_factory.mktemp(task) for task in ("copy", "reverse")]
    for folder in folders:
        toy.write_corpus(folder, folder.name.rstrip("0123456789"), train=1000, longest=4)
    training = {"max_updates": 100, "validate_every": 100, "optimizer": {"kind": "adamw", "learning_rate": 1e-2}}
    base = toy.config(folders[0], "base", training=training | {"max_updates": 60})
    train(base)
    tuned = toy.config(folders[1], "tuned", training=training | {"init_from": str(base.folder)})
    train(tuned)
    return base, tuned


def test_initial_bleu_is_base_model_score_on_test_set(runs):
    base, tuned = runs
    lines = read_scored(tuned.folder)
    expected = Bleu("yy").corpus_score(Translator.load(str(base.folder)).translate(lines["source"]), lines["reference"])
    before, after = read_results(tuned)["initial_bleu"], read_results(tuned)["bleu"]
    assert before == pytest.approx(expected) and after > before + 20
    assert read_results(base)["initial_bleu"] is None
    translator = Translator.load(str(tuned.folder))
    assert initial_bleu(tuned, translator, lines["source"], lines["reference"], ALONE) == pytest.approx(expected)
    assert translator.translate(lines["source"]) == lines["hypothesis"]  # the weights of the run are back


def test_initial_bleu_needs_unchanged_base_model(runs, tmp_path, caplog):
    base, tuned = runs
    shutil.copytree(base.folder, tmp_path / "kept")
    shutil.copytree(tuned.folder, tmp_path / "runs/tuned")

    def initial_bleu_after(updates):
        longer = tuned.training.model_copy(update={"max_updates": updates})
        config = tuned.model_copy(update={"runs": str(tmp_path / "runs"), "training": longer})
        train(config)
        return read_results(config)["initial_bleu"]

    try:
        shutil.copy(tuned.folder / "model.safetensors", base.folder / "model.safetensors")
        assert initial_bleu_after(101) is None
        assert "weights changed since this run began; restore them" in caplog.text
        shutil.rmtree(base.folder)
        assert initial_bleu_after(102) is None
    finally:
        shutil.rmtree(base.folder, ignore_errors=True)
        shutil.copytree(tmp_path / "kept", base.folder)
