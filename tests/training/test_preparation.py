"""What is learnt from the training text before the first update becomes part of the model."""

from pathlib import Path

import numpy as np

from mt.storage.model_description import TextLayerDescription
from mt.training.learned_text import length_limits, rare_characters
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
    (segment,) = layer.segment("My sister sees a small boat")
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


def test_characters_that_the_training_sources_have_too_seldom_are_counted(tmp_path: Path) -> None:
    marks = ["; "] * 3 + [", "] * 91 + ["... "] * 5 + ["é "]
    for split in ("train", "valid", "test"):
        texts = toy.sentences(200, seed=len(split), longest=12)
        lines = [f"{mark}{text}" for mark, text in zip(marks * 2, texts, strict=True)]
        (tmp_path / f"{split}.xx").write_text("".join(f"{line}\n" for line in lines))
        (tmp_path / f"{split}.yy").write_text("".join(f"Où {text} (Ab)\n" for text in texts))
    data = toy.prepared(toy.config(tmp_path, tokenizer={"vocabulary_size": 330}))
    rare = data.layer.config.rare_characters
    # Every tenth source has a mark that is not rare. Letters are rare if the sources do not have them at all.
    assert rare == {";": 6, "…": 10, "(": 0, ")": 0, "ù": 0}
    assert [segment.values for segment in data.layer.segment("(ab; ab, ba)")] == [(";",)]
    tokenizer = data.layer.tokenizers.source
    base = TextLayerDescription(rare_characters={";": 8, "…": 10, "ù": 0})
    assert rare_characters(data.train, tokenizer, base) == {";": 14, "ù": 0}
