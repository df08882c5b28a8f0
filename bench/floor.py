"""The floor of a rollback: it only deletes the rows of the same blocks by key.

It does not recompute or restore anything: amounts, histories, lists, outputs that are unspent again.
"""

import time

import asyncpg

from shared import sql
from shared.ledger import Point, tx_id_of


async def undo_s(db: asyncpg.Connection, point: Point, *, redo: bool = False) -> float:
    """Seconds to delete the rows of all blocks after a point and, with `redo`, to copy them back.

    These are the rows of the tables with one for each block, transaction, unspent output or mint. It never commits, so
    the index does not change.
    """
    first_slot = point.slot_no + 1
    first_tx_id = tx_id_of(first_slot, 0)
    # NOTE: read before the clock starts, since no key of `utxo` begins with tx_id. A rollback knows the addresses.
    unspent = await db.fetch("SELECT address_no, tx_id, output_index FROM utxo WHERE tx_id >= $1", first_tx_id)
    transaction = db.transaction()
    await transaction.start()
    await db.execute("SET LOCAL enable_seqscan = off")  # as in a rollback
    began = time.perf_counter()
    deleted = {
        "tx": await db.fetch("DELETE FROM tx WHERE tx_id >= $1 RETURNING *", first_tx_id),
        "mint": await db.fetch("DELETE FROM mint WHERE tx_id >= $1 RETURNING *", first_tx_id),
        "utxo": await db.fetch(_DELETE_UNSPENT, *sql.columns([tuple(row) for row in unspent], empty=3)),
        "block": await db.fetch("DELETE FROM block WHERE slot_no >= $1 RETURNING *", first_slot),
    }
    if redo:
        for table, rows in deleted.items():
            await db.copy_records_to_table(table, records=rows)
    took_s = time.perf_counter() - began
    await transaction.rollback()
    return took_s


_DELETE_UNSPENT = """
DELETE FROM utxo u USING unnest($1::integer[], $2::bigint[], $3::integer[]) AS key (address_no, tx_id, output_index)
WHERE (u.address_no, u.tx_id, u.output_index) = (key.address_no, key.tx_id, key.output_index)
RETURNING u.*
"""
