"""`python -m api backup` and `restore`: a consistent copy of partner data in a folder, and the way back.

The program copies the tables itself: docs/decisions/0064.
"""

import asyncio
import gzip
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import msgspec

from shared import copies, schema, sql
from shared.copies import CopiedFile, CopyRefused, TableFile
from shared.version import VERSION

FORMAT = 1

_SCHEMA = "partner"


class Backup(copies.Manifest, frozen=True, kw_only=True):
    """A backup of partner data. Each file has the rows of a table in Postgres' text format, compressed by gzip."""

    format: int
    made_at: datetime
    program_version: str
    schema_version: int
    postgres_version: str
    rows: int
    files: dict[str, CopiedFile]
    checksum: str = ""

    def __str__(self) -> str:
        """Its contents, in words."""
        return f"{self.rows:,} rows of {len(self.files)} tables as of {self.made_at:%Y-%m-%dT%H:%M:%SZ}"


class _Table(msgspec.Struct, frozen=True):
    name: str
    columns: list[str]


class _Numbered(msgspec.Struct, frozen=True):
    of_table: str
    of_column: str
    sequence: str


_sql = sql.beside(__file__)
_tables = _sql.query("tables", _Table)
_numbered = _sql.query("numbered", _Numbered)
_others = _sql.values("others", str)
_has_partners = _sql.values("has_partners", bool)


async def take(db: asyncpg.Connection, out: Path) -> Backup:
    """Write a backup to the folder `out`, which is empty or does not exist, while other processes run.

    If the call fails, the folder is removed. Raises CopyRefused.
    """
    copies.make_folder(out)
    try:
        return copies.write(out, await _copied(db, out))
    except OSError as cause:
        shutil.rmtree(out, ignore_errors=True)
        raise CopyRefused(f"{out} can't be written to: {cause.strerror}") from cause
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise


async def restore(db: asyncpg.Connection, folder: Path, *, replace: bool) -> Backup:
    """Fill the tables of partner data from the backup in a folder, in one commit.

    They must have no partners unless `replace` is set, and no other process may use the database. Raises CopyRefused
    before anything is written if that is not so, or if the backup is damaged or does not fit.
    """
    path = folder / copies.MANIFEST
    backup = copies.parse(copies.read_text(path, "backup"), Backup, str(path), form=FORMAT)
    copies.refuse_other_schema(backup, "backup")
    tables = await _tables.all(db)
    paths = {file.table.name: folder / name for name, file in backup.files.items()}
    columns = {file.table.name: file.table.columns for file in backup.files.values()}
    if {name: set(names) for name, names in columns.items()} != {table.name: set(table.columns) for table in tables}:
        raise CopyRefused(f"the backup does not have the tables of schema version {schema.VERSION}")
    await copies.check(folder, backup.files)
    async with schema.commit(db):
        await db.execute(f"LOCK TABLE {', '.join(f'{_SCHEMA}.{table.name}' for table in tables)}")
        await _refuse_unready(db, replace=replace)
        await db.execute(f"TRUNCATE {', '.join(f'{_SCHEMA}.{table.name}' for table in tables)}")
        for table in tables:
            await db.copy_to_table(
                table.name, schema_name=_SCHEMA, source=copies.rows(paths[table.name]), columns=columns[table.name]
            )
        for numbered in await _numbered.all(db):
            await db.execute(
                f"SELECT setval('{numbered.sequence}', greatest(max({numbered.of_column}), 1), count(*) > 0) "  # noqa: S608 - ours
                f"FROM {_SCHEMA}.{numbered.of_table}"
            )
    await db.execute(f"ANALYZE {', '.join(f'{_SCHEMA}.{table.name}' for table in tables)}")
    return backup


async def _refuse_unready(db: asyncpg.Connection, *, replace: bool) -> None:
    """Raise CopyRefused if other processes of ours are connected, or if there are partners already."""
    if others := await _others.all(db):
        raise CopyRefused(f"stop the processes that use the database first: {', '.join(others)}")
    if await _has_partners.only(db) and not replace:
        raise CopyRefused("the database has partner data already: add --replace to lose them")


async def _copied(db: asyncpg.Connection, out: Path) -> Backup:
    """Write the files; returns the manifest."""
    server = db.get_server_version()
    async with db.transaction(isolation="repeatable_read", readonly=True):
        version = await schema.version(db)
        if version != schema.VERSION:
            raise CopyRefused(
                f"the database has schema version {version}, this program backs up {schema.VERSION}: "
                "use the program that works with the database"
            )
        rows, files = 0, dict[str, CopiedFile]()
        for table in await _tables.all(db):
            path = out / f"{table.name}.copy.gz"
            rows += await _copy(db, table, path)
            checksum = await copies.sha256(path)
            files[path.name] = CopiedFile(path.stat().st_size, checksum, TableFile(table.name, table.columns))
    return Backup(
        format=FORMAT,
        made_at=datetime.now(UTC).replace(microsecond=0),
        program_version=VERSION,
        schema_version=schema.VERSION,
        postgres_version=f"{server.major}.{server.minor}",
        rows=rows,
        files=files,
    )


async def _copy(db: asyncpg.Connection, table: _Table, path: Path) -> int:
    """Write the rows of a table to a file that only this account can read; returns their number."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        with gzip.GzipFile("", "wb", 1, file) as packed:

            async def write(data: bytes) -> None:
                await asyncio.to_thread(packed.write, data)

            done: str = await db.copy_from_table(table.name, schema_name=_SCHEMA, columns=table.columns, output=write)
        os.fsync(file.fileno())
    return int(done.removeprefix("COPY "))
