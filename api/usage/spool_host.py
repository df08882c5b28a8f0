"""Detect a folder of spools that several machines share: DATA_DIR/usage must belong to one machine.

Locks protect the spools of living processes. On a network file system or a shared volume, a machine may not see the
locks of another one, and would delete spools that are still being written. Each machine therefore keeps touching a file
in the folder; a process that finds a recent file of another machine reports it.
"""

import asyncio
import os
import socket
import time
import uuid
from contextlib import suppress
from pathlib import Path

import structlog

log = structlog.get_logger()

_BEAT_EVERY_S = 10.0
_FRESH_FOR_S = 60.0  # longer than the caches of network file systems
_FORGOTTEN_AFTER_S = 86_400.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SUFFIX = ".host"


def identity() -> str:
    """The scope of file locks: the running kernel, which all containers of a machine share."""
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else f"{uuid.getnode():x}"


async def watch(folder: Path) -> None:
    """Touch the file of this machine, and log recent files of other machines, until cancelled."""
    own = folder / f"{identity()}{_SUFFIX}"
    reported: list[str] = []
    while True:
        if not own.exists():
            own.write_text(socket.gethostname())
        os.utime(own)
        _forget_old(folder)
        if (names := others(folder)) != reported:
            reported = names
            if names:
                log.error(
                    "usage.folder_shared", folder=str(folder), with_hosts=names, wanted="a DATA_DIR for each host"
                )
        await asyncio.sleep(_BEAT_EVERY_S)


def others(folder: Path) -> list[str]:
    """The names of other machines that have written to the folder of spools within the last minute."""
    names, ours = [], f"{identity()}{_SUFFIX}"
    for path in folder.glob(f"*{_SUFFIX}"):
        try:
            with path.open() as file:  # NOTE: on a network file system, opening reads the server's current state
                age_s, name = time.time() - os.fstat(file.fileno()).st_mtime, file.read(255)
        except OSError:
            continue  # removed, or not readable
        if path.name != ours and age_s < _FRESH_FOR_S:
            names.append(name)
    return sorted(names)


def _forget_old(folder: Path) -> None:
    """Delete files of machines that have not touched them for a day."""
    for path in folder.glob(f"*{_SUFFIX}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _FORGOTTEN_AFTER_S:
                path.unlink(missing_ok=True)
