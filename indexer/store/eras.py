"""Outputs that the ledger removes when an era begins. Everything here runs inside a commit of its caller.

No transaction spends them, so they have no row in `spender`: they only leave `utxo` for `dropped_output`. Their
addresses are Byron's, which have no stake credential, and Byron has no assets, so no other table changes.

- The first era after Byron begins without outputs of no lovelace, which some genesis configurations have
  (cardano-ledger, `translateUTxOByronToShelley` in Shelley/API/ByronTranslation.hs).
- Allegra begins without the outputs at vouchers' addresses that Byron left unspent: their lovelace went back to the
  reserves (`stashedAVVMAddresses` there, `returnRedeemAddrsToReserves` in Allegra/Translation.hs). No transaction after
  Byron can spend one, but any can make one; these stay.

A node translates its ledger state through every era, even through one without blocks. So an era that begins also drops
the outputs of those that were skipped.
"""

import asyncpg
import msgspec

from indexer.rows.outputs import UtxoRow
from shared import sql
from shared.ledger import AddressNo, TxId


async def drop_outputs(db: asyncpg.Connection) -> list[UtxoRow]:
    """Record the outputs that the eras which have begun do not have. The caller removes these rows from `utxo`."""
    return [_utxo_row(row) for row in await _drop_outputs.all(db)]


async def undo(db: asyncpg.Connection, first_slot: int) -> list[UtxoRow]:
    """Forget the eras that begin at `first_slot` or later. Returns the outputs that were dropped then."""
    return [_utxo_row(row) for row in await _undo.all(db, first_slot)]


def _utxo_row(row: "_Dropped") -> UtxoRow:
    return UtxoRow(row.tx_id, row.output_index, row.lovelace, row.address_no, None, None, None)


class _Dropped(msgspec.Struct, frozen=True):
    tx_id: TxId
    output_index: int
    lovelace: int
    address_no: AddressNo


_sql = sql.beside(__file__)
_drop_outputs = _sql.query("drop_outputs", _Dropped)
_undo = _sql.query("undo", _Dropped)
