"""Wait for the database and migrate it, for every command of this package."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import asyncpg
import typer

from shared import database, lifecycle, schema, settings
from shared import log as logs
from shared.command import name_database
from shared.copies import CopyRefused
from shared.servers import ServersError, running

Answer = TypeVar("Answer")


@asynccontextmanager
async def migrated(
    url: str, stop: asyncio.Event, *, once: bool = False, migrate: bool = True
) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the database, migrated unless `migrate` is false. Raises WrongSchema, and Stopped if `stop` is
    set before it answers.

    With `once`, raises SettingsError if the database rejects our credentials; otherwise it retries.
    """
    waited_for = lifecycle.UNREACHABLE if once else lifecycle.WAITED_FOR
    try:
        connection: asyncpg.Connection = await lifecycle.wait_for(
            "postgres", lambda: _connect(url, migrate=migrate), stop, waited_for
        )
    except lifecycle.UNUSABLE as cause:
        raise settings.unusable_database(url, cause) from cause
    try:
        yield connection
    finally:
        await connection.close()


def on_database(
    work: Callable[[asyncpg.Connection], Awaitable[Answer]], *, create: bool, migrate: bool = True
) -> Answer:
    """Run `work` with a connection to the database, whose name it prints.

    Creates an embedded database only if `create` is set, and migrates it unless `migrate` is false. Ends the process on
    failure.
    """
    answers: list[Answer] = []

    async def main(stop: asyncio.Event) -> None:
        effective = settings.read()
        logs.configure(effective.log_level, effective.log_format)
        async with (
            running(effective, valkey=False, create=create) as servers,
            migrated(servers.database_url, stop, once=True, migrate=migrate) as db,
        ):
            name_database(effective)
            answers.append(await lifecycle.unless_stopped(work(db), stop, on_stop=db.terminate))

    try:
        status = lifecycle.run(main, once=True)
    except (settings.SettingsError, ServersError, schema.WrongSchema) as cause:
        raise typer.Exit(lifecycle.fail(cause)) from cause
    except CopyRefused as refused:
        lifecycle.fail(refused)
        raise typer.Exit(1) from refused
    if not answers:
        raise typer.Exit(status)
    return answers[0]


async def _connect(url: str, *, migrate: bool) -> asyncpg.Connection:
    connection = await database.connect(url)
    try:
        if migrate:
            await schema.migrate(connection)
    except BaseException:
        connection.terminate()
        raise
    return connection
