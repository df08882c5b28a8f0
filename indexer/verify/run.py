"""Recompute all derived tables from history and compare, in one snapshot beside a live indexer.

Processes, one per core, read the packed transactions part by part and add up the checksums that the derived tables must
have (`checksums`), while Postgres adds up those of the tables. Only if two differ, the tables are recomputed key by key
(`recompute`) to name the wrong rows. That is several times slower. The recomputed rows go to temporary tables of the
connection that holds the snapshot, where SQL compares them with the index. Memory is bounded by a few
parts, and by the addresses that moved in two epochs, for a chain of any length.
"""

import asyncio
import gc
import multiprocessing
import os
import tempfile
import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
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
from indexer.verify import (
    balances,
    certificates,
    checksums,
    consistency,
    epochs,
    fingerprints,
    flows,
    hashes,
    histories,
    recompute,
    spenders,
    spending,
    stake,
)
from indexer.verify.results import MOST_SHOWN, CheckResult, Difference
from shared import address, database, sql
from shared.ledger import AddressNo
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
    with tempfile.TemporaryDirectory(prefix="ledgerline-verify-") as folder:
        partitions = spending.partitions_of(history.transactions)
        snapshots = await stake.snapshots(db, network)
        context = _Context(Path(folder), partitions, network.name, position.first_block_no == 0, snapshots)
        try:
            found = await _check_all(db, history, network, context, progress)
        except spending.UnreadableRow as unreadable:
            found = [CheckResult("tx", list(unreadable.args))]
    return [result for result in found if result.differences]


async def _check_all(
    db: asyncpg.Connection, history: "History", network: Network, context: "_Context", progress: Progress
) -> list[CheckResult]:
    """The results of all checks. Raises UnreadableRow."""
    genesis, ranges = await _genesis_outputs.all(db), await _ranges_of(db)
    of_genesis = await checksums.of_genesis(db, genesis)
    read, tables = await _read_and_compare(db, history, network, context, ranges, progress)
    sums = of_genesis + read.transactions.sums
    suspects = await _suspects(history, context, genesis, progress) if sums.spending else read.suspects
    spent = await _differences_behind(db, history, suspects, progress) if suspects else []
    found = [
        CheckResult("value", read.transactions.value),
        CheckResult("spending", spent[:MOST_SHOWN]),
        CheckResult("certificates", read.transactions.certified),
        CheckResult("epoch", await epochs.differences(db, network, read.transactions.of_epochs)),
    ]
    if checksums.agree(sums, tables.sums | read.histories):
        found += tables.checks
    else:
        found += await _recomputed_checks(db, history, progress)
    found.append(await stake.check_snapshots(db, context.snapshots, read.transactions.moved))
    return [*found, *read.hashes_and_fingerprints, *tables.consistency]


async def _read_and_compare(
    db: asyncpg.Connection,
    history: "History",
    network: Network,
    context: "_Context",
    ranges: "_Ranges",
    progress: Progress,
) -> tuple["_OfHistory", "_OfTables"]:
    """What the processes find in history while this connection compares tables. Raises UnreadableRow.

    NOTE: at the same time, since neither keeps all cores busy to its end.
    """
    comparing = asyncio.create_task(_compare_tables(db, network, from_origin=context.from_origin))
    reading = asyncio.create_task(_read_history(history, context, ranges, progress))
    try:
        read = await reading
        progress("tables", 0, 1)
        return read, await comparing
    except spending.UnreadableRow:
        # Not cancelled, since that would end the snapshot.
        await asyncio.wait([comparing])
        raise
    finally:
        for task in (reading, comparing):
            task.cancel()
        await asyncio.gather(reading, comparing, return_exceptions=True)


async def make_tables(db: asyncpg.Connection) -> None:
    """Make the temporary tables of a connection that verifies."""
    for table in _TABLES:
        await table.run(db)
    await checksums.make_functions(db)


async def _ranges_of(db: asyncpg.Connection) -> "_Ranges":
    return _Ranges(await histories.ranges(db), await fingerprints.ranges(db))


async def _compare_tables(db: asyncpg.Connection, network: Network, *, from_origin: bool) -> "_OfTables":
    """All that Postgres does alone: checksums of tables, and comparisons that need nothing from history."""
    return _OfTables(
        sums=await checksums.of_tables(db),
        checks=[
            CheckResult(name, await query.all(db, MOST_SHOWN)) for name, query in CHECKS if name in WITHOUT_CHECKSUM
        ],
        consistency=[*await consistency.check(db, network, from_origin=from_origin), *await stake.check(db, network)],
    )


async def _read_history(history: "History", context: "_Context", ranges: "_Ranges", progress: Progress) -> "_OfHistory":
    """All that the processes do."""
    added_up = await _add_up(history, context, progress)
    of_histories = await _of_histories(history, ranges.histories, progress)
    progress("inputs from before the first block, fingerprints, datums and scripts", 0, 1)
    suspects = await _compare_marks(history, context)
    wrong = CheckResult("fingerprint", await _wrong_fingerprints(history, ranges.assets))
    wrong_hashes = await _wrong_hashes(history)
    return _OfHistory(added_up, of_histories, suspects, [wrong, *wrong_hashes])


async def _add_up(history: "History", context: "_Context", progress: Progress) -> "_Read":
    """The sums of all parts, and the first differences."""
    sums, wrong, done = checksums.Sums(), list[Difference](), 0
    certified, of_epochs = list[Difference](), dict[int, epochs.Sums]()
    moved = [Counter[AddressNo]() for _ in context.snapshots]
    async for part, transactions in history.read(partial(_read, context)):
        sums += part.sums
        wrong += part.value[: MOST_SHOWN - len(wrong)]
        certified += part.certified[: MOST_SHOWN - len(certified)]
        epochs.add(of_epochs, part.of_epochs)
        for total, of_part in zip(moved, part.moved, strict=True):
            total.update(of_part)
        done += transactions
        progress("transactions", done, history.transactions)
    return _Read(sums, wrong, certified, of_epochs, moved)


async def _of_histories(
    history: "History", ranges: list[histories.HistoryRange], progress: Progress
) -> dict[str, str | None]:
    """The checksum of each table of histories, as text; None if its rows are inconsistent."""
    totals, inconsistent = Counter[str](), set[str]()
    done = 0
    async for found, part in history.each(histories.added_up, ranges):
        totals[part.history] += found.total
        if not found.consistent:
            inconsistent.add(part.history)
        done += 1
        progress("histories", done, len(ranges))
    return {name: None if name in inconsistent else str(total) for name, total in totals.items()}


async def _compare_marks(history: "History", context: "_Context") -> set[int]:
    """Suspect marks among those that were kept."""
    suspects = set[int]()
    async for some, _ in history.each(partial(_compared, context), range(context.partitions)):
        suspects |= some
    return suspects


async def _suspects(
    history: "History", context: "_Context", genesis: list[spending.GenesisOutput], progress: Progress
) -> set[int]:
    """Suspect marks of all outputs and inputs, if their sums differ."""
    done = 0
    spending.keep(spending.of_genesis(genesis), context.folder, context.partitions)
    async for _, transactions in history.read(partial(_marked, context)):
        done += transactions
        progress("transactions, to match inputs with outputs", done, history.transactions)
    return await _compare_marks(history, context)


async def _differences_behind(
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


async def _recomputed_checks(db: asyncpg.Connection, history: "History", progress: Progress) -> list[CheckResult]:
    """The results of CHECKS, with recomputed tables."""
    spent, found = await _recompute(db, history, progress), list[CheckResult]()
    for place, (name, query) in enumerate(CHECKS):
        progress(name, place, len(CHECKS))
        differences = await query.all(db, MOST_SHOWN)
        found.append(CheckResult(name, (spent + differences)[:MOST_SHOWN] if name == "spender" else differences))
    return found


async def _recompute(db: asyncpg.Connection, history: "History", progress: Progress) -> list[Difference]:
    """Fill the temporary tables. Returns the first outputs whose spenders differ."""
    done, spent = 0, Counter[int]()
    async for part, transactions in history.read(_recomputed):
        await _keep(db, part)
        spent.update(part.spending)
        done += transactions
        progress("transactions, to name what differs", done, history.transactions)
    genesis, of_genesis = await _genesis_outputs.all(db), await spenders.of_genesis(db)
    await _keep_genesis(db, genesis, of_genesis)
    spent.update(spenders.sums_of_genesis(genesis, of_genesis))
    await db.execute("ANALYZE address_part, account_part, utxo_part, stake_part, asset_part, holder_part")
    for command in _SUMS:
        await command.run(db)
    await db.execute(
        "ANALYZE recomputed_address, recomputed_account, recomputed_asset, recomputed_holder, recomputed_stake"
    )
    wrong = frozenset(sorted(partition for partition, total in spent.items() if total)[:MOST_SHOWN])
    if not wrong:
        return []
    return await _wrong_spenders(history, wrong, spenders.seen_of_genesis(genesis, of_genesis, wrong), progress)


async def _wrong_spenders(
    history: "History", wrong: frozenset[int], seen: spenders.Seen, progress: Progress
) -> list[Difference]:
    """The first outputs whose spenders differ, of these partitions; `seen` are the spendings of genesis outputs."""
    done = 0
    async for part, transactions in history.read(partial(_spenders_seen, wrong)):
        seen.add(part)
        done += transactions
        progress("transactions, to name spenders", done, history.transactions)
    return seen.differences()


async def _keep(db: asyncpg.Connection, part: recompute.RecomputedRows) -> None:
    for table, rows in (
        ("address_part", part.addresses),
        ("account_part", part.accounts),
        ("utxo_part", part.utxos),
        ("holder_part", part.holders),
        ("asset_part", part.assets),
        ("reference_part", part.reference_outputs),
        ("spent_part", part.spent_references),
    ):
        if rows:
            await db.copy_records_to_table(table, schema_name="pg_temp", records=rows)


async def _keep_genesis(
    db: asyncpg.Connection, outputs: list[spending.GenesisOutput], rows: list[spenders.SpenderRow]
) -> None:
    """Genesis outputs exist, and count for their stake credentials, from before the first block."""
    spent, _ = spenders.spent_in(rows)
    unspent = [output for output in outputs if spenders.output_no(output.tx_id, 0) not in spent]
    utxos = [(output.tx_id, 0, output.lovelace, output.address_no, None) for output in unspent]
    await db.copy_records_to_table("utxo_part", schema_name="pg_temp", records=utxos)
    stakes = [(account, output.lovelace) for output in outputs if (account := address.stake_of(output.address))]
    await db.copy_records_to_table("stake_part", schema_name="pg_temp", records=stakes)


async def _wrong_fingerprints(history: "History", ranges: list[fingerprints.AssetRange]) -> list[Difference]:
    found: list[Difference] = []
    async for wrong, _ in history.each(fingerprints.wrong, ranges):
        found += wrong[: MOST_SHOWN - len(found)]
    return found


async def _wrong_hashes(history: "History") -> list[CheckResult]:
    datums, scripts = list[Difference](), list[Difference]()
    async for wrong, _ in history.read(_hashed):
        datums += wrong.datums[: MOST_SHOWN - len(datums)]
        scripts += wrong.scripts[: MOST_SHOWN - len(scripts)]
    return [CheckResult("datum", datums), CheckResult("script", scripts)]


class _Ranges(msgspec.Struct, frozen=True):
    """What the processes work on besides transactions."""

    histories: list[histories.HistoryRange]
    assets: list[fingerprints.AssetRange]


class _OfHistory(msgspec.Struct, frozen=True):
    """What the processes found: in transactions and in histories, suspect marks of inputs, and wrong hashes and
    fingerprints.
    """

    transactions: "_Read"
    histories: dict[str, str | None]
    suspects: set[int]
    hashes_and_fingerprints: list[CheckResult]


class _OfTables(msgspec.Struct, frozen=True):
    """What Postgres found: checksums of tables, and the results of the checks in WITHOUT_CHECKSUM and of others that
    need nothing from history.
    """

    sums: dict[str, str | None]
    checks: list[CheckResult]
    consistency: list[CheckResult]


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
    else:
        # One that was started last and got no work may not have opened the snapshot yet, which ends with this block.
        await asyncio.to_thread(pool.shutdown)
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


async def _read(context: "_Context", db: asyncpg.Connection, part: TransactionRange) -> "_Read":
    network = by_name[context.network_name]
    ends = part.first_tx_id, part.next_tx_id
    rows, spender_rows = await _rows_of(db, part)
    try:
        spent, disordered = spenders.spent_in(spender_rows)
        flowing = flows.of(rows, spent, [snapshot.first_tx_id for snapshot in context.snapshots])
        sums = await checksums.of(db, flowing, disordered)
    except (msgspec.MsgspecError, AssertionError):
        spending.refuse_unreadable(rows)
        raise
    spending.keep(spending.Marks(before=flowing.before), context.folder, context.partitions)
    wrong = await spending.wrongly_unresolved(db, flowing.unresolved, from_origin=context.from_origin)
    if context.from_origin:
        wrong += balances.unbalanced(rows, flowing)
    certified = await certificates.wrong(db, rows, *ends, network)
    of_epochs = epochs.of(rows, flowing.lovelace_out, network)
    return _Read(sums, wrong[:MOST_SHOWN], certified[:MOST_SHOWN], of_epochs, flowing.net_lovelace)


async def _marked(context: "_Context", db: asyncpg.Connection, part: TransactionRange) -> None:
    rows = await spending.rows_of.all(db, part.first_tx_id, part.next_tx_id)
    spending.keep(spending.marks_of(rows), context.folder, context.partitions)


async def _hashed(db: asyncpg.Connection, part: TransactionRange) -> hashes.Wrong:
    return await hashes.wrong(db, part.first_tx_id, part.next_tx_id)


async def _compared(context: "_Context", _: asyncpg.Connection, partition: int) -> set[int]:
    return spending.compare(context.folder, partition)


async def _sightings(wanted: set[int], db: asyncpg.Connection, part: TransactionRange) -> list[spending.Sighting]:
    return spending.sightings(await spending.rows_of.all(db, part.first_tx_id, part.next_tx_id), wanted)


async def _recomputed(db: asyncpg.Connection, part: TransactionRange) -> recompute.RecomputedRows:
    transactions, rows = await _rows_of(db, part)
    return recompute.of(transactions, await recompute.look_up(db, transactions, rows))


async def _spenders_seen(partitions: frozenset[int], db: asyncpg.Connection, part: TransactionRange) -> spenders.Seen:
    return spenders.seen(*await _rows_of(db, part), partitions)


async def _rows_of(
    db: asyncpg.Connection, part: TransactionRange
) -> tuple[list[spending.Row], list[spenders.SpenderRow]]:
    """The transactions of a part, and what spent their outputs."""
    ends = part.first_tx_id, part.next_tx_id
    return await spending.rows_of.all(db, *ends), await spenders.of_slots(db, *ends)


class _Context(msgspec.Struct, frozen=True):
    """What the processes need to know: the folder of the marks of outputs and inputs and the number of its partitions,
    the network, whether it is indexed from the origin, and the snapshots of stakes to compare.

    Marks of inputs from before the first block are kept at once, the others only if inputs and outputs differ.
    """

    folder: Path
    partitions: int
    network_name: str
    from_origin: bool
    snapshots: list[stake.Snapshot]


class _Read(msgspec.Struct, frozen=True):
    """The results from a part of history or all of it: the checksums, the first transactions that don't balance or lack
    a source that is indexed, the first certificates that differ from what they changed, and the sums of epochs; see
    Flows for `moved`.
    """

    sums: checksums.Sums
    value: list[Difference]
    certified: list[Difference]
    of_epochs: dict[int, epochs.Sums]
    moved: Sequence[Mapping[AddressNo, int]]


_sql = sql.beside(__file__)
_parts = _sql.query("parts", TransactionRange)
_TABLES = tuple(
    _sql.command(f"make_{table}")
    for table in (
        "address_part",
        "account_part",
        "utxo_part",
        "stake_part",
        "holder_part",
        "asset_part",
        "reference_part",
        "spent_part",
        "recomputed_address",
        "recomputed_account",
        "recomputed_stake",
        "recomputed_asset",
        "recomputed_holder",
    )
)
_genesis_outputs = _sql.query("genesis_outputs", spending.GenesisOutput)
_SUMS = tuple(_sql.command(f"sum_{table}") for table in ("addresses", "accounts", "stakes", "assets", "holders"))


def _check(name: str) -> Check:
    return name, _sql.query(f"check_{name}", Difference)


def _history_check(history: str, owner_no: str, owner: str, recomputed: str) -> Check:
    parts = {"history": history, "owner_no": owner_no, "owner": owner, "recomputed": recomputed}
    return history, _sql.query("check_txs", Difference, **parts)


def _list_check(kind: str, table: str, owner_no: str) -> Check:
    parts = {"owner_no": owner_no, kind: table}
    return table, _sql.query(f"check_utxo_{kind}", Difference, **parts)


def _holder_bucket_check(holder: str, held_no: str, owner_no: str) -> Check:
    query = _sql.query("check_holder_bucket", Difference, holder=holder, held_no=held_no, owner_no=owner_no)
    return f"{holder}_bucket", query


CHECKS: tuple[Check, ...] = (
    *map(_check, ("tip", "block", "address", "policy", "asset", "asset_bucket")),
    _history_check("address_tx", "address_no", "address", "recomputed_address"),
    _history_check("account_tx", "stake_no", "stake", "recomputed_account"),
    *map(_check, ("account_withdrawal", "asset_tx", "mint", "spender", "utxo")),
    _list_check("bucket", "utxo_bucket", "address_no"),
    _list_check("bucket", "account_utxo_bucket", "stake_no"),
    _list_check("asset", "utxo_asset", "address_no"),
    _list_check("asset", "account_utxo_asset", "stake_no"),
    *map(_check, ("holder", "policy_holder", "account_holder", "policy_account_holder")),
    _holder_bucket_check("holder", "asset_no", "address_no"),
    _holder_bucket_check("policy_holder", "policy_no", "address_no"),
    _holder_bucket_check("account_holder", "asset_no", "account_no"),
    _holder_bucket_check("policy_account_holder", "policy_no", "account_no"),
    *map(_check, ("stake", "address_count", "reference_output")),
)
"""Every derived table, in dependency order: the first difference explains those after it."""

WITHOUT_CHECKSUM = {
    *("tip", "block", "address", "asset_bucket"),
    *("utxo_bucket", "account_utxo_bucket", "utxo_asset", "account_utxo_asset"),
    *("holder_bucket", "policy_holder_bucket", "account_holder_bucket", "policy_account_holder_bucket"),
}
"""Those that have no checksum, and are complete without a recomputed table."""
