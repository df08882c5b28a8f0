"""Answers to questions that are asked again: kept, encoded, until the tip moves (docs/decisions/0077-asked-again.md).

A question that was not asked since the tip moved goes to its handler. Otherwise the state of the index is read, once
for all requests that wait for it, and the answer is the kept one if that state is still the one it was made in.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast
from uuid import UUID

import asyncpg
import msgspec

from api import errors
from api.answers import LastUpdated
from api.http.bodies import MAX_IN_MEMORY_BYTES, Encoded
from api.sources.chain_servers import ChainServer
from shared import lifecycle, sql
from shared.network import Network

Other = TypeVar("Other")

MAX_BYTES = 32 * 1024**2
"""The most bytes of kept answers, per process: a third of what a worker takes without them. Some 3,000 compressed pages
of a hundred entries fit, more than a worker makes between two blocks of mainnet at 100 requests a second.
"""

_MAX_BYTES_EACH = MAX_IN_MEMORY_BYTES
_ENTRY_BYTES = 1_024  # what an answer takes besides its URL, its headers and its body

# NOTE: an answer that is made in a later state than the known one is never used, so an old state is read again.
_KNOWN_FOR_S = 1.0
_NUMBERING_KNOWN_FOR_S = 10.0

_HOLDS_UP_FOR_S = 1.0  # how long a read delays the next one: its server may have frozen

Question = tuple[str, str | None]
"""The URL as sent, and the encoding of the answer."""


class Moved(Exception):
    """The index may have changed between two statements: read again, in a transaction."""


class State(msgspec.Struct, frozen=True):
    """The state of an index: while it is the same, so are the answers.

    Each commit of blocks replaces the row of the tip, and each reading of the node's ledger that of `ledger_state`, so
    their transaction ids tell commits apart. Ids that a crash of Postgres has lost come again, but then under another
    numbering, which the indexer sets when it connects.
    """

    slot_no: int
    block_hash: bytes
    numbering: UUID
    moved_by: int
    told_by: int | None


class _Making(msgspec.Struct, frozen=True, eq=False):
    """An answer that is being made in a state, or a later one: the kept one, or None if it is not kept."""

    state: State
    made: asyncio.Future[Encoded | None]


_state = sql.beside(__file__).query("state", State)


class KeptAnswers:
    """The kept answers of a process."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._of: dict[tuple[ChainServer, int], OfServer] = {}

    def of(self, source: ChainServer, network: Network) -> "OfServer":
        """The kept answers of a network on one server. Another server may be in another state."""
        found = self._of.get((source, network.network_id))
        if found is None:
            found = self._of[source, network.network_id] = OfServer(self, source, network)
        return found

    @property
    def size_bytes(self) -> int:
        """The bytes of all kept answers."""
        return sum(each.size_bytes for each in self._of.values())

    def make_room(self) -> None:
        """Drop answers until the rest is within the bound: of what has the most, those not used for the longest."""
        while self.size_bytes > self._max_bytes:
            max(self._of.values(), key=lambda each: each.size_bytes).drop_oldest()


class OfServer:
    """The kept answers of one network on one server."""

    def __init__(self, all_kept: KeptAnswers, source: ChainServer, network: Network) -> None:
        self._all, self._source, self._network = all_kept, source, network
        self._state: State | None = None
        self._known_until = 0.0
        self._reading: asyncio.Task[None] | None = None
        self._next_reading: asyncio.Task[None] | None = None
        self._begun, self._last = 0, 0  # the number of the last read that has begun, and of that which found `_state`
        self._constants: dict[Hashable, Encoded] = {}
        self._numbering_known_until = 0.0
        self._answers: dict[Question, Encoded] = {}  # made in `_state`; the one used last is the last
        self._being_made: dict[Question, _Making] = {}
        self.size_bytes = 0

    async def answer(
        self, question: Question, make: Callable[[], Awaitable[Encoded | Other]], *, at_once: Callable[[], bool]
    ) -> Encoded | Other:
        """The kept answer; otherwise that of `make`, which is kept if it is Encoded.

        Requests for an answer that is being made wait for it, if `at_once` says that its maker waits for no turn. If it
        fails, or is not to be kept, each makes its own.
        """
        is_asked = question in self._answers or question in self._being_made
        if is_asked or time.monotonic() >= self._known_until:
            await self._read_state()
        state = self._state
        if state is None:
            return await make()  # the network is not served, which the handler says, or a reason that comes before it
        kept = self._answers.pop(question, None)
        if kept is not None:
            self._answers[question] = kept
            return kept
        others = self._being_made.get(question)
        if others is None or others.state != state:
            return await self._make(question, state, make, at_once=at_once)
        kept = await asyncio.shield(others.made)
        return await make() if kept is None else kept

    async def constant(self, name: Hashable) -> Encoded | None:
        """The answer of this name that the whole chain has in common. Another chain has another numbering."""
        if self._constants and time.monotonic() >= self._numbering_known_until:
            await self._read_state()
        return self._constants.get(name)

    def keep_constant(self, name: Hashable, answer: Encoded) -> None:
        """Keep an answer for `constant`; names are few."""
        self._constants[name] = answer

    async def tip(self) -> LastUpdated:
        """The last indexed block, by a read that begins after this call. Raises Refusal 503 if there is none."""
        await self._read_state()
        if self._state is None:
            raise errors.network_not_available()
        return self._tip_of(self._state)

    @asynccontextmanager
    async def unmoved(self, db: sql.Connection) -> AsyncIterator[sql.Connection]:
        """Statements on `db` that see one state, as in a transaction but with one round trip more instead of two.

        A single statement needs none. Raises Moved, also instead of what the block raises, if the state may have
        changed meanwhile, and if a statement needs a transaction.
        """
        before = self._state if time.monotonic() < self._known_until else await _state.one(db)
        counted = _Counted(db)
        try:
            yield cast(sql.Connection, counted)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            raise
        except Exception as fault:
            if counted.statements > 1 and await self._has_moved(db, before):
                raise Moved from fault
            raise
        if counted.statements > 1 and await self._has_moved(db, before):
            raise Moved

    async def _has_moved(self, db: sql.Connection, before: State | None) -> bool:
        if await _state.one(db) == before:
            return False
        self._known_until = 0.0
        return True

    def drop_oldest(self) -> None:
        """Drop the answer that was not used for the longest."""
        self._drop(next(iter(self._answers)))

    async def _read_state(self) -> None:
        """Wait for a read that begins after this call, after which `_state` is of this one or a later one.

        Requests that arrive during a read share the one after it.
        """
        if self._next_reading is None:
            self._next_reading = asyncio.create_task(self._read(self._reading))
            self._next_reading.add_done_callback(lifecycle.consume_error)
        await asyncio.shield(self._next_reading)  # others wait for it, too

    async def _read(self, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait((before,), timeout=_HOLDS_UP_FOR_S)
        try:
            async with self._source.connection(self._network) as db:
                # NOTE: whoever arrives from here on may have got an answer of a later state.
                self._reading, self._next_reading = self._next_reading, None
                self._begun += 1
                number = self._begun
                known_until = time.monotonic() + _KNOWN_FOR_S
                state = await _state.one(db)
        finally:
            if self._next_reading is asyncio.current_task():
                self._next_reading = None
        if number < self._last:
            return  # a later one has ended already, and also began after the requests that wait for this one
        self._last = number
        self._numbering_known_until = known_until - _KNOWN_FOR_S + _NUMBERING_KNOWN_FOR_S
        if state is None or self._state is None or state.numbering != self._state.numbering:
            self._constants.clear()
        if state != self._state:
            self._state, self.size_bytes = state, 0
            self._answers.clear()
        self._known_until = 0.0 if state is None else known_until

    async def _make(
        self,
        question: Question,
        state: State,
        make: Callable[[], Awaitable[Encoded | Other]],
        *,
        at_once: Callable[[], bool],
    ) -> Encoded | Other:
        """Make an answer, also for those who ask for it meanwhile in the same state."""
        making, kept = _Making(state, asyncio.get_running_loop().create_future()), None
        if at_once():
            self._being_made[question] = making
        try:
            answer = await make()
            if isinstance(answer, Encoded):
                kept = self._keep(question, state, answer)
            return answer
        finally:
            if self._being_made.get(question) is making:
                del self._being_made[question]
            making.made.set_result(kept)

    def _keep(self, question: Question, state: State, answer: Encoded) -> Encoded | None:
        """The answer in the form in which it is kept; None if it is too long, or was made in a later state."""
        if len(answer.body) > _MAX_BYTES_EACH:
            return None
        if answer.tip is not None and answer.tip.block_hash != state.block_hash.hex():
            self._known_until = 0.0
            return None
        kept = msgspec.structs.replace(answer, tip=self._tip_of(state))
        if state == self._state:
            self._drop(question)
            self._answers[question] = kept
            self.size_bytes += _size_bytes(question, kept)
            self._all.make_room()
        return kept

    def _drop(self, question: Question) -> None:
        dropped = self._answers.pop(question, None)
        if dropped is not None:
            self.size_bytes -= _size_bytes(question, dropped)

    def _tip_of(self, state: State) -> LastUpdated:
        return LastUpdated(state.slot_no, state.block_hash.hex(), self._network.slot_time(state.slot_no))


def require_same(db: sql.Connection, has_same_tip: bool) -> None:
    """Say whether all statements so far have seen the same tip, which saves reading the state. Raises Moved."""
    if isinstance(db, _Counted):
        if not has_same_tip:
            raise Moved
        db.statements = 1


class _Counted:
    """A connection that counts its statements."""

    def __init__(self, db: sql.Connection) -> None:
        self._db, self.statements = db, 0

    def fetch(self, text: str, *arguments: object) -> Any:
        self.statements += 1
        return self._db.fetch(text, *arguments)

    def fetchrow(self, text: str, *arguments: object) -> Any:
        self.statements += 1
        return self._db.fetchrow(text, *arguments)

    def cursor(self, _: str, *_arguments: object) -> Any:
        """Cursors exist only in transactions."""
        raise Moved


def _size_bytes(question: Question, kept: Encoded) -> int:
    headers = (*kept.validators.values(), *kept.headers.values())  # a Link repeats the URL, up to three times as long
    return _ENTRY_BYTES + len(question[0]) + sum(map(len, headers)) + len(kept.body)
