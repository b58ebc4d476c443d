"""What is learnt from the training text before the first update becomes part of the model."""

from pathlib import Path

import numpy as np

from mt.storage.model_description import TextLayerDescription
from mt.training.learned_text import length_limits
from tests import toy
from tests.data.cleaning.conftest import good_pairs


def test_final_marks_are_learnt(tmp_path: Path) -> None:
    pairs = good_pairs()
    for split, some in (("train", pairs[:600]), ("valid", pairs[600:610]), ("test", pairs[610:620])):
        for place, side in enumerate(("xx", "yy")):
            (tmp_path / f"{split}.{side}").write_text("".join(f"{pair[place]}\n" for pair in some))
    config = toy.config(tmp_path, data={"source_language": "en", "target_language": "de"})
    layer = toy.prepared(config).layer
    assert layer.config.final_marks == {".": ()}
    (segment,) = layer.cut("My sister sees a small boat")
    assert segment.added == "."


def test_the_lengths_of_training_sources_are_recorded_and_those_of_the_base_model_stay(tmp_path: Path) -> None:
    toy.write_corpus(tmp_path, "copy", train=400)
    config = toy.config(tmp_path)
    data = toy.prepared(config)
    lengths = sorted(data.train["source_length"])
    rules = data.layer.config
    assert (rules.usual_source, rules.long_source) == (lengths[379], lengths[399]) and rules.usual_source > lengths[0]
    assert sum(np.array(lengths) > rules.usual_source) <= 20
    for base, expected in (
        (rules, rules.long_source),
        (TextLayerDescription(long_source=200), 200),
        (None, lengths[399]),
    ):
        assert length_limits(data.train, base)["long_source"] == expected
