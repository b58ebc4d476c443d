"""Which settings of the base model a fine-tuned run takes over, and which stay its own."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from mt.config import TransformerConfig
from mt.config.resolved import Resolved
from mt.storage.folders import read_description
from mt.storage.native import write_description
from mt.training.fine_tuning import inheritance
from tests import toy


@pytest.mark.parametrize(
    ("base", "run", "warned"),
    [
        (("en", "fr"), ("fr", "en"), True), (("eng", "fr_CA"), ("fr", "en_GB"), True),
        (("en", "fr"), ("en", "fr"), False), (("en", "fr"), ("fr", "de"), False), (("en", "en"), ("en", "en"), False),
    ],
)  # fmt: skip
def test_a_base_of_the_opposite_direction_is_warned_of(shared_runs, tmp_path, caplog, base, run, warned):
    folder = toy.copy_to_change(shared_runs["transformer-1"], tmp_path / "base")
    description = read_description(folder)
    languages = [dict(zip(("source_language", "target_language"), codes, strict=True)) for codes in (base, run)]
    write_description(folder, description.model_copy(update=languages[0]))
    config = toy.config(tmp_path, data=languages[1], training={"init_from": str(folder)})
    inheritance.inherit_from_base(folder, Resolved.of(config))
    assert ("in the opposite direction" in caplog.text) == warned


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
