"""The access log: one line for each answer, on standard error like all others. It never contains a key.

As JSON it takes a short cut past structlog, whose line costs twenty times as much: lines are collected and written
together. Every write consists of whole lines and is at most as long as a pipe takes at once, so that the lines of
processes that share standard error never mix.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

import msgspec
import structlog

from shared.log import is_json
from shared.settings import Settings

log = structlog.get_logger()

WRITTEN_WITHIN_S = 0.1
_LONGEST_WRITE = 4_096  # PIPE_BUF of Linux
_EVENT = "request.answered"


class Line(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag=_EVENT):
    """One answer. `route` is the template of the path, `ms` the time until the answer was ready to be sent, and `bytes`
    the length of its body, 0 for a stream.
    """

    level: str
    timestamp: datetime
    request_id: str
    method: str
    route: str
    status: int
    ms: float
    bytes: int
    credential_id: UUID | None = None
    admin_key_id: UUID | None = None
    network: str | None = None
    traceparent: str | None = None


_encode = msgspec.json.Encoder().encode


class AccessLog:
    """The access log of one process, in the form of its other lines."""

    def __init__(self, settings: Settings) -> None:
        self._wanted = settings.access_log and logging.getLevelName(settings.log_level.upper()) <= logging.INFO
        self._json = is_json(settings.log_format)
        self._lines = bytearray()
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Write what has been collected when the block ends."""
        try:
            yield
        finally:
            self._write()

    def add(self, line: Line) -> None:
        """Log one answer; it is written within WRITTEN_WITHIN_S."""
        if not self._wanted:
            return
        if not self._json:
            fields = msgspec.structs.asdict(line)
            shown = {name: value for name, value in fields.items() if name not in _ADDED and value is not None}
            log.info(_EVENT, **shown)
            return
        text = _encode(line)
        if len(self._lines) + len(text) >= _LONGEST_WRITE:
            self._write()
        self._lines += text
        self._lines += b"\n"
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITTEN_WITHIN_S, self._write)

    def _write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._lines:
            sys.stderr.write(self._lines.decode())
            sys.stderr.flush()
            self._lines.clear()


_ADDED = ("level", "timestamp", "request_id")
"""Fields that structlog adds to each line by itself."""
