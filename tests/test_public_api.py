"""``import mt``: what the package offers, and what importing it must not cost."""

import json
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

import mt
from mt.storage.run_folder import read_results
from mt.translation.translator import Translator
from tests import toy
from tests.training.runs import read_lines


def test_importing_the_package_loads_no_large_library():
    program = "import sys, mt; print({'torch', 'numpy', 'pydantic', 'huggingface_hub'} & sys.modules.keys())"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"


def test_all_names_exist():
    assert dir(mt) == sorted(mt.__all__)
    assert all(hasattr(mt, name) for name in mt.__all__)
    assert mt.Translator is Translator
    assert mt.__version__ == version("mt-trainer")
    with pytest.raises(AttributeError, match="Translater"):
        _ = mt.Translater


def test_load_reports_all_wrong_decoding_settings():
    with pytest.raises(mt.InputError, match=r"n_best=0: .*; beamsize=3: .*did you mean beam_size\?"):
        mt.load("runs/none", n_best=0, beamsize=3)


class PlottingError(Exception):
    pass


def test_training_calls_back_after_each_validation_and_returns_the_results(tmp_path):
    toy.write_corpus(tmp_path, "copy", train=300)
    words = toy.words(toy.config(tmp_path, training={"threads": 1}))
    calls = []

    def fail_at_first(update, scores):
        calls.append((update, scores))
        if update == 10:
            raise PlottingError

    with pytest.raises(PlottingError):
        mt.train(words, on_validation=fail_at_first)
    results = mt.train(words, on_validation=fail_at_first)
    run = tmp_path / "runs" / "toy"
    lines = [line for line in read_lines(run) if line["split"] == "valid"]
    assert calls == [(line["step"], {key: line[key] for key in ("loss", "bleu", "chrf")}) for line in lines]
    assert [update for update, _ in calls] == [10, 20]
    assert results.model_dump() | {"confidence": None} == read_results(run)
    assert mt.train(words, on_validation=fail_at_first) == results and len(calls) == 2


LINES = ["ba de fi go ku", "la mo"]


@pytest.fixture(scope="module", params=["transformer", "rnn"])
def batch(request, shared_runs):
    """The attention of a batch of two lines, the second of which is padded."""
    return mt.load(shared_runs[f"{request.param}-1"]).batch_attention(LINES, ["ku go fi de ba", "mo la"])


def test_attention_arrays_have_a_row_per_query_that_sums_to_one(batch):
    for attention in batch:
        for module in attention.arrays().values():
            assert module.weights.shape[1:] == (len(module.queries), len(module.keys))
            assert module.weights.sum(axis=-1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("run", "heads"),
    [
        (
            "transformer-1",
            {
                f"{name}_attention": 2
                for name in ("encoder.layers.0.self", "decoder.layers.0.self", "decoder.layers.0.cross")
            },
        ),
        ("rnn-1", {"decoder.cross_attention": 1}),
    ],
)
def test_attention_arrays_have_all_modules_and_heads(shared_runs, run, heads):
    arrays = mt.load(shared_runs[run]).attention("ba de").arrays()
    assert {name: len(module.weights) for name, module in arrays.items()} == heads


def test_batch_attention_masks_padding(batch):
    (cross,) = (module for name, module in batch[1].arrays().items() if name.endswith("cross_attention"))
    is_padding = [token == "<pad>" for token in cross.keys]
    assert is_padding == sorted(is_padding) and cross.keys[is_padding.index(True) - 1] == "</s>"
    assert (cross.mask == ~np.array(is_padding)).all()
    assert (cross.weights[..., is_padding] == 0).all()


def test_decoder_self_attention_reads_the_tokens_before_each_query(shared_runs):
    attention = mt.load(shared_runs["transformer-1"]).attention("ba de", "de ba")
    module = attention.arrays()["decoder.layers.0.self_attention"]
    assert module.keys == ["<s>", *module.queries[:-1]] and module.queries[-1] == "</s>"
    assert (module.mask == np.tri(len(module.keys))).all()


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_learning_curve_equals_the_metrics_file(shared_runs, split):
    run = shared_runs["transformer-1"]
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert mt.learning_curve(run, split) == [record for record in records if record["split"] == split]


def test_compare_returns_the_results_and_writes_the_report(shared_runs, tmp_path):
    runs = shared_runs["transformer-1"], shared_runs["rnn-1"]
    quick = ["studied_sentences=0", "timed_sentences=0", "randomization_trials=200", "bootstrap_samples=100"]
    (findings,) = mt.compare([f"first={runs[0]}", f"second={runs[1]}", f"output={tmp_path}", *quick])
    assert [system.scores["BLEU"].mean for system in findings.systems] == [
        pytest.approx(read_results(run)["bleu"]) for run in runs
    ]
    assert findings.verdicts[0].system == "rnn-1" and (tmp_path / "report.html").is_file()
    with pytest.raises(mt.InputError, match="sedond"):
        mt.compare(["first=a", "sedond=b"])
