"""The files of parts: rows in Postgres' binary format, compressed by zstd.

Decision 83 says what that costs.
"""

import asyncio
import hashlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from shared.copies import CopyRefused

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL = 1
_CHUNK_BYTES = 1 << 20


class PackedFile:
    """A file while it is written; then its size, and the checksums of its content before and after compression."""

    def __init__(self, path: Path) -> None:
        self._path, self._zstd = path, zstd.ZstdCompressor(level=_LEVEL)
        with writing(path):
            self._file = path.open("xb")
        self._rows, self._packed = hashlib.sha256(), hashlib.sha256()
        self.size_bytes = 0

    def add(self, rows: bytes) -> None:
        """Write the next rows."""
        self._rows.update(rows)
        self._write(self._zstd.compress(rows))

    def finish(self) -> None:
        """Write the rest, and sync it."""
        self._write(self._zstd.flush())
        with writing(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def sha256(self) -> str:
        """The checksum of the file."""
        return self._packed.hexdigest()

    @property
    def rows_sha256(self) -> str:
        """The checksum of the rows."""
        return self._rows.hexdigest()

    def _write(self, packed: bytes) -> None:
        self._packed.update(packed)
        self.size_bytes += len(packed)
        with writing(self._path):
            self._file.write(packed)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise CopyRefused if a file or a folder can't be written to."""
    try:
        yield
    except OSError as cause:
        raise CopyRefused(f"{path} can't be written to: {cause.strerror or cause}") from cause


async def copy_out(db: asyncpg.Connection, query: str, add: Callable[[bytes], None]) -> int:
    """Pass the rows of a query in Postgres' binary format, in chunks, to `add`, which runs in another thread. Returns
    their number.
    """
    waiting, waiting_bytes = list[bytes](), 0

    async def write(chunk: bytes) -> None:
        nonlocal waiting_bytes
        waiting.append(chunk)
        waiting_bytes += len(chunk)
        if waiting_bytes >= _CHUNK_BYTES:
            await flush()

    async def flush() -> None:
        nonlocal waiting_bytes
        joined = b"".join(waiting)
        waiting.clear()
        waiting_bytes = 0
        await asyncio.to_thread(add, joined)

    done: str = await db.copy_from_query(query, output=write, format="binary")
    await flush()
    return int(done.removeprefix("COPY "))


async def unpacked(path: Path, add: Callable[[int], None]) -> AsyncIterator[bytes]:
    """The rows in a file; `add` is called with numbers of compressed bytes."""
    with path.open("rb") as packed, zstd.open(packed) as rows:
        read = 0
        while chunk := await asyncio.to_thread(rows.read, _CHUNK_BYTES):
            yield chunk
            add(packed.tell() - read)
            read = packed.tell()
