"""Databases to measure in: a fresh one each time, on the servers that the settings name or on embedded ones."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from secrets import token_hex
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import psutil

from shared import database, schema
from shared.network import Network


@asynccontextmanager
async def fresh(server_url: str) -> AsyncIterator[str]:
    """The address of a new database with our schema, dropped at the end."""
    name = f"bench_{token_hex(4)}"
    owner = await asyncpg.connect(server_url)
    try:
        await owner.execute(f"CREATE DATABASE {name}")
        try:
            url = urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
            db = await asyncpg.connect(url)
            await schema.migrate(db)
            await db.close()
            await settle(owner)
            yield url
        finally:
            await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await owner.close()


async def settle(db: asyncpg.Connection) -> None:
    """Write out what earlier work left behind, so that it is not paid for by what is measured next."""
    with suppress(asyncpg.InsufficientPrivilegeError):
        await db.execute("CHECKPOINT")


async def size_bytes(url: str, network: Network) -> int:
    """The bytes of a network's tables and indexes."""
    db = await database.connect(url, network)
    try:
        found: int = await db.fetchval(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        )
        return found
    finally:
        await db.close()


def cpu_s(db: asyncpg.Connection) -> float | None:
    """CPU seconds that the server has spent on this connection; None where it is on another machine."""
    try:
        backend = psutil.Process(db.get_server_pid())
        if not backend.name().startswith("postgres"):
            return None
        times = backend.cpu_times()
    except psutil.Error:
        return None
    return float(times.user + times.system)
