"""`verify` holds no snapshot from one part of its work to the next, and is right whatever is committed in between.

Verify waits for a test at two places: in the snapshot of the noted block, and in a later one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Any, NamedTuple

import asyncpg
import pytest

from indexer.verify import moments, readers
from indexer.verify import run as verify
from indexer.verify.results import NotComplete
from indexer.verify.tables import fingerprints, votes
from shared import database
from shared.network import PREVIEW
from tests.chain.test_verify import COIN, write
from tests.chain.written import Written, mints, pays, person, tx
from tests.patience import PATIENCE_S


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


class Outcome(NamedTuple):
    slot_no: int
    found: dict[str, list[str]]
    told: list[str]


class Verifying:
    """A verification that waits at two places: in its first snapshot, once the last block is noted and before history
    is read, and in the last comparison of tables.
    """

    def __init__(self, url: str, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        self._url, self._db = url, db
        self._told, self.pid = list[str](), 0
        self.statements = list[str]()
        self.first, self.later = Stop(), Stop()
        monkeypatch.setattr(fingerprints, "ranges", self.first.before(fingerprints.ranges))
        monkeypatch.setattr(votes, "check", self.later.before(votes.check))

    async def run(self) -> Outcome:
        connection = await database.connect(self._url, PREVIEW)
        self.pid = connection.get_server_pid()
        connection.add_query_logger(lambda record: self.statements.append(record.query))
        try:
            tip, found = await verify.verify(
                connection, self._url, PREVIEW, lambda name, *_: self._told.append(name), processes=1
            )
        finally:
            await connection.close()
        return Outcome(tip.slot_no, {each.check: list(map(str, each.differences)) for each in found}, self._told)

    async def held_since(self) -> datetime:
        """When its present transaction began. NOTE: not `backend_xmin`, which those of other databases hold back."""
        read = "SELECT xact_start FROM pg_stat_activity WHERE pid = $1 AND backend_xmin IS NOT NULL"
        found: datetime = await self._db.fetchval(read, self.pid)
        return found


class Stop:
    """A place at which verify waits, once."""

    def __init__(self) -> None:
        self._reached, self._passed = asyncio.Event(), asyncio.Event()

    def before(self, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def stopped(*args: Any, **kwargs: Any) -> Any:
            self._reached.set()
            await self._passed.wait()
            return await work(*args, **kwargs)

        return stopped

    async def reached(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self._reached.wait()

    def go_on(self) -> None:
        self._passed.set()


async def waits(db: asyncpg.Connection, table: str, mode: str, except_pid: int = 0) -> datetime:
    """Wait until a session waits for this lock. Returns when its transaction began."""
    waiting = (
        "SELECT xact_start FROM pg_stat_activity JOIN pg_locks USING (pid)"
        " WHERE NOT granted AND relation = $1::regclass AND mode = $2 AND pid <> $3"
    )
    async with asyncio.timeout(PATIENCE_S):
        while (began_at := await db.fetchval(waiting, table, mode, except_pid)) is None:
            await asyncio.sleep(0.01)
    found: datetime = began_at
    return found


@asynccontextmanager
async def locked(url: str, table: str) -> AsyncIterator[None]:
    """Nobody else reads this table."""
    connection = await database.connect(url, PREVIEW)
    try:
        async with connection.transaction():
            await connection.execute(f"LOCK TABLE {table}")
            yield
    finally:
        await connection.close()


async def more(chain: Written, slot_no: int, *spends: tuple[str, int]) -> None:
    """A block that changes every kind of table that verify adds up."""
    moved = pays(person("rich", staked=True), (COIN, 100))
    await chain.append(slot_no, tx(f"more{slot_no}", moved, spends=spends, mint=mints((COIN, 99))))


async def test_what_is_committed_between_two_parts_is_left_out_and_no_snapshot_lasts(
    database_url: str, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "PART_TRANSACTIONS", 3)
    chain = Written(db)
    await write(chain)
    verifying = Verifying(database_url, db, monkeypatch)
    task = asyncio.create_task(verifying.run())
    await verifying.first.reached()
    assert await verifying.held_since() is not None
    await more(chain, 100, ("many", 7))
    await more(chain, 110, ("more100", 0), ("pair", 1))
    written_at = await db.fetchval("SELECT clock_timestamp()")
    verifying.first.go_on()
    await verifying.later.reached()
    assert await verifying.held_since() > written_at, "both blocks are seen"
    await more(chain, 120, ("many", 8))
    await chain.back_to(100)
    await more(chain, 130, ("many", 9))
    verifying.later.go_on()
    assert (await task)[:2] == (50, {})


async def test_a_rollback_of_the_noted_block_starts_verify_again(
    database_url: str, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Written(db)
    await write(chain)
    verifying = Verifying(database_url, db, monkeypatch)
    task = asyncio.create_task(verifying.run())
    await verifying.first.reached()
    await chain.back_to(40)
    await more(chain, 60)
    verifying.first.go_on()
    verifying.later.go_on()
    outcome = await task
    assert outcome[:2] == (60, {})
    assert "again, since a rollback has removed the verified block" in outcome.told


async def test_errors_are_found_while_blocks_are_written(
    database_url: str, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a transaction beyond all blocks, which is no new one."""
    chain = Written(db)
    await write(chain)
    await db.execute("UPDATE holder SET quantity = quantity + 1 WHERE (asset_no, address_no) = (1, 5)")
    await db.execute(
        "INSERT INTO tx (tx_id, fee, size, hash, outputs, inputs)"
        " SELECT tx_id + (1000 << 16), fee, size, sha256(hash), outputs, inputs FROM tx LIMIT 1"
    )
    verifying = Verifying(database_url, db, monkeypatch)
    task = asyncio.create_task(verifying.run())
    await verifying.first.reached()
    await more(chain, 100, ("many", 7))
    verifying.first.go_on()
    await verifying.later.reached()
    await more(chain, 110, ("many", 8))
    verifying.later.go_on()
    outcome = await task
    assert outcome.slot_no == 50
    assert "held by" in outcome.found["holder"][0]
    assert "tx_count of block 1010" in str(outcome.found["block"])


async def test_an_error_that_is_gone_before_it_is_named_is_told(
    database_url: str, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(Written(db))
    await db.execute("UPDATE holder SET quantity = quantity + 1 WHERE (asset_no, address_no) = (1, 5)")
    verifying = Verifying(database_url, db, monkeypatch)
    task = asyncio.create_task(verifying.run())
    verifying.first.go_on()
    await verifying.later.reached()
    await db.execute("UPDATE holder SET quantity = quantity - 1 WHERE (asset_no, address_no) = (1, 5)")
    verifying.later.go_on()
    outcome = await task
    assert outcome.found["checksum"] == ["digest of holder: indexed another one, recomputed that of its rows"]


async def test_a_tip_that_is_removed_each_time_is_told(
    database_url: str, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_: Any) -> None:
        raise moments.TipGone

    await write(Written(db))
    monkeypatch.setattr(verify, "check_all", gone)
    with pytest.raises(NotComplete, match="each of 10 times, a rollback removed"):
        await Verifying(database_url, db, monkeypatch).run()


async def test_no_transaction_of_verify_has_many_statements(
    database_url: str, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound in work: what is held is held for a few statements, each of which reads a table or two."""
    await write(Written(db))
    verifying = Verifying(database_url, db, monkeypatch)
    verifying.first.go_on()
    verifying.later.go_on()
    await verifying.run()
    lengths, length = list[int](), 0
    for statement in verifying.statements:
        length += 1
        if statement.startswith("BEGIN"):
            length = 0
        if statement.startswith("COMMIT"):
            lengths.append(length)
    assert len(lengths) > 60
    assert max(lengths) <= 30, lengths


async def test_a_reader_ends_its_snapshot_with_each_part(
    database_url: str, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for a table alone gets it after the part that reads it, and before the next one."""
    monkeypatch.setattr(readers, "PART_TRANSACTIONS", 1)
    chain = Written(db)
    await write(chain)
    verifying, began_at = Verifying(database_url, db, monkeypatch), list[datetime]()
    task = asyncio.create_task(verifying.run())
    await verifying.first.reached()
    alone = AsyncExitStack()
    await alone.enter_async_context(locked(database_url, "script"))
    verifying.first.go_on()
    for slot_no in (100, 110, 120):
        began_at.append(await waits(db, "script", "AccessShareLock", except_pid=verifying.pid))
        await more(chain, slot_no)
        following = AsyncExitStack()
        getting = asyncio.create_task(following.enter_async_context(locked(database_url, "script")))
        await waits(db, "script", "AccessExclusiveLock")
        await alone.aclose()
        async with asyncio.timeout(PATIENCE_S):
            await getting
        alone = following
    await alone.aclose()
    verifying.later.go_on()
    assert (await task)[:2] == (50, {})
    assert began_at == sorted(set(began_at)), "each part has a transaction of its own"
