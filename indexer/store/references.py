"""Reference outputs (CIP-68) that are spent. Everything here runs inside a commit of its caller."""

import asyncpg

from indexer.rows.reference_outputs import ReferenceOutputs
from shared import sql
from shared.ledger import TxId


async def spend(db: asyncpg.Connection, references: ReferenceOutputs) -> None:
    """Mark reference outputs as spent, after the rows of these blocks are written."""
    if references.spent_references:
        tag = await _spend_references.run(db, *sql.columns(references.spent_references))
        assert int(tag.split()[-1]) == references.spent_tokens, f"{tag} of {references.spent_references}"


async def undo(db: asyncpg.Connection, first_tx_id: TxId) -> None:
    """Unmark those that transactions from `first_tx_id` on have spent."""
    await _unspend_references.run(db, first_tx_id)


_sql = sql.beside(__file__)
_spend_references = _sql.command("spend_references")
_unspend_references = _sql.command("unspend_references")
