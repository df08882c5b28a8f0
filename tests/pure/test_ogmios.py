"""The connection to Ogmios, with a substitute server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from indexer.ogmios import connection as ogmios


@asynccontextmanager
async def something(answer: bytes | None) -> AsyncIterator[str]:
    """The address, with a parameter, of a server that gives every request this answer, or none."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"ws://{host}:{port}/?token=secret"


async def test_a_server_that_never_answers_times_out() -> None:
    async with something(None) as url, asyncio.timeout(5):
        with pytest.raises(OSError, match="no WebSocket"):
            await ogmios.connect(url, within_s=0.2)


async def test_a_refusal_shows_no_parameter_of_the_address() -> None:
    async with something(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as url:
        with pytest.raises(OSError, match="403") as refusal:
            await ogmios.connect(url)
    assert "secret" not in str(refusal.value)


async def test_a_query_without_an_answer_times_out() -> None:
    async def listen(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for _ in socket:
            pass
        return socket

    app = web.Application()
    app.router.add_get("/", listen)
    async with TestServer(app) as server, asyncio.timeout(5):
        node = await ogmios.connect(f"ws://127.0.0.1:{server.port}", answer_within_s=0.2)
        with pytest.raises(OSError, match="no answer to findIntersection"):
            await node.intersect([])
        await node.close()
