"""Data for open endpoints, read at most once at a time and once a second, regardless of how many callers request it.

Anyone may call these endpoints, so their cost must not grow with the number of requests.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import asyncpg
import structlog

from shared.lifecycle import UNREACHABLE, consume_error

log = structlog.get_logger()
Found = TypeVar("Found")


class SharedReadings:
    """The results of readings, by name, each kept for `kept_s` seconds.

    Callers that arrive during a reading wait for the same one.
    """

    def __init__(self, kept_s: float) -> None:
        self._kept_s = kept_s
        self._readings: dict[str, asyncio.Task[Any]] = {}
        self._ended_at: dict[str, float] = {}

    async def get(self, name: str, read: Callable[[], Awaitable[Found]]) -> Found:
        """The kept result of the reading with this name, or a new one. An error is kept like a result."""
        reading = self._readings.get(name)
        if reading is None or (reading.done() and time.monotonic() - self._ended_at[name] > self._kept_s):
            reading = self._readings[name] = asyncio.create_task(self._read(name, read))
            reading.add_done_callback(consume_error)
        result: Found = await asyncio.shield(reading)  # another caller may wait for it when this one is gone
        return result

    async def _read(self, name: str, read: Callable[[], Awaitable[Found]]) -> Found:
        try:
            return await read()
        finally:
            self._ended_at[name] = time.monotonic()


async def in_time(work: Coroutine[Any, Any, Found], within_s: float, otherwise: str) -> Found | None:
    """The result of `work`; None, and the log line `otherwise`, if a server does not answer in time."""
    working = asyncio.create_task(work)
    working.add_done_callback(consume_error)
    try:
        async with asyncio.timeout(within_s):
            return await asyncio.shield(working)
    except (*UNREACHABLE, asyncpg.InterfaceError, TimeoutError) as cause:
        working.cancel()  # NOTE: its end is not awaited: a frozen server may delay that, too
        log.warning(otherwise, cause=f"{type(cause).__name__}: {cause}")
        return None
