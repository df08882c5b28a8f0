"""The only writer of a chain: append, rollback and the end of bulk, one commit each."""

from collections.abc import Sequence

import asyncpg
import msgspec
import structlog

from indexer import epochs, frames, holders, supplies
from indexer.amounts import Amounts
from indexer.effects import assets_of
from indexer.genesis import Genesis
from indexer.known import known_to
from indexer.metadata import Descriptions
from indexer.rows import Rows, quantity_columns
from indexer.staking import Staking, of_genesis
from shared import packed, sql
from shared.ledger import Point, tx_id
from shared.network import Network
from shared.packed import Output

log = structlog.get_logger()

MOST_UNDONE_BLOCKS = 5_000
"""How many blocks one commit undoes; a longer way back is several commits, each a chain of its own."""


class Position(msgspec.Struct, frozen=True):
    """Where the index stands: its last block, its first, and whether histories are still staged."""

    slot_no: int
    block_hash: bytes
    block_no: int
    first_block_no: int
    tx_count: int
    phase: str
    finalize_step: int

    @property
    def point(self) -> Point:
        """The last block."""
        return Point(self.slot_no, self.block_hash)


async def position(db: sql.Connection) -> Position | None:
    """Where the index stands, None where nothing is indexed."""
    return await _position.one(db)


async def points(db: sql.Connection) -> list[Point]:
    """Points of our chain to offer to a node, newest first."""
    return await _points.all(db)


async def append(db: asyncpg.Connection, rows: Rows, node_tip: frames.NodePoint, *, bulk: bool) -> None:
    """Write a batch and move the tip, in one commit."""
    async with db.transaction():
        if node_tip.height - rows.tip_block_no > _FAR_BLOCKS:
            # Far from the tip a crash of Postgres may cost the last commits: they are followed again.
            await db.execute("SET LOCAL synchronous_commit = off")
        if bulk and rows.staking.crossed:
            await settle_balances(db)
        ended = await epochs.cross(db, rows.staking.crossed)
        await copy_rows(db, rows, bulk=bulk)
        await _describe(db, rows.descriptions)
        if not bulk:
            await _move(db, rows.amounts)
            await supplies.move(db, rows.amounts.supplies)
        await epochs.move(db, rows.staking, rows.tip.slot_no, ended | rows.amounts.balances.keys(), bulk=bulk)
        await _move_tip.run(
            db,
            rows.tip.slot_no,
            rows.tip_block_no,
            rows.tip.block_hash,
            rows.first_block_no,
            len(rows.txs),
            "bulk" if bulk else "live",
        )
        await _see_node_tip.run(db, node_tip.slot, node_tip.height)


async def copy_rows(db: asyncpg.Connection, rows: Rows, *, bulk: bool) -> None:
    """Write the rows of a batch, in bulk with those that stage balances and held quantities; else no amounts."""
    await _copy(db, "stake", ("stake_id", "raw"), rows.unborn.stakes)
    await _copy(db, "address", ("address_id", "raw"), rows.unborn.addresses)
    await _copy(db, "pool", ("pool_id", "hash"), rows.unborn.pools)
    await _copy(db, "policy", ("policy_id", "hash"), rows.unborn.policies)
    await _copy(db, "asset", ("asset_id", "policy_id", "name"), rows.unborn.assets)
    await _copy(db, "block", ("slot_no", "block_no", "tx_count", "pool_id", "hash"), rows.blocks)
    await _copy(db, "epoch_boundary_block", ("slot_no", "block_no", "hash"), rows.epoch_boundary_blocks)
    await _copy(db, "tx", ("tx_id", "fee", "size", "hash", "outputs", "inputs", "extra"), rows.txs)
    suffix, place = ("_staged", ()) if bulk else ("", ("seq",))
    await _copy(db, f"address_tx{suffix}", ("address_id", *place, "tx_id"), rows.address_txs)
    await _copy(db, f"asset_tx{suffix}", ("asset_id", *place, "tx_id", "quantity", "large"), rows.asset_txs)
    await _copy(db, f"mint{suffix}", ("asset_id", *place, "tx_id", "quantity", "large", "named"), rows.mints)
    await _copy(
        db,
        "reference_output",
        ("asset_id", "tx_id", "output_index", "datum_hash", "datum"),
        rows.descriptions.reference_outputs,
    )
    await _copy_staking(db, rows.staking)
    if bulk:
        await _stage(db, rows.amounts)


async def _stage(db: asyncpg.Connection, amounts: Amounts) -> None:
    """Note what balances and held quantities move by, to be added up where they are needed."""
    balances = [(number, lovelace) for number, lovelace in amounts.balances.items() if lovelace]
    held = [(*key, *quantity_columns(quantity)) for key, quantity in amounts.holders.items() if quantity]
    await _copy(db, "balance_staged", ("stake_id", "lovelace"), balances)
    await _copy(db, "holder_staged", ("asset_id", "address_id", "quantity", "large"), held)


async def _copy_staking(db: asyncpg.Connection, staking: Staking) -> None:
    await _copy(db, "stake_event", ("tx_id", "stake_id", "pool_id", "epoch_no", "place", "kind"), staking.stake_events)
    await _copy(db, "pool_update", ("tx_id", "pool_id", "place", "parameters"), staking.pool_updates)
    await _copy(db, "pool_retirement", ("tx_id", "pool_id", "epoch_no", "place"), staking.pool_retirements)


async def begin(db: asyncpg.Connection, network: Network, genesis: Genesis) -> None:
    """Make an empty chain of what exists before its first block: outputs, pools and delegations."""
    async with db.transaction():
        await erase(db)
        await _copy(db, "genesis_output", ("tx_hash", "address", "lovelace"), genesis.outputs)
        outputs = [Output(raw, lovelace) for _, raw, lovelace in genesis.outputs]
        known = await known_to(db, network, bulk=True)
        unborn = await known.learn_numbers(db, {output.address for output in outputs}, set(), set(genesis.delegations))
        await _copy(db, "stake", ("stake_id", "raw"), unborn.stakes)
        named = genesis.pools.keys() | set(genesis.delegations.values())
        await _copy(db, "pool", ("pool_id", "hash"), await known.pools.learn(db, named))
        amounts = Amounts()
        amounts.move(known.numbered(outputs), 1)
        await _move(db, amounts)
        staking = of_genesis(genesis, known)
        await _copy_staking(db, staking)
        await epochs.move(db, staking, 0, set(amounts.balances), bulk=False)
        await epochs.cross(db, staking.crossed)


async def settle_balances(db: asyncpg.Connection) -> None:
    """Add up what was staged of balances in bulk: an epoch begins, or bulk ends. Runs inside a commit."""
    await _settle_balances.run(db)
    await db.execute("TRUNCATE balance_staged")


async def erase(db: asyncpg.Connection) -> None:
    """Empty every table of the chain."""
    await db.execute("TRUNCATE " + await _tables(db))


async def analyze(db: asyncpg.Connection) -> None:
    """Take statistics of every table of the chain."""
    await db.execute("ANALYZE " + await _tables(db))


async def holds(db: sql.Connection, point: Point) -> bool:
    """Whether a block of our chain, epoch boundary blocks included, is at this point."""
    return await _block_at.one(db, point.slot_no, point.block_hash) is not None


async def block_no_at(db: sql.Connection, point: Point) -> int:
    """The number of the block of our chain at this point."""
    block = await _block_at.one(db, point.slot_no, point.block_hash)
    assert block is not None, f"{point} is not of our chain"
    return block.block_no


async def last_at_or_before(db: sql.Connection, slot_no: int) -> Point | None:
    """The last block at or before a slot."""
    return await _last_at_or_before.one(db, slot_no)


async def rollback(db: asyncpg.Connection, network: Network, point: Point) -> None:
    """Go back to a block of our chain. A long way is several commits, each leaving a chain that ends further back."""
    boundary = await _boundary_at.one(db, point.slot_no, point.block_hash) is not None
    while True:
        above = await _newest_above.all(db, point.slot_no if boundary else point.slot_no + 1, MOST_UNDONE_BLOCKS + 1)
        if len(above) <= MOST_UNDONE_BLOCKS:
            await _undo(db, network, point, first_slot=point.slot_no if boundary else point.slot_no + 1)
            return
        await _undo(db, network, above[-1], first_slot=above[-1].slot_no + 1)


async def _undo(db: asyncpg.Connection, network: Network, point: Point, *, first_slot: int) -> None:
    """Take back all blocks from `first_slot` on, so that `point` is the tip, in one commit."""
    first_tx_id = tx_id(first_slot, 0)
    async with db.transaction():
        # NOTE: histories made in bulk lie in order of address and asset. Postgres then takes their BRIN indexes for
        # worthless and reads them from end to end, although the latest transactions are in few places.
        await db.execute("SET LOCAL enable_seqscan = off")
        undone = [
            _Undone(
                row.hash,
                packed.unpack_outputs(row.outputs)[1],
                [source.source for source in packed.unpack_inputs(row.inputs) if source.source is not None],
                packed.unpack_extra(row.extra),
            )
            for row in await _transactions_from.all(db, first_tx_id)
        ]
        known = await known_to(db, network, bulk=True)
        outputs = [output for tx in undone for output in (*tx.outputs, *tx.spent)]
        accounts = {account for tx in undone for account in (*tx.extra.withdrawals, *tx.extra.credits)}
        bundles = [*(output.assets for output in outputs), *(tx.extra.mint for tx in undone)]
        assets = {asset for bundle in bundles for asset in assets_of(bundle)}
        await known.learn_numbers(db, {output.address for output in outputs}, assets, accounts)
        present = await position(db)
        # Between the steps that end bulk some tables are made from what is staged, and others not yet.
        assert present is None or not present.finalize_step, "bulk is being ended: do that first"
        bulk = present is not None and present.phase == "bulk"
        amounts = Amounts()
        for tx in undone:
            amounts.move(known.numbered(tx.outputs), -1)
            amounts.move(known.numbered(tx.spent), 1)
            if tx.extra.mint:
                amounts.mint(known.quantities(tx.extra.mint), -1)
        if bulk:
            await _stage(db, amounts)
        else:
            await _move(db, amounts)
            touched = {asset_id for asset_id, _ in amounts.holders} | set(amounts.supplies)
            await supplies.undo(db, amounts.supplies, touched, first_tx_id)
        await epochs.undo(
            db,
            network,
            point,
            first_slot,
            moved=set(amounts.balances),
            paid={known.stakes[account] for account in accounts},
            bulk=bulk,
        )
        await _unspend_references.run(db, first_tx_id)
        await _forget_transactions.run(db, first_tx_id)
        await _forget_blocks.run(db, first_slot, point.block_hash)
        await _move_tip_back.run(db, point.slot_no, point.block_hash, len(undone))
    log.info("store.rolled_back", slot_no=point.slot_no, block_hash=point.block_hash.hex(), transactions=len(undone))


async def _tables(db: asyncpg.Connection) -> str:
    names: str = await db.fetchval(
        "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables WHERE schemaname = current_schema()"
    )
    return names


async def _describe(db: asyncpg.Connection, descriptions: Descriptions) -> None:
    if descriptions.spent_references:
        tag = await _spend_references.run(db, *_columns(descriptions.spent_references))
        assert int(tag.split()[-1]) == descriptions.spent_tokens, f"{tag} of {descriptions.spent_references}"
    if descriptions.datums:
        await _keep_datums.run(db, *_columns([(key, *row) for key, row in descriptions.datums.items()]))


async def _move(db: asyncpg.Connection, amounts: Amounts) -> None:
    """Move balances and held quantities."""
    balances = [(number, lovelace) for number, lovelace in amounts.balances.items() if lovelace]
    if balances:
        await _move_balances.run(db, *_columns(balances))
    await holders.move(db, amounts.holders)


async def _copy(db: asyncpg.Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        await db.copy_records_to_table(table, columns=columns, records=rows)


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


class _BlockNo(msgspec.Struct, frozen=True):
    block_no: int


class _Packed(msgspec.Struct, frozen=True):
    hash: bytes
    outputs: bytes
    inputs: bytes
    extra: bytes | None


class _Undone(msgspec.Struct, frozen=True):
    hash: bytes
    outputs: list[Output]
    spent: list[Output]
    extra: packed.Extra


_FAR_BLOCKS = 100

_position = sql.query("position", Position)
_points = sql.query("points", Point)
_boundary_at = sql.query("boundary_at", Point)
_block_at = sql.query("block_at", _BlockNo)
_last_at_or_before = sql.query("last_at_or_before", Point)
_newest_above = sql.query("newest_above", Point)
_transactions_from = sql.query("transactions_from", _Packed)
_move_balances = sql.command("move_balances")
_settle_balances = sql.command("settle_balances")
_spend_references = sql.command("spend_references")
_unspend_references = sql.command("unspend_references")
_keep_datums = sql.command("keep_datums")
_forget_transactions = sql.command("forget_transactions")
_forget_blocks = sql.command("forget_blocks")
_move_tip = sql.command("move_tip")
_see_node_tip = sql.command("see_node_tip")
_move_tip_back = sql.command("move_tip_back")
