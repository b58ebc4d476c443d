"""Cached tables: computed once, written completely, and selected from."""

import os
import stat
import tempfile

import datasets
import numpy as np
import pyarrow
import pytest

from mt.core.columns import numbers, release_memory
from mt.core.errors import InputError
from mt.data.cache import _cache_folder, cached_table, select_rows

SCHEMA = pyarrow.schema([("number", pyarrow.int64())])


def batches(*parts):
    for part in parts:
        yield pyarrow.record_batch([part], schema=SCHEMA)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    return tmp_path


def test_cached_table_is_computed_once(cache):
    made = cached_table("once", SCHEMA, lambda: batches([1, 2], [], [3]))
    again = cached_table("once", SCHEMA, lambda: pytest.fail("made again"))
    assert made["number"][:] == again["number"][:] == [1, 2, 3]
    assert made._fingerprint == again._fingerprint == "once"
    release_memory()
    assert made["number"][:] == [1, 2, 3]
    assert len(cached_table("empty", SCHEMA, batches)) == 0


def test_cached_tables_hold_no_file_descriptors(cache):
    before = len(os.listdir("/dev/fd"))
    tables = [cached_table(f"table {number}", SCHEMA, lambda: batches([1, 2])) for number in range(20)]
    assert len(os.listdir("/dev/fd")) == before
    release_memory()
    assert all(table["number"][:] == [1, 2] for table in tables)


@pytest.mark.parametrize("wanted", ["/dev/null/home/mt", "~/mt"])
def test_cache_without_home_is_private_temporary_folder(tmp_path, monkeypatch, caplog, wanted):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", wanted)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    _cache_folder.cache_clear()
    for number in range(2):
        cached_table(f"table {number}", SCHEMA, lambda: batches([1]))
    (folder,) = tmp_path.iterdir()
    assert len(list(folder.glob("*.arrow"))) == 2
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert caplog.text.count(f"prepared data are cached in {folder}, because {wanted}/mt cannot be written") == 1


def test_cache_refuses_temporary_folder_of_other_user(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", "~/mt")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"mt-cache-{os.getuid()}").symlink_to("elsewhere")
    _cache_folder.cache_clear()
    with pytest.raises(InputError, match="belongs to another user"):
        cached_table("table", SCHEMA, lambda: batches([1]))


def test_interrupted_cached_table_leaves_no_file(cache):

    def stopped():
        yield from batches([1])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_table("stopped", SCHEMA, stopped)
    assert {path.suffix for path in cache.rglob("*") if path.is_file()} <= {".lock"}
    # A killed process leaves its unfinished file.
    (cache / "mt" / "stopped.partial").write_bytes(b"half a table")
    assert cached_table("stopped", SCHEMA, lambda: batches([4, 5]))["number"][:] == [4, 5]
    assert not list(cache.rglob("*.partial"))


def test_select_rows_from_selection(cache):
    whole = cached_table("whole", SCHEMA, lambda: batches(list(range(100))))
    even = select_rows(whole, "even", lambda: np.arange(0, 100, 2))
    some = select_rows(even, "some", lambda: np.array([40, 3, 3]))
    assert even["number"][:] == list(range(0, 100, 2))
    assert some["number"][:] == numbers(some, "number").tolist() == [80, 6, 6]
    assert select_rows(even, "some", lambda: pytest.fail("selected again"))["number"][:] == [80, 6, 6]
    other = select_rows(whole, "some", lambda: np.arange(3))
    assert len({pairs._fingerprint for pairs in (whole, even, some, other)}) == 4
