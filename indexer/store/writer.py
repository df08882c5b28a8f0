"""Writes the blocks of a chain: each commit has consecutive blocks of one epoch, and moves the tip to the last of them.

`stage` writes blocks in bulk and `append` in a live index; `rollback` undoes blocks in both, up to MAX_UNDONE_BLOCKS in
a commit. If a fork replaces blocks of a live index by others, both are one commit. Other modules write, too:
finish_bulk.py turns a staged index into a live one, `ledger/reader.py` stores data from the node's ledger, and
`snapshot/restore.py` fills an empty chain.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

import asyncpg
import msgspec
import structlog

from indexer.blocks.genesis import Genesis
from indexer.blocks.packed_block import NEAR_TIP_BLOCKS
from indexer.ogmios import frames
from indexer.rows.amounts import Amounts
from indexer.rows.histories import HistoryCounts, HistoryEntries
from indexer.rows.outputs import UtxoRow, utxo_row
from indexer.rows.reference_outputs import ReferenceOutputs
from indexer.rows.resolver import new_resolver
from indexer.rows.rows import Rows, quantity_columns
from indexer.rows.staking import Staking, of_genesis
from indexer.store import addresses, epochs, eras, histories, holders, outputs, supplies, votes
from indexer.store.undone import Undone
from indexer.store.undone import read as read_undone
from shared import ledger, network_state, schema, sql
from shared.ledger import Point, PoolNo, StakeNo
from shared.network import Network

log = structlog.get_logger()

MAX_UNDONE_BLOCKS = 5_000
"""How many blocks one commit undoes. A longer rollback is several commits, each of which leaves a valid chain."""

_HASHES_AT_ONCE = 10_000


class IndexPosition(msgspec.Struct, frozen=True):
    """The position of the index: its last block, its first, its phase, the completed steps of the end of bulk, the era
    of the last block, and whether that is an epoch boundary block.
    """

    slot_no: int
    block_hash: bytes
    block_no: int
    first_block_no: int
    tx_count: int
    phase: str
    finalize_step: int
    era: str
    ebb: bool

    @property
    def point(self) -> Point:
        """The last block."""
        return Point(self.slot_no, self.block_hash)

    @property
    def is_bulk(self) -> bool:
        """Whether histories and amounts are staged."""
        return self.phase == "bulk"


class OurBlock(msgspec.Struct, frozen=True):
    """The number and the era of a block of our chain, and whether it is an epoch boundary block."""

    block_no: int
    era: str
    ebb: bool


Replacement = tuple[Rows, HistoryEntries]
Replace = Callable[[OurBlock], Awaitable[Replacement | None]]
"""Builds the blocks that follow this one in its epoch, instead of those that are undone; None if there are none yet.
Until it returns, only the writer's connection sees that those are undone.
"""


class Counts(msgspec.Struct, frozen=True):
    """The number of blocks after a point, and of the transactions in them."""

    blocks: int
    transactions: int


async def position(db: sql.Connection) -> IndexPosition | None:
    """The position of the index, None if nothing is indexed."""
    return await _position.one(db)


async def points(db: sql.Connection) -> list[Point]:
    """Points of our chain to offer to a node, newest first; one is as deep as a node can roll back."""
    return await _points.all(db, ledger.SECURITY_PARAMETER)


# Forward --------------------------------------------------------------------------------------------------------------


async def append(db: asyncpg.Connection, rows: Rows, entries: HistoryEntries, node_tip: frames.NodePoint) -> None:
    """Write blocks of a live index: this commit leaves every table current."""
    async with schema.commit(db):
        await _skip_fsync_far_from_tip(db, node_tip, rows)
        await epochs.begin(db, rows.staking.begun)
        await votes.begin(db, rows.staking.fork)
        await _move(db, await _add(db, rows, entries))


async def _add(db: asyncpg.Connection, rows: Rows, entries: HistoryEntries) -> "_Moves":
    """Write blocks of one epoch in a live index, except for the moves, which are returned."""
    await copy_rows(db, rows, entries)
    await _mark_references_spent(db, rows.reference_outputs)
    await supplies.move(db, entries.supplies)
    await epochs.add_blocks(db, rows)
    await epochs.change_delegations(db, rows.staking)
    delegators = await epochs.change_rewards(db, rows.staking, rows.tip.slot_no)
    # NOTE: an era begins with an epoch, so never in a commit that undoes other blocks, whose outputs are not moved yet.
    dropped = await eras.drop_outputs(db) if rows.era_starts else []
    await _advance(db, rows, "live")
    return _Moves(
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
            await add_up_staged_balances(db)
        await epochs.begin(db, rows.staking.begun)
        await votes.begin(db, rows.staking.fork)
        await copy_staged(db, rows)
        await _mark_references_spent(db, rows.reference_outputs)
        await epochs.add_blocks(db, rows)
        await epochs.change_delegations(db, rows.staking)
        await _advance(db, rows, "bulk")


async def copy_rows(db: asyncpg.Connection, rows: Rows, entries: HistoryEntries) -> None:
    """Write the rows of blocks of a live index, except for the moves."""
    await _copy_common(db, rows)
    await _copy(db, "mint", ("asset_no", "seq", "tx_id", "quantity", "large", "named"), entries.mints)


async def copy_staged(db: asyncpg.Connection, rows: Rows) -> None:
    """Copy the rows of blocks in bulk, and stage histories, spenders and amounts."""
    await _copy_common(db, rows)
    await _copy(db, "address_tx_staged", ("address_no", "tx_id"), rows.address_txs)
    await _copy(db, "asset_tx_staged", ("asset_no", "tx_id", "quantity", "large"), rows.asset_txs)
    await _copy(db, "account_withdrawal_staged", ("stake_no", "tx_id", "lovelace"), rows.withdrawals)
    await _copy(db, "mint_staged", ("asset_no", "tx_id", "quantity", "large", "named"), rows.mints)
    await _copy(db, "spender_staged", ("slot_no", "entries"), list(rows.outputs.spenders.items()))
    await _stage_amounts(db, rows.amounts)


async def _copy_common(db: asyncpg.Connection, rows: Rows) -> None:
    await _copy(db, "stake", ("stake_no", "raw"), rows.first_seen.stakes)
    await _copy(db, "address", ("address_no", "stake_no", "raw"), rows.first_seen.addresses)
    await _copy(db, "pool", ("pool_no", "pool_id"), rows.first_seen.pools)
    await _copy(db, "policy", ("policy_no", "policy_id"), rows.first_seen.policies)
    await _copy(db, "asset", ("asset_no", "policy_no", "fingerprint", "name"), rows.first_seen.assets)
    await _copy(db, "block", ("slot_no", "block_no", "tx_count", "pool_no", "hash"), rows.blocks)
    await _copy(db, "epoch_boundary_block", ("slot_no", "block_no", "hash"), rows.epoch_boundary_blocks)
    await _copy(db, "era_start", ("slot_no", "era"), rows.era_starts)
    await _copy(db, "tx", ("tx_id", "fee", "size", "hash", "outputs", "inputs", "mint", "extra", "attached"), rows.txs)
    references = rows.reference_outputs.reference_outputs
    await _copy(db, "reference_output", ("asset_no", "tx_id", "output_index", "datum_hash"), references)
    if rows.datums:
        await _add_datums.run(db, list(rows.datums), *sql.columns(list(rows.datums.values())))
    if rows.scripts:
        await _add_scripts.run(db, list(rows.scripts), *sql.columns(list(rows.scripts.values())))
    await _copy_staking(db, rows.staking)


async def _copy_staking(db: asyncpg.Connection, staking: Staking) -> None:
    await _copy(db, "stake_event", ("tx_id", "stake_no", "pool_no", "epoch_no", "place", "kind"), staking.stake_events)
    await _copy(
        db, "vote_delegation", ("tx_id", "stake_no", "place", "kind", "representative"), staking.vote_delegations
    )
    await _copy(
        db,
        "representative_event",
        ("tx_id", "place", "kind", "lovelace", "representative", "anchor_url", "anchor_hash"),
        staking.representative_events,
    )
    await votes.retire(db, staking)
    await _copy(db, "pool_update", ("tx_id", "pool_no", "place", "parameters"), staking.pool_updates)
    await _copy(db, "pool_retirement", ("tx_id", "pool_no", "epoch_no", "place"), staking.pool_retirements)


async def _skip_fsync_far_from_tip(db: asyncpg.Connection, node_tip: frames.NodePoint, rows: Rows) -> None:
    """Far from the node's tip, do not wait for the disk: commits that a crash of Postgres loses are indexed again."""
    if node_tip.height - rows.tip_block_no > NEAR_TIP_BLOCKS:
        await db.execute("SET LOCAL synchronous_commit = off")


async def _advance(db: asyncpg.Connection, rows: Rows, phase: str) -> None:
    tip = rows.tip
    txs = len(rows.txs)
    await _move_tip.run(db, tip.slot_no, rows.tip_block_no, tip.block_hash, rows.first_block_no, txs, phase)


async def begin(db: asyncpg.Connection, network: Network, genesis: Genesis) -> None:
    """Erase the chain, then write its genesis: outputs, pools and delegations."""
    async with schema.commit(db):
        await erase(db)
        await forget_verification(db, network)
        genesis_outputs = [(ledger.tx_id_of(-1 - place, 0), *output) for place, output in enumerate(genesis.outputs)]
        await _copy(db, "genesis_output", ("tx_id", "tx_hash", "address", "lovelace"), genesis_outputs)
        resolver = await new_resolver(db, network)
        first_seen = await resolver.look_up_numbers(
            db,
            dict.fromkeys(raw for _, raw, _ in reversed(genesis.outputs)),
            set(),
            set(genesis.delegations),
            genesis.pools.keys() | set(genesis.delegations.values()),
        )
        await _copy(db, "stake", ("stake_no", "raw"), first_seen.stakes)
        await _copy(db, "address", ("address_no", "stake_no", "raw"), first_seen.addresses)
        await _copy(db, "pool", ("pool_no", "pool_id"), first_seen.pools)
        paid = [resolver.genesis_output(tx_id, raw, lovelace) for tx_id, _, raw, lovelace in genesis_outputs]
        await count_addresses(db)
        staking = of_genesis(genesis, resolver)
        await _copy_staking(db, staking)
        await epochs.change_delegations(db, staking)
        amounts = Amounts()
        amounts.move(paid, 1)
        delegators = await epochs.change_rewards(db, staking, 0)
        await _move(db, _Moves(amounts, delegators=delegators, added=[utxo_row(output) for output in paid]))
        await epochs.begin(db, staking.begun)


async def renumber(db: asyncpg.Connection) -> None:
    """Set a new id as `tip.numbering`, which invalidates all caches of row numbers: Postgres may have lost commits that
    assigned some.
    """
    async with schema.commit(db):
        await _renumber.run(db)


async def add_up_staged_balances(db: asyncpg.Connection) -> None:
    """Add up the balances staged in bulk, because an epoch begins or bulk ends. Runs inside a commit."""
    await _add_up_staged_balances.run(db)
    await db.execute("TRUNCATE balance_staged")


async def count_addresses(db: asyncpg.Connection) -> None:
    """Count the addresses of all accounts again. Runs inside a commit."""
    await _count_addresses.run(db)


async def analyze(db: asyncpg.Connection) -> None:
    """Update the planner's statistics of every table of the chain."""
    await db.execute("ANALYZE " + await _tables(db))


# Backward -------------------------------------------------------------------------------------------------------------


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
    index = await position(db)
    assert index is not None, "nothing is indexed"
    # Between the steps that end bulk, some tables are built from the staged rows and others are not yet.
    assert not index.finalize_step, "complete the end of bulk first"
    last = await our_block(db, point)
    depth = index.block_no - last.block_no
    commits = max(1, -(-depth // MAX_UNDONE_BLOCKS))
    for number in range(1, commits + 1):
        is_last = number == commits
        end = point if is_last else await _block_back.one(db, MAX_UNDONE_BLOCKS)
        assert end is not None, "the chain has more blocks than are undone"
        # After an epoch boundary block, the next block may have the same slot.
        first_slot = end.slot_no if is_last and last.ebb else end.slot_no + 1
        async with schema.commit(db):
            undone, moves = await _undo(db, network, end, first_slot, bulk=index.is_bulk, by_node=by_node)
            if is_last and by_node:
                await _count_depth(db, depth)
            on_undone(undone)
            if index.is_bulk:
                await _stage_amounts(db, moves.amounts)
            else:
                if is_last and replace is not None and (replacement := await replace(last)) is not None:
                    moves = _fork(moves, await _add(db, *replacement))
                await _move(db, moves)
        log.info(
            "store.rolled_back", slot_no=end.slot_no, block_hash=end.block_hash.hex(), transactions=undone.transactions
        )
    return depth


async def _undo(
    db: asyncpg.Connection, network: Network, point: Point, first_slot: int, *, bulk: bool, by_node: bool
) -> tuple[Undone, "_Moves"]:
    """Undo all blocks from `first_slot` on, so that `point` is the tip, except for the moves: read, delete, reverse."""
    first_tx_id = ledger.tx_id_of(first_slot, 0)
    # NOTE: mints written at the end of bulk are stored in order of assets. The planner then considers their BRIN index
    # useless and scans the whole table, although the latest rows are in few places.
    await db.execute("SET LOCAL enable_seqscan = off")
    undone = await read_undone(db, first_tx_id)
    if by_node:
        await _note_submitted(db, network, first_tx_id)
    changed, revived = await _delete(db, network, point, first_slot, undone)
    await _move_tip_back.run(db, point.slot_no, point.block_hash, undone.transactions)
    dropped = set(await eras.undo(db, first_slot))
    if bulk:
        await outputs.cut_staged_spenders(db, first_tx_id)
        await _delete_staged.run(db, first_tx_id)
    unused = await addresses.delete_unused(db, undone.entries.address_txs, bulk=bulk)
    undone = msgspec.structs.replace(undone, unused_addresses=unused)
    if bulk:
        return undone, _Moves(undone.amounts)
    await supplies.undo(db, undone.supplies, undone.assets, first_tx_id)
    await epochs.undo_reward_changes(db, point, changed | undone.reward_accounts)
    return undone, _Moves(
        amounts=undone.amounts,
        cut=undone.entries,
        delegators=changed | await epochs.delegators_of(db, revived),
        removed=[row for row in undone.made if row not in dropped],
        added=[
            *(utxo_row(output) for output in undone.restored.values()),
            *(row for row in dropped if row.tx_id < first_tx_id),
        ],
        unspent=undone.spent,
    )


async def _delete(
    db: asyncpg.Connection, network: Network, point: Point, first_slot: int, undone: Undone
) -> tuple[set[StakeNo], set[PoolNo]]:
    """Delete the blocks from `first_slot` on, and restore the delegations and counts of blocks from before them.

    `point` is the new tip, which the caller sets. Returns the stake credentials whose delegation is restored, and the
    pools that were reaped in an epoch after the new tip's.
    """
    epoch_no = network.epoch_of(point.slot_no)
    next_slot = network.epoch_start(epoch_no + 1)
    lovelace_out = sum(lovelace for tx_id, lovelace in undone.lovelace_out if tx_id < ledger.tx_id_of(next_slot, 0))
    deleted = await _delete_blocks.all(
        db, first_slot, point.block_hash, ledger.tx_id_of(first_slot, 0), epoch_no, next_slot, lovelace_out
    )
    made = [
        (row.pool_no, network.epoch_of(row.slot_no))
        for row in deleted
        if row.pool_no is not None and row.slot_no is not None
    ]
    # In `pool_epoch`, the rows of the epoch after the tip's exist already, and those of later ones are deleted.
    blocks = Counter((pool_no, of_epoch) for pool_no, of_epoch in made if of_epoch <= epoch_no + 1)
    changed = {row.stake_no for row in deleted if row.stake_no is not None}
    await epochs.undo(db, blocks, changed)
    return changed, {row.pool_no for row in deleted if row.pool_no is not None and row.slot_no is None}


async def _count_depth(db: asyncpg.Connection, blocks: int) -> None:
    """Count one rollback by the node. Runs inside its commit."""
    await _count_rollback.run(db, next(most for most in network_state.ROLLBACK_BOUNDS if blocks <= most), blocks)


async def _note_submitted(db: asyncpg.Connection, network: Network, first_tx_id: int) -> None:
    """Mark submitted transactions from this tx_id on as rolled back: their blocks are about to be deleted."""
    submitted = await _any_submitted.one(db, network.network_id)
    assert submitted is not None, "EXISTS is one row"
    while submitted.any and (removed := await _removed.all(db, first_tx_id, _HASHES_AT_ONCE)):
        await _note_rolled_back.run(db, network.network_id, [row.hash for row in removed])
        first_tx_id = removed[-1].tx_id + 1


async def forget_verification(db: asyncpg.Connection, network: Network) -> None:
    """Drop the record of the last `verify`, since a new index begins. Runs inside a commit."""
    await _forget_verification.run(db, network.network_id)


async def erase(db: asyncpg.Connection) -> None:
    """Empty every table of the chain. The counts of rollbacks stay: their metrics must not fall."""
    async with schema.commit(db):
        await db.execute("TRUNCATE " + await _tables(db))


# Questions ------------------------------------------------------------------------------------------------------------


async def holds(db: sql.Connection, point: Point) -> bool:
    """Whether a block of our chain, epoch boundary blocks included, is at this point."""
    return await _block_at.one(db, point.slot_no, point.block_hash) is not None


async def our_block(db: sql.Connection, point: Point) -> OurBlock:
    """The block of our chain at this point."""
    block = await _block_at.one(db, point.slot_no, point.block_hash)
    assert block is not None, f"{point} is not of our chain"
    return block


async def last_at_or_before(db: sql.Connection, slot_no: int) -> Point | None:
    """The last block at or before a slot."""
    return await _last_at_or_before.one(db, slot_no)


async def counts_after(db: sql.Connection, point: Point | None) -> Counts:
    """The blocks after a point (None: all) and their transactions. Takes about a second for ten million blocks."""
    counts = await _counts_after.one(db, -1 if point is None else point.slot_no)
    assert counts is not None, "an aggregate is one row"
    return counts


async def _tables(db: asyncpg.Connection) -> str:
    """All tables of the network except `rollback_depth`, which is not part of its chain."""
    names: str = await db.fetchval(
        "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables"
        " WHERE schemaname = current_schema() AND tablename <> 'rollback_depth'"
    )
    return names


# Amounts and rows -----------------------------------------------------------------------------------------------------


async def _mark_references_spent(db: asyncpg.Connection, references: ReferenceOutputs) -> None:
    if references.spent_references:
        tag = await _spend_references.run(db, *sql.columns(references.spent_references))
        assert int(tag.split()[-1]) == references.spent_tokens, f"{tag} of {references.spent_references}"


async def _stage_amounts(db: asyncpg.Connection, amounts: Amounts) -> None:
    """Stage the changes of balances and held quantities."""
    balances = [(stake_no, lovelace) for stake_no, lovelace in amounts.stakes.items() if lovelace]
    held = [(*key, *quantity_columns(quantity)) for key, quantity in amounts.holders.items() if quantity]
    await _copy(db, "balance_staged", ("stake_no", "lovelace"), balances)
    await _copy(db, "holder_staged", ("asset_no", "address_no", "quantity", "large"), held)


class _Moves(msgspec.Struct, frozen=True):
    """What a commit moves once, at its end: most transactions of a fork are also in the blocks that it replaces, so
    most of their moves cancel out.

    `cut` and `entries` are those of histories. `delegators` are stake credentials whose delegation or reward may have
    changed. `removed` and `added` are rows of `utxo`. By slot_no, `unspent` is the number of entries to cut off
    `spender`, and `spenders` are those to add after that.
    """

    amounts: Amounts
    cut: HistoryCounts = HistoryCounts()
    entries: HistoryEntries = HistoryEntries()
    delegators: set[StakeNo] = set()
    removed: Sequence[UtxoRow] = ()
    added: Sequence[UtxoRow] = ()
    unspent: Mapping[int, int] = {}
    spenders: Mapping[int, bytes] = {}


def _fork(undone: _Moves, replacement: _Moves) -> _Moves:
    """The moves of a fork: those of the undone blocks, and those of the blocks that replace them."""
    amounts = Amounts()
    amounts.add(undone.amounts)
    amounts.add(replacement.amounts)
    removed, added = [*undone.removed, *replacement.removed], [*undone.added, *replacement.added]
    in_both = set(removed).intersection(added)
    return _Moves(
        amounts=amounts,
        cut=undone.cut,
        entries=replacement.entries,
        delegators=undone.delegators | replacement.delegators,
        removed=[row for row in removed if row not in in_both],
        added=[row for row in added if row not in in_both],
        unspent=undone.unspent,
        spenders=replacement.spenders,
    )


async def _move(db: asyncpg.Connection, moves: _Moves) -> None:
    """Move histories, balances, the number of used addresses of accounts, held quantities, delegators and unspent
    outputs.
    """
    used = await histories.change(db, moves.cut, moves.entries)
    balances = [(stake_no, lovelace) for stake_no, lovelace in moves.amounts.stakes.items() if lovelace]
    if balances or used:
        await _move_balances.run(db, *sql.columns(balances, empty=2), list(used), list(used.values()))
    await holders.move(db, moves.amounts.holders, moves.amounts.accounts)
    await epochs.refresh(db, moves.delegators.union(stake_no for stake_no, _ in balances))
    await outputs.change(db, moves.removed, moves.added)
    await outputs.change_spenders(db, moves.unspent, moves.spenders)


async def _copy(db: asyncpg.Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        await db.copy_records_to_table(table, columns=columns, records=rows)


class _DeletedRow(msgspec.Struct, frozen=True):
    """The slot and maker of a deleted block, the pool of a deleted reaping, or the stake credential of a deleted event.

    The other fields are null.
    """

    slot_no: int | None
    pool_no: PoolNo | None
    stake_no: StakeNo | None


class _Removed(msgspec.Struct, frozen=True):
    tx_id: int
    hash: bytes


class _Submitted(msgspec.Struct, frozen=True):
    any: bool


_sql = sql.beside(__file__)
_position = _sql.query("position", IndexPosition)
_points = _sql.query("points", Point)
_block_at = _sql.query("block_at", OurBlock)
_last_at_or_before = _sql.query("last_at_or_before", Point)
_counts_after = _sql.query("counts_after", Counts)
_block_back = _sql.query("block_back", Point)
_move_balances = _sql.command("move_balances")
_count_addresses = _sql.command("count_addresses")
_add_up_staged_balances = _sql.command("add_up_staged_balances")
_forget_verification = _sql.command("forget_verification")
_spend_references = _sql.command("spend_references")
_add_datums = _sql.command("add_datums")
_add_scripts = _sql.command("add_scripts")
_any_submitted = _sql.query("any_submitted", _Submitted)
_removed = _sql.query("removed", _Removed)
_note_rolled_back = _sql.command("note_rolled_back")
_delete_staged = _sql.command("delete_staged")
_delete_blocks = _sql.query("delete_blocks", _DeletedRow)
_move_tip = _sql.command("move_tip")
_count_rollback = _sql.command("count_rollback")
_renumber = _sql.command("renumber")
_move_tip_back = _sql.command("move_tip_back")
