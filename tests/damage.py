"""Flipped bits, as a bad disk or memory leaves them."""

from collections.abc import Callable, Iterable
from pathlib import Path

from mt.core.errors import InputError


def assert_each_flipped_bit_is_named(
    path: Path, read: Callable[[], object], positions: Iterable[int] | None = None
) -> None:
    """Flip each bit of a file by itself, or only those of the bytes at ``positions``.

    ``read`` must raise an InputError that names the file, and must not once the bit is flipped back.
    """
    content = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for position in range(len(content)) if positions is None else positions:
            for bit in range(8):
                file.seek(position)
                file.write(bytes([content[position] ^ 1 << bit]))
                try:
                    read()
                except InputError as error:
                    assert path.name in str(error)
                else:
                    raise AssertionError(f"bit {bit} of byte {position} is not noticed: {content[:position]!r}")
            file.seek(position)
            file.write(content[position : position + 1])
    read()
