"""Bodies that are sent from a file, and the answers that callers have not read yet: docs/decisions/0060."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import AsyncExitStack
from typing import IO, Any

import msgspec
import structlog
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import AsyncIterablePayload, IOBasePayload

from api import errors
from shared import lifecycle

log = structlog.get_logger()

MAX_UNREAD_BYTES, MAX_UNREAD_BYTES_EACH = 64 * 1024**2, 16 * 1024**2
"""The most bytes of answers in memory that callers have not read yet, per process and of them per caller."""

BYTES_AT_ONCE = 65_536
_LOOK_EVERY_S = 1.0
# The time that a caller has to read an answer. NOTE: all of it, since buffers make a steady reader seem to pause.
_GRACE_S = 60.0
_SLOWEST_BYTES_S = 100_000


class SentFile(IOBasePayload):
    """A file as the body of an answer. Closing it frees what it holds; the server closes it after every request."""

    def __init__(self, file: IO[bytes], held: AsyncExitStack, *, is_negotiated: bool = False) -> None:
        """`held` are the file and its turn; `is_negotiated` says that its encoding depends on `Accept-Encoding`."""
        super().__init__(file)
        self._held, self.is_negotiated = held, is_negotiated

    @property
    def size_bytes(self) -> int:
        """The length of the file."""
        return os.fstat(self._value.fileno()).st_size

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the file."""
        while part := await asyncio.to_thread(self._value.read, BYTES_AT_ONCE):
            await writer.write(part)

    async def close(self) -> None:
        """End the turn, and free the file's space."""
        await self._held.aclose()


class SentStream(AsyncIterablePayload):
    """Parts of unknown number as the body of an answer. Closing it ends its turn, as for a SentFile."""

    def __init__(self, parts: AsyncIterator[bytes], held: AsyncExitStack, stop: asyncio.Event | None = None) -> None:
        """Once `stop` is set, nobody waits for a caller that does not read."""
        super().__init__(parts)
        self._parts, self._held, self._stop = parts, held, stop

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the parts. Raises ConnectionError if the caller does not read one in time."""
        async for part in self._parts:
            try:
                async with asyncio.timeout(_GRACE_S):
                    sending = writer.write(part)
                    await (sending if self._stop is None else lifecycle.unless_stopped(sending, self._stop))
            except lifecycle.Stopped as cause:
                _abort(writer.transport)
                raise ConnectionError("the process ends") from cause
            except TimeoutError as cause:
                _cut_off(writer.transport, _GRACE_S)
                raise ConnectionError("the caller reads too slowly") from cause

    async def close(self) -> None:
        """End the turn."""
        await self._held.aclose()


class _Answer(msgspec.Struct, frozen=True):
    caller: Hashable
    memory_bytes: int
    until_s: float  # on the monotonic clock
    within_s: float


class Unread:
    """The answers that are being sent, by connection. Those that are read too slowly are cut off."""

    def __init__(self) -> None:
        self._answers: dict[Any, _Answer] = {}
        self._memory_bytes: Counter[Hashable] = Counter()
        self._all_bytes = 0

    def add(self, connection: Any, caller: Hashable, response: web.Response) -> None:
        """Register an answer that is about to be sent. A stream of unknown length limits its own time.

        If all together are too many, the oldest ones of the caller with the most are cut off. Raises Refusal if this
        caller has that many, or more than its own share.
        """
        self.sent(connection)
        body = response.body
        size = len(body) if isinstance(body, bytes) else 0
        caller_bytes = self._memory_bytes[caller] + size
        if caller_bytes > MAX_UNREAD_BYTES_EACH:
            raise errors.too_many_concurrent_requests("answers")
        while self._all_bytes + size > MAX_UNREAD_BYTES:
            if caller_bytes > max(self._memory_bytes.values(), default=0):
                raise errors.too_many_concurrent_requests("answers")
            self._cut_off_oldest()
        if not isinstance(body, bytes | SentFile):
            return
        sent_bytes = body.size_bytes if isinstance(body, SentFile) else size
        within_s = _GRACE_S + sent_bytes / _SLOWEST_BYTES_S
        self._memory_bytes[caller] += size
        self._all_bytes += size
        self._answers[connection] = _Answer(caller, size, time.monotonic() + within_s, within_s)

    def _cut_off_oldest(self) -> None:
        """Cut off the oldest answer of the caller with the most bytes."""
        most = max(self._memory_bytes, key=self._memory_bytes.__getitem__)
        oldest = next(at for at, answer in self._answers.items() if answer.caller == most and answer.memory_bytes)
        self.sent(oldest)
        log.warning("answer.made_room")
        _abort(oldest.transport)

    def sent(self, connection: Any) -> None:
        """Forget the answer of a connection, if it has one."""
        answer = self._answers.pop(connection, None)
        if answer is None:
            return
        self._all_bytes -= answer.memory_bytes
        self._memory_bytes[answer.caller] -= answer.memory_bytes
        if not self._memory_bytes[answer.caller]:
            del self._memory_bytes[answer.caller]

    async def watch(self) -> None:
        """Cut off callers that read too slowly, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            now = time.monotonic()
            for connection, answer in list(self._answers.items()):
                if answer.until_s < now:
                    _cut_off(connection.transport, answer.within_s)


def _cut_off(transport: asyncio.WriteTransport | None, within_s: float) -> None:
    log.warning("answer.not_read", within_s=round(within_s))
    _abort(transport)


def _abort(transport: asyncio.WriteTransport | None) -> None:
    if transport is not None:
        transport.abort()  # closing it would send the rest first
