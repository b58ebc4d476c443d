"""A model's shapes without its weights."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from mt.models.build import build_model, build_shapes
from tests import toy
from tests.processes import PROJECT


@pytest.mark.parametrize(
    ("architecture", "changes"),
    [("transformer", {}), ("transformer", {"positions": "learned"}), ("transformer", {"norm": "post"}), ("rnn", {})],
)
def test_shapes_are_those_of_the_model(tmp_path, architecture, changes):
    config = toy.config(tmp_path, architecture=architecture, model=changes).model
    source, target = SimpleNamespace(vocabulary_size=50), SimpleNamespace(vocabulary_size=40)
    tokenizers = SimpleNamespace(source=source, target=target, joint=False)
    random_state = torch.get_rng_state()
    shapes = build_shapes(config, tokenizers)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(parameter.is_meta for parameter in shapes.parameters())
    model = build_model(config, tokenizers)
    assert shapes.parameter_count == model.parameter_count
    described, expected = shapes.state_dict(), model.state_dict()
    assert {name: (weight.shape, weight.dtype) for name, weight in described.items()} == {
        name: (weight.shape, weight.dtype) for name, weight in expected.items()
    }


def test_translating_imports_neither_the_compiler_nor_what_reads_corpora():
    """Each takes longer to import than to read a small model and translate with it."""
    runs = [str(PROJECT / "tests/releases/1.0.0" / name) for name in ("transformer", "rnn")]
    script = (
        "import sys\nfrom mt.translation.translator import Translator\n"
        f"for run in {runs!r}:\n    Translator.load(run).translate(['ba de fi'])\n"
        "    assert not {'torch._dynamo', 'datasets'} & sys.modules.keys(), run"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
