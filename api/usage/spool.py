"""The spool: before it sends an answer, a process records the request of an API key here.

A spool is a file of records in DATA_DIR/usage, locked by the process that writes it. `api/usage/queue.py` queues
their sums, which the aggregator adds to the usage tables. The spool of a dead process is taken over by another one on
the machine, which adds no records to it. What a spool guarantees: docs/decisions/0016-what-a-spool-promises.md.
"""

import binascii
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

import msgspec
import structlog
from prometheus_client import Counter

from api import errors
from api.sources import clock
from api.usage import disk

log = structlog.get_logger()

ROLL_OVER_BYTES = 8 * 1024**2
"""The size at which a process begins a new spool, so that the full one can be deleted once its records are added."""

MAX_WAITING_BYTES = 1024**3
"""The limit of a process' records that are not in the usage tables, 28 million: above it, requests are refused."""

RECORD = struct.Struct("<16sQIHII")  # credential_id, time in us since 1970, took_us, status, endpoint, checksum
_CHECKSUM = struct.Struct("<I")
_HEAD_BYTES = RECORD.size - _CHECKSUM.size
_MAX_US = 2**32 - 1

_MAGIC = b"ledgerlineusage\2"
HEADER_BYTES = len(_MAGIC) + 16
"""The header of a file: _MAGIC and the UUID that is its name. Offsets of records count from its end."""

_SUFFIX = ".spool"
_UNFINISHED, _UNFINISHED_FOR_S = ".new", 60.0

_unrecorded = Counter("ledgerline_usage_unrecorded", "Requests refused because they could not be counted.")


_EVENTS, _STREAM_MINUTES = 0, 1
"""In place of a status: the record is not a request but says, in place of `took_us`, how many events were delivered, or
for how many further minutes a stream is open."""


class Record(msgspec.Struct, frozen=True):
    """One answered request, the events that were delivered at once, or further minutes of a stream."""

    credential_id: bytes  # of the UUID
    at_us: int
    took_us: int
    status: int
    endpoint: int  # api.route.Route.number

    @property
    def is_request(self) -> bool:
        """Whether it is a request."""
        return self.status not in (_EVENTS, _STREAM_MINUTES)

    @property
    def events(self) -> int:
        """How many events were delivered."""
        return self.took_us if self.status == _EVENTS else 0

    @property
    def stream_minutes(self) -> int:
        """How many minutes of a stream have begun."""
        return self.took_us if self.status == _STREAM_MINUTES else 0


class Spool:
    """One file of records. Its name and an offset always identify the same record."""

    def __init__(self, path: Path, file: int) -> None:
        """`file` is open. Raises OSError if it is not a spool."""
        self.path, self._file = path, file
        header = _header_of(path)
        begin = disk.read(file, 0, HEADER_BYTES)
        # NOTE: after a power failure unsynced parts may be missing or zero, including those of the header.
        if any(byte not in (0, expected) for byte, expected in zip(begin, header, strict=False)):
            raise OSError("not a spool of this version and name")
        self._seed = binascii.crc32(header)
        size_bytes = max(disk.size_bytes(file) - HEADER_BYTES, 0)
        self.size_bytes = size_bytes - size_bytes % RECORD.size  # the rest was torn by a power failure
        self.synced_bytes = 0  # the part that is known to survive a power failure
        self.added_bytes = 0  # the part that was in the usage tables at the last look
        self.reported_bytes = 0  # up to here, lost records have been counted
        self._in_doubt = True  # whether a sync may have failed, even in the process before this one

    @classmethod
    def create(cls, folder: Path) -> "Spool":
        """A new, empty spool. Raises OSError."""
        path = folder / f"{uuid4().hex}{_SUFFIX}"
        unlocked = path.with_suffix(_UNFINISHED)  # a name that no process takes over
        file = disk.create(unlocked)
        try:
            disk.write(file, _header_of(path), 0)
            disk.rename(unlocked, path)
        except OSError:
            disk.close(file)
            disk.remove(unlocked)
            raise
        return cls(path, file)

    @classmethod
    def take_over(cls, path: Path) -> "Spool | None":
        """The spool of a dead process; None if its process lives or another one has taken it over.

        Raises OSError if it can't be read or is not a spool.
        """
        return cls._opened(path, disk.open_locked)

    @classmethod
    def look_at(cls, path: Path) -> "Spool | None":
        """Any spool, only for reading; None if it was removed meanwhile. Raises OSError like `take_over`."""
        return cls._opened(path, disk.open_to_read)

    @classmethod
    def _opened(cls, path: Path, open_file: Callable[[Path], int]) -> "Spool | None":
        try:
            file = open_file(path)
        except (BlockingIOError, FileNotFoundError):
            return None
        try:
            if disk.is_linked(file):
                return cls(path, file)
        except OSError:
            disk.close(file)
            raise
        disk.close(file)  # its process has just removed it
        return None

    @property
    def name(self) -> str:
        """The name of the spool, by which its batches and its mark refer to it."""
        return self.path.stem

    @property
    def waiting_bytes(self) -> int:
        """The bytes that are not known to be in the usage tables."""
        return max(self.size_bytes - self.added_bytes, 0)

    @property
    def is_whole(self) -> bool:
        """False if the file was truncated or removed, so that another process would not find all records."""
        return disk.is_linked(self._file) and disk.size_bytes(self._file) >= HEADER_BYTES + self.size_bytes

    def append(self, *heads: bytes) -> None:
        """Append records, which then survive a crash of the process. On OSError nothing is appended."""
        offsets = range(self.size_bytes, self.size_bytes + len(heads) * RECORD.size, RECORD.size)
        records = [
            head + _CHECKSUM.pack(self._checksum(head, offset)) for head, offset in zip(heads, offsets, strict=True)
        ]
        disk.write(self._file, b"".join(records), HEADER_BYTES + self.size_bytes)
        self.size_bytes += len(heads) * RECORD.size

    def sync(self) -> None:
        """Make all records and the file's name survive a power failure. Raises OSError."""
        size_bytes = self.size_bytes  # NOTE: read before the sync, since records are appended meanwhile
        if size_bytes == self.synced_bytes:
            return
        if self._in_doubt:
            # NOTE: Linux reports a failed write once, and never to a process that opens the file later.
            begin = 0 if self.synced_bytes == 0 else HEADER_BYTES + self.synced_bytes
            disk.write(self._file, disk.read(self._file, begin, HEADER_BYTES + size_bytes - begin), begin)
        self._in_doubt = True
        disk.sync(self._file)
        if self.synced_bytes == 0:
            disk.sync_names(self.path.parent)
        self._in_doubt, self.synced_bytes = False, size_bytes

    def records(self, offset: int, end: int) -> Iterator[Record]:
        """The records between two offsets, without those that the disk has damaged."""
        data = disk.read(self._file, HEADER_BYTES + offset, end - offset)
        whole = data[: len(data) - len(data) % RECORD.size]
        for position, (*fields, checksum) in zip(
            range(0, len(whole), RECORD.size), RECORD.iter_unpack(whole), strict=True
        ):
            head = whole[position : position + _HEAD_BYTES]
            # NOTE: zeros are not a record, even if the checksum of zeros is zero.
            if any(head) and checksum == self._checksum(head, offset + position):
                yield Record(*fields)

    def delete(self) -> None:
        """Remove the file: all its records are in the usage tables."""
        disk.remove(self.path)
        disk.sync_names(self.path.parent)
        self.close()

    def close(self) -> None:
        """Close the file; another process may take it over."""
        disk.close(self._file)

    def _checksum(self, head: bytes, offset: int) -> int:
        """Covers name and offset: after a power failure a disk may return remains of another spool."""
        return binascii.crc32(head, (self._seed + offset) & 0xFFFFFFFF)


class Spools:
    """The spools of this process: the current one, and full or inherited ones until they are safe in the tables."""

    def __init__(
        self, folder: Path, *, roll_over_bytes: int = ROLL_OVER_BYTES, max_waiting_bytes: int = MAX_WAITING_BYTES
    ) -> None:
        self.folder = folder
        self._roll_over_bytes, self._max_waiting_bytes = roll_over_bytes, max_waiting_bytes
        folder.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(folder)
        self._current = Spool.create(folder)
        self.former: list[Spool] = []
        self.fault: str | None = None  # why requests are refused now
        self.looked_at = time.monotonic()  # when a look at the queue and the usage tables last succeeded
        self.unusable: dict[Path, str] = {}  # files that could not be used at the last look, with the reasons

    @property
    def all(self) -> list[Spool]:
        """All spools, oldest first."""
        return [*self.former, self._current]

    def count(self, credential_id: UUID, endpoint: int, status: int, took_s: float, events: int = 0) -> None:
        """Record a request that is about to be answered, and the events in it. Raises Refusal if that fails."""
        took_us = min(int(took_s * 1e6), _MAX_US)
        self._record(credential_id, endpoint, [(took_us, status), *([(events, _EVENTS)] if events else [])])

    def count_streamed(self, credential_id: UUID, endpoint: int, events: int, minutes: int) -> None:
        """Record events that are about to be sent in a stream, and minutes of it that have begun.

        Raises Refusal if that fails.
        """
        counted = [each for each in ((events, _EVENTS), (minutes, _STREAM_MINUTES)) if each[0]]
        if counted:
            self._record(credential_id, endpoint, counted)

    def _record(self, credential_id: UUID, endpoint: int, values: Sequence[tuple[int, int]]) -> None:
        at_us = clock.now_us()
        heads = [RECORD.pack(credential_id.bytes, at_us, *each, endpoint, 0)[:_HEAD_BYTES] for each in values]
        try:
            self._make_room()
            self._current.append(*heads)
        except OSError as cause:
            if self.fault is None:
                log.error("usage.not_recorded", folder=str(self.folder), cause=str(cause))
            self.fault = str(cause)
            _unrecorded.inc()
            raise errors.usage_not_recorded() from cause
        if self.fault is not None:
            log.info("usage.recorded_again", folder=str(self.folder))
            self.fault = None

    def take_over(self) -> dict[Path, str]:
        """Take over the spools of dead processes of this machine; returns unreadable files and why."""
        own, unusable = {spool.path for spool in self.all}, {}
        try:
            paths = [path for path in spools_in(self.folder) if path not in own]
        except OSError as cause:
            return {self.folder: str(cause)}
        for path in paths:
            try:
                spool = Spool.take_over(path)
            except OSError as cause:
                unusable[path] = str(cause)
            else:
                if spool is not None:
                    log.info("usage.taken_over", spool=spool.name, bytes=spool.size_bytes)
                    self.former.append(spool)
        return unusable

    def report_unusable(self, unusable: dict[Path, str]) -> None:
        """Remember which files can't be used now, and log the new ones."""
        for path in unusable.keys() - self.unusable.keys():
            log.error("usage.unusable", path=str(path), cause=unusable[path])
        self.unusable = unusable

    def replace_truncated(self) -> None:
        """Begin a new spool if the current one was truncated or removed: another process could not read all of it.

        Raises OSError if there is no room for one.
        """
        if not self._current.is_whole:
            log.error("usage.truncated", spool=self._current.name, bytes=self._current.size_bytes)
            self.roll_over()

    def drop(self, spool: Spool) -> None:
        """Delete a spool whose records are all in the usage tables. Raises OSError."""
        spool.delete()
        self.former.remove(spool)

    def close(self) -> None:
        """Close all spools; another process takes over the remaining records."""
        for spool in self.all:
            if not spool.size_bytes and spool.path not in self.unusable:
                with suppress(OSError):  # an empty file does no harm: it has no batches
                    disk.remove(spool.path)
            spool.close()

    def roll_over(self) -> None:
        """Begin a new spool. If there is no room for one, keeps the current one and raises OSError."""
        current = Spool.create(self.folder)
        self.former.append(self._current)
        self._current = current

    def _make_room(self) -> None:
        if self._current.size_bytes >= self._roll_over_bytes:
            if sum(spool.waiting_bytes for spool in self.all) >= self._max_waiting_bytes:
                raise OSError(f"{self._max_waiting_bytes} bytes wait for the usage aggregator")
            self.roll_over()


def spools_in(folder: Path) -> list[Path]:
    """The files of a folder that are named like spools. Raises OSError."""
    return [path for path in disk.names(folder) if path.suffix == _SUFFIX]


def _remove_unfinished(folder: Path) -> None:
    """Remove the files of processes that were killed while they made a spool. Raises OSError."""
    for path in disk.names(folder):
        # NOTE: a young one may be about to be locked by its process.
        if path.suffix == _UNFINISHED and disk.age_s(path) > _UNFINISHED_FOR_S:
            with suppress(OSError):  # another process removes it, too
                file = disk.open_locked(path)
                disk.remove(path)
                disk.close(file)


def _header_of(path: Path) -> bytes:
    """The header of a spool with that name. Raises OSError if it is not a spool's name."""
    try:
        return _MAGIC + UUID(hex=path.stem).bytes
    except ValueError as cause:
        raise OSError("not a spool's name") from cause
