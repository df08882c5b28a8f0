"""The disk operations of spools, and the guarantees of each after the end of a process or a power failure.

Every function raises OSError. Tests replace this module with a disk that loses, tears, zeroes and reorders unsynced
writes.
"""

import fcntl
import os
import stat
import time
from pathlib import Path


def create(path: Path) -> int:
    """A new file, locked as by `open_locked`."""
    return _lock(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def open_locked(path: Path) -> int:
    """Open a file for this process alone; the kernel releases the lock when the process ends.

    Raises BlockingIOError while another process has the lock.
    """
    return _lock(_open(path, os.O_RDWR))


def open_to_read(path: Path) -> int:
    """Open a file, locked or not."""
    return _open(path, os.O_RDONLY)


def size_bytes(file: int) -> int:
    """The length of a file."""
    return os.fstat(file).st_size


def age_s(path: Path) -> float:
    """The time since a file was written last; 0 if it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def is_linked(file: int) -> bool:
    """Whether a file still has a name, by which another process can find it."""
    return os.fstat(file).st_nlink > 0


def read(file: int, offset: int, max_bytes: int) -> bytes:
    """Up to `max_bytes`; fewer where the file ends."""
    return os.pread(file, max_bytes, offset)


def write(file: int, data: bytes, offset: int) -> None:
    """Write all of `data` at `offset`, or nothing. Written data survive a crash of the process."""
    written = 0
    try:
        written = os.pwrite(file, data, offset)
    finally:
        if 0 < written < len(data) and size_bytes(file) == offset + written:
            os.ftruncate(file, offset)
    if written < len(data):
        raise OSError("no space left for a whole record")


def sync(file: int) -> None:
    """Make written data survive a power failure."""
    os.fdatasync(file)


def sync_names(folder: Path) -> None:
    """Make created, renamed and removed names of a folder survive a power failure."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def names(folder: Path) -> list[Path]:
    """The paths in a folder."""
    return list(folder.iterdir())


def rename(path: Path, new: Path) -> None:
    """Rename a file; atomic, but durable only after `sync_names`."""
    path.rename(new)


def remove(path: Path) -> None:
    """Remove a file if it exists."""
    path.unlink(missing_ok=True)


def close(file: int) -> None:
    """Close a file and release its lock."""
    os.close(file)


def _open(path: Path, flags: int) -> int:
    file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)  # NOTE: opening a pipe of that name would block
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError("not a regular file")
    return file


def _lock(file: int) -> int:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file
