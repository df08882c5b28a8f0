"""From batches to commits: while a batch is written, the rows of the next one are built.

In bulk, the look-ups of a third batch run at the same time. When the node switches to another fork, its first blocks
are written in the commit that undoes the blocks of the last one.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import groupby

import asyncpg
import msgspec

from indexer.blocks.node_warnings import NodeWarnings
from indexer.blocks.packed_block import Lookups, PackedBlock
from indexer.ledger import protocol
from indexer.ogmios import frames
from indexer.ogmios.connection import Connect
from indexer.rows import rows, tables
from indexer.rows.caches import UNCOMMITTED_PARTS
from indexer.rows.histories import AssetStates, HistoryEntries
from indexer.rows.resolver import Resolver, new_resolver
from indexer.rows.staking import ProtocolFork, epochs_begun
from indexer.rows.tables import Inserts
from indexer.rows.value_check import Rules, UnexplainedDeposit
from indexer.store import backward, finish_bulk, forward, position, votes
from indexer.store.undone import Undone
from indexer.sync import phase
from indexer.sync.batches import Batch
from indexer.sync.continuity import LastBlock, NotFollowing, followed_by, last_of
from indexer.sync.progress import Progress
from indexer.sync.session import NodeSession, OutdatedSession, check_depth
from shared import lifecycle
from shared.ledger import Point, tx_id_of
from shared.phase import Phase

Arrived = Callable[[Callable[[PackedBlock], bool]], Awaitable[list[PackedBlock]]]
"""Takes the blocks that have arrived, up to one that is not wanted, as Incoming.arrived does."""


class _Prepared(msgspec.Struct, frozen=True):
    """A batch, or its part of one epoch, that waits to be written; `entries` is None in bulk."""

    rows: rows.Rows
    entries: HistoryEntries | None
    node_tip: frames.NodePoint
    blocks: int


class Pipeline:
    """Turns the batches of one session into commits.

    `writer` is the connection with the network's lock; while it commits a batch, `reader` looks up the next. Other
    users of `writer` must hold `turn`. `on_commit` is called after blocks are written or rolled back, and when bulk
    has ended. `connect` opens further connections to the session's node.
    """

    def __init__(
        self,
        session: NodeSession,
        writer: asyncpg.Connection,
        reader: asyncpg.Connection,
        turn: asyncio.Lock,
        progress: Progress,
        warnings: NodeWarnings,
        on_commit: Callable[[], None],
        connect: Connect,
    ) -> None:
        self._session, self._writer, self._reader, self._turn = session, writer, reader, turn
        self._progress, self._warnings, self._on_commit = progress, warnings, on_commit
        self._connect = connect
        # While one batch is written, the next is built or waits, and a third may be looked up and built. Together with
        # the read-ahead of block_source and batches, this bounds memory.
        self._queue: asyncio.Queue[asyncio.Task[_Prepared]] = asyncio.Queue(maxsize=UNCOMMITTED_PARTS - 1)
        self._building: asyncio.Task[_Prepared] | None = None
        self._unapplied: list[Lookups] = []  # of the blocks that are being built
        self.phase = session.phase
        self._tip: LastBlock | None = None
        self._first_block_no: int | None = None
        self._protocol_forked = False
        self._resolver: Resolver
        self._assets: AssetStates

    async def load(self) -> None:
        """Load the state of the index, with empty caches. Call this first, and only while no batch waits to be
        written."""
        await self._stand_at_tip()
        self._resolver, self._assets = await new_resolver(self._reader, self._session.network), AssetStates()

    async def _stand_at_tip(self) -> None:
        """Load the position of the index."""
        index = await position.read(self._writer)
        self._progress.at = "the beginning" if index is None else str(index.point)
        self.phase, self._tip, self._first_block_no = phase.current(index), None, None
        self._protocol_forked = await votes.forked(self._writer)
        if index is not None:
            self._tip = LastBlock(index.point, index.block_no, index.era, index.ebb)
            self._first_block_no = index.first_block_no
        self._progress.signals.stands_at(index, self.phase)

    def heard(self, tip: frames.NodePoint | None) -> None:
        """Note the node's tip, as soon as a message with it arrives; None is the origin."""
        self._progress.signals.heard(tip)

    async def write_forever(self) -> None:
        """Write batches in order as soon as their rows are built, until cancelled.

        Raises OutdatedSession, value_check.Unbalanced, and the errors of the database.
        """
        while True:
            prepared = await (await self._queue.get())
            async with self._turn:
                began = time.perf_counter()
                if prepared.entries is None:
                    await forward.stage(self._writer, prepared.rows, prepared.node_tip)
                else:
                    await forward.append(self._writer, prepared.rows, prepared.entries, prepared.node_tip)
                took_s = time.perf_counter() - began
            self._on_commit()
            if prepared.rows.staking.begun:
                gc.collect()  # once per epoch: automatic collection is off
            self._report(prepared, took_s)
            self._queue.task_done()

    def _report(self, committed: _Prepared, took_s: float) -> None:
        """Report blocks that were committed within `took_s`."""
        rows, blocks = committed.rows, committed.blocks
        tip, block_no, transactions = rows.tip, rows.tip_block_no, len(rows.inserts[tables.TX])
        self._progress.signals.committed(tip.slot_no, block_no, self.phase, blocks, transactions, took_s)
        self._progress.advance(tip, block_no, committed.node_tip.height, blocks, transactions)

    async def forward(self, batch: Batch) -> None:
        """Run the look-ups of a batch, and start building its rows for the writer. In a live index, wait for the rows.

        Raises NotFollowing, and OutdatedSession or value_check.Unbalanced for this batch or the last one.
        """
        if self._first_block_no is None:
            self.phase, self._first_block_no = phase.begun_by(batch), batch.blocks[0].block_no
        self._warnings.look(batch.blocks)
        network, before = self._session.network, self._tip
        followed = [self._accept(block) for block in batch.blocks]
        # NOTE: an epoch begins in the commit of its first block, before that block's rows: balances are then still
        # those of the previous epoch. So does an era, which drops outputs.
        for _, of_epoch in groupby(followed, lambda block: (network.epoch_of(block.point.slot_no), block.era)):
            blocks = list(of_epoch)
            await self._prepare(blocks, before)
            before = last_of(blocks)

    async def backward(self, point: Point | None, arrived: Arrived) -> None:
        """Wait until prepared batches are written, then roll back to `point`. Blocks of the other fork that have
        `arrived` before the commit are written in it, up to the end of the epoch.

        Raises NotFollowing for a point that we do not have, RollbackTooDeep, and all that `forward` raises.
        """
        if self._tip is None or point == self._tip.point:
            return  # NOTE: Ogmios' first answer after an intersection is a rollback to that point
        tip = self._tip.point
        async with self._exclusively():
            if point is not None and not await position.holds(self._writer, point):
                raise NotFollowing(f"the node rolled back to {point}, which is not on our chain; our tip is {tip}")
            point = await check_depth(self._writer, self._session.network, point)
            began, replacement = time.perf_counter(), None

            async def replace(last: position.OurBlock) -> backward.Replacement | None:
                nonlocal replacement
                self._tip = LastBlock(point, last.block_no, last.era, last.ebb)
                replacement = await self._replacement(self._tip, arrived)
                if replacement is None:
                    return None
                assert replacement.entries is not None, "only the blocks of a live index are replaced"
                return replacement.rows, replacement.entries

            depth = await backward.rollback(
                self._writer,
                self._session.network,
                point,
                by_node=True,
                on_undone=self._undo_in_caches,
                replace=replace,
            )
            await self._stand_at_tip()
            self._progress.signals.rolled_back(depth)
        self._on_commit()
        if replacement is not None:
            self._report(replacement, time.perf_counter() - began)

    async def _replacement(self, last: LastBlock, arrived: Arrived) -> _Prepared | None:
        """The rows of blocks that have arrived and follow `last` in its epoch, None if there are none.

        The rollback to `last` is not committed yet, so only the writer can look up what they need.
        """
        network = self._session.network
        epoch_no = network.epoch_of(last.point.slot_no)

        def is_wanted(block: PackedBlock) -> bool:
            # NOTE: an epoch boundary block, which begins an epoch, gets its slot only in `_accept`.
            return not block.ebb and network.epoch_of(block.point.slot_no) == epoch_no and block.era == last.era

        blocks = await arrived(is_wanted)
        if not blocks:
            return None
        self._warnings.look(blocks)
        followed = [self._accept(block) for block in blocks]
        first_seen = await self._resolver.look_up(self._writer, [block.lookups for block in followed])
        return await self._build(followed, last, first_seen, self._writer)

    def _undo_in_caches(self, undone: Undone) -> None:
        # NOTE: other numbers stay valid. Outputs that the rollback removed also stay in the cache: nothing can spend
        # them until their transaction arrives again, which replaces them.
        self._resolver.addresses.forget(undone.unused_addresses)
        self._resolver.restore(undone.restored)
        self._assets.forget(undone.assets)

    async def finish_bulk(self) -> None:
        """Wait until prepared batches are written, then make the index live."""
        async with self._exclusively():
            index = await position.read(self._writer)
            assert index is not None, "bulk has written its first batch"
            self._progress.signals.stands_at(index, Phase.FINISHING)
            await finish_bulk.finalize(self._writer, index.finalize_step)
        self._on_commit()

    async def drain(self) -> None:
        """Wait until all batches that are being built or are queued are written."""
        await self._finish_building()
        await self._queue.join()

    @asynccontextmanager
    async def _exclusively(self) -> AsyncIterator[None]:
        """Wait until all prepared batches are written, and hold the writer until the block ends."""
        await self.drain()
        async with self._turn:
            yield

    def _accept(self, block: PackedBlock) -> PackedBlock:
        """Advance our tip to a block, which must follow the last one. Raises NotFollowing."""
        block, self._tip = followed_by(self._tip, block, self._session.network)
        return block

    async def _prepare(self, blocks: list[PackedBlock], before: LastBlock | None) -> None:
        """Run the look-ups of consecutive blocks of one epoch and era, after the block `before`, and start building
        their rows.

        During the look-ups, the rows of the previous blocks are built.
        """
        if self._resolver.is_full:
            await self._finish_building()  # the look-up may evict cache entries that these rows need
        lookups = [block.lookups for block in blocks]
        first_seen = await self._resolver.look_up(self._reader, lookups, self._unapplied)
        await self._finish_building()
        self._unapplied = lookups
        self._building = asyncio.create_task(self._build(blocks, before, first_seen, self._reader))
        self._building.add_done_callback(lifecycle.consume_error)
        await self._queue.put(self._building)
        if self.phase is Phase.LIVE:  # its assets are looked up through the same connection as the next batch
            await self._finish_building()

    async def _build(
        self, blocks: list[PackedBlock], before: LastBlock | None, first_seen: Inserts, db: asyncpg.Connection
    ) -> _Prepared:
        assert self._first_block_no is not None, "forward has set it"
        begun = epochs_begun(None if before is None else before.point, blocks[0].point, self._session.network)
        era = "byron" if before is None else before.era
        fork = await self._protocol_fork(blocks[0]) if (begun or before is None) and not self._protocol_forked else None
        rules = Rules(self._session.deposits, from_origin=self._first_block_no == 0)
        try:
            built = await rows.build(blocks, first_seen, begun, era, self._resolver, rules, fork)
        except UnexplainedDeposit as unexplained:
            if self._session.is_older_than(blocks[0].point):
                raise OutdatedSession(f"{unexplained}: asking the node again for today's deposits") from unexplained
            raise
        self._resolver.apply(built.unspent)
        entries = await self._assets.entries_of(db, built.rows) if self.phase is Phase.LIVE else None
        return _Prepared(built.rows, entries, blocks[-1].node_tip, len(blocks))

    async def _protocol_fork(self, first: PackedBlock) -> ProtocolFork | None:
        """The fork to protocol 10, if the epoch of this block, its first, is the first that we index with its rules."""
        network, point = self._session.network, first.point
        major = await protocol.forked_to(network, first.era, point, self._connect)
        if major is None:
            return None
        self._protocol_forked = True
        epoch_no = network.epoch_of(point.slot_no)
        return ProtocolFork(epoch_no, major, tx_id_of(network.epoch_start(epoch_no), 0))

    async def _finish_building(self) -> None:
        """Wait until the rows that are being built are complete, and their unspent change is applied."""
        if self._building is not None:
            await asyncio.wait((self._building,))  # it continues if this is cancelled: the writer waits for it, too
            self._building.result()
        self._building, self._unapplied = None, []
