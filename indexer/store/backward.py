"""Backward: undo blocks, up to MAX_UNDONE_BLOCKS in a commit, in bulk and in a live index.

If a fork replaces blocks of a live index by others, both are one commit.
"""

from collections.abc import Awaitable, Callable

import asyncpg
import msgspec
import structlog

from indexer.rows import tables
from indexer.rows.histories import HistoryEntries
from indexer.rows.outputs import utxo_row
from indexer.rows.rows import Rows
from indexer.rows.tables import Found
from indexer.store import addresses, epochs, eras, forward, moves, outputs, position, references, submitted, supplies
from indexer.store.moves import Moves, fork
from indexer.store.position import OurBlock
from indexer.store.undone import Undone
from indexer.store.undone import read as read_undone
from shared import ledger, network_state, schema, sql
from shared.ledger import Point
from shared.network import Network

log = structlog.get_logger()

MAX_UNDONE_BLOCKS = 5_000
"""How many blocks one commit undoes. A longer rollback is several commits, each of which leaves a valid chain."""

Replacement = tuple[Rows, HistoryEntries]
Replace = Callable[[OurBlock], Awaitable[Replacement | None]]
"""Builds the blocks that follow this one in its epoch, instead of those that are undone; None if there are none yet.
Until it returns, only the writer's connection sees that those are undone.
"""


async def rollback(
    db: asyncpg.Connection,
    network: Network,
    point: Point,
    *,
    by_node: bool = False,
    on_undone: Callable[[Undone], None] = lambda _: None,
    replace: Replace | None = None,
) -> int:
    """Roll back to a block of our chain, and return the number of undone blocks. A long rollback takes several commits,
    each of which leaves a valid chain.

    `on_undone` is called before each commit. In a live index, `replace` is called before the last one, and its blocks
    are appended in the same commit, so that no reader sees the chain without them.

    With `by_node`, the whole depth is counted once in rollback_depth (if the rollback is interrupted between two
    commits, only the rest), and submitted transactions are marked as rolled back. `resync` requires neither, since it
    reads the same chain again.
    """
    index = await position.read(db)
    assert index is not None, "nothing is indexed"
    # Between the steps that end bulk, some tables are built from the staged rows and others are not yet.
    assert not index.finalize_step, "complete the end of bulk first"
    last = await position.our_block(db, point)
    depth = index.block_no - last.block_no
    commits = max(1, -(-depth // MAX_UNDONE_BLOCKS))
    for number in range(1, commits + 1):
        is_last = number == commits
        end = point if is_last else await _block_back.one(db, MAX_UNDONE_BLOCKS)
        assert end is not None, "the chain has more blocks than are undone"
        # After an epoch boundary block, the next block may have the same slot.
        first_slot = end.slot_no if is_last and last.ebb else end.slot_no + 1
        async with schema.commit(db):
            undone, moved = await _undo(db, network, end, first_slot, bulk=index.is_bulk, by_node=by_node)
            if is_last and by_node:
                await _count_depth(db, depth)
            on_undone(undone)
            if index.is_bulk:
                await forward.stage_amounts(db, moved.amounts)
            else:
                if is_last and replace is not None and (replacement := await replace(last)) is not None:
                    moved = fork(moved, await forward.add(db, *replacement))
                await moves.make(db, moved)
        log.info(
            "store.rolled_back", slot_no=end.slot_no, block_hash=end.block_hash.hex(), transactions=undone.transactions
        )
    return depth


async def _undo(
    db: asyncpg.Connection, network: Network, point: Point, first_slot: int, *, bulk: bool, by_node: bool
) -> tuple[Undone, Moves]:
    """Undo all blocks from `first_slot` on, so that `point` is the tip, except for the moves, which are returned.

    That is: read what the blocks did, undo it in tables that are not deleted by range, delete the rows.
    """
    first_tx_id = ledger.tx_id_of(first_slot, 0)
    # NOTE: mints written at the end of bulk are stored in order of assets. The planner then considers their BRIN index
    # useless and scans the whole table, although the latest rows are in few places.
    await db.execute("SET LOCAL enable_seqscan = off")
    undone = await read_undone(db, first_tx_id)
    if by_node:
        await submitted.undo(db, network, first_tx_id)
    reverted = await epochs.undo(db, network, point, first_slot, undone)
    await references.undo(db, first_tx_id)
    dropped = set(await eras.undo(db, first_slot))
    await _delete_rows.run(db, first_tx_id, first_slot, point.slot_no, network.epoch_of(point.slot_no))
    delegators = await epochs.restore_delegations(db, reverted)
    await _move_tip_back.run(db, point.slot_no, point.block_hash, undone.transactions, undone.script_lovelace)
    if bulk:
        await outputs.cut_staged_spenders(db, first_tx_id)
    unused = await addresses.delete_unused(db, undone.entries.address_txs, bulk=bulk)
    undone = msgspec.structs.replace(undone, unused_addresses=unused)
    if bulk:
        return undone, Moves(undone.amounts)
    await supplies.undo(db, undone.supplies, undone.assets, first_tx_id)
    await epochs.undo_reward_changes(db, point, {*reverted.stake_nos, *undone.reward_accounts})
    return undone, Moves(
        amounts=undone.amounts,
        cut=undone.entries,
        delegators=delegators,
        removed=[row for row in undone.made if row not in dropped],
        added=[
            *(utxo_row(output) for output in undone.restored.values()),
            *(row for row in dropped if row.tx_id < first_tx_id),
        ],
        spenders_cut=undone.spent,
    )


async def _count_depth(db: asyncpg.Connection, blocks: int) -> None:
    """Count one rollback by the node. Runs inside its commit."""
    await _count_rollback.run(db, next(most for most in network_state.ROLLBACK_BOUNDS if blocks <= most), blocks)


_sql = sql.beside(__file__)
_block_back = _sql.query("block_back", Point)
_delete_rows = _sql.command(
    "delete_rows",
    deletes=", ".join(
        f"deleted_{table.name} AS (DELETE FROM {table.name} WHERE {table.found.value})"  # noqa: S608 - ours
        for table in tables.ALL
        if table.found is not Found.BY_CONCERN
    ),
)
_move_tip_back = _sql.command("move_tip_back")
_count_rollback = _sql.command("count_rollback")
