"""The choice of a connection to close when there are too many."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from api import connections
from api.connections import BoundedServer, Connection
from api.sending import Unread

_MOST = 2
_REQUEST = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"


@asynccontextmanager
async def served(monkeypatch: pytest.MonkeyPatch, go_on: asyncio.Event) -> AsyncIterator[int]:
    """The port of a server with room for _MOST connections. The second half of a download waits for `go_on`."""

    async def halves() -> AsyncIterator[bytes]:
        yield b"first"
        await go_on.wait()
        yield b"second"

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=halves() if request.path == "/download" else b"short")

    monkeypatch.setattr(connections, "_raise_limit", lambda: _MOST)
    runner = web.ServerRunner(BoundedServer(answer, Connection, {}, Unread()))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


async def test_a_download_is_not_idle_until_it_is_completely_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = asyncio.Event()
    writers = list[asyncio.StreamWriter]()

    async def opened(path: bytes, until: bytes) -> asyncio.StreamReader:
        """A connection that has sent a request, read up to these bytes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        writer.write(_REQUEST % path)
        await reader.readuntil(until)
        return reader

    async with served(monkeypatch, go_on) as port, asyncio.timeout(60):  # less than the 75 s of an idle connection
        download = await opened(b"download", b"first")
        idle = await opened(b"page", b"short")
        last = await opened(b"page", b"short")
        assert await idle.read() == b"", "the idle connection is closed"
        go_on.set()
        assert b"second" in await download.readuntil(b"\r\n0\r\n\r\n")
        await opened(b"page", b"short")
        assert await last.read() == b"", "idle for longer than the download"
        await opened(b"page", b"short")
        assert await download.read() == b"", "once it has been sent, the download is idle, too"
