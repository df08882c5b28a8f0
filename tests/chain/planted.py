"""Errors planted in an index, one at a time, and the findings of `verify`."""

import pickle
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import asyncpg
import pytest

from indexer.ogmios import connection as ogmios
from indexer.verify import moments, parts
from indexer.verify import run as verify
from indexer.verify.node import against_node, ledger_state
from indexer.verify.readers import Answer, Item, Readers, Work
from indexer.verify.results import CheckResult
from indexer.verify.tables import catalog, digests, votes
from shared import schema
from shared.network import Network
from tests.chain.in_turns import InTurns, in_turns

_FOLDER = re.compile(r"PosixPath\('[^']*'\)")

Find = Callable[[InTurns], Awaitable[dict[str, list[str]]]]


class Here(Readers):
    """Reads in the open transaction of a connection, so that its uncommitted changes are visible."""

    def __init__(self, db: InTurns) -> None:
        self._db = db
        self._of_numbers = frozenset[str]()

    async def each(self, work: Work[Item, Answer], items: Sequence[Item]) -> AsyncIterator[tuple[Answer, Item]]:
        for item in items:
            async with moments.at(self._db, self._noted) as moment:
                answer = await self._worked(work, moment, item)
            yield answer, item

    async def _worked(self, work: Work[Item, Answer], moment: moments.Moment, item: Item) -> Answer:
        """The result of work; like that of another process, it is a copy."""
        done, arguments = (work.func, work.args) if isinstance(work, partial) else (work, ())
        about = repr((arguments, moment.first_new, moment.next_new, item))
        if done is parts.write_numbers:
            # Into a new folder, so its result is never known. Other work reads these files.
            key = (done.__qualname__, about)
            answer = await self._db.answer(key, lambda: work(moment, item))
            self._of_numbers = self._db.tables_of(key)
            return answer
        key = (f"{done.__module__}.{done.__qualname__}", _FOLDER.sub("", about))

        async def copied() -> bytes:
            return pickle.dumps(await work(moment, item))

        copy: Answer = pickle.loads(await self._db.answer(key, copied, self._of_numbers))
        return copy


async def verified(database_url: str, network: Network, node_url: str | None = None) -> dict[str, list[str]]:
    """The differences that verify finds, by check; with a node, also those from it.

    It starts no processes, and creates the schema with which it compares only once.
    """
    db = await in_turns(database_url, network)
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(verify, "in_processes", lambda *_: nullcontext(Here(db)))
            patched.setattr(catalog, "expected", expected_once)
            async with db.transaction(isolation="repeatable_read"):
                _, found = await verify.verify(db, database_url, network, lambda *_: None)
        return told(found) if found or node_url is None else await against(db, network, node_url)
    finally:
        await db.close()


_created = dict[tuple[object, str], dict[str, str]]()
_create = catalog.expected


async def expected_once(db: asyncpg.Connection, network: Network) -> dict[str, str]:
    """The same as catalog.expected, once for each network and each way to create its schema."""
    key = schema.create, network.name
    if key not in _created:
        _created[key] = await _create(db, network)
    return _created[key]


async def within(db: InTurns, network: Network) -> dict[str, list[str]]:
    """The differences that verify finds in the open transaction, by check."""
    _, found = await verify.check_all(db, Here(db), network, lambda *_: None)
    return told(found)


async def against(db: InTurns, network: Network, url: str) -> dict[str, list[str]]:
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
    db: InTurns, statement: str, *finds: Find, arguments: tuple[Any, ...] = ()
) -> dict[str, list[str]] | None:
    """Run a statement, and return the result of the first method that finds something; the statement is then undone.

    None if the database itself refuses the row. Fails if the statement changes nothing.
    """
    undone = db.transaction(isolation="repeatable_read")
    await undone.start()
    try:
        try:
            async with db.changing(statement):
                tag = await db.execute(statement, *arguments)
        except (asyncpg.IntegrityConstraintViolationError, asyncpg.NumericValueOutOfRangeError):
            return None
        assert not tag.endswith(" 0"), statement
        if not db.knows:
            await digests.make_functions(db)
        for find in finds:
            found = await find(db)
            if found:
                return found
        return {}
    finally:
        db.forget_changes()
        await undone.rollback()
