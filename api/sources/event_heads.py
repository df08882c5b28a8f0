"""Wakes requests and streams that wait for events. One statement looks for all that wait in this process."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import asynccontextmanager

import asyncpg
import msgspec

from api import errors
from shared import sql, tasks

LOOK_EVERY_S = 0.05
MAX_WAITING_EACH = 50
"""How many requests of a credential wait in this process."""

_SHARE = 20  # at most one part in so many of the time goes to looking


class _Head(msgspec.Struct, frozen=True):
    subscription_no: int
    last_number: int


_sql = sql.beside(__file__)
_heads = _sql.query("heads", _Head)


class _Waiting(msgspec.Struct, frozen=True):
    subscription_no: int
    number: int
    woken: "asyncio.Future[None]"


@asynccontextmanager
async def opened(pool: asyncpg.Pool, stop: asyncio.Event) -> "AsyncIterator[EventHeads]":
    """Those of this process, which are watched until the block ends."""
    heads = EventHeads(pool, stop)
    async with tasks.background("event heads", heads.watch):
        yield heads


class EventHeads:
    """The requests and streams of this process that wait for events, until `stop` is set."""

    def __init__(self, pool: asyncpg.Pool, stop: asyncio.Event) -> None:
        self._pool, self._stop = pool, stop
        self._waiting: dict[int, _Waiting] = {}
        self._any = asyncio.Event()
        self._of_key: Counter[Hashable] = Counter()

    async def beyond(self, key: Hashable, subscription_no: int, number: int, within_s: float) -> None:
        """Wait until a log may have an event after this number, at most for so long, and not while the process ends.

        Raises Refusal if too many requests of the credential `key` wait.
        """
        if self._of_key[key] >= MAX_WAITING_EACH:
            raise errors.too_many_concurrent_requests("requests")
        self._of_key[key] += 1
        try:
            await self.wait(subscription_no, number, within_s)
        finally:
            self._of_key[key] -= 1
            if not self._of_key[key]:
                del self._of_key[key]

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the process is to end."""
        return self._stop

    async def wait(self, subscription_no: int, number: int, within_s: float) -> None:
        """The same for a stream, of which there is a number of their own."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[id(woken)] = _Waiting(subscription_no, number, woken)
        self._any.set()
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((woken, stopping), timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            woken.cancel()
            del self._waiting[id(woken)]

    async def watch(self) -> None:
        """Look for what is waited for, until cancelled."""
        while True:
            if not self._waiting:
                self._any.clear()
                await self._any.wait()
            began = time.monotonic()
            await self._look(list(self._waiting.values()))
            await asyncio.sleep(max(LOOK_EVERY_S, (time.monotonic() - began) * _SHARE))

    async def _look(self, waiting: Sequence[_Waiting]) -> None:
        async with self._pool.acquire() as db:
            rows = await _heads.all(db, list({each.subscription_no for each in waiting}))
        heads = {row.subscription_no: row.last_number for row in rows}
        for each in waiting:
            if heads.get(each.subscription_no, each.number + 1) > each.number and not each.woken.done():
                each.woken.set_result(None)
