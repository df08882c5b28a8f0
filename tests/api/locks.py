"""Requests that wait for a lock of the test."""

import asyncio

import asyncpg

from tests.patience import PATIENCE_S


async def until_blocked(db: asyncpg.Connection, count: int = 1) -> None:
    """Wait until `count` other sessions wait for a lock of this connection. Those of other tests do not count."""
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    async with asyncio.timeout(PATIENCE_S):
        while await db.fetchval(waits) < count:
            await asyncio.sleep(0.02)
