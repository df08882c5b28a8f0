"""Stake, pools and epochs in the database. Everything here runs inside a commit of store.py."""

from collections import Counter
from collections.abc import Iterable

import asyncpg
import msgspec

from indexer.staking import ACTIVE_AFTER_EPOCHS, Boundary, Staking
from shared import sql
from shared.ledger import Point, tx_id
from shared.network import Network


async def cross(db: asyncpg.Connection, boundaries: list[Boundary]) -> set[int]:
    """Begin epochs, in the ledger's order: the snapshot first, then pools are reaped.

    The balances in the database must be those of the last block before. Returns the credentials that lost their pool.
    """
    ended: set[int] = set()
    for boundary in boundaries:
        await _snapshot.run(db, boundary.epoch_no)
        ended.update(row.stake_id for row in await _reap.all(db, boundary.epoch_no, boundary.first_tx_id))
    return ended


async def move(db: asyncpg.Connection, staking: Staking, slot_no: int, moved: set[int], *, bulk: bool) -> None:
    """Move what a batch up to `slot_no` moves; `moved` are the credentials whose balance or pool it has moved before.

    A withdrawal empties a reward account (Shelley ledger specification, DELEGS); what it really left is read later.
    """
    await _move_blocks_of(db, staking.blocks)
    if staking.delegations:
        changed = [(stake_id, *delegation) for stake_id, delegation in staking.delegations.items()]
        await _delegate.run(db, *(list(column) for column in zip(*changed, strict=True)))
    if not bulk:
        changed_rewards = staking.withdrawn | staking.credited | staking.delegations.keys()
        if staking.withdrawn:
            await _forget_rewards.run(db, list(staking.withdrawn))
        if changed_rewards:
            await _make_rewards_due.run(db, sorted(changed_rewards), slot_no)
        await refresh(db, moved | changed_rewards)


async def refresh(db: asyncpg.Connection, stake_ids: Iterable[int]) -> None:
    """Bring the lists of delegators up to date with these credentials' balance, reward and pool."""
    wanted = sorted(stake_ids)
    if wanted:
        await _leave_delegators.run(db, wanted)
        await _enter_delegators.run(db, wanted)


async def fill(db: asyncpg.Connection) -> None:
    """Make the lists of delegators, at the end of bulk."""
    await db.execute("TRUNCATE delegator, delegator_bucket")
    await _fill_delegators.run(db)
    await _fill_delegator_buckets.run(db)


async def undo(
    db: asyncpg.Connection,
    network: Network,
    point: Point,
    first_slot: int,
    *,
    moved: set[int],
    paid: set[int],
    bulk: bool,
) -> None:
    """Take back every block from `first_slot` on, before it leaves the tables of blocks: `point` becomes the tip.

    `moved` are the credentials whose balance is restored already, `paid` those whose withdrawals or credits are undone.
    """
    made = await _blocks_from.all(db, first_slot)
    blocks = Counter((block.pool_id, network.epoch_of(block.slot_no)) for block in made)
    await _move_blocks_of(db, Counter({key: -count for key, count in blocks.items()}))
    # The snapshot that counts in the epoch after the tip's was taken where the tip's began.
    last_epoch_no = network.epoch_of(point.slot_no) + 1
    await _forget_epochs.run(db, last_epoch_no)
    await _forget_pool_rewards.run(db, last_epoch_no)
    await _forget_ledger_state.run(db, last_epoch_no - 1)
    first_tx_id = tx_id(first_slot, 0)
    changed = {row.stake_id for row in await _forget_stake_events.all(db, first_tx_id)}
    await _restore_delegations.run(db, sorted(changed), ACTIVE_AFTER_EPOCHS)
    await _forget_pool_updates.run(db, first_tx_id)
    await _forget_pool_retirements.run(db, first_tx_id)
    if not bulk:
        await _bring_rewards_due_back.run(db, point.slot_no)
        if changed | paid:
            await _make_rewards_due.run(db, sorted(changed | paid), point.slot_no)
        await refresh(db, moved | changed)


async def _move_blocks_of(db: asyncpg.Connection, blocks: Counter[tuple[int, int]]) -> None:
    if blocks:
        rows = [(*key, count) for key, count in blocks.items()]
        await _move_blocks.run(db, *(list(column) for column in zip(*rows, strict=True)))


class _StakeId(msgspec.Struct, frozen=True):
    stake_id: int


class _MadeBlock(msgspec.Struct, frozen=True):
    slot_no: int
    pool_id: int


_snapshot = sql.command("snapshot")
_reap = sql.query("reap", _StakeId)
_move_blocks = sql.command("move_blocks")
_delegate = sql.command("delegate")
_forget_rewards = sql.command("forget_rewards")
_make_rewards_due = sql.command("make_rewards_due")
_bring_rewards_due_back = sql.command("bring_rewards_due_back")
_leave_delegators = sql.command("leave_delegators")
_enter_delegators = sql.command("enter_delegators")
_fill_delegators = sql.command("fill_delegators")
_fill_delegator_buckets = sql.command("fill_delegator_buckets")
_blocks_from = sql.query("blocks_from", _MadeBlock)
_forget_epochs = sql.command("forget_epochs")
_forget_pool_rewards = sql.command("forget_pool_rewards")
_forget_ledger_state = sql.command("forget_ledger_state")
_forget_stake_events = sql.query("forget_stake_events", _StakeId)
_restore_delegations = sql.command("restore_delegations")
_forget_pool_updates = sql.command("forget_pool_updates")
_forget_pool_retirements = sql.command("forget_pool_retirements")
