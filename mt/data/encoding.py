"""Encodes sentence pairs as subword ids, once for a corpus and a tokenizer; from then on they are read from disk."""

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

VERSION = 8
"""Part of the cache's key. Raise it when the same text is to give other subwords than before."""


def encode_pairs(pairs: datasets.Dataset, layer: TextLayer) -> datasets.Dataset:
    """Add columns ``source_ids`` and ``target_ids`` (int32, without BOS and EOS), and their lengths ``source_length``
    and ``target_length``.

    The result is kept in the cache of ``datasets``, under a fingerprint of the pairs, the tokenizers and the rules of
    the text layer.
    """
    tokenizers = layer.tokenizers
    languages = f"{layer.source_language} {layer.target_language}"
    rules = layer.config.model_dump_json(include=set(TextLayerConfig.model_fields))
    models = tokenizers.source.model, tokenizers.target.model
    key = digest((VERSION, pairs._fingerprint, models, languages, rules))
    schema = pyarrow.schema([*pairs.data.schema, *SUBWORDS])

    def batches() -> Iterable[pyarrow.RecordBatch]:
        parts = tables(pairs, pairs.data.column_names)
        return in_order(partial(with_subwords, layer=layer), map(_as_batch, parts))

    return cached_table(key, schema, batches, "splitting sentences into subwords", len(pairs))


def drop_long(pairs: datasets.Dataset, max_length: int) -> tuple[datasets.Dataset, int]:
    """Return the encoded pairs with at most ``max_length`` subwords on either side, and the number of the others."""
    is_short = np.maximum(numbers(pairs, "source_length"), numbers(pairs, "target_length")) <= max_length
    if is_short.all():
        return pairs, 0
    short = select_rows(pairs, ("drop_long", max_length), lambda: np.flatnonzero(is_short))
    return short, len(pairs) - len(short)


def _as_batch(table: pyarrow.Table) -> pyarrow.RecordBatch:
    return table.combine_chunks().to_batches()[0]
