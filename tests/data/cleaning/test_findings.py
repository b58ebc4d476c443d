"""The record of dropped pairs: resumed runs and all workers read it instead of cleaning again."""

import json
import shutil

import numpy as np
import pytest

from mt.core.errors import InputError
from mt.data.cleaning.findings import DROPPED, read_dropped
from mt.storage.run_folder import WEIGHTS
from mt.storage.validation import write_json
from mt.synthesis.source_lines import load_run_corpus
from mt.training import preparation
from mt.training.command import train
from tests import toy
from tests.data.cleaning.conftest import good_pairs
from tests.training.runs import train_until

GOOD = good_pairs()
COPIES, REPEATED = [(en, en) for en, _ in GOOD[30:40]], GOOD[50:60]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    shifted = [(GOOD[index][0], GOOD[index + 700][1]) for index in range(60, 100)]
    for split, pairs in (
        ("train", [*COPIES, *GOOD[100:], *shifted, *REPEATED, *REPEATED]),
        ("valid", GOOD[:20]),
        ("test", GOOD[20:40]),
    ):
        for index, side in enumerate(("xx", "yy")):
            (folder / f"{split}.{side}").write_text("".join(f"{pair[index]}\n" for pair in pairs))
    return folder


def config(folder, name, **training):
    data = {"source_language": "en", "target_language": "de", "cleaning": "strict"}
    return toy.config(folder, name, data=data, training={"max_updates": 6, "validate_every": 3} | training)


def provenance(run):
    return json.loads((run / "provenance.json").read_text())


@pytest.fixture(scope="module")
def whole(folder):
    run = config(folder, "whole")
    train(run)
    return run.folder


@pytest.fixture(scope="module")
def interrupted(folder):
    """A run that was interrupted after its first checkpoint."""
    run = config(folder, "interrupted")
    train_until(run, 4)
    shutil.copytree(run.folder, folder / "as it was")
    return run


@pytest.fixture
def stopped(folder, interrupted, monkeypatch):
    """The interrupted run, in which cleaning again would fail."""
    shutil.rmtree(interrupted.folder)
    shutil.copytree(folder / "as it was", interrupted.folder)
    monkeypatch.setattr(preparation, "find_faulty_pairs", None)
    return interrupted


def test_run_records_dropped_pairs(whole):
    dropped = read_dropped(whole)
    assert dropped["copy"].tolist() == list(range(10)) and len(dropped["duplicate"]) == 10
    assert len(dropped["translation"]) > 20
    counts = provenance(whole)["starts"][0]["resolved_settings"]["cleaning"]
    assert counts == {rule: len(ids) for rule, ids in dropped.items()}
    kept = load_run_corpus(whole).train["id"][:]
    assert len(kept) == provenance(whole)["data"]["train"]["pairs"]
    assert not {*kept} & {*np.concatenate([*dropped.values()])}


def test_resumed_run_reuses_dropped_pairs(whole, stopped):
    train(stopped)
    for name in (WEIGHTS, DROPPED, "scored/test.hypothesis"):
        assert (whole / name).read_bytes() == (stopped.folder / name).read_bytes(), name
    assert provenance(whole)["data"] == provenance(stopped.folder)["data"]


def test_missing_or_corrupted_record_is_reported(stopped):
    record = stopped.folder / DROPPED
    text = record.read_text()
    for corrupted in ("", text[:-20], text.replace("3,", "7,", 1), "[" * 100_000):
        record.write_text(corrupted)
        with pytest.raises(InputError, match=DROPPED):
            train(stopped)
    record.unlink()
    with pytest.raises(InputError, match=DROPPED):
        train(stopped)


@pytest.mark.parametrize(
    "forged",
    [
        None, [], {"copy": 3}, {"copy": ["3"]}, {"copy": [1.5]}, {"copy": [True]}, {"copy": [-1]}, {"copy": [2**63]},
    ],
    ids=str,
)  # fmt: skip
def test_read_dropped_rejects_invalid_ids(tmp_path, forged):
    write_json(tmp_path / DROPPED, {"dropped": forged})
    with pytest.raises(InputError, match=f"{DROPPED}: corrupted, or written by another version"):
        read_dropped(tmp_path)
