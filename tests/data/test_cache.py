"""What the cache holds is complete, made once, and the same for everyone who reads it."""

from collections.abc import Iterator
from pathlib import Path

import datasets
import numpy as np
import pyarrow
import pytest

from mt.core.columns import numbers, release_memory
from mt.data.cache import cached_table, digest, select_rows

SCHEMA = pyarrow.schema([("number", pyarrow.int64())])


def batches(*parts: list[int]) -> Iterator[pyarrow.RecordBatch]:
    for part in parts:
        yield pyarrow.record_batch([part], schema=SCHEMA)


def test_a_table_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    made = cached_table("once", SCHEMA, lambda: batches([1, 2], [], [3]))
    again = cached_table("once", SCHEMA, lambda: pytest.fail("made again"))
    assert made["number"][:] == again["number"][:] == [1, 2, 3]
    assert made._fingerprint == again._fingerprint == "once"
    release_memory()
    assert made["number"][:] == [1, 2, 3]
    assert len(cached_table("empty", SCHEMA, batches)) == 0


def test_what_stops_the_making_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)

    def stopped() -> Iterator[pyarrow.RecordBatch]:
        yield from batches([1])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_table("stopped", SCHEMA, stopped)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} <= {".lock"}
    # A killed process cannot clear up, but its beginning is not taken for the table.
    (tmp_path / "mt" / "stopped.partial").write_bytes(b"half a table")
    assert cached_table("stopped", SCHEMA, lambda: batches([4, 5]))["number"][:] == [4, 5]
    assert not list(tmp_path.rglob("*.partial"))


def test_a_selection_of_a_selection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    whole = cached_table("whole", SCHEMA, lambda: batches(list(range(100))))
    even = select_rows(whole, "even", lambda: np.arange(0, 100, 2))
    some = select_rows(even, "some", lambda: np.array([40, 3, 3]))
    assert even["number"][:] == list(range(0, 100, 2))
    assert some["number"][:] == numbers(some, "number").tolist() == [80, 6, 6]
    assert len(select_rows(whole, "none", lambda: np.empty(0, dtype=np.int64))) == 0
    both = datasets.concatenate_datasets([whole, some])
    assert both["number"][:] == [*range(100), 80, 6, 6]
    assert select_rows(even, "some", lambda: pytest.fail("selected again"))["number"][:] == [80, 6, 6]
    assert (
        len({pairs._fingerprint for pairs in (whole, even, some, select_rows(whole, "some", lambda: np.arange(3)))})
        == 4
    )
    assert digest(("a", 1)) == digest(("a", 1)) != digest(("a", 2))
