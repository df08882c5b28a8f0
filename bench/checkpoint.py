"""The measurements of `bench.growth` at one size of the index. Each step runs in a separate process."""

import logging
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import asyncpg
import msgspec
import structlog

from bench import databases, floor, lists, live
from bench.api import issue_keys, whole
from bench.chain import BLOCK_TRANSACTIONS, Chain
from bench.index import read_block
from bench.load import api_request, hear
from bench.processes import peak_bytes
from bench.verify import timed
from indexer.ogmios import connection as ogmios
from indexer.store import finish_bulk, position
from shared import database
from shared.ledger import Point
from shared.network import MAINNET

_SHORT_ROLLBACKS = 20
_FORKS = 40
FORKED_BLOCKS = 3
_REQUESTS = 40  # of each kind
_MS = 1e3
_noted = msgspec.json.Decoder(tuple[str, float])


class Branches(msgspec.Struct, frozen=True):
    """Files of blocks: the last before a checkpoint, those after it, more for forks, and the first of a new epoch.

    Those for forks are _SHORT_ROLLBACKS single ones, then _FORKS times FORKED_BLOCKS blocks followed by as many others
    that would take their place.
    """

    before: Path
    after: Path
    forks: Path
    epoch: Path


class BulkEnd(msgspec.Struct, frozen=True):
    """The end of bulk: bytes before and after it by table, seconds in total and by table, peak memory."""

    bytes_before: dict[str, int]
    bytes_after: dict[str, int]
    seconds: float
    of_tables: dict[str, float]


class Forks(msgspec.Struct, frozen=True):
    """Times in ms to undo FORKED_BLOCKS blocks and write as many others."""

    p50_ms: float
    p95_ms: float


class AtTip(msgspec.Struct, frozen=True):
    """Single blocks, rollbacks, forks of a few blocks, the first block of an epoch: times in ms, CPU in us per
    transaction, peak memory.
    """

    blocks: int
    block_p50_ms: float
    block_p99_ms: float
    python_cpu_us: float
    postgres_cpu_us: float | None
    missed_pages: float  # per block: not in Postgres' cache
    whole_pages: float  # per block: written whole to the WAL, as at a page's first change after a checkpoint
    wal_bytes: float  # per block
    rollback_ms: float  # of one block
    rollback_floor_ms: float  # the floor only deletes the same rows by key
    long_rollback_ms: float  # of all `blocks`
    long_rollback_floor_ms: float
    same_transactions: Forks
    other_transactions: Forks
    fork_floor_ms: float  # it also copies the rows back
    boundary_ms: float
    peak_mb: float


class PageTimes(msgspec.Struct, frozen=True):
    """Medians in ms of requests for one kind of list: the first time, and the second."""

    first_ms: float
    again_ms: float


class Pages(msgspec.Struct, frozen=True):
    """The times of every kind of list; `cold` if all caches were empty before."""

    cold: bool
    of: dict[str, PageTimes]
    api_mb: float


class Verified(msgspec.Struct, frozen=True):
    """The seconds that `verify` took, and its number of processes."""

    seconds: float
    processes: int


class Checkpoint(msgspec.Struct):
    """The figures of one size; None where a step is still to come."""

    transactions: int
    bulk_end: BulkEnd | None = None
    at_tip: AtTip | None = None
    pages: Pages | None = None
    verified: Verified | None = None


def branches(seed: int, saved: bytes, before: Path, folder: Path, live_blocks: int) -> Branches:
    """Write the blocks that follow a saved chain, whose last blocks are in `before`, and the first of a new epoch."""
    after, forks, epoch = folder / "chain.after", folder / "chain.forks", folder / "chain.epoch"
    chain = Chain.load(seed, saved)
    write(after, chain.frames(live_blocks * BLOCK_TRANSACTIONS))
    write(forks, _forks(chain))
    branch = Chain.load(seed, saved)
    branch.slot = MAINNET.epoch_start(MAINNET.epoch_of(branch.slot) + 1)
    write(epoch, branch.frames(BLOCK_TRANSACTIONS))
    return Branches(before, after, forks, epoch)


def _forks(chain: Chain) -> Iterator[bytes]:
    yield from chain.frames(_SHORT_ROLLBACKS * BLOCK_TRANSACTIONS)
    for seed in range(_FORKS):
        others = chain.branch(seed)
        for side in (chain, others):
            yield from side.frames(FORKED_BLOCKS * BLOCK_TRANSACTIONS)


def write(path: Path, made: Iterator[bytes]) -> None:
    """Write frames, one a line."""
    with path.open("wb") as file:
        for frame in made:
            file.write(frame + b"\n")


async def end_bulk(url: str, noted: Path) -> BulkEnd:
    """Finish the end of bulk, from where an interrupted run stopped. A file also records the seconds of each table."""

    def note(_logger: object, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
        if event["event"] == "bulk.step_completed":
            with noted.open("ab") as file:
                file.write(msgspec.json.encode((event["table"], event["seconds"])) + b"\n")
        raise structlog.DropEvent

    structlog.configure(processors=[note], wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    db = await database.connect(url, MAINNET)
    bytes_before = await _bytes_of_tables(db)
    index = await position.read(db)
    assert index is not None, "blocks are indexed"
    began = time.perf_counter()
    if index.is_bulk:
        await finish_bulk.finalize(db, index.finalize_step)
    seconds = time.perf_counter() - began
    of_tables = dict(_noted.decode_lines(noted.read_bytes())) if noted.exists() else {}
    await db.execute("VACUUM")
    bytes_after = await _bytes_of_tables(db)
    await db.close()
    return BulkEnd(bytes_before, bytes_after, max(seconds, sum(of_tables.values())), of_tables)


async def at_tip(url: str, genesis_of: Path, branches: Branches) -> AtTip:
    """Index blocks, roll back, switch between forks, and begin an epoch."""
    async with live.following(url, genesis_of) as indexer:
        point = await _reach(indexer, url, branches.before)
        blocks = await _index(indexer, url, branches.after)
        await databases.vacuum(url)  # at a real tip, autovacuum has minutes for it before a fork
        other, forks = await database.connect(url, MAINNET), _frames(branches.forks)
        short, last = await _undo_blocks(indexer, other, blocks.tip, islice(forks, _SHORT_ROLLBACKS))
        switched, last = await _switch_forks(indexer, other, last, forks)
        await indexer.take(ogmios.RollBackward(live.point_of(blocks.tip), last.tip))
        long_floor_s = await floor.undo_s(other, point)
        await other.close()
        long_s = await indexer.take(ogmios.RollBackward(point, blocks.tip.tip))
        boundary_s = await indexer.take(read_block(next(_frames(branches.epoch))))
    per_transaction = 1e6 / (len(blocks.took_s) * BLOCK_TRANSACTIONS)
    missed, written, wal = (pages / len(blocks.took_s) for pages in blocks.pages)
    return AtTip(
        blocks=len(blocks.took_s),
        block_p50_ms=statistics.median(blocks.took_s) * _MS,
        block_p99_ms=sorted(blocks.took_s)[len(blocks.took_s) * 99 // 100] * _MS,
        python_cpu_us=blocks.python_cpu_s * per_transaction,
        postgres_cpu_us=None if blocks.postgres_cpu_s is None else blocks.postgres_cpu_s * per_transaction,
        missed_pages=missed,
        whole_pages=written,
        wal_bytes=wal,
        rollback_ms=statistics.median(short.took_s) * _MS,
        rollback_floor_ms=statistics.median(short.floors_s) * _MS,
        long_rollback_ms=long_s * _MS,
        long_rollback_floor_ms=long_floor_s * _MS,
        same_transactions=_forks_of(switched.same_s),
        other_transactions=_forks_of(switched.other_s),
        fork_floor_ms=statistics.median(switched.floors_s) * _MS,
        boundary_ms=boundary_s * _MS,
        peak_mb=peak_bytes() / 2**20,
    )


class _Indexed(NamedTuple):
    """Blocks that were indexed: the last one, the seconds of each, and CPU, pages and bytes of WAL of all of them."""

    tip: ogmios.RollForward
    took_s: list[float]
    python_cpu_s: float
    postgres_cpu_s: float | None
    pages: list[int]


async def _index(indexer: live.Live, url: str, after: Path) -> _Indexed:
    took_s = list[float]()
    pages_before = await databases.page_counts(url)
    cpu_before, postgres_before = time.process_time(), databases.cpu_s(indexer.writer)
    for frame in _frames(after):
        began = time.perf_counter()
        block = read_block(frame)
        await indexer.take(block)
        took_s.append(time.perf_counter() - began)
    cpu_s, postgres_after = time.process_time() - cpu_before, databases.cpu_s(indexer.writer)
    postgres_s = None if postgres_before is None or postgres_after is None else postgres_after - postgres_before
    counted = zip(pages_before, await databases.page_counts(url), strict=True)
    return _Indexed(block, took_s, cpu_s, postgres_s, [pages - before for before, pages in counted])


class _Undone(NamedTuple):
    took_s: list[float]
    floors_s: list[float]


async def _undo_blocks(
    indexer: live.Live, other: asyncpg.Connection, tip: ogmios.RollForward, frames: Iterator[bytes]
) -> tuple[_Undone, ogmios.RollForward]:
    """Index each block after `tip`, undo it and index it again. Also returns the last block."""
    # NOTE: each fork has different blocks: repeatedly undoing the same rows would leave more and more dead ones.
    undone, last = _Undone([], []), tip
    for frame in frames:
        block = read_block(frame)
        await indexer.take(block)
        undone.floors_s.append(await floor.undo_s(other, live.point_of(last)))
        undone.took_s.append(await indexer.take(ogmios.RollBackward(live.point_of(last), block.tip)))
        await indexer.take(block)
        last = block
    return undone, last


class _Switched(NamedTuple):
    same_s: list[float]
    other_s: list[float]
    floors_s: list[float]


async def _switch_forks(
    indexer: live.Live, other: asyncpg.Connection, fork: ogmios.RollForward, frames: Iterator[bytes]
) -> tuple[_Switched, ogmios.RollForward]:
    """Index blocks after `fork`, then others with the same and with other transactions in their place, again and again.

    Also returns the last block.
    """
    switched = _Switched([], [], [])
    while blocks := [read_block(frame) for frame in islice(frames, FORKED_BLOCKS)]:
        others = [read_block(frame) for frame in islice(frames, FORKED_BLOCKS)]
        await indexer.take(*blocks)
        switched.floors_s.append(await floor.undo_s(other, live.point_of(fork), redo=True))
        for took_s, side in ((switched.same_s, _in_other_blocks(blocks)), (switched.other_s, others)):
            took_s.append(await _fork(indexer, fork, side))
            await _fork(indexer, fork, blocks)
        fork = blocks[-1]
    return switched, fork


async def _fork(indexer: live.Live, fork: ogmios.RollForward, blocks: Sequence[ogmios.RollForward]) -> float:
    """Seconds to write these blocks instead of those that follow the block `fork`."""
    return await indexer.take(ogmios.RollBackward(live.point_of(fork), blocks[-1].tip), *blocks)


def _in_other_blocks(blocks: Sequence[ogmios.RollForward]) -> list[ogmios.RollForward]:
    """The transactions of these blocks in others, each a slot later."""
    moved = list[ogmios.RollForward]()
    for message in blocks:
        block = message.block
        assert block.slot is not None, "only Byron has blocks without a slot"
        changed = {"slot": block.slot + 1, "id": block.id[::-1]}
        if moved:
            changed["ancestor"] = moved[-1].block.id
        moved.append(msgspec.structs.replace(message, block=msgspec.structs.replace(block, **changed)))
    return moved


def _forks_of(seconds: list[float]) -> Forks:
    return Forks(statistics.median(seconds) * _MS, sorted(seconds)[len(seconds) * 95 // 100] * _MS)


async def pages(url: str, redis_url: str) -> Pages:
    """Request lists from all over the chain, one after the other, then the same again. Caches are empty at first."""
    db = await database.connect(url, MAINNET)
    keys = await issue_keys(db)
    asked = await lists.requests(db, _REQUESTS, popular=False)
    await db.close()
    times: dict[str, list[float]] = {kind: [] for kind in asked}
    with TemporaryDirectory(prefix="bench_") as folder:
        async with whole(url, redis_url, 1, Path(folder)) as (port, served):
            cold = await databases.empty_caches(url)
            for _ in range(2):
                for kind, paths in asked.items():
                    requests = [api_request(path, key) for path, key in zip(paths, cycle(keys), strict=False)]
                    took_s = [(await hear(port, [request], 1, 0)).each_s[0] for request in requests]
                    times[kind].append(statistics.median(took_s) * _MS)
            api_mb = max(process.memory_info().rss for process in served) / 2**20
    return Pages(cold, {kind: PageTimes(*both) for kind, both in times.items()}, api_mb)


async def verify(url: str) -> Verified:
    """Recompute everything."""
    processes = os.cpu_count() or 1
    return Verified(await timed(url, processes), processes)


async def _reach(indexer: live.Live, url: str, before: Path) -> Point:
    """Bring the index to the last of these blocks, wherever an interrupted run left it."""
    blocks = sum(1 for _ in _frames(before))
    first, last = (read_block(next(islice(_frames(before), number, None))) for number in (0, blocks - 1))
    db = await database.connect(url, MAINNET)
    index = await position.read(db)
    await db.close()
    assert index is not None, "blocks are indexed"
    if index.block_no > last.block.height:
        await indexer.take(ogmios.RollBackward(live.point_of(last), last.tip))
    for frame in islice(_frames(before), index.block_no + 1 - first.block.height, None):
        await indexer.take(read_block(frame))
    return live.point_of(last)


def _frames(path: Path) -> Iterator[bytes]:
    with path.open("rb", 1 << 20) as file:
        yield from file


async def _bytes_of_tables(db: asyncpg.Connection) -> dict[str, int]:
    """Bytes of each table with its indexes, the largest first."""
    rows = await db.fetch(
        "SELECT relname, pg_total_relation_size(oid) AS bytes FROM pg_class"
        " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY 2 DESC"
    )
    return {row["relname"]: row["bytes"] for row in rows}
