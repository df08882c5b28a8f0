"""Usage while a session holds an old snapshot, in which Postgres keeps every version of a row. Decision 0061."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from api import worker
from api.sources import held_snapshots
from api.usage import fold, hours
from api.usage.queue import BreakdownSum, UsageBatch, UsageSum
from shared import database
from tests.api.client import Client
from tests.api.conftest import Use
from tests.api.counting import HISTORY, counted, figure
from tests.api.partners import Partner
from tests.patience import PATIENCE_S

MINUTE = 29_000_000
FLAT_WITHIN = 1.3  # of CPU in groups of 40 batches; without parts it was 6 after 200


@pytest.fixture
async def snapshot(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncpg.Connection]:
    """Another program's session with an old snapshot, until it is closed."""
    monkeypatch.setattr(held_snapshots, "OLD_S", 0.0)
    session = await asyncpg.connect(database_url)
    await session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await session.execute("SELECT FROM partner.usage")
    yield session
    await session.close()


async def add_credentials(db: asyncpg.Connection, like: UUID, count: int) -> list[UUID]:
    """More credentials of the same account."""
    rows = await db.fetch(
        """
        INSERT INTO partner.credential
            (user_account_id, admin_key_id, rate_limit_per_minute, network_id, key_hash, api_key_prefix, name)
        SELECT user_account_id, admin_key_id, 60, 1, sha256(n::text::bytea), '', 'x'
        FROM partner.credential, generate_series(1, $2) AS n
        WHERE id = $1
        RETURNING id
        """,
        like,
        count,
    )
    return [row["id"] for row in rows]


async def figures(db: asyncpg.Connection) -> list[asyncpg.Record]:
    """All sums, whatever their parts."""
    return [
        row
        for statement in (
            "SELECT credential_id, minute, sum(successful), sum(failed), sum(took_us) FROM partner.usage GROUP BY 1, 2",
            "SELECT credential_id, day, sum(successful), sum(limited) FROM partner.usage_day GROUP BY 1, 2",
            "SELECT credential_id, hour, status_class, sum(requests), partner.durations_sum(durations), sum(events),"
            " sum(stream_minutes) FROM partner.usage_hour GROUP BY 1, 2, 3",
            "SELECT credential_id, sum(successful), sum(failed) FROM partner.usage_total GROUP BY 1",
        )
        for row in await db.fetch(f"{statement} ORDER BY 1, 2")
    ]


async def parts(db: asyncpg.Connection) -> int:
    """The number of rows that are not folded."""
    tables = ("usage", "usage_day", "usage_hour", "usage_total")
    counts = [f"SELECT count(*) FROM partner.{table} WHERE part > 0" for table in tables]  # noqa: S608 - our tables
    return sum([await db.fetchval(count) for count in counts])


def batches(ids: list[UUID], count: int, seed: int = 1) -> list[UsageBatch]:
    """Consecutive batches of one spool with requests of all credentials."""
    chance = random.Random(seed)

    def one(number: int) -> UsageBatch:
        failed = chance.randrange(3)
        sums = [UsageSum(each.hex, MINUTE, 2, failed, 900, MINUTE * 60_000_000 + number, failed) for each in ids]
        kinds = [(2, 2, 500), (4, failed, 400)] if failed else [(2, 2, 900)]
        hours = [
            BreakdownSum(each.hex, MINUTE // 60, HISTORY.name, kind, requests, took_us, [(300 << 48) + requests], 3, 2)
            for each in ids
            for kind, requests, took_us in kinds
        ]
        return UsageBatch(f"spool {seed}", number * 38, (number + 1) * 38, sums, hours)

    return [one(number) for number in range(count)]


class Alternating:
    """Instead of the statement that chooses a part: 0 and further ones in turn, whatever snapshots are held."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    async def only(self, *_: object) -> int:
        number = next(self._numbers)
        return number % 3 and 1 + number // 12


async def cpu_ns(pid: int) -> int:
    """The CPU time that a process has used."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="needs /proc, as Linux has it")
async def test_a_batch_costs_the_same_however_long_a_snapshot_is_held(
    db: asyncpg.Connection, credential_id: UUID, snapshot: asyncpg.Connection
) -> None:
    ids = await add_credentials(db, credential_id, 60)
    pid, took = db.get_server_pid(), []
    for batch in batches(ids, 200):
        before = await cpu_ns(pid)
        assert await worker.add_batch(db, batch)
        took.append(await cpu_ns(pid) - before)
    early, late = sum(sorted(took[20:60])[:20]), sum(sorted(took[160:])[:20])
    assert late < early * FLAT_WITHIN, (early, late)
    assert not snapshot.is_closed()


async def test_folding_changes_no_figure_and_leaves_one_row_each(
    db: asyncpg.Connection,
    credential_id: UUID,
    snapshot: asyncpg.Connection,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = await add_credentials(db, credential_id, 3)
    for batch in batches(ids, 40):
        assert await worker.add_batch(db, batch)
    before = await figures(db)
    assert await parts(db) > 40
    async with await database.create_pool(database_url, None, max_size=6) as pool:
        assert await fold.fold(pool) == 0, "the snapshot is still held"
        await snapshot.close()
        monkeypatch.setattr(held_snapshots, "OLD_S", 5.0)
        assert await fold.fold(pool) > 0
        assert (await parts(db), await figures(db)) == (0, before)
        assert await fold.fold(pool) == 0
    assert await counted(db) == (240, sum(each.failed for batch in batches(ids, 40) for each in batch.sums))


async def test_folds_and_batches_at_the_same_time_never_block_each_other(
    db: asyncpg.Connection, credential_id: UUID, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold, "_MAX_ROWS", 7)
    ids = await add_credentials(db, credential_id, 12)
    random.Random(2).shuffle(ids)
    async with await database.create_pool(database_url, None, max_size=8) as pool:

        async def add(seed: int) -> None:
            for batch in batches(random.Random(seed).sample(ids, len(ids)), 12, seed):
                async with pool.acquire() as connection:
                    assert await worker.add_batch(connection, batch)

        async def keep_folding() -> None:
            while True:
                await asyncio.gather(fold.fold(pool), fold.fold(pool))

        monkeypatch.setattr(fold, "_is_free", lambda _pool: asyncio.sleep(0, True))
        monkeypatch.setattr(hours, "_part", Alternating())
        folding = asyncio.create_task(keep_folding())
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(add(seed) for seed in range(1, 5)))
        folding.cancel()
        await asyncio.gather(folding, return_exceptions=True)
        await fold.fold(pool)
    expected = [each for seed in range(1, 5) for batch in batches(ids, 12, seed) for each in batch.sums]
    assert await counted(db) == (
        sum(each.successful for each in expected),
        sum(each.failed for each in expected),
    )
    assert await parts(db) == 0


async def test_every_answer_is_the_same_with_further_parts(
    partner: Partner, use: Use, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    user = await partner.user()
    made = [(await partner.issued(user, name=str(number)))[0] for number in range(5)]
    chance = random.Random(3)
    monkeypatch.setattr(hours, "_part", Alternating())
    for _ in range(40):
        at = f"2026-03-{chance.randrange(1, 6):02}T{chance.randrange(24):02}:{chance.randrange(60):02}"
        await use(chance.choice(made[:4]), at, successful=chance.randrange(9), failed=chance.randrange(9))

    async def answers() -> list[object]:
        paths = [f"/usage?limit={limit}&offset={offset}" for limit in (2, 5) for offset in range(5)]
        paths += [
            "/usage?start_date=2026-03-02&end_date=2026-03-04T11:30:00Z",
            "/users/usage/summary?start_date=2026-01-01&end_date=2026-06-01",
        ]
        paths += [f"/usage/{each['id']}?start_date=2026-03-01T07:11:00Z&end_date=2026-06-01" for each in made]
        return [(await partner.get(path)).body["data"] for path in paths]

    assert await parts(db) > 20
    divided = await answers()
    async with await database.create_pool(database_url, None, max_size=2) as pool:
        await fold.fold(pool)
    assert await parts(db) == 0
    assert await answers() == divided


@pytest.mark.usefixtures("snapshot")
async def test_an_old_snapshot_is_told(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_snapshots, "TOLD_AFTER_S", 0.0)
    assert "a session of the database has held a snapshot for " in (await api.get("/ready")).error
    assert (figure((await api.get("/metrics")).body, "ledgerline_oldest_snapshot_seconds") or 0) > 0
    assert (await api.get("/v1/status")).body["data"]["usage"]["oldest_snapshot_s"] > 0
