"""The temporary folder in which the processes of one API write their metrics, locked by their parent.

NOTE: not in DATA_DIR. The files are mapped into memory, and a write to one on a full disk kills the process.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shared.servers.file_lock import FileLock

_PREFIX = "ledgerline-metrics-"
_LOCK = "lock"


@contextmanager
def opened() -> Iterator[str]:
    """A new folder, removed when the block ends. First removes the folders of killed processes."""
    _remove_leftovers(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        unlocked = Path(name) / "unlocked"
        lock = FileLock(unlocked)
        lock.take()
        unlocked.rename(unlocked.with_name(_LOCK))  # from now on the folder counts as left over once the lock is free
        try:
            yield name
        finally:
            lock.close()


def _remove_leftovers(place: Path) -> None:
    for folder in place.glob(f"{_PREFIX}*"):
        try:
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or not (folder / _LOCK).exists():
                continue  # not ours: the place is open to all users
            lock = FileLock(folder / _LOCK)
        except FileNotFoundError:  # another process is removing it
            continue
        if lock.take():
            shutil.rmtree(folder, ignore_errors=True)
        lock.close()
