"""Encodes sentence pairs as piece numbers, once for a corpus and a tokenizer; from then on they are read from disk."""

import hashlib

import datasets
import numpy as np
import pyarrow

from mt.data.column import column
from mt.text.tokenizer import TokenizerPair

VERSION = 1
"""Part of the cache's key. Raise it when the same text is to give other pieces than before."""


def encode_pairs(pairs: datasets.Dataset, tokenizers: TokenizerPair) -> datasets.Dataset:
    """Adds columns ``source_ids`` and ``target_ids`` (int32, without BOS and EOS), and their lengths ``source_length``
    and ``target_length``.

    The result is kept in the cache of ``datasets``, under a fingerprint of the pairs and of the tokenizers.
    """
    text = f"{pairs._fingerprint} {_digest(tokenizers.source.model)} {_digest(tokenizers.target.model)} {VERSION}"
    encoded = pairs.with_format("arrow").map(
        _encode,
        batched=True,
        batch_size=2000,
        fn_kwargs={"tokenizers": tokenizers},
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


def _encode(pairs: pyarrow.Table, tokenizers: TokenizerPair) -> pyarrow.Table:
    # The rows of a selection arrive in chunks of one row each, and would be written like that.
    pairs = pairs.combine_chunks()
    for side, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target)):
        pieces = pyarrow.array(tokenizer.encode(pairs[side].to_pylist()), pyarrow.list_(pyarrow.int32()))
        pairs = pairs.append_column(f"{side}_ids", pieces)
        pairs = pairs.append_column(f"{side}_length", pieces.value_lengths())
    return pairs


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
