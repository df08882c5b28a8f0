"""From an answered request to the table: spool, batches, aggregator. Contract, "Usage"."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest

from api import batches, usage, worker
from api.batches import Batch, Sum, batch_of
from api.errors import Refusal
from api.usage import RECORD, Spool, Spools
from shared import database
from tests.api.client import Client
from tests.api.partners import CHAIN_PATH, NOTHING_INDEXED, Partner

CHECKOUT = Path(__file__).parents[2]
VISIBLE_WITHIN_S = 5.0


def full(_file: int, _data: bytes, _offset: int) -> int:
    """What os.pwrite is on a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def spools(data_dir: Path) -> Iterator[Spools]:
    """The spools of one process."""
    made = Spools(data_dir / "usage")
    yield made
    made.close()


@pytest.fixture
async def credential_id(db: asyncpg.Connection) -> UUID:
    """A credential to count for."""
    credential_id: UUID = await db.fetchval(
        """
        WITH partner AS (
            INSERT INTO partner.admin_key (entity_name, key_prefix, permissions) VALUES ('x', '', '{}') RETURNING id
        ), account AS (
            INSERT INTO partner.user_account (admin_key_id, name) SELECT id, 'x' FROM partner RETURNING id, admin_key_id
        )
        INSERT INTO partner.credential
            (user_account_id, admin_key_id, rate_limit_per_minute, network_id, key_hash, api_key_prefix, name)
        SELECT id, admin_key_id, 60, 1, '\\x00', '', 'x' FROM account RETURNING id
        """
    )
    return credential_id


@pytest.fixture
async def aggregator(environment: dict[str, str]) -> AsyncIterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts `dramatiq api.worker`; it is ended after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dramatiq", "api.worker", "-p", "1", "-t", "2"]
        started.append(subprocess.Popen(command, cwd=CHECKOUT, env=environment, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


async def counted(db: asyncpg.Connection) -> tuple[int, int]:
    """Successful and failed requests in the table."""
    by_minute, by_day = await db.fetch(
        "SELECT coalesce(sum(successful), 0), coalesce(sum(failed), 0) FROM partner.usage"
        " UNION ALL SELECT coalesce(sum(successful), 0), coalesce(sum(failed), 0) FROM partner.usage_day"
    )
    assert by_minute == by_day
    return int(by_minute[0]), int(by_minute[1])


async def until_counted(db: asyncpg.Connection, expected: tuple[int, int], within_s: float) -> None:
    """Wait for the table to say so, and for it not to say more a moment later."""
    deadline = time.monotonic() + within_s
    while await counted(db) != expected:
        assert time.monotonic() < deadline, (await counted(db), expected)
        await asyncio.sleep(0.05)


# The spool ------------------------------------------------------------------------------------------------------------


def test_a_batch_adds_up_by_credential_and_minute(spools: Spools) -> None:
    one, other = uuid4(), uuid4()
    before = time.time_ns() // 1000
    for credential_id, status, took_s in (
        (one, 200, 0.001),
        (one, 302, 0.002),
        (one, 404, 0.003),
        (other, 429, 0.5),
        (one, 503, 1e9),
    ):
        spools.count(credential_id, status, took_s)
    (spool,) = spools.all
    batch = batch_of(spool)
    assert (batch.spool, batch.offset, batch.end) == (spool.name, 0, 5 * RECORD.size)
    sums = {(each.credential_id, each.minute): each for each in batch.sums}
    assert len(sums) in {2, 3}, "a new minute may begin"
    mine = [each for each in batch.sums if each.credential_id == one.hex]
    assert (sum(each.successful for each in mine), sum(each.failed for each in mine)) == (2, 2)
    assert sum(each.took_us for each in mine) == 6_000 + 2**32 - 1
    assert all(before <= each.last_us <= time.time_ns() // 1000 for each in batch.sums)
    assert batch_of(spool) == batch, "same bytes, same name, however often"


def test_a_torn_or_damaged_record_is_passed_over(spools: Spools, data_dir: Path) -> None:
    for _ in range(3):
        spools.count(uuid4(), 200, 0.1)
    (path,) = (data_dir / "usage").glob("*.spool")
    data = bytearray(path.read_bytes())
    data[RECORD.size + 3] ^= 1
    copy = path.with_name("copy.spool")
    copy.write_bytes(bytes(data) + b"torn")
    spool = Spool.take_over(copy)
    assert spool is not None
    assert spool.size_bytes == 3 * RECORD.size
    batch = batch_of(spool)
    assert (batch.end, sum(each.successful for each in batch.sums)) == (3 * RECORD.size, 2)
    spool.close()


def test_a_living_process_keeps_its_spool_and_a_dead_one_leaves_it(data_dir: Path) -> None:
    writing = """
import sys, time, uuid, pathlib
from api.usage import Spools
spools = Spools(pathlib.Path(sys.argv[1]))
for _ in range(5):
    spools.count(uuid.uuid4(), 200, 0.1)
print("written", flush=True)
time.sleep(60)
"""
    folder = data_dir / "usage"
    command = [sys.executable, "-c", writing, str(folder)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        spools = Spools(folder)
        spools.take_over()
        assert spools.rolled_over == []
        process.kill()
    spools.take_over()
    (left,) = spools.rolled_over
    assert left.waiting_bytes == 5 * RECORD.size
    rival = Spools(folder)
    rival.take_over()
    assert rival.rolled_over == [], "one process only"
    spools.close()
    rival.close()


def test_a_full_disk_is_a_clear_refusal_and_leaves_no_half_record(
    spools: Spools, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spools.count(uuid4(), 200, 0.1)
    (spool,) = spools.all
    write = os.pwrite

    def nearly_full(file: int, data: bytes, offset: int) -> int:
        return write(file, data[:7], offset)

    for disk in (full, nearly_full, full):
        monkeypatch.setattr(os, "pwrite", disk)
        with pytest.raises(Refusal) as refused:
            spools.count(uuid4(), 200, 0.1)
        assert (refused.value.status, refused.value.message) == (503, "Usage cannot be recorded")
        assert spools.fault is not None
        assert spool.path.stat().st_size == RECORD.size
    monkeypatch.undo()
    spools.count(uuid4(), 200, 0.1)
    assert spools.fault is None
    assert spool.path.stat().st_size == 2 * RECORD.size
    told = capsys.readouterr().out
    assert told.count("usage.not_recorded") == 1
    assert told.count("usage.recorded_again") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_device_without_space_is_noticed() -> None:
    spool = Spool(Path("/dev/full"), os.open("/dev/full", os.O_RDWR))
    with pytest.raises(OSError, match="No space left"):
        spool.append(bytes(RECORD.size))
    spool.close()


def test_spools_roll_over_and_are_bounded(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "ROLL_OVER_BYTES", 10 * RECORD.size)
    monkeypatch.setattr(usage, "MOST_WAITING_BYTES", 30 * RECORD.size)
    spools = Spools(data_dir / "usage")
    for _ in range(30):
        spools.count(uuid4(), 200, 0.1)
    assert [spool.size_bytes // RECORD.size for spool in spools.all] == [10, 10, 10]
    with pytest.raises(Refusal):
        spools.count(uuid4(), 200, 0.1)
    assert spools.fault is not None
    assert "wait for the usage aggregator" in spools.fault
    first = spools.all[0]
    first.added_bytes = first.size_bytes
    spools.drop(first)
    assert not first.path.exists()
    spools.count(uuid4(), 200, 0.1)
    spools.close()


async def test_a_request_that_cannot_be_counted_is_not_answered(
    api: Client, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await api.get("/ready")).status in {200, 503}
    monkeypatch.setattr(os, "pwrite", full)
    reply = await api.get(CHAIN_PATH, key)
    assert (reply.status, reply.error) == (503, "Usage cannot be recorded")
    monkeypatch.undo()
    assert (await api.get(CHAIN_PATH, key)).error == "Network not available"


# The aggregator's commit ----------------------------------------------------------------------------------------------


def batch(credential_id: UUID, offset: int, end: int, spool: str = "s", **sums: int) -> Batch:
    """Some requests of one credential."""
    used = Sum(credential_id.hex, 29_000_000, **({"successful": 1} | sums))
    return Batch(spool, offset, end, [used])


async def test_a_batch_is_added_once_however_often_it_comes(db: asyncpg.Connection, credential_id: UUID) -> None:
    first, second = batch(credential_id, 0, 32), batch(credential_id, 32, 64, failed=2, successful=0)
    assert await worker.add(db, first)
    assert not await worker.add(db, first)
    assert await worker.add(db, second)
    for stale in (first, second, first):
        assert not await worker.add(db, stale)
    assert await counted(db) == (1, 2)


async def test_a_batch_never_comes_before_the_one_before_it(db: asyncpg.Connection, credential_id: UUID) -> None:
    assert not await worker.add(db, batch(credential_id, 32, 64))
    assert await worker.add(db, batch(credential_id, 0, 32))
    assert not await worker.add(db, batch(credential_id, 64, 96))
    assert await worker.add(db, batch(credential_id, 32, 64))
    assert await counted(db) == (2, 0)


async def test_of_two_batches_that_begin_alike_one_is_added(db: asyncpg.Connection, credential_id: UUID) -> None:
    """A process that died after queueing 0 to 32 is taken over by one that queues 0 to 64."""
    longer, shorter = batch(credential_id, 0, 64, successful=2), batch(credential_id, 0, 32)
    assert await worker.add(db, shorter)
    assert not await worker.add(db, longer)
    assert await worker.add(db, batch(credential_id, 32, 64))
    assert await counted(db) == (2, 0)


async def test_the_same_batch_at_the_same_time_is_added_once(
    db: asyncpg.Connection, credential_id: UUID, database_url: str
) -> None:
    async with await database.create_pool(database_url, None, most=8) as pool:

        async def add(each: Batch) -> bool:
            async with pool.acquire() as connection:
                return await worker.add(connection, each)

        for round_ in range(20):
            same = [batch(credential_id, 32 * round_, 32 * round_ + 32)] * 4
            others = [batch(credential_id, 0, 32, spool=f"{round_}-{number}") for number in range(4)]
            added = await asyncio.gather(*(add(each) for each in same + others))
            assert (sum(added[:4]), sum(added[4:])) == (1, 4)
    assert await counted(db) == (100, 0)


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
    async with await database.create_pool(database_url, None, most=8) as pool:

        async def add(number: int) -> bool:
            order = ids if number % 2 else ids[::-1]
            sums = [Sum(each.hex, 29_000_000 + number % 3, 1, 0, 5, number) for each in order]
            async with pool.acquire() as connection:
                return await worker.add(connection, Batch(str(number), 0, 32, sums))

        assert all(await asyncio.gather(*(add(number) for number in range(24))))
    assert await counted(db) == (24 * len(ids), 0)


async def test_an_unknown_credential_is_left_out(db: asyncpg.Connection, credential_id: UUID) -> None:
    mixed = Batch("s", 0, 64, [Sum(uuid4().hex, 29_000_000, 5), Sum(credential_id.hex, 29_000_000, 1)])
    assert await worker.add(db, mixed)
    assert await counted(db) == (1, 0)


async def test_the_last_use_only_moves_forward(db: asyncpg.Connection, credential_id: UUID) -> None:
    for offset, last_us in ((0, 2_000_000), (32, 1_000_000), (64, 3_500_000)):
        assert await worker.add(db, batch(credential_id, offset, offset + 32, last_us=last_us))
    last = await db.fetchval("SELECT last_used_at FROM partner.credential WHERE id = $1", credential_id)
    assert last == datetime.fromtimestamp(3.5, UTC)


async def test_names_are_forgotten_only_long_after_their_spool(
    db: asyncpg.Connection, database_url: str, redis_url: str, data_dir: Path
) -> None:
    await db.execute(
        "INSERT INTO partner.usage_batch (spool, next_offset, closed_at) VALUES"
        " ('open', 32, NULL), ('recent', 32, now() - interval '29 days'), ('old', 32, now() - interval '31 days')"
    )
    assert batches.LONGEST_QUEUED_S < 29 * 86_400, "no message may outlive its name"
    (data_dir / "usage").mkdir()
    (data_dir / "usage" / "left.spool").touch()
    pool = await database.create_pool(database_url, None, most=2)
    async with pool, batches.spooling(data_dir, redis_url, pool):
        await asyncio.sleep(1)
    assert [row["spool"] for row in await db.fetch("SELECT spool FROM partner.usage_batch ORDER BY 1")] == [
        "open",
        "recent",
    ]


# All of it ------------------------------------------------------------------------------------------------------------


async def test_every_authenticated_request_counts_within_five_seconds(
    api: Client, partner: Partner, db: asyncpg.Connection, aggregator: Callable[[], Any]
) -> None:
    """Contract: whatever its status, 429 included; 401 and 403 do not count."""
    aggregator()
    credential, key = await partner.issued(await partner.user(), rate_limit_per_minute=3)
    path = "/v1/tx/history/nonsense"
    statuses = [(await api.get(each, key)).status for each in (CHAIN_PATH, path, CHAIN_PATH, CHAIN_PATH, path)]
    assert statuses == [NOTHING_INDEXED, 400, NOTHING_INDEXED, 429, 429]
    for token in (None, "nonsense"):
        assert (await api.get(CHAIN_PATH, token)).status in {401, 403}
    await until_counted(db, (0, 5), within_s=30)  # the first time, the aggregator has to start
    last = datetime.now(UTC)
    await db.execute("INSERT INTO chain_preview.tip VALUES (true, 1, 1, $1, 0, 0, 'live', 0)", bytes(32))
    _, other = await partner.issued(await partner.user())
    nobody = "addr_test1vrm9x2zsux7va6w892g38tvchnzahvcd9tykqf3ygnmwtaqyfg52x"
    assert (await api.get(f"/v1/tx/history/{nobody}", other)).status == 200
    await until_counted(db, (1, 5), VISIBLE_WITHIN_S)
    detail = await partner.data("GET", f"/usage/{credential['id']}")
    assert (detail["summary"]["total_requests"], detail["summary"]["failed_requests"]) == (5, 5)
    shown = await partner.data("GET", f"/credentials/{credential['id']}")
    assert datetime.fromisoformat(shown["last_used_at"]) <= last
    (used, unused) = (await partner.get("/users/usage/summary")).body["data"]
    assert used["total_requests"] == 5
    assert used["avg_response_time_ms"] > 0
    assert unused["successful_requests"] == 1


async def test_the_aggregator_ends_in_good_order_and_waits_for_its_servers(
    environment: dict[str, str], aggregator: Callable[[], subprocess.Popen[bytes]]
) -> None:
    process = aggregator()
    await asyncio.sleep(3)
    process.terminate()
    assert await asyncio.to_thread(process.wait, 10) == 0
    environment["DATABASE_URL"] = "postgresql://postgres@127.0.0.1:1/nowhere"
    waiting = aggregator()
    await asyncio.sleep(3)
    assert waiting.poll() is None
    waiting.terminate()
    assert await asyncio.to_thread(waiting.wait, 10) == 0


def test_messages_are_json_and_small(spools: Spools) -> None:
    credential_id = uuid4()
    for _ in range(1_000):
        spools.count(credential_id, 200, 0.1)
    message = batches._message(batch_of(spools.all[0]))
    assert len(message.encode()) < 2_000
    assert msgspec.convert(message.args[0], Batch) == batch_of(spools.all[0])
