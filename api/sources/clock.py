"""The time by Postgres' clock. The clock of a host may be wrong by seconds or years, and what it dates is on a bill.

It is read with every look at the usage tables. In between, and while Postgres is away, time goes on by a clock of the
kernel that nobody can set.
"""

import time
from datetime import UTC, datetime

import asyncpg
import structlog
from prometheus_client import Gauge

from shared import sql

log = structlog.get_logger()

MAX_DIFFERENCE_S = 5.0
"""By how much this host's clock may differ from Postgres' before that is logged and reported by `/ready`."""

_READ_WITHIN_US = 1_000_000  # a slower reading is too uncertain
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the former also counts while a machine is suspended

_ahead = Gauge(
    "ledgerline_host_clock_ahead_seconds",
    "How far the clock of this host is ahead of the database's.",
    multiprocess_mode="livemostrecent",
)


_reading = sql.beside(__file__).values("reading", int)


class _Clock:
    """What has to be added to the steady clock. Before the first reading it is the time of this host."""

    def __init__(self) -> None:
        self.offset_us = time.time_ns() // 1000 - _steady_us()
        self.differs = False


async def read(db: asyncpg.Connection) -> None:
    """Read Postgres' clock, and tell if this host's differs."""
    began_us = _steady_us()
    reading_us = await _reading.only(db)
    took_us = _steady_us() - began_us
    if took_us <= _READ_WITHIN_US:
        _clock.offset_us = reading_us - began_us - took_us // 2
    ahead = ahead_s()
    _ahead.set(ahead)
    if differs() != _clock.differs:
        _clock.differs = differs()
        (log.error if _clock.differs else log.info)("clock.differs", ahead_s=round(ahead, 3), of="the database's")


def now_us() -> int:
    """Microseconds since 1970."""
    return _steady_us() + _clock.offset_us


def now() -> datetime:
    """The same as a time."""
    return datetime.fromtimestamp(now_us() / 1e6, UTC)


def ahead_s() -> float:
    """How far the clock of this host is ahead, negative if it is behind."""
    return (time.time_ns() // 1000 - now_us()) / 1e6


def differs() -> bool:
    """Whether the clock of this host is wrong."""
    return abs(ahead_s()) > MAX_DIFFERENCE_S


def _steady_us() -> int:
    return time.clock_gettime_ns(_STEADY) // 1000


_clock = _Clock()
