"""Cache one database read for all callers, so that open endpoints have a fixed cost."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any


class SharedReading:
    """The result of a reading, kept for `kept_s` seconds. Callers that come during a reading wait for the same one."""

    def __init__(self, kept_s: float) -> None:
        self._kept_s = kept_s
        self._reading: asyncio.Task[Any] | None = None
        self._ended_at = 0.0

    async def get(self, read: Callable[[], Awaitable[Any]]) -> Any:
        """The kept result, or a new one. An error is kept like a result."""
        reading = self._reading
        if reading is None or (reading.done() and time.monotonic() - self._ended_at > self._kept_s):
            reading = self._reading = asyncio.ensure_future(read())
            reading.add_done_callback(self._end)
        return await asyncio.shield(reading)  # another caller may wait for it when this one is gone

    def _end(self, reading: asyncio.Task[Any]) -> None:
        self._ended_at = time.monotonic()
        if not reading.cancelled():
            reading.exception()  # seen, even if no caller is left
