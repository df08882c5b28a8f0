"""Wait for the database and migrate it, for every command of this package."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from shared import database, lifecycle, schema, settings


@asynccontextmanager
async def migrated(url: str, stop: asyncio.Event, *, once: bool = False) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the migrated database. Raises WrongSchema, and Stopped if `stop` is set before it answers.

    With `once`, raises SettingsError if the database rejects our credentials; otherwise it retries.
    """
    waited_for = lifecycle.UNREACHABLE if once else lifecycle.WAITED_FOR
    try:
        connection: asyncpg.Connection = await lifecycle.wait_for("postgres", lambda: _connect(url), stop, waited_for)
    except lifecycle.UNUSABLE as cause:
        raise settings.unusable_database(url, cause) from cause
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
