"""Histories of a live index: each entry gets the next `seq` of its address, account or asset, and mints move supplies.

In bulk neither is needed: the end of bulk numbers all rows at once and adds up the mints.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Generic

import msgspec

from indexer.rows.caches import Lengths, No
from indexer.rows.rows import Rows
from shared import sql
from shared.ledger import AddressNo, AssetNo, StakeNo, TxId
from shared.sql import Connection


class SupplyChange(msgspec.Struct):
    """The change of an asset's supply and counts, with the first transactions that moved and that minted it.

    `first_tx_id` is set only if the index has no transaction of the asset yet. `first_mint_tx_id` is the first of the
    batch; the asset keeps an earlier one. A rollback has neither.
    """

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


class Chunks(Generic[No]):
    """Additions to the histories of one kind: entries by row number and chunk, and the chunks that begin with them."""

    def __init__(self, entries: Iterable[tuple[No, bytes]], lengths: Lengths[No]) -> None:
        self.added: dict[tuple[No, int], bytes] = {}
        self.begun: set[tuple[No, int]] = set()
        for number, entry in entries:
            seq = lengths.take(number)
            place = number, seq >> _CHUNK_BITS
            if place in self.added:
                self.added[place] += entry
            else:
                self.added[place] = entry
                if not seq & ((1 << _CHUNK_BITS) - 1):
                    self.begun.add(place)

    def columns(self) -> tuple[list[No], list[int], list[bool], list[bytes]]:
        """Row numbers, chunks, whether they begin, and entries."""
        places, begun = self.added.keys(), self.begun
        return (
            [number for number, _ in places],
            [chunk for _, chunk in places],
            [place in begun for place in places],
            list(self.added.values()),
        )


class HistoryEntries(msgspec.Struct, frozen=True):
    """Additions to all histories. The second field of a mint is its `seq`. `supplies` are those that change."""

    address_txs: Chunks[AddressNo]
    account_txs: Chunks[StakeNo]
    withdrawals: Chunks[StakeNo]
    asset_txs: Chunks[AssetNo]
    mints: list[tuple[AssetNo, int, TxId, int | None, int | None, bool]]
    supplies: dict[AssetNo, SupplyChange]


class Histories:
    """The lengths of histories, as cached by the only writer of a network."""

    def __init__(self) -> None:
        self._addresses = Lengths[AddressNo]()
        self._accounts = Lengths[StakeNo]()
        self._withdrawals = Lengths[StakeNo]()
        self._assets = Lengths[AssetNo]()
        self._mints = Lengths[AssetNo]()

    async def number(self, db: Connection, rows: Rows) -> HistoryEntries:
        """Number the rows of a batch's part of one epoch. Call it once for each part, in order."""
        assets = {row[0] for row in rows.asset_txs} | {row[0] for row in rows.mints}
        await self._look_up(
            db,
            (self._addresses, {row[0] for row in rows.address_txs}),
            (self._accounts, {row[0] for row in rows.account_txs}),
            (self._withdrawals, {row[0] for row in rows.withdrawals}),
            (self._assets, assets),
            (self._mints, assets),
        )
        supplies = self._supplies(rows)
        return HistoryEntries(
            address_txs=Chunks(
                ((address_no, tx_id.to_bytes(8)) for address_no, tx_id in rows.address_txs), self._addresses
            ),
            account_txs=Chunks(((stake_no, tx_id.to_bytes(8)) for stake_no, tx_id in rows.account_txs), self._accounts),
            withdrawals=Chunks(
                (
                    (stake_no, tx_id.to_bytes(8) + lovelace.to_bytes(10))
                    for stake_no, tx_id, lovelace in rows.withdrawals
                ),
                self._withdrawals,
            ),
            asset_txs=Chunks(
                (
                    (asset_no, tx_id.to_bytes(8) + _quantity_of(small, large).to_bytes(10))
                    for asset_no, tx_id, small, large in rows.asset_txs
                ),
                self._assets,
            ),
            mints=[(row[0], self._mints.take(row[0]), *row[1:]) for row in rows.mints],
            supplies=supplies,
        )

    def cut(
        self,
        addresses: Mapping[AddressNo, int],
        accounts: Mapping[StakeNo, int],
        withdrawals: Mapping[StakeNo, int],
        assets: Mapping[AssetNo, int],
        supplies: Mapping[AssetNo, SupplyChange],
    ) -> None:
        """Note how many entries a rollback has cut off histories, and the mints and burns that it has undone."""
        self._addresses.cut(addresses)
        self._accounts.cut(accounts)
        self._withdrawals.cut(withdrawals)
        self._assets.cut(assets)
        self._mints.cut({asset_no: -each.mint_count - each.burn_count for asset_no, each in supplies.items()})

    async def _look_up(self, db: Connection, *wanted: tuple[Lengths[Any], set[Any]]) -> None:
        """Look up the lengths of those of these histories that are not cached."""
        missing = []
        for lengths, numbers in wanted:
            lengths.trim()
            missing.append(list(lengths.unknown(numbers)))
        if any(missing):
            for row in await _lengths.all(db, *missing):
                wanted[row.history][0][row.number] = row.length

    def _supplies(self, rows: Rows) -> dict[AssetNo, SupplyChange]:
        """The mints and burns of the batch, and the first transaction of each asset that has none.

        An asset has none if it is new, or if a rollback removed all of its transactions.
        """
        supplies: dict[AssetNo, SupplyChange] = {}
        for asset_no, tx_id, small, large, _ in rows.mints:
            supply = supplies.setdefault(asset_no, SupplyChange())
            quantity = _quantity_of(small, large)
            supply.mint(quantity, 1)
            if quantity > 0 and supply.first_mint_tx_id is None:
                supply.first_mint_tx_id = tx_id
        for asset_no, tx_id in [*(row[:2] for row in rows.asset_txs), *(row[:2] for row in rows.mints)]:
            if self._assets[asset_no] == 0 and self._mints[asset_no] == 0:
                supply = supplies.setdefault(asset_no, SupplyChange())
                if supply.first_tx_id is None or tx_id < supply.first_tx_id:
                    supply.first_tx_id = tx_id
        return supplies


def _quantity_of(small: int | None, large: int | None) -> int:
    """A quantity from its two columns."""
    quantity = large if small is None else small
    assert quantity is not None, "one of the two columns is set"
    return quantity


class _Length(msgspec.Struct, frozen=True):
    """The length of a history, by its place among the arguments of the statement."""

    history: int
    number: int
    length: int


_sql = sql.beside(__file__)
_lengths = _sql.query("lengths", _Length)
