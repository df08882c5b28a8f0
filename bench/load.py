"""`python -m bench.load`: requests per second and latency with 1 to 256 connections, idle and beside writers.

`python -m api` serves an index of the chain of `bench.index`. A client requests every kind of list and object in turn;
each connection sends the next request as soon as it has an answer: first while nothing is written, then while blocks
arrive at the tip, then while another network is filled in bulk. With 256 connections, the slowest hundredth should take
at most three times as long as the median. At the end, the start-up time and the memory of each process are measured.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from functools import partial
from itertools import cycle, islice, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, cast

import msgspec
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from bench import databases, lists, live, machine, starts
from bench.api import issue_keys, whole
from bench.chain import BLOCK_TRANSACTIONS
from bench.index import fill, follow_node, genesis_path, make_chain, play, read_block
from bench.processes import Child, Parent, apart, beside
from indexer.sync.progress import Progress
from shared import database, servers, settings
from shared.network import MAINNET, PREVIEW

CONNECTIONS = (1, 16, 64, 256)
_GOAL = 3.0
_BULK_AHEAD_BLOCKS = 10**7
_POPULAR = 40
_WARM_UP_S = 1.0


class Heard(msgspec.Struct, frozen=True):
    """The seconds of each request, in ascending order, and those of the whole run."""

    each_s: list[float]
    wall_s: float

    def at(self, share: float) -> float:
        """The time in ms within which a share of the requests was answered."""
        return self.each_s[min(int(len(self.each_s) * share), len(self.each_s) - 1)] * 1e3


class _Client(asyncio.Protocol):
    """One connection, which sends the next request as soon as it has an answer, until `until`."""

    def __init__(self, requests: Iterator[bytes], until: float, took_s: list[float]) -> None:
        self._requests, self._until, self._took_s = requests, until, took_s
        self._answer = bytearray()
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not a subclass
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return
        now = time.perf_counter()
        if not head.startswith(b"HTTP/1.1 200"):
            self.ended.set_exception(AssertionError(bytes(self._answer).decode()))
            self._transport.close()
            return
        self._took_s.append(now - self._began)
        self._answer.clear()
        if now < self._until:
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio passes it
        if not self.ended.done():
            self.ended.set_result(None)

    def _ask(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(next(self._requests))


def api_request(path: str, key: str) -> bytes:
    """A request with an API key, which is answered anew."""
    return (
        f"GET {path} HTTP/1.1\r\nHost: bench\r\nCache-Control: no-cache\r\nAuthorization: Bearer {key}\r\n\r\n"
    ).encode()


async def hear(port: int, requests: Sequence[bytes], connections: int, seconds: float) -> Heard:
    """Send requests over `connections` connections for `seconds` seconds."""
    loop = asyncio.get_running_loop()
    began, took_s = time.perf_counter(), list[float]()
    until, turns = began + seconds, cycle(requests)
    clients = [
        (await loop.create_connection(partial(_Client, turns, until, took_s), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(client.ended for client in clients))
    return Heard(sorted(took_s), time.perf_counter() - began)


class _Ended(msgspec.Struct, frozen=True):
    """The result of a writer: its number of blocks, and the seconds of each if they came one by one."""

    blocks: int
    took_s: list[float]


async def _append(parent: Parent, url: str, chain: Path, first: int, per_s: float) -> None:
    """Append block after block to a live index, at a pace."""
    took_s: list[float] = []
    async with live.following(url, chain) as indexer:
        with chain.open("rb", 1 << 20) as file:
            parent.tell(None)
            began = time.perf_counter()
            for number, frame in enumerate(islice(file, first, None)):
                if await _over(parent.stop, began + number / per_s):
                    break
                took_s.append(await indexer.take(read_block(frame)))
    parent.tell(_Ended(len(took_s), took_s))


async def _fill_another(parent: Parent, url: str, chain: Path, transactions: int) -> None:
    """Fill another network in bulk."""
    writer, reader = await database.connect(url, PREVIEW), await database.connect(url, PREVIEW)
    progress = Progress(PREVIEW)
    connect = partial(play, chain, transactions, _BULK_AHEAD_BLOCKS)
    filling = asyncio.create_task(follow_node(connect, PREVIEW, writer, reader, progress))
    stopped = asyncio.create_task(parent.stop.wait())
    parent.tell(None)
    await asyncio.wait((filling, stopped), return_when=asyncio.FIRST_COMPLETED)
    if filling.done():
        filling.result()
    filling.cancel()
    await asyncio.wait((filling,))
    writer.terminate()
    reader.terminate()
    parent.tell(_Ended(progress.blocks, []))


async def _over(stop: asyncio.Event, at: float) -> bool:
    """Wait until a given time or until `stop` is set; True if it is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(max(at - time.perf_counter(), 0)):
            await stop.wait()
    return stop.is_set()


class _Setting(msgspec.Struct, frozen=True):
    """The subject of a measurement."""

    url: str
    redis_url: str
    chain: Path
    indexed: int  # transactions, from the beginning of the chain
    transactions: int  # of the whole chain
    requests: list[bytes]
    folder: Path


async def _tables(setting: _Setting, seconds: float, per_s: float, workers: int) -> AsyncGenerator[Table, None]:
    """A table for each kind of writer, as soon as it is measured."""
    async with whole(setting.url, setting.redis_url, workers, setting.folder) as (port, _):
        heard = await hear(port, setting.requests, CONNECTIONS[1], _WARM_UP_S)
        assert heard.each_s, "it answers"
        yield await _measure(port, setting, seconds, "while nothing is written")
        first = setting.indexed // BLOCK_TRANSACTIONS
        async with beside(_append, setting.url, setting.chain, first, per_s) as writer:
            await writer.hear()
            table = await _measure(port, setting, seconds, f"while {per_s:g} blocks a second arrive")
            ended = await _end(writer)
        took_s = sorted(ended.took_s)
        table.caption = (
            f"{ended.blocks} blocks of {BLOCK_TRANSACTIONS} transactions, committed within"
            f" {took_s[len(took_s) // 2] * 1e3:.0f} ms (p50), {took_s[len(took_s) * 99 // 100] * 1e3:.0f} ms (p99)"
        )
        yield table
        async with beside(_fill_another, setting.url, setting.chain, setting.transactions) as writer:
            await writer.hear()
            began = time.perf_counter()
            table = await _measure(port, setting, seconds, "while another network is filled in bulk")
            wall_s, ended = time.perf_counter() - began, await _end(writer)
        table.caption = f"{ended.blocks * BLOCK_TRANSACTIONS / wall_s:,.0f} transactions a second in bulk"
        yield table


async def _end(writer: Child) -> _Ended:
    writer.stop()
    ended: _Ended = await writer.hear()
    return ended


async def _measure(port: int, setting: _Setting, seconds: float, title: str) -> Table:
    table = Table("connections", "requests/s", "p50 ms", "p99 ms", "p99 / p50", "longest ms", title=title)
    for column in table.columns:
        column.justify = "right"
    for connections in CONNECTIONS:
        heard = await hear(port, setting.requests, connections, seconds)
        p50, p99 = heard.at(0.5), heard.at(0.99)
        table.add_row(
            str(connections),
            f"{len(heard.each_s) / heard.wall_s:,.0f}",
            f"{p50:.1f}",
            f"{p99:.1f}",
            f"{p99 / p50:.1f}" + (f" (goal {_GOAL:g})" if connections == CONNECTIONS[-1] else ""),
            f"{heard.at(1):.0f}",
        )
    return table


async def _prepared(url: str, redis_url: str, folder: Path, indexed: int, transactions: int) -> _Setting:
    """Make a chain, index its first part, and issue keys."""
    whole_chain, first_part = folder / "chain", folder / "first"
    make_chain(whole_chain, transactions, 1)
    with whole_chain.open("rb") as file, first_part.open("wb") as part:
        part.writelines(islice(file, indexed // BLOCK_TRANSACTIONS))
    genesis_path(first_part).write_bytes(genesis_path(whole_chain).read_bytes())
    await apart(fill, url, first_part, indexed)
    first_part.unlink()
    db = await database.connect(url, MAINNET)
    keys = await issue_keys(db)
    asked = await lists.requests(db, _POPULAR, popular=True)
    await db.execute("VACUUM ANALYZE")
    await db.close()
    paths = [path for turn in zip_longest(*asked.values()) for path in turn if path is not None]
    requests = [api_request(path, key) for path, key in zip(paths, cycle(keys), strict=False)]
    return _Setting(url, redis_url, whole_chain, indexed, transactions, requests, folder)


async def _run(seconds: float, per_s: float, workers: int, indexed: int, transactions: int) -> None:
    console = Console()
    async with servers.running(settings.read()) as running, databases.fresh(running.database_url) as url:
        console.print(machine.describe(await machine.postgres_version(url)))
        with TemporaryDirectory(prefix="bench_") as folder:
            setting = await _prepared(url, running.redis_url, Path(folder), indexed, transactions)
            console.print(f"{indexed:,} transactions; {workers} API process(es); {seconds:g} s a line")
            async with aclosing(_tables(setting, seconds, per_s, workers)) as tables:
                async for table in tables:
                    console.print(table)
            console.print(await starts.table(url, running.redis_url, Path(folder)))


def main(
    seconds: Annotated[float, typer.Option(min=1, help="Seconds for each number of connections.")] = 5,
    per_s: Annotated[float, typer.Option("--blocks-per-second", min=0.05, help="Blocks that arrive at the tip.")] = 20,
    workers: Annotated[int, typer.Option(min=1, help="API processes.")] = 1,
    indexed: Annotated[int, typer.Option("--transactions", min=10_000, help="Transactions in the index.")] = 100_000,
    transactions: Annotated[int, typer.Option("--bulk", min=20_000, help="Transactions to fill in bulk.")] = 200_000,
) -> None:
    """Measure the API under load."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(seconds, per_s, workers, *(n - n % BLOCK_TRANSACTIONS for n in (indexed, transactions))))


if __name__ == "__main__":
    typer.run(main)
