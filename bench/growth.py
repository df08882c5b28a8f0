"""`python -m bench.growth --transactions N`: the cost of a large index, and whether it grows with the index.

A chain of `bench.chain` is made in pieces, and the indexer indexes each in bulk while nothing else runs. At 1, 10 and
30 million transactions and at the end, `bench.checkpoint` measures a copy of the index: the end of bulk, blocks at the
tip, rollbacks, an epoch's boundary, pages of every list, `verify`. All results are noted in DATA_DIR/growth; after a
kill, the same command resumes. At the end it drops its database and keeps the notes; another run shows them.
"""

import asyncio
import shutil
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import asyncpg
import msgspec
import psutil
import typer
from rich.console import Console

from bench import checkpoint, databases, growth_tables, machine
from bench.chain import BLOCK_SLOTS, BLOCK_TRANSACTIONS, FIRST_SLOT, Chain
from bench.checkpoint import Branches
from bench.growth_notes import Piece, RunNotes
from bench.index import Playback, follow_node, genesis_path, read_block
from bench.processes import Child, Parent, apart, beside
from indexer.ogmios import connection as ogmios
from indexer.ogmios import frames
from indexer.store import position
from indexer.sync import batches
from indexer.sync.progress import Progress
from shared import database, schema, servers, settings
from shared.ledger import Point
from shared.network import MAINNET

_MAX_PIECE = 100_000  # transactions
_PIECES = 10
_SAVE_EVERY = 5  # pieces
_BATCH_BLOCKS = batches.MAX_TRANSACTIONS // BLOCK_TRANSACTIONS
_AHEAD_BLOCKS = 10**7
_LOOK_EVERY_S = 0.05
_NAME = "bench_growth"
_COPY = "bench_growth_copy"

# Bytes per transaction, generously estimated: in the database, of a piece as JSON, of the saved state of the chain.
_DATABASE_BYTES, _PIECE_BYTES, _STATE_BYTES = 2_200, 6_000, 60


class CannotBegin(Exception):
    """The run can't begin. The message is one line for the user."""


class Pieces(Playback):
    """A node in the indexer's process: pieces of the chain as they appear, and a tip that is always far ahead."""

    def __init__(self, folder: Path, blocks: int) -> None:
        super().__init__(folder / "chain", 0, _AHEAD_BLOCKS)
        self._folder, self._blocks = folder, blocks
        self._height = 0

    async def intersect(self, points: list[Point]) -> tuple[Point | None, frames.NodePoint | None]:
        if points:
            self._height = (points[0].slot_no - FIRST_SLOT) // BLOCK_SLOTS + 1
        return points[0] if points else None, frames.NodePoint(0, "00" * 32, _AHEAD_BLOCKS)

    async def messages(self) -> AsyncGenerator[ogmios.Message, None]:
        while True:
            number, skipped = divmod(self._height, self._blocks)
            path = _piece_path(self._folder, number)
            while not path.exists():
                await asyncio.sleep(_LOOK_EVERY_S)
            with path.open("rb", 1 << 20) as file:
                for frame in islice(file, skipped, None):
                    message = read_block(frame)
                    tip = msgspec.structs.replace(message.tip, height=message.tip.height + _AHEAD_BLOCKS)
                    self._height += 1
                    yield ogmios.RollForward(message.block, tip)


async def _pieces(folder: Path, blocks: int) -> Pieces:
    return Pieces(folder, blocks)


class _Committed(Progress):
    """Reports each commit to the parent: the number of its last block, and the time."""

    def __init__(self, parent: Parent) -> None:
        super().__init__(MAINNET)
        self._parent = parent

    def advance(self, tip: Point, block_no: int, node_block_no: int, blocks: int, transactions: int) -> None:
        super().advance(tip, block_no, node_block_no, blocks, transactions)
        self._parent.tell((block_no, time.monotonic()))


async def _fill(parent: Parent, url: str, folder: Path, blocks: int) -> None:
    """Index pieces in bulk until cancelled."""
    writer, reader = await database.connect(url, MAINNET), await database.connect(url, MAINNET)
    await follow_node(partial(_pieces, folder, blocks), MAINNET, writer, reader, _Committed(parent))


class Growth:
    """One run, which resumes where the last one was killed."""

    def __init__(self, folder: Path, notes: RunNotes, server_url: str, redis_url: str, console: Console) -> None:
        self._folder, self._notes, self._console = folder, notes, console
        self._server_url, self._redis_url = server_url, redis_url
        self._url = databases.url_of(server_url, _NAME)
        self._piece = piece_of(notes.transactions)
        self._blocks = self._piece // BLOCK_TRANSACTIONS
        self._wanted = checkpoints_of(notes.transactions)
        self._filler: Child | None = None
        self._filling = AsyncExitStack()
        self._began_s, self._began_at = time.monotonic(), 0

    async def run(self) -> None:
        """Run to the end."""
        chain = await self._begun()
        self._began_at = chain.height * BLOCK_TRANSACTIONS
        async with self._filling:
            while True:
                done = chain.height * BLOCK_TRANSACTIONS
                if done in self._wanted:
                    await self._measure(chain, done)
                if done == self._notes.transactions:
                    break
                await self._grow(chain)
        self._notes.done = True
        self._notes.write(self._folder)
        await self._drop(_NAME)
        for path in self._folder.glob("chain*"):
            path.unlink()

    async def _begun(self) -> Chain:
        """The last saved chain, or a new one with an empty database."""
        saved = self._folder / "chain.saved"
        if saved.exists():
            return await asyncio.to_thread(Chain.load, self._notes.seed, saved.read_bytes())
        chain = Chain(self._notes.seed)
        genesis_path(self._folder / "chain").write_bytes(msgspec.json.encode(chain.genesis))
        await self._drop(_NAME)
        await self._owner(f"CREATE DATABASE {_NAME}")
        db = await asyncpg.connect(self._url)
        await schema.migrate(db)
        await db.close()
        self._save(chain)
        self._notes.write(self._folder)
        return chain

    async def _grow(self, chain: Chain) -> None:
        """Make the next piece, and wait until it is indexed."""
        number = chain.height // self._blocks
        path = _piece_path(self._folder, number)
        await asyncio.to_thread(checkpoint.write, path.with_suffix(".unfinished"), chain.frames(self._piece))
        started_s = time.monotonic()
        path.with_suffix(".unfinished").replace(path)
        before = await self._block_no()
        # NOTE: bulk commits whole batches, which end elsewhere after a kill; the rest is committed with the next piece.
        last = before + (chain.height - 1 - before) // _BATCH_BLOCKS * _BATCH_BLOCKS
        if last > before:
            filler = await self._filler_at_work()
            reached, at_s = before, started_s
            while reached < last:
                reached, at_s = await filler.hear()
            await self._note(filler, chain, (last - before) * BLOCK_TRANSACTIONS, at_s - started_s)
        _piece_path(self._folder, number - 2).unlink(missing_ok=True)
        if (number + 1) % _SAVE_EVERY == 0 or chain.height * BLOCK_TRANSACTIONS in self._wanted:
            await asyncio.to_thread(self._save, chain)

    async def _measure(self, chain: Chain, transactions: int) -> None:
        """Run the remaining steps of a checkpoint, in a copy of the index or, at the end, in the index itself."""
        await self._filling.aclose()
        self._filler = None
        notes = self._notes.checkpoint(transactions)
        if notes.verified is not None:
            return
        copied = transactions < self._notes.transactions
        url = databases.url_of(self._server_url, _COPY) if copied else self._url
        if copied and notes.bulk_end is None:
            await self._copy()
        branches = await asyncio.to_thread(self._branches, chain)
        ended = self._folder / f"bulk-end-{transactions}.jsonl"
        for name, work, arguments in (
            ("bulk_end", checkpoint.end_bulk, (url, ended)),
            ("at_tip", checkpoint.at_tip, (url, self._folder / "chain", branches)),
            ("pages", checkpoint.pages, (url, self._redis_url)),
            ("verified", checkpoint.verify, (url,)),
        ):
            if getattr(notes, name) is None:
                self._console.print(f"  {transactions:,}: {name.replace('_', ' ')} ...")
                setattr(notes, name, await apart(work, *arguments))
                self._notes.write(self._folder)
        for table in growth_tables.of_checkpoints([notes]):
            self._console.print(table)
        await self._drop(_COPY)

    def _branches(self, chain: Chain) -> Branches:
        """The blocks after this point. Other copies of the chain make them, so this one does not change."""
        saved = (self._folder / "chain.saved").read_bytes()
        before = _piece_path(self._folder, chain.height // self._blocks - 1)
        return checkpoint.branches(self._notes.seed, saved, before, self._folder, self._notes.live_blocks)

    async def _filler_at_work(self) -> Child:
        if self._filler is None:
            working = beside(_fill, self._url, self._folder, self._blocks)
            self._filler = await self._filling.enter_async_context(working)
        return self._filler

    async def _note(self, filler: Child, chain: Chain, transactions: int, seconds: float) -> None:
        """Note and show a piece."""
        indexer = psutil.Process(filler.pid)
        reader_mb = sum(child.memory_info().rss for child in indexer.children(recursive=True)) / 2**20
        last, whole = chain.height * BLOCK_TRANSACTIONS, self._notes.transactions
        piece = Piece(
            last=last,
            transactions=transactions,
            seconds=seconds,
            database_bytes=await databases.size_bytes(self._url, MAINNET),
            indexer_mb=indexer.memory_info().rss / 2**20,
            reader_mb=reader_mb,
            postgres_mb=await self._postgres_mb(),
        )
        self._notes.pieces.append(piece)
        self._notes.write(self._folder)
        left_s = (time.monotonic() - self._began_s) / (last - self._began_at) * (whole - last)
        self._console.print(
            f"{last:,} of {whole:,} ({last / whole:.0%}): {transactions / seconds:,.0f} transactions/s,"
            f" {piece.database_bytes / 1e9:.1f} GB, indexer {piece.indexer_mb:.0f} MB;"
            f" about {left_s / 3600:.1f} h left, plus the measurements of checkpoints"
        )

    async def _postgres_mb(self) -> float | None:
        """The memory of the larger of the indexer's two backends, without shared memory."""
        db = await asyncpg.connect(self._url)
        pids = await db.fetch(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        await db.close()
        try:
            return max(float(psutil.Process(row["pid"]).memory_full_info().uss) for row in pids) / 2**20
        except (psutil.Error, ValueError):
            return None

    async def _block_no(self) -> int:
        db = await database.connect(self._url, MAINNET)
        index = await position.read(db)
        await db.close()
        return -1 if index is None else index.block_no

    async def _copy(self) -> None:
        """Copy the database, once the connections of the killed indexer are gone."""
        await self._drop(_COPY)
        self._console.print("  copying the database ...")
        until = time.monotonic() + 60
        while True:
            try:
                return await self._owner(f"CREATE DATABASE {_COPY} TEMPLATE {_NAME} STRATEGY FILE_COPY")
            except asyncpg.ObjectInUseError:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(_LOOK_EVERY_S)

    async def _drop(self, name: str) -> None:
        await self._owner(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    async def _owner(self, statement: str) -> None:
        db = await asyncpg.connect(self._server_url)
        await db.execute(statement)
        await db.close()

    def _save(self, chain: Chain) -> None:
        unfinished = self._folder / "chain.unsaved"
        unfinished.write_bytes(chain.save())
        unfinished.replace(self._folder / "chain.saved")


def piece_of(transactions: int) -> int:
    """The number of transactions in a piece, for whole batches and at least ten pieces."""
    most = min(_MAX_PIECE, transactions // _PIECES)
    return most - most % batches.MAX_TRANSACTIONS


def checkpoints_of(transactions: int) -> list[int]:
    """The sizes at which a checkpoint is measured."""
    return [size for size in (1_000_000, 10_000_000, 30_000_000) if size < transactions] + [transactions]


def disk_bytes(transactions: int, live_blocks: int) -> int:
    """The most disk space that a run needs: the database, a copy at a checkpoint, pieces, the state of the chain."""
    copied = [0, *checkpoints_of(transactions)][-2]
    return (
        max(transactions, 2 * copied) * _DATABASE_BYTES
        + 3 * piece_of(transactions) * _PIECE_BYTES
        + 2 * transactions * _STATE_BYTES
        + live_blocks * BLOCK_TRANSACTIONS * _PIECE_BYTES
    )


def _begin(folder: Path, transactions: int, seed: int, live_blocks: int, described: str, console: Console) -> RunNotes:
    """The notes of an interrupted run, or of a new one if the disk has room for it. Raises CannotBegin."""
    notes = RunNotes.read(folder)
    if notes is not None:
        if (notes.transactions, notes.seed, notes.live_blocks) != (transactions, seed, live_blocks):
            raise CannotBegin(
                f"{folder} has the notes of --transactions {notes.transactions} --seed {notes.seed}"
                f" --live-blocks {notes.live_blocks}: pass these to resume, or delete the folder to start over"
            )
        return notes
    needed, free = disk_bytes(transactions, live_blocks), shutil.disk_usage(folder).free
    console.print(f"The run needs up to {needed / 1e9:.0f} GB; {free / 1e9:.0f} GB are free at {folder}.")
    if needed > free:
        raise CannotBegin("there is too little space; choose fewer --transactions, or another DATA_DIR")
    return RunNotes(transactions, seed, live_blocks, described)


async def _run(transactions: int, seed: int, live_blocks: int) -> None:
    console, ours = Console(), settings.read()
    folder = ours.data_dir / "growth"
    folder.mkdir(parents=True, exist_ok=True)
    async with servers.running(ours) as running:
        described = machine.describe(await machine.postgres_version(running.database_url))
        notes = _begin(folder, transactions, seed, live_blocks, described, console)
        if not notes.done:
            await Growth(folder, notes, running.database_url, running.redis_url, console).run()
        console.print(notes.machine)
        for table in (growth_tables.of_pieces(notes), *growth_tables.of_checkpoints(notes.checkpoints)):
            console.print(table)


def _piece_path(folder: Path, number: int) -> Path:
    return folder / f"chain-{number}.piece"


def main(
    transactions: Annotated[int, typer.Option(min=100_000, help="Length of the chain.")] = 30_000_000,
    seed: Annotated[int, typer.Option(help="Seed of the chain.")] = 1,
    live_blocks: Annotated[int, typer.Option(min=100, help="Blocks that each checkpoint indexes at the tip.")] = 2_160,
) -> None:
    """Measure what grows with the index."""
    try:
        asyncio.run(_run(transactions - transactions % piece_of(transactions), seed, live_blocks))
    except CannotBegin as cause:
        typer.echo(str(cause), err=True)
        raise typer.Exit(2) from cause


if __name__ == "__main__":
    typer.run(main)
