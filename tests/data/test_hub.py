"""Datasets in the layout of the Hugging Face hub: pairs, streaming, errors, and no execution of code."""

import json
import os
import pickle
from pathlib import Path

import pyarrow
import pytest
from datasets import packaged_modules
from pyarrow import parquet
from pydantic import ValidationError

from mt.config.data import FILE_FORMATS
from mt.core.errors import InputError, RunError
from tests.data.corpora import PAIRS, load, texts, write

ROWS = [{"de": source, "en": target} for source, target in PAIRS]
SPLITS = {"train": ROWS, "validation": ROWS[:3], "test": ROWS[:2]}


def write_dataset(folder, nested):
    for split, rows in SPLITS.items():
        lines = [json.dumps({"translation": row} if nested else row | {"note": 1}) for row in rows]
        write(folder / f"{split}.jsonl", lines)


def load_hub(path, **settings):
    return load(kind="hub", path=str(path), **settings)


@pytest.mark.parametrize("nested", [True, False])
def test_hub_reads_local_folder(tmp_path, nested):
    write_dataset(tmp_path, nested)
    corpus = load_hub(tmp_path)
    assert texts(corpus.train) == PAIRS
    assert texts(corpus.valid) == PAIRS[:3]
    assert texts(corpus.test) == PAIRS[:2]
    # The cache keeps the pairs of other columns apart.
    swapped = load_hub(tmp_path, source_column="en", target_column="de")
    assert texts(swapped.train) == [(target, source) for source, target in PAIRS]


@pytest.mark.parametrize(("nested", "streaming"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"target_language": "fr"}, "no column 'fr' among de, en"),
        ({"valid_split": "dev"}, r"data\.valid_split=dev: use one of the splits of .*: train, validation, test"),
    ],
    ids=str,
)
def test_hub_reports_unknown_columns_and_splits(tmp_path, nested, streaming, setting, message):
    write_dataset(tmp_path, nested)
    with pytest.raises(InputError, match=message):
        load_hub(tmp_path, streaming=streaming, **setting)


@pytest.mark.parametrize("nested", [True, False])
def test_streamed_dataset_has_same_pairs(tmp_path, nested):
    write_dataset(tmp_path, nested)
    whole, streamed = (load_hub(tmp_path, streaming=streaming) for streaming in (False, True))
    for split in ("train", "valid", "test"):
        assert getattr(streamed, split).to_dict() == getattr(whole, split).to_dict()
    # Changed files are read again.
    write(tmp_path / "train.jsonl", (tmp_path / "test.jsonl").read_text().splitlines()[:1] * 2)
    os.utime(tmp_path / "train.jsonl", (1, 1))
    assert texts(load_hub(tmp_path, streaming=True).train) == PAIRS[:1] * 2


def test_streaming_reads_only_most_pairs(tmp_path):
    for split, rows in SPLITS.items():
        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / f"{split}-0.parquet")
    corpus = load_hub(tmp_path, most_pairs=5)
    assert texts(corpus.train) == PAIRS[:5] and len(corpus.valid) == 3
    (tmp_path / "train-1.parquet").write_bytes(b"corrupted")
    with pytest.raises(InputError, match="this dataset cannot be loaded"):
        load_hub(tmp_path, most_pairs=5)
    assert texts(load_hub(tmp_path, most_pairs=5, streaming=True).train) == PAIRS[:5]
    with pytest.raises(InputError, match="this dataset cannot be loaded"):
        load_hub(tmp_path, most_pairs=len(PAIRS) + 1, streaming=True)


class NoNetwork(Exception):
    """Not an OSError, as the errors of HTTP libraries."""


@pytest.mark.parametrize(
    ("failure", "expected", "message"),
    [
        (NoNetwork("no route to host"), InputError, "this dataset cannot be loaded: no route to host"),
        (MemoryError("no room"), MemoryError, "^no room$"),  # neither is the dataset's fault
        (RunError("disk full"), RunError, "^disk full$"),
    ],
)
def test_failure_while_streaming_is_reported(failure, expected, message, tmp_path, monkeypatch):
    for split in ("train", "validation", "test"):
        write(tmp_path / f"{split}.jsonl", ['{"de": "a", "en": "b"}'])

    def iterate(self, batch_size):
        yield pyarrow.table({"de": ["a"], "en": ["b"]})
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr("datasets.IterableDataset.iter", iterate)
        with pytest.raises(expected, match=message):
            load_hub(tmp_path, streaming=True)
    assert texts(load_hub(tmp_path, streaming=True).train) == [("a", "b")]


def test_missing_or_corrupted_dataset_is_reported(tmp_path):
    write(tmp_path / "corrupted" / "train.jsonl", ['{"de": "a", "en": bad'])
    with pytest.raises(InputError, match=r"(?s)data\.path=.*corrupted: this dataset cannot be loaded.*data=files"):
        load_hub(tmp_path / "corrupted")
    with pytest.raises(InputError, match=r"(?s)data\.path=.*nothing: this dataset cannot be loaded.*data=files"):
        load_hub(tmp_path / "nothing")


class TouchesAFile:
    """Creates a file when its pickle is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("path", ["pandas", "json", "hf://datasets/csv", "webdataset"])
def test_hub_refuses_file_format_as_path(path):
    with pytest.raises(ValidationError, match=r"not a dataset but a file format.*data=files or data=table"):
        load_hub(path)
    with pytest.raises(ValidationError, match="not a dataset but a file format"):
        load(kind="mixture", corpora=[{"kind": "hub", "path": path}])


def test_file_formats_cover_packaged_modules():
    assert set(packaged_modules._PACKAGED_DATASETS_MODULES) <= FILE_FORMATS


@pytest.mark.filterwarnings("ignore:The Pandas builder:FutureWarning")
def test_hub_runs_no_code_of_dataset(tmp_path, monkeypatch):
    # A name that a later version of the library may know, which then reads what lies in the current folder.
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    (tmp_path / "train.pkl").write_bytes(pickle.dumps(TouchesAFile(run)))
    monkeypatch.setattr("mt.config.data.FILE_FORMATS", frozenset())
    with pytest.raises(InputError, match=r"data\.path=pandas: its files need the module pandas"):
        load_hub("pandas")

    write(tmp_path / "set" / "train.json", ['{"de": "a", "en": "b"}'])
    write(tmp_path / "set" / "set.py", [f"open({str(run)!r}, 'w')"])
    for path in ("set", "set/set.py"):
        with pytest.raises(
            InputError, match=r"data\.path=set.*Dataset scripts are no longer supported, but found set\.py"
        ):
            load_hub(path)

    write(tmp_path / "markup" / "train.xml", ["<a/>"])
    with pytest.raises(InputError, match=r"data\.path=markup: its files need the module xml"):
        load_hub("markup")
    with pytest.raises(InputError, match="data.path=/: this dataset cannot be loaded"):
        load_hub("/")
    assert not run.exists()
