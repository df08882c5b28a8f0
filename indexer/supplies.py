"""What exists of each asset, in the database. Everything here runs inside a commit of store.py.

A deep page of a policy's long list is found by its buckets, as one of holders is (docs/decisions/0009): each begins at
an asset whose number opens one.
"""

from collections.abc import Mapping

import asyncpg

from indexer.amounts import Supply
from shared import sql
from shared.ledger import TxId


async def move(db: asyncpg.Connection, supplies: Mapping[int, Supply]) -> None:
    """Move supplies and what is counted of them, by asset_id."""
    if not supplies:
        return
    await _add(db, supplies)
    born = [supply.first_tx_id is not None for supply in supplies.values()]
    quantities = [str(supply.quantity) for supply in supplies.values()]
    await _move_asset_buckets.run(db, list(supplies), quantities, born)


async def undo(db: asyncpg.Connection, supplies: Mapping[int, Supply], touched: set[int], first_tx_id: TxId) -> None:
    """The same with the other sign, for a rollback to before a transaction; assets left without any exist no more.

    `touched` are the assets that what is undone paid, spent, minted or burned.
    """
    if not touched:
        return
    if supplies:
        await _add(db, supplies)
    await _forget_firsts.run(db, sorted(touched), first_tx_id)
    quantities = [str(supplies[asset_id].quantity) if asset_id in supplies else "0" for asset_id in touched]
    await _move_asset_buckets.run(db, list(touched), quantities, [False] * len(touched))


async def fill(db: asyncpg.Connection) -> None:
    """Count the assets of every policy, and every bucket, at the end of bulk."""
    await _count_assets.run(db)
    await _fill_asset_buckets.run(db)


async def _add(db: asyncpg.Connection, supplies: Mapping[int, Supply]) -> None:
    rows = [
        (number, str(s.quantity), s.mint_count, s.burn_count, s.first_tx_id, s.first_mint_tx_id)
        for number, s in supplies.items()
    ]
    await _move_supplies.run(db, *(list(column) for column in zip(*rows, strict=True)))


_move_supplies = sql.command("move_supplies")
_forget_firsts = sql.command("forget_firsts")
_move_asset_buckets = sql.command("move_asset_buckets")
_count_assets = sql.command("count_assets")
_fill_asset_buckets = sql.command("fill_asset_buckets")
