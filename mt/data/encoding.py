"""Encodes sentence pairs as piece numbers, once for a corpus and a tokenizer; from then on they are read from disk."""

import hashlib
from collections.abc import Iterable
from functools import partial

import datasets
import numpy as np
import pyarrow

from mt.config import RulesConfig
from mt.core.columns import numbers, tables
from mt.data.cache import cached_table, chosen, digest
from mt.data.parallel import in_order
from mt.data.pieces import PIECES, with_pieces
from mt.text.layer import TextLayer
from mt.text.tokenizer import Tokenizer

VERSION = 8
"""Part of the cache's key. Raise it when the same text is to give other pieces than before."""


def encode_pairs(pairs: datasets.Dataset, layer: TextLayer) -> datasets.Dataset:
    """Adds columns ``source_ids`` and ``target_ids`` (int32, without BOS and EOS), and their lengths ``source_length``
    and ``target_length``.

    The result is kept in the cache of ``datasets``, under a fingerprint of the pairs, the tokenizers and the rules by
    which the text layer marks a pair.
    """
    tokenizers = layer.tokenizers
    languages = f"{layer.source_language} {layer.target_language}"
    rules = layer.config.model_dump_json(include=set(RulesConfig.model_fields))
    models = _checksum(tokenizers.source), _checksum(tokenizers.target)
    place = digest((VERSION, pairs._fingerprint, models, languages, rules))
    schema = pyarrow.schema([*pairs.data.schema, *PIECES])

    def batches() -> Iterable[pyarrow.RecordBatch]:
        tables_of_pairs = tables(pairs, pairs.data.column_names)
        return in_order(partial(with_pieces, layer=layer), map(_as_batch, tables_of_pairs))

    return cached_table(place, schema, batches, "cutting sentences into pieces", len(pairs))


def drop_long(pairs: datasets.Dataset, max_length: int) -> tuple[datasets.Dataset, int]:
    """Returns the encoded pairs with at most ``max_length`` pieces on either side, and how many others were dropped."""
    longest = np.maximum(numbers(pairs, "source_length"), numbers(pairs, "target_length"))
    kept = longest <= max_length
    if kept.all():
        return pairs, 0
    short = chosen(pairs, ("drop_long", max_length), lambda: np.flatnonzero(kept))
    return short, len(pairs) - len(short)


def _as_batch(table: pyarrow.Table) -> pyarrow.RecordBatch:
    return table.combine_chunks().to_batches()[0]


def _checksum(tokenizer: Tokenizer) -> str:
    return hashlib.blake2b(tokenizer.model, digest_size=16).hexdigest()
