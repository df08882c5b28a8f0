"""Errors planted in an index, one at a time, and the findings of `verify`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from indexer.ogmios import connection as ogmios
from indexer.verify import moments
from indexer.verify import run as verify
from indexer.verify.node import against_node, ledger_state
from indexer.verify.readers import Answer, Item, Readers, Work
from indexer.verify.results import CheckResult
from indexer.verify.tables import digests, votes
from shared.network import Network

Find = Callable[[asyncpg.Connection], Awaitable[dict[str, list[str]]]]


class InTurns(asyncpg.Connection):  # type: ignore[misc]
    """A connection that tasks share: the statements of one wait for those of another."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._turn = asyncio.Lock()
        self._whose: asyncio.Task[Any] | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Keep the connection for this task, also between statements: a cursor needs it for that long."""
        if self._whose is asyncio.current_task():
            yield
            return
        async with self._turn:
            self._whose = asyncio.current_task()
            try:
                yield
            finally:
                self._whose = None

    def transaction(self, *, readonly: bool = False, **kwargs: Any) -> Any:
        """To read in an open one, a turn instead of a savepoint, since those of two tasks can't be nested."""
        if readonly and self.is_in_transaction():
            return self.turn()
        return super().transaction(readonly=readonly, **kwargs)

    async def fetch(self, *args: Any, **kwargs: Any) -> Any:
        async with self.turn():
            return await super().fetch(*args, **kwargs)

    async def fetchrow(self, *args: Any, **kwargs: Any) -> Any:
        async with self.turn():
            return await super().fetchrow(*args, **kwargs)

    async def fetchval(self, *args: Any, **kwargs: Any) -> Any:
        async with self.turn():
            return await super().fetchval(*args, **kwargs)

    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        async with self.turn():
            return await super().execute(*args, **kwargs)


STATEMENTS = 1_000
"""More than verify has: with asyncpg's 100, each of them would be prepared again whenever it verifies."""


async def in_turns(database_url: str, network: Network) -> InTurns:
    """Connect to a network's schema."""
    settings = {"search_path": network.schema}
    connected: InTurns = await asyncpg.connect(
        database_url, connection_class=InTurns, server_settings=settings, statement_cache_size=STATEMENTS
    )
    return connected


class Here(Readers):
    """Reads in the open transaction of a connection, so that its uncommitted changes are visible."""

    def __init__(self, db: InTurns) -> None:
        self._db = db

    async def each(self, work: Work[Item, Answer], items: Sequence[Item]) -> AsyncIterator[tuple[Answer, Item]]:
        for item in items:
            async with moments.at(self._db, self._noted) as moment:
                answer = await work(moment, item)
            yield answer, item


async def within(db: InTurns, network: Network) -> dict[str, list[str]]:
    """The differences that verify finds in the open transaction, by check."""
    _, found = await verify.check_all(db, Here(db), network, lambda *_: None)
    return told(found)


async def against(db: asyncpg.Connection, network: Network, url: str) -> dict[str, list[str]]:
    """The differences that verify finds in a comparison with a node, by check."""

    async def connect() -> ogmios.Ogmios:
        return await ogmios.connect(url)

    found = (await against_node.compare(db, connect, network, lambda *_: None)).results
    node = await connect()
    try:
        found += ledger_state.results(await ledger_state.compare(db, node, network, 100.0) or [])
        found.append(await votes.check_fork(db, node, network))
    finally:
        await node.close()
    return told(found)


def told(found: list[CheckResult]) -> dict[str, list[str]]:
    """Differences by check, as the command prints them."""
    return {result.check: list(map(str, result.differences)) for result in found if result.differences}


async def planted(
    db: asyncpg.Connection, statement: str, *finds: Find, arguments: tuple[Any, ...] = ()
) -> dict[str, list[str]] | None:
    """Run a statement, and return the result of the first method that finds something; the statement is then undone.

    None if the database itself refuses the row. Fails if the statement changes nothing.
    """
    undone = db.transaction(isolation="repeatable_read")
    await undone.start()
    try:
        try:
            tag = await db.execute(statement, *arguments)
        except (asyncpg.IntegrityConstraintViolationError, asyncpg.NumericValueOutOfRangeError):
            return None
        assert not tag.endswith(" 0"), statement
        await digests.make_functions(db)
        for find in finds:
            found = await find(db)
            if found:
                return found
        return {}
    finally:
        await undone.rollback()
