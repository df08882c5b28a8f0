"""The writer's lock, its timely release, and connections by addresses made for libpq."""

import asyncio
import socket

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


async def test_an_address_with_parameters_of_libpq_connects_as_libpq_would(database_url: str) -> None:
    given = "connect_timeout=5&keepalives=1&keepalives_idle=71&keepalives_interval=72&keepalives_count=9"
    others = "channel_binding=prefer&load_balance_hosts=random&gssencmode=disable&client_encoding=UTF8&sslcompression=0"
    db = await database.connect(f"{database_url}{'&' if '?' in database_url else '?'}{given}&{others}")
    link = db._transport.get_extra_info("socket")
    names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
    assert [link.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names] == [71, 72, 9]
    await db.close()
