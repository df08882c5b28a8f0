"""Stake, pools and epochs in the database. Everything here runs inside a commit of its caller."""

from collections.abc import Iterable

import asyncpg
import msgspec

from indexer.rows import tables
from indexer.rows.rows import Rows
from indexer.rows.staking import Staking
from indexer.store.undone import Undone
from shared import sql
from shared.ledger import ACTIVE_AFTER_EPOCHS, Point, PoolNo, StakeNo, slot_of, tx_id_of
from shared.network import Network


async def begin(db: asyncpg.Connection, epochs: list[int]) -> None:
    """Begin epochs, in the ledger's order: the stake snapshot first, then pools are reaped.

    The balances in the database must be those of the last block before the epoch.
    """
    for epoch_no in epochs:
        await _stake_snapshot.run(db, epoch_no)
        await _reap.run(db, epoch_no)


async def add_blocks(db: asyncpg.Connection, rows: Rows) -> None:
    """Add blocks to the sums of their epoch, and to those of their pools."""
    blocks, txs = rows.inserts[tables.BLOCK], rows.inserts[tables.TX]
    if blocks:
        fees = sum(tx.fee for tx in txs if tx.fee is not None)
        made = rows.staking.blocks  # all of one epoch
        sums = (rows.epoch_no, len(blocks), len(txs), fees, rows.lovelace_out)
        await _add_blocks.run(db, *sums, [pool_no for pool_no, _ in made], list(made.values()))


async def change_delegations(db: asyncpg.Connection, staking: Staking) -> None:
    """Set the pool and the first active epoch of the credentials in `staking.delegations`."""
    if staking.delegations:
        changed = [(stake_no, *delegation) for stake_no, delegation in staking.delegations.items()]
        await _delegate.run(db, *sql.columns(changed))


async def change_rewards(db: asyncpg.Connection, staking: Staking, slot_no: int) -> set[StakeNo]:
    """Take what is withdrawn out of rewards, and mark those that changed up to `slot_no` to be read again.

    Returns the stake credentials whose reward or delegation changed. A withdrawal empties a reward account (Shelley
    ledger specification, DELEGS), or takes a part of it since Dijkstra (cardano-ledger `validateWithdrawals`); the
    actual reward after it is read from the ledger later.
    """
    changed_rewards = staking.withdrawn.keys() | staking.credited | staking.delegations.keys()
    if staking.withdrawn:
        await _withdraw.run(db, list(staking.withdrawn), list(staking.withdrawn.values()))
    if changed_rewards:
        await _make_rewards_due.run(db, sorted(changed_rewards), slot_no)
    return changed_rewards


async def refresh(db: asyncpg.Connection, stake_nos: Iterable[StakeNo]) -> None:
    """Update the lists of delegators for these credentials: balance, reward and pool."""
    wanted = sorted(stake_nos)
    if wanted:
        await _refresh_delegators.run(db, wanted)


async def fill(db: asyncpg.Connection) -> None:
    """Fill the lists of delegators, at the end of bulk."""
    await db.execute("TRUNCATE delegator, delegator_bucket, live_stake")
    await _fill_delegators.run(db)
    await _fill_delegator_buckets.run(db)
    await _fill_live_stake.run(db)


async def undo(db: asyncpg.Connection, network: Network, point: Point, first_slot: int, undone: Undone) -> "Reverted":
    """Take the blocks from `first_slot` on out of the sums of epochs and pools, before they are deleted. `point` is the
    new tip.
    """
    epoch_no = network.epoch_of(point.slot_no)
    next_slots = [network.epoch_start(epoch_no + 1), network.epoch_start(epoch_no + 2)]
    lovelace_out = sum(lovelace for tx_id, lovelace in undone.lovelace_out if slot_of(tx_id) < next_slots[0])
    slots = *next_slots, network.byron_slots
    reverted = await _undo.only(db, first_slot, tx_id_of(first_slot, 0), epoch_no, *slots, lovelace_out)
    await _undo_readings.run(db, epoch_no)
    return reverted


async def restore_delegations(db: asyncpg.Connection, reverted: "Reverted") -> set[StakeNo]:
    """Restore delegations after a rollback has deleted the events and reapings that ended them. Returns the stake
    credentials whose delegation may have changed.
    """
    if reverted.stake_nos:
        await _restore_delegations.run(db, reverted.stake_nos, ACTIVE_AFTER_EPOCHS)
    revived = await _delegators_of.all(db, reverted.reaped) if reverted.reaped else []
    return {*reverted.stake_nos, *revived}


async def undo_reward_changes(db: asyncpg.Connection, point: Point, changed: set[StakeNo]) -> None:
    """Mark the rewards that must be read again at `point`.

    `changed` are the stake credentials whose delegation the rollback restored, or whose payments it undid.
    """
    await _bring_rewards_due_back.run(db, point.slot_no)
    if changed:
        await _make_rewards_due.run(db, sorted(changed), point.slot_no)


class Reverted(msgspec.Struct, frozen=True):
    """The stake credentials of undone events, and the pools that were reaped in undone epochs."""

    stake_nos: list[StakeNo]
    reaped: list[PoolNo]


_sql = sql.beside(__file__)
_stake_snapshot = _sql.command("stake_snapshot")
_reap = _sql.command("reap")
_add_blocks = _sql.command("add_blocks")
_delegate = _sql.command("delegate")
_withdraw = _sql.command("withdraw")
_make_rewards_due = _sql.command("make_rewards_due")
_bring_rewards_due_back = _sql.command("bring_rewards_due_back")
_delegators_of = _sql.values("delegators_of", StakeNo)
_refresh_delegators = _sql.command("refresh_delegators")
_fill_delegators = _sql.command("fill_delegators")
_fill_delegator_buckets = _sql.command("fill_delegator_buckets")
_fill_live_stake = _sql.command("fill_live_stake")
_undo = _sql.query("undo", Reverted)
_undo_readings = _sql.command("undo_readings")
_restore_delegations = _sql.command("restore_delegations")
