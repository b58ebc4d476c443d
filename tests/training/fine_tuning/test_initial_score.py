"""A fine-tuned run tells what its initial weights score on its test set."""

import shutil

import pytest

from mt.core.json_file import read_json
from mt.metrics.bleu import Bleu
from mt.storage.run_folder import read_scored
from mt.training.command import train
from mt.translation.translator import Translator
from tests import toy


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


def results(config):
    return read_json(config.folder / "results.json")


def test_both_scores_are_those_of_the_weights_on_the_runs_own_test_set(runs):
    base, tuned = runs
    lines = read_scored(tuned.folder)
    expected = Bleu("yy").corpus_score(Translator.load(str(base.folder)).translate(lines["source"]), lines["reference"])
    before, after = results(tuned)["initial_bleu"], results(tuned)["bleu"]
    assert before == pytest.approx(expected) and after > before + 20
    assert Translator.load(str(tuned.folder)).translate(lines["source"]) == lines["hypothesis"]
    assert results(base)["initial_bleu"] is None


def test_what_the_run_began_from_may_have_gone_or_changed(runs, tmp_path, caplog):
    base, tuned = runs
    shutil.copytree(base.folder, tmp_path / "kept")
    shutil.copytree(tuned.folder, tmp_path / "runs/tuned")

    def initial_bleu_after(updates):
        longer = tuned.training.model_copy(update={"max_updates": updates})
        config = tuned.model_copy(update={"runs": str(tmp_path / "runs"), "training": longer})
        train(config)
        return results(config)["initial_bleu"]

    try:
        shutil.copy(tuned.folder / "model.safetensors", base.folder / "model.safetensors")
        assert initial_bleu_after(101) is None
        assert "weights changed since this run began; restore them" in caplog.text
        shutil.rmtree(base.folder)
        assert initial_bleu_after(102) is None
    finally:
        shutil.rmtree(base.folder, ignore_errors=True)
        shutil.copytree(tmp_path / "kept", base.folder)
