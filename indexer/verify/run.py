"""Compare all derived tables with history, and history with itself, beside a live indexer.

Processes, one per core, read the packed transactions part by part and add up the checksums that the derived tables must
have (`checksums`), while Postgres adds up those of the tables. Tables are recomputed key by key (`recompute`) only if
two checksums differ, to name the wrong rows. That is several times slower, and holds one snapshot. The recomputed rows
are written to temporary tables of its connection, where SQL compares them with the index (`checks`). Memory is bounded
by a few parts, and by the balances of all accounts, for a chain of any length; lists of all addresses and assets are in
files (`numbers`).

`moments` are the snapshots, `readers` runs the processes, and `parts` defines their work.
"""

import asyncio
import os
import tempfile
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import asyncpg
import msgspec

from indexer.store import position
from indexer.store.position import IndexPosition
from indexer.verify import (
    balances,
    catalog,
    checksums,
    consistency,
    epochs,
    fingerprints,
    histories,
    indexes,
    keys,
    moments,
    parts,
    recompute,
    spenders,
    spending,
    stake,
    votes,
)
from indexer.verify.checks import CHECKS, WITHOUT_CHECKSUM
from indexer.verify.moments import Moments, Noted, TipGone
from indexer.verify.readers import Answer, Item, Readers, Work, in_processes, parts_of
from indexer.verify.results import MOST_SHOWN, CheckResult, Difference, NotComplete, Progress
from shared import address, sql
from shared.network import Network
from shared.phase import Phase

_MOST_TRIES = 10


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
        await make_tables(db)
        for _ in range(_MOST_TRIES):
            try:
                return await check_all(db, readers, network, progress)
            except TipGone:
                await _live_position(db, network)
                progress("again, since a rollback has removed the verified block", 0, 1)
    raise NotComplete(f"{network.name}: each of {_MOST_TRIES} times, a rollback removed the block that was verified")


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
                start = await _begin(db, readers, noted, network, Path(folder))
                # Processes read history from here on, since neither they nor Postgres keep all cores busy.
                reading = asyncio.create_task(_read_history(readers, start, progress))
                changing = await _of_changing(db, start)
            at_any_time = Moments(db, noted)
            tables = await _compare_tables(at_any_time, network, from_origin=start.context.from_origin)
            found = await _results(at_any_time, readers, start, await reading, changing, tables, progress)
        except spending.UnreadableRow as unreadable:
            found = [CheckResult("tx", list(unreadable.args))]
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
    return start.index, [result for result in found if result.differences]


async def _begin(db: asyncpg.Connection, readers: Readers, noted: Noted, network: Network, folder: Path) -> "_Start":
    """What the processes need, from the snapshot of the noted block. Raises TipGone."""
    index = await position.read(db)
    if index is None or index.phase != Phase.LIVE:
        raise TipGone
    partitions = spending.partitions_of(readers.transactions)
    deposits = await balances.deposits(db)
    return _Start(
        index=index,
        noted=noted,
        network=network,
        context=parts.Context(folder, partitions, network.name, index.first_block_no == 0, deposits),
        genesis=await _genesis_outputs.all(db),
        histories=await histories.ranges(db),
        assets=await fingerprints.ranges(db),
    )


async def _of_changing(db: asyncpg.Connection, start: "_Start") -> "_OfChanging":
    """What must be read in the snapshot of the noted block, since later blocks change it."""
    await moments.allow_memory(db)
    return _OfChanging(
        genesis=await checksums.of_genesis(db, start.genesis),
        sums=await checksums.of_changing(db),
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
    sums = changing.genesis + read.transactions.sums + checksums.Sums(address_count=read.histories.address_count)
    suspects = await _suspects(readers, start, progress) if sums.spending else read.suspects
    spent = await _differences_behind(at_any_time, readers, start.genesis, suspects, progress) if suspects else []
    found = [
        *(CheckResult(check, differences) for check, differences in read.transactions.differences.items()),
        CheckResult("spending", spent[:MOST_SHOWN]),
        CheckResult("epoch", epochs.differences(changing.epochs, read.transactions.of_epochs)),
    ]
    unequal = checksums.unequal(sums, changing.sums | tables.sums | read.histories.totals)
    if not unequal:
        found += tables.checks
    else:
        named = await _recomputed_checks(at_any_time.db, readers, progress)
        found += named
        # A sum that differs is an error, even if no statement names a row.
        if not (spent or any(result.differences for result in named)):
            found.append(CheckResult("checksum", unequal[:MOST_SHOWN]))
    async with at_any_time.next() as moment:
        found.append(await read.snapshots.check(moment.db))
    return [tables.indexes, *found, read.fingerprints, *tables.consistency]


async def make_tables(db: asyncpg.Connection) -> None:
    """Create the temporary tables of a connection that verifies."""
    for table in _TABLES:
        await table.run(db)
    await checksums.make_functions(db)


async def _compare_tables(at_any_time: Moments, network: Network, *, from_origin: bool) -> "_OfTables":
    """The work that Postgres does alone: sums of tables that only grow, and comparisons that hold at any block."""
    looked_up = await indexes.check(at_any_time)
    sums = await checksums.of_growing(at_any_time)
    checks = [
        CheckResult(name, await at_any_time.all(query, MOST_SHOWN))
        for name, query in CHECKS
        if name in WITHOUT_CHECKSUM
    ]
    of_others = [
        *(await consistency.check_equal(at_any_time) if looked_up.equal else ()),
        *await consistency.check(at_any_time, network, from_origin=from_origin),
        *await stake.check(at_any_time, network),
    ]
    async with at_any_time.next() as moment:
        of_others.append(await votes.check(moment.db, network, from_origin=from_origin))
    return _OfTables(looked_up.result, sums, checks, of_others)


async def _read_history(readers: Readers, start: "_Start", progress: Progress) -> "_OfHistory":
    """The work of the processes. Raises UnreadableRow and TipGone."""
    context = start.context
    await _first(readers, partial(parts.write_numbers, context), None)
    beginning = await _first(readers, partial(parts.start_of_snapshots, context, start.genesis), start.noted.slot_no)
    snapshots = stake.begun(start.network, beginning)
    added_up = await _add_up(readers, context, snapshots, progress)
    of_histories = await _of_histories(readers, context, start.histories, progress)
    progress("inputs from before the first block, fingerprints", 0, 1)
    suspects = await _compare_marks(readers, context)
    wrong_fingerprints = await _wrong_fingerprints(readers, start.assets)
    progress("tables", 0, 1)
    return _OfHistory(added_up, of_histories, suspects, snapshots, CheckResult("fingerprint", wrong_fingerprints))


async def _first(readers: Readers, work: Work[Item, Answer], item: Item) -> Answer:
    """The result of work on one item."""
    (answer,) = [answer async for answer, _ in readers.each(work, [item])]
    return answer


async def _add_up(
    readers: Readers, context: parts.Context, snapshots: stake.Snapshots, progress: Progress
) -> parts.Findings:
    """The sums of all parts, and the first differences."""
    sums, differences, done = checksums.Sums(), defaultdict[str, list[Difference]](list), 0
    of_epochs = dict[int, epochs.Sums]()
    async for part, transactions in readers.read(partial(parts.examine, context)):
        sums += part.sums
        for check, some in part.differences.items():
            differences[check] += some[: MOST_SHOWN - len(differences[check])]
        epochs.add(of_epochs, part.of_epochs)
        for moves in part.moves:
            snapshots.add(moves)
        done += transactions
        progress("transactions", done, readers.transactions)
    return parts.Findings(sums, differences, of_epochs)


async def _of_histories(
    readers: Readers, context: parts.Context, ranges: list[histories.HistoryRange], progress: Progress
) -> "_Histories":
    """The sums of all histories."""
    totals, inconsistent, address_count = Counter[str](), set[str](), 0
    done = 0
    async for found, part in readers.each(partial(histories.added_up, context.folder), ranges):
        totals[part.history] += found.total
        address_count += found.address_count
        if not found.consistent:
            inconsistent.add(part.history)
        done += 1
        progress("histories", done, len(ranges))
    of_tables = {name: None if name in inconsistent else str(total % keys.PRIME) for name, total in totals.items()}
    return _Histories(of_tables, address_count)


async def _compare_marks(readers: Readers, context: parts.Context) -> set[int]:
    """Suspect marks among those that were kept."""
    suspects = set[int]()
    async for some, _ in readers.each(partial(parts.suspect_marks, context), range(context.partitions)):
        suspects |= some
    return suspects


async def _suspects(readers: Readers, start: "_Start", progress: Progress) -> set[int]:
    """Suspect marks of all outputs and inputs, whose sums differ."""
    done, context = 0, start.context
    spending.keep(spending.of_genesis(start.genesis), context.folder, context.partitions)
    async for _, transactions in readers.read(partial(parts.keep_marks, context)):
        done += transactions
        progress("transactions, to match inputs with outputs", done, readers.transactions)
    return await _compare_marks(readers, context)


async def _differences_behind(
    at_any_time: Moments,
    readers: Readers,
    genesis: list[spending.GenesisOutput],
    suspects: set[int],
    progress: Progress,
) -> list[Difference]:
    """The differences of the outputs and inputs with these marks."""
    seen, done = list[spending.Sighting](), 0
    async for some, transactions in readers.read(partial(parts.sightings, suspects)):
        seen += some
        done += transactions
        progress("transactions, to name inputs", done, readers.transactions)
    async with at_any_time.next() as moment:
        return await spending.differences(moment.db, seen + spending.genesis_sightings(genesis, suspects))


async def _recomputed_checks(db: asyncpg.Connection, readers: Readers, progress: Progress) -> list[CheckResult]:
    """The results of CHECKS, with recomputed tables, in one snapshot. Raises TipGone."""
    found = list[CheckResult]()
    async with moments.noting(db) as noted:
        await moments.allow_memory(db)
        readers.begin(noted, await parts_of(db))
        spent = await _recompute(db, readers, progress)
        for place, (name, query) in enumerate(CHECKS):
            progress(name, place, len(CHECKS))
            differences = await query.all(db, MOST_SHOWN)
            found.append(CheckResult(name, (spent + differences)[:MOST_SHOWN] if name == "spender" else differences))
    return found


async def _recompute(db: asyncpg.Connection, readers: Readers, progress: Progress) -> list[Difference]:
    """Fill the temporary tables. Returns the first outputs whose spenders differ."""
    done, spent = 0, Counter[int]()
    async for part, transactions in readers.read(parts.recomputed_rows):
        await _keep(db, part)
        spent.update(part.spending)
        done += transactions
        progress("transactions, to name the differences", done, readers.transactions)
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
    return await _wrong_spenders(readers, wrong, spenders.seen_of_genesis(genesis, of_genesis, wrong), progress)


async def _wrong_spenders(
    readers: Readers, wrong: frozenset[int], seen: spenders.Seen, progress: Progress
) -> list[Difference]:
    """The first outputs whose spenders differ, of these partitions; `seen` are the spendings of genesis outputs."""
    done = 0
    async for part, transactions in readers.read(partial(parts.spenders_seen, wrong)):
        seen.add(part)
        done += transactions
        progress("transactions, to name spenders", done, readers.transactions)
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
    """Keep genesis outputs, which exist and count for their stake credentials before the first block."""
    spent = set(spenders.spent_in(rows).output_no.tolist())
    unspent = [output for output in outputs if spenders.output_no(output.tx_id, 0) not in spent]
    utxos = [(output.tx_id, 0, output.lovelace, output.address_no, None) for output in unspent]
    await db.copy_records_to_table("utxo_part", schema_name="pg_temp", records=utxos)
    stakes = [(account, output.lovelace) for output in outputs if (account := address.stake_of(output.address))]
    await db.copy_records_to_table("stake_part", schema_name="pg_temp", records=stakes)


async def _wrong_fingerprints(readers: Readers, ranges: list[fingerprints.AssetRange]) -> list[Difference]:
    found: list[Difference] = []
    async for wrong, _ in readers.each(fingerprints.wrong, ranges):
        found += wrong[: MOST_SHOWN - len(found)]
    return found


class _Start(msgspec.Struct, frozen=True):
    """What a verification begins with: the verified tip, the block that it notes, and the work of the processes besides
    transactions, in ranges.
    """

    index: IndexPosition
    noted: Noted
    network: Network
    context: parts.Context
    genesis: list[spending.GenesisOutput]
    histories: list[histories.HistoryRange]
    assets: list[fingerprints.AssetRange]


class _Histories(msgspec.Struct, frozen=True):
    """The checksum of each table of histories, as text, or None if its rows are inconsistent; and the sum for the
    addresses that have a history.
    """

    totals: dict[str, str | None]
    address_count: int


class _OfHistory(msgspec.Struct, frozen=True):
    """Findings of the processes: in transactions and in histories, suspect marks of inputs, the snapshots of epochs,
    and wrong fingerprints.
    """

    transactions: parts.Findings
    histories: _Histories
    suspects: set[int]
    snapshots: stake.Snapshots
    fingerprints: CheckResult


class _OfChanging(msgspec.Struct, frozen=True):
    """Findings in the snapshot of the noted block: sums of genesis outputs and of tables, and the rows of epochs."""

    genesis: checksums.Sums
    sums: dict[str, str | None]
    epochs: list[epochs.Epoch]


class _OfTables(msgspec.Struct, frozen=True):
    """Findings of Postgres: lost entries of indexes, checksums of tables, and the results of the checks in
    WITHOUT_CHECKSUM and of others that need nothing from history.
    """

    indexes: CheckResult
    sums: dict[str, str | None]
    checks: list[CheckResult]
    consistency: list[CheckResult]


_sql = sql.beside(__file__)
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
