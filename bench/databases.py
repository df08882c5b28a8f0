"""Databases for measurements: a fresh one each time, on the servers in the settings or on embedded ones."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple
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
            url = url_of(server_url, name)
            db = await asyncpg.connect(url)
            await schema.migrate(db)
            await db.close()
            await settle(owner)
            yield url
        finally:
            await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await owner.close()


def url_of(server_url: str, name: str) -> str:
    """The address of a database of a server."""
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))


async def settle(db: asyncpg.Connection) -> None:
    """Write out dirty pages of earlier work, so that the next measurement does not pay for them."""
    with suppress(asyncpg.InsufficientPrivilegeError):
        await db.execute("CHECKPOINT")


async def vacuum(url: str) -> None:
    """Do the periodic work of autovacuum: clean up, and summarise the new ranges of BRIN indexes."""
    db = await asyncpg.connect(url)
    try:
        await db.execute("VACUUM (ANALYZE)")
    finally:
        await db.close()


async def size_bytes(url: str, network: Network) -> int:
    """The bytes of a network's tables and indexes."""
    db = await database.connect(url, network)
    try:
        total: int = await db.fetchval(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        )
        return total
    finally:
        await db.close()


async def empty_caches(url: str) -> bool:
    """Empty the caches of Postgres and of the system for a database; False if that is not possible."""
    db = await asyncpg.connect(url)
    try:
        await db.execute("CREATE EXTENSION IF NOT EXISTS pg_buffercache")
        await db.execute("CHECKPOINT")
        await db.execute("SELECT pg_buffercache_evict_all()")
        number = await db.fetchval("SELECT oid FROM pg_database WHERE datname = current_database()")
        folder = Path(await db.fetchval("SHOW data_directory")) / "base" / str(number)
        for path in folder.iterdir():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    except (asyncpg.PostgresError, OSError, AttributeError):  # another version, machine or system
        return False
    finally:
        await db.close()
    return True


async def all_cpu_s(db: asyncpg.Connection) -> float:
    """CPU seconds of all open connections to this one's database; 0 if the server is on another machine."""
    pids = await db.fetch(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    total_s = 0.0
    for row in pids:
        with suppress(psutil.Error):
            backend = psutil.Process(row["pid"])
            if backend.name().startswith("postgres"):
                total_s += sum(backend.cpu_times()[:2])
    return total_s


class PageCounts(NamedTuple):
    """The server's counters: pages of one database that were not in its cache, whole pages and bytes in the WAL."""

    missed: int
    whole_in_wal: int
    wal_bytes: int


async def page_counts(url: str) -> PageCounts:
    """The counters of a database and of its server's WAL, at most a second old."""
    db = await asyncpg.connect(url)
    row = await db.fetchrow(
        "SELECT blks_read, wal_fpi, wal_bytes::bigint FROM pg_stat_wal, pg_stat_database"
        " WHERE datname = current_database()"
    )
    await db.close()
    assert row is not None, "a connection is to a database"
    return PageCounts(*row)


def cpu_s(db: asyncpg.Connection) -> float | None:
    """CPU seconds that the server has spent on this connection; None if it is on another machine."""
    try:
        backend = psutil.Process(db.get_server_pid())
        if not backend.name().startswith("postgres"):
            return None
        times = backend.cpu_times()
    except psutil.Error:
        return None
    return float(times.user + times.system)
