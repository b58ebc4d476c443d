"""Tests of preparing data: learning from the training data, and encoding pairs."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import datasets
import numpy as np
import pytest

from mt.config import TokenizerConfig
from mt.core.columns import tables
from mt.storage.model_description import TextLayerDescription
from mt.text.spelling import Spelling
from mt.tokenizer.tokenizer import Tokenizer, TokenizerPair
from mt.tokenizer.training import train_tokenizers
from mt.training.preparation import encode_pairs, learn_from_tokens
from tests import toy
from tests.data.cleaning.conftest import good_pairs


def test_prepare_learns_final_punctuation(tmp_path: Path) -> None:
    pairs = good_pairs()
    for split, some in (("train", pairs[:600]), ("valid", pairs[600:610]), ("test", pairs[610:620])):
        for place, side in enumerate(("xx", "yy")):
            (tmp_path / f"{split}.{side}").write_text("".join(f"{pair[place]}\n" for pair in some))
    config = toy.config(tmp_path, data={"source_language": "en", "target_language": "de"})
    layer = toy.prepared(config).layer
    assert layer.config.final_marks == {".": ()}
    (segment,) = layer.segment("My sister sees a small boat")
    assert segment.added_punctuation == "."


def test_learn_from_tokens_records_source_lengths(tmp_path: Path) -> None:
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
        assert learn_from_tokens(data.train, data.tokenizers.source, base, False)["long_source"] == expected


def test_learn_from_tokens_counts_rare_characters(tmp_path: Path) -> None:
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
    assert learn_from_tokens(data.train, tokenizer, base, True)["rare_characters"] == {";": 14, "ù": 0}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    datasets.Dataset.from_dict(
        {
            "id": range(100),
            "source": [f"number {number} in here" for number in range(100)],
            "target": [f"there is number {number}" for number in range(100)],
        }
    ).to_json(path)
    return datasets.Dataset.from_json(str(path))


def tokenizers(pairs: datasets.Dataset, size: int) -> TokenizerPair:
    return train_tokenizers(pairs, [("xx", "yy")], TokenizerConfig(vocabulary_size=size, joint=False), seed=1)


def test_encode_pairs_uses_tokenizer_of_each_side(pairs):
    both = tokenizers(pairs, 300)
    encoded = encode_pairs(pairs, toy.layer(both, enabled=False))
    assert encoded["id"][:] == pairs["id"][:]
    assert encoded["source_ids"][:] == both.source.encode(pairs["source"][:])
    assert encoded["target_ids"][:] == both.target.encode(pairs["target"][:])
    assert encoded["source_length"][:] == [len(pieces) for pieces in encoded["source_ids"]]
    assert encoded["target_length"][:] == [len(pieces) for pieces in encoded["target_ids"]]
    assert encoded.features["source_ids"] == datasets.List(datasets.Value("int32"))


def test_encode_pairs_cache_depends_on_tokenizers_and_pairs(pairs):
    both = tokenizers(pairs, 300)
    swapped = TokenizerPair(both.target, both.source)

    def state(encoded: datasets.Dataset) -> tuple[str, int]:
        path = Path(encoded.cache_files[0]["filename"])
        return str(path), path.stat().st_mtime_ns

    once = state(encode_pairs(pairs, toy.layer(both, enabled=False)))
    again = TokenizerPair(Tokenizer(both.source.model), both.target)
    assert state(encode_pairs(pairs, toy.layer(again, enabled=False))) == once
    assert state(encode_pairs(pairs, toy.layer(swapped, enabled=False))) != once
    assert state(encode_pairs(pairs.select(range(50, 60)), toy.layer(both, enabled=False))) != once
    spelled = replace(toy.layer(both), spelling=Spelling({"Number": 9}, "xx"))  # restores capitals
    assert state(encode_pairs(pairs, spelled)) != state(encode_pairs(pairs, toy.layer(both)))
    first = encode_pairs(pairs, toy.layer(both, enabled=False))["source_ids"][0]
    assert first == both.source.encode(["number 0 in here"])[0]


def test_encode_pairs_in_several_processes(pairs, monkeypatch):
    monkeypatch.setattr("mt.training.preparation.tables", partial(tables, rows_at_once=7))
    monkeypatch.setattr("mt.data.parallel.FIRST_ITEMS", 2)
    both = tokenizers(pairs, 300)
    found = []
    for cores in (1, 2):
        monkeypatch.setattr("mt.data.parallel.available_cores", lambda cores=cores: cores)
        monkeypatch.setattr(
            "mt.training.preparation.ENCODING_VERSION", -cores
        )  # so that the second is not found in the cache
        found.append(encode_pairs(pairs.select(range(99, -1, -1)), toy.layer(both)).to_list())
    assert found[0] == found[1]
