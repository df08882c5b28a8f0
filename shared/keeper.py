"""`python -m shared.keeper postgres|valkey DATA_DIR`: keeps one embedded server up for as long as anybody holds it.

The keeper is the one process that starts and stops the server. `shared.servers` starts it in the background and shares
the lock `<name>.held`; the keeper stops the server and leaves when it gets that lock alone, which is when the last
holder has gone, by exit or by kill -9. A second keeper finds `<name>.kept` taken and leaves at once. A killed keeper is
replaced by any holder, and the new one takes over the server that runs.
"""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

from shared.account import Unplaceable
from shared.embedded import Failed, Postgres, Server, Valkey
from shared.file_lock import FileLock

SERVERS: dict[str, type[Server]] = {"postgres": Postgres, "valkey": Valkey}

LOOK_EVERY_S = 0.1
ASK_EVERY_S = 2.0
# NOTE: children of a killed Postgres hold its memory for a moment, and a start fails while they do.
STARTS = 6
# A process that is there and silent for so long is hung, and replaced. One that recovers from a crash is not silent.
SILENT_FOR_S = 60.0
LOG_BYTES = 10_000_000


def main(name: str, data_dir: Path) -> int:
    """Keep that server; returns the exit status. Standard error, a failure's one line included, is the server's log."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Whoever stops a service stops its holders too; the server goes when the last of them has gone.
        signal.signal(number, lambda *_: None)
    server = SERVERS[name](data_dir)
    kept, held = FileLock(data_dir / f"{name}.kept"), FileLock(data_dir / f"{name}.held")
    if not kept.take():
        return 0
    if server.log.exists() and server.log.stat().st_size > LOG_BYTES:
        server.log.write_bytes(b"")
    try:
        if server.pid() is None:
            server.prepare()
        asyncio.run(_keep(server, held))
    except (Failed, Unplaceable, OSError) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


async def _keep(server: Server, held: FileLock) -> None:
    """Start the server whenever it is not there, until nobody holds it. Raises Failed when it can't be started."""
    child: subprocess.Popen[bytes] | None = None
    starts, heard_at, ask_at = 0, time.monotonic(), 0.0
    while not held.take():
        running = (child is not None and child.poll() is None) or server.pid() is not None
        if not running:
            if starts == STARTS:
                raise Failed(f"{server.name} does not start: {server.last_words()} (more in {server.log})")
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
        child.kill()  # its folder was deleted under it


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
