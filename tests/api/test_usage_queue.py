"""The task that queues spooled usage: it survives errors, and its messages are small."""

import asyncio
import errno
import time
from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
import redis
from prometheus_client import values

from api.commands import processes
from api.usage import queue
from api.usage.spool import RECORD, Spools
from shared import database, settings
from tests.api.client import Client, serving
from tests.api.counting import (
    ENDPOINTS,
    HISTORY,
    VISIBLE_WITHIN_S,
    figure,
    until_counted,
)
from tests.api.locks import until_blocked
from tests.api.partners import CHAIN_PATH
from tests.patience import PATIENCE_S, OwnTime


async def test_queueing_survives_any_error_and_logs_it(
    api: Client,
    key: str,
    db: asyncpg.Connection,
    aggregator: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("api.operate.health.USAGE_UNREACHABLE_S", 1.0)
    aggregator()

    async def broken(*_: object) -> None:
        raise KeyError("a fault that nobody has listed")

    with monkeypatch.context() as patched:
        patched.setattr("api.usage.queue._Queueing._compare", broken)
        await api.get(CHAIN_PATH, key)
        before = figure((await api.get("/metrics")).body, "ledgerline_usage_lag_seconds")
        assert before is not None
        async with asyncio.timeout(PATIENCE_S):  # the lag grows without the task
            lag: float | None = before
            while lag is None or lag < before + 1.5:
                await asyncio.sleep(0.1)
                metrics = (await api.get("/metrics")).body
                lag = figure(metrics, "ledgerline_usage_lag_seconds")
        assert figure(metrics, "ledgerline_usage_waiting_bytes") == RECORD.size
        assert figure(metrics, "ledgerline_usage_queued") == 0
        assert "usage waits on disk" in (await api.get("/ready")).error
        assert capsys.readouterr().out.count("waiting  ") == 1, "the same outage is not told with every look"
    await until_counted(db, (0, 1))
    assert "usage waits on disk" not in (await api.get("/ready")).error
    assert figure((await api.get("/metrics")).body, "ledgerline_usage_lag_seconds") == 0
    assert "reached" in capsys.readouterr().out


async def test_a_fault_at_the_end_leaves_the_spools_to_others(
    database_url: str, redis_url: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise KeyError("a fault that nobody has listed")

    monkeypatch.setattr("api.usage.queue._Queueing._compare", broken)
    monkeypatch.setattr("api.usage.queue._LAST_LOOKS_S", 0.5)
    pool = await database.create_pool(database_url, None, max_size=2)
    async with pool, queue.spooling(data_dir, redis_url, pool, ENDPOINTS) as spools:
        spools.count(uuid4(), HISTORY.number, 200, 0.1)
    rival = Spools(data_dir / "usage")
    rival.take_over()
    assert [spool.waiting_bytes for spool in rival.former] == [RECORD.size]
    rival.close()


async def test_a_worker_that_cannot_start_does_not_end_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], environment: dict[str, str]
) -> None:
    stop, starts, finished = asyncio.Event(), count(1), []

    async def run_one(*_: object) -> None:
        number = next(starts)
        if number == 1:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        if number == 3:
            stop.set()
        await stop.wait()
        finished.append(number)

    monkeypatch.setattr("api.commands.processes._run_one", run_one)
    monkeypatch.setattr("api.commands.processes._PAUSE_S", 0.01)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    monkeypatch.setattr("prometheus_client.values.ValueClass", values.ValueClass)
    async with asyncio.timeout(PATIENCE_S):
        await processes.supervise(2, settings.read(environment), None, None, stop)  # type: ignore[arg-type] # handed on
    assert sorted(finished) == [2, 3]
    assert "api_process.failed" in capsys.readouterr().out


@pytest.mark.usefixtures("no_aggregator")
async def test_usage_does_not_wait_for_a_slow_pruning(
    environment: dict[str, str], key: str, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.sources.retention._FIRST_WITHIN_S", 0.0)
    async with db.transaction():
        await db.execute("LOCK TABLE partner.usage_kept")
        async with serving(environment) as api:
            await until_blocked(db)
            await api.get(CHAIN_PATH, key)
            took = OwnTime()
            while figure((await api.get("/metrics")).body, "ledgerline_usage_queued") != 1:
                assert took.seconds < VISIBLE_WITHIN_S
                await asyncio.sleep(0.1)


async def test_a_background_task_that_fails_is_named_by_ready_and_metrics(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.server.deadlines._LOOK_EVERY_S", "the pause fails")
    async with asyncio.timeout(PATIENCE_S):
        while "the background task deadlines fails" not in (await api.get("/ready")).error:
            await asyncio.sleep(0.1)
    assert b'ledgerline_task_failures_total{task="deadlines"}' in (await api.get("/metrics")).body


def spools_of(data_dir: Path, count: int, credentials: int = 1) -> list[Spools]:
    """Spools of processes that live, each with a request of some credentials."""
    made = [Spools(data_dir / "usage") for _ in range(count)]
    for spools in made:
        for _ in range(credentials):
            spools.count(uuid4(), HISTORY.number, 200, 0.1)
    return made


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[asyncpg.Pool]:
    """Connections of the processes in a test."""
    async with await database.create_pool(database_url, None, max_size=2) as opened:
        yield opened


async def test_a_batch_that_waits_is_never_repeated(
    redis_url: str, data_dir: Path, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "_QUEUE_AGAIN_S", 0.0)
    (spools,) = spools_of(data_dir, 1)
    valkey_queue = queue.Queue(redis_url)
    queueing = queue._Queueing(spools, pool, valkey_queue, ENDPOINTS)
    await queueing.look()
    first = valkey_queue.unacknowledged()
    assert first.messages == 1
    for _ in range(5):
        spools.count(uuid4(), HISTORY.number, 200, 0.1)
        await queueing.look()
    assert valkey_queue.unacknowledged() == first
    spools.close()
    after = Spools(data_dir / "usage")  # of the process that takes the spool over
    successor = queue._Queueing(after, pool, valkey_queue, ENDPOINTS)
    await successor.look()
    assert valkey_queue.unacknowledged() == first
    client: Any = redis.Redis.from_url(redis_url)
    for number in range(3):  # an aggregator takes it, and dies
        (taken,) = client.lrange("ledgerline:queue:usage", 0, -1)
        assert taken.decode().endswith(f":0:{number}")
        client.delete("ledgerline:queue:usage")
        await successor.look()
        await successor.look()
    assert valkey_queue.unacknowledged().messages == 4
    client.flushdb()
    await successor.look()
    assert valkey_queue.unacknowledged().messages == 1, "what was lost is repeated"
    after.close()


async def test_what_waits_in_valkey_is_bounded_by_bytes(
    redis_url: str, data_dir: Path, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "MAX_QUEUED_BYTES", 50_000)
    made, valkey_queue = spools_of(data_dir, 12, credentials=40), queue.Queue(redis_url)
    for _ in range(2):
        for spools in made:
            await queue._Queueing(spools, pool, valkey_queue, ENDPOINTS).look()
        found = valkey_queue.unacknowledged()
        assert 3 <= found.messages < len(made)
        assert found.size_bytes < 50_000 + 20_000, "the bound, and one message"
    for spools in made:
        assert spools.all[0].waiting_bytes == 40 * RECORD.size, "the rest waits on disk"
        spools.close()


@pytest.mark.usefixtures("no_aggregator")
async def test_usage_is_dated_by_the_database_whatever_the_clock_of_the_host(
    environment: dict[str, str],
    key: str,
    db: asyncpg.Connection,
    aggregator: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    aggregator()
    right_ns = time.time_ns
    for number, ahead_s in enumerate((40 * 86_400, -47 * 365 * 86_400), 1):
        monkeypatch.setattr("time.time_ns", lambda ahead_s=ahead_s: right_ns() + ahead_s * 10**9)
        monkeypatch.setattr("time.time", lambda: time.time_ns() / 1e9)
        async with serving(environment) as api:
            await api.get(CHAIN_PATH, key)
            await until_counted(db, (0, number))
            assert "the clock of this host is " in (await api.get("/ready")).error
            metrics = (await api.get("/metrics")).body
        assert figure(metrics, "ledgerline_usage_lag_seconds") == 0
        assert figure(metrics, "ledgerline_host_clock_ahead_seconds") == pytest.approx(ahead_s, abs=1)
    within = "SELECT bool_and(minute > now() - interval '10 minutes' AND minute <= now()) FROM partner.usage"
    assert await db.fetchval(within)
    last_use = "SELECT now() - max(last_used_at) < interval '10 minutes' FROM partner.credential"
    assert await db.fetchval(last_use)
