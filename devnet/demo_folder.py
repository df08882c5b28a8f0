"""The folder of a demo, and the folders that killed demos left behind.

Two locks in the folder show which processes are alive. The demo holds `demo.kept`; the demo and its parts hold
`demo.held`. After a demo is killed, its parts end within seconds.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from shared.servers.file_lock import FileLock
from shared.servers.supervisor import SERVERS, supervisor_lock

_ENDED_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.1


class Folder:
    """A new folder in DATA_DIR. `held` is the lock that every part of the demo inherits."""

    def __init__(self, data_dir: Path) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="demo-", dir=data_dir))
        self.path.chmod(0o755)  # the folders in it that hold secrets have stricter modes
        self._kept, self.held = FileLock(self.path / "demo.kept"), FileLock(self.path / "demo.held")
        self._kept.take()
        self.held.take()

    def remove(self) -> None:
        """Remove the folder and its contents. No process may still be using it."""
        self._kept.close()
        self.held.close()
        _remove(self.path)


@asynccontextmanager
async def opened(data_dir: Path, leftover: Callable[[str], None]) -> AsyncIterator[Folder]:
    """Remove the folders of dead demos, then yield a new one, which is removed at the end.

    `leftover` gets a line about each dead demo. Raises OSError if DATA_DIR can't be used.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    one_at_a_time = FileLock(data_dir / "demos.kept")
    try:
        while not one_at_a_time.take():
            await asyncio.sleep(_LOOK_EVERY_S)
        for dead in sorted(data_dir.glob("demo-*")):
            await _clear(dead, leftover)
        folder = Folder(data_dir)
    finally:
        one_at_a_time.close()
    try:
        yield folder
    finally:
        folder.remove()


async def _clear(path: Path, leftover: Callable[[str], None]) -> None:
    """Remove the folder of a dead demo once its last processes have ended."""
    kept, held = FileLock(path / "demo.kept"), FileLock(path / "demo.held")
    try:
        if not kept.take():
            return  # it is alive
        deadline = time.monotonic() + _ENDED_WITHIN_S
        while not (held.take() and await _servers_ended(path)):
            if time.monotonic() > deadline:
                leftover(f"Processes of an earlier demo are still running in {path}; the folder stays.")
                return
            await asyncio.sleep(_LOOK_EVERY_S)
        _remove(path)
        leftover(f"Removed {path.name}, left behind by a killed demo.")
    finally:
        kept.close()
        held.close()


async def _servers_ended(path: Path) -> bool:
    """Whether no supervisor runs in the folder. A server whose supervisor was killed is stopped."""
    for make in SERVERS.values():
        server = make(path)
        supervised = supervisor_lock(server)
        try:
            if not supervised.take():
                return False
            await server.stop()
        finally:
            supervised.close()
    return True


def _remove(path: Path) -> None:
    for server in SERVERS:  # may be links to folders that the servers' OS account can enter
        shutil.rmtree((path / server).resolve(), ignore_errors=True)
    shutil.rmtree(path, ignore_errors=True)
