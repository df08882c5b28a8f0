"""Locks between processes. The kernel drops one when its process ends, in whatever way."""

import fcntl
import os
from pathlib import Path

from shared.account import leave_to_owner


class FileLock:
    """A lock on one file, made if it is missing; held by many at a time or by one alone."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        leave_to_owner(path)

    def share(self) -> bool:
        """Hold it together with others; False where one holds it alone."""
        return self._lock(fcntl.LOCK_SH)

    def take(self) -> bool:
        """Hold it alone; False where somebody else holds it, and then the share that this one had is lost."""
        return self._lock(fcntl.LOCK_EX)

    def release(self) -> None:
        """Hold it no longer."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release it for good."""
        os.close(self._file)

    def _lock(self, kind: int) -> bool:
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
