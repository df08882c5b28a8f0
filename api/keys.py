"""`python -m api keys`: admin keys out of band, before there is a bootstrap key or without one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar
from uuid import UUID

import asyncpg
import typer
from rich.console import Console
from rich.table import Table

from api import database
from api.admin import admin_keys
from api.caller import PERMISSIONS
from api.errors import Refusal
from shared import lifecycle, schema
from shared import settings as environment
from shared.servers import ServersError, running

Answer = TypeVar("Answer")

commands = typer.Typer(help="Issue, list and revoke admin keys.", no_args_is_help=True)

_PAGE = 1_000


@commands.command()
def create(
    entity_name: Annotated[str, typer.Option(help="Whom the key is for.")],
    permissions: Annotated[str, typer.Option(help="Some of them, with commas.")] = ",".join(PERMISSIONS),
) -> None:
    """Issue an admin key and print it, this once."""
    try:
        name = admin_keys.EntityName.of_json(entity_name)
        granted = admin_keys.Permissions.of_json([word.strip() for word in permissions.split(",")])
    except ValueError as wrong:
        expected = f"an entity name of 1 to {admin_keys.LONGEST_ENTITY_NAME} characters, permissions out of"
        raise typer.Exit(lifecycle.fail(f"expected {expected} {', '.join(PERMISSIONS)}")) from wrong

    async def issue(db: asyncpg.Connection) -> admin_keys.IssuedAdminKey:
        async with db.transaction():
            return await admin_keys.issue(db, await admin_keys.command_line(db), name, granted)

    typer.echo(_on_database(issue).key)


@commands.command("list")
def listed() -> None:
    """Show every admin key, newest first; the keys themselves are stored nowhere."""

    async def read(db: asyncpg.Connection) -> list[admin_keys.AdminKeyRecord]:
        return await admin_keys.records_of(db, _PAGE, 0)

    table = Table()
    table.add_column("id", no_wrap=True)
    for title in ("entity name", "prefix", "permissions", "created", "last used", "revoked"):
        table.add_column(title, overflow="fold")
    for record in _on_database(read):
        times = [
            "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}Z"
            for time in (record.created_at, record.last_used_at, record.revoked_at)
        ]
        permissions = "bootstrap" if record.is_bootstrap else " ".join(record.permissions)
        table.add_row(str(record.id), record.entity_name, record.key_prefix, permissions, *times)
    Console().print(table)


@commands.command()
def revoke(admin_key_id: Annotated[UUID, typer.Argument(metavar="ID")]) -> None:
    """Revoke an admin key. The API keys of its accounts go on working."""

    async def withdraw(db: asyncpg.Connection) -> admin_keys.AdminKeyRecord:
        async with db.transaction():
            return await admin_keys.withdraw(db, await admin_keys.command_line(db), admin_key_id)

    try:
        record = _on_database(withdraw)
    except Refusal as refusal:
        raise typer.Exit(lifecycle.fail(refusal.message)) from refusal
    typer.echo(f"revoked {record.id} of {record.entity_name}")


def _on_database(work: Callable[[asyncpg.Connection], Awaitable[Answer]]) -> Answer:
    """Do something on the present database, which is created where there is none. Ends the process if that fails."""
    answers: list[Answer] = []

    async def main(stop: asyncio.Event) -> None:
        async with (
            running(environment.read(), valkey=False) as servers,
            database.migrated(servers.database_url, stop, once=True) as db,
        ):
            answers.append(await work(db))

    try:
        status = lifecycle.run(main, once=True)
    except (environment.SettingsError, ServersError, schema.NewerSchema) as cause:
        raise typer.Exit(lifecycle.fail(cause)) from cause
    if not answers:
        raise typer.Exit(status)
    return answers[0]
