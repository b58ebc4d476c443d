"""What earlier versions overlooked and today's refuses is read as if it had not been set."""

import pytest
from pydantic import ValidationError

from mt.config import TrainConfig
from mt.config.earlier import as_of_today
from tests import toy

FILES = {"kind": "files", "train": ["a.xx", "a.yy"]}
NAMED = {"valid": ["b.xx", "b.yy"], "test": ["c.xx", "c.yy"]}
PAIRS = {"valid_pairs": 9, "test_pairs": 9}
LANGUAGES = {"source_language": "xx", "target_language": "yy"}


def _values(architecture="transformer", **changes):
    """A config.yaml of an earlier version."""
    optimizer = {"kind": "muon", "learning_rate": 1e-3}
    values = {"name": "x", "model": toy.MODELS[architecture], "data": FILES | LANGUAGES}
    return values | {"training": {"optimizer": optimizer}} | changes


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (_values(), {"training.optimizer.kind": "auto"}),
        (_values(training={"optimizer": {"kind": "adamw"}}), {"training.optimizer.kind": "adamw"}),
        (
            _values(training={"optimizer": {"kind": "muon", "muon_iterations": 5}}),
            {"training.optimizer.kind": "auto", "training.optimizer.muon_iterations": 5},
        ),
        (
            _values("rnn", training={"optimizer": {"kind": "muon", "muon_iterations": 5}}),
            {"training.optimizer.kind": "auto", "training.optimizer.muon_iterations": 3},
        ),
        (
            _values(training={"weights": "average", "average": 5, "keep_last": 5}),
            {"training.average": 4, "training.keep_last": 5},
        ),
        (
            _values(training={"weights": "average", "average": 5, "keep_last": 5, "save_every": 100}),
            {"training.average": 5},
        ),
        (_values(data=FILES | NAMED | LANGUAGES | PAIRS), {"data.valid_pairs": 2000}),
        (_values(data=FILES | LANGUAGES | {"valid_pairs": 9}), {"data.valid_pairs": 9}),
        (
            _values(
                data={"kind": "hub", "path": "p", "valid_split": "dev", "valid_pairs": 9, "test_pairs": 9} | LANGUAGES
            ),
            {"data.valid_pairs": 2000, "data.test_pairs": 9},
        ),
        (_values(decoding={"seed": 5, "beam_size": 3}), {"decoding.seed": 1, "decoding.beam_size": 3}),
    ],
)
def test_settings_that_had_no_effect_are_read_as_their_defaults(before, expected):
    config = TrainConfig.model_validate(as_of_today(before)).model_dump()
    for key, value in expected.items():
        found = config
        for name in key.split("."):
            found = found[name]
        assert found == value, key


def test_of_a_mixture_the_first_corpus_alone_has_validation_data():
    hub = {"kind": "hub", "path": "p", "valid_pairs": 9, "test_split": "dev"}
    data = {"kind": "mixture", "valid_pairs": 9, "corpora": [FILES | NAMED, FILES | NAMED, hub]} | LANGUAGES
    config = TrainConfig.model_validate(as_of_today(_values(data=data)))
    first, second, third = config.data.corpora
    assert first.valid == ("b.xx", "b.yy") and second.valid is second.test is None
    assert config.data.valid_pairs == third.valid_pairs == 2000 and third.test_split == "test"


def test_of_a_mixture_the_first_corpus_says_how_many_pairs_are_held_out():
    data = {"kind": "mixture", "valid_pairs": 9, "corpora": [FILES | {"valid_pairs": 5}, FILES]} | LANGUAGES
    config = TrainConfig.model_validate(as_of_today(_values(data=data)))
    assert [part.valid_pairs for part in (config.data, *config.data.corpora)] == [5, 5, 5]


@pytest.mark.parametrize(
    "values",
    [
        {"training": []},
        {"training": {"optimizer": 3, "weights": "average", "average": "five"}},
        {"training": {"weights": "average", "validate_every": 0}},
        {"data": {"corpora": [3]}, "model": 3},
        {"data": {"corpora": []}, "decoding": []},
    ],
)
def test_what_is_no_config_is_left_to_the_schema(values):
    with pytest.raises(ValidationError):
        TrainConfig.model_validate(as_of_today(_values() | values))
