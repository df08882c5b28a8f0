"""A connection to an index on which `verify` runs many times, each in a transaction with another error.

A run has some 600 statements, and an error changes one or two of seventy tables. So the connection can learn what a
correct index answers, and from which tables. Beside an error, it asks again only what may have another answer.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg
import msgspec

from indexer.verify.tables import digests
from shared.network import Network

T = TypeVar("T")

STATEMENTS = 1_000
"""More than verify has: with asyncpg's 100, each of them would be prepared again whenever it verifies."""
# What this transaction has read and changed in each table. Both numbers contain what this session has not yet reported
# of transactions before; that stays the same until the end of this one. Statements look up most of the catalog without
# a scan, so its tables count as read where they are named.
_COUNTS = """
SELECT relname::text, schemaname = 'pg_catalog', coalesce(seq_scan, 0) + seq_tup_read + coalesce(idx_scan, 0),
       n_tup_ins + n_tup_upd + n_tup_del
FROM pg_stat_xact_all_tables WHERE schemaname IN ('pg_catalog', current_schema())
"""
_SETTING = re.compile(r"SET LOCAL |SELECT set_config\(")
_WORD = re.compile(r"\w+")


class _Known(msgspec.Struct, frozen=True):
    """An answer of a correct index, and the tables from which it follows."""

    answer: Any
    tables: frozenset[str]


class InTurns(asyncpg.Connection):  # type: ignore[misc]
    """A connection that tasks share: the statements of one wait for those of another."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._turn = asyncio.Lock()
        self._whose: asyncio.Task[Any] | None = None
        self._names = frozenset[str]()
        self._known = dict[Hashable, _Known]()
        self._learns = False
        self._changed: frozenset[str] | None = None
        self._settings = dict[str, tuple[Any, ...]]()

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

    async def fetch(self, query: str, *args: Any, **kwargs: Any) -> Any:
        return await self.answer(
            ("fetch", query, repr(args)), lambda: super(InTurns, self).fetch(query, *args, **kwargs)
        )

    async def fetchrow(self, query: str, *args: Any, **kwargs: Any) -> Any:
        return await self.answer(
            ("fetchrow", query, repr(args)), lambda: super(InTurns, self).fetchrow(query, *args, **kwargs)
        )

    async def fetchval(self, query: str, *args: Any, **kwargs: Any) -> Any:
        return await self.answer(
            ("fetchval", query, repr(args)), lambda: super(InTurns, self).fetchval(query, *args, **kwargs)
        )

    async def execute(self, query: str, *args: Any, **kwargs: Any) -> Any:
        async with self.turn():
            if self._changed is not None and _SETTING.match(query):
                # Most statements are not asked, so neither are the settings that they need.
                self._settings.pop(query, None)
                self._settings[query] = args
                return ""
            return await super().execute(query, *args, **kwargs)

    @property
    def knows(self) -> bool:
        """Whether it has learned anything."""
        return bool(self._known)

    def tables_of(self, key: tuple[str, ...]) -> frozenset[str]:
        """The tables from which a known answer follows."""
        known = self._known.get(key)
        return frozenset() if known is None else known.tables

    async def answer(
        self, key: tuple[str, ...], ask: Callable[[], Awaitable[T]], besides: frozenset[str] = frozenset()
    ) -> T:
        """What `ask` returns, or the known answer with this key if nothing has changed in the tables from which it
        follows: those that it reads, those that the key names, and `besides`.
        """
        async with self.turn():
            if self._learns:
                before = await self._counts()
                answer = await ask()
                after = await self._counts()
                read = {name for name, (reads, _) in after.items() if reads != before[name][0]}
                self._known[key] = _Known(answer, besides | read | self._named(" ".join(key)))
                return answer
            if self._changed is not None:
                known = self._known.get(key)
                if known is not None and known.tables.isdisjoint(self._changed):
                    return known.answer  # type: ignore[no-any-return] # of an equal question
                for setting, args in self._settings.items():
                    await super().execute(setting, *args)
                self._settings.clear()
            return await ask()

    async def learn(self, verifies: Callable[["InTurns"], Awaitable[T]]) -> T:
        """Keep all answers on which these findings are based. The index must be correct, and not change any more."""
        await digests.make_functions(self)
        async with super().transaction(isolation="repeatable_read"):
            self._names = frozenset(await self._counts())
            self._learns = True
            try:
                return await verifies(self)
            finally:
                self._learns = False

    @asynccontextmanager
    async def changing(self, statement: str) -> AsyncIterator[None]:
        """Note which tables this statement changes, from which other answers follow until `forget_changes`."""
        if not self._known:
            yield
            return
        before = await self._counts()
        yield
        after = await self._counts()
        changed = {name for name, (_, changes) in after.items() if changes != before.get(name, (0, 0))[1]}
        self._changed = self._named(statement) | changed

    def forget_changes(self) -> None:
        """They have been undone."""
        self._changed = None
        self._settings.clear()

    async def _counts(self) -> dict[str, tuple[int, int]]:
        """By table, a number of its reads and one of its changes."""
        rows = await super().fetch(_COUNTS)
        return {name: (0 if of_catalog else reads, changes) for name, of_catalog, reads, changes in rows}

    def _named(self, text: str) -> frozenset[str]:
        """The tables that a text names."""
        return self._names.intersection(_WORD.findall(text))


async def in_turns(database_url: str, network: Network) -> InTurns:
    """Connect to a network's schema."""
    settings = {"search_path": network.schema}
    connected: InTurns = await asyncpg.connect(
        database_url, connection_class=InTurns, server_settings=settings, statement_cache_size=STATEMENTS
    )
    return connected
