"""Outputs with reference tokens (CIP-68) or reference scripts that are spent.

Everything here runs inside a commit of its caller.
"""

import asyncpg

from indexer.rows.reference_outputs import ReferenceOutputs
from shared import sql
from shared.ledger import TxId


async def spend(db: asyncpg.Connection, references: ReferenceOutputs) -> None:
    """Mark reference outputs as spent, after the rows of these blocks are written."""
    if references.spent_references:
        rows = await _spend_references.only(db, *sql.columns(references.spent_references))
        assert rows == references.spent_rows, f"{rows} rows of {references.spent_references}"


async def undo(db: asyncpg.Connection, first_tx_id: TxId) -> None:
    """Unmark those that transactions from `first_tx_id` on have spent."""
    await _unspend_references.run(db, first_tx_id)
    await _unspend_scripts.run(db, first_tx_id)


_sql = sql.beside(__file__)
_spend_references = _sql.values("spend_references", int)
_unspend_references = _sql.command("unspend", table="reference_output")
_unspend_scripts = _sql.command("unspend", table="script_output")
