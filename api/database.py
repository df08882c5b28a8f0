"""The database as every command of this package finds it: reached, however long that takes, and its schema present."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from shared import database, lifecycle, schema


@asynccontextmanager
async def migrated(url: str, stop: asyncio.Event) -> AsyncIterator[asyncpg.Connection]:
    """A connection to it. Raises NewerSchema, and Stopped where `stop` is set before the database answers."""
    connection: asyncpg.Connection = await lifecycle.wait_for("postgres", lambda: _connect(url), stop)
    try:
        yield connection
    finally:
        await connection.close()


async def _connect(url: str) -> asyncpg.Connection:
    connection = await database.connect(url)
    try:
        await schema.migrate(connection)
    except BaseException:
        connection.terminate()
        raise
    return connection
