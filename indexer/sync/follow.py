"""The loop that follows the node's tip, from node to rows to store.

`chase` is the core: a single match on the node's messages. `Follower` opens the connections, and reopens them after a
pause when one is lost.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from functools import partial

import aiohttp
import asyncpg
import msgspec
import structlog

from indexer.blocks import genesis
from indexer.blocks.node_warnings import NodeWarnings
from indexer.ledger import reader as ledger
from indexer.ledger.comparer import NodeComparer
from indexer.ogmios import connection as ogmios
from indexer.ogmios import frames
from indexer.ogmios.connection import Connect, RollBackward
from indexer.rows import value_check
from indexer.store import position
from indexer.sync import batches, block_source, leading, phase, session
from indexer.sync.batches import Batch
from indexer.sync.choice import Attempt, NodeChoice
from indexer.sync.continuity import NotFollowing
from indexer.sync.node_watch import NodeWatch
from indexer.sync.pipeline import Pipeline
from indexer.sync.progress import Progress
from indexer.sync.session import NodeSession, NodeUnfit, OutdatedSession, RollbackTooDeep
from shared import database, leader, lifecycle, schema, splits, tasks
from shared.network import Network
from shared.phase import Phase
from shared.setting_forms import masked

log = structlog.get_logger()

_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.5, 30.0
_STRICT_ANSWER_WITHIN_S = 30.0

_FATAL_REASONS: dict[type[Exception], str] = {
    genesis.WrongNetwork: "its node is on another network",
    value_check.Unbalanced: "a transaction does not balance",
    NotFollowing: "the node's chain does not continue ours",
    RollbackTooDeep: "the node's chain differs from ours more deeply than a node can roll back",
    schema.WrongSchema: "a newer program has migrated the database",
}
"""What is said in public of each error of FATAL, whose text may quote the node."""

FATAL: tuple[type[Exception], ...] = tuple(_FATAL_REASONS)
"""Errors after which the indexer must not continue on its own: it stops, and logs its position."""

_STOPPING: tuple[type[Exception], ...] = (*FATAL, AssertionError)

_PLAIN = (
    *lifecycle.WAITED_FOR,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    aiohttp.ClientError,
    ogmios.Refused,
    frames.Unreadable,
    OutdatedSession,
)
"""Errors that are logged without a traceback. The indexer also continues after others, except FATAL and assertions."""


class Outcome(Enum):
    """Why a chase returned: the first batch of an empty index is staged, or bulk has ended."""

    BULK_BEGAN = auto()
    BULK_ENDED = auto()


async def chase(opened: NodeSession, pipeline: Pipeline, connect: Connect) -> Outcome:
    """Follow the node from the intersection on, until the session must be opened again.

    In bulk a second process reads, on a connection that it opens with `connect`. Raises OutdatedSession, one of FATAL,
    and the errors of the node and the database.
    """
    if opened.phase is Phase.BULK:
        source = block_source.read_in_child(connect, opened.network, opened.intersection)
    else:
        source = block_source.read_in_process(opened.node, opened.network)
    async with batches.incoming(source, pipeline.heard) as incoming:
        while True:
            match await incoming.next():
                case RollBackward(point):
                    await pipeline.backward(point, incoming.arrived)
                case Batch() as batch if phase.ends_bulk(batch, pipeline.phase):
                    await pipeline.finish_bulk()
                    return Outcome.BULK_ENDED
                case Batch() as batch:
                    await pipeline.forward(batch)
                    if opened.phase is Phase.EMPTY and pipeline.phase is Phase.BULK:
                        await pipeline.drain()
                        return Outcome.BULK_BEGAN


class Follower(msgspec.Struct, frozen=True):
    """One network's indexer. It undoes at most `split_blocks` blocks to follow another of its nodes than before."""

    network: Network
    database_url: str
    nodes: NodeChoice
    split_blocks: int
    progress: Progress
    warnings: NodeWarnings

    async def run(self, stop: asyncio.Event) -> None:
        """Follow the chain until `stop` is set, through errors of the database and the node.

        Batches that are being built by then are still written. Raises one of FATAL, or AssertionError: a bug, after
        which nothing more may be written.
        """
        with suppress(lifecycle.Stopped):
            await self._follow(stop)
        log.info("follow.stopped", network=self.network.name, after=self.progress.at)

    async def _follow(self, stop: asyncio.Event) -> None:
        """Follow with new connections after each error that is not fatal. Raises Stopped once `stop` is set."""
        pause_s = _FIRST_PAUSE_S
        while True:
            before = self.progress.blocks
            try:
                async with self._writer(stop) as writer, self._reader(stop) as reader:
                    cause = await self._sessions(writer, reader, stop)
                    traceback = None
            except lifecycle.Stopped:
                raise
            except _STOPPING:
                raise
            except Exception as fault:  # noqa: BLE001 - any other error is retried
                cause, traceback = f"{type(fault).__name__}: {fault}", None if isinstance(fault, _PLAIN) else fault
                self.progress.signals.interrupted()
            log.warning(
                "follow.interrupted",
                network=self.network.name,
                cause=cause,
                after=self.progress.at,
                exc_info=traceback,
            )
            gc.collect()  # automatic collection is off, and the caught error refers to the session's objects
            pause_s = _FIRST_PAUSE_S if self.progress.blocks > before else min(pause_s * 2, _MAX_PAUSE_S)
            await lifecycle.sleep(pause_s, stop)
            if stop.is_set():
                raise lifecycle.Stopped

    async def _sessions(self, writer: asyncpg.Connection, reader: asyncpg.Connection, stop: asyncio.Event) -> str:
        """Run one node session after another on the same database connections: a new one when bulk begins or ends.

        Returns the reason to reopen all connections: the chain of no node will do now.
        """
        while True:
            async with self._node(stop) as (attempt, node):
                outcome: Outcome | NodeUnfit = await lifecycle.first_of(
                    self._session(attempt, node, writer, reader, stop), _fail_when_lost(writer), _fail_when_lost(reader)
                )
                if isinstance(outcome, NodeUnfit):
                    if not self.nodes.refused(attempt):
                        return str(outcome)
                    log.warning("follow.node_unfit", network=self.network.name, node=attempt.number, cause=str(outcome))

    async def _session(
        self,
        attempt: Attempt,
        node: ogmios.Ogmios,
        writer: asyncpg.Connection,
        reader: asyncpg.Connection,
        stop: asyncio.Event,
    ) -> Outcome | NodeUnfit:
        """Open a session and follow the node until the session must be reopened, or its chain proves to be unfit."""
        index = await position.read(writer)
        self.progress.signals.stands_at(index, phase.current(index))  # opening may take long, if it ends bulk
        if index is not None:
            self.progress.at = str(index.point)
        opened = await lifecycle.unless_stopped(self._open(attempt, node, writer), stop)
        self.progress.signals.heard(opened.node_tip)
        if isinstance(opened, NodeUnfit):
            return opened
        self.nodes.follows()
        if self.nodes.has_standby:
            log.info("follow.node_chosen", network=self.network.name, node=attempt.number, at=masked(attempt.url))
        turn = asyncio.Lock()
        connections = self.network, attempt.url, self.database_url, writer, turn
        comparer = NodeComparer(*connections)
        ledger_reader = ledger.LedgerReader(*connections, comparer.notify)
        connect = partial(ogmios.connect, attempt.url)
        pipeline = Pipeline(opened, writer, reader, turn, self.progress, self.warnings, ledger_reader.notify, connect)
        await pipeline.load()  # before the ledger reader, which also uses `writer`
        async with (
            tasks.background("ledger state", ledger_reader.run),
            tasks.background("ledger comparison", comparer.run),
        ):
            ledger_reader.notify()
            chasing = _until_stopped(chase(opened, pipeline, connect), pipeline, stop)
            outcome: Outcome = await lifecycle.first_of(chasing, pipeline.write_forever())
            return outcome

    async def _open(self, attempt: Attempt, node: ogmios.Ogmios, writer: asyncpg.Connection) -> NodeSession | NodeUnfit:
        """Open a session. Only the first node stops the indexer if it is on another network."""
        try:
            most_undone = self.split_blocks if attempt.strict else None
            return await session.open_session(node, self.network, writer, most_undone)
        except genesis.WrongNetwork as wrong:
            if attempt.number == 1:
                raise
            return NodeUnfit(str(wrong))

    @asynccontextmanager
    async def _writer(self, stop: asyncio.Event) -> AsyncIterator[asyncpg.Connection]:
        """The connection that writes, once it leads the network; a standby waits here."""
        signals = self.progress.signals
        # NOTE: a connection that is lost while another indexer leads counts as waiting, not as an interruption: the
        # pauses after interruptions grow, and a standby could be late to take over. A standby uses its own
        # connection once a second; if that is lost in between, asyncpg raises InterfaceError.
        with self.nodes.not_counting():
            db = await lifecycle.wait_for(
                "postgres", self._connect_leader, stop, (*lifecycle.WAITED_FOR, asyncpg.InterfaceError)
            )
        try:
            signals.leads(leading=True)
            try:
                async with (
                    leading.sending_heartbeats(self.database_url, self.network, db, signals.report, signals.changed),
                    self._watching(),
                ):
                    yield db
            except _STOPPING as fatal:
                await leading.report_fatal(db, self.network, signals.report(), _public_reason(fatal))
                raise
        finally:
            signals.leads(leading=False)
            db.terminate()

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        """Compare the nodes with each other until the block ends, if there are several."""
        if not self.nodes.has_standby:
            yield
            return
        watch = NodeWatch(self.network, self.database_url, self.nodes, self.split_blocks, self.progress.signals)
        async with tasks.background("node watch", watch.run):
            yield

    async def _connect_leader(self) -> asyncpg.Connection:
        """A connection that leads the network."""
        db = await database.connect(self.database_url, self.network)
        try:
            await schema.migrate(db)
            await leading.take_the_lead(db, self.network)
            if not self.nodes.has_standby:
                await splits.end_all(db, self.network)  # of nodes that are not named any more
            if await leader.unretire(db, self.network):
                log.info("follow.unretired", network=self.network.name)
        except BaseException:
            db.terminate()
            gc.collect()  # automatic collection is off, and this may fail again and again
            raise
        return db

    @asynccontextmanager
    async def _reader(self, stop: asyncio.Event) -> AsyncIterator[asyncpg.Connection]:
        """The connection for the look-ups of the next batch, while the writer commits the last one."""
        db = await lifecycle.unless_stopped(database.connect(self.database_url, self.network), stop)
        try:
            yield db
        finally:
            db.terminate()

    @asynccontextmanager
    async def _node(self, stop: asyncio.Event) -> AsyncIterator[tuple[Attempt, ogmios.Ogmios]]:
        """A connection to the node to try, which is reported as connected until an error."""
        signals = self.progress.signals
        try:
            attempt, node = await lifecycle.wait_for(
                f"ogmios at {self.nodes.names}", self._connect_node, stop, (OSError, aiohttp.ClientError)
            )
            signals.node_is(connected=True)
            try:
                yield attempt, node
            finally:
                await node.close()
        except BaseException:
            self.nodes.lost()
            signals.node_is(connected=False)
            raise

    async def _connect_node(self) -> tuple[Attempt, ogmios.Ogmios]:
        attempt = self.nodes.next()
        try:
            return attempt, await ogmios.connect(attempt.url, answer_within_s=_answer_within_s(attempt))
        except (OSError, aiohttp.ClientError):
            self.nodes.lost()
            self.progress.signals.node_is(connected=False)
            raise


def _answer_within_s(attempt: Attempt) -> float:
    """How long to wait for an answer; a node that hangs must not keep us from the others."""
    return _STRICT_ANSWER_WITHIN_S if attempt.strict else ogmios.ANSWER_WITHIN_S


def _public_reason(fatal: Exception) -> str:
    """The public reason for stopping on an error of FATAL, or on a failed assertion."""
    reasons = (reason for kind, reason in _FATAL_REASONS.items() if isinstance(fatal, kind))
    return next(reasons, "the program has a fault, see the indexer's log")


async def _until_stopped(chasing: Coroutine[None, None, Outcome], pipeline: Pipeline, stop: asyncio.Event) -> Outcome:
    """The end of a chase. Raises Stopped once `stop` is set and all batches that were being built are written."""
    try:
        return await lifecycle.unless_stopped(chasing, stop)
    except lifecycle.Stopped:
        await pipeline.drain()
        raise


async def _fail_when_lost(db: asyncpg.Connection) -> None:
    """Raise ConnectionResetError once a connection is lost; without new blocks, no statement would notice."""
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
