"""No line of an .xz file of several streams gets lost without an error."""

import lzma

import pytest

from mt.core.errors import InputError
from mt.core.files import read_lines, read_start

FIRST, SECOND = lzma.compress(b"one\ntwo\n"), lzma.compress(b"three\n" * 10**6)


def test_all_streams_are_read(tmp_path):
    (tmp_path / "a.xz").write_bytes(FIRST + SECOND + FIRST)
    assert list(read_lines(tmp_path / "a.xz")) == [b"one", b"two", *[b"three"] * 10**6, b"one", b"two"]
    assert read_start(tmp_path / "a.xz").startswith(b"one\ntwo\nthree\n")


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (b"garbage" * 10_000, "its compressed data is followed by something else"),
        (b"\0" * 4 + SECOND, "its compressed data is followed by something else"),
        (b"\0" * 10**6, "its compressed data is followed by something else"),
        (SECOND[:5] + b"x" + SECOND[6:], "its compressed data is followed by something else"),
        (SECOND[:1], "Compressed file ended before the end-of-stream marker was reached"),
        (SECOND[:-5], "Compressed file ended before the end-of-stream marker was reached"),
        (SECOND[:200] + b"\xff" * 4 + SECOND[204:], ""),
    ],
)
def test_anything_else_behind_a_stream_is_refused(tmp_path, rest, message):
    (tmp_path / "a.xz").write_bytes(FIRST + rest)
    with pytest.raises(InputError, match=rf"a\.xz: cannot be read: {message}.*; get a new copy of the file"):
        list(read_lines(tmp_path / "a.xz"))
