"""Encode sentence pairs as token ids, once for each corpus and tokenizer. Later runs read them from the cache."""

from collections.abc import Iterable
from functools import partial

import datasets
import numpy as np
import pyarrow

from mt.config import TextLayerConfig
from mt.core.columns import numbers, tables
from mt.data.cache import cached_table, digest, select_rows
from mt.data.parallel import in_order
from mt.data.subwords import SUBWORDS, with_subwords
from mt.text.layer import TextLayer

ENCODING_VERSION = 8
"""A part of every cache key. Raise it when a change of the code gives other tokens for the same text."""


def encode_pairs(pairs: datasets.Dataset, layer: TextLayer) -> datasets.Dataset:
    """Return pairs with the columns of SUBWORDS added.

    These are ``source_ids`` and ``target_ids``, the token ids without BOS and EOS (lists of int32), and their numbers
    ``source_length`` and ``target_length``. The cache keeps the result under a key of the pairs, the tokenizers and the
    settings of the text layer.
    """
    tokenizers = layer.tokenizers
    languages = f"{layer.source_language} {layer.target_language}"
    rules = layer.config.model_dump_json(include=set(TextLayerConfig.model_fields))
    models = tokenizers.source.model, tokenizers.target.model
    key = digest((ENCODING_VERSION, pairs._fingerprint, models, languages, rules))
    schema = pyarrow.schema([*pairs.data.schema, *SUBWORDS])

    def batches() -> Iterable[pyarrow.RecordBatch]:
        parts = (table.combine_chunks().to_batches()[0] for table in tables(pairs, pairs.data.column_names))
        return in_order(partial(with_subwords, layer=layer), parts)

    return cached_table(key, schema, batches, "splitting sentences into subwords", len(pairs))


def drop_long(pairs: datasets.Dataset, max_length: int) -> tuple[datasets.Dataset, int]:
    """Drop the encoded pairs with more than ``max_length`` tokens on a side.

    Returns:
        The remaining pairs, and the number of dropped pairs.
    """
    is_short = np.maximum(numbers(pairs, "source_length"), numbers(pairs, "target_length")) <= max_length
    if is_short.all():
        return pairs, 0
    short = select_rows(pairs, ("drop_long", max_length), lambda: np.flatnonzero(is_short))
    return short, len(pairs) - len(short)
