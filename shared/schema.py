"""Create or migrate the database, refuse a newer schema, and keep old programs from writing into a migrated one.

Writers commit through `commit`, which first reads the schema version. The read locks the version's table until the
commit ends, and `migrate` needs an exclusive lock on that table: no migration can fall between a writer's check and its
commit (docs/decisions/0018). A heartbeat is a single statement that reads the version itself (leader.sql).
"""

import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import structlog

from shared import database, lifecycle, sql
from shared.network import NETWORKS, Network

log = structlog.get_logger()

_OLDEST_VERSION, _OLDEST_CHAINS = 7, 8
"""The oldest versions whose partner data and whose chains are migrated. Older chains are created anew, empty."""

_FRESH = Path(__file__).parent.parent / "schema.sql"
_MIGRATIONS = Path(__file__).parent / "migrations"

VERSION = max(int(path.name[:4]) for path in _MIGRATIONS.glob("*.sql"))
"""The schema version of this program, which the last migration leads to."""

_LOCK = 0x4C454447_53434845
_PATIENCE_S, _MAX_LOOKS = 3, 3
"""How long `migrate` waits before it logs the sessions with open commits, and after how many waits it ends them."""


class WrongSchema(Exception):
    """The database has a schema that this program can neither migrate nor write into; the message says what to do."""


async def migrate(connection: asyncpg.Connection) -> None:
    """Create or upgrade every schema in one commit; any number of processes may call it at the same time.

    Waits for open commits, and ends sessions of Ledgerline that hold theirs for too long. Raises WrongSchema.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        present = await version(connection)
        _refuse_newer(present)
        if present == VERSION:
            return
        if present:
            _refuse_too_old(present)
            await _shut_writers_out(connection)
            await _upgrade(connection, present)
        else:
            await create(connection)
        await connection.execute("DELETE FROM partner.schema_version")
        await connection.execute("INSERT INTO partner.schema_version (version) VALUES ($1)", VERSION)


async def _upgrade(connection: asyncpg.Connection, present: int) -> None:
    """Apply the migrations after version `present`, in the open transaction. Networks without a chain get one."""
    if present < _OLDEST_CHAINS:
        for network in NETWORKS:
            await connection.execute(f"DROP SCHEMA IF EXISTS {network.schema} CASCADE")
        log.warning("schema.chains_created_anew", version=present, what="their indexers begin again")
    schemas = await connection.fetchval("SELECT array_agg(nspname::text) FROM pg_namespace")
    kept = [network for network in NETWORKS if network.schema in schemas]
    for path in sorted(_MIGRATIONS.glob("*.sql")):
        if int(path.name[:4]) > present:
            await _apply(connection, path.read_text(), kept)
    _, chain = parts(_FRESH.read_text())
    await _apply_to_chains(connection, chain, [network for network in NETWORKS if network not in kept])


@asynccontextmanager
async def commit(connection: sql.Connection) -> AsyncIterator[None]:
    """One commit of a writer: all of it is written, or none, and only into the schema of this program.

    Raises WrongSchema.
    """
    async with connection.transaction():
        await check(connection)
        yield


async def check(connection: sql.Connection) -> None:
    """Raise WrongSchema if a newer program has migrated the database."""
    _refuse_newer(await connection.fetchval("SELECT version FROM partner.schema_version"))


def parts(text: str) -> tuple[str, str]:
    """The two parts of a schema text: `partner`, created once, and the chain, created once per network."""
    sections = re.fullmatch(r"(?s).*?^-- == partner ==$(.*)^-- == chain ==$(.*)", text, flags=re.MULTILINE)
    assert sections is not None, "a schema text has a partner and a chain section"
    return sections[1], sections[2]


def _refuse_newer(present: int) -> None:
    if present > VERSION:
        raise WrongSchema(
            f"the database has schema version {present}, this program only knows {VERSION}: upgrade the program"
        )


def _refuse_too_old(present: int) -> None:
    if present < _OLDEST_VERSION:
        raise WrongSchema(
            f"the database has schema version {present}, which this program cannot migrate: create a new database and "
            "index again"
        )


async def _shut_writers_out(connection: asyncpg.Connection) -> None:
    """Lock the version's table inside the migration's commit: writers can commit again after it.

    Sessions that hold the table are logged after _PATIENCE_S. After _MAX_LOOKS attempts Ledgerline's own sessions are
    terminated, which loses their uncommitted work. Other programs, such as `pg_dump`, are waited for.
    """
    looks = 0
    while True:
        try:
            async with connection.transaction():  # a savepoint, to which a timeout returns
                await connection.execute(f"SET LOCAL lock_timeout = '{_PATIENCE_S}s'")
                await connection.execute("LOCK TABLE partner.schema_version IN ACCESS EXCLUSIVE MODE")
                await connection.execute("SET LOCAL lock_timeout = DEFAULT")
            return
        except asyncpg.LockNotAvailableError:
            looks += 1
            for pid, application in await connection.fetch(_HOLDERS):
                if looks < _MAX_LOOKS or not application.startswith(database.APPLICATION):
                    lifecycle.log_waiting("a commit", of=application, backend_pid=pid)
                else:
                    log.warning("schema.writer_ended", of=application, backend_pid=pid)
                    await connection.execute("SELECT pg_terminate_backend($1)", pid)


_HOLDERS = """
SELECT pid, application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE relation = 'partner.schema_version'::regclass AND granted AND pid <> pg_backend_pid()
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


async def create(connection: asyncpg.Connection, networks: Iterable[Network] = NETWORKS) -> None:
    """Create the schemas of a new database in the open transaction."""
    await _apply(connection, _FRESH.read_text(), networks)


async def _apply(connection: asyncpg.Connection, text: str, networks: Iterable[Network] = NETWORKS) -> None:
    partner, chain = parts(text)
    await connection.execute("SET LOCAL search_path = pg_catalog")
    # NOTE: asyncpg fails on an empty text.
    if partner.strip():
        await connection.execute(partner)
    if chain.strip():
        await _apply_to_chains(connection, chain, networks)


async def _apply_to_chains(connection: asyncpg.Connection, chain: str, networks: Iterable[Network]) -> None:
    for network in networks:
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {network.schema}")
        await connection.execute(f"SET LOCAL search_path = {network.schema}")
        await connection.execute(chain)


async def version(connection: asyncpg.Connection) -> int:
    """The schema version of a database, 0 if it has none of our tables."""
    if await connection.fetchval("SELECT to_regclass('partner.schema_version')") is None:
        return 0
    return int(await connection.fetchval("SELECT version FROM partner.schema_version"))
