"""Forward: write consecutive blocks of one epoch, and move the tip to the last of them.

`append` writes them in a live index, `stage` in bulk, each in one commit. A fork appends in the commit of its rollback:
see backward.py.
"""

from collections.abc import Sequence

import asyncpg

from indexer.blocks.packed_block import NEAR_TIP_BLOCKS
from indexer.ogmios import frames
from indexer.rows.amounts import Amounts
from indexer.rows.histories import HistoryEntries
from indexer.rows.rows import Rows, quantity_columns
from indexer.rows.staking import Staking
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
    dropped = await eras.drop_outputs(db) if rows.era_starts else []
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
    await copy(db, "mint", ("asset_no", "seq", "tx_id", "quantity", "large", "named"), entries.mints)


async def copy_staged(db: asyncpg.Connection, rows: Rows) -> None:
    """Copy the rows of blocks in bulk, and stage histories, spenders and amounts."""
    await _copy_common(db, rows)
    await copy(db, "address_tx_staged", ("address_no", "tx_id"), rows.address_txs)
    await copy(db, "asset_tx_staged", ("asset_no", "tx_id", "quantity", "large"), rows.asset_txs)
    await copy(db, "account_withdrawal_staged", ("stake_no", "tx_id", "lovelace"), rows.withdrawals)
    await copy(db, "mint_staged", ("asset_no", "tx_id", "quantity", "large", "named"), rows.mints)
    await copy(db, "spender_staged", ("slot_no", "entries"), list(rows.outputs.spenders.items()))
    await stage_amounts(db, rows.amounts)


async def _copy_common(db: asyncpg.Connection, rows: Rows) -> None:
    await copy(db, "stake", ("stake_no", "raw"), rows.first_seen.stakes)
    await copy(db, "address", ("address_no", "stake_no", "raw"), rows.first_seen.addresses)
    await copy(db, "pool", ("pool_no", "pool_id"), rows.first_seen.pools)
    await copy(db, "policy", ("policy_no", "policy_id"), rows.first_seen.policies)
    await copy(db, "asset", ("asset_no", "policy_no", "fingerprint", "name"), rows.first_seen.assets)
    await copy(db, "block", ("slot_no", "block_no", "tx_count", "pool_no", "hash"), rows.blocks)
    await copy(db, "epoch_boundary_block", ("slot_no", "block_no", "hash"), rows.epoch_boundary_blocks)
    await copy(db, "era_start", ("slot_no", "era"), rows.era_starts)
    await copy(db, "tx", ("tx_id", "fee", "size", "hash", "outputs", "inputs", "mint", "extra", "attached"), rows.txs)
    references = rows.reference_outputs.reference_outputs
    await copy(db, "reference_output", ("asset_no", "tx_id", "output_index", "datum_hash"), references)
    await attachments.add(db, rows)
    await copy_staking(db, rows.staking)


async def copy_staking(db: asyncpg.Connection, staking: Staking) -> None:
    await copy(db, "stake_event", ("tx_id", "stake_no", "pool_no", "epoch_no", "place", "kind"), staking.stake_events)
    await copy(
        db, "vote_delegation", ("tx_id", "stake_no", "place", "kind", "representative"), staking.vote_delegations
    )
    await copy(
        db,
        "representative_event",
        ("tx_id", "place", "kind", "lovelace", "representative", "anchor_url", "anchor_hash"),
        staking.representative_events,
    )
    await votes.retire(db, staking)
    await copy(db, "pool_update", ("tx_id", "pool_no", "place", "parameters"), staking.pool_updates)
    await copy(db, "pool_retirement", ("tx_id", "pool_no", "epoch_no", "place"), staking.pool_retirements)


async def _skip_fsync_far_from_tip(db: asyncpg.Connection, node_tip: frames.NodePoint, rows: Rows) -> None:
    """Far from the node's tip, do not wait for the disk: commits that a crash of Postgres loses are indexed again."""
    if node_tip.height - rows.tip_block_no > NEAR_TIP_BLOCKS:
        await db.execute("SET LOCAL synchronous_commit = off")


async def _advance(db: asyncpg.Connection, rows: Rows, phase: Phase) -> None:
    tip = rows.tip
    txs = len(rows.txs)
    await _move_tip.run(db, tip.slot_no, rows.tip_block_no, tip.block_hash, rows.first_block_no, txs, phase)


async def stage_amounts(db: asyncpg.Connection, amounts: Amounts) -> None:
    """Stage the changes of balances and held quantities."""
    balances = [(stake_no, lovelace) for stake_no, lovelace in amounts.stakes.items() if lovelace]
    held = [(*key, *quantity_columns(quantity)) for key, quantity in amounts.holders.items() if quantity]
    await copy(db, "balance_staged", ("stake_no", "lovelace"), balances)
    await copy(db, "holder_staged", ("asset_no", "address_no", "quantity", "large"), held)


async def copy(db: asyncpg.Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows, each a tuple of these columns."""
    if rows:
        await db.copy_records_to_table(table, columns=columns, records=rows)


_sql = sql.beside(__file__)
_move_tip = _sql.command("move_tip")
