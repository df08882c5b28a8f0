"""The work of verify on a part of history, in the processes of readers.py."""

from collections.abc import Sequence
from pathlib import Path

import asyncpg
import msgspec

from indexer.rows import value_check
from indexer.verify import (
    attachments,
    balances,
    blocks,
    certificates,
    checksums,
    epochs,
    flows,
    hashes,
    numbers,
    recompute,
    spenders,
    spending,
    stake,
)
from indexer.verify.readers import TransactionRange
from indexer.verify.results import MOST_SHOWN, Difference
from shared import packed
from shared.network import by_name


class Context(msgspec.Struct, frozen=True):
    """The context of the processes: the folder of `numbers` and of the marks of outputs and inputs, the number of
    partitions of the marks, the network, whether it is indexed from the origin, and the deposits.

    The first reading keeps only the marks of inputs from before the first block. If inputs and outputs differ, a second
    one keeps all marks.
    """

    folder: Path
    partitions: int
    network_name: str
    from_origin: bool
    deposits: value_check.Deposits


class Findings(msgspec.Struct, frozen=True):
    """The findings in a part of history, or in all of it.

    `sums` are the checksums. `differences` has the first of each check: `block` has blocks with other transactions;
    `tx` those whose hash is too short or too long; `value` transactions that don't balance, and inputs without a source
    that should have one; `certificates` those that differ from their stored changes; `attached` outputs whose datum or
    script has no row; `datum` and `script` rows whose hash or transaction is wrong. `of_epochs` are the sums of each
    epoch. `moves` are those of a part.
    """

    sums: checksums.Sums
    differences: dict[str, list[Difference]]
    of_epochs: dict[int, epochs.Sums]
    moves: Sequence[stake.Moves] = ()


async def examine(context: Context, db: asyncpg.Connection, part: TransactionRange) -> Findings:
    """Compare a part with itself, and add up its checksums. Keeps its marks of inputs without a source."""
    network = by_name[context.network_name]
    ends = part.first_tx_id, part.next_tx_id
    rows, spender_rows = await _rows_of(db, part)
    try:
        spent = spenders.spent_in(spender_rows)
        flowing = flows.of(rows, spent)
        sums = await checksums.of(db, rows, flowing, spent.disordered, numbers.of(context.folder))
        moves = await stake.moves(db, flowing, numbers.of(context.folder), network, *ends)
        shown = await hashes.shown(db, flowing.tx_id, *ends)
        attached = await attachments.wrong(db, rows, flowing, *ends, shown)
        certified = await certificates.wrong(db, rows, flowing, *ends, network)
        unbalanced = balances.unbalanced(rows, flowing, context.deposits) if context.from_origin else []
    except packed.UNREADABLE:
        spending.refuse_unreadable(rows)
        raise
    spending.keep(spending.Marks(before=flowing.before), context.folder, context.partitions)
    wrong = await spending.wrongly_unresolved(db, flowing.unresolved, from_origin=context.from_origin)
    of_epochs = epochs.of(rows, flowing.lovelace_out, network)
    found = {
        "block": await blocks.wrong(db, flowing.tx_id, *ends),
        "tx": blocks.wrong_hashes(rows),
        "value": wrong + unbalanced,
        "certificates": certified,
        "attached": attached,
        "datum": shown.wrong_datums,
        "script": shown.wrong_scripts,
    }
    first = {check: differences[:MOST_SHOWN] for check, differences in found.items()}
    return Findings(sums, first, of_epochs, moves)


async def keep_marks(context: Context, db: asyncpg.Connection, part: TransactionRange) -> None:
    """Keep the marks of all outputs and inputs of a part."""
    rows = await spending.rows_of.all(db, part.first_tx_id, part.next_tx_id)
    spending.keep(spending.marks_of(rows), context.folder, context.partitions)


async def suspect_marks(context: Context, _: asyncpg.Connection, partition: int) -> set[int]:
    """The suspect marks of a partition."""
    return spending.compare(context.folder, partition)


async def sightings(wanted: set[int], db: asyncpg.Connection, part: TransactionRange) -> list[spending.Sighting]:
    """Where suspect marks come from, in a part."""
    return spending.sightings(await spending.rows_of.all(db, part.first_tx_id, part.next_tx_id), wanted)


async def recomputed_rows(db: asyncpg.Connection, part: TransactionRange) -> recompute.RecomputedRows:
    """The rows that a part adds to the recomputed tables."""
    transactions, rows = await _rows_of(db, part)
    return recompute.of(transactions, await recompute.look_up(db, transactions, rows))


async def spenders_seen(partitions: frozenset[int], db: asyncpg.Connection, part: TransactionRange) -> spenders.Seen:
    """The spendings of some partitions, in a part."""
    return spenders.seen(*await _rows_of(db, part), partitions)


async def _rows_of(
    db: asyncpg.Connection, part: TransactionRange
) -> tuple[list[spending.Row], list[spenders.SpenderRow]]:
    """The transactions of a part, and the spenders of their outputs."""
    ends = part.first_tx_id, part.next_tx_id
    return await spending.rows_of.all(db, *ends), await spenders.of_slots(db, *ends)
