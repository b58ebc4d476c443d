"""Columns read many rows at a time equal the rows read one by one, also of a selection of a selection."""

import datasets
import numpy as np
import pyarrow
import pytest

from mt.core.columns import numbers, tables

WHOLE = datasets.Dataset.from_dict({"text": [f"text {n}" for n in range(50)], "number": range(50)})
SHUFFLED = WHOLE.select(np.random.default_rng(1).permutation(50)).select([3, 1, 40, 1])


@pytest.mark.parametrize("pairs", [WHOLE, SHUFFLED, datasets.concatenate_datasets([SHUFFLED, WHOLE])])
@pytest.mark.parametrize("neighbors", [1, 100])
def test_columns_follow_the_selection(pairs, neighbors, monkeypatch):
    monkeypatch.setattr("mt.core.columns.MAX_ROW_DISTANCE", neighbors)
    assert numbers(pairs, "number").tolist() == pairs["number"][:]
    some = np.arange(1, len(pairs), 2)
    for rows in (None, some, some[::-1], some[:0]):
        expected = pairs.to_list() if rows is None else pairs.select(rows).to_list()
        found = list(tables(pairs, ["number", "text"], rows, rows_at_once=3))
        assert all(table.num_rows <= 3 for table in found)
        schema = pyarrow.schema([("number", pyarrow.int64()), ("text", pyarrow.string())])
        assert pyarrow.concat_tables([schema.empty_table(), *found]).to_pylist() == expected
