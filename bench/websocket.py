"""`python -m bench.websocket`: reading blocks through the `ogmios` package's connection and through aiohttp's.

A separate process answers each request with the next frame. Both clients keep 100 requests in flight and ignore the
frames' content: websockets' synchronous connection, set up as in the `ogmios` package but without its size limit and
compression, and `indexer.ogmios` itself.
"""

import asyncio
import lzma
import statistics
import time
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop
from aiohttp import WSMsgType, web
from rich.console import Console
from rich.table import Table
from websockets.sync.client import connect

from bench import machine
from bench.chain import Chain
from indexer.ogmios import connection as ogmios

_NEXT_BLOCK = '{"jsonrpc":"2.0","method":"nextBlock"}'
_TRANSACTIONS = 20_000


class Reading(msgspec.Struct, frozen=True):
    """Elapsed seconds, and CPU seconds of the client."""

    wall_s: float
    cpu_s: float


def frames_of(recorded: Path | None) -> list[bytes]:
    """Frames like mainnet's, or those of recorded blocks from a file with one per line."""
    if recorded is None:
        return list(Chain(1).frames(_TRANSACTIONS))
    with lzma.open(recorded) as lines:
        tip = b'{"slot":0,"id":"%b","height":0}' % (b"00" * 32)
        before, after = b'{"jsonrpc":"2.0","result":{"direction":"forward","block":', b',"tip":' + tip + b"}}"
        return [before + line.strip() + after for line in lines]


def _serve(recorded: Path | None, started: Connection) -> None:
    frames = frames_of(recorded)

    async def answer(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(compress=False)
        await socket.prepare(request)
        following = iter(frames)
        async for _ in socket:
            await socket.send_frame(next(following, b""), WSMsgType.TEXT)
        return socket

    async def main() -> None:
        app = web.Application()
        app.add_routes([web.get("/", answer)])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        started.send((runner.addresses[0][1], len(frames), sum(map(len, frames))))
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def by_websockets(url: str, count: int) -> None:
    """As the `ogmios` package connects: in one thread, one call after the other."""
    with connect(url, max_size=None, compression=None) as connection:
        asked = 0
        for got in range(count):
            if asked - got <= ogmios.IN_FLIGHT // 2:
                for _ in range(ogmios.IN_FLIGHT - asked + got):
                    connection.send(_NEXT_BLOCK)
                asked = got + ogmios.IN_FLIGHT
            connection.recv(decode=False)


def by_aiohttp(url: str, count: int) -> None:
    """As the indexer reads."""

    async def read() -> None:
        node = await ogmios.connect(url)
        left = count
        async for _ in node.raw_frames():
            left -= 1
            if not left:
                break
        await node.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(read())


def main(
    recorded: Annotated[
        Path | None, typer.Option(help="Recorded blocks (.jsonl.xz) instead of generated ones.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Readings by each client.")] = 5,
) -> None:
    """Measure both ways to read from Ogmios."""
    ours, theirs = Pipe()
    server = get_context("spawn").Process(target=_serve, args=(recorded, theirs))
    server.start()
    try:
        port, count, size_bytes = ours.recv()
        readings: dict[str, list[Reading]] = {}
        for _ in range(rounds):
            for name, read in (("ogmios (websockets)", by_websockets), ("aiohttp", by_aiohttp)):
                began, began_cpu = time.perf_counter(), time.process_time()
                read(f"ws://127.0.0.1:{port}/", count)
                reading = Reading(time.perf_counter() - began, time.process_time() - began_cpu)
                readings.setdefault(name, []).append(reading)
    finally:
        server.kill()
        server.join()
    title = f"{count:,} frames of {size_bytes / count:,.0f} bytes"
    table = Table("", "frames/s", "MB/s", "client CPU, us/frame", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, some in readings.items():
        wall_s = statistics.median(one.wall_s for one in some)
        cpu_s = statistics.median(one.cpu_s for one in some)
        rates = f"{count / wall_s:,.0f}", f"{size_bytes / wall_s / 1e6:,.0f}", f"{cpu_s / count * 1e6:,.0f}"
        table.add_row(name, *rates)
    console = Console()
    console.print(machine.describe(None))
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
