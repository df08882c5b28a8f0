"""Compare all derived tables with history, and history with itself, beside a live indexer.

Processes, one per core, read the packed transactions part by part, and add up the digests of the entries that derived
tables must have (`expected`), while Postgres adds up those of the tables (`digests`). Where two digests differ, and
only there, the same code lists the entries of some partitions, to name those that differ (`naming`). Memory is bounded
by a few parts, by a few partitions, and by the balances of all accounts, for a chain of any length; lists of all
addresses and assets are in files (`numbers`).

`moments` are the snapshots, `readers` runs the processes, and `parts` defines their work.
"""

import asyncio
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import asyncpg
import msgspec

from indexer.store import position
from indexer.store.position import IndexPosition
from indexer.verify import entries, listing, moments, parts
from indexer.verify.entries import Digests
from indexer.verify.history import balances, epochs, flows, rows, spenders, spending
from indexer.verify.history.rows import GenesisOutput
from indexer.verify.keys import ints
from indexer.verify.moments import Moments, Noted, TipGone
from indexer.verify.readers import Readers, in_processes, parts_of
from indexer.verify.results import MAX_SHOWN, CheckResult, Difference, NotComplete, Progress
from indexer.verify.tables import (
    catalog,
    checks,
    consistency,
    digests,
    expected,
    fingerprints,
    histories,
    indexes,
    naming,
    stake,
    votes,
)
from indexer.verify.tables.histories import HISTORIES
from shared import sql
from shared.network import Network
from shared.phase import Phase

_MAX_TRIES = 10


async def verify(
    db: asyncpg.Connection, url: str, network: Network, progress: Progress, processes: int | None = None
) -> tuple[IndexPosition, list[CheckResult]]:
    """Verify a network's index. Returns the verified tip and the checks that found differences.

    `db` is a connection to it with no other user, `url` the address of the same database. If the schema differs,
    nothing else is compared. If a rollback removes the verified tip meanwhile, everything is compared again. Raises
    NotComplete.
    """
    index = await _live_position(db, network)
    # Processes start while the schema is compared, which keeps one core busy.
    async with in_processes(url, network, processes or os.cpu_count() or 1) as readers:
        wrong = await catalog.differences(db, network)
        if wrong:
            return index, [CheckResult("schema", wrong)]
        await digests.make_functions(db)
        for _ in range(_MAX_TRIES):
            try:
                return await check_all(db, readers, network, progress)
            except TipGone:
                await _live_position(db, network)
                progress("again, since a rollback has removed the verified block", 0, 1)
    raise NotComplete(f"{network.name}: each of {_MAX_TRIES} times, a rollback removed the block that was verified")


async def _live_position(db: asyncpg.Connection, network: Network) -> IndexPosition:
    """The tip of a live index. Raises NotComplete, with what differs in the schema if the tip can't be read."""
    try:
        index = await position.read(db)
    except asyncpg.PostgresError as unreadable:
        wrong = await catalog.differences(db, network)
        if not wrong:
            raise
        raise NotComplete(f"{network.name} has no tip that can be read: schema: {wrong[0]}") from unreadable
    if index is None or index.phase != Phase.LIVE:
        state = ": nothing is indexed yet" if index is None else " is in bulk"
        raise NotComplete(f"{network.name}{state}")
    return index


async def check_all(
    db: asyncpg.Connection, readers: Readers, network: Network, progress: Progress
) -> tuple[IndexPosition, list[CheckResult]]:
    """Run all checks. Returns the verified tip and the checks that found differences. Raises TipGone."""
    reading = None
    with tempfile.TemporaryDirectory(prefix="ledgerline-verify-") as folder:
        # NOTE: before the snapshot, since this reads every block. Later blocks extend the last part.
        parts_before = await parts_of(db)
        try:
            async with moments.noting(db) as noted:
                readers.begin(noted, parts_before)
                start = await _begin(db, noted, network, Path(folder))
                if start.tips > 1:
                    # Statements that need the tip would fail.
                    return start.index, [CheckResult("tip", [Difference("rows of tip", None, str(start.tips), "1")])]
                # Processes read history from here on, since neither they nor Postgres keep all cores busy.
                reading = asyncio.create_task(_read_history(readers, start, progress))
                changing = await _of_changing(db, start)
            at_any_time = Moments(db, noted)
            tables = await _compare_tables(at_any_time, network, from_origin=start.context.from_origin)
            found = await _results(at_any_time, readers, start, await reading, changing, tables, progress)
        except rows.UnreadableRow as unreadable:
            found = [CheckResult("tx", list(unreadable.args))]
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
    return start.index, _merged(found)


def _merged(results: Iterable[CheckResult]) -> list[CheckResult]:
    """One result for each check that found differences."""
    found = defaultdict[str, list[Difference]](list)
    for result in results:
        found[result.check] += result.differences
    return [CheckResult(check, differences[:MAX_SHOWN]) for check, differences in found.items() if differences]


async def _begin(db: asyncpg.Connection, noted: Noted, network: Network, folder: Path) -> "_Start":
    """What the processes need, from the snapshot of the noted block. Raises TipGone."""
    index, tips = await position.read(db), await _tips.only(db)
    if index is None or (index.phase != Phase.LIVE and tips == 1):
        raise TipGone
    return _Start(
        index=index,
        tips=tips,
        noted=noted,
        network=network,
        context=parts.Context(folder, network.name, index.first_block_no == 0, await balances.deposits(db)),
        genesis=await rows.of_genesis.all(db),
        histories=await histories.ranges(db, HISTORIES),
        assets=await fingerprints.ranges(db),
    )


async def _of_changing(db: asyncpg.Connection, start: "_Start") -> "_OfChanging":
    """What must be read in the snapshot of the noted block, since later blocks change it."""
    await moments.allow_memory(db)
    spent = spenders.spent_in(await spenders.of_genesis(db))
    made, spent_by = flows.of_genesis(start.genesis), spent.of_genesis(start.genesis)
    of_tables = {table: each.digest() for table, each in expected.of_genesis(start.genesis, spent).items()}
    return _OfChanging(
        genesis=of_tables | {"spending": spending.digest_of_genesis(start.genesis, spent)},
        spender=spenders.wrong(spent, ints([output.tx_id for output in start.genesis]), made.index, spent_by),
        digests=await digests.of_changing(start.noted.moment(db)),
        epochs=await epochs.stored(db, start.network),
    )


async def _results(
    at_any_time: Moments,
    readers: Readers,
    start: "_Start",
    read: "_OfHistory",
    changing: "_OfChanging",
    tables: "_OfTables",
    progress: Progress,
) -> list[CheckResult]:
    """The results of all checks. Raises UnreadableRow and TipGone."""
    of_history = read.transactions.digests
    entries.add(of_history, changing.genesis)
    entries.add(of_history, {"address_count": read.histories.digests.pop("address_count")})
    stored = changing.digests | tables.digests | read.histories.digests
    wrong = entries.wrong_partitions(stored, of_history)
    repeated = spending.repeated(read.transactions.before)
    if repeated:
        wrong["spending"] = sorted({*wrong.get("spending", ()), *repeated})[: entries.MAX_PARTITIONS]
    found = [
        *(CheckResult(check, differences) for check, differences in read.transactions.differences.items()),
        CheckResult("spender", changing.spender),
        CheckResult("epoch", epochs.differences(changing.epochs, read.transactions.of_epochs)),
        *await _wrong_histories(at_any_time, read.histories),
        *tables.checks,
    ]
    if wrong:
        found += await listing.differences(at_any_time.db, readers, start.context, wrong, progress)
    async with at_any_time.next() as moment:
        found.append(await read.snapshots.check(moment.db))
    return [tables.indexes, *found, read.fingerprints, *tables.consistency]


async def _compare_tables(at_any_time: Moments, network: Network, *, from_origin: bool) -> "_OfTables":
    """The work that Postgres does alone, which holds at any block.

    These are the digests of tables whose rows tell which block added or changed them, and comparisons between tables.
    """
    looked_up = await indexes.check(at_any_time)
    of_growing = await digests.of_growing(at_any_time)
    of_tables = await checks.check(at_any_time)
    consistent = [
        *(await consistency.check_equal(at_any_time) if looked_up.equal else ()),
        *await consistency.check(at_any_time, network, from_origin=from_origin),
        *await stake.check(at_any_time, network),
    ]
    async with at_any_time.next() as moment:
        consistent.append(await votes.check(moment.db, network, from_origin=from_origin))
    return _OfTables(looked_up.result, of_growing, of_tables, consistent)


async def _read_history(readers: Readers, start: "_Start", progress: Progress) -> "_OfHistory":
    """The work of the processes. Raises UnreadableRow and TipGone."""
    context = start.context
    await readers.first(partial(parts.write_numbers, context), None)
    beginning = await readers.first(partial(parts.start_of_snapshots, context, start.genesis), start.noted.slot_no)
    snapshots = stake.begun(start.network, beginning)
    added_up = await _add_up(readers, context, snapshots, progress)
    of_histories = await _of_histories(readers, context, start.histories, progress)
    progress("fingerprints", 0, 1)
    wrong_fingerprints = await _wrong_fingerprints(readers, start.assets)
    progress("tables", 0, 1)
    return _OfHistory(added_up, of_histories, snapshots, CheckResult("fingerprint", wrong_fingerprints))


async def _add_up(
    readers: Readers, context: parts.Context, snapshots: stake.Snapshots, progress: Progress
) -> parts.Findings:
    """The digests of all parts, and the first differences."""
    found, done = parts.Findings({}, defaultdict(list), {}, [], []), 0
    async for part, transactions in readers.read(partial(parts.examine, context)):
        entries.add(found.digests, part.digests)
        for check, some in part.differences.items():
            found.differences[check] += some[: MAX_SHOWN - len(found.differences[check])]
        epochs.add(found.of_epochs, part.of_epochs)
        for moves in part.moves:
            snapshots.add(moves)
        found.before.extend(part.before)
        done += transactions
        progress("transactions", done, readers.transactions)
    return found


async def _of_histories(
    readers: Readers, context: parts.Context, ranges: list[histories.HistoryRange], progress: Progress
) -> "_Histories":
    """The digests of all histories, and the first numbers that are wrong."""
    found, done = _Histories({"address_count": entries.nothing()}, defaultdict(list), defaultdict(list)), 0
    async for part, of_range in readers.each(partial(histories.examine, context.folder), ranges):
        entries.add(found.digests, part.digests)
        found.unowned[of_range.history].extend(part.unowned)
        found.disordered[of_range.history].extend(part.disordered)
        done += 1
        progress("histories", done, len(ranges))
    return found


async def _wrong_histories(at_any_time: Moments, found: "_Histories") -> list[CheckResult]:
    """Histories whose owner has no row, or whose entries are not in order."""
    results = [
        histories.without_rows(history, numbers[:MAX_SHOWN]) for history, numbers in found.unowned.items() if numbers
    ]
    async with at_any_time.next() as moment:
        for history, numbers in found.disordered.items():
            some = [await naming.out_of_order(moment.db, history, number) for number in numbers[:MAX_SHOWN]]
            results.append(CheckResult(history, some))
    return results


async def _wrong_fingerprints(readers: Readers, ranges: list[fingerprints.AssetRange]) -> list[Difference]:
    found: list[Difference] = []
    async for wrong, _ in readers.each(fingerprints.wrong, ranges):
        found += wrong[: MAX_SHOWN - len(found)]
    return found


class _Start(msgspec.Struct, frozen=True):
    """What a verification begins with: the verified tip, the block that it notes, and the work of the processes besides
    transactions, in ranges. `tips` are the rows of `tip`.
    """

    index: IndexPosition
    tips: int
    noted: Noted
    network: Network
    context: parts.Context
    genesis: list[GenesisOutput]
    histories: list[histories.HistoryRange]
    assets: list[fingerprints.AssetRange]


class _Histories(msgspec.Struct, frozen=True):
    """The digests of the tables of histories, and of the addresses that have one as `address_count`; and by history the
    numbers that have no owner, and those whose entries are not in order.
    """

    digests: Digests
    unowned: dict[str, list[int]]
    disordered: dict[str, list[int]]


class _OfHistory(msgspec.Struct, frozen=True):
    """Findings of the processes: in transactions and in histories, the snapshots of epochs, and wrong fingerprints."""

    transactions: parts.Findings
    histories: _Histories
    snapshots: stake.Snapshots
    fingerprints: CheckResult


class _OfChanging(msgspec.Struct, frozen=True):
    """Findings in the snapshot of the noted block: digests of genesis outputs and of tables, wrong spenders of genesis
    outputs, and the rows of epochs.
    """

    genesis: Digests
    spender: list[Difference]
    digests: Digests
    epochs: list[epochs.Epoch]


class _OfTables(msgspec.Struct, frozen=True):
    """Findings of Postgres: lost entries of indexes, digests of tables, and the results of the checks that need nothing
    from history.
    """

    indexes: CheckResult
    digests: Digests
    checks: list[CheckResult]
    consistency: list[CheckResult]


_sql = sql.beside(__file__)
_tips = _sql.values("tips", int)
