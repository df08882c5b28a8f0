"""Fair access to a limited resource: first come first served (FairPool), or round-robin by key (Turns)."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import asyncpg

from api import errors

WAIT_S = 10.0
"""How long a request waits for its turn."""

WAIT_BETWEEN_PARTS_S = 300.0
"""How long an answer that is sent in parts waits for each further turn: once it has begun, it can't be refused."""

Shared = TypeVar("Shared")


class FairPool:
    """Lends the connections of a pool in the order in which they are requested.

    NOTE: asyncpg's pool lets a new request take a connection that was just released to a waiting one, which then has to
    wait behind all others. With many requests, the slowest hundredth waited for eight times the median.
    """

    def __init__(self, pool: asyncpg.Pool, size: int) -> None:
        """`size` is that of the pool."""
        self._pool, self._free = pool, asyncio.Semaphore(size)

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[asyncpg.Connection]:
        """Wait for a connection and hold it until the block ends."""
        async with self._free, self._pool.acquire() as db:
            yield db


class Turns(Generic[Shared]):
    """Shares `shared` among keys: `max_turns` at a time, `max_turns_each` of them with one key.

    A free turn goes to the next waiting key, so a key with many requests delays another key by one turn only.
    """

    def __init__(self, shared: Shared, max_turns: int, max_turns_each: int, requests: str) -> None:
        """`requests` names the purpose of the turns in refusals."""
        self.shared = shared
        self._free, self._max_turns_each, self._requests = max_turns, max_turns_each, requests
        self._taken: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}  # the next key first

    @asynccontextmanager
    async def turn(
        self, key: Hashable, *, answer_begun: bool = False, within_s: float | None = None
    ) -> AsyncIterator[Shared]:
        """Wait for a turn as in `take`, and hold it until the block ends. Raises Refusal."""
        await self.take(key, answer_begun=answer_begun, within_s=within_s)
        try:
            yield self.shared
        finally:
            self.end(key)

    async def take(self, key: Hashable, *, answer_begun: bool = False, within_s: float | None = None) -> None:
        """Wait for a turn, which the caller must `end`.

        Raises Refusal after `within_s`: by default WAIT_S or, if part of the answer is sent already,
        WAIT_BETWEEN_PARTS_S.
        """
        if within_s is None:
            within_s = WAIT_BETWEEN_PARTS_S if answer_begun else WAIT_S
        if self.is_free(key):
            self._free -= 1
            self._taken[key] += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        try:
            async with asyncio.timeout(within_s):
                await turn
        except TimeoutError as cause:
            self._leave(key, turn)
            raise errors.too_many_concurrent_requests(self._requests) from cause
        except BaseException:
            self._leave(key, turn)
            raise

    def is_free(self, key: Hashable) -> bool:
        """Whether `take` gives a turn at once.

        NOTE: a free turn has no key waiting that might have it, since `end` gives it away.
        """
        return self._free > 0 and self._taken[key] < self._max_turns_each

    def end(self, key: Hashable) -> None:
        """Return a turn of this key."""
        self._free += 1
        self._taken[key] -= 1
        if not self._taken[key]:
            del self._taken[key]
        self._give()

    def _give(self) -> None:
        """Give free turns to waiting requests, to one key after the other."""
        while self._free:
            key = next((key for key in self._waiting if self._taken[key] < self._max_turns_each), None)
            if key is None:
                return
            waiting = self._waiting.pop(key)
            turn = waiting.popleft()
            if waiting:
                self._waiting[key] = waiting  # behind the others
            if not turn.cancelled():
                self._free -= 1
                self._taken[key] += 1
                turn.set_result(None)

    def _leave(self, key: Hashable, turn: "asyncio.Future[None]") -> None:
        """Stop waiting. A turn that was given at the same moment is returned."""
        if turn.done() and not turn.cancelled():
            self.end(key)
            return
        waiting = self._waiting.get(key, deque())
        if turn in waiting:
            waiting.remove(turn)
            if not waiting:
                del self._waiting[key]
