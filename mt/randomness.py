"""Keyed random numbers: every draw is a function of (seed, purpose, step or pair), never of what was drawn before.

That is what makes resuming in the middle of an epoch exact and keeps the data the same for any number of workers.
"""

import hashlib

import numpy as np


def key(seed: int, purpose: str, *numbers: int) -> int:
    """A 63-bit key: equal arguments give equal keys, on every machine and in every process."""
    text = f"{seed}/{purpose}/" + "/".join(str(number) for number in numbers)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """A generator of its own for one purpose, e.g. ``generator(seed, "epoch", 3)``."""
    return np.random.Generator(np.random.Philox(key=key(seed, purpose, *numbers)))
