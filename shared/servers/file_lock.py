"""Locks between processes. The kernel releases a lock when its process ends, even by kill -9."""

import fcntl
import os
from pathlib import Path

from shared.servers.os_account import give_to_folder_owner


class FileLock:
    """A lock on one file, which is created if it is missing; shared by many processes or held by one."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        give_to_folder_owner(path)

    def share(self) -> bool:
        """Share the lock; False if another process holds it alone."""
        return self._lock(fcntl.LOCK_SH)

    def take(self) -> bool:
        """Hold the lock alone; False if another process holds or shares it. NOTE: on failure our own share is lost."""
        return self._lock(fcntl.LOCK_EX)

    def release(self) -> None:
        """Release the lock; it can be taken again."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def fileno(self) -> int:
        """Its descriptor. A process that inherits it holds the lock too, until both have ended."""
        return self._file

    def close(self) -> None:
        """Release the lock for good."""
        os.close(self._file)

    def _lock(self, kind: int) -> bool:
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
