"""Shared by the tests of usage: counts in the table, gauges, a full disk."""

import asyncio
import errno
import os
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import psutil

from api.routes import ROUTES
from api.usage.queue import BreakdownSum, UsageBatch
from api.usage.spool import Spools
from tests.patience import PATIENCE_S, OwnTime

CHECKOUT = Path(__file__).parents[2]
VISIBLE_WITHIN_S = 5.0
ENDPOINTS = {route.number: route.name for route in ROUTES}
(HISTORY,) = (route for route in ROUTES if route.operation == "list_transaction_history")


async def counted(db: asyncpg.Connection) -> tuple[int, int]:
    """Successful and failed requests in the table."""
    by_minute, by_day = await db.fetch(
        "SELECT coalesce(sum(successful), 0), coalesce(sum(failed), 0) FROM partner.usage"
        " UNION ALL SELECT coalesce(sum(successful), 0), coalesce(sum(failed), 0) FROM partner.usage_day"
    )
    assert by_minute == by_day
    return int(by_minute[0]), int(by_minute[1])


async def until_counted(db: asyncpg.Connection, expected: tuple[int, int], within_s: float = PATIENCE_S) -> None:
    """Wait until the table has these counts."""
    took = OwnTime(*(child.pid for child in psutil.Process().children()))  # one of them is the aggregator
    while await counted(db) != expected:
        assert took.seconds < within_s, (await counted(db), expected)
        await asyncio.sleep(0.05)


def mine_of(batch: UsageBatch, credential_id: UUID) -> list[BreakdownSum]:
    """The parts of a batch that belong to one credential."""
    return [part for part in batch.breakdown if part.credential_id == credential_id.hex]


def figure(text: bytes, name: str) -> float | None:
    """One gauge of /metrics."""
    lines = [line for line in text.decode().splitlines() if line.startswith(f"{name} ")]
    return float(lines[0].split()[1]) if lines else None


def full(_file: int, _data: bytes, _offset: int) -> int:
    """A replacement of os.pwrite: the disk is full."""
    raise OSError(errno.ENOSPC, "No space left on device")


def add_strangers(folder: Path) -> list[Path]:
    """Add files and other objects with the names of spools to a folder of spools; returns them."""
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
