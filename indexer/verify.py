"""Recompute every derived figure from history and compare, in one snapshot beside a live indexer.

Processes, one per core, read the packed transactions part by part and add them up (`recount`); their sums go to
temporary tables of the connection that holds the snapshot, where SQL compares them with what the index says. Memory is
bounded by a few parts, whatever the chain's length.
"""

import asyncio
import gc
import multiprocessing
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from hashlib import blake2b

import asyncpg
import msgspec

from indexer import recount, verify_pools
from indexer.findings import MOST_SHOWN, Difference, Finding
from shared import address, database, sql
from shared.network import Network, by_name

PART_TRANSACTIONS = 20_000


class NotComplete(Exception):
    """The index has no figures to verify yet."""


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
        await _recount(db, url, network, progress, processes or os.cpu_count() or 1)
        found = []
        for place, (name, query) in enumerate(CHECKS):
            progress(name, place, len(CHECKS))
            found.append(Finding(name, await query.all(db, MOST_SHOWN)))
        progress("datum, stake and pools", len(CHECKS), len(CHECKS))
        found.append(Finding("datum", await _wrong_datums(db)))
        found += await verify_pools.findings(db, network)
        return [finding for finding in found if finding.differences]


async def make_tables(db: asyncpg.Connection) -> None:
    """Make the temporary tables of a connection that verifies."""
    for table in _TABLES:
        await table.run(db)


async def _recount(db: asyncpg.Connection, url: str, network: Network, progress: Progress, processes: int) -> None:
    """Fill the temporary tables."""
    phase = await db.fetchval("SELECT phase FROM tip")
    if phase != "live":
        raise NotComplete(f"{network.name}: nothing is indexed yet" if phase is None else f"{network.name} is in bulk")
    snapshot: str = await db.fetchval("SELECT pg_export_snapshot()")
    parts = await _parts.all(db, PART_TRANSACTIONS)
    total, done = sum(part.transactions for part in parts), 0
    progress("transactions", 0, total)
    async with _workers(url, network, snapshot, processes) as read:
        # A few parts are read ahead, never more.
        reading: deque[Awaitable[recount.Part]] = deque()
        for place in range(len(parts) + 2 * processes):
            if place < len(parts):
                reading.append(read(parts[place]))
            if len(reading) > 2 * processes or (reading and place >= len(parts)):
                part = await reading.popleft()
                await _keep(db, part)
                done += part.transactions
                progress("transactions", done, total)
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


# In the processes that read -------------------------------------------------------------------------------------------


class _Range(msgspec.Struct, frozen=True):
    """Transactions from one tx_id up to another, which is not included."""

    first_tx_id: int
    next_tx_id: int
    transactions: int


@asynccontextmanager
async def _workers(
    url: str, network: Network, snapshot: str, processes: int
) -> AsyncIterator[Callable[[_Range], Awaitable[recount.Part]]]:
    """Processes that see a snapshot and read parts of history in it."""
    loop = asyncio.get_running_loop()
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), initializer=_open, initargs=(url, network.name, snapshot)
    )
    try:
        yield lambda part: loop.run_in_executor(pool, _read, part)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class _Worker(msgspec.Struct):
    runner: asyncio.Runner
    db: asyncpg.Connection


_worker: _Worker


def _open(url: str, network_name: str, snapshot: str) -> None:
    """Connect this process to the snapshot."""
    global _worker
    gc.disable()
    runner = asyncio.Runner()
    db = runner.run(database.connect(url, by_name[network_name]))
    runner.run(db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
    runner.run(db.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'"))
    _worker = _Worker(runner, db)


def _read(part: _Range) -> recount.Part:
    """Add up a part of history."""
    rows = _worker.runner.run(_transactions.all(_worker.db, part.first_tx_id, part.next_tx_id))
    return recount.of(rows)


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
