"""The database as every command of this package finds it: reached, however long that takes, and its schema present."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from shared import database, lifecycle, schema, settings


@asynccontextmanager
async def migrated(url: str, stop: asyncio.Event, *, once: bool = False) -> AsyncIterator[asyncpg.Connection]:
    """A connection to it. Raises NewerSchema, and Stopped where `stop` is set before the database answers.

    For a command that does its work `once` it also raises SettingsError, where the database does not let us in.
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
