"""The choice of a connection to close when there are too many."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from api.http import connections
from api.http.connections import BoundedServer, Connection
from api.http.sending import Unread

_MAX_CONNECTIONS = 2
_REQUEST = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"


@asynccontextmanager
async def served(monkeypatch: pytest.MonkeyPatch, go_on: asyncio.Event) -> AsyncIterator[int]:
    """The port of a server of at most _MAX_CONNECTIONS. The second half of a download waits for `go_on`."""

    async def halves() -> AsyncIterator[bytes]:
        yield b"first"
        await go_on.wait()
        yield b"second"

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=halves() if request.path == "/download" else b"short")

    monkeypatch.setattr(connections, "_raise_limit", lambda: _MAX_CONNECTIONS)
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


@asynccontextmanager
async def echoing(paused: asyncio.Event) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server that answers with each body, after `paused`; and with 400 if the body is broken."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await paused.wait()
        try:
            return web.Response(body=request.path.encode() + b"=" + await request.read() + b";")
        except web.RequestPayloadError:
            refused = web.Response(status=400, body=b"broken;")
            refused.force_close()
            return refused

    runner = web.ServerRunner(BoundedServer(answer, Connection, {}, Unread()))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    reader, writer = await asyncio.open_connection("127.0.0.1", runner.addresses[0][1])
    async with asyncio.timeout(60):  # less than the 75 s of an idle connection
        yield reader, writer
    writer.close()
    await runner.cleanup()


CHUNKED = b"POST /%s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("count", [0, 1, 3, 40])
async def test_a_client_that_stops_sending_gets_the_answers_to_all_its_requests(count: int) -> None:
    go_on = asyncio.Event()
    async with echoing(go_on) as (reader, writer):
        writer.write(b"".join(_REQUEST % b"%d" % number for number in range(count)))
        writer.write_eof()
        await asyncio.sleep(0.05)
        go_on.set()
        answers = await reader.read()
    assert [answers.count(b"/%d=;" % number) for number in range(count)] == [1] * count
    assert answers.count(b"HTTP/1.1 200") == count


@pytest.mark.parametrize("broken", [b"zz\r\n", None], ids=["a malformed chunk", "the end"])
@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("is_waiting", [True, False])
async def test_a_body_that_breaks_in_a_later_packet_is_refused_and_ends_the_connection(
    broken: bytes | None, before: int, is_waiting: bool
) -> None:
    """`is_waiting`: the handler already waits for the body; otherwise the request is still queued behind others."""
    go_on = asyncio.Event()
    if is_waiting:
        go_on.set()
    async with echoing(go_on) as (reader, writer):
        writer.write(
            b"".join(_REQUEST % b"%d" % number for number in range(before)) + CHUNKED % b"last" + b"1\r\na\r\n"
        )
        await asyncio.sleep(0.05)
        writer.write_eof() if broken is None else writer.write(broken + _REQUEST % b"after")
        await asyncio.sleep(0.05)
        go_on.set()
        answers = await reader.read()
    assert answers.count(b"HTTP/1.1 200") == before
    assert answers.count(b"HTTP/1.1 400") == 1
    assert answers.endswith(b"broken;")


async def test_malformed_requests_are_answered_in_version_1_1() -> None:
    go_on = asyncio.Event()
    go_on.set()
    async with echoing(go_on) as (reader, writer):
        writer.write(_REQUEST % b"good")
        answers = await reader.readuntil(b"/good=;")
        writer.write(b"GARBAGE\r\n\r\n")
        answers += await reader.read()
    assert answers.count(b"HTTP/1.1 200") == 1
    assert answers.count(b"HTTP/1.1 400") == 1
    assert b"HTTP/1.0" not in answers


async def test_an_answer_whose_client_has_gone_is_not_unread() -> None:
    """Its connection is reset while the handler works, before the answer is registered."""
    asked, unread, registered = asyncio.Event(), Unread(), list[int]()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        asked.set()
        while request.transport is not None:
            await asyncio.sleep(0.01)
        response = web.Response(body=b"long" * 100_000)
        unread.add(request.protocol, "caller", response)
        registered.append(unread._all_bytes)
        return response

    runner = web.ServerRunner(BoundedServer(answer, Connection, {}, unread))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with asyncio.timeout(60):
        _, writer = await asyncio.open_connection("127.0.0.1", runner.addresses[0][1])
        writer.write(_REQUEST % b"page")
        await asked.wait()
        reset = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        writer.close()
        while not registered:
            await asyncio.sleep(0.01)
        await runner.cleanup()  # waits for the end of the answer
    assert registered == [400_000]
    assert (unread._answers, unread._all_bytes, unread._memory_bytes) == ({}, 0, {})
