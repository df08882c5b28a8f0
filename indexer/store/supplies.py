"""Supplies of assets in the database. Everything here runs inside a commit of its caller.

Long lists of a policy's assets are counted in buckets (buckets.sql). The list of all minted assets grows at its end,
where a rollback cuts it.
"""

from collections.abc import Mapping

import asyncpg
import msgspec

from indexer.rows.histories import SupplyChange
from indexer.store.buckets import Buckets
from shared import sql
from shared.ledger import AssetNo, TxId


async def move(db: asyncpg.Connection, supplies: Mapping[AssetNo, SupplyChange]) -> None:
    """Move supplies and the counts of mints and burns, by asset_no."""
    if not supplies:
        return
    rows = [
        (asset_no, str(s.quantity), s.mint_count, s.burn_count, s.first_tx_id, s.first_mint_tx_id)
        for asset_no, s in supplies.items()
    ]
    await _move_supplies.run(db, *sql.columns(rows))
    minted = [(asset_no, s.first_mint_tx_id) for asset_no, s in supplies.items() if s.first_mint_tx_id is not None]
    if minted:
        await _list_minted.run(db, *sql.columns(minted))
    is_new = [supply.first_tx_id is not None for supply in supplies.values()]
    quantities = [str(supply.quantity) for supply in supplies.values()]
    await _move_asset_buckets.run(db, list(supplies), quantities, is_new)


async def undo(
    db: asyncpg.Connection, supplies: Mapping[AssetNo, SupplyChange], touched: set[AssetNo], first_tx_id: TxId
) -> None:
    """Undo the changes of supplies and counts of mints, in a rollback of the transactions from `first_tx_id` on.

    `supplies` have the opposite sign already.

    Assets that are left without transactions no longer exist: their column `first_tx_id` becomes null. `touched` are
    the assets that the undone transactions paid, minted or burned.
    """
    if not touched:
        return
    changes = {asset_no: supplies.get(asset_no, _UNCHANGED) for asset_no in sorted(touched)}
    rows = [(asset_no, str(s.quantity), s.mint_count, s.burn_count) for asset_no, s in changes.items()]
    undone = await _undo_supplies.all(db, *sql.columns(rows), first_tx_id)
    if undone:
        changed = [row.asset_no for row in undone]
        quantities = [str(changes[asset_no].quantity) for asset_no in changed]
        await _move_asset_buckets.run(db, changed, quantities, [False] * len(changed))
    unminted = sum(row.is_unminted for row in undone)
    if unminted:
        await _cut_minted.run(db, unminted)


async def fill(db: asyncpg.Connection) -> None:
    """Count the assets of every policy, and every bucket, and list the minted ones, at the end of bulk."""
    await _count_assets.run(db)
    await _fill_minted.run(db)
    await _fill_asset_buckets.run(db)


class _Undone(msgspec.Struct, frozen=True):
    """An asset that a rollback has changed, and whether it has removed its first mint."""

    asset_no: AssetNo
    is_unminted: bool


_UNCHANGED = SupplyChange()
_sql = sql.beside(__file__)
_move_supplies = _sql.command("move_supplies")
_undo_supplies = _sql.query("undo_supplies", _Undone)
_list_minted = _sql.command("list_minted")
_cut_minted = _sql.command("cut_minted")
_fill_minted = _sql.command("fill_minted")
BUCKETS = Buckets(
    "asset_bucket",
    key="policy_no",
    rank="rank",
    tie="name",
    rows=_sql.text("listed"),
    sums={"assets": "count(*)"},
    lowest="'-Infinity'",
    lowest_tie="''",
    highest="'Infinity'",
    sparse=True,
)
_move_asset_buckets = BUCKETS.move(_sql.text("places"))
_count_assets = _sql.command("count_assets")
_fill_asset_buckets = BUCKETS.fill()
