"""List the entries in partitions whose digests differ, on both sides, to name those that do (entries.py)."""

from collections import Counter
from collections.abc import Mapping
from functools import partial

import asyncpg
import msgspec

from indexer.verify import entries, moments, parts
from indexer.verify.entries import Listed
from indexer.verify.history import rows, spenders, spending
from indexer.verify.moments import Moments, Noted
from indexer.verify.readers import Readers, parts_of
from indexer.verify.results import CheckResult, Difference, Progress
from indexer.verify.tables import digests, expected, histories, naming
from indexer.verify.tables.digests import Quantities


class _Lists(msgspec.Struct, frozen=True):
    """Both sides in some partitions: entries of tables, those that history says they must have, and outputs and
    inputs.
    """

    stored: dict[str, Quantities]
    expected: dict[str, Listed]
    seen: list[spending.Sighting]


async def differences(
    db: asyncpg.Connection, readers: Readers, context: parts.Context, wrong: Mapping[str, list[int]], progress: Progress
) -> list[CheckResult]:
    """The differences in these partitions of tables, and of `spending`, up to the present last block.

    A digest that differs is an error, even if no entry does any more. Raises TipGone.
    """
    parts_before = await parts_of(db)
    async with moments.noting(db) as noted:
        readers.begin(noted, parts_before)
        lists = await _of_changing(db, noted, wrong)
    await _read_history(db, readers, context, wrong, lists, progress)
    at_any_time, found = Moments(db, noted), dict[str, list[Difference]]()
    for table, partitions in wrong.items():
        async with at_any_time.next() as moment:
            if table == "spending":
                found |= await spending.differences(moment.db, lists.seen)
                continue
            must = _as_shown(lists.expected.get(table, Counter()))
            if table in digests.GROWING:
                lists.stored[table] = await digests.GROWING[table].listed(moment, partitions)
            found[table] = await naming.differences(moment.db, table, lists.stored.get(table, {}), must)
    unnamed = [table for table in wrong if not (found[table] or (table == "spending" and found["spender"]))]
    found["checksum"] = [Difference(f"digest of {table}", None, "another one", "that of its rows") for table in unnamed]
    return [CheckResult(check, some) for check, some in found.items()]


async def _of_changing(db: asyncpg.Connection, noted: Noted, wrong: Mapping[str, list[int]]) -> _Lists:
    """What must be read in the snapshot of the noted block, since later blocks change it."""
    genesis, spent = await rows.of_genesis.all(db), spenders.spent_in(await spenders.of_genesis(db))
    of_genesis = expected.of_genesis(genesis, spent)
    return _Lists(
        stored={
            table: await stored.listed(noted.moment(db), wrong[table])
            for table, stored in digests.CHANGING.items()
            if table in wrong
        },
        expected={table: each.listed(wrong.get(table, ())) for table, each in of_genesis.items()},
        seen=spending.genesis_sightings(genesis, spent, wrong.get("spending", ())),
    )


async def _read_history(
    db: asyncpg.Connection,
    readers: Readers,
    context: parts.Context,
    wrong: Mapping[str, list[int]],
    lists: _Lists,
    progress: Progress,
) -> None:
    """Add what transactions and histories have. Raises TipGone."""
    # Addresses that are new since the first reading must be among the numbers, too.
    context = msgspec.structs.replace(context, folder=context.folder / "listed")
    context.folder.mkdir()
    await readers.first(partial(parts.write_numbers, context), None)
    done, of_histories = 0, dict[str, Listed]()
    async for part, transactions in readers.read(partial(parts.listed, context, wrong)):
        entries.add_listed(lists.expected, part.entries)
        lists.seen.extend(part.sightings)
        done += transactions
        progress("transactions, to name the differences", done, readers.transactions)
    ranges = await histories.ranges(db, {"address_tx" if table == "address_count" else table for table in wrong})
    async for some, _ in readers.each(partial(histories.listed, context.folder, wrong), ranges):
        entries.add_listed(of_histories, some)
    entries.add_listed(lists.expected, {"address_count": of_histories.pop("address_count", Counter())})
    lists.stored.update((table, _as_shown(listed)) for table, listed in of_histories.items())


def _as_shown(listed: Listed) -> Quantities:
    return {pair: str(quantity) for pair, quantity in listed.items()}
