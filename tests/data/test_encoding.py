"""Encoded pairs hold what the tokenizers say, and are computed once for each corpus and tokenizer."""

from functools import partial
from pathlib import Path

import datasets
import pytest

from mt.config import TokenizerConfig
from mt.core.columns import tables
from mt.data.encoding import encode_pairs
from mt.text.subwords.tokenizer import Tokenizer, TokenizerPair
from mt.text.subwords.training import train_tokenizers
from tests import toy


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
    return train_tokenizers(pairs, ("xx", "yy"), TokenizerConfig(vocabulary_size=size, joint=False), seed=1)


def test_each_side_by_its_own_tokenizer(pairs):
    both = tokenizers(pairs, 300)
    encoded = encode_pairs(pairs, toy.layer(both, enabled=False))
    assert encoded["id"][:] == pairs["id"][:]
    assert encoded["source_ids"][:] == both.source.encode(pairs["source"][:])
    assert encoded["target_ids"][:] == both.target.encode(pairs["target"][:])
    assert encoded["source_length"][:] == [len(pieces) for pieces in encoded["source_ids"]]
    assert encoded["target_length"][:] == [len(pieces) for pieces in encoded["target_ids"]]
    assert encoded.features["source_ids"] == datasets.List(datasets.Value("int32"))


def test_the_cache_knows_the_tokenizers_and_the_pairs(pairs):
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
    first = encode_pairs(pairs, toy.layer(both, enabled=False))["source_ids"][0]
    assert first == both.source.encode(["number 0 in here"])[0]


def test_several_processes_encode_as_one_does(pairs, monkeypatch):
    monkeypatch.setattr("mt.data.encoding.tables", partial(tables, rows_at_once=7))
    monkeypatch.setattr("mt.data.parallel.FIRST_ITEMS", 2)
    both = tokenizers(pairs, 300)
    found = []
    for cores in (1, 2):
        monkeypatch.setattr("mt.data.parallel.available_cores", lambda cores=cores: cores)
        monkeypatch.setattr("mt.data.encoding.ENCODING_VERSION", -cores)  # so that the second is not found in the cache
        found.append(encode_pairs(pairs.select(range(99, -1, -1)), toy.layer(both)).to_list())
    assert found[0] == found[1]
