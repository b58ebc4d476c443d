"""``import mt``: what the package offers, and what importing it must not cost."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import mt
from mt.translation.translator import Translator


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
    with pytest.raises(mt.InputError, match="n_best=0: .*; beamsize=3: .*nearest: beam_size"):
        mt.load("runs/none", n_best=0, beamsize=3)
