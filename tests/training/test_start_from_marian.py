"""Tests of fine-tuning a MarianMT model: settings, resuming, provenance and export to transformers."""

import json
import os
import signal

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file  # noqa: E402

from mt.cli.composition import compose_job  # noqa: E402
from mt.config import ExportConfig, TrainConfig  # noqa: E402
from mt.config.resolved import Resolved  # noqa: E402
from mt.core.errors import InputError, Interrupted  # noqa: E402
from mt.data.batching.batch import collate  # noqa: E402
from mt.export.hugging_face import export_hugging_face  # noqa: E402
from mt.storage.run_folder import read_config  # noqa: E402
from mt.storage.validation import read_json  # noqa: E402
from mt.storage.weights import checksum, weights_of  # noqa: E402
from mt.tokenizer.tokenizer import PAD  # noqa: E402
from mt.training.command import train  # noqa: E402
from mt.training.run_state import run_state  # noqa: E402
from mt.training.trainer import Trainer  # noqa: E402
from mt.translation.trained_model import open_model  # noqa: E402
from tests.marian_folder import LAYOUTS, sentences, tuned, write_corpus, write_folder  # noqa: E402
from tests.training.runs import has_weights_of, read_validations, train_until  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Recommended")
LINES = sentences("source", 30, seed=9)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("start") / "3f2a")


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path)


def test_marian_fine_tuning_resumes_bitwise(corpus, start):
    whole, broken = (tuned(corpus, start, name) for name in ("whole", "broken"))
    train(whole)
    train_until(broken, 13)
    train(broken)
    assert has_weights_of(whole, broken)
    assert [line["step"] for line in read_validations(whole.folder)] == [0, 10, 20]
    recorded = read_config(whole.folder)
    assert (recorded.model.width, recorded.model.activation, recorded.model.output_bias) == (32, "silu", True)
    assert recorded.training.optimizer.learning_rate == 1e-3 and not recorded.text.enabled
    assert read_json(whole.folder / "provenance.json")["initial_weights"] == checksum(
        weights_of(open_model(start).model)
    )


def test_marian_fine_tuning_refuses_given_preset(corpus, start):
    """Not even the one that is as large as what is taken where none is typed."""
    asks_for_none, asks_for_it = (
        compose_job("train", TrainConfig, words).config.model for words in ([], ["model=transformer_small"])
    )
    assert asks_for_none == asks_for_it
    with pytest.raises(InputError, match=r"^model\.width=192 .*: the model is that of training\.init_from=.*; omit"):
        run_state(Resolved.of(tuned(corpus, start, model=asks_for_it)))
    assert run_state(Resolved.of(tuned(corpus, start, model=asks_for_none))).resolved.config.model.width == 32
    some = asks_for_none.model_copy(update={"width": 32, "heads": 4})
    assert run_state(Resolved.of(tuned(corpus, start, model=some))).resolved.config.model.activation == "silu"


def test_provenance_records_hub_model_and_commit(corpus, start, tmp_path, monkeypatch):
    """With its commit, also by a run that begins with such a run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mt.storage.folders.download", lambda name: start)
    first = tuned(corpus, "Them/opus-mt-xx-yy@main", "first", max_updates=10)
    second = tuned(corpus, first.folder, "second", max_updates=10)
    for run in (first, second):
        train(run)
        assert read_json(run.folder / "provenance.json")["base_model"] == f"Them/opus-mt-xx-yy@{start.name}"
    third = tuned(corpus, start, "third", max_updates=10)
    train(third)
    assert read_json(third.folder / "provenance.json")["base_model"] is None


@pytest.mark.parametrize("layout", [LAYOUTS[0], LAYOUTS[4]], ids=lambda layout: layout.name)
def test_fine_tuned_marian_model_exports_to_transformers(corpus, tmp_path, layout):
    start = write_folder(tmp_path / "start", layout)
    run = tuned(corpus, start, weights="last")
    train(run)
    export_hugging_face(ExportConfig(format="hugging_face", run=str(run.folder), output=str(tmp_path / "out")))
    model, info = transformers.MarianMTModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "out")
    assert not any(info.values()), info
    trained = open_model(run.folder)
    targets = sentences("target", len(LINES), seed=9)
    pairs = collate(trained.tokenizers.source.encode(LINES), trained.tokenizers.target.encode(targets))
    with torch.inference_mode():
        ours = trained.model.project(trained.model.decode(trained.model.encode(pairs.source), pairs.target_input))
        theirs = model.eval()(**tokenizer(LINES, text_target=targets, return_tensors="pt", padding=True)).logits
    written = pairs.target_output != PAD
    assert torch.allclose(ours[written], theirs[..., trained.tokenizers.target.vocabulary.order][written], atol=1e-4)
    before, after = load_file(start / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert not all(torch.equal(before[name], after[name]) for name in after), "nothing was learned"
    numbers = [json.loads((place / "vocab.json").read_text()) for place in (start, tmp_path / "out")]
    assert numbers[0] == numbers[1]


def test_base_model_is_final_if_never_improved(corpus, start, caplog):
    caplog.set_level("INFO")
    run = tuned(corpus, start, rate=5.0, metric="loss")
    train(run)
    results = read_json(run.folder / "results.json")
    assert results["best_update"] == 0 and results["updates"] == 20
    assert checksum(weights_of(open_model(run.folder).model)) == checksum(weights_of(open_model(start).model))
    assert "the final weights are the initial ones" in caplog.text
    assert results["initial_bleu"] == results["bleu"]


def test_resume_before_first_update(corpus, start, monkeypatch):
    whole, broken = (tuned(corpus, start, name, max_updates=10) for name in ("whole", "broken"))
    train(whole)
    validate = Trainer._validate

    def stopping(self):
        monkeypatch.setattr(Trainer, "_validate", validate)
        os.kill(os.getpid(), signal.SIGTERM)
        validate(self)

    monkeypatch.setattr(Trainer, "_validate", stopping)
    with pytest.raises(Interrupted):
        train(broken)
    assert [path.name for path in (broken.folder / "checkpoints").iterdir()] == ["step_0"]
    train(broken)
    assert has_weights_of(whole, broken)
