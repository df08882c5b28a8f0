"""Take a snapshot: COPY in parallel, beside a running indexer, at one consistent point."""

import asyncio
import hashlib
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from indexer.snapshot import manifest, packing, ranges, signing, together
from indexer.snapshot.manifest import Manifest, Part, Range, Tip
from indexer.store import position
from shared import copies, database, schema, sql
from shared.copies import CopyRefused, TableFile
from shared.network import Network
from shared.version import VERSION

_LOCKED_WITHIN = "60s"

Tell = Callable[[str, int, int], None]
"""Called with the name of a step, the completed amount and the total."""


async def take(
    db: asyncpg.Connection,
    url: str,
    network: Network,
    out: Path,
    jobs: int,
    tell: Tell,
    *,
    since: Path | None = None,
    key: Ed25519PrivateKey | None = None,
) -> Manifest:
    """Write a snapshot of a network's index to the folder `out`, which is empty or does not exist.

    `db` is a connection to the network with no other user, `url` the address of the same database. `since` is the
    manifest of an earlier snapshot: its parts are linked if their rows are the same. The manifest is signed with `key`.
    If the call fails, the folder is removed. Raises CopyRefused.
    """
    earlier = Earlier(since, network)
    copies.make_folder(out)
    try:
        (out / manifest.PARTS).mkdir()
        taken = await _copied(db, _Copying(url, network, out / manifest.PARTS, earlier), jobs, tell)
        return copies.write(out, taken if key is None else signing.sign(taken, key))
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise


class Earlier:
    """The parts of an earlier snapshot of a network, by table and range; none without one. Raises CopyRefused."""

    def __init__(self, path: Path | None, network: Network) -> None:
        self._parts: dict[tuple[str, tuple[str, ...], Range], tuple[Path, Part]] = {}
        if path is None:
            return
        earlier = manifest.read(path)
        if earlier.network != network.name:
            raise CopyRefused(f"{path} is for {earlier.network}, expected {network.name}")
        if earlier.schema_version != schema.VERSION:
            raise CopyRefused(
                f"{path} has schema version {earlier.schema_version}, expected {schema.VERSION}: "
                "take a whole snapshot, without --since"
            )
        for name, part in earlier.files.items():
            if part.range is not None:
                found = path.parent / manifest.PARTS / name, part
                self._parts[part.table.name, tuple(part.table.columns), part.range] = found

    async def part(self, table: TableFile, of: Range | None) -> tuple[Path, Part] | None:
        """The part with this range of a table, and its file; None if there is none, or if the file is damaged."""
        if of is None:
            return None
        found = self._parts.get((table.name, tuple(table.columns), of))
        if found is None or not found[0].is_file() or await copies.sha256(found[0]) != found[1].sha256:
            return None
        return found


class _Copying(msgspec.Struct, frozen=True):
    """Where a snapshot is read and written."""

    url: str
    network: Network
    parts: Path
    earlier: Earlier


class _Wanted(msgspec.Struct, frozen=True):
    """A part to copy; `size_bytes` is an estimate."""

    table: TableFile
    order: Sequence[str]
    range: Range | None
    size_bytes: int

    @property
    def query(self) -> str:
        """The rows. Those of a range are in an order that depends only on them."""
        rows = f"SELECT {', '.join(self.table.columns)} FROM {self.table.name}"  # noqa: S608 - names of our catalogue
        if self.range is None:
            return rows
        bounds = [
            f"{self.range.column} {operator} {bound}"
            for operator, bound in ((">=", self.range.first), ("<", self.range.end))
            if bound is not None
        ]
        where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
        return f"{rows}{where} ORDER BY {', '.join(dict.fromkeys([self.range.column, *self.order]))}"


async def _copied(db: asyncpg.Connection, to: _Copying, jobs: int, tell: Tell) -> Manifest:
    server = db.get_server_version()
    names = [table.name for table in await tables_of_chain.all(db)]
    # NOTE: one transaction, whose snapshot every other session sees.
    async with db.transaction(isolation="repeatable_read", readonly=True):
        await _lock(db, names)
        await schema.check(db)
        index = await position.read(db)
        if index is None:
            raise CopyRefused(f"nothing is indexed for {to.network.name}")
        if index.is_bulk:
            raise CopyRefused(f"{to.network.name} is in bulk: wait until its first sync is complete")
        wanted = await _wanted(db, to.network)
        snapshot: str = await db.fetchval("SELECT pg_export_snapshot()")
        files = await _copy_all(to, wanted, snapshot, jobs, tell)
    return Manifest(
        format=manifest.FORMAT,
        network=to.network.name,
        made_at=datetime.now(UTC).replace(microsecond=0),
        program_version=VERSION,
        schema_version=schema.VERSION,
        postgres_version=f"{server.major}.{server.minor}",
        tip=Tip(
            slot_no=index.slot_no,
            block_no=index.block_no,
            block_hash=index.block_hash.hex(),
            block_time=to.network.slot_time(index.slot_no),
        ),
        first_block_no=index.first_block_no,
        tx_count=index.tx_count,
        files=files,
    )


async def _lock(db: asyncpg.Connection, names: Iterable[str]) -> None:
    """Keep tables from being emptied: TRUNCATE empties them in older snapshots of the database, too."""
    await db.execute(f"SET LOCAL lock_timeout = '{_LOCKED_WITHIN}'")
    try:
        await db.execute(f"LOCK TABLE {', '.join(names)} IN ACCESS SHARE MODE")
    except asyncpg.LockNotAvailableError as cause:
        raise CopyRefused(f"a table has been locked for {_LOCKED_WITHIN}") from cause


async def _wanted(db: asyncpg.Connection, network: Network) -> list[_Wanted]:
    """The parts to copy, the largest first."""
    ends = ranges.ends_of(await _epochs.all(db))
    last_address_no = await _last_address_no.only(db)
    wanted = []
    for table in await tables_of_chain.all(db):
        of_table = list(ranges.of_table(table.name, table.row_count, ends, last_address_no, network))
        wanted += [
            _Wanted(
                TableFile(table.name, table.columns), table.key or table.columns, of, table.size_bytes // len(of_table)
            )
            for of in of_table
        ]
    return sorted(wanted, key=lambda part: part.size_bytes, reverse=True)


async def _copy_all(to: _Copying, wanted: list[_Wanted], snapshot: str, jobs: int, tell: Tell) -> dict[str, Part]:
    """Copy parts over several connections; returns them by the names of their files."""
    waiting, files = deque(wanted), dict[str, Part]()
    copied_bytes, of_bytes = 0, sum(part.size_bytes for part in wanted)

    async def copy_some() -> None:
        nonlocal copied_bytes
        connection = await database.connect(to.url, to.network)
        try:
            # Otherwise a sequential scan may begin where another one is, and rows would be in another order.
            await connection.execute("SET synchronize_seqscans = off")
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                await connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
                while waiting:
                    part = waiting.popleft()
                    name, copied = await _copy(connection, part, to)
                    files[name] = copied
                    copied_bytes += part.size_bytes
                    tell("rows", copied_bytes, of_bytes)
        finally:
            connection.terminate()

    await together.run(copy_some, jobs)
    return dict(sorted(files.items()))


async def _copy(db: asyncpg.Connection, wanted: _Wanted, to: _Copying) -> tuple[str, Part]:
    """Link the same part of the earlier snapshot, or write a new one; returns its name."""
    same = await to.earlier.part(wanted.table, wanted.range)
    if same is not None:
        path, part = same
        digest = hashlib.sha256()
        await packing.copy_out(db, wanted.query, digest.update)
        if digest.hexdigest() == part.rows_sha256:
            with packing.writing(to.parts):
                await asyncio.to_thread(_link, path, to.parts / path.name)
            return path.name, part
    unfinished = to.parts / f"{wanted.table.name}.{db.get_server_pid()}.unfinished"
    file = packing.PackedFile(unfinished)
    try:
        rows = await packing.copy_out(db, wanted.query, file.add)
        name = await asyncio.to_thread(_finished, file, unfinished, wanted.table.name)
    finally:
        file.close()
    # Empty parts of a table are the same file.
    held = wanted.range if rows else None
    return name, Part(file.size_bytes, file.sha256, wanted.table, file.rows_sha256, held)


def _finished(file: packing.PackedFile, unfinished: Path, table: str) -> str:
    """Complete a file, and give it its name."""
    file.finish()
    name = manifest.name_of(table, file.sha256)
    unfinished.rename(unfinished.with_name(name))
    return name


def _link(path: Path, to: Path) -> None:
    """Give a file another name, or copy it to another file system."""
    try:
        os.link(path, to)
    except OSError:
        shutil.copyfile(path, to)


class Table(msgspec.Struct, frozen=True):
    """A table of a chain; the columns of its primary key, if it has one, are `key`."""

    name: str
    columns: list[str]
    key: list[str]
    row_count: int
    size_bytes: int


_sql = sql.beside(__file__)
tables_of_chain = _sql.query("tables", Table)
_epochs = _sql.query("epochs", ranges.Epoch)
_last_address_no = _sql.values("last_address_no", int)
