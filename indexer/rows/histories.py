"""Histories of a live index: each entry gets the next `seq` of its address or asset, and supplies move with the mints.

In bulk neither is needed: the end of bulk numbers all rows at once and adds up the mints.
"""

from collections.abc import Iterable

import msgspec

from indexer.rows.caches import LengthRow, Lengths, No
from indexer.rows.rows import Rows
from shared import sql
from shared.ledger import AddressNo, AssetNo, StakeNo, TxId
from shared.sql import Connection


class Supply(msgspec.Struct):
    """The change of an asset's supply and counts, and its first transactions where the index had none before."""

    quantity: int = 0
    mint_count: int = 0
    burn_count: int = 0
    first_tx_id: TxId | None = None
    first_mint_tx_id: TxId | None = None

    def mint(self, quantity: int, sign: int) -> None:
        """Add one mint or burn (`sign` 1), or undo it (-1)."""
        self.quantity += sign * quantity
        if quantity > 0:
            self.mint_count += sign
        else:
            self.burn_count += sign


_CHUNK_BITS = 6

ADDRESS_TXS = {"history": "address_tx", "numbered": "address_no", "entries": "tx_ids", "bytes": "8"}
ACCOUNT_TXS = {"history": "account_tx", "numbered": "stake_no", "entries": "tx_ids", "bytes": "8"}
ASSET_TXS = {"history": "asset_tx", "numbered": "asset_no", "entries": "entries", "bytes": "18"}
WITHDRAWALS = {"history": "account_withdrawal", "numbered": "stake_no", "entries": "entries", "bytes": "18"}
"""The packed histories: table, column of the row number, packed column, and bytes of an entry."""

Chunks = dict[tuple[No, int], bytes]
"""Entries by row number and chunk: a new chunk, or what is added to one."""


class Numbered(msgspec.Struct, frozen=True):
    """What the histories gain, mints with their `seq` second, and the supplies that change, by asset_no."""

    address_txs: Chunks[AddressNo]
    account_txs: Chunks[StakeNo]
    withdrawals: Chunks[StakeNo]
    asset_txs: Chunks[AssetNo]
    mints: list[tuple[AssetNo, int, TxId, int | None, int | None, bool]]
    supplies: dict[AssetNo, Supply]


class Histories:
    """The lengths of the histories as the only writer of a network knows them."""

    def __init__(self) -> None:
        self._addresses = Lengths(_address_lengths)
        self._accounts = Lengths(_account_lengths)
        self._withdrawals = Lengths(_withdrawal_lengths)
        self._assets = Lengths(_asset_lengths)
        self._mints = Lengths(_mint_lengths)

    async def number(self, db: Connection, rows: Rows) -> Numbered:
        """Number the rows of a batch. Call it once per batch, in order."""
        await self._addresses.look_up(db, {row[0] for row in rows.address_txs})
        await self._accounts.look_up(db, {row[0] for row in rows.account_txs})
        await self._withdrawals.look_up(db, {row[0] for row in rows.withdrawals})
        assets = {row[0] for row in rows.asset_txs} | {row[0] for row in rows.mints}
        await self._assets.look_up(db, assets)
        await self._mints.look_up(db, assets)
        supplies = self._supplies(rows)
        return Numbered(
            address_txs=_chunks(
                ((address_no, key.to_bytes(8)) for address_no, key in rows.address_txs), self._addresses
            ),
            account_txs=_chunks(((stake_no, key.to_bytes(8)) for stake_no, key in rows.account_txs), self._accounts),
            withdrawals=_chunks(
                ((stake_no, key.to_bytes(8) + lovelace.to_bytes(10)) for stake_no, key, lovelace in rows.withdrawals),
                self._withdrawals,
            ),
            asset_txs=_chunks(
                (
                    (asset_no, key.to_bytes(8) + _known(small, large).to_bytes(10))
                    for asset_no, key, small, large in rows.asset_txs
                ),
                self._assets,
            ),
            mints=[(row[0], self._mints.take(row[0]), *row[1:]) for row in rows.mints],
            supplies=supplies,
        )

    def _supplies(self, rows: Rows) -> dict[AssetNo, Supply]:
        """What the batch mints and burns, and the first transaction of each asset that has none.

        An asset has none if it is new, or if a rollback took all of its transactions.
        """
        supplies: dict[AssetNo, Supply] = {}
        for asset_no, key, small, large, _ in rows.mints:
            supply = supplies.setdefault(asset_no, Supply())
            quantity = _known(small, large)
            supply.mint(quantity, 1)
            if quantity > 0 and supply.first_mint_tx_id is None:
                supply.first_mint_tx_id = key
        for asset_no, tx_id in [*(row[:2] for row in rows.asset_txs), *(row[:2] for row in rows.mints)]:
            if self._assets[asset_no] == 0 and self._mints[asset_no] == 0:
                supply = supplies.setdefault(asset_no, Supply())
                if supply.first_tx_id is None or tx_id < supply.first_tx_id:
                    supply.first_tx_id = tx_id
        return supplies


def _chunks(entries: Iterable[tuple[No, bytes]], lengths: Lengths[No]) -> Chunks[No]:
    """Entries by the chunk in which the next `seq` of their history is."""
    chunks: Chunks[No] = {}
    for number, entry in entries:
        place = number, lengths.take(number) >> _CHUNK_BITS
        chunks[place] = chunks.get(place, b"") + entry
    return chunks


def _known(small: int | None, large: int | None) -> int:
    """A quantity from its two columns."""
    quantity = large if small is None else small
    assert quantity is not None, "one of the two columns is set"
    return quantity


_sql = sql.beside(__file__)
_address_lengths: "sql.Query[LengthRow[AddressNo]]" = _sql.query("entry_lengths", LengthRow, **ADDRESS_TXS)
_account_lengths: "sql.Query[LengthRow[StakeNo]]" = _sql.query("entry_lengths", LengthRow, **ACCOUNT_TXS)
_withdrawal_lengths: "sql.Query[LengthRow[StakeNo]]" = _sql.query("entry_lengths", LengthRow, **WITHDRAWALS)
_asset_lengths: "sql.Query[LengthRow[AssetNo]]" = _sql.query("entry_lengths", LengthRow, **ASSET_TXS)
_mint_lengths: "sql.Query[LengthRow[AssetNo]]" = _sql.query("mint_lengths", LengthRow)
