"""Encodes sentence pairs as piece numbers, once for a corpus and a tokenizer; from then on they are read from disk."""

import hashlib

import datasets
import numpy as np
import pyarrow

from mt.config import RulesConfig
from mt.data.column import column
from mt.text.layer import TextLayer

VERSION = 6
"""Part of the cache's key. Raise it when the same text is to give other pieces than before."""


def encode_pairs(pairs: datasets.Dataset, layer: TextLayer) -> datasets.Dataset:
    """Adds columns ``source_ids`` and ``target_ids`` (int32, without BOS and EOS), and their lengths ``source_length``
    and ``target_length``.

    The result is kept in the cache of ``datasets``, under a fingerprint of the pairs, the tokenizers and the rules by
    which the text layer marks a pair.
    """
    tokenizers = layer.tokenizers
    languages = f"{layer.source_language} {layer.target_language}"
    rules = layer.rules.model_dump_json(include=set(RulesConfig.model_fields))
    text = (
        f"{pairs._fingerprint} {_digest(tokenizers.source.model)} {_digest(tokenizers.target.model)} {VERSION} "
        f"{languages} {rules}"
    )
    encoded = pairs.with_format("arrow").map(
        _encode,
        batched=True,
        batch_size=2000,
        fn_kwargs={"layer": layer},
        new_fingerprint=_digest(text.encode()),
    )
    return encoded.with_format(None)


def drop_long(pairs: datasets.Dataset, max_length: int) -> tuple[datasets.Dataset, int]:
    """Returns the encoded pairs with at most ``max_length`` pieces on either side, and how many others were dropped."""
    longest = np.maximum(column(pairs, "source_length"), column(pairs, "target_length"))
    kept = np.flatnonzero(longest <= max_length)
    if len(kept) == len(pairs):
        return pairs, 0
    return pairs.select(kept), len(pairs) - len(kept)


def _encode(pairs: pyarrow.Table, layer: TextLayer) -> pyarrow.Table:
    # The rows of a selection arrive in chunks of one row each, and would be written like that.
    pairs = pairs.combine_chunks()
    texts = map(layer.mark_pair, pairs["source"].to_pylist(), pairs["target"].to_pylist())
    sources, targets = zip(*texts, strict=True)
    tokenizers = layer.tokenizers
    for side, tokenizer, marked in (("source", tokenizers.source, sources), ("target", tokenizers.target, targets)):
        pieces = pyarrow.array(tokenizer.encode(marked), pyarrow.list_(pyarrow.int32()))
        pairs = pairs.append_column(f"{side}_ids", pieces)
        pairs = pairs.append_column(f"{side}_length", pieces.value_lengths())
    return pairs


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
