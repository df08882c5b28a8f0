"""Holds the embedded servers of DATA_DIR: prints their addresses, then waits for SIGTERM."""

import asyncio
import sys

from shared import lifecycle, log, servers, settings


async def main(stop: asyncio.Event) -> None:
    async with servers.running(settings.read()) as found:
        print(found.database_url, found.redis_url, flush=True)
        await stop.wait()


if __name__ == "__main__":
    log.configure()
    sys.exit(lifecycle.run(main))
