"""A resolved config knows the origin of each value, and deriving another one checks all of its values."""

import pytest

from mt.config import TrainConfig
from mt.config.resolved import Resolved
from mt.core.errors import InputError

DATA = {"kind": "files", "source_language": "en", "target_language": "es", "train": ("a.en", "a.es")}
VALUES = {"name": "run", "data": DATA, "model": {"architecture": "transformer", "width": 64}}


def _resolved(**values):
    return Resolved.of(TrainConfig.model_validate(VALUES | values))


def test_values_set_in_python_are_typed_and_others_have_their_defaults():
    resolved = _resolved()
    assert resolved.origins["model.width"] == "typed" and resolved.is_given("model.width")
    assert "model.heads" not in resolved.origins and not resolved.is_given("model.heads")


def test_derived_config_keeps_values_and_records_new_origins():
    first = _resolved()
    second = first.with_values({"training.max_updates": 7, "training.schedule.warmup": 2}, "chosen")
    assert (second.config.training.max_updates, second.config.training.schedule.warmup) == (7, 2)
    assert second.config.model == first.config.model and first.config.training.max_updates == 1200
    assert second.origins == {**first.origins, "training.max_updates": "chosen", "training.schedule.warmup": "chosen"}
    assert not second.is_given("training.max_updates")


def test_a_section_is_replaced_whole():
    second = _resolved().with_values({"model": {"architecture": "rnn_attention", "hidden": 32}}, "inherited")
    assert second.config.model.architecture == "rnn_attention" and "model.width" not in second.origins
    assert second.is_given("model.hidden")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model.heads": 5}, "heads=5 does not divide width=64"),
        ({"training.max_updates": 0}, "greater than or equal to 1"),
        ({"tokenizer.reuse": "a", "training.init_from": "b"}, "leave tokenizer.reuse out"),
    ],
)
def test_with_values_refuses_wrong_values_and_combinations(values, message):
    with pytest.raises(InputError, match=message):
        _resolved().with_values(values, "chosen")
