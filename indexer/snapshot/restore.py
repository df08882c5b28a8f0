"""Restore a snapshot into an empty network.

Each table is filled in a separate commit, and the tip comes last: until then the network counts as empty, and the next
`restore` or `run` empties the tables that an interrupted `restore` has filled.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from pathlib import Path

import asyncpg
import msgspec

from indexer.snapshot import manifest
from indexer.snapshot.manifest import Manifest
from indexer.snapshot.take import Tell, tables_of_chain
from indexer.store import beginning, indexes, position
from shared import copies, database, leader, schema
from shared.copies import CopyRefused
from shared.network import Network

_INDEX_MEMORY_MB = 1_024  # for all connections together


async def restore(db: asyncpg.Connection, url: str, network: Network, folder: Path, jobs: int, tell: Tell) -> Manifest:
    """Fill a network's empty index from the snapshot in a folder.

    `db` is the connection that leads the network, `url` the address of the same database. Raises CopyRefused before
    anything is written if the snapshot is damaged or does not fit.
    """
    snapshot = copies.read(folder, Manifest, "snapshot")
    _refuse_unfit(snapshot, network)
    sources = _sources(snapshot, folder / manifest.DUMP)
    await _refuse_other_tables(db, sources)
    if await position.read(db) is not None:
        raise CopyRefused(f"{network.name} is not empty: `resync --from-slot 0` empties it")
    size_bytes = sum(file.size_bytes for file in snapshot.files.values())
    await copies.check(folder / manifest.DUMP, snapshot.files, _adding_up("checksums", size_bytes, tell))
    added_up = _adding_up("rows and indexes", size_bytes, tell)
    await _fill_all(db, url, network, [source for source in sources if source.table != "tip"], jobs, added_up)
    async with schema.commit(db):
        await _fill(db, next(source for source in sources if source.table == "tip"), added_up)
        await beginning.forget_verification(db, network)
        index = await position.read(db)
        if index is None or index.point != snapshot.point:
            raise CopyRefused(f"the tip in {folder / manifest.DUMP} is not that of the manifest")
    return snapshot


class _DataFile(msgspec.Struct, frozen=True):
    """A file with the rows of a table."""

    path: Path
    size_bytes: int
    table: str
    columns: list[str]


def _refuse_unfit(snapshot: Manifest, network: Network) -> None:
    if snapshot.network != network.name:
        raise CopyRefused(f"the snapshot is for {snapshot.network}, expected {network.name}")
    copies.refuse_other_schema(snapshot, "snapshot")


def _sources(snapshot: Manifest, dump: Path) -> list[_DataFile]:
    """The files with rows, the largest first."""
    sources = [
        _DataFile(dump / name, file.size_bytes, file.table.name, file.table.columns)
        for name, file in snapshot.files.items()
        if file.table is not None
    ]
    return sorted(sources, key=lambda source: source.size_bytes, reverse=True)


async def _refuse_other_tables(db: asyncpg.Connection, sources: list[_DataFile]) -> None:
    """Refuse a snapshot whose tables or columns are not exactly ours.

    The order of columns may differ, as after a migration.
    """
    held = {source.table: set(source.columns) for source in sources}
    if held != {table.name: set(table.columns) for table in await tables_of_chain.all(db)}:
        raise CopyRefused(f"the snapshot does not have the tables of schema version {schema.VERSION}")


async def _fill_all(
    db: asyncpg.Connection, url: str, network: Network, sources: list[_DataFile], jobs: int, add: Callable[[int], None]
) -> None:
    """Fill tables over several connections, while `db` leads the network."""
    leader_pid: int = await db.fetchval("SELECT pg_backend_pid()")
    waiting = deque(sources)

    async def fill_some() -> None:
        connection = await database.connect(url, network)
        try:
            await connection.execute(f"SET maintenance_work_mem = '{_INDEX_MEMORY_MB // jobs}MB'")
            while waiting:
                source = waiting.popleft()
                async with schema.commit(connection):
                    await _fill(connection, source, add)
                    # NOTE: checked with the table locked. An indexer that takes the lead later waits for this commit,
                    # and then empties the table.
                    await _refuse_other_leader(connection, network, leader_pid)
                await connection.execute(f"ANALYZE {source.table}")
        finally:
            connection.terminate()

    running = [asyncio.create_task(fill_some()) for _ in range(jobs)]
    try:
        await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _refuse_other_leader(db: asyncpg.Connection, network: Network, leader_pid: int) -> None:
    current = (await leader.leaders(db)).get(network.network_id)
    if current is None or current.backend_pid != leader_pid:
        raise CopyRefused(f"another process has taken the lead of {network.name}: stop its indexer, and restore again")


async def _fill(db: asyncpg.Connection, source: _DataFile, add: Callable[[int], None]) -> None:
    """Empty a table and fill it. Runs inside a commit."""
    await db.execute(f"TRUNCATE {source.table}")
    async with indexes.rebuilt(db, source.table):
        # Rows of a table that this commit has emptied can be frozen immediately, which leaves nothing to vacuum.
        await db.copy_to_table(
            source.table, source=copies.rows(source.path, add), columns=source.columns, format="text", freeze=True
        )


def _adding_up(step: str, of: int, tell: Tell) -> Callable[[int], None]:
    """A callback that adds up amounts and reports their sum as the progress of a step."""
    done = 0

    def add(amount: int) -> None:
        nonlocal done
        done += amount
        tell(step, done, of)

    return add
