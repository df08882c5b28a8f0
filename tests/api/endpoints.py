"""An endpoint of webhooks, which answers as it is told and keeps what it was sent."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from tests.ports import free_port


class Received(msgspec.Struct, frozen=True):
    """A request."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def number(self) -> int:
        """That of the event."""
        number: int = self.event["number"]
        return number

    @property
    def event(self) -> dict[str, Any]:
        """The event."""
        event: dict[str, Any] = msgspec.json.decode(self.body)
        return event


class Endpoint:
    """Answers 204, unless `statuses` has others to begin with; while `hold` is cleared, it does not answer."""

    def __init__(self) -> None:
        self.port = free_port()
        self.received: list[Received] = []
        self.statuses = deque[int]()
        self.location = "/"
        self.hold = asyncio.Event()
        self.hold.set()
        self.came = asyncio.Event()

    def url(self, path: str = "/", host: str = "hook.example") -> str:
        """The URL of a path."""
        return f"http://{host}:{self.port}{path}"

    @property
    def numbers(self) -> list[int]:
        """The numbers of the events that were received."""
        return [each.number for each in self.received]

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a request."""
        self.received.append(Received(request.path, dict(request.headers), await request.read()))
        self.came.set()
        await self.hold.wait()
        status = self.statuses.popleft() if self.statuses else 204
        return web.Response(status=status, headers={"Location": self.location} if status in (301, 307) else None)


@asynccontextmanager
async def listening(address: str = "127.0.0.1") -> AsyncIterator[Endpoint]:
    """An endpoint on an address of this host."""
    endpoint = Endpoint()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", endpoint.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, address, endpoint.port).start()
    yield endpoint
    endpoint.hold.set()
    await runner.cleanup()
