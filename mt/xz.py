"""Reading .xz files to their very end.

Python's own ``lzma.open`` takes whatever stands behind the last stream, or behind stream padding, for nothing: half of
a file that was joined from several would be missing without a word.
"""

import io
import lzma
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAGIC = b"\xfd7zXZ\0"
"""What every stream begins with."""
BLOCK = 1 << 20
"""Bytes that are read at once."""


class XzReader(io.RawIOBase):
    """The content of all streams of a file, one behind the other, with or without padding (zeros, four at a time).

    Reading raises EOFError if the file is cut short, and ``lzma.LZMAError`` if it is damaged or holds something else
    behind a stream.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file  # closed together with this
        self._decompressor = lzma.LZMADecompressor()
        self._compressed = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        content = self._read_some(len(view))
        view[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()

    def _read_some(self, size: int) -> bytes:
        """1 to ``size`` bytes; none at the end of the last stream."""
        while True:
            if self._decompressor.eof and not self._begin_next_stream():
                return b""
            if self._decompressor.needs_input and not self._compressed:
                self._compressed = self._file.read(BLOCK)
                if not self._compressed:
                    raise EOFError("it ends in the middle of a compressed stream")
            compressed, self._compressed = self._compressed, b""
            if content := self._decompressor.decompress(compressed, size):
                return content

    def _begin_next_stream(self) -> bool:
        """Skips padding; False at the end of the file."""
        rest = self._decompressor.unused_data
        padding = 0
        while True:
            stream = rest.lstrip(b"\0")
            padding += len(rest) - len(stream)
            if stream or not (rest := self._file.read(BLOCK)):
                break
        # The first bytes of a stream may be the last of what has been read so far.
        stream += self._file.read(len(MAGIC)) if stream else b""
        if padding % 4 or not MAGIC.startswith(stream[: len(MAGIC)]):
            raise lzma.LZMAError("there is something else behind its compressed data")
        if stream:
            self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
            self._compressed = stream
        return bool(stream)
