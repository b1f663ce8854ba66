"""Streams of archives that are not trusted: what one may read of them has a bound.

A few octets can stand for any number of them. A stream gives as many as a real archive of its size can
hold, and no piece is larger than the header of a file may be.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tarfile
import zlib
from typing import IO, Any, cast

LARGEST_PIECE = 1 << 20
"""Octets of one read: the headers that tarfile reads at once, which hold names and attributes."""
FLOOR, RATIO = 256 << 20, 100
"""Octets that a stream may always have, and how many for each stored one. Files compress 2 to 10 times;
zeros more than 1,000 times."""
BROKEN = (
    tarfile.TarError, EOFError, OSError, ValueError, lzma.LZMAError, zlib.error, MemoryError, OverflowError,
    RecursionError, AttributeError,
)  # fmt: skip
"""What a damaged archive raises while it is read."""


class TooLarge(ValueError):
    """A stream has more octets than it may have."""


class Bounded:
    """A stream for tarfile, decompressed."""

    def __init__(self, file: IO[bytes]) -> None:
        """Takes a stored file over; its first octets show the compression."""
        self._file = file
        stored = file.seek(0, os.SEEK_END)
        file.seek(0)
        self._stream, self._packed = _plain(file)
        self._most = max(FLOOR, RATIO * stored)
        self._at = self._highest = 0

    def read(self, most: int = -1) -> bytes:
        """Reads octets."""
        if most < 0 or most > LARGEST_PIECE:
            raise TooLarge(f"a part of it is larger than {LARGEST_PIECE:,} octets")
        octets = self._stream.read(most)
        self._at += len(octets)
        self._highest = max(self._highest, self._at)
        if self._highest > self._most:
            raise TooLarge("it has far more octets than an image of its size")
        return octets

    def tell(self) -> int:
        """Returns the position."""
        return self._at

    def seek(self, at: int, whence: int = os.SEEK_SET) -> int:
        """Goes to a position from the start."""
        if whence != os.SEEK_SET:
            raise ValueError("positions count from the start")
        if not self._packed:
            self._at = self._stream.seek(at)
            return self._at
        if at < self._at:
            self._stream.seek(0)
            self._at = 0
        while self._at < at and self.read(min(LARGEST_PIECE, at - self._at)):
            pass
        return self._at

    def seekable(self) -> bool:
        """True."""
        return True

    def readable(self) -> bool:
        """True."""
        return True

    def close(self) -> None:
        """Closes the stored file."""
        self._file.close()


def _plain(file: IO[bytes]) -> tuple[IO[bytes], bool]:
    """Returns a stream decompressed, and whether it was compressed."""
    head = file.read(6)
    file.seek(0)
    if head[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.GzipFile(fileobj=file)), True
    if head[:4] == b"\x28\xb5\x2f\xfd":
        return cast(IO[bytes], _Zstandard(file)), True
    if head[:6] == b"\xfd7zXZ\0":
        return cast(IO[bytes], lzma.LZMAFile(file)), True
    if head[:3] == b"BZh":
        return cast(IO[bytes], bz2.BZ2File(file)), True
    return file, False


class _Zstandard:
    """A zstd stream that can begin again."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._stream: Any = None
        self.seek(0)

    def read(self, most: int) -> bytes:
        octets: bytes = self._stream.read(most)
        return octets

    def seek(self, at: int) -> int:
        import pyarrow

        assert at == 0
        self._file.seek(0)
        self._stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(self._file), "zstd")
        return 0
