"""The floor of a rollback: it only deletes the rows of the same blocks by key.

It does not recompute or restore anything: amounts, histories, lists, outputs that are unspent again.
"""

import time

import asyncpg

from shared.ledger import Point, tx_id_of

_TABLES = ("tx", "mint", "utxo", "block")
"""The tables with a row for each block, transaction, unspent output or mint."""


async def undo_s(db: asyncpg.Connection, point: Point, *, redo: bool = False) -> float:
    """Seconds to delete the rows of all blocks after a point and, with `redo`, to copy them back.

    It never commits, so the index does not change.
    """
    transaction = db.transaction()
    await transaction.start()
    await db.execute("SET LOCAL enable_seqscan = off")  # as in a rollback
    began = time.perf_counter()
    deleted = {table: await _delete_after(db, table, point) for table in _TABLES}
    if redo:
        for table, rows in deleted.items():
            await db.copy_records_to_table(table, records=rows)
    took_s = time.perf_counter() - began
    await transaction.rollback()
    return took_s


async def _delete_after(db: asyncpg.Connection, table: str, point: Point) -> list[asyncpg.Record]:
    first_slot = point.slot_no + 1
    column, first = ("slot_no", first_slot) if table == "block" else ("tx_id", tx_id_of(first_slot, 0))
    deleted: list[asyncpg.Record] = await db.fetch(
        f"DELETE FROM {table} WHERE {column} >= $1 RETURNING *",  # noqa: S608 - of our own constants
        first,
    )
    return deleted
