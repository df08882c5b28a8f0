"""Restore a snapshot into an empty network.

Each table is filled in a separate commit, and the tip comes last: until then the network counts as empty, and the next
`restore` or `run` empties the tables that an interrupted `restore` has filled.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from pathlib import Path

import asyncpg
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from indexer.snapshot import manifest, packing, signing, together
from indexer.snapshot.manifest import Manifest, Part
from indexer.snapshot.take import Tell, tables_of_chain
from indexer.store import beginning, indexes, position
from shared import copies, database, leader, schema
from shared.copies import CopyRefused
from shared.network import Network

_INDEX_MEMORY_MB = 1_024  # for all connections together


async def restore(
    db: asyncpg.Connection,
    url: str,
    network: Network,
    folder: Path,
    jobs: int,
    tell: Tell,
    *,
    key: Ed25519PublicKey | None = None,
) -> Manifest:
    """Fill a network's empty index from the snapshot in a folder.

    `db` is the connection that leads the network, `url` the address of the same database. Raises CopyRefused before
    anything is written if the snapshot is damaged, does not fit, or, with a `key`, if that did not sign it.
    """
    path = folder / copies.MANIFEST
    snapshot = manifest.read(path)
    if key is not None:
        signing.check(snapshot, key, str(path))
    manifest.refuse_unfit(snapshot, network)
    parts = folder / manifest.PARTS
    sources = _sources(snapshot, parts)
    await _refuse_other_tables(db, sources)
    await refuse_filled(db, network)
    await copies.check(parts, snapshot.files, _adding_up("checksums", snapshot.size_bytes, tell))
    added_up = _adding_up("rows and indexes", snapshot.size_bytes, tell)
    await _fill_all(db, url, network, [source for source in sources if source.table != "tip"], jobs, added_up)
    async with schema.commit(db):
        await _fill(db, next(source for source in sources if source.table == "tip"), added_up)
        await beginning.forget_verification(db, network)
        index = await position.read(db)
        if index is None or index.point != snapshot.point:
            raise CopyRefused(f"the tip in {parts} is not that of the manifest")
    return snapshot


async def refuse_filled(db: asyncpg.Connection, network: Network) -> None:
    """Raise CopyRefused if anything is indexed."""
    if await position.read(db) is not None:
        raise CopyRefused(f"{network.name} is not empty: `resync --from-slot 0` empties it")


class _Source(msgspec.Struct, frozen=True):
    """The files with the rows of a table, each with its columns."""

    table: str
    files: list[tuple[Path, list[str]]]
    size_bytes: int


def _sources(snapshot: Manifest, parts: Path) -> list[_Source]:
    """The tables, the largest first."""
    of_table = defaultdict[str, list[str]](list)
    for name, part in sorted(snapshot.files.items(), key=lambda file: _place(file[1])):
        of_table[part.table.name].append(name)
    sources = [
        _Source(
            table,
            [(parts / name, snapshot.files[name].table.columns) for name in names],
            sum(snapshot.files[name].size_bytes for name in names),
        )
        for table, names in of_table.items()
    ]
    return sorted(sources, key=lambda source: source.size_bytes, reverse=True)


def _place(part: Part) -> tuple[bool, int]:
    """The place of a part among those of its table."""
    first = None if part.range is None else part.range.first
    return first is not None, first or 0


async def _refuse_other_tables(db: asyncpg.Connection, sources: list[_Source]) -> None:
    """Refuse a snapshot whose tables or columns are not exactly ours.

    The order of columns may differ, as after a migration.
    """
    held = {(source.table, frozenset(columns)) for source in sources for _, columns in source.files}
    if held != {(table.name, frozenset(table.columns)) for table in await tables_of_chain.all(db)}:
        raise CopyRefused(f"the snapshot does not have the tables of schema version {schema.VERSION}")


async def _fill_all(
    db: asyncpg.Connection, url: str, network: Network, sources: list[_Source], jobs: int, add: Callable[[int], None]
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

    await together.run(fill_some, jobs)


async def _refuse_other_leader(db: asyncpg.Connection, network: Network, leader_pid: int) -> None:
    current = (await leader.leaders(db)).get(network.network_id)
    if current is None or current.backend_pid != leader_pid:
        raise CopyRefused(f"another process has taken the lead of {network.name}: stop its indexer, and restore again")


async def _fill(db: asyncpg.Connection, source: _Source, add: Callable[[int], None]) -> None:
    """Empty a table and fill it. Runs inside a commit."""
    await db.execute(f"TRUNCATE {source.table}")
    async with indexes.rebuilt(db, source.table):
        # Rows of a table that this commit has emptied can be frozen immediately, which leaves nothing to vacuum.
        for path, columns in source.files:
            rows = packing.unpacked(path, add)
            await db.copy_to_table(source.table, source=rows, columns=columns, format="binary", freeze=True)


def _adding_up(step: str, of: int, tell: Tell) -> Callable[[int], None]:
    """A callback that adds up amounts and reports their sum as the progress of a step."""
    done = 0

    def add(amount: int) -> None:
        nonlocal done
        done += amount
        tell(step, done, of)

    return add
