"""Spools: records, full disks, truncated and foreign files, failovers. docs/http-api.md, "Usage".

tests/pure/test_power_loss.py covers disk failures at any time.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from api.errors import Refusal
from api.sources import clock
from api.usage import disk, queue, spool
from api.usage.queue import UsageBatch, batch_of
from api.usage.spool import HEADER_BYTES, RECORD, Spool, Spools
from shared import database, schema
from tests.api.client import Client
from tests.api.counting import (
    CHECKOUT,
    ENDPOINTS,
    HISTORY,
    VISIBLE_WITHIN_S,
    figure,
    full,
    mine_of,
    until_counted,
)
from tests.api.partners import CHAIN_PATH, NOTHING_INDEXED
from tests.patience import PATIENCE_S


def test_a_batch_adds_up_by_credential_and_minute(spools: Spools) -> None:
    one, other = uuid4(), uuid4()
    for credential_id, status, took_s in (
        (one, 200, 0.001),
        (one, 302, 0.002),
        (one, 404, 0.003),
        (other, 429, 0.5),
        (one, 503, 1e9),
    ):
        spools.count(credential_id, HISTORY.number, status, took_s)
    before_last = clock.now_us()
    spools.count(one, HISTORY.number, 200, 0.004)
    (spool,) = spools.all
    assert batch_of(spool, ENDPOINTS).end == 0, "what is not synced is not named"
    spool.sync()
    batch = batch_of(spool, ENDPOINTS)
    assert (batch.spool, batch.offset, batch.end) == (spool.name, 0, 6 * RECORD.size)
    sums = {(each.credential_id, each.minute): each for each in batch.sums}
    assert len(sums) in {2, 3}, "a new minute may begin"
    mine = [each for each in batch.sums if each.credential_id == one.hex]
    assert (sum(each.successful for each in mine), sum(each.failed for each in mine)) == (3, 2)
    assert [each.limited for each in batch.sums if each.credential_id == other.hex] == [1]
    assert not any(each.limited for each in mine)
    assert sum(each.took_us for each in mine) == 10_000 + 2**32 - 1
    assert before_last <= max(each.last_us for each in mine) <= clock.now_us()
    assert {(each.endpoint, each.status_class) for each in mine_of(batch, one)} == {
        (HISTORY.name, 2),
        (HISTORY.name, 3),
        (HISTORY.name, 4),
        (HISTORY.name, 5),
    }
    assert sum(each.took_us for each in mine_of(batch, one)) == 10_000 + 2**32 - 1
    assert {each.hour for each in batch.breakdown} == {each.minute // 60 for each in batch.sums}
    assert {each.endpoint for each in batch_of(spool, {}).breakdown} == {queue.UNKNOWN_ENDPOINT}
    assert batch_of(spool, ENDPOINTS) == batch, "same bytes, same name, however often"


def test_endpoints_of_another_version_are_one_row_of_the_table(spools: Spools) -> None:
    """Two rows with the same key in one statement would make every attempt to add the batch fail."""
    one = uuid4()
    unknown = [number for number in range(1, 5) if number not in ENDPOINTS][:2]
    for endpoint in unknown:
        spools.count(one, endpoint, 200, 0.001)
    (spool,) = spools.all
    spool.sync()
    rows = batch_of(spool, ENDPOINTS).breakdown
    assert sum(row.requests for row in rows) == 2
    assert len({row.hour for row in rows}) == len(rows), "a new hour may begin"


def test_a_torn_or_damaged_record_is_skipped(spools: Spools, data_dir: Path) -> None:
    for _ in range(3):
        spools.count(uuid4(), HISTORY.number, 200, 0.1)
    (path,) = (data_dir / "usage").glob("*.spool")
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES + RECORD.size + 3] ^= 1
    path.unlink()
    path.write_bytes(bytes(data) + b"torn")
    spool = Spool.take_over(path)
    assert spool is not None
    assert spool.size_bytes == 3 * RECORD.size
    spool.sync()
    batch = batch_of(spool, ENDPOINTS)
    assert (batch.end, sum(each.successful for each in batch.sums)) == (3 * RECORD.size, 2)
    spool.close()


def test_a_dead_process_spool_is_taken_over_and_a_living_ones_is_not(data_dir: Path) -> None:
    writing = """
import sys, time, uuid, pathlib
from api.usage.spool import Spools
spools = Spools(pathlib.Path(sys.argv[1]))
for _ in range(5):
    spools.count(uuid.uuid4(), 0, 200, 0.1)
print("written", flush=True)
time.sleep(3600)
"""
    folder = data_dir / "usage"
    command = [sys.executable, "-c", writing, str(folder)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        spools = Spools(folder)
        spools.take_over()
        assert spools.former == []
        process.kill()
    spools.take_over()
    (left,) = spools.former
    assert left.waiting_bytes == 5 * RECORD.size
    rival = Spools(folder)
    rival.take_over()
    assert rival.former == [], "one process only"
    spools.close()
    rival.close()


def test_files_of_processes_that_were_killed_while_they_made_a_spool_are_removed(data_dir: Path) -> None:
    folder = data_dir / "usage"
    folder.mkdir(parents=True)
    left, young, living = (folder / f"{uuid4().hex}.new" for _ in range(3))
    for path in (left, young, living):
        path.touch()
    for path in (left, living):
        os.utime(path, (0, 0))
    file = disk.open_locked(living)
    Spools(folder).close()
    assert set(folder.iterdir()) == {young, living}
    disk.close(file)


def test_a_full_disk_refuses_requests_and_leaves_no_partial_record(
    spools: Spools, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spools.count(uuid4(), HISTORY.number, 200, 0.1)
    (spool,) = spools.all
    write = os.pwrite

    def nearly_full(file: int, data: bytes, offset: int) -> int:
        return write(file, data[:7], offset)

    for failing in (full, nearly_full, full):
        monkeypatch.setattr(os, "pwrite", failing)
        with pytest.raises(Refusal) as refused:
            spools.count(uuid4(), HISTORY.number, 200, 0.1)
        assert (refused.value.status, refused.value.message) == (503, "Usage cannot be recorded")
        assert spools.fault is not None
        assert spool.path.stat().st_size == HEADER_BYTES + RECORD.size
    monkeypatch.undo()
    spools.count(uuid4(), HISTORY.number, 200, 0.1)
    assert spools.fault is None
    assert spool.path.stat().st_size == HEADER_BYTES + 2 * RECORD.size
    told = capsys.readouterr().out
    assert told.count("usage.not_recorded") == 1
    assert told.count("usage.recorded_again") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, as Linux has it")
def test_a_device_without_space_is_noticed() -> None:
    file = os.open("/dev/full", os.O_RDWR)
    with pytest.raises(OSError, match="No space left"):
        disk.write(file, bytes(RECORD.size), 0)
    disk.close(file)


def test_spools_roll_over_and_are_bounded(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "ROLL_OVER_BYTES", 10 * RECORD.size)
    monkeypatch.setattr(spool, "MAX_WAITING_BYTES", 30 * RECORD.size)
    spools = Spools(data_dir / "usage")
    for _ in range(30):
        spools.count(uuid4(), HISTORY.number, 200, 0.1)
    assert [spool.size_bytes // RECORD.size for spool in spools.all] == [10, 10, 10]
    with pytest.raises(Refusal):
        spools.count(uuid4(), HISTORY.number, 200, 0.1)
    assert spools.fault is not None
    assert "wait for the usage aggregator" in spools.fault
    first = spools.all[0]
    first.added_bytes = first.size_bytes
    spools.drop(first)
    assert not first.path.exists()
    spools.count(uuid4(), HISTORY.number, 200, 0.1)
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


def test_zeros_are_not_records(data_dir: Path) -> None:
    path = data_dir / f"{uuid4().hex}.spool"
    path.write_bytes(bytes(HEADER_BYTES + 10 * RECORD.size))
    spool = Spool.take_over(path)
    assert spool is not None, "its header may have been lost with its records"
    spool.sync()
    assert batch_of(spool, ENDPOINTS) == UsageBatch(spool.name, 0, 10 * RECORD.size, [], [])
    spool.close()


@pytest.fixture
def strangers(data_dir: Path) -> list[Path]:
    """Files and other objects with the names of spools."""
    folder = data_dir / "usage"
    folder.mkdir(exist_ok=True)
    present = set(folder.iterdir())
    own, other = (folder / f"{uuid4().hex}.spool" for _ in range(2))
    spools = Spools(folder)
    spools.count(uuid4(), HISTORY.number, 200, 0.1)
    other.write_bytes(spools.all[0].path.read_bytes())  # a copy under another name would count twice
    spools.all[0].path.unlink()
    spools.close()
    own.write_bytes(bytes([7]) * 320)  # records without a header
    (folder / "x.spool").mkdir()
    (folder / f"{uuid4().hex}.spool").symlink_to("/etc/passwd")
    os.mkfifo(folder / f"{uuid4().hex}.spool")
    return [path for path in folder.iterdir() if path not in present]


def test_a_foreign_file_is_reported_once_and_left_alone(
    strangers: list[Path], data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spools = Spools(data_dir / "usage")
    for _ in range(2):
        spools.report_unusable(spools.take_over())
        assert set(spools.unusable) == set(strangers)
        assert spools.former == []
    assert capsys.readouterr().out.count("usage.unusable") == len(strangers) == 5
    (data_dir / "usage" / "x.spool").rmdir()
    spools.report_unusable(spools.take_over())
    assert len(spools.unusable) == 4
    spools.close()


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


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can give files to another account")
def test_a_file_of_another_user_is_left_alone(data_dir: Path) -> None:
    folder = data_dir / "usage"
    folder.mkdir()
    (folder / f"{uuid4().hex}.spool").touch(mode=0o600)
    looking = """
import os, pathlib, sys
from api.usage.spool import Spools
folder = os.open(sys.argv[1], os.O_DIRECTORY)
os.fchown(folder, 65534, 65534)
os.setgid(65534), os.setuid(65534)
os.fchdir(folder)
print(*Spools(pathlib.Path(".")).take_over().values())
"""
    command = [sys.executable, "-c", looking, str(folder)]
    said = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "Permission denied" in said


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


def test_a_truncated_or_removed_spool_is_replaced(spools: Spools) -> None:
    for harm in (lambda path: os.truncate(path, HEADER_BYTES), os.unlink):
        spools.count(uuid4(), HISTORY.number, 200, 0.1)
        harmed = spools.all[-1]
        harm(harmed.path)
        spools.replace_truncated()
        assert spools.all[-2] is harmed
        assert spools.all[-1].is_whole
    spools.replace_truncated()
    assert len(spools.all) == 3


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
