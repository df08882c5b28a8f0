"""Spools: records, full disks, truncated and foreign files, failovers. docs/http-api.md, "Usage".

tests/pure/test_power_loss.py covers disk failures at any time.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from api.usage import queue
from api.usage.spool import HEADER_BYTES, RECORD, Spools
from shared import database, schema
from tests.api.client import Client
from tests.api.counting import (
    ENDPOINTS,
    HISTORY,
    VISIBLE_WITHIN_S,
    add_strangers,
    figure,
    full,
    until_counted,
)
from tests.api.partners import CHAIN_PATH, NOTHING_INDEXED
from tests.patience import PATIENCE_S


async def test_a_request_that_cannot_be_counted_is_not_answered(
    api: Client, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await api.get("/ready")).status in {200, 503}
    monkeypatch.setattr(os, "pwrite", full)
    reply = await api.get(CHAIN_PATH, key)
    assert (reply.status, reply.error) == (503, "Usage cannot be recorded")
    monkeypatch.undo()
    assert (await api.get(CHAIN_PATH, key)).error == "Network not available"


@pytest.fixture
def strangers(data_dir: Path) -> list[Path]:
    return add_strangers(data_dir / "usage")


async def test_a_foreign_file_does_not_stop_other_spools(
    api: Client,
    key: str,
    db: asyncpg.Connection,
    strangers: list[Path],
    data_dir: Path,
    aggregator: Callable[[], Any],
) -> None:
    shorter = uuid4().hex
    await db.execute("INSERT INTO partner.usage_batch (spool, next_offset) VALUES ($1, 64)", shorter)
    (data_dir / "usage" / f"{shorter}.spool").touch()
    aggregator()
    assert (await api.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
    await until_counted(db, (0, 1))
    assert "the usage folder has unusable files (6)" in (await api.get("/ready")).error
    assert figure((await api.get("/metrics")).body, "ledgerline_usage_unusable_files") == len(strangers) + 1


@pytest.mark.parametrize("kept_bytes", [0, HEADER_BYTES + RECORD.size])
async def test_requests_after_a_spool_was_truncated_below_its_mark_count(
    api: Client, key: str, db: asyncpg.Connection, data_dir: Path, aggregator: Callable[[], Any], kept_bytes: int
) -> None:
    aggregator()
    for _ in range(3):
        await api.get(CHAIN_PATH, key)
    await until_counted(db, (0, 3))
    (path,) = (data_dir / "usage").glob("*.spool")
    os.truncate(path, kept_bytes)
    for _ in range(4):
        await api.get(CHAIN_PATH, key)
    await until_counted(db, (0, 7), VISIBLE_WITHIN_S)


async def test_usage_lost_in_a_failover_is_added_again(
    api: Client, key: str, db: asyncpg.Connection, data_dir: Path, aggregator: Callable[[], Any]
) -> None:
    aggregator()
    for _ in range(3):
        await api.get(CHAIN_PATH, key)
    await until_counted(db, (0, 3))
    (path,) = (data_dir / "usage").glob("*.spool")
    for lost in ("UPDATE partner.usage_batch SET next_offset = 0", "DELETE FROM partner.usage_batch"):
        await db.execute(f"TRUNCATE partner.usage, partner.usage_day; {lost}")
        await until_counted(db, (0, 3))  # a batch in progress is queued again after 10 s
    assert path.exists()


async def test_a_spool_is_deleted_when_no_failover_can_lose_its_commit(
    db: asyncpg.Connection,
    database_url: str,
    redis_url: str,
    data_dir: Path,
    no_aggregator: None,  # noqa: ARG001
) -> None:
    made = [Spools(data_dir / "usage") for _ in range(3)]
    for spools in made:
        spools.count(uuid4(), HISTORY.number, 200, 0.1)
    fresh, safe, unsaid = [spools.all[0].path for spools in made]
    for spools in made:
        spools.close()
    await db.execute(
        "INSERT INTO partner.usage_batch (spool, next_offset, added_at) VALUES"
        " ($1, $3, now() - interval '9 minutes'), ($2, $3, now() - interval '11 minutes')",
        fresh.stem,
        safe.stem,
        RECORD.size,
    )
    pool = await database.create_pool(database_url, None, max_size=2)
    async with pool, queue.spooling(data_dir, redis_url, pool, ENDPOINTS):
        async with asyncio.timeout(PATIENCE_S):
            while safe.exists():
                await asyncio.sleep(0.05)
        assert [path.exists() for path in (fresh, safe, unsaid)] == [True, False, True]
    assert [path.exists() for path in (fresh, unsaid)] == [True, True]


async def test_a_spool_stays_while_the_schema_is_newer(
    db: asyncpg.Connection,
    database_url: str,
    redis_url: str,
    data_dir: Path,
    no_aggregator: None,  # noqa: ARG001
    capsys: pytest.CaptureFixture[str],
) -> None:
    spools = Spools(data_dir / "usage")
    spools.count(uuid4(), HISTORY.number, 200, 0.1)
    path = spools.all[0].path
    spools.close()
    await db.execute(
        "INSERT INTO partner.usage_batch (spool, next_offset, added_at) VALUES ($1, $2, now() - interval '11 minutes')",
        path.stem,
        RECORD.size,
    )
    await db.execute("UPDATE partner.schema_version SET version = 9999")
    pool = await database.create_pool(database_url, None, max_size=2)
    async with pool, queue.spooling(data_dir, redis_url, pool, ENDPOINTS), asyncio.timeout(PATIENCE_S):
        said = ""
        while "WrongSchema: the database has schema version 9999" not in said:
            said += capsys.readouterr().out
            await asyncio.sleep(0.05)
        assert path.exists()
        await db.execute("UPDATE partner.schema_version SET version = $1", schema.VERSION)
        while path.exists():
            await asyncio.sleep(0.05)
    assert await db.fetchval("SELECT count(*) FROM partner.usage_batch") == 1, "the mark stays"
