"""A column read at once equals the rows read one by one, also of a selection of a selection."""

import datasets
import numpy as np

from mt.data.column import column


def test_columns_follow_the_selection() -> None:
    whole = datasets.Dataset.from_dict({"text": [f"text {n}" for n in range(50)], "number": range(50)})
    shuffled = whole.select(np.random.default_rng(1).permutation(50)).select([3, 1, 40, 1])
    for pairs in (whole, shuffled, datasets.concatenate_datasets([shuffled, whole])):
        assert column(pairs, "text").to_pylist() == pairs["text"][:]
        assert column(pairs, "number").to_numpy().tolist() == pairs["number"][:]
