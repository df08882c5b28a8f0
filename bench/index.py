"""`python -m bench.index`: the speed of indexing, compared with a COPY of the same rows into the same tables.

A chain is generated first. Then two runs take turns, each in a separate process and database: the floor, which prepares
each batch first and times only its COPY, and the indexer's own loop from frame to commit. In bulk the histories are
staged without an index, and their finalize steps end the run; always-on writes every index from the first block.
"""

import asyncio
import resource
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import asyncpg
import msgspec
import typer
from rich.console import Console
from rich.table import Table

from bench import databases, machine
from bench.chain import BLOCK_TRANSACTIONS, Chain
from bench.processes import MAXRSS_BYTES, apart, peak_bytes
from indexer.blocks import effects, genesis, packed_block
from indexer.blocks.node_warnings import NodeWarnings
from indexer.blocks.packed_block import PackedBlock
from indexer.ogmios import connection as ogmios
from indexer.ogmios import frames
from indexer.rows import rows, value_check
from indexer.rows.histories import AssetStates, HistoryCounts
from indexer.rows.resolver import new_resolver
from indexer.store import beginning, forward, histories
from indexer.sync import batches, follow, session
from indexer.sync.pipeline import Pipeline
from indexer.sync.progress import Progress
from shared import database, lifecycle, servers, settings
from shared.ledger import SECURITY_PARAMETER, Point
from shared.network import MAINNET, Network

_MODES = ("bulk", "always-on")
_GOALS = {"bulk": 0.50, "always-on": 0.40}
_GOAL_CPU_US = 35
_BUFFER_BYTES = 1 << 20
_RULES = value_check.Rules(value_check.Deposits(2_000_000, 500_000_000), from_origin=True)
_BATCH_BLOCKS = batches.MAX_TRANSACTIONS // BLOCK_TRANSACTIONS
# How far the node is ahead of each block: too far for histories to be written with their indexes, or close enough, but
# not so close that batches become single blocks.
_AHEAD_BLOCKS = {"bulk": 10**7, "always-on": SECURITY_PARAMETER // 2}


class Floor(msgspec.Struct, frozen=True):
    """The COPY alone: total seconds, and Python's CPU seconds from the frames to the copied rows."""

    copy_s: float
    prepare_cpu_s: float
    postgres_cpu_s: float | None


class Run(msgspec.Struct, frozen=True):
    """From frame to commit: total seconds, those of finalize, CPU seconds, and the memory and disk space used."""

    run_s: float
    finalize_s: float
    python_cpu_s: float
    postgres_cpu_s: float | None
    peak_bytes: int
    database_bytes: int


class Playback(ogmios.Ogmios):
    """A node in this process: frames from a file, and a tip that is always as far ahead as the mode requires.

    The last block is its own tip, where bulk ends.
    """

    def __init__(self, path: Path, transactions: int, ahead_blocks: int) -> None:
        self._path, self._ahead_blocks = path, ahead_blocks
        self._last_height = transactions // BLOCK_TRANSACTIONS - 1
        self._after: bytes | None = None

    async def call(self, method: str, kind: type[Any], **params: object) -> Any:
        if method != "queryNetwork/genesisConfiguration":
            raise ogmios.Refused(f"{method}: not recorded")
        if params["era"] != "shelley":
            return kind()
        return msgspec.json.decode(genesis_path(self._path).read_bytes(), type=kind)

    async def intersect(self, points: list[Point]) -> tuple[Point | None, frames.NodePoint | None]:
        self._after = points[0].block_hash if points else None
        return points[0] if points else None, frames.NodePoint(0, "00" * 32, self._ahead_blocks)

    async def close(self) -> None:
        pass

    async def messages(self) -> AsyncGenerator[ogmios.Message, None]:
        with self._path.open("rb", _BUFFER_BYTES) as file:
            for frame in file:
                message = self._message(frame)
                if self._after is None:
                    yield message
                elif bytes.fromhex(message.block.id) == self._after:
                    self._after = None
        await asyncio.Event().wait()

    def batches(self) -> "Callable[[], list[PackedBlock]]":
        """A function that returns the blocks of the next commit; none at the end."""
        file = self._path.open("rb", _BUFFER_BYTES)
        messages = map(self._message, file)
        return lambda: [
            packed_block.pack(effects.of_block(message.block), message.tip, MAINNET)
            for message in islice(messages, _BATCH_BLOCKS)
        ]

    def _message(self, frame: bytes) -> ogmios.RollForward:
        message = read_block(frame)
        height = message.block.height
        ahead = 0 if height == self._last_height else self._ahead_blocks
        return ogmios.RollForward(message.block, msgspec.structs.replace(message.tip, height=height + ahead))


def read_block(frame: bytes) -> ogmios.RollForward:
    """The block of a frame, which is the node's tip."""
    answer = frames.read(frame)
    assert isinstance(answer, frames.NextBlock) and answer.block is not None, "only blocks are played"
    assert isinstance(answer.tip, frames.NodePoint), "a chain with blocks has a tip"
    return ogmios.RollForward(answer.block, answer.tip)


async def play(path: Path, transactions: int, ahead_blocks: int) -> Playback:
    """A connection to such a node."""
    return Playback(path, transactions, ahead_blocks)


class CommitTimes(Progress):
    """When each batch was committed; `done` is set with the last one."""

    def __init__(self, transactions: int) -> None:
        super().__init__(MAINNET)
        self.done = asyncio.Event()
        self.committed_at: list[float] = []
        self._left = transactions

    def advance(
        self,
        tip: Point,  # noqa: ARG002 - Progress passes it
        block_no: int,  # noqa: ARG002 - as before
        node_block_no: int,  # noqa: ARG002 - as before
        blocks: int,  # noqa: ARG002 - as before
        transactions: int,
    ) -> None:
        self.committed_at.append(time.perf_counter())
        self._left -= transactions
        if not self._left:
            self.done.set()


def make_chain(path: Path, transactions: int, seed: int) -> None:
    """Write a chain's frames, one per line, and its genesis beside them."""
    chain = Chain(seed)
    genesis_path(path).write_bytes(msgspec.json.encode(chain.genesis))
    with path.open("wb") as file:
        for frame in chain.frames(transactions):
            file.write(frame + b"\n")


async def floor(server_url: str, path: Path, transactions: int, mode: str) -> Floor:
    """Prepare each batch, and time its COPY."""
    in_bulk = mode == "bulk"
    copy_s = prepare_cpu_s = 0.0
    node = Playback(path, transactions, _AHEAD_BLOCKS[mode])
    take = node.batches()
    async with databases.fresh(server_url) as url:
        db, reader = await database.connect(url, MAINNET), await database.connect(url, MAINNET)
        await beginning.begin(db, MAINNET, await genesis.load(node, MAINNET))
        resolver, assets = await new_resolver(reader, MAINNET), AssetStates()
        while True:
            began_cpu = time.process_time()
            blocks = take()
            if not blocks:
                break
            first_seen = await resolver.look_up(reader, [block.lookups for block in blocks])
            built = await rows.build(blocks, first_seen, [], blocks[0].era, resolver, _RULES)
            resolver.apply(built.unspent)
            entries = None if in_bulk else await assets.entries_of(reader, built.rows)
            prepare_cpu_s += time.process_time() - began_cpu
            began = time.perf_counter()
            async with db.transaction():
                await db.execute("SET LOCAL synchronous_commit = off")
                if entries is None:
                    await forward.copy_staged(db, built.rows)
                else:
                    await forward.copy_rows(db, built.rows, entries)
                    await histories.change(db, HistoryCounts(), entries)
            copy_s += time.perf_counter() - began
        postgres_cpu_s = databases.cpu_s(db)
        await db.close()
        await reader.close()
    return Floor(copy_s, prepare_cpu_s, postgres_cpu_s)


async def run(server_url: str, path: Path, transactions: int, mode: str) -> Run:
    """The indexer's own loop from the first frame to the last commit."""
    async with databases.fresh(server_url) as url:
        began_cpu = time.process_time()
        committed_after_s, postgres_cpu_s = await follow_to_end(url, path, transactions, mode)
        readers = resource.getrusage(resource.RUSAGE_CHILDREN)
        python_cpu_s = time.process_time() - began_cpu + readers.ru_utime + readers.ru_stime
        before_last_s, last_s = committed_after_s[-2:]
        return Run(
            run_s=last_s,
            # The last block is a separate batch, and the finalize steps take the time before it.
            finalize_s=last_s - before_last_s if mode == "bulk" else 0.0,
            python_cpu_s=python_cpu_s,
            postgres_cpu_s=postgres_cpu_s,
            peak_bytes=peak_bytes() + readers.ru_maxrss * MAXRSS_BYTES,
            database_bytes=await databases.size_bytes(url, MAINNET),
        )


async def follow_to_end(url: str, path: Path, transactions: int, mode: str) -> tuple[list[float], float | None]:
    """Index a whole chain. Returns the seconds after which each batch was committed, and Postgres' CPU seconds."""
    writer, reader = await database.connect(url, MAINNET), await database.connect(url, MAINNET)
    clock = CommitTimes(transactions)
    connect = partial(play, path, transactions, _AHEAD_BLOCKS[mode])
    began = time.perf_counter()
    chase = asyncio.create_task(follow_node(connect, MAINNET, writer, reader, clock))
    done = asyncio.create_task(clock.done.wait())
    await asyncio.wait((chase, done), return_when=asyncio.FIRST_COMPLETED)
    if chase.done():
        chase.result()
    postgres_cpu_s = databases.cpu_s(writer)
    chase.cancel()
    await asyncio.wait((chase,))
    await writer.close()
    await reader.close()
    return [at - began for at in clock.committed_at], postgres_cpu_s


async def fill(url: str, path: Path, transactions: int) -> None:
    """Index a chain in bulk, to the end of bulk."""
    await follow_to_end(url, path, transactions, "bulk")
    db = await database.connect(url, MAINNET)
    await db.execute("VACUUM")
    await db.close()


async def follow_node(
    connect: Callable[[], Awaitable[ogmios.Ogmios]],
    network: Network,
    writer: asyncpg.Connection,
    reader: asyncpg.Connection,
    progress: Progress,
    moved: Callable[[], None] = lambda: None,
) -> None:
    """Open session after session, as the indexer does. `moved` is called after each commit that moves the tip."""
    while True:
        opened = await session.open_session(await connect(), network, writer)
        assert isinstance(opened, session.NodeSession), "the node is never behind"
        pipeline = Pipeline(opened, writer, reader, asyncio.Lock(), progress, NodeWarnings(), moved, connect)
        await pipeline.load()
        await lifecycle.first_of(follow.chase(opened, pipeline, connect), pipeline.write_forever())


async def _measure(transactions: int, rounds: int, seed: int, modes: tuple[str, ...]) -> None:
    console = Console()
    with TemporaryDirectory(prefix="bench_") as folder:
        async with servers.running(settings.read(), valkey=False) as running:
            url, path = running.database_url, Path(folder) / "frames"
            console.print(machine.describe(await machine.postgres_version(url)))
            make_chain(path, transactions, seed)
            size_bytes = path.stat().st_size / transactions
            console.print(
                f"{transactions:,} transactions of {size_bytes:,.0f} bytes as JSON; medians of {rounds} rounds"
            )
            floors: dict[str, list[Floor]] = {mode: [] for mode in modes}
            runs: dict[str, list[Run]] = {mode: [] for mode in modes}
            for _ in range(rounds):
                for mode in modes:
                    floors[mode].append(await apart(floor, url, path, transactions, mode))
                    runs[mode].append(await apart(run, url, path, transactions, mode))
    console.print(_table(transactions, modes, floors, runs))


def _table(
    transactions: int, modes: tuple[str, ...], floors: dict[str, list[Floor]], runs: dict[str, list[Run]]
) -> Table:
    table = Table("", *modes, title="bench.index")
    for column in table.columns[1:]:
        column.justify = "right"

    def add(name: str, show: Callable[[str], str]) -> None:
        table.add_row(name, *(show(mode) for mode in modes))

    def median(mode: str, figure: Callable[[Floor, Run], float]) -> float:
        return statistics.median(figure(*pair) for pair in zip(floors[mode], runs[mode], strict=True))

    def rate(seconds: float) -> str:
        return f"{transactions / seconds:,.0f} tx/s"

    def cpu(seconds: list[float | None]) -> str:
        known = [known_s for known_s in seconds if known_s is not None]
        return f"{statistics.median(known) / transactions * 1e6:.1f} us/tx" if known else "not local"

    add("floor: COPY of the same rows", lambda mode: rate(median(mode, lambda low, _: low.copy_s)))
    add("frame to commit", lambda mode: rate(median(mode, lambda _, run: run.run_s - run.finalize_s)))
    add(
        "  of the floor",
        lambda mode: (
            f"{median(mode, lambda low, run: low.copy_s / (run.run_s - run.finalize_s)):.2f} (goal {_GOALS[mode]})"
        ),
    )
    add("finalize", lambda mode: f"{median(mode, lambda _, run: run.finalize_s):.1f} s" if mode == "bulk" else "")
    add("  of the floor with finalize", lambda mode: f"{median(mode, lambda low, run: low.copy_s / run.run_s):.2f}")
    add(
        "Python CPU, frame to COPY",
        lambda mode: cpu([low.prepare_cpu_s for low in floors[mode]]) + f" (goal {_GOAL_CPU_US})",
    )
    add("Python CPU, all", lambda mode: cpu([run.python_cpu_s for run in runs[mode]]))
    add("Postgres CPU, end of bulk included", lambda mode: cpu([run.postgres_cpu_s for run in runs[mode]]))
    add("Postgres CPU, floor", lambda mode: cpu([low.postgres_cpu_s for low in floors[mode]]))
    add("database", lambda mode: f"{median(mode, lambda _, run: run.database_bytes) / transactions:,.0f} bytes/tx")
    add("peak memory", lambda mode: f"{median(mode, lambda _, run: run.peak_bytes) / 2**20:,.0f} MB")
    return table


def genesis_path(path: Path) -> Path:
    """Where the genesis of a chain is."""
    return path.with_suffix(".genesis")


def main(
    transactions: Annotated[int, typer.Option(min=10_000, help="Length of the chain.")] = 200_000,
    rounds: Annotated[int, typer.Option(min=1, help="Repetitions of each measurement.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the chain.")] = 1,
    mode: Annotated[list[str] | None, typer.Option(help=f"{' or '.join(_MODES)}; default: both.")] = None,
) -> None:
    """Measure the indexer against the COPY floor."""
    asyncio.run(_measure(transactions - transactions % BLOCK_TRANSACTIONS, rounds, seed, tuple(mode or _MODES)))


if __name__ == "__main__":
    typer.run(main)
