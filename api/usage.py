"""The spool: where a process writes down each request it answers for a credential, before the answer leaves.

A spool is a file of records in DATA_DIR/usage, locked by the process that writes it. `api/batches.py` sees to it that
they come into the table; a spool whose process is dead is taken over by any other on the machine.
"""

import binascii
import fcntl
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import msgspec
import structlog
from prometheus_client import Counter

from api import errors

log = structlog.get_logger()

ROLL_OVER_BYTES = 8 * 1024**2
"""The size at which a process begins a new spool, so that added records leave the disk."""

MOST_WAITING_BYTES = 1024**3
"""How much one process may have waiting, 33 million records, before it refuses requests that it can't count."""

RECORD = struct.Struct("<16sQIHH")  # credential_id, time in us since 1970, took_us, status, CRC-16 of the rest
_CRC = struct.Struct("<H")
_HEAD_BYTES = RECORD.size - _CRC.size
_MOST_US = 2**32 - 1

_unrecorded = Counter("ledgerline_usage_unrecorded", "Requests refused because they could not be counted.")


class Record(msgspec.Struct, frozen=True):
    """One answered request."""

    credential_id: bytes  # of the UUID
    at_us: int
    took_us: int
    status: int


class Spool:
    """One file of records. Its name and a record's offset in it are for ever the same record."""

    def __init__(self, path: Path, file: int) -> None:
        self.path, self._file = path, file
        size_bytes = os.fstat(file).st_size
        self.size_bytes = size_bytes - size_bytes % RECORD.size  # what is beyond broke off with the machine's power
        self.added_bytes = 0  # of which this much is known to be in the table

    @classmethod
    def create(cls, folder: Path) -> "Spool":
        """A new, empty one. Raises OSError."""
        path = folder / f"{uuid4().hex}.spool"
        unlocked = path.with_suffix(".new")  # a name that nobody takes over
        file = _locked(unlocked, os.O_CREAT | os.O_EXCL)
        unlocked.rename(path)
        return cls(path, file)

    @classmethod
    def take_over(cls, path: Path) -> "Spool | None":
        """One that a dead process left; None while its process lives, or where another was faster."""
        try:
            return cls(path, _locked(path, 0))
        except (BlockingIOError, FileNotFoundError):
            return None

    @property
    def name(self) -> str:
        """What it is called in the names of its batches."""
        return self.path.stem

    @property
    def waiting_bytes(self) -> int:
        """How much of it is not known to be in the table."""
        return self.size_bytes - self.added_bytes

    def append(self, record: bytes) -> None:
        """Write one record; it outlives this process from here on. Raises OSError, and leaves no part of it then."""
        written = 0
        try:
            written = os.pwrite(self._file, record, self.size_bytes)
        finally:
            if 0 < written < len(record):
                os.ftruncate(self._file, self.size_bytes)
        if written < len(record):
            raise OSError("no space left for a whole record")
        self.size_bytes += written

    def sync(self) -> None:
        """Let what is written outlive the machine's power, too."""
        os.fdatasync(self._file)

    def records(self, offset: int, end: int) -> Iterator[Record]:
        """The records between two offsets. What is no record (a disk's fault) is passed over and logged."""
        data = os.pread(self._file, end - offset, offset)
        whole = data[: len(data) - len(data) % RECORD.size]
        for position, (*fields, crc) in zip(range(0, len(whole), RECORD.size), RECORD.iter_unpack(whole), strict=True):
            if crc == binascii.crc_hqx(whole[position : position + _HEAD_BYTES], 0):
                yield Record(*fields)
            else:
                log.error("usage.damaged_record", spool=self.name, offset=offset + position)

    def delete(self) -> None:
        """Remove the file: all of it is in the table."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Leave the file to whoever takes it over."""
        os.close(self._file)


class Spools:
    """The spools of this process: the one that it writes, and those that wait until they are in the table."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._current = Spool.create(folder)
        self.rolled_over: list[Spool] = []
        self.fault: str | None = None  # why requests are refused at the moment

    @property
    def all(self) -> list[Spool]:
        """Oldest first."""
        return [*self.rolled_over, self._current]

    def count(self, credential_id: UUID, status: int, took_s: float) -> None:
        """Write down that a request is about to be answered. Raises Refusal where it can't be."""
        at_us = time.time_ns() // 1000
        head = RECORD.pack(credential_id.bytes, at_us, min(int(took_s * 1e6), _MOST_US), status, 0)[:_HEAD_BYTES]
        try:
            self._make_room()
            self._current.append(head + _CRC.pack(binascii.crc_hqx(head, 0)))
        except OSError as cause:
            if self.fault is None:
                log.error("usage.not_recorded", folder=str(self._folder), cause=str(cause))
            self.fault = str(cause)
            _unrecorded.inc()
            raise errors.usage_not_recorded() from cause
        if self.fault is not None:
            log.info("usage.recorded_again", folder=str(self._folder))
            self.fault = None

    def take_over(self) -> None:
        """Adopt what dead processes of this machine left in the folder. Raises OSError."""
        own = {spool.path for spool in self.all}
        for path in self._folder.glob("*.spool"):
            if path not in own and (spool := Spool.take_over(path)) is not None:
                log.info("usage.taken_over", spool=spool.name, bytes=spool.size_bytes)
                self.rolled_over.append(spool)

    def drop(self, spool: Spool) -> None:
        """Delete one that is in the table from end to end."""
        self.rolled_over.remove(spool)
        spool.delete()

    def close(self) -> None:
        """Write no more; what is left is for whoever takes it over."""
        for spool in self.all:
            if spool.size_bytes:
                spool.close()
            else:
                spool.delete()

    def roll_over(self) -> None:
        """Begin a new spool. Raises OSError where there is no room for one, and goes on with the old one then."""
        current = Spool.create(self._folder)
        self.rolled_over.append(self._current)
        self._current = current

    def _make_room(self) -> None:
        if self._current.size_bytes >= ROLL_OVER_BYTES:
            if sum(spool.waiting_bytes for spool in self.all) >= MOST_WAITING_BYTES:
                raise OSError(f"{MOST_WAITING_BYTES} bytes wait for the usage aggregator")
            self.roll_over()


def _locked(path: Path, flags: int) -> int:
    """Open a file that this process alone may use; the lock ends with the process, however that ends."""
    file = os.open(path, os.O_RDWR | flags, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file
