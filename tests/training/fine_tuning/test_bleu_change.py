"""What fine-tuning gained and forgot is told, with the scores that both weights really have."""

import json
import shutil

import pytest

from mt.core.errors import InputError
from mt.core.json_file import read_json, write_json
from mt.metrics.bleu import Bleu
from mt.storage.run_folder import read_scored
from mt.training.command import train
from mt.training.delivery import show_results
from mt.training.fine_tuning import bleu_change
from mt.training.fine_tuning.bleu_change import EARLIER, OWN, BleuChange, advice_on_changes
from mt.translation.translator import Translator
from tests import toy


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that has learnt to copy, and one that began from it and has learnt to reverse."""
    folders = [tmp_path_factory.mktemp(task) for task in ("copy", "reverse")]
    for folder in folders:
        toy.write_corpus(folder, folder.name.rstrip("0123456789"))
    base = toy.config(folders[0], "base", training={"max_updates": 400, "validate_every": 200})
    train(base)
    tuned = toy.config(
        folders[1], "tuned", training={"max_updates": 400, "validate_every": 200, "init_from": str(base.folder)}
    )
    train(tuned)
    return base, tuned


def results(config):
    return read_json(config.folder / "results.json")


def bleu(run, lines):
    return Bleu("yy").corpus_score(Translator.load(str(run)).translate(lines["source"]), lines["reference"])


def test_scores_are_those_of_both_weights_on_both_test_sets(runs):
    base, tuned = runs
    changes = {name: BleuChange(**one) for name, one in results(tuned)["fine_tuning"].items()}
    assert list(changes) == [OWN, EARLIER]
    for change, run in ((changes[OWN], tuned), (changes[EARLIER], base)):
        lines = read_scored(run.folder)
        assert change.pairs == 40
        assert change.before == pytest.approx(bleu(base.folder, lines))
        assert change.after == pytest.approx(bleu(tuned.folder, lines))
        assert min(change.low, change.high) <= change.after - change.before <= max(change.low, change.high)
    assert changes[OWN].after == pytest.approx(results(tuned)["bleu"])
    assert changes[EARLIER].before == pytest.approx(results(base)["bleu"])
    assert changes[OWN].after > changes[OWN].before + 20 and changes[OWN].p < 0.01 and changes[OWN].low > 0
    assert changes[EARLIER].after < changes[EARLIER].before - 20 and changes[EARLIER].high < 0
    assert results(base)["fine_tuning"] == {}


def test_the_results_tell_what_was_gained_and_forgotten(runs, caplog):
    _, tuned = runs
    caplog.set_level("INFO")
    show_results(tuned.folder)
    shown = results(tuned)["fine_tuning"][EARLIER]
    assert f"… {EARLIER}" in caplog.text and f"{shown['before']:.2f} to {shown['after']:.2f} BLEU on 40" in caplog.text
    assert "fine-tuning forgot" in caplog.text and "did not improve BLEU" not in caplog.text


def test_the_weights_that_are_delivered_are_there_in_the_end(runs):
    _, tuned = runs
    hypotheses = Translator.load(str(tuned.folder)).translate(read_scored(tuned.folder)["source"])
    assert hypotheses == read_scored(tuned.folder)["hypothesis"]


def finished_again(tuned, tmp_path, **changes):
    """The run's delivery anew: it goes on for one update."""
    runs = tmp_path / "runs"
    runs.mkdir()
    shutil.copytree(tuned.folder, runs / "tuned")
    longer = tuned.training.model_copy(update={"max_updates": 401})
    train(tuned.model_copy(update={"runs": str(runs), "training": longer}))
    return json.loads((runs / "tuned/results.json").read_text())["fine_tuning"]


def test_what_the_run_began_from_may_have_gone_or_changed(runs, tmp_path, caplog):
    base, tuned = runs
    kept = tmp_path / "kept"
    shutil.copytree(base.folder, kept)
    try:
        shutil.rmtree(base.folder / "scored")
        (tmp_path / "a").mkdir()
        assert list(finished_again(tuned, tmp_path / "a")) == [OWN]
        shutil.copy(tuned.folder / "model.safetensors", base.folder / "model.safetensors")
        (tmp_path / "b").mkdir()
        assert finished_again(tuned, tmp_path / "b") == {}
        assert "weights changed since this run began; restore them" in caplog.text
        shutil.rmtree(base.folder)
        (tmp_path / "c").mkdir()
        assert finished_again(tuned, tmp_path / "c") == {}
    finally:
        shutil.rmtree(base.folder, ignore_errors=True)
        shutil.copytree(kept, base.folder)


def test_a_test_set_of_another_direction_is_left_out(runs, tmp_path):
    base, tuned = runs
    theirs = base.folder / "model.yaml"
    before = theirs.read_bytes()
    theirs.write_bytes(before.replace(b"target_language: yy", b"target_language: zz"))
    try:
        assert list(finished_again(tuned, tmp_path)) == [OWN]
    finally:
        theirs.write_bytes(before)


def test_few_sentences_of_a_large_test_set_are_translated_again(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(bleu_change, "MAX_TEST_SENTENCES", 7)
    changes = finished_again(runs[1], tmp_path)
    assert {one["pairs"] for one in changes.values()} == {7}


@pytest.mark.parametrize(
    "damaged", [[1], {"x": 1}, {OWN: {"pairs": 1}}, {OWN: dict.fromkeys(BleuChange.__annotations__)}]
)
def test_damaged_results_are_named(runs, tmp_path, damaged):
    shutil.copytree(runs[1].folder, tmp_path / "run")
    write_json(tmp_path / "run/results.json", results(runs[1]) | {"fine_tuning": damaged})
    with pytest.raises(InputError, match=r"results\.json: damaged.*fine_tuning"):
        show_results(tmp_path / "run")


def change(before, after, p):
    return BleuChange(100, before, after, after - before - 1, after - before + 1, p)


@pytest.mark.parametrize(
    ("own", "earlier", "told"),
    [
        ((20, 30, 0.01), (30, 29, 0.3), []),
        ((20, 30, 0.01), (30, 31, 0.01), []),
        ((20, 20.5, 0.3), (30, 20, 0.01), ["did not improve", "forgot"]),
        ((30, 20, 0.01), None, ["did not improve"]),
    ],
)
def test_advice(own, earlier, told):
    changes = {OWN: change(*own)} | ({EARLIER: change(*earlier)} if earlier else {})
    found = list(advice_on_changes(changes))
    assert len(found) == len(told) and all(word in one for word, one in zip(told, found, strict=True))
