"""Keyed random numbers: every draw depends on (seed, purpose, step or pair) alone, never on earlier draws.

Therefore a run can be resumed exactly in the middle of an epoch, and its data are the same for any number of workers.
"""

import hashlib

import numpy as np


def key(seed: int, purpose: str, *numbers: int) -> int:
    """Return a 63-bit key. Equal arguments give equal keys, on every machine and in every process."""
    text = f"{seed}/{purpose}/" + "/".join(str(number) for number in numbers)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """Return a random generator for one purpose alone, e.g. ``generator(seed, "epoch", 3)``."""
    return np.random.Generator(np.random.Philox(key=key(seed, purpose, *numbers)))


class Generators:
    """A random generator for many keys, one after another. Setting a key takes a tenth of the time that a new
    ``generator`` takes; the numbers are the same."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._seed = seed
        self._purpose = purpose
        self._bits = np.random.Philox(key=0)
        self._initial_state = self._bits.state
        self._generator = np.random.Generator(self._bits)

    def at(self, *numbers: int) -> np.random.Generator:
        """Return the generator as ``generator(seed, purpose, *numbers)`` would be. The next call changes it."""
        self._initial_state["state"]["key"][0] = key(self._seed, self._purpose, *numbers)
        self._bits.state = self._initial_state
        return self._generator
