"""Processes that read history, for verify: each works on a part at a time, in its own snapshot (moments.py)."""

import asyncio
import gc
import multiprocessing
import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from typing import TypeVar

import asyncpg
import msgspec

from indexer.verify import moments
from indexer.verify.moments import Moment, Noted
from shared import database, sql
from shared.network import Network, by_name

PART_TRANSACTIONS = 20_000
_NO_END = (1 << 63) - 1

Answer = TypeVar("Answer")
Item = TypeVar("Item")
Work = Callable[[Moment, Item], Coroutine[None, None, Answer]]
"""Work on an item, in a snapshot."""


class HelperEnded(Exception):
    """A process that reads history ended early: nothing is verified."""


class TransactionRange(msgspec.Struct, frozen=True):
    """A range of transactions; `next_tx_id` is not in it."""

    first_tx_id: int
    next_tx_id: int
    transactions: int


class Readers(ABC):
    """Readers of history up to a noted block: of its packed transactions in parts, and of other items."""

    _noted: Noted
    _parts: list[TransactionRange]
    transactions: int

    def begin(self, noted: Noted, parts: list[TransactionRange]) -> None:
        """Set what to read: `parts` together cover all transactions."""
        self._noted, self._parts = noted, _up_to(noted, parts)
        self.transactions = sum(part.transactions for part in self._parts)

    async def read(self, work: Work[TransactionRange, Answer]) -> AsyncIterator[tuple[Answer, int]]:
        """The result of `work` for each part, and the number of transactions in it."""
        async for answer, part in self.each(work, self._parts):
            yield answer, part.transactions

    async def first(self, work: Work[Item, Answer], item: Item) -> Answer:
        """The result of `work` on one item. Raises TipGone."""
        (answer,) = [answer async for answer, _ in self.each(work, [item])]
        return answer

    @abstractmethod
    def each(self, work: Work[Item, Answer], items: Sequence[Item]) -> AsyncIterator[tuple[Answer, Item]]:
        """The result of `work` for each item, in order. Raises TipGone."""


@asynccontextmanager
async def in_processes(url: str, network: Network, processes: int) -> AsyncIterator[Readers]:
    """Processes that are connected to a network's database. They start at once. Raises HelperEnded."""
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), initializer=_open, initargs=(url, network.name)
    )
    try:
        for _ in range(processes):
            pool.submit(_ready)
        yield _ProcessReaders(pool, processes)
    except BrokenProcessPool as cause:
        raise HelperEnded(f"{network.name}: a process that reads history ended, so nothing is verified") from cause
    else:
        # Wait for all processes: one without work may still be connecting to a database that the caller removes.
        await asyncio.to_thread(pool.shutdown)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class _ProcessReaders(Readers):
    """Readers whose work runs in processes."""

    def __init__(self, pool: ProcessPoolExecutor, processes: int) -> None:
        self._pool, self._ahead = pool, 2 * processes

    async def each(self, work: Work[Item, Answer], items: Sequence[Item]) -> AsyncIterator[tuple[Answer, Item]]:
        loop = asyncio.get_running_loop()
        # Only a few items are worked on ahead.
        working: deque[Awaitable[Answer]] = deque()
        try:
            for place in range(len(items) + self._ahead):
                if place < len(items):
                    working.append(loop.run_in_executor(self._pool, _work, self._noted, work, items[place]))
                if place >= self._ahead:
                    yield await working.popleft(), items[place - self._ahead]
        finally:
            # Work that was begun is of no use after an error, but it must not go on beside what is begun next.
            await asyncio.gather(*working, return_exceptions=True)


async def parts_of(db: asyncpg.Connection) -> list[TransactionRange]:
    """All transactions, in parts of about PART_TRANSACTIONS, cut between blocks."""
    return await _parts.all(db, PART_TRANSACTIONS)


def _up_to(noted: Noted, parts: list[TransactionRange]) -> list[TransactionRange]:
    """The same transactions, with an end of a part after the noted block."""
    end = noted.next_tx_id
    before = [part for part in parts if part.first_tx_id < end] or [TransactionRange(0, end, 0)]
    last = msgspec.structs.replace(before[-1], next_tx_id=end)
    return [*before[:-1], last, TransactionRange(end, _NO_END, 0)]


# In the processes that read -------------------------------------------------------------------------------------------


class _Worker(msgspec.Struct):
    runner: asyncio.Runner
    db: asyncpg.Connection


_worker: _Worker


def _open(url: str, network_name: str) -> None:
    """Connect this process to the database."""
    global _worker
    gc.disable()
    # NOTE: otherwise it would wait for work forever after its parent was killed, with a connection that others lack.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    runner = asyncio.Runner()
    db = runner.run(database.connect(url, by_name[network_name]))
    _worker = _Worker(runner, db)


def _ready() -> None:
    """Do nothing: the process has started."""


def _work(noted: Noted, work: Work[Item, Answer], item: Item) -> Answer:
    return _worker.runner.run(_in_moment(noted, work, item))


async def _in_moment(noted: Noted, work: Work[Item, Answer], item: Item) -> Answer:
    async with moments.at(_worker.db, noted) as moment:
        return await work(moment, item)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "verify spawned this process"
    parent.join()
    os._exit(1)


_sql = sql.beside(__file__)
_parts = _sql.query("parts", TransactionRange)
