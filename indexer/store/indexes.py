"""Fill a table without its indexes, and build them afterwards, which is faster than row by row."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import msgspec

from shared import sql


@asynccontextmanager
async def rebuilt(db: asyncpg.Connection, table: str) -> AsyncIterator[None]:
    """Drop the indexes of a table, and build them again when the block ends. Runs inside a commit."""
    dropped = await _of_table.all(db, table)
    for index in dropped:
        if index.constraint is None:
            await db.execute(f"DROP INDEX {index.name}")
        else:
            await db.execute(f"ALTER TABLE {table} DROP CONSTRAINT {index.constraint}")
    yield
    for index in dropped:
        await db.execute(index.definition)


class _Index(msgspec.Struct, frozen=True):
    name: str
    definition: str
    constraint: str | None


_sql = sql.beside(__file__)
_of_table = _sql.query("of_table", _Index)
