"""Keyed random numbers: every draw depends on (seed, purpose, step or pair) alone, never on earlier draws.

Therefore a run can be resumed exactly in the middle of an epoch, and its data are the same for any number of workers.
"""

import hashlib

import numpy as np


def key(seed: int, purpose: str, *numbers: int) -> int:
    """Return a 63-bit hash of the arguments, the same on every machine and in every process."""
    text = f"{seed}/{purpose}/" + "/".join(str(number) for number in numbers)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """Return a NumPy generator that is seeded with all arguments, such as ``generator(seed, "epoch", 3)``.

    Each purpose and each tuple of numbers has its own independent stream.
    """
    return np.random.Generator(np.random.Philox(key=key(seed, purpose, *numbers)))


def random_bits(keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return 64 random bits for each key and number (both uint64, of shapes that broadcast), by SplitMix64.

    The numbers 0, 1, 2, … give an independent stream for each key. Unlike generators, this needs no Python object for
    each key, and results can be the keys of further streams.
    """
    bits = keys + (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return bits
