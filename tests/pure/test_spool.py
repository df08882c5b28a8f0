"""Spools of usage on disk: what is torn, foreign or full loses nothing else."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from api.errors import Refusal
from api.sources import clock
from api.usage import disk, queue
from api.usage.queue import UsageBatch, batch_of
from api.usage.spool import HEADER_BYTES, RECORD, Spool, Spools
from tests.api.counting import (
    CHECKOUT,
    ENDPOINTS,
    HISTORY,
    add_strangers,
    full,
    mine_of,
)


@pytest.fixture
def strangers(data_dir: Path) -> list[Path]:
    return add_strangers(data_dir / "usage")


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


def test_spools_roll_over_and_are_bounded(data_dir: Path) -> None:
    spools = Spools(data_dir / "usage", roll_over_bytes=10 * RECORD.size, max_waiting_bytes=30 * RECORD.size)
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


def test_zeros_are_not_records(data_dir: Path) -> None:
    path = data_dir / f"{uuid4().hex}.spool"
    path.write_bytes(bytes(HEADER_BYTES + 10 * RECORD.size))
    spool = Spool.take_over(path)
    assert spool is not None, "its header may have been lost with its records"
    spool.sync()
    assert batch_of(spool, ENDPOINTS) == UsageBatch(spool.name, 0, 10 * RECORD.size, [], [])
    spool.close()


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
