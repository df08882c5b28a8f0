"""The writer's lock, and its timely release."""

import asyncio

from shared import database
from shared.network import PREVIEW
from tests.patience import PATIENCE_S


async def test_a_long_statement_of_a_killed_writer_releases_the_lock(database_url: str) -> None:
    killed, standby = [await database.connect(database_url, PREVIEW) for _ in range(2)]
    assert await database.try_to_lead(killed, PREVIEW)
    working = asyncio.create_task(killed.execute("SELECT pg_sleep(3600)"))
    asleep = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
    async with asyncio.timeout(PATIENCE_S):
        while not await standby.fetch(asleep):
            await asyncio.sleep(0.02)
    assert not await database.try_to_lead(standby, PREVIEW)
    killed.terminate()
    await asyncio.gather(working, return_exceptions=True)
    async with asyncio.timeout(PATIENCE_S):
        while not await database.try_to_lead(standby, PREVIEW):
            await asyncio.sleep(0.1)
    await standby.close()
