"""``import mt``: what the package offers, and what importing it must not cost."""

import subprocess
import sys
from importlib.metadata import version

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


def test_all_wrong_decoding_settings_are_named_at_once():
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
