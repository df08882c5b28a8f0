"""The work of verify on a part of history, in the processes of readers.py."""

from collections.abc import Sequence
from pathlib import Path

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
from indexer.verify.moments import Moment
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


async def examine(context: Context, moment: Moment, part: TransactionRange) -> Findings:
    """Compare a part with itself, and add up its checksums. Keeps its marks of inputs without a source."""
    db, network, ends = moment.db, by_name[context.network_name], _ends(moment, part)
    rows, spender_rows = await _rows_of(moment, part)
    try:
        spent = spenders.spent_in(spender_rows)
        flowing = flows.of(rows, spent)
        sums = await checksums.of(db, rows, flowing, spent, numbers.of(context.folder))
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


async def keep_marks(context: Context, moment: Moment, part: TransactionRange) -> None:
    """Keep the marks of all outputs and inputs of a part."""
    rows = await spending.rows_of.all(moment.db, *_ends(moment, part))
    spending.keep(spending.marks_of(rows), context.folder, context.partitions)


async def suspect_marks(context: Context, _: Moment, partition: int) -> set[int]:
    """The suspect marks of a partition."""
    return spending.compare(context.folder, partition)


async def sightings(wanted: set[int], moment: Moment, part: TransactionRange) -> list[spending.Sighting]:
    """Where suspect marks come from, in a part."""
    return spending.sightings(await spending.rows_of.all(moment.db, *_ends(moment, part)), wanted)


async def recomputed_rows(moment: Moment, part: TransactionRange) -> recompute.RecomputedRows:
    """The rows that a part adds to the recomputed tables."""
    transactions, rows = await _rows_of(moment, part)
    return recompute.of(transactions, await recompute.look_up(moment.db, transactions, rows))


async def spenders_seen(partitions: frozenset[int], moment: Moment, part: TransactionRange) -> spenders.Seen:
    """The spendings of some partitions, in a part."""
    return spenders.seen(*await _rows_of(moment, part), partitions)


async def write_numbers(context: Context, moment: Moment, _: None) -> None:
    """Write the files of `numbers`."""
    await numbers.write(moment.db, context.folder)


async def start_of_snapshots(
    context: Context, genesis: Sequence[spending.GenesisOutput], moment: Moment, noted_slot_no: int
) -> stake.Beginning:
    """What the snapshots up to the noted block begin with."""
    return await stake.beginning(moment.db, noted_slot_no, numbers.of(context.folder), genesis)


async def _rows_of(moment: Moment, part: TransactionRange) -> tuple[list[spending.Row], list[spenders.SpenderRow]]:
    """The transactions of a part, and the spenders of their outputs."""
    ends = _ends(moment, part)
    return (
        await spending.rows_of.all(moment.db, *ends),
        spenders.without_new(await spenders.of_slots(moment.db, *ends), moment),
    )


def _ends(moment: Moment, part: TransactionRange) -> tuple[int, int]:
    """The first tx_id of a part, and that after its last. The part after the noted block, which should have nothing,
    leaves out the blocks that are there by now.
    """
    first = part.first_tx_id
    return moment.next_new if first == moment.first_new else first, part.next_tx_id
