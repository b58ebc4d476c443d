"""No line of an .xz file gets lost without an error."""

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
    ("content", "message"),
    [
        *((FIRST + rest, "its compressed data is followed by something else") for rest in (
            b"garbage" * 10_000, b"\0" * 4 + SECOND, b"\0" * 10**6, SECOND[:5] + b"x" + SECOND[6:])),
        *((content, "Compressed file ended before the end-of-stream marker was reached") for content in (
            FIRST[:-1], FIRST[:3], b"", FIRST + SECOND[:1], FIRST + SECOND[:-5])),
        *((content, "") for content in (FIRST + b"g", FIRST + SECOND[:200] + b"\xff" * 4 + SECOND[204:])),
        (b"no xz at all, but text", "Input format not supported by decoder"),
        (FIRST[:20] + b"\xff" * 4 + FIRST[24:], "Corrupt input data"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(tmp_path, content, message):
    (tmp_path / "a.xz").write_bytes(content)
    with pytest.raises(InputError, match=rf"a\.xz: cannot be read: {message}.*; get a new copy of the file"):
        list(read_lines(tmp_path / "a.xz"))
