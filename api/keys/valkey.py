"""A pipelined connection to Valkey, shared by all requests of this process.

redis-py establishes it, with TLS, password and database from REDIS_URL. Commands then use the socket directly: one of
redis-py's commands costs as much CPU as the rest of a small request, and each chain request needs one.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import NoScriptError, ReadOnlyError, RedisError, ResponseError

from shared import redis_url

CONNECT_WITHIN_S = 2.0
# NOTE: generous, since a process without CPU time on a busy machine must not mistake that for an outage of Valkey.
_TICK_S = 0.4
_PATIENCE_TICKS = 4


_NOT_YET = object()


def packed(*words: bytes) -> bytes:
    """A command in Valkey's wire format."""
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


class ValkeyClient:
    """Sends commands, and reconnects after a lost connection. Raises RedisError or OSError if Valkey is unreachable."""

    def __init__(self, url: str) -> None:
        self._pool = redis_url.async_pool(url)
        self._link: _Link | None = None
        self._connecting: asyncio.Task[_Link] | None = None

    async def ask(self, command: bytes) -> Any:
        """The reply to one packed command."""
        link = self._link
        if link is not None and not link.lost:
            try:
                return await link.send(command)
            except LostConnection:
                pass  # Valkey restarted, or an idle connection was cut: retry on a new one
        return await (await self._connected()).send(command)

    async def ask_all(self, commands: Iterable[bytes]) -> list[Any]:
        """The replies to several commands, sent together."""
        return await asyncio.gather(*(self.ask(command) for command in commands))

    async def ping(self) -> None:
        """Return if it answers."""
        await self.ask(packed(b"PING"))

    async def close(self) -> None:
        """Close the connection. Calls that wait for a reply raise LostConnection."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._link is not None:
            await self._link.close()

    async def _connected(self) -> "_Link":
        """An established connection; concurrent callers wait for the same new one."""
        if self._link is not None and not self._link.lost:
            return self._link
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._have_connected)
        return await asyncio.shield(self._connecting)

    async def _connect(self) -> "_Link":
        if self._link is not None:
            await self._link.close()
        connection: AbstractConnection = self._pool.make_connection()  # type: ignore[no-untyped-call] # it has no hints
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                await connection.connect()  # type: ignore[no-untyped-call] # nor has this
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        self._link = _Link(connection)
        return self._link

    def _have_connected(self, connecting: "asyncio.Task[_Link]") -> None:
        self._connecting = None
        if not connecting.cancelled():
            connecting.exception()  # retrieved here, because possibly no request waits for it


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[ValkeyClient]:
    """A client that connects on first use."""
    valkey = ValkeyClient(url)
    try:
        yield valkey
    finally:
        await valkey.close()


class _Link(asyncio.Protocol):
    """One connection, from the end of redis-py's handshake to its loss."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        # NOTE: a private name of redis-py, which has no public one for its socket.
        writer = connection._writer
        assert writer is not None, "redis-py has connected"
        self._transport = writer.transport
        self._replies = hiredis.Reader(replyError=_error, notEnoughData=_NOT_YET)
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._unwritten: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self._sent = self._answered = 0
        self._sent_before = deque([0] * _PATIENCE_TICKS, _PATIENCE_TICKS)
        self._clock = self._loop.call_later(_TICK_S, self._tick)
        self.lost = False
        self._transport.set_protocol(self)

    def send(self, command: bytes) -> asyncio.Future[Any]:
        """Send a command; returns its future reply.

        The commands of one iteration of the event loop are written together, which saves system calls, in Valkey too.
        """
        reply: asyncio.Future[Any] = self._loop.create_future()
        if self.lost:
            reply.set_exception(LostConnection("the connection is lost"))
            return reply
        self._sent += 1
        self._waiting.append(reply)
        if not self._unwritten:
            self._loop.call_soon(self._write)
        self._unwritten.append(command)
        return reply

    async def close(self) -> None:
        """Close the connection, unless it is lost already."""
        self._lose(LostConnection("the connection is closed"))
        await self._connection.disconnect(nowait=True)

    def data_received(self, data: bytes) -> None:
        """Read replies, or parts of them."""
        try:
            self._replies.feed(data)
            while (reply := self._replies.gets()) is not _NOT_YET:
                if not isinstance(reply, hiredis.PushNotification):
                    self._answered += 1
                    self._give(self._waiting.popleft(), reply)
        except (hiredis.ProtocolError, IndexError):
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Either side has closed the connection."""
        self._lose(LostConnection(f"the connection is lost: {exc or 'closed by the server'}"))

    def _write(self) -> None:
        commands, self._unwritten = self._unwritten, []
        if not self.lost:
            self._transport.write(b"".join(commands))

    def _give(self, waiting: asyncio.Future[Any], reply: Any) -> None:
        if waiting.done():  # the caller was cancelled
            return
        if isinstance(reply, RedisError):
            waiting.set_exception(reply)
            if isinstance(reply, ReadOnlyError):  # another server is the primary now
                self._transport.abort()
        else:
            waiting.set_result(reply)

    def _lose(self, cause: Exception) -> None:
        self.lost = True
        self._clock.cancel()
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(cause)

    def _tick(self) -> None:
        """Give up if a reply is overdue for some ticks. No ticks pass while this process gets no CPU time."""
        if self._answered < self._sent_before[0]:
            self._lose(TimeoutError("no reply"))
            self._transport.abort()
            return
        self._sent_before.append(self._sent)
        self._clock = self._loop.call_later(_TICK_S, self._tick)


def _error(text: str) -> ResponseError:
    if "READONLY" in text:  # NOTE: may be anywhere in the text, if it comes from a script
        return ReadOnlyError(text)
    return NoScriptError(text) if text.startswith("NOSCRIPT") else ResponseError(text)
