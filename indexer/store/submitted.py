"""Transactions that were submitted through the API. Runs inside a commit of its caller."""

import asyncpg
import msgspec

from shared import sql
from shared.ledger import TxId
from shared.network import Network

_HASHES_AT_ONCE = 10_000


async def undo(db: asyncpg.Connection, network: Network, first_tx_id: TxId) -> None:
    """Mark submitted transactions from this tx_id on as rolled back: their blocks are about to be deleted."""
    any_submitted = await _any_submitted.only(db, network.network_id)
    while any_submitted and (removed := await _removed.all(db, first_tx_id, _HASHES_AT_ONCE)):
        await _note_rolled_back.run(db, network.network_id, [row.hash for row in removed])
        first_tx_id = TxId(removed[-1].tx_id + 1)


class _Removed(msgspec.Struct, frozen=True):
    tx_id: int
    hash: bytes


_sql = sql.beside(__file__)
_any_submitted = _sql.values("any_submitted", bool)
_removed = _sql.query("removed", _Removed)
_note_rolled_back = _sql.command("note_rolled_back")
