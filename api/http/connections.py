"""The limit on client connections of one process, and the choice of the one to close when another arrives.

The limit leaves descriptors for Postgres, Valkey, spools and logs, and for downloads, which hold a file each.
"""

import asyncio
import resource
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from aiohttp import HttpVersion11, web
from aiohttp.payload import Payload
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import ERROR, RequestHandler, RequestPayloadError, _ErrInfo

from api.http.sending import Unread

log = structlog.get_logger()

_RESERVED_DESCRIPTORS = 128  # for pools, replicas, Valkey, spools, downloads, logs and the registry
_MIN_CONNECTIONS, _MAX_CONNECTIONS = 32, 20_000
_LOG_EVERY_S = 10.0


def _raise_limit() -> int:
    """Raise the limit of descriptors to its maximum; return how many connections this process may then hold."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    descriptors = _MAX_CONNECTIONS + _RESERVED_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
    return min(max(descriptors - _RESERVED_DESCRIPTORS, _MIN_CONNECTIONS), _MAX_CONNECTIONS)


async def free(response: web.StreamResponse) -> None:
    """Free the resources of an answer's body, such as a file."""
    if isinstance(response, web.Response) and isinstance(response.body, Payload):
        await response.body.close()


class Connection(RequestHandler):
    """A connection of a BoundedServer, which learns when an answer has been sent.

    Where aiohttp would close it, a client that has stopped sending gets the answers to its requests, and a body that
    breaks off or is malformed is an error of its own request.
    """

    __slots__ = ("_ended", "_malformed", "_server")

    def __init__(self, server: "BoundedServer", **options: Any) -> None:
        super().__init__(server, **options)
        self._server = server  # NOTE: aiohttp's `_manager` is None once the connection is lost
        self._ended = self._malformed = False

    def data_received(self, data: bytes) -> None:
        """Read requests, or parts of them; nothing after a malformed part."""
        if self._malformed:
            return
        super().data_received(data)
        self._malformed = bool(self._messages) and isinstance(self._messages[-1][0], _ErrInfo)
        if self._malformed and self._break_body(before=1):
            self._messages.pop()  # aiohttp takes the broken part of a body for the next request

    def eof_received(self) -> bool:  # type: ignore[override] # asyncio asks for it
        """The client has stopped sending, and may still read. Returns whether to keep the connection."""
        self._ended = True
        self._break_body()
        is_idle = self._waiter is not None or self._request_count == 0
        return not is_idle or bool(self._messages)

    def _break_body(self, before: int = 0) -> bool:
        """Fail the body that is being received, if there is one; `before` the last message of the queue."""
        queued = len(self._messages) - before
        body = self._messages[queued - 1][1] if queued else getattr(self._current_request, "content", None)
        if not isinstance(body, StreamReader) or body.is_eof() or body.exception() is not None:
            return False
        body.set_exception(RequestPayloadError("the body is malformed or incomplete"))
        return True

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer, then free the resources of its body, even if aiohttp does not send it, as for HEAD."""
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            await free(resp)
            if self._ended and not self._messages:
                self.close()
            self._server.answered(self)


class BoundedServer(web.Server):
    """aiohttp's server with a limit on connections: a new one above the limit replaces an inactive one.

    It closes the oldest connection that never sent the complete head of a request, otherwise the one that has been idle
    longest. If all connections wait for answers, it closes the new one.
    """

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        connection: Callable[..., Connection],
        options: Mapping[str, Any],
        unread: Unread,
    ) -> None:
        super().__init__(self._handle, request_factory=self._request)
        self._handler, self._connection, self._options, self._unread = handler, connection, options, unread
        self._max_connections = _raise_limit()
        self._silent: dict[RequestHandler, None] = {}  # both are ordered, oldest first
        self._idle: dict[RequestHandler, None] = {}
        self._log_at = 0.0

    def __call__(self) -> RequestHandler:
        return self._connection(self, loop=asyncio.get_running_loop(), **self._options)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Register a connection."""
        super().connection_made(handler, transport)
        if len(self._connections) > self._max_connections:
            self._give_up(next(iter(self._silent), None) or next(iter(self._idle), handler))
        self._silent[handler] = None

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Unregister a connection."""
        super().connection_lost(handler, exc)
        self._unread.sent(handler)
        self._silent.pop(handler, None)
        self._idle.pop(handler, None)

    def answered(self, connection: Connection) -> None:
        """Count a connection as idle: its answer, which may be a long download, has been sent, or is lost."""
        self._unread.sent(connection)
        if connection.transport is not None:
            self._idle[connection] = None

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        """A request. NOTE: aiohttp makes those that it can't parse of version 1.0, and would answer in that version."""
        if message is ERROR:
            message = message._replace(version=HttpVersion11)
        return web.BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop())

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._silent.pop(request.protocol, None)
        self._idle.pop(request.protocol, None)
        return await self._handler(request)

    def _give_up(self, connection: RequestHandler) -> None:
        self._silent.pop(connection, None)
        self._idle.pop(connection, None)
        connection.force_close()
        now = asyncio.get_running_loop().time()
        if now >= self._log_at:
            self._log_at = now + _LOG_EVERY_S
            log.warning("connections.too_many", most=self._max_connections)
