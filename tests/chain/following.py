"""A process that follows preview for events, as the usage aggregator does, and nothing else: a test can kill it."""

import asyncio
import sys

from api.events import follower
from shared import database, log, tasks
from shared.network import PREVIEW


async def follow(database_url: str) -> None:
    async with (
        await database.create_pool(database_url, None, max_size=1) as pool,
        tasks.background("events", lambda: follower.run(pool, database_url, PREVIEW)),
    ):
        await asyncio.Event().wait()


if __name__ == "__main__":
    log.configure("info", "json")
    asyncio.run(follow(sys.argv[1]))
