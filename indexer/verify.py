"""Recompute every derived figure from history and compare, in one snapshot beside a live indexer.

Processes, one per core, read the packed transactions part by part and add up checksums of what the derived tables must
hold (`checksums`), while Postgres adds up the tables. Only where they differ is everything counted key by key
(`recount`), several times slower, to name what is wrong: those sums go to temporary tables of the connection that holds
the snapshot, where SQL compares them with what the index says. Memory is bounded by a few parts, whatever the chain's
length.
"""

import asyncio
import gc
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import TypeVar

import asyncpg
import msgspec

from indexer import checksums, recount, verify_pools
from indexer.findings import MOST_SHOWN, Difference, Finding
from shared import address, database, sql
from shared.network import Network, by_name

PART_TRANSACTIONS = 20_000


class NotComplete(Exception):
    """The index has no figures to verify yet."""


Answer = TypeVar("Answer")
Check = tuple[str, sql.Query[Difference]]
"""A derived table, and a statement that compares it: the first $1 differences."""

Progress = Callable[[str, int, int], None]
"""Told before each step: its name, how much is done, and of how much."""


async def verify(
    db: asyncpg.Connection, url: str, network: Network, progress: Progress, processes: int | None = None
) -> list[Finding]:
    """What is wrong with a network's index; nothing, if all is well.

    `db` is a connection to it that nobody uses otherwise, `url` leads to the same database. Raises NotComplete.
    """
    await make_tables(db)
    async with db.transaction(isolation="repeatable_read"):
        await db.execute("SET LOCAL work_mem = '256MB'")
        phase = await db.fetchval("SELECT phase FROM tip")
        if phase != "live":
            state = ": nothing is indexed yet" if phase is None else " is in bulk"
            raise NotComplete(f"{network.name}{state}")
        checks = CHECKS
        async with _history(db, url, network, processes or os.cpu_count() or 1) as history:
            if await _agree(db, history, progress):
                checks = tuple(check for check in CHECKS if check[0] in OF_THEIR_OWN)
            else:
                await _recount(db, history, progress)
        found = []
        for place, (name, query) in enumerate(checks):
            progress(name, place, len(checks))
            found.append(Finding(name, await query.all(db, MOST_SHOWN)))
        progress("datum, stake and pools", len(checks), len(checks))
        found.append(Finding("datum", await _wrong_datums(db)))
        found += await verify_pools.findings(db, network)
        return [finding for finding in found if finding.differences]


async def make_tables(db: asyncpg.Connection) -> None:
    """Make the temporary tables of a connection that verifies."""
    for table in _TABLES:
        await table.run(db)
    await checksums.make_functions(db)


async def _agree(db: asyncpg.Connection, history: "_History", progress: Progress) -> bool:
    """Whether the checksums of history are those of the derived tables."""
    reading = asyncio.create_task(_add_up(history, progress))
    try:
        # NOTE: Postgres adds up the tables while the processes read history.
        of_tables = await checksums.of_tables(db)
        of_genesis = [(output.address, output.lovelace) for output in await _genesis_outputs.all(db)]
        of_history = checksums.of_genesis(of_genesis) + await reading
    finally:
        reading.cancel()
    return checksums.agree(of_history, of_tables)


async def _add_up(history: "_History", progress: Progress) -> checksums.Sums:
    sums, done = checksums.Sums(), 0
    async for part, transactions in history.read(_checksums_of):
        sums += part
        done += transactions
        progress("transactions", done, history.transactions)
    return sums


async def _recount(db: asyncpg.Connection, history: "_History", progress: Progress) -> None:
    """Fill the temporary tables."""
    done = 0
    async for part, transactions in history.read(_recounted):
        await _keep(db, part)
        done += transactions
        progress("transactions, to name what differs", done, history.transactions)
    await _keep_genesis(db)
    await db.execute("ANALYZE address_part, stake_part, asset_part, holder_part")
    for command in _SUMS:
        await command.run(db)
    await db.execute("ANALYZE recounted_address, recounted_asset, recounted_holder, recounted_stake")


async def _keep(db: asyncpg.Connection, part: recount.Part) -> None:
    for table, rows in (
        ("address_part", part.addresses),
        ("stake_part", part.stakes),
        ("holder_part", part.holders),
        ("asset_part", part.assets),
        ("reference_part", part.reference_outputs),
        ("spent_part", part.spent_references),
    ):
        if rows:
            await db.copy_records_to_table(table, schema_name="pg_temp", records=rows)


async def _keep_genesis(db: asyncpg.Connection) -> None:
    """Genesis outputs count for their stake credentials from before the first block."""
    outputs = await _genesis_outputs.all(db)
    stakes = [(account, output.lovelace) for output in outputs if (account := address.stake_of(output.address))]
    await db.copy_records_to_table("stake_part", schema_name="pg_temp", records=stakes)


async def _wrong_datums(db: asyncpg.Connection) -> list[Difference]:
    """Datums whose hash is not theirs."""
    found: list[Difference] = []
    async for given, body in db.cursor(_datums.text, prefetch=1_000):
        digest = blake2b(body, digest_size=32).digest()
        if digest != given and len(found) < MOST_SHOWN:
            found.append(Difference("hash of datum", None, given.hex(), digest.hex()))
    return found


class _Range(msgspec.Struct, frozen=True):
    """Transactions from one tx_id up to another, which is not included."""

    first_tx_id: int
    next_tx_id: int
    transactions: int


class _History:
    """The packed transactions of a snapshot, in parts, and processes that read them."""

    def __init__(self, pool: ProcessPoolExecutor, processes: int, parts: list[_Range]) -> None:
        self._pool, self._ahead, self._parts = pool, 2 * processes, parts
        self.transactions = sum(part.transactions for part in parts)

    async def read(self, work: Callable[[_Range], Answer]) -> AsyncIterator[tuple[Answer, int]]:
        """What the processes make of each part, and how many transactions it has."""
        loop = asyncio.get_running_loop()
        # A few parts are read ahead, never more.
        reading: deque[Awaitable[Answer]] = deque()
        for place in range(len(self._parts) + self._ahead):
            if place < len(self._parts):
                reading.append(loop.run_in_executor(self._pool, work, self._parts[place]))
            if place >= self._ahead:
                yield await reading.popleft(), self._parts[place - self._ahead].transactions


@asynccontextmanager
async def _history(db: asyncpg.Connection, url: str, network: Network, processes: int) -> AsyncIterator[_History]:
    """Processes that see the snapshot of a connection."""
    snapshot: str = await db.fetchval("SELECT pg_export_snapshot()")
    parts = await _parts.all(db, PART_TRANSACTIONS)
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), initializer=_open, initargs=(url, network.name, snapshot)
    )
    try:
        yield _History(pool, processes, parts)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


# In the processes that read -------------------------------------------------------------------------------------------


class _Worker(msgspec.Struct):
    runner: asyncio.Runner
    db: asyncpg.Connection


_worker: _Worker


def _open(url: str, network_name: str, snapshot: str) -> None:
    """Connect this process to the snapshot."""
    global _worker
    gc.disable()
    # NOTE: else it would wait for work for ever where its parent was killed, with a snapshot that holds up vacuum.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    runner = asyncio.Runner()
    db = runner.run(database.connect(url, by_name[network_name]))
    runner.run(db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
    runner.run(db.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'"))
    _worker = _Worker(runner, db)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "verify spawned this process"
    parent.join()
    os._exit(1)


def _checksums_of(part: _Range) -> checksums.Sums:
    return checksums.of(_worker.runner.run(_worker.db.fetch(_transactions.text, part.first_tx_id, part.next_tx_id)))


def _recounted(part: _Range) -> recount.Part:
    return recount.of(_worker.runner.run(_transactions.all(_worker.db, part.first_tx_id, part.next_tx_id)))


class _GenesisOutput(msgspec.Struct, frozen=True):
    address: bytes
    lovelace: int


class _Datum(msgspec.Struct, frozen=True):
    hash: bytes
    body: bytes


_parts = sql.query("parts", _Range)
_transactions = sql.query("transactions", recount.PackedTransaction)
_TABLES = tuple(
    sql.command(f"make_{table}")
    for table in (
        "address_part",
        "stake_part",
        "holder_part",
        "asset_part",
        "reference_part",
        "spent_part",
        "recounted_address",
        "recounted_stake",
        "recounted_asset",
        "recounted_holder",
    )
)
_genesis_outputs = sql.query("genesis_outputs", _GenesisOutput)
_datums = sql.query("datums", _Datum)
_SUMS = tuple(sql.command(f"sum_{table}") for table in ("addresses", "stakes", "assets", "holders"))
CHECKS: tuple[Check, ...] = tuple(
    (name, sql.query(f"check_{name}", Difference))
    for name in (
        "tip",
        "block",
        "address",
        "policy",
        "asset",
        "asset_bucket",
        "address_tx",
        "asset_tx",
        "mint",
        "holder",
        "holder_bucket",
        "policy_holder",
        "policy_holder_bucket",
        "stake",
        "reference_output",
    )
)
"""Every derived table, in an order in which the first difference explains the most."""

OF_THEIR_OWN = {"tip", "block", "address", "asset_bucket", "holder_bucket", "policy_holder_bucket"}
"""Those that need nothing recounted, and have no checksum."""
