"""Which settings of the base model a fine-tuned run takes over, and which stay its own."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from mt.config import TransformerConfig
from mt.config.resolved import Resolved
from mt.training.fine_tuning import inheritance
from tests import toy


@pytest.mark.parametrize("width", [TransformerConfig(architecture="transformer").width, 64])
@pytest.mark.parametrize(("typed", "expected"), [({}, 0.1), ({"dropout": 0.25}, 0.25)])
def test_dropout_is_never_inherited(monkeypatch, tmp_path, width, typed, expected):
    base = TransformerConfig(architecture="transformer", width=width, dropout=0.3)
    monkeypatch.setattr(inheritance, "read_description", lambda path: SimpleNamespace(model=base))
    own = TransformerConfig(architecture="transformer", **typed)
    resolved = Resolved.of(toy.config(tmp_path).model_copy(update={"model": own}))
    tuned = inheritance.inherit_model(Path("base"), resolved)
    assert (tuned.config.model.width, tuned.config.model.dropout) == (width, expected)
    assert tuned.is_given("model.dropout") == bool(typed)
