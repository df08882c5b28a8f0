"""Compare the index with its node once in each epoch, by the table in subjects.py.

A round begins once the rewards of an epoch are read, and compares one batch after another: each in its own snapshot of
the database, at its tip. It has its own connections to both, so following the tip waits only for one short write at
the end of a round. A restart repeats the round. A round that an epoch's end overtakes is given up. What a node answers
unreadably, or not in time, is left out of the round: to ask again would only load the node.
"""

import asyncio

import asyncpg
import msgspec
import structlog

from indexer.ledger import comparisons, reader
from indexer.ledger.comparisons import Tally
from indexer.ledger.subjects import SUBJECTS
from indexer.ogmios import frames
from indexer.ogmios.connection import Ogmios
from indexer.store import position
from shared import schema, sql
from shared.ledger import Point
from shared.network import Network
from shared.network_state import Comparison

log = structlog.get_logger()


class NodeComparer:
    """Compares for one network. It must be stopped with its `writer`; `turn` is the lock on `writer`."""

    def __init__(
        self, network: Network, ogmios_url: str, database_url: str, writer: asyncpg.Connection, turn: asyncio.Lock
    ) -> None:
        self._network, self._ogmios_url, self._database_url = network, ogmios_url, database_url
        self._writer, self._turn = writer, turn
        self._read = asyncio.Event()
        self._round: _Round | None = None

    def notify(self) -> None:
        """Report that everything that the ledger reader knows of is read at our tip."""
        self._read.set()

    async def run(self) -> None:
        """Compare until cancelled, with retries after errors of the node. Raises the errors of a lost database."""
        await reader.step_by_step(self._network, self._ogmios_url, self._database_url, self._read, self._step)

    async def _step(self, node: Ogmios, db: asyncpg.Connection) -> bool:
        """Compare the next batch at our tip; False if there is nothing to compare now."""
        tip = await _tip.one(db)
        if tip is None or tip.compared_epoch_no == self._network.epoch_of(tip.slot_no):
            return False
        async with db.transaction(isolation="repeatable_read", readonly=True):
            at = await comparisons.at_tip(db, self._network)
            if at is None or not at.read:
                return False
            if self._round is None or self._round.epoch_no != at.epoch_no:
                self._round = _Round(at.epoch_no)
            if not self._round.is_complete and not await self._round.compare(node, at):
                return False
        if not self._round.is_complete:
            return True
        results, self._round = self._round.tally.comparisons(at.epoch_no), None
        await self._store(at.position.point, at.epoch_no, results)
        return bool(results)  # if a node answers nothing at all, it is asked again after the next block

    async def _store(self, point: Point, epoch_no: int, results: list[Comparison]) -> None:
        """Replace the last comparison, unless the point at which it ended is no longer in our chain, and log it."""
        async with self._turn, schema.commit(self._writer):
            if not await position.holds(self._writer, point):
                return
            await _forget.run(self._writer)
            for result in results:
                named = msgspec.json.encode(result.differences).decode()
                await _store.run(
                    self._writer, result.kind, point.slot_no, result.epoch_no, result.compared, result.differing, named
                )
        differing = {result.kind: result.differing for result in results if result.differing}
        tell = log.warning if differing else log.info
        tell(
            "ledger_state.compared",
            network=self._network.name,
            epoch_no=epoch_no,
            slot_no=point.slot_no,
            compared={result.kind: result.compared for result in results},
            differing=differing,
            differences=[
                f"{result.kind} of {difference.name}: {difference.ours} here, {difference.node} on the node"
                for result in results
                for difference in result.differences
            ],
        )


class _Round:
    """How far the comparison of an epoch is."""

    def __init__(self, epoch_no: int) -> None:
        self.epoch_no = epoch_no
        self._subject_no, self._first = 0, 0
        self.tally = Tally()

    @property
    def is_complete(self) -> bool:
        return self._subject_no == len(SUBJECTS)

    async def compare(self, node: Ogmios, at: comparisons.At) -> bool:
        """Compare the next batch; False if the index does not know it yet. Raises reader.NotThere and the errors of a
        lost connection.
        """
        subject = SUBJECTS[self._subject_no]
        batch = await subject.ours(at, self._first)
        if batch is None:
            return False
        await reader.acquire(node, at.position.point)
        try:
            theirs = await comparisons.ask_node(subject, node, at, list(batch.things))
        except frames.Unreadable as cause:
            log.warning("ledger_state.unreadable", network=at.network.name, cause=str(cause))
            theirs = None
        except TimeoutError:
            self._next_subject()
            raise  # the answer may still come, so this connection is of no more use
        if theirs is not None:
            self.tally.compare(subject, at, batch.things, theirs)
        if theirs is None or batch.then is None:
            self._next_subject()
        else:
            self._first = batch.then
        return True

    def _next_subject(self) -> None:
        self._subject_no, self._first = self._subject_no + 1, 0


class _Tip(msgspec.Struct, frozen=True):
    slot_no: int
    compared_epoch_no: int | None


_sql = sql.beside(__file__)
_tip = _sql.query("tip", _Tip)
_forget = _sql.command("forget")
_store = _sql.command("store")
