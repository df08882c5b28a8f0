"""The writer's lock, and how soon it is free again."""

import asyncio

from shared import database
from shared.network import PREVIEW


async def test_a_long_statement_of_a_killed_writer_does_not_keep_the_lock(database_url: str) -> None:
    killed, standby = [await database.connect(database_url, PREVIEW) for _ in range(2)]
    assert await database.become_writer(killed, PREVIEW)
    working = asyncio.create_task(killed.execute("SELECT pg_sleep(60)"))
    await asyncio.sleep(0.2)
    assert not await database.become_writer(standby, PREVIEW)
    killed.terminate()
    await asyncio.gather(working, return_exceptions=True)
    async with asyncio.timeout(20):
        while not await database.become_writer(standby, PREVIEW):
            await asyncio.sleep(0.1)
    await standby.close()
