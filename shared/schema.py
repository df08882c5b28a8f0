"""Create the database, lead an old one to the present, refuse a newer one."""

import re
from pathlib import Path

import asyncpg

from shared.network import NETWORKS

VERSION = 3
"""The schema that this program knows. Each step up to it is a file `shared/migrations/NNNN_*.sql`."""

_FRESH = Path(__file__).parent.parent / "schema.sql"
_MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x4C454447_53434845


class NewerSchema(Exception):
    """The database was made by a newer program than this one."""


async def migrate(connection: asyncpg.Connection) -> None:
    """Create or upgrade every schema in one commit; any number of processes may call it at once.

    Raises NewerSchema.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        present = await _version(connection)
        if present > VERSION:
            raise NewerSchema(f"the database has schema version {present}, this program knows {VERSION}: upgrade it")
        if present == VERSION:
            return
        for text in [_FRESH.read_text()] if present == 0 else _steps(present):
            await _apply(connection, text)
        await connection.execute("DELETE FROM partner.schema_version")
        await connection.execute("INSERT INTO partner.schema_version (version) VALUES ($1)", VERSION)


def parts(text: str) -> tuple[str, str]:
    """The two halves of a schema text: `partner`, made once, and the chain, made once per network."""
    found = re.fullmatch(r"(?s).*?^-- == partner ==$(.*)^-- == chain ==$(.*)", text, flags=re.MULTILINE)
    assert found is not None, "a schema text has a partner and a chain section"
    return found[1], found[2]


async def _apply(connection: asyncpg.Connection, text: str) -> None:
    partner, chain = parts(text)
    await connection.execute("SET LOCAL search_path = pg_catalog")
    if partner.strip():  # NOTE: asyncpg fails where there is nothing to execute
        await connection.execute(partner)
    for network in NETWORKS:
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {network.schema}")
        await connection.execute(f"SET LOCAL search_path = {network.schema}")
        await connection.execute(chain)


async def _version(connection: asyncpg.Connection) -> int:
    if await connection.fetchval("SELECT to_regclass('partner.schema_version')") is None:
        return 0
    return int(await connection.fetchval("SELECT version FROM partner.schema_version"))


def _steps(present: int) -> list[str]:
    """The texts that lead from version `present` to VERSION, in order."""
    return [path.read_text() for path in sorted(_MIGRATIONS.glob("*.sql")) if int(path.name[:4]) > present]
