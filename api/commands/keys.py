"""`python -m api keys`: manage admin keys on the command line, without a bootstrap key."""

import sys
from datetime import datetime
from typing import Annotated
from uuid import UUID

import asyncpg
import msgspec
import typer
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from api.admin import admin_keys
from api.admin.admin_keys import AdminKeyRecord
from api.commands.database import on_database
from api.errors import Refusal
from api.keys import tokens
from api.keys.caller import PERMISSIONS
from shared import lifecycle, schema, settings
from shared.command import EmbeddedOption

commands = typer.Typer(help="Issue, list and revoke admin keys.", no_args_is_help=True)

_PAGE = 1_000
_COLUMNS = ("id", "prefix", "created", "last used", "revoked", "entity name", "permissions")


@commands.command()
def create(
    entity_name: Annotated[str, typer.Option(help="Name of the partner that gets the key.")],
    permissions: Annotated[str, typer.Option(help="Permissions, separated by commas.")] = ",".join(PERMISSIONS),
    embedded: EmbeddedOption = False,
) -> None:
    """Issue an admin key and print it. It is not shown again."""
    try:
        name = admin_keys.EntityName.of_json(entity_name)
    except ValueError as wrong:
        expected = f"1 to {admin_keys.MAX_ENTITY_NAME_LENGTH} characters, not all blank"
        raise typer.Exit(lifecycle.fail(f"--entity-name is {entity_name!r}, expected {expected}")) from wrong
    words = [word.strip() for word in permissions.split(",")]
    if unknown := [word for word in words if word not in PERMISSIONS]:
        raise typer.Exit(
            lifecycle.fail(f"--permissions contains {unknown[0]!r}, expected some of {', '.join(PERMISSIONS)}")
        )
    granted = admin_keys.Permissions.of_json(words)

    async def issue(db: asyncpg.Connection) -> admin_keys.IssuedAdminKey:
        async with schema.commit(db):
            return await admin_keys.issue(db, await admin_keys.command_line(db), name, granted)

    typer.echo(on_database(issue, create=embedded).key)


@commands.command("list")
def listed(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False, embedded: EmbeddedOption = False
) -> None:
    """List all admin keys, newest first. The keys themselves are not stored."""

    async def read(db: asyncpg.Connection) -> list[AdminKeyRecord]:
        records: list[AdminKeyRecord] = []
        async with db.transaction(isolation="repeatable_read", readonly=True):
            while page := await admin_keys.records_of(db, _PAGE, len(records)):
                records += page
        return records

    records = on_database(read, create=embedded)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(records), indent=2))
    else:
        show(records, settings.read().bootstrap_admin_key)


def show(records: list[AdminKeyRecord], bootstrap_key: str | None = None) -> None:
    """Print a table with a line for each key; on a terminal that is too narrow for it, several lines for each.

    `bootstrap_key` is the one that is set here: the record is of the last one that was used.
    """
    rows = [_COLUMNS, *(_cells(record, bootstrap_key) for record in records)]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    needed = sum(widths) + 2 * (len(widths) - 1)
    if sys.stdout.isatty() and needed > Console().width:
        _show_narrow(rows[1:])
        return
    table = Table(*_COLUMNS, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows[1:]:
        table.add_row(*map(escape, row))
    console = Console(width=max(needed + len(widths), 80), highlight=False)
    for line in console.render_lines(table, pad=False):
        typer.echo("".join(segment.text for segment in line).rstrip())


def _show_narrow(rows: list[tuple[str, ...]]) -> None:
    for number, prefix, created, used, revoked, name, permissions in rows:
        state = f"revoked {revoked}" if revoked != "-" else f"last used {used}" if used != "-" else "never used"
        typer.echo(f"{number}  {prefix}…\n    {name}\n    {permissions}\n    created {created}, {state}")


def _cells(record: AdminKeyRecord, bootstrap_key: str | None) -> tuple[str, ...]:
    is_set = bootstrap_key is not None and tokens.admin_prefix_of(bootstrap_key) == record.key_prefix
    of_bootstrap = "bootstrap" if is_set else "bootstrap, but BOOTSTRAP_ADMIN_KEY is another key here, or unset"
    permissions = of_bootstrap if record.is_bootstrap else ",".join(record.permissions)
    times = map(_time, (record.created_at, record.last_used_at, record.revoked_at))
    name = "".join(letter if letter.isprintable() else "?" for letter in record.entity_name)
    return (str(record.id), record.key_prefix, *times, name, permissions)


def _time(time: datetime | None) -> str:
    return "-" if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}"


@commands.command()
def revoke(admin_key_id: Annotated[UUID, typer.Argument(metavar="ID")], embedded: EmbeddedOption = False) -> None:
    """Revoke an admin key. The API keys of its accounts continue to work."""

    async def withdraw(db: asyncpg.Connection) -> AdminKeyRecord:
        async with schema.commit(db):
            return await admin_keys.withdraw(db, await admin_keys.command_line(db), admin_key_id)

    try:
        record = on_database(withdraw, create=embedded)
    except Refusal as refusal:
        raise typer.Exit(lifecycle.fail(f"{admin_key_id}: {refusal.message}")) from refusal
    typer.echo(f"revoked {record.id} of {record.entity_name}")
