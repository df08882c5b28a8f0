"""The aggregator: each batch is added once, in order, and its process ends in good order."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest

from api import worker
from api.events.subjects import EventKind, notice_key
from api.usage.queue import BreakdownSum, UsageBatch, UsageSum
from shared import database
from tests.api.counting import (
    CHECKOUT,
    HISTORY,
    counted,
)
from tests.chain.harness import Process


def batch(credential_id: UUID, offset: int, end: int, spool: str = "s", **sums: int) -> UsageBatch:
    """Some requests of one credential."""
    used = UsageSum(credential_id.hex, 29_000_000, **({"successful": 1} | sums))
    return UsageBatch(spool, offset, end, [used], [])


async def test_a_batch_is_added_once_however_often_it_is_delivered(db: asyncpg.Connection, credential_id: UUID) -> None:
    first, second = batch(credential_id, 0, 32), batch(credential_id, 32, 64, failed=2, successful=0)
    assert await worker.add_batch(db, first)
    assert not await worker.add_batch(db, first)
    assert await worker.add_batch(db, second)
    for stale in (first, second, first):
        assert not await worker.add_batch(db, stale)
    assert await counted(db) == (1, 2)


async def test_a_batch_is_never_added_before_its_predecessor(db: asyncpg.Connection, credential_id: UUID) -> None:
    assert not await worker.add_batch(db, batch(credential_id, 32, 64))
    assert await worker.add_batch(db, batch(credential_id, 0, 32))
    assert not await worker.add_batch(db, batch(credential_id, 64, 96))
    assert await worker.add_batch(db, batch(credential_id, 32, 64))
    assert await counted(db) == (2, 0)


async def test_one_of_two_batches_with_the_same_offset_is_added(db: asyncpg.Connection, credential_id: UUID) -> None:
    """The spool of a process that died after it queued 0 to 32 is taken over by one that queues 0 to 64."""
    longer, shorter = batch(credential_id, 0, 64, successful=2), batch(credential_id, 0, 32)
    assert await worker.add_batch(db, shorter)
    assert not await worker.add_batch(db, longer)
    assert await worker.add_batch(db, batch(credential_id, 32, 64))
    assert await counted(db) == (2, 0)


async def test_the_same_batch_at_the_same_time_is_added_once(
    db: asyncpg.Connection, credential_id: UUID, database_url: str
) -> None:
    async with await database.create_pool(database_url, None, max_size=8) as pool:

        async def add(each: UsageBatch) -> bool:
            async with pool.acquire() as connection:
                return await worker.add_batch(connection, each)

        for round_ in range(20):
            same = [batch(credential_id, 32 * round_, 32 * round_ + 32)] * 4
            others = [batch(credential_id, 0, 32, spool=f"{round_}-{number}") for number in range(4)]
            added = await asyncio.gather(*(add(each) for each in same + others))
            assert (sum(added[:4]), sum(added[4:])) == (1, 4)
    assert await counted(db) == (100, 0)


async def test_a_quota_is_noticed_once_in_a_period_by_whichever_batch_reaches_it(
    db: asyncpg.Connection, credential_id: UUID, database_url: str
) -> None:
    """No batch alone reaches 80 percent. Requests of yesterday, and those refused with 429, do not count."""
    await db.execute("UPDATE partner.credential SET quota_requests = 100, quota_per = 'day'")
    await ask_for(db, credential_id, "quota.80", "quota.100")
    today, yesterday = (int(datetime.now(UTC).timestamp()) // 60 - minutes for minutes in (0, 1440))
    noticed = "SELECT kind || ' ' || (body::json ->> 'used') FROM partner.event_notice ORDER BY notice_no"

    async def at_once(*sums: UsageSum) -> list[str]:
        async def add(each: UsageSum) -> None:
            async with pool.acquire() as connection:
                assert await worker.add_batch(connection, UsageBatch(uuid4().hex, 0, 32, [each], []))

        await asyncio.gather(*map(add, sums))
        return [row[0] for row in await db.fetch(noticed)]

    async with await database.create_pool(database_url, None, max_size=4) as pool:
        assert await at_once(UsageSum(credential_id.hex, yesterday, 200)) == []
        assert await at_once(UsageSum(credential_id.hex, today, 0, 90, limited=90)) == []
        told = await at_once(*(UsageSum(credential_id.hex, today, 15, 5) for _ in range(4)))
        assert told == ["quota.80 80"]
        assert await at_once(*(UsageSum(credential_id.hex, today, 5) for _ in range(6))) == [*told, "quota.100 100"]


async def ask_for(db: asyncpg.Connection, credential_id: UUID, *kinds: EventKind) -> None:
    """A live subscription of a credential to some kinds of its own."""
    number = await db.fetchval(
        "INSERT INTO partner.subscription"
        " (credential_id, network_id, confirmations, state, after_slot_no, at_slot_no, live_step)"
        " VALUES ($1, 1, 0, 'live', 0, 0, 0) RETURNING subscription_no",
        credential_id,
    )
    await db.executemany(
        "INSERT INTO partner.subject (subscription_no, network_id, key, direction, least)"
        " VALUES ($1, 1, $2, 'both', 0)",
        [(number, notice_key(kind, credential_id)) for kind in kinds],
    )


async def test_many_credentials_in_opposite_orders_never_block_each_other(
    db: asyncpg.Connection, credential_id: UUID, database_url: str
) -> None:
    ids = [credential_id] + [
        await db.fetchval(
            """
            INSERT INTO partner.credential
                (user_account_id, admin_key_id, rate_limit_per_minute, network_id, key_hash, api_key_prefix, name)
            SELECT user_account_id, admin_key_id, 60, 1, $1, '', 'x' FROM partner.credential LIMIT 1 RETURNING id
            """,
            bytes([1, number]),
        )
        for number in range(30)
    ]
    async with await database.create_pool(database_url, None, max_size=8) as pool:

        async def add(number: int) -> bool:
            order = ids if number % 2 else ids[::-1]
            sums = [UsageSum(each.hex, 29_000_000 + number % 3, 1, 0, 5, number) for each in order]
            parts = [
                BreakdownSum(each.hex, 483_333 + number % 3, HISTORY.name, 2, 1, 5, [(5 << 48) + 1]) for each in order
            ]
            async with pool.acquire() as connection:
                return await worker.add_batch(connection, UsageBatch(str(number), 0, 32, sums, parts))

        assert all(await asyncio.gather(*(add(number) for number in range(24))))
    assert await counted(db) == (24 * len(ids), 0)
    hours = await db.fetch(
        "SELECT sum(requests), sum(took_us), partner.durations_sum(durations)"
        " FROM partner.usage_hour GROUP BY credential_id, hour, status_class"
    )
    assert [tuple(row) for row in hours] == [(8, 40, [(5 << 48) + 8])] * 3 * len(ids)


async def test_an_unknown_credential_is_left_out(db: asyncpg.Connection, credential_id: UUID) -> None:
    mixed = UsageBatch(
        "s", 0, 64, [UsageSum(uuid4().hex, 29_000_000, 5), UsageSum(credential_id.hex, 29_000_000, 1)], []
    )
    assert await worker.add_batch(db, mixed)
    assert await counted(db) == (1, 0)


async def test_the_last_use_only_moves_forward(db: asyncpg.Connection, credential_id: UUID) -> None:
    for offset, last_us in ((0, 2_000_000), (32, 1_000_000), (64, 3_500_000)):
        assert await worker.add_batch(db, batch(credential_id, offset, offset + 32, last_us=last_us))
    last = await db.fetchval("SELECT last_used_at FROM partner.credential WHERE id = $1", credential_id)
    assert last == datetime.fromtimestamp(3.5, UTC)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, ("aggregator.ready",)),
        ({"DATABASE_URL": "postgresql://postgres@127.0.0.1:1/nowhere"}, ("waiting", "postgres")),
        ({"REDIS_URL": "redis://127.0.0.1:1/0"}, ("waiting", "valkey")),
    ],
    ids=["at work", "waiting for Postgres", "waiting for Valkey"],
)
def test_the_aggregator_stops_in_good_order_on_sigterm(
    environment: dict[str, str], tmp_path: Path, settings: dict[str, str], says: tuple[str, ...]
) -> None:
    process = Process(["dramatiq", "api.worker", "-p", "1", "-t", "2"], environment | settings, tmp_path / "worker.log")
    try:
        process.says(*says)
        assert process.stop() == 0
    finally:
        process.kill()


async def test_an_aggregator_that_finds_a_newer_schema_ends_with_one_line_each_time(
    environment: dict[str, str], db: asyncpg.Connection
) -> None:
    await db.execute("UPDATE partner.schema_version SET version = 9999")
    command = [sys.executable, "-m", "dramatiq", "api.worker", "-p", "1", "-t", "2"]

    def start() -> tuple[int, str]:
        ended = subprocess.run(
            command, cwd=CHECKOUT, env=environment, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
        return ended.returncode, ended.stderr

    for _ in range(5):
        for status, said in await asyncio.gather(asyncio.to_thread(start), asyncio.to_thread(start)):
            assert status == 2, said
            refusals = [line for line in said.splitlines() if "schema version 9999" in line]
            assert [line.startswith("the database has") for line in refusals] == [True], said
            assert "Traceback" not in said
