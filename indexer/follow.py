"""The loop that joins socket, rows and store: chase the node's tip for ever."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from itertools import groupby

import aiohttp
import asyncpg
import msgspec
import structlog

from indexer import balance, batches, bulk, eras, frames, genesis, ledger_state, ogmios, reading, rows, store
from indexer.flags import Flags
from indexer.known import known_to
from indexer.parcels import Parcel
from indexer.progress import Progress
from indexer.staking import boundaries
from shared import database, lifecycle, schema
from shared.ledger import Point
from shared.network import Network
from shared.settings import masked

log = structlog.get_logger()

STANDBY_POLL_S = 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0


class NotFollowing(Exception):
    """The node sent a block that is not the next one of our chain, or went back to one that we don't have."""


class NodeBehind(Exception):
    """The node knows less of the chain than we do, by more than a fork can explain."""


class StartOver(Exception):
    """The node went back to the origin: what we had is erased, and the next connection begins anew."""


FATAL = (balance.Unbalanced, NotFollowing, genesis.WrongNetwork, schema.NewerSchema)
"""What waiting does not mend: the indexer stops, and says where."""

_PASSING = (
    *lifecycle.WAITED_FOR,
    asyncpg.InterfaceError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.TransactionRollbackError,
    aiohttp.ClientError,
    ogmios.Refused,
    frames.Unreadable,
    NodeBehind,
    StartOver,
)


class Follower(msgspec.Struct, frozen=True):
    """One network's indexer: where its database and its node are."""

    network: Network
    database_url: str
    ogmios_url: str
    progress: Progress
    flags: Flags

    async def run(self, stop: asyncio.Event) -> None:
        """Follow the chain until `stop` is set, through every loss of database or node.

        Raises one of FATAL.
        """
        chase = asyncio.create_task(self._for_ever(stop))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((chase, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            chase.cancel()
        try:
            await chase
        except (asyncio.CancelledError, lifecycle.Stopped):
            log.info("follow.stopped", network=self.network.name, after=self.progress.at)

    async def _for_ever(self, stop: asyncio.Event) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            before = self.progress.blocks
            try:
                async with self._writer(stop) as writer, self._reader() as reader:
                    while True:
                        async with self._node(stop) as node:
                            await Chase(self, node, partial(ogmios.connect, self.ogmios_url), writer, reader).run()
            except _PASSING as cause:
                log.warning(
                    "follow.interrupted",
                    network=self.network.name,
                    cause=f"{type(cause).__name__}: {cause}",
                    after=self.progress.at,
                )
            gc.collect()
            pause_s = _FIRST_PAUSE_S if self.progress.blocks > before else min(pause_s * 2, _LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)

    @asynccontextmanager
    async def _writer(self, stop: asyncio.Event) -> AsyncIterator[asyncpg.Connection]:
        """The connection that writes. It holds the network's lock, and waits as a standby while another's does."""
        db = await lifecycle.wait_for(
            "postgres",
            lambda: database.connect(self.database_url, self.network),
            stop,
            lifecycle.WAITED_FOR,
        )
        try:
            await schema.migrate(db)
            standby = False
            while not await database.become_writer(db, self.network):
                if not standby:
                    log.info("waiting", **{"for": "the indexer that serves this network"}, network=self.network.name)
                    standby = True
                await asyncio.sleep(STANDBY_POLL_S)
            if standby:
                log.info("follow.taken_over", network=self.network.name)
            yield db
        finally:
            db.terminate()

    @asynccontextmanager
    async def _reader(self) -> AsyncIterator[asyncpg.Connection]:
        """The connection that looks up what the next batch needs while the writer commits the last one."""
        db = await database.connect(self.database_url, self.network)
        try:
            yield db
        finally:
            db.terminate()

    @asynccontextmanager
    async def _node(self, stop: asyncio.Event) -> AsyncIterator[ogmios.Ogmios]:
        node = await lifecycle.wait_for(
            f"ogmios at {masked(self.ogmios_url)}",
            lambda: ogmios.connect(self.ogmios_url),
            stop,
            (OSError, aiohttp.ClientError),
        )
        try:
            yield node
        finally:
            await node.close()


async def _lost(db: asyncpg.Connection) -> None:
    """Raise ConnectionResetError once a connection is lost: while no block comes, no statement would notice."""
    ended = asyncio.Event()

    def notice(_: object) -> None:
        ended.set()

    db.add_termination_listener(notice)
    try:
        if not db.is_closed():
            await ended.wait()
    finally:
        db.remove_termination_listener(notice)
    raise ConnectionResetError("Postgres ended the connection")


class _Tip(msgspec.Struct, frozen=True):
    """The last block that is prepared, committed or about to be."""

    point: Point
    block_no: int


class _Prepared(msgspec.Struct, frozen=True):
    rows: rows.Rows
    node_tip: frames.NodePoint
    bulk: bool
    blocks: int


class Chase:
    """From the intersection of the node's chain with ours until either side is lost, or bulk is over.

    `connect` makes more connections to the node, in other processes too.
    """

    def __init__(
        self,
        follower: Follower,
        node: ogmios.Ogmios,
        connect: reading.Connect,
        writer: asyncpg.Connection,
        reader: asyncpg.Connection,
    ) -> None:
        self._network, self._progress, self._flags = follower.network, follower.progress, follower.flags
        self._node, self._connect, self._writer, self._reader = node, connect, writer, reader
        # One batch waits while another is written and a third is prepared: three and what `batches` and `reading` read
        # ahead, some hundred blocks each, are in memory, never more.
        self._queue: asyncio.Queue[_Prepared] = asyncio.Queue(maxsize=1)
        # Held by whoever uses the writer.
        self._turn = asyncio.Lock()
        self._ledger_state = ledger_state.Reader(
            follower.network, follower.ogmios_url, follower.database_url, writer, self._turn
        )

    async def run(self) -> None:
        """Prepare and write until bulk is over, if it was not yet; raises what ends it before."""
        works = (self._write(), self._prepare(), self._ledger_state.run(), _lost(self._writer), _lost(self._reader))
        tasks = [asyncio.create_task(work) for work in works]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self) -> None:
        while True:
            batch = await self._queue.get()
            async with self._turn:
                await store.append(self._writer, batch.rows, batch.node_tip, bulk=batch.bulk)
            self._ledger_state.tell()
            if batch.rows.staking.crossed:
                gc.collect()  # once in an epoch: the process runs without a collector of cycles
            self._progress.advance(
                batch.rows.tip, batch.rows.tip_block_no, batch.node_tip.height, batch.blocks, len(batch.rows.txs)
            )
            self._queue.task_done()

    async def _prepare(self) -> None:
        async with self._turn:
            await self._open()
        self._ledger_state.tell()
        if self._far:
            steps = reading.apart(self._connect, self._network, self._intersection)
        else:
            steps = reading.here(self._node, self._network)
        async with aclosing(batches.group(steps)) as batched:
            async for step in batched:
                if isinstance(step, ogmios.Backward):
                    await self._go_back(step.point)
                else:
                    await self._go_forward(step.blocks)
                    if self._far and not self._known.bulk:
                        break  # what was read ahead is read again, in this process
        await self._queue.join()

    async def _open(self) -> None:
        """Find where our chain and the node's part, and know what the ledger's genesis says."""
        await eras.check(self._node, self._network)
        self._genesis = await genesis.load(self._node, self._network)
        position = await store.position(self._writer)
        if position is not None:
            self._progress.at = str(position.point)
        if position is None:
            await store.begin(self._writer, self._network, self._genesis)
        elif position.finalize_step:
            await bulk.finalize(self._writer, position.finalize_step)
        point, node_tip = await self._node.intersect(await store.points(self._writer))
        await self._remember()
        if self._tip is not None:
            await self._refuse_a_node_behind(self._tip, point, node_tip)
        self._intersection = point
        if self._tip is None:
            self._far = node_tip is not None and node_tip.height > bulk.WORTH_BLOCKS
        else:
            self._far = self._known.bulk
        log.info("follow.intersected", network=self._network.name, at="the origin" if point is None else str(point))

    async def _remember(self) -> None:
        """Take everything that is known from the database again, as nothing is on its way there."""
        position = await store.position(self._writer)
        self._progress.at = "the beginning" if position is None else str(position.point)
        self._tip = None if position is None else _Tip(position.point, position.block_no)
        self._first_block_no = None if position is None else position.first_block_no
        in_bulk = position is not None and position.phase == "bulk"
        self._known = await known_to(self._reader, self._network, bulk=in_bulk)

    async def _refuse_a_node_behind(self, tip: _Tip, point: Point | None, node_tip: frames.NodePoint | None) -> None:
        """A node that is still reading its own chain must not make us throw ours away. Raises NodeBehind."""
        node_block_no = -1 if node_tip is None else node_tip.height
        common = -1 if point is None else await store.block_no_at(self._writer, point)
        if node_block_no < tip.block_no and tip.block_no - common > bulk.SECURITY_PARAMETER:
            raise NodeBehind(
                f"the node stands at block {node_block_no}, we at {tip.block_no}; waiting for it, as going back more "
                f"than {bulk.SECURITY_PARAMETER} blocks takes `python -m indexer resync`"
            )

    async def _go_back(self, point: Point | None) -> None:
        if self._tip is None or point == self._tip.point:
            return  # NOTE: Ogmios' first answer after an intersection goes back to that very point
        await self._queue.join()
        async with self._turn:
            if point is None:
                await store.erase(self._writer)
                raise StartOver("the node went back to the origin")
            if not await store.holds(self._writer, point):
                raise NotFollowing(f"the node went back to {point}, which we don't have; our tip is {self._tip.point}")
            await store.rollback(self._writer, self._network, point)
            await self._remember()
        self._ledger_state.tell()

    async def _go_forward(self, parcels: list[Parcel]) -> None:
        node_tip = parcels[-1].tip
        behind = node_tip.height - parcels[-1].block_no
        if self._tip is None:
            self._first_block_no = parcels[0].block_no
            self._known.bulk = node_tip.height - parcels[0].block_no > bulk.WORTH_BLOCKS
        elif self._known.bulk and behind < bulk.SECURITY_PARAMETER:
            await self._queue.join()
            async with self._turn:
                position = await store.position(self._writer)
                assert position is not None, "bulk has written its first batch"
                await bulk.finalize(self._writer, position.finalize_step)
                await self._remember()
            self._ledger_state.tell()
        self._flags.look(parcels)
        before = None if self._tip is None else self._tip.point
        followed = [self._follow(parcel) for parcel in parcels]
        # An epoch's boundary is one commit with its first block, and balances are then those of the last one before it.
        for _, of_epoch in groupby(followed, lambda parcel: self._network.epoch_of(parcel.point.slot_no)):
            blocks = list(of_epoch)
            unborn = await self._known.learn(self._reader, [block.names for block in blocks])
            crossed = boundaries(before, blocks[0].point, self._network)
            prepared = rows.of(blocks, unborn, crossed)
            for block in blocks:
                rows.add(prepared, block, self._known, self._rules())
                # NOTE: the writer has its turn, else Postgres would wait for its rows until all of these are made.
                await asyncio.sleep(0)
            await self._queue.put(_Prepared(prepared, node_tip, self._known.bulk, len(blocks)))
            before = blocks[-1].point

    def _rules(self) -> balance.Rules:
        return balance.Rules(self._genesis.stake_deposit, self._genesis.pool_deposit, self._first_block_no == 0)

    def _follow(self, found: Parcel) -> Parcel:
        """The next block of our chain, an epoch boundary block at its epoch's first slot.

        Raises NotFollowing for any other.
        """
        tip = self._tip
        if found.ebb:
            epoch_no = 0 if tip is None else self._network.epoch_of(tip.point.slot_no) + 1
            point = Point(self._network.epoch_start(epoch_no), found.point.block_hash)
            found = msgspec.structs.replace(found, point=point)
        if tip is not None:
            # An epoch boundary block repeats the height before it, and its slot may be that of the block after it.
            height = tip.block_no if found.ebb else tip.block_no + 1
            earliest = tip.point.slot_no + (not self._begins_byron_epoch(tip.point.slot_no))
            follows = found.ancestor == tip.point.block_hash.hex() and found.point.slot_no >= earliest
            if not follows or found.block_no != height:
                raise NotFollowing(
                    f"the node sent block {found.block_no} at {found.point} with ancestor {found.ancestor} after our "
                    f"block {tip.block_no} at {tip.point}"
                )
        self._tip = _Tip(found.point, found.block_no)
        return found

    def _begins_byron_epoch(self, slot_no: int) -> bool:
        network = self._network
        return slot_no < network.byron_slots and slot_no == network.epoch_start(network.epoch_of(slot_no))
