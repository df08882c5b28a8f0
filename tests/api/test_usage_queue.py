"""The task that queues spooled usage: it survives errors, and its messages are small."""

import asyncio
import errno
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import msgspec
import pytest
from prometheus_client import values

from api import processes
from api.usage import queue
from api.usage.queue import UsageBatch, batch_of
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
    monkeypatch.setattr("api.health.USAGE_UNREACHABLE_S", 1.0)
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
    pool = await database.create_pool(database_url, None, most=2)
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

    monkeypatch.setattr("api.processes._run_one", run_one)
    monkeypatch.setattr("api.processes._PAUSE_S", 0.01)
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
    monkeypatch.setattr("api.retention._FIRST_WITHIN_S", 0.0)
    async with db.transaction():
        await db.execute("LOCK TABLE partner.usage_kept")
        async with serving(environment) as api:
            async with asyncio.timeout(PATIENCE_S):
                while not await db.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                    await asyncio.sleep(0.02)
            await api.get(CHAIN_PATH, key)
            took = OwnTime()
            while figure((await api.get("/metrics")).body, "ledgerline_usage_queued") != 1:
                assert took.seconds < VISIBLE_WITHIN_S
                await asyncio.sleep(0.1)


async def test_a_background_task_that_fails_is_named_by_ready_and_metrics(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.app._LOOK_EVERY_S", "the pause fails")
    async with asyncio.timeout(PATIENCE_S):
        while "the background task deadlines fails" not in (await api.get("/ready")).error:
            await asyncio.sleep(0.1)
    assert b'ledgerline_task_failures_total{task="deadlines"}' in (await api.get("/metrics")).body


def test_messages_are_json_and_small(spools: Spools) -> None:
    credential_id = uuid4()
    for _ in range(1_000):
        spools.count(credential_id, HISTORY.number, 200, 0.1)
    spools.all[0].sync()
    message = queue._message(batch_of(spools.all[0], ENDPOINTS))
    assert len(message.encode()) < 2_000
    assert msgspec.convert(message.args[0], UsageBatch) == batch_of(spools.all[0], ENDPOINTS)
