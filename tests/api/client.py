"""An API served in this process, and a client that shows the data from the socket."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from unittest.mock import patch

import aiohttp
import msgspec
from yarl import URL

from api import services
from api.answers import CONTENT_TYPE
from api.blockfrost import shape
from api.errors import Refusal
from api.reference.openapi import refusals_of
from api.route import Router
from api.routes import EVERY_ROUTE
from api.server.app import Api
from shared.servers import Servers
from shared.settings import read


class Reply(msgspec.Struct):
    """An answer; `body` is decoded if it is JSON, with exact integers."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def error(self) -> str:
        """The message of a failure. Asserts that it is in the envelope."""
        assert list(self.body) == ["success", "error"]
        assert self.body["success"] is False
        error: str = self.body["error"]
        return error


class Client:
    """Calls one API. Paths are sent unchanged, percent signs included."""

    def __init__(self, port: int, session: aiohttp.ClientSession) -> None:
        self.port = port
        self._session = session

    async def get(self, path: str, key: str | None = None) -> Reply:
        """GET, with an optional key."""
        return await self.call("GET", path, key)

    async def call(self, method: str, path: str, key: str | None = None, **options: Any) -> Reply:
        """Any method; `json` or `data` is the body. Asserts that a refusal is among those that the route declares."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        url = URL(f"http://127.0.0.1:{self.port}{path}", encoded=True)
        async with self._session.request(
            method, url, headers=headers | options.pop("headers", {}), **options
        ) as response:
            text = await response.read()
            code = response.headers.get("Error-Code")
            assert code is None or code in _declared(method, path), f"{method} {path}: the route does not list {code}"
            is_json = response.headers.get("Content-Type") == CONTENT_TYPE and text
            return Reply(response.status, response.headers, msgspec.json.decode(text) if is_json else text)

    async def raw(self, sent: bytes) -> bytes:
        """Send raw bytes; returns everything up to the end of the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(sent)
        try:
            async with asyncio.timeout(60):  # less than the 75 s of an idle connection
                return await reader.read()
        finally:
            writer.close()


_router = Router(EVERY_ROUTE)


def _declared(method: str, path: str) -> set[str]:
    """The codes of the refusals that /openapi.json lists for a request."""
    try:
        route, _ = _router.find(method, shape.plain_path(path.partition("?")[0]))
    except Refusal as unroutable:
        return {unroutable.code}
    return {refusal.code for refusal in refusals_of(route)}


@asynccontextmanager
async def serving(environment: Mapping[str, str], kept_s: float = -1.0) -> AsyncIterator[Client]:
    """An API on a free port, with the settings of `environment`, which names its servers.

    Open endpoints cache their answers for `kept_s` seconds; by default, each request shows the current state.
    """
    settings = read(environment)
    assert settings.database_url is not None
    assert settings.redis_url is not None
    replicas = settings.read_database_urls or (settings.database_url,)
    servers = Servers(settings.database_url, replicas, settings.redis_url)
    stop = asyncio.Event()
    endpoints = {route.number: route.name for route in EVERY_ROUTE}
    async with AsyncExitStack() as stack:
        stack.enter_context(patch.object(services, "KEPT_S", kept_s))
        opened = await stack.enter_async_context(services.opened(settings, servers, endpoints, stop))
        with socket.create_server(("127.0.0.1", 0)) as listening:
            served = asyncio.create_task(Api(opened, EVERY_ROUTE).serve(listening, stop))
            try:
                async with aiohttp.ClientSession() as session:
                    yield Client(listening.getsockname()[1], session)
            finally:
                stop.set()
                await served
