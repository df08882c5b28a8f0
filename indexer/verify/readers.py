"""Processes that read the snapshot of a connection, for verify: each works on a part of history at a time."""

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

from shared import database, sql
from shared.network import Network, by_name

PART_TRANSACTIONS = 20_000

Answer = TypeVar("Answer")
Item = TypeVar("Item")
Work = Callable[[asyncpg.Connection, Item], Coroutine[None, None, Answer]]
"""Work on an item, on a connection that sees the snapshot."""


class HelperEnded(Exception):
    """A process that reads history ended early: nothing is verified."""


class TransactionRange(msgspec.Struct, frozen=True):
    """A range of transactions; `next_tx_id` is not in it."""

    first_tx_id: int
    next_tx_id: int
    transactions: int


class Readers(ABC):
    """Readers of a snapshot: of its packed transactions in parts, and of other items."""

    _parts: list[TransactionRange]
    transactions: int

    def divide(self, parts: list[TransactionRange]) -> None:
        """Set the parts to read."""
        self._parts, self.transactions = parts, sum(part.transactions for part in parts)

    async def read(self, work: Work[TransactionRange, Answer]) -> AsyncIterator[tuple[Answer, int]]:
        """The result of `work` for each part, and the number of transactions in it."""
        async for answer, part in self.each(work, self._parts):
            yield answer, part.transactions

    @abstractmethod
    def each(self, work: Work[Item, Answer], items: Sequence[Item]) -> AsyncIterator[tuple[Answer, Item]]:
        """The result of `work` for each item, in order, on a connection that sees the snapshot."""


@asynccontextmanager
async def in_processes(db: asyncpg.Connection, url: str, network: Network, processes: int) -> AsyncIterator[Readers]:
    """Processes that see the snapshot of a connection. They start at once. Raises HelperEnded."""
    snapshot: str = await db.fetchval("SELECT pg_export_snapshot()")
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), initializer=_open, initargs=(url, network.name, snapshot)
    )
    try:
        for _ in range(processes):
            pool.submit(_ready)
        yield _ProcessReaders(pool, processes)
    except BrokenProcessPool as cause:
        raise HelperEnded(f"{network.name}: a process that reads history ended, so nothing is verified") from cause
    else:
        # Wait for all processes: one without work may still be opening the snapshot, which is gone after this block.
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
        for place in range(len(items) + self._ahead):
            if place < len(items):
                working.append(loop.run_in_executor(self._pool, _work, work, items[place]))
            if place >= self._ahead:
                yield await working.popleft(), items[place - self._ahead]


async def parts_of(db: asyncpg.Connection) -> list[TransactionRange]:
    """All transactions, in parts of about PART_TRANSACTIONS, cut between blocks."""
    return await _parts.all(db, PART_TRANSACTIONS)


# In the processes that read -------------------------------------------------------------------------------------------


class _Worker(msgspec.Struct):
    runner: asyncio.Runner
    db: asyncpg.Connection


_worker: _Worker


def _open(url: str, network_name: str, snapshot: str) -> None:
    """Connect this process to the snapshot."""
    global _worker
    gc.disable()
    # NOTE: otherwise it would wait for work forever after its parent was killed, with a snapshot that blocks vacuum.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    runner = asyncio.Runner()
    db = runner.run(database.connect(url, by_name[network_name]))
    runner.run(db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
    runner.run(db.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'"))
    _worker = _Worker(runner, db)


def _ready() -> None:
    """Do nothing: the process has started."""


def _work(work: Work[Item, Answer], item: Item) -> Answer:
    return _worker.runner.run(work(_worker.db, item))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "verify spawned this process"
    parent.join()
    os._exit(1)


_sql = sql.beside(__file__)
_parts = _sql.query("parts", TransactionRange)
