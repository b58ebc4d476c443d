"""Files of several .xz streams are read whole, and nothing else behind a stream is passed over."""

import io
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.errors import InputError
from mt.core.files import open_input, read_lines
from mt.core.xz import READ_BYTES, XzReader

FIRST, SECOND = lzma.compress(b"one\ntwo\n"), lzma.compress(b"three\n")
PADDING = st.integers(0, 3).map(lambda count: b"\0" * 4 * count)


def read(path: Path, content: bytes) -> list[bytes]:
    path.write_bytes(content)
    return list(read_lines(path))


@given(
    contents=st.lists(st.binary(max_size=200), min_size=1, max_size=4),
    paddings=st.lists(PADDING, min_size=4, max_size=4),
    size=st.integers(1, 300),
)
def test_all_streams_are_read(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], paddings: list[bytes], size: int
) -> None:
    path = tmp_path_factory.mktemp("xz") / "a.xz"
    path.write_bytes(b"".join(lzma.compress(c) + p for c, p in zip(contents, paddings, strict=False)))
    with io.BufferedReader(XzReader(path.open("rb")), buffer_size=size) as stream:
        assert b"".join(iter(lambda: stream.read(size), b"")) == b"".join(contents)


@pytest.mark.parametrize("edge", range(-8, 9))
def test_a_stream_may_begin_anywhere_in_a_block(tmp_path: Path, edge: int) -> None:
    padding = b"\0" * ((READ_BYTES - len(FIRST)) // 4 * 4 + 4 * edge)
    assert read(tmp_path / "a.xz", FIRST + padding + SECOND) == [b"one", b"two", b"three"]


def test_content_of_many_blocks(tmp_path: Path) -> None:
    path = tmp_path / "a.xz"
    path.write_bytes(lzma.compress(b"line\n" * 10**6, preset=0) * 2)
    with open_input(path) as stream:
        assert sum(map(len, iter(lambda: stream.read(READ_BYTES), b""))) == 10**7


REFUSED = {
    "its compressed data is followed by something else": [
        FIRST + rest for rest in (
            b"g", b"garbage" * 100, b"\0", b"\0\0\0" + SECOND, b"\0" * 4 + b"x", b"\0" * READ_BYTES + b"x",
            SECOND + b"g")
    ],
    "it ends in the middle": [FIRST[:-1], FIRST[:3], b"", *(FIRST + SECOND[:end] for end in (-5, 1, 6))],
    "": [b"no xz at all, but text", FIRST[:20] + b"\xff" * 4 + FIRST[24:]],
}  # fmt: skip


@pytest.mark.parametrize(("told", "content"), [(told, each) for told, contents in REFUSED.items() for each in contents])
def test_what_is_no_whole_file_is_refused(tmp_path: Path, told: str, content: bytes) -> None:
    with pytest.raises(InputError, match=rf"a\.xz: cannot be read: {told}"):
        read(tmp_path / "a.xz", content)
