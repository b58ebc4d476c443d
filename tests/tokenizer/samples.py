"""Sampled subwords of single texts."""

from collections.abc import Sequence

import numpy as np
import pyarrow

from mt.data.pairs import TOKENS
from mt.tokenizer.tokenizer import Tokenizer


def samples_of(tokenizer: Tokenizer, text: str, sampling: float, keys: Sequence[int]) -> list[list[int]]:
    """Return one sample of a text for each key."""
    sentences = pyarrow.array(tokenizer.encode([text]) * len(keys), TOKENS)
    return tokenizer.sampler(sampling).sample(sentences, np.array(keys, np.uint64)).to_pylist()
