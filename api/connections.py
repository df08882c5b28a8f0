"""The limit on client connections of one process, and the choice of the one to close when another arrives.

The limit leaves descriptors for Postgres, Valkey, spools and logs, and for downloads, which hold a file each.
"""

import asyncio
import resource
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from aiohttp import web
from aiohttp.payload import Payload
from aiohttp.web_protocol import RequestHandler

from api.sending import Unread

log = structlog.get_logger()

_RESERVED_DESCRIPTORS = 128  # for pools, replicas, Valkey, spools, downloads, logs and the registry
_LEAST, _MOST = 32, 20_000
_LOG_EVERY_S = 10.0


def _raise_limit() -> int:
    """Raise the limit of descriptors to its maximum; return how many connections this process may then hold."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    descriptors = _MOST + _RESERVED_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
    return min(max(descriptors - _RESERVED_DESCRIPTORS, _LEAST), _MOST)


async def free(response: web.StreamResponse) -> None:
    """Free the resources of an answer's body, such as a file."""
    if isinstance(response, web.Response) and isinstance(response.body, Payload):
        await response.body.close()


class Connection(RequestHandler):
    """A connection of a BoundedServer, which learns when an answer has been sent."""

    __slots__ = ()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer, then free the resources of its body, even if aiohttp does not send it, as for HEAD."""
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            await free(resp)
            server = self._manager
            if isinstance(server, BoundedServer):
                server.answered(self)


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
        super().__init__(self._handle)
        self._handler, self._connection, self._options, self._unread = handler, connection, options, unread
        self._most = _raise_limit()
        self._silent: dict[RequestHandler, None] = {}  # both are ordered, oldest first
        self._idle: dict[RequestHandler, None] = {}
        self._log_at = 0.0

    def __call__(self) -> RequestHandler:
        return self._connection(self, loop=asyncio.get_running_loop(), **self._options)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Register a connection."""
        super().connection_made(handler, transport)
        if len(self._connections) > self._most:
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
        if connection in self._connections:
            self._idle[connection] = None

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
            log.warning("connections.too_many", most=self._most)
