"""Fold the further parts of the usage tables into part 0, once no session holds an old snapshot.

While one is held, batches are added to further parts (api/worker.py). Readers add all parts up, so folding only affects
the speed of their answers (docs/decisions/0061-usage-in-parts.md).
"""

import asyncpg
import structlog

from api.sources import held_snapshots
from shared import schema, sql

log = structlog.get_logger()

_MAX_ROWS = 2_000  # in one commit


_sql = sql.beside(__file__)
# In the order in which a batch writes the tables, so that a fold and a batch never deadlock.
_FOLDS = tuple(_sql.command(table) for table in ("minutes", "days", "totals", "hours"))


async def fold(pool: asyncpg.Pool) -> int:
    """Fold all parts, in many small commits. Returns the number of rows written: 0 while an old snapshot is held."""
    written = 0
    for table in _FOLDS:
        while await _is_free(pool) and (rows := await _fold_some(pool, table)):
            written += rows
    if written:
        log.info("usage.folded", rows=written)
    return written


async def _is_free(pool: asyncpg.Pool) -> bool:
    async with pool.acquire() as db:
        return await held_snapshots.oldest_s(db) <= held_snapshots.OLD_S


async def _fold_some(pool: asyncpg.Pool, table: sql.Command) -> int:
    async with pool.acquire() as db, schema.commit(db):
        return int((await table.run(db, _MAX_ROWS)).rpartition(" ")[2])
