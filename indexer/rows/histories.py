"""Histories of a live index: the entries of a batch by address, account, asset, label or script, its numbered mints,
and the supplies that they move.

In bulk none of this is needed: the end of bulk numbers all rows at once and adds up the mints.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

import msgspec

from indexer.rows import tables
from indexer.rows.caches import MAX_NUMBERS, Recent
from indexer.rows.rows import Rows
from shared import sql
from shared.ledger import AddressNo, AssetNo, LabelNo, ScriptKey, StakeNo, TxId
from shared.sql import Connection

Owner = TypeVar("Owner", bound=int | bytes)
"""What tells the histories of one kind apart: row numbers, or the keys of scripts."""


class SupplyChange(msgspec.Struct):
    """The change of an asset's supply and counts, with the first transactions that moved and that minted it.

    Each is set only if the index has none of the asset yet. A rollback has neither.
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


class HistoryCounts(msgspec.Struct, frozen=True):
    """How many entries a rollback cuts off each history."""

    address_txs: Mapping[AddressNo, int] = {}
    account_txs: Mapping[StakeNo, int] = {}
    credential_txs: Mapping[AddressNo, int] = {}
    withdrawals: Mapping[StakeNo, int] = {}
    asset_txs: Mapping[AssetNo, int] = {}
    label_txs: Mapping[LabelNo, int] = {}
    redeemer_txs: Mapping[ScriptKey, int] = {}


class HistoryEntries(msgspec.Struct, frozen=True):
    """Packed entries to add to histories, in order; numbered mints; and the supplies that change."""

    address_txs: Mapping[AddressNo, bytes] = {}
    account_txs: Mapping[StakeNo, bytes] = {}
    credential_txs: Mapping[AddressNo, bytes] = {}
    withdrawals: Mapping[StakeNo, bytes] = {}
    asset_txs: Mapping[AssetNo, bytes] = {}
    label_txs: Mapping[LabelNo, bytes] = {}
    redeemer_txs: Mapping[ScriptKey, bytes] = {}
    mints: Sequence[tables.Mint] = ()
    supplies: Mapping[AssetNo, SupplyChange] = {}


class AssetState(msgspec.Struct):
    """Whether the index has a transaction and a mint of an asset, and its number of mints and burns."""

    exists: bool = False
    is_minted: bool = False
    mints: int = 0


class AssetStates:
    """The states of assets, as cached by the only writer of a network."""

    def __init__(self) -> None:
        self._states = Recent[AssetNo, AssetState](MAX_NUMBERS)

    async def entries_of(self, db: Connection, rows: Rows) -> HistoryEntries:
        """The additions of a batch's part of one epoch. Call it once for each part, in order."""
        await self._look_up(db, {row.asset_no for row in rows.asset_txs} | {row.asset_no for row in rows.mints})
        return HistoryEntries(
            address_txs=_joined((address_no, tx_id.to_bytes(8)) for address_no, tx_id in rows.address_txs),
            account_txs=_joined((stake_no, tx_id.to_bytes(8)) for stake_no, tx_id in rows.account_txs),
            credential_txs=_joined((credential_no, tx_id.to_bytes(8)) for credential_no, tx_id in rows.credential_txs),
            withdrawals=_joined(
                (row.stake_no, row.tx_id.to_bytes(8) + row.lovelace.to_bytes(10)) for row in rows.withdrawals
            ),
            asset_txs=_joined(
                (row.asset_no, row.tx_id.to_bytes(8) + _quantity_of(row).to_bytes(10)) for row in rows.asset_txs
            ),
            label_txs=_joined((label_no, tx_id.to_bytes(8)) for label_no, tx_id in rows.label_txs),
            redeemer_txs=_joined((script_key, tx_id.to_bytes(8)) for script_key, tx_id in rows.redeemer_txs),
            supplies=self._supplies(rows),
            mints=[
                tables.Mint(
                    row.asset_no, self._number_mint(row.asset_no), row.tx_id, row.quantity, row.large, row.named
                )
                for row in rows.mints
            ],
        )

    def forget(self, assets: Iterable[AssetNo]) -> None:
        """Forget the states of assets whose transactions a rollback has undone."""
        self._states.forget(assets)

    async def _look_up(self, db: Connection, assets: set[AssetNo]) -> None:
        """Look up the states that are not cached. Assets of this batch may not be in the database yet."""
        self._states.trim()
        missing = self._states.unknown(assets)
        if missing:
            self._states.update((asset_no, AssetState()) for asset_no in missing)
            for row in await _states.all(db, list(missing)):
                self._states[row.asset_no] = AssetState(row.exists, row.is_minted, row.mints)

    def _number_mint(self, asset_no: AssetNo) -> int:
        """Take the `seq` of the next mint."""
        state = self._states[asset_no]
        state.mints += 1
        return state.mints - 1

    def _supplies(self, rows: Rows) -> dict[AssetNo, SupplyChange]:
        """The mints and burns of the batch, and the first transaction of each asset that has none.

        An asset has none if it is new, or if a rollback removed all of its transactions.
        """
        supplies: dict[AssetNo, SupplyChange] = {}
        for mint in rows.mints:
            supply = supplies.setdefault(mint.asset_no, SupplyChange())
            quantity = _quantity_of(mint)
            supply.mint(quantity, 1)
            state = self._states[mint.asset_no]
            if quantity > 0 and not state.is_minted:
                supply.first_mint_tx_id = mint.tx_id
                state.is_minted = True
        begun = set[AssetNo]()
        moving: Iterable[tables.StagedAssetTx | tables.StagedMint] = chain(rows.asset_txs, rows.mints)
        for row in moving:
            if not self._states[row.asset_no].exists:
                begun.add(row.asset_no)
                supply = supplies.setdefault(row.asset_no, SupplyChange())
                if supply.first_tx_id is None or row.tx_id < supply.first_tx_id:
                    supply.first_tx_id = row.tx_id
        for asset_no in begun:
            self._states[asset_no].exists = True
        return supplies


def _joined(entries: Iterable[tuple[Owner, bytes]]) -> dict[Owner, bytes]:
    """The entries of each history in one."""
    joined: dict[Owner, bytes] = {}
    for number, entry in entries:
        joined[number] = joined.get(number, b"") + entry
    return joined


def _quantity_of(row: tables.StagedAssetTx | tables.StagedMint) -> int:
    """A quantity from its two columns."""
    quantity = row.large if row.quantity is None else row.quantity
    assert quantity is not None, "one of the two columns is set"
    return quantity


class _State(msgspec.Struct, frozen=True):
    asset_no: AssetNo
    exists: bool
    is_minted: bool
    mints: int


_sql = sql.beside(__file__)
_states = _sql.query("states", _State)
