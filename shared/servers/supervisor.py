"""`python -m shared.servers.supervisor postgres|valkey DATA_DIR` runs one embedded server as long as it has users.

The supervisor is the only process that starts and stops the server. `shared.servers` starts it in the background.

Each process that uses the server shares the users' lock. The supervisor stops the server and exits once it gets that
lock alone: then the last user has gone, by exit or by kill -9. The supervisor itself holds the supervisor's lock, so a
second one exits immediately. Any user replaces a killed supervisor, and the new one takes over the running server.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from shared.servers.embedded import Failed, Postgres, Server, Valkey
from shared.servers.file_lock import FileLock
from shared.servers.os_account import Unplaceable

SERVERS: dict[str, type[Server]] = {"postgres": Postgres, "valkey": Valkey}

LOOK_EVERY_S = 0.1
ASK_EVERY_S = 2.0
# NOTE: children of a killed Postgres hold its memory for a moment, and a start fails until they end.
STARTS = 6
# A running server that does not answer for this long is hung, and is replaced. One that recovers from a crash answers.
SILENT_FOR_S = 60.0
LOG_BYTES = 10_000_000


def users_lock(server: Server) -> FileLock:
    """Shared by the processes that use a server. NOTE: programs of other versions use the same files."""
    return FileLock(server.data_dir / f"{server.name}.held")


def supervisor_lock(server: Server) -> FileLock:
    """Held by the supervisor of a server."""
    return FileLock(server.data_dir / f"{server.name}.kept")


def main(name: str, data_dir: Path) -> int:
    """Run that server; returns the exit status. Standard error is the server's log, to which a failure adds a line."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # NOTE: a service manager signals all processes of a service; the server must outlive its last user.
        signal.signal(number, lambda *_: None)
    server = SERVERS[name](data_dir)
    supervised, users = supervisor_lock(server), users_lock(server)
    if not supervised.take():
        return 0
    try:
        if server.pid() is None:
            server.prepare()
        asyncio.run(_supervise(server, users))
    except (Failed, Unplaceable, OSError) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


async def _supervise(server: Server, users: FileLock) -> None:
    """Start the server, restart it whenever it ends, and stop it after its last user. Raises Failed."""
    child: subprocess.Popen[bytes] | None = None
    starts, heard_at, ask_at = 0, time.monotonic(), 0.0
    while not users.take():
        _bound(server.log)
        running = (child is not None and child.poll() is None) or server.pid() is not None
        if not running:
            if starts == STARTS:
                raise Failed(f"{server.name} does not start: {server.last_error()} (more in {server.log})")
            await asyncio.sleep(LOOK_EVERY_S * (2**starts - 1))
            child = server.start()
            starts, heard_at, ask_at = starts + 1, time.monotonic(), 0.0
        if time.monotonic() >= ask_at:
            state = await server.state()
            if state != "away":
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > SILENT_FOR_S:
                await server.stop()
            if state == "up":
                starts, ask_at = 0, time.monotonic() + ASK_EVERY_S
        await asyncio.sleep(LOOK_EVERY_S)
    await server.stop()
    if child is not None and child.poll() is None:
        child.kill()  # it can't be found any more: its folder was deleted


def _bound(log: Path) -> None:
    """Empty a log that is too long. NOTE: its writers append, so they continue at the new end."""
    with suppress(FileNotFoundError):
        if log.stat().st_size > LOG_BYTES:
            os.truncate(log, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
