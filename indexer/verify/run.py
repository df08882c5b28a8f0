"""Recompute all derived tables from history and compare, in one snapshot beside a live indexer.

Processes, one per core, read the packed transactions part by part and add up the checksums that the derived tables must
have (`checksums`), while Postgres adds up those of the tables. Only if two differ, the tables are recomputed key by key
(`recompute`) to name the wrong rows. That is several times slower. The recomputed rows go to temporary tables of the
connection that holds the snapshot, where SQL compares them with the index. Memory is bounded by a few parts, for a
chain of any length.
"""

import asyncio
import gc
import multiprocessing
import os
import tempfile
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import asyncpg
import msgspec

from indexer.store import writer as store
from indexer.store.writer import IndexPosition
from indexer.verify import certificates, checksums, epochs, fingerprints, hashes, lists, recompute, spending, stake
from indexer.verify.results import MOST_SHOWN, CheckResult, Difference
from shared import address, database, sql
from shared.network import Network, by_name

PART_TRANSACTIONS = 20_000


class NotComplete(Exception):
    """The index is empty or in bulk, so that there is nothing to verify."""


class HelperEnded(Exception):
    """A process that reads history ended early: nothing is verified."""


Answer = TypeVar("Answer")
Item = TypeVar("Item")
Work = Callable[[asyncpg.Connection, Item], Coroutine[None, None, Answer]]
"""Work on an item, on a connection that sees the snapshot."""

Check = tuple[str, sql.Query[Difference]]
"""A derived table, and a statement that compares it: the first $1 differences."""

Progress = Callable[[str, int, int], None]
"""Called before each step with its name, the completed amount and the total."""


async def verify(
    db: asyncpg.Connection, url: str, network: Network, progress: Progress, processes: int | None = None
) -> tuple[IndexPosition, list[CheckResult]]:
    """Verify a network's index. Returns the verified tip and the checks that found differences.

    `db` is a connection to it with no other user, `url` the address of the same database. Raises NotComplete.
    """
    await make_tables(db)
    async with db.transaction(isolation="repeatable_read"):
        await db.execute("SET LOCAL work_mem = '256MB'")
        position = await store.position(db)
        if position is None or position.phase != "live":
            state = ": nothing is indexed yet" if position is None else " is in bulk"
            raise NotComplete(f"{network.name}{state}")
        async with _history(db, url, network, processes or os.cpu_count() or 1) as history:
            return position, await check_all(db, history, network, progress)


async def check_all(
    db: asyncpg.Connection, history: "History", network: Network, progress: Progress
) -> list[CheckResult]:
    """Run all checks in the open snapshot, which `history` also reads. Returns those that found differences."""
    position = await store.position(db)
    assert position is not None, "something is indexed"
    from_origin = position.first_block_no == 0
    checks = CHECKS
    try:
        agreed, found = await _agree(db, history, progress, network, from_origin=from_origin)
        if agreed:
            checks = tuple(check for check in CHECKS if check[0] in WITHOUT_CHECKSUM)
        else:
            await _recompute(db, history, progress)
    except spending.UnreadableRow as unreadable:
        return [CheckResult("tx", list(unreadable.args))]
    for place, (name, query) in enumerate(checks):
        progress(name, place, len(checks))
        found.append(CheckResult(name, await query.all(db, MOST_SHOWN)))
    progress("fingerprints, datums, scripts, lists, stake and pools", len(checks), len(checks))
    found.append(CheckResult("fingerprint", await _wrong_fingerprints(db, history)))
    found += await _wrong_hashes(history)
    found += await lists.check(db, network, from_origin=from_origin)
    found += await stake.check(db, network)
    return [result for result in found if result.differences]


async def make_tables(db: asyncpg.Connection) -> None:
    """Make the temporary tables of a connection that verifies."""
    for table in _TABLES:
        await table.run(db)
    await checksums.make_functions(db)


async def _agree(
    db: asyncpg.Connection, history: "History", progress: Progress, network: Network, *, from_origin: bool
) -> tuple[bool, list[CheckResult]]:
    """Compare the checksums, and history with itself. Returns whether the checksums match, and the other results."""
    with tempfile.TemporaryDirectory(prefix="ledgerline-verify-") as folder:
        marks = _MarkFiles(Path(folder), spending.buckets_of(history.transactions), network.name, from_origin)
        reading = asyncio.create_task(_add_up(history, marks, progress))
        try:
            # NOTE: Postgres adds up the tables while the processes read history.
            of_tables = await checksums.of_tables(db)
            genesis = await _genesis_outputs.all(db)
            of_genesis = await checksums.of_genesis(db, [(output.address, output.lovelace) for output in genesis])
            sums, value, certified, of_epochs = await reading
        finally:
            reading.cancel()
        spending.keep(spending.of_genesis(genesis), marks.folder, marks.buckets)
        suspects = set[int]()
        async for some, bucket in history.each(partial(_compared, marks), range(marks.buckets)):
            suspects |= some
            progress("outputs and the inputs that spend them", bucket + 1, marks.buckets)
    spent = await _named(db, history, suspects, progress) if suspects else []
    agreed = checksums.agree(of_genesis + sums, of_tables)
    wrong_epochs = await epochs.differences(db, network, of_epochs)
    results = {"value": value, "spending": spent, "certificates": certified, "epoch": wrong_epochs}
    return agreed, [CheckResult(name, differences[:MOST_SHOWN]) for name, differences in results.items()]


async def _add_up(
    history: "History", marks: "_MarkFiles", progress: Progress
) -> tuple[checksums.Sums, list[Difference], list[Difference], dict[int, epochs.Sums]]:
    """The checksums of history, the first transactions that don't balance or lack a source that is indexed, the first
    certificates that differ from what they changed, and the sums of epochs.
    """
    sums, wrong, outside, done = checksums.Sums(), list[Difference](), 0, 0
    certified, of_epochs = list[Difference](), dict[int, epochs.Sums]()
    async for part, transactions in history.read(partial(_read, marks)):
        sums += part.sums
        wrong += part.differences[: MOST_SHOWN - len(wrong)]
        certified += part.certified[: MOST_SHOWN - len(certified)]
        outside += part.outside
        epochs.add(of_epochs, part.of_epochs)
        done += transactions
        progress("transactions", done, history.transactions)
    if outside < 0:
        wrong.append(Difference("lovelace that certificates and proposals gave back", None, str(-outside), "0 or less"))
    return sums, wrong, certified, of_epochs


async def _named(
    db: asyncpg.Connection, history: "History", suspects: set[int], progress: Progress
) -> list[Difference]:
    """The differences of the outputs and inputs with these marks."""
    seen, done = list[spending.Sighting](), 0
    async for some, transactions in history.read(partial(_sightings, suspects)):
        seen += some
        done += transactions
        progress("transactions, to name inputs", done, history.transactions)
    genesis = await _genesis_outputs.all(db)
    return await spending.differences(db, seen + spending.genesis_sightings(genesis, suspects))


async def _recompute(db: asyncpg.Connection, history: "History", progress: Progress) -> None:
    """Fill the temporary tables."""
    done = 0
    async for part, transactions in history.read(_recomputed):
        await _keep(db, part)
        done += transactions
        progress("transactions, to name what differs", done, history.transactions)
    await _keep_genesis(db)
    await db.execute("ANALYZE address_part, stake_part, asset_part, holder_part")
    for command in _SUMS:
        await command.run(db)
    await db.execute("ANALYZE recomputed_address, recomputed_asset, recomputed_holder, recomputed_stake")


async def _keep(db: asyncpg.Connection, part: recompute.Part) -> None:
    for table, rows in (
        ("address_part", part.addresses),
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


async def _wrong_fingerprints(db: asyncpg.Connection, history: "History") -> list[Difference]:
    found: list[Difference] = []
    async for wrong, _ in history.each(fingerprints.wrong, await fingerprints.ranges(db)):
        found += wrong[: MOST_SHOWN - len(found)]
    return found


async def _wrong_hashes(history: "History") -> list[CheckResult]:
    datums, scripts = list[Difference](), list[Difference]()
    async for wrong, _ in history.read(_hashed):
        datums += wrong.datums[: MOST_SHOWN - len(datums)]
        scripts += wrong.scripts[: MOST_SHOWN - len(scripts)]
    return [CheckResult("datum", datums), CheckResult("script", scripts)]


class TransactionRange(msgspec.Struct, frozen=True):
    """A range of transactions; `next_tx_id` is not in it."""

    first_tx_id: int
    next_tx_id: int
    transactions: int


class History(ABC):
    """The packed transactions of a snapshot, in parts."""

    def __init__(self, parts: list[TransactionRange]) -> None:
        self._parts = parts
        self.transactions = sum(part.transactions for part in parts)

    async def read(self, work: "Work[TransactionRange, Answer]") -> AsyncIterator[tuple[Answer, int]]:
        """The result of `work` for each part, and the number of transactions in it."""
        async for answer, part in self.each(work, self._parts):
            yield answer, part.transactions

    @abstractmethod
    def each(self, work: "Work[Item, Answer]", items: Sequence[Item]) -> AsyncIterator[tuple[Answer, Item]]:
        """The result of `work` for each item, in order, on a connection that sees the snapshot."""


class _Apart(History):
    """Work is done by processes."""

    def __init__(self, parts: list[TransactionRange], pool: ProcessPoolExecutor, processes: int) -> None:
        super().__init__(parts)
        self._pool, self._ahead = pool, 2 * processes

    async def each(self, work: "Work[Item, Answer]", items: Sequence[Item]) -> AsyncIterator[tuple[Answer, Item]]:
        loop = asyncio.get_running_loop()
        # A few are worked on ahead, never more.
        working: deque[Awaitable[Answer]] = deque()
        for place in range(len(items) + self._ahead):
            if place < len(items):
                working.append(loop.run_in_executor(self._pool, _work, work, items[place]))
            if place >= self._ahead:
                yield await working.popleft(), items[place - self._ahead]


async def parts_of(db: asyncpg.Connection) -> list[TransactionRange]:
    """All transactions, in parts of some thousand, cut between blocks."""
    return await _parts.all(db, PART_TRANSACTIONS)


@asynccontextmanager
async def _history(db: asyncpg.Connection, url: str, network: Network, processes: int) -> AsyncIterator[History]:
    """Processes that see the snapshot of a connection. Raises HelperEnded."""
    snapshot: str = await db.fetchval("SELECT pg_export_snapshot()")
    parts = await parts_of(db)
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), initializer=_open, initargs=(url, network.name, snapshot)
    )
    try:
        yield _Apart(parts, pool, processes)
    except BrokenProcessPool as cause:
        raise HelperEnded(f"{network.name}: a process that reads history ended, so nothing is verified") from cause
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
    # NOTE: otherwise it would wait for work forever after its parent was killed, with a snapshot that blocks vacuum.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    runner = asyncio.Runner()
    db = runner.run(database.connect(url, by_name[network_name]))
    runner.run(db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
    runner.run(db.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'"))
    _worker = _Worker(runner, db)


def _work(work: "Work[Item, Answer]", item: Item) -> Answer:
    return _worker.runner.run(work(_worker.db, item))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "verify spawned this process"
    parent.join()
    os._exit(1)


async def _read(marks: "_MarkFiles", db: asyncpg.Connection, part: TransactionRange) -> "_Read":
    rows = await spending.rows_of.all(db, part.first_tx_id, part.next_tx_id)
    try:
        sums = await checksums.of(db, [(row.tx_id, row.outputs, row.inputs, row.mint, row.extra) for row in rows])
        marked = spending.marks_of(rows)
    except (msgspec.MsgspecError, AssertionError):
        spending.refuse_unreadable(rows)
        raise
    spending.keep(marked, marks.folder, marks.buckets)
    outside, wrong = 0, await spending.wrongly_unresolved(db, marked.unresolved, from_origin=marks.from_origin)
    if marks.from_origin:
        said = await spending.deposits_of.all(db, part.first_tx_id, part.next_tx_id)
        unbalanced, outside = spending.unbalanced(rows, {each.tx_id: each for each in said})
        wrong += unbalanced
    network = by_name[marks.network_name]
    certified = await certificates.wrong(db, rows, part.first_tx_id, part.next_tx_id, network)
    return _Read(sums, wrong[:MOST_SHOWN], certified[:MOST_SHOWN], outside, epochs.of(rows, network))


async def _hashed(db: asyncpg.Connection, part: TransactionRange) -> hashes.Wrong:
    return await hashes.wrong(db, part.first_tx_id, part.next_tx_id)


async def _compared(marks: "_MarkFiles", _: asyncpg.Connection, bucket: int) -> set[int]:
    return spending.compare(marks.folder, bucket)


async def _sightings(wanted: set[int], db: asyncpg.Connection, part: TransactionRange) -> list[spending.Sighting]:
    return spending.sightings(await spending.rows_of.all(db, part.first_tx_id, part.next_tx_id), wanted)


async def _recomputed(db: asyncpg.Connection, part: TransactionRange) -> recompute.Part:
    transactions = await _transactions.all(db, part.first_tx_id, part.next_tx_id)
    return recompute.of(transactions, await recompute.names_in(db, transactions))


class _MarkFiles(msgspec.Struct, frozen=True):
    """The folder and buckets of marks of outputs and inputs; the network, and whether it is indexed from the origin."""

    folder: Path
    buckets: int
    network_name: str
    from_origin: bool


class _Read(msgspec.Struct, frozen=True):
    """The results from a part of history; see spending.unbalanced for `outside`."""

    sums: checksums.Sums
    differences: list[Difference]
    certified: list[Difference]
    outside: int
    of_epochs: dict[int, epochs.Sums]


_sql = sql.beside(__file__)
_parts = _sql.query("parts", TransactionRange)
_transactions = _sql.query("transactions", recompute.PackedTransaction)
_TABLES = tuple(
    _sql.command(f"make_{table}")
    for table in (
        "address_part",
        "stake_part",
        "holder_part",
        "asset_part",
        "reference_part",
        "spent_part",
        "recomputed_address",
        "recomputed_stake",
        "recomputed_asset",
        "recomputed_holder",
    )
)
_genesis_outputs = _sql.query("genesis_outputs", spending.GenesisOutput)
_SUMS = tuple(_sql.command(f"sum_{table}") for table in ("addresses", "stakes", "assets", "holders"))
CHECKS: tuple[Check, ...] = tuple(
    (name, _sql.query(f"check_{name}", Difference))
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
"""Every derived table, in dependency order: the first difference explains those after it."""

WITHOUT_CHECKSUM = {"tip", "block", "address", "asset_bucket", "holder_bucket", "policy_holder_bucket"}
"""Those that need no recomputed table and have no checksum."""
