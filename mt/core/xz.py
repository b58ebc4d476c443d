"""Reads .xz files, and reports damage behind the first stream.

Python's own ``lzma.open`` silently ignores everything after the last valid stream, so half of a file that was
concatenated from several could be missing unnoticed.
"""

import io
import lzma
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAGIC = b"\xfd7zXZ\0"
"""The bytes that every stream begins with."""
READ_BYTES = 1 << 20
"""Number of bytes that are read at a time."""


class XzReader(io.RawIOBase):
    """A readable stream of the decompressed content of an .xz file, which may consist of several streams with padding.

    Reading raises EOFError if the file is cut short, and ``lzma.LZMAError`` if it is damaged or if something else
    follows a stream.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file  # closed together with this reader
        self._decompressor = lzma.LZMADecompressor()
        self._compressed = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        while not self._decompressor.eof or self._begin_next_stream():
            if self._decompressor.needs_input and not self._compressed:
                self._compressed = self._file.read(READ_BYTES)
                if not self._compressed:
                    raise EOFError("it ends in the middle of a compressed stream")
            compressed, self._compressed = self._compressed, b""
            if content := self._decompressor.decompress(compressed, len(view)):
                view[: len(content)] = content
                return len(content)
        return 0

    def close(self) -> None:
        self._file.close()
        super().close()

    def _begin_next_stream(self) -> bool:
        """Skip padding and begin the next stream. Return False if the file ends instead."""
        rest = self._decompressor.unused_data
        padding = 0
        while True:
            stream = rest.lstrip(b"\0")
            padding += len(rest) - len(stream)
            if stream or not (rest := self._file.read(READ_BYTES)):
                break
        # What has been read so far may end in the middle of the magic bytes.
        stream += self._file.read(len(MAGIC)) if stream else b""
        if padding % 4 or not MAGIC.startswith(stream[: len(MAGIC)]):
            raise lzma.LZMAError("its compressed data is followed by something else")
        if stream:
            self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
            self._compressed = stream
        return bool(stream)
