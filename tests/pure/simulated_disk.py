"""A disk in memory that replaces `api.usage.disk`: a power loss loses, tears, zeroes and reorders unsynced writes."""

import errno
import math
import random
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

_CHUNK_BYTES = 24  # not a divisor of a record's size, so that writes tear anywhere


class Killed(BaseException):
    """The process ends here, between two calls to the disk or during one."""


class _File:
    """A file as seen by processes, as stored on the disk, and its unsynced bytes."""

    def __init__(self) -> None:
        self.seen, self.safe = bytearray(), bytearray()
        self.under_way: list[tuple[int, bytes]] = []
        self.names = 0
        self.locked_by: int | None = None


class SimulatedDisk:
    """Every function of `api.usage.disk`. `process` is the caller, `fault_chance` the chance of an error or a kill."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.fault_chance, self.process = chance, 0.0, 0
        self.meanwhile: Callable[[], None] = lambda: None  # may happen during a sync
        self._seen: dict[Path, _File] = {}
        self._safe: dict[Path, _File] = {}
        self._under_way: list[tuple[Path | None, Path | None, _File]] = []  # old and new name
        self._open: dict[int, tuple[int, _File]] = {}
        self._numbers = count(3)

    def create(self, path: Path) -> int:
        self._may_fail(errno.ENOSPC)
        assert path not in self._seen
        file = _File()
        self._name(None, path, file)
        return self._opened(file)

    def open_locked(self, path: Path) -> int:
        self._may_fail(errno.EMFILE)
        file = self._found(path)
        if file.locked_by is not None:
            raise BlockingIOError
        return self._opened(file)

    def size_bytes(self, file: int) -> int:
        return len(self._open[file][1].seen)

    def age_s(self, _path: Path) -> float:
        return math.inf  # a killed process left it long ago

    def is_linked(self, file: int) -> bool:
        return self._open[file][1].names > 0

    def read(self, file: int, offset: int, max_bytes: int) -> bytes:
        self._may_fail(errno.EIO)
        return bytes(self._open[file][1].seen[offset : offset + max_bytes])

    def write(self, file: int, data: bytes, offset: int) -> None:
        self._may_fail(errno.ENOSPC)
        inside = self._open[file][1]
        _put(inside.seen, offset, data)
        inside.under_way.append((offset, data))
        self._may_be_killed()

    def sync(self, file: int) -> None:
        inside = self._open[file][1]
        try:
            self._may_fail(errno.EIO)
        except OSError:
            inside.under_way.clear()  # as Linux does: it reports the error once, and does not retry
            raise
        ordered = len(inside.under_way)
        self.meanwhile()
        for offset, data in inside.under_way[:ordered]:
            _put(inside.safe, offset, data)
        del inside.under_way[:ordered]
        self._may_be_killed()

    def sync_names(self, _folder: Path) -> None:
        self._may_fail(errno.EIO)
        self._safe = dict(self._seen)
        self._under_way.clear()
        self._may_be_killed()

    def names(self, _folder: Path) -> list[Path]:
        return list(self._seen)

    def rename(self, path: Path, new: Path) -> None:
        self._may_fail(errno.EIO)
        self._name(path, new, self._found(path))
        self._may_be_killed()

    def remove(self, path: Path) -> None:
        if path in self._seen:
            self._name(path, None, self._seen[path])
        self._may_be_killed()

    def close(self, file: int) -> None:
        self._open.pop(file)[1].locked_by = None

    def end_process(self, process: int) -> None:
        """End a killed process: its locks are released, and its writes stay visible."""
        for number in [number for number, (whose, _) in self._open.items() if whose == process]:
            self.close(number)

    def lose_power(self) -> None:
        """End every process, and keep a random part of the unsynced writes."""
        for number in list(self._open):
            self.close(number)
        for path, new, file in self._under_way:
            if self.chance.random() < 0.5 and (path is None or self._safe.get(path) is file):
                if path is not None:
                    del self._safe[path]
                if new is not None:
                    self._safe[new] = file
        remains = b"".join(bytes(file.seen) for file in self._seen.values())
        for file in {id(file): file for file in (*self._seen.values(), *self._safe.values())}.values():
            self._tear(file, remains)
            file.names = 0
        for file in self._safe.values():
            file.names += 1
        self._seen = dict(self._safe)
        self._under_way.clear()

    def _tear(self, file: _File, remains: bytes) -> None:
        chunks = [chunk for written in file.under_way for chunk in _chunks(*written)]
        self.chance.shuffle(chunks)
        already_bytes = len(file.safe)
        for offset, data in chunks:
            # Overwritten bytes are either old or new; only new blocks may have other content.
            fates = ["written", "written", "lost"] + ["zeroed", "remains"] * (offset >= already_bytes)
            match self.chance.choice(fates):
                case "written":
                    _put(file.safe, offset, data)
                case "zeroed":
                    _put(file.safe, offset, bytes(len(data)))
                case "remains":  # old bytes of another file in that place on the disk
                    _put(file.safe, offset, remains[offset : offset + len(data)])
        file.seen = bytearray(file.safe)
        file.under_way.clear()

    def _opened(self, file: _File) -> int:
        file.locked_by = self.process
        number = next(self._numbers)
        self._open[number] = self.process, file
        return number

    def _found(self, path: Path) -> _File:
        if path not in self._seen:
            raise FileNotFoundError(path)
        return self._seen[path]

    def _name(self, path: Path | None, new: Path | None, file: _File) -> None:
        if path is not None:
            del self._seen[path]
        if new is not None:
            self._seen[new] = file
        file.names += (new is not None) - (path is not None)
        self._under_way.append((path, new, file))

    def _may_fail(self, number: int) -> None:
        self._may_be_killed()
        if self.chance.random() < self.fault_chance:
            raise OSError(number, "simulated")

    def _may_be_killed(self) -> None:
        if self.chance.random() < self.fault_chance / 2:
            raise Killed


def _put(data: bytearray, offset: int, new: bytes) -> None:
    """Write, after zeros if the file is shorter."""
    data.extend(bytes(max(offset - len(data), 0)))
    data[offset : offset + len(new)] = new


def _chunks(offset: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    for begin in range(0, len(data), _CHUNK_BYTES):
        yield offset + begin, data[begin : begin + _CHUNK_BYTES]
