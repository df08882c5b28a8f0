"""Take a snapshot: pg_dump in parallel, beside a running indexer, at one consistent point."""

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import msgspec

from indexer.snapshot import manifest, pg_dump
from indexer.snapshot.manifest import Manifest, Tip
from indexer.store import position
from shared import copies, schema, sql
from shared.copies import CopiedFile, CopyRefused, TableFile
from shared.network import Network
from shared.version import VERSION

LOOK_EVERY_S = 1.0

Tell = Callable[[str, int, int], None]
"""Called with the name of a step, the completed amount and the total."""


async def take(db: asyncpg.Connection, url: str, network: Network, out: Path, jobs: int, tell: Tell) -> Manifest:
    """Write a snapshot of a network's index to the folder `out`, which is empty or does not exist.

    `db` is a connection to the network with no other user, `url` the address of the same database. If the call fails,
    the folder is removed. Raises CopyRefused.
    """
    copies.make_folder(out)
    try:
        return copies.write(out, await _dumped(db, url, network, out / manifest.DUMP, jobs, tell))
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise


async def _dumped(db: asyncpg.Connection, url: str, network: Network, dump: Path, jobs: int, tell: Tell) -> Manifest:
    server = db.get_server_version()
    program = pg_dump.find(server.major)
    # NOTE: one transaction, whose snapshot every session of pg_dump sees.
    async with db.transaction(isolation="repeatable_read", readonly=True):
        await schema.check(db)
        index = await position.read(db)
        if index is None:
            raise CopyRefused(f"nothing is indexed for {network.name}")
        if index.is_bulk:
            raise CopyRefused(f"{network.name} is in bulk: wait until its first sync is complete")
        tables = await tables_of_chain.all(db)
        snapshot: str = await db.fetchval("SELECT pg_export_snapshot()")
        work = pg_dump.dump(program, url, dump, schema=network.schema, snapshot=snapshot, jobs=jobs)
        await _watched(db, work, sum(table.row_count for table in tables), tell)
    return Manifest(
        format=copies.FORMAT,
        network=network.name,
        made_at=datetime.now(UTC).replace(microsecond=0),
        program_version=VERSION,
        schema_version=schema.VERSION,
        postgres_version=f"{server.major}.{server.minor}",
        tip=Tip(
            slot_no=index.slot_no,
            block_no=index.block_no,
            block_hash=index.block_hash.hex(),
            block_time=network.slot_time(index.slot_no),
        ),
        first_block_no=index.first_block_no,
        tx_count=index.tx_count,
        files=await _files(dump, tables, await pg_dump.tables(program, dump), tell),
    )


async def _watched(db: asyncpg.Connection, work: Coroutine[None, None, None], rows: int, tell: Tell) -> None:
    """Wait for pg_dump, and report how many of about `rows` rows it has written."""
    written = dict[int, int]()
    dumping = asyncio.create_task(work)
    try:
        while not dumping.done():
            await asyncio.wait([dumping], timeout=LOOK_EVERY_S)
            await _look_again.run(db)
            written |= {table.oid: table.row_count for table in await _being_written.all(db)}
            tell("rows", min(sum(written.values()), rows), rows)
        await dumping
    finally:
        dumping.cancel()
        await asyncio.gather(dumping, return_exceptions=True)


async def _files(dump: Path, tables: list["Table"], named: dict[str, str], tell: Tell) -> dict[str, CopiedFile]:
    """The files of a dump with their checksums; `named` has the table of each file with rows."""
    columns = {table.name: table.columns for table in tables}
    assert sorted(named.values()) == sorted(columns), "pg_dump writes a file for each table"
    sizes = {path: path.stat().st_size for path in sorted(dump.iterdir())}
    read = 0

    def add(size_bytes: int) -> None:
        nonlocal read
        read += size_bytes
        tell("checksums", read, sum(sizes.values()))

    files = {}
    for path, size_bytes in sizes.items():
        name = named.get(path.name)
        table = None if name is None else TableFile(name, columns[name])
        files[path.name] = CopiedFile(size_bytes, await copies.sha256(path, add), table)
    return files


class Table(msgspec.Struct, frozen=True):
    name: str
    columns: list[str]
    row_count: int


class _BeingWritten(msgspec.Struct, frozen=True):
    oid: int
    row_count: int


_sql = sql.beside(__file__)
tables_of_chain = _sql.query("tables", Table)
_look_again = _sql.command("look_again")
_being_written = _sql.query("being_written", _BeingWritten)
