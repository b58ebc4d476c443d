"""A model that comes alone, such as a MarianMT folder, is a system like others: it translates the test set of the run
beside it, by that run's search, and what nobody knows of its training is said not to be known."""

import json
import os
import shutil

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from mt.config import CompareConfig, RobustnessConfig  # noqa: E402
from mt.core.errors import InputError  # noqa: E402
from mt.core.language import AskedDirection  # noqa: E402
from mt.evaluation.comparison.command import compare  # noqa: E402
from mt.evaluation.robustness.command import open_runs  # noqa: E402
from mt.evaluation.systems import open_systems  # noqa: E402
from mt.metrics.metric import Bleu  # noqa: E402
from mt.metrics.registry import metrics_for  # noqa: E402
from mt.storage.run_folder import read_config  # noqa: E402
from mt.training.command import train  # noqa: E402
from mt.translation.trained_model import open_model  # noqa: E402
from mt.translation.translator import Translator  # noqa: E402
from tests import toy  # noqa: E402
from tests.evaluation.comparison.conftest import LITTLE, compare_quickly  # noqa: E402
from tests.marian_folder import tuned, write_corpus, write_folder  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Recommended")


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("models") / "opus")


@pytest.fixture(scope="module")
def run(marian, tmp_path_factory):
    """A run that began with the model."""
    config = tuned(write_corpus(tmp_path_factory.mktemp("tuned")), marian, max_updates=10, weights="last", rate=0.01)
    short = config.decoding.model_copy(update={"max_length_ratio": 0.5, "max_length_extra": 2})
    config = config.model_copy(update={"decoding": short})
    train(config)
    return config.folder


def _lines(path):
    return path.read_text().splitlines()


def test_model_translates_with_search_settings_of_run(marian, run, tmp_path):
    found, page, markdown = compare_quickly(tmp_path / "o", marian, run, timed_sentences=4, studied_sentences=2)
    search = read_config(run).decoding
    sources = _lines(run / "scored/test.source")
    into = AskedDirection(target="yy")  # the only direction that both have
    hypotheses = Translator.load(marian, search, device="cpu", asked=into).translate(sources)
    own = open_model(marian).description.decoding
    # So the scores below tell by which search they came.
    assert hypotheses != Translator.load(marian, own, device="cpu", asked=into).translate(sources)
    references = _lines(run / "scored/test.reference")
    expected = [metric.corpus_score(hypotheses, references) for metric in metrics_for("yy").values()]
    (verdict,) = found["verdicts"]
    assert [test["baseline"]["score"] for test in verdict["over_sentences"]] == pytest.approx(expected)
    assert [system["name"] for system in found["systems"]] == ["opus", "tuned"]
    theirs, ours = (system["cost"] for system in found["systems"])
    assert theirs["parameters"] == ours["parameters"] and theirs["sentences_per_second_batched"] > 0
    assert theirs["updates"] is theirs["training_minutes"] is None and ours["updates"] == 10
    assert found["differing_settings"] == {}  # of what is known
    assert all(key.startswith("alignment: ") for key in found["differing_conditions"])
    (begun,) = found["fine_tuning"]
    assert begun == f"{run} began with the weights of {marian}."
    assert len(found["systems"][0]["attention"]) == len(found["systems"][1]["attention"]) > 0
    for text in (page, markdown):
        assert begun in text.replace("\\_", "_") and "only the model is known" in text
        assert "only the model is known: not the training data, the updates" in text
    assert "the same.</p>" not in page.split("<h2>Conditions</h2>")[1]


def test_runs_translate_a_given_test_set(marian, run, tmp_path):
    source, reference = (tmp_path / name for name in ("old.xx", "old.yy"))
    for path, name in ((source, "source"), (reference, "reference")):
        toy.write_lines(path, _lines(run / "scored" / f"test.{name}")[:9:-1])
    both = {"source": str(source), "references": str(reference)}
    found, *_ = compare_quickly(tmp_path / "o", run, marian, **both)
    assert found["direction"] == "xx→yy" and found["test_pairs"] == 10
    search = read_config(run).decoding
    for system, folder in zip(found["systems"], (run, marian), strict=True):
        translator = Translator.load(folder, search, device="cpu", asked=AskedDirection(target="yy"))
        hypotheses = translator.translate(_lines(source))
        expected = Bleu("yy").corpus_score(hypotheses, _lines(reference))
        assert system["scores"]["BLEU"]["mean"] == pytest.approx(expected)
    with pytest.raises(InputError, match="translates .* was not trained for any language→de"):
        compare_quickly(tmp_path / "p", run, marian, **both, target_language="de")
    with pytest.raises(InputError, match=r"^source must be set, because no run with a test set is given"):
        compare_quickly(tmp_path / "p", run, marian, references=both["references"])
    assert not (tmp_path / "p").exists()


def test_models_without_run_require_a_test_set(marian, run, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(marian, other)
    with pytest.raises(InputError, match=r"^references and source .*must be set, .*: references="):
        open_systems(CompareConfig(first=str(marian), second=str(other)))
    test_set = {"source": str(run / "scored/test.source"), "references": str(run / "scored/test.reference")}
    found, page, _ = compare_quickly(tmp_path / "o", marian, other, **test_set, target_language="yy")
    assert "the same translations" in found["verdicts"][0]["words"] and "only the model is known" in page


def test_fine_tuning_requires_equal_weights(marian, run, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(marian, other)
    tensors = load_file(other / "model.safetensors")
    tensors["final_logits_bias"] += 0.1
    save_file(tensors, other / "model.safetensors", {"format": "pt"})
    found, *_ = compare_quickly(tmp_path / "o", other, run)
    assert not found["fine_tuning"]


def test_model_folder_translates_like_its_run(runs, tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    for name in ("model.yaml", "model.safetensors", "tokenizer.model", "source_words.json"):
        if (runs["transformer-1"] / name).exists():
            shutil.copy(runs["transformer-1"] / name, alone)
    found, *_ = compare_quickly(tmp_path / "o", runs["transformer-1"], alone)
    assert (
        found["verdicts"][0]["words"] == "transformer-1 and alone give the same translations: there is nothing to test."
    )
    assert not any(key.startswith("model.") for key in found["differing_settings"])


def test_compare_with_hub_model_writes_beside_run(marian, run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mt.storage.folders.download", lambda name: marian)
    compare(CompareConfig(first=str(run), second="Them/opus-mt-xx-yy@main", **LITTLE))
    written = run.parent / "tuned-vs-opus-mt-xx-yy@main"
    assert json.loads((written / "comparison.json").read_text())["systems"][1]["outputs"] == ["Them/opus-mt-xx-yy@main"]
    assert list(tmp_path.iterdir()) == []


def test_open_runs_with_model_without_run(marian, run):
    with pytest.raises(InputError, match=r"^run=.*opus is a model without a run, .*; add second=RUN"):
        open_runs(RobustnessConfig(run=str(marian)))
    evaluation, systems = open_runs(RobustnessConfig(run=str(marian), second=str(run)))
    names = [system.name for system in systems]
    assert len(evaluation.references) == 20 and names == ["opus", "tuned"]
