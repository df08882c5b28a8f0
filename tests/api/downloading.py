"""A service whose export is longer than anyone waits for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.patience import PATIENCE_S

PARTS = (b"na", b"me\r\n", "zw\u00f6".encode()[:-1], "zw\u00f6lf,\u2028\n".encode()[3:], b"pa", b"rt")
LINES = ["name\r\n", "zw\u00f6lf,\u2028\n", "partlast"]
"""The sent parts, and their lines: parts end anywhere, lines only at newlines."""


@asynccontextmanager
async def endless_download() -> AsyncIterator[str]:
    """Its address. The export is refused once; then its last word waits until the client has requested the health.

    As `ndjson`, it ends abruptly without the last word.
    """
    requests = iter(range(1_000))
    went_on = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/health":
            went_on.set()
            return web.json_response({"success": True, "data": {"status": "healthy"}})
        if next(requests) == 0:
            return web.json_response({"success": False, "error": "busy"}, status=503, headers={"Retry-After": "0"})
        response = web.StreamResponse()
        await response.prepare(request)
        for part in PARTS:
            await response.write(part)
        async with asyncio.timeout(PATIENCE_S):
            await went_on.wait()
        if request.query.get("format") == "ndjson":
            assert request.transport is not None
            request.transport.abort()
        await response.write(b"last")
        return response

    app = web.Application()
    app.router.add_route("GET", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url(""))
