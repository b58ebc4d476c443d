"""Flipped bits, as a bad disk or memory leaves them."""

from collections.abc import Callable, Iterable
from pathlib import Path

from mt.core.errors import InputError


def assert_each_flipped_bit_is_named(
    path: Path, read: Callable[[], object], places: Iterable[int] | None = None
) -> None:
    """Flips each bit of a file by itself, or only those of the bytes at ``places``: ``read`` must raise an InputError
    that names the file, and must not once the bit is flipped back."""
    content = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for place in range(len(content)) if places is None else places:
            for bit in range(8):
                file.seek(place)
                file.write(bytes([content[place] ^ 1 << bit]))
                try:
                    read()
                except InputError as error:
                    assert path.name in str(error)
                else:
                    raise AssertionError(f"bit {bit} of byte {place} is not noticed: {content[:place]!r}")
            file.seek(place)
            file.write(content[place : place + 1])
    read()
