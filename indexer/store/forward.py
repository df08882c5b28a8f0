"""Forward: write consecutive blocks of one epoch, and move the tip to the last of them.

`append` writes them in a live index, `stage` in bulk, each in one commit. A fork appends in the commit of its rollback:
see backward.py.
"""

from collections.abc import Sequence
from typing import Any

import asyncpg

from indexer.blocks.packed_block import is_near_tip
from indexer.ogmios import frames
from indexer.rows import tables
from indexer.rows.amounts import Amounts
from indexer.rows.histories import HistoryEntries
from indexer.rows.rows import Rows, quantity_columns
from indexer.rows.tables import Inserts, Table
from indexer.store import attachments, balances, epochs, eras, moves, references, supplies, votes
from indexer.store.moves import Moves
from shared import schema, sql
from shared.phase import Phase


async def append(db: asyncpg.Connection, rows: Rows, entries: HistoryEntries, node_tip: frames.NodePoint) -> None:
    """Write blocks of a live index: this commit leaves every table current."""
    async with schema.commit(db):
        await _skip_fsync_far_from_tip(db, node_tip, rows)
        await epochs.begin(db, rows.staking.begun)
        await votes.begin(db, rows.staking.fork)
        await moves.make(db, await add(db, rows, entries))


async def add(db: asyncpg.Connection, rows: Rows, entries: HistoryEntries) -> Moves:
    """Write blocks of one epoch in a live index, except for the moves, which are returned."""
    await copy_rows(db, rows, entries)
    await references.spend(db, rows.reference_outputs)
    await supplies.move(db, entries.supplies)
    await epochs.add_blocks(db, rows)
    await epochs.change_delegations(db, rows.staking)
    delegators = await epochs.change_rewards(db, rows.staking, rows.tip.slot_no)
    # NOTE: an era begins with an epoch, so never in a commit that undoes other blocks, whose outputs are not moved yet.
    dropped = await eras.drop_outputs(db) if rows.inserts[tables.ERA_START] else []
    await _advance(db, rows, Phase.LIVE)
    return Moves(
        amounts=rows.amounts,
        entries=entries,
        delegators=delegators,
        removed=[*rows.outputs.spent_rows(), *dropped],
        added=rows.outputs.made_rows(),
        spenders=rows.outputs.spenders,
    )


async def stage(db: asyncpg.Connection, rows: Rows, node_tip: frames.NodePoint) -> None:
    """Write blocks in bulk: histories, balances and held quantities are staged for finish_bulk.py."""
    async with schema.commit(db):
        await _skip_fsync_far_from_tip(db, node_tip, rows)
        if rows.staking.begun:
            await balances.add_up_staged(db)
        await epochs.begin(db, rows.staking.begun)
        await votes.begin(db, rows.staking.fork)
        await copy_staged(db, rows)
        await references.spend(db, rows.reference_outputs)
        await epochs.add_blocks(db, rows)
        await epochs.change_delegations(db, rows.staking)
        await _advance(db, rows, Phase.BULK)


async def copy_rows(db: asyncpg.Connection, rows: Rows, entries: HistoryEntries) -> None:
    """Write the rows of blocks of a live index, except for the moves."""
    await _copy_common(db, rows)
    await copy(db, tables.MINT, entries.mints)


async def copy_staged(db: asyncpg.Connection, rows: Rows) -> None:
    """Copy the rows of blocks in bulk, and stage histories, spenders and amounts."""
    await _copy_common(db, rows)
    await copy(db, tables.ADDRESS_TX_STAGED, rows.address_txs)
    await copy(db, tables.ASSET_TX_STAGED, rows.asset_txs)
    await copy(db, tables.ACCOUNT_WITHDRAWAL_STAGED, rows.withdrawals)
    await copy(db, tables.LABEL_TX_STAGED, rows.label_txs)
    await copy(db, tables.REDEEMER_TX_STAGED, rows.redeemer_txs)
    await copy(db, tables.MINT_STAGED, rows.mints)
    await copy(db, tables.SPENDER_STAGED, list(rows.outputs.spenders.items()))
    await stage_amounts(db, rows.amounts)


async def _copy_common(db: asyncpg.Connection, rows: Rows) -> None:
    await copy_all(db, rows.inserts)
    await attachments.add(db, rows)
    await votes.retire(db, rows.staking)


async def _skip_fsync_far_from_tip(db: asyncpg.Connection, node_tip: frames.NodePoint, rows: Rows) -> None:
    """Far from the node's tip, do not wait for the disk: commits that a crash of Postgres loses are indexed again."""
    if not is_near_tip(rows.tip_block_no, node_tip):
        await db.execute("SET LOCAL synchronous_commit = off")


async def _advance(db: asyncpg.Connection, rows: Rows, phase: Phase) -> None:
    tip = rows.tip
    txs = len(rows.inserts[tables.TX])
    locked = rows.outputs.script_lovelace
    await _move_tip.run(db, tip.slot_no, rows.tip_block_no, tip.block_hash, rows.first_block_no, txs, phase, locked)


async def stage_amounts(db: asyncpg.Connection, amounts: Amounts) -> None:
    """Stage the changes of balances, held quantities and what was spent."""
    balances = [(stake_no, lovelace) for stake_no, lovelace in amounts.stakes.items() if lovelace]
    held = [(*key, *quantity_columns(quantity)) for key, quantity in amounts.holders.items() if quantity]
    await copy(db, tables.BALANCE_STAGED, balances)
    await copy(db, tables.HOLDER_STAGED, held)
    addresses = {source.address_no for source in (*amounts.spent, *amounts.unspent)}
    by_address = amounts.sent(addresses, ()).addresses
    sent = [(*key, *quantity_columns(quantity)) for key, quantity in by_address.items() if quantity]
    await copy(db, tables.ADDRESS_SENT_STAGED, sent)


async def copy_all(db: asyncpg.Connection, inserts: Inserts) -> None:
    """Write rows to their tables."""
    for table, rows in inserts:
        await copy(db, table, rows)


async def copy(db: asyncpg.Connection, table: Table[Any], rows: Sequence[tuple[object, ...]]) -> None:
    """Write rows to a table, each a tuple of its columns."""
    if rows:
        await db.copy_records_to_table(table.name, columns=table.columns, records=rows)


_sql = sql.beside(__file__)
_move_tip = _sql.command("move_tip")
