"""Pairs of sentences as piece numbers: computed once for a corpus and a tokenizer, then read from disk."""

import hashlib

import datasets
import numpy as np

from mt.data.tokenizer import TokenizerPair


def encode_pairs(pairs: datasets.Dataset, tokenizers: TokenizerPair) -> datasets.Dataset:
    """Adds ``source_ids`` and ``target_ids`` (int32, without BOS and EOS) and their lengths.

    The result lies in the cache of ``datasets``, under the fingerprint of the pairs and of the tokenizers.
    """
    text = f"{pairs._fingerprint} {_digest(tokenizers.source.model)} {_digest(tokenizers.target.model)} 1"
    return pairs.map(
        _encode,
        batched=True,
        batch_size=2000,
        fn_kwargs={"tokenizers": tokenizers},
        features=datasets.Features(
            pairs.features
            | {
                "source_ids": datasets.List(datasets.Value("int32")),
                "target_ids": datasets.List(datasets.Value("int32")),
                "source_length": datasets.Value("int32"),
                "target_length": datasets.Value("int32"),
            }
        ),
        new_fingerprint=_digest(text.encode()),
    )


def drop_long(pairs: datasets.Dataset, max_length: int) -> tuple[datasets.Dataset, int]:
    """The encoded pairs with at most ``max_length`` pieces on either side, and how many others there are."""
    columns = pairs.with_format("numpy")
    longest = np.maximum(columns["source_length"][:], columns["target_length"][:])
    kept = np.flatnonzero(longest <= max_length)
    if len(kept) == len(pairs):
        return pairs, 0
    return pairs.select(kept), len(pairs) - len(kept)


def _encode(batch: dict[str, list[str]], tokenizers: TokenizerPair) -> dict[str, list]:
    source = tokenizers.source.encode(batch["source"])
    target = tokenizers.target.encode(batch["target"])
    return {
        "source_ids": source,
        "target_ids": target,
        "source_length": [len(pieces) for pieces in source],
        "target_length": [len(pieces) for pieces in target],
    }


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
