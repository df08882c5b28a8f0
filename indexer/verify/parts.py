"""The work of verify on a part of history, in the processes of readers.py."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from indexer.rows import value_check
from indexer.verify.entries import Digests, Listed
from indexer.verify.history import (
    attachments,
    balances,
    blocks,
    certificates,
    epochs,
    flows,
    hashes,
    numbers,
    referred,
    rows,
    spenders,
    spending,
)
from indexer.verify.history.rows import GenesisOutput, Row
from indexer.verify.history.spenders import Spenders
from indexer.verify.keys import Ints
from indexer.verify.moments import Moment
from indexer.verify.readers import TransactionRange
from indexer.verify.results import MAX_SHOWN, Difference
from indexer.verify.tables import expected, stake
from shared import packed
from shared.network import by_name


class Context(msgspec.Struct, frozen=True):
    """The context of the processes: the folder of `numbers`, the network, whether it is indexed from the origin, and
    the deposits.
    """

    folder: Path
    network_name: str
    from_origin: bool
    deposits: value_check.Deposits


class Findings(msgspec.Struct, frozen=True):
    """The findings in a part of history, or in all of it.

    `digests` are those of the entries that tables must have, and that of `spending`, which must be 0. `differences` has
    the first of each check: `block` has blocks with other transactions; `tx` those whose hash is too short or too long;
    `spender` entries of outputs that do not exist; `value` transactions that don't balance, and inputs without a source
    that should have one; `certificates` those that differ from their stored changes; `attached` outputs whose datum or
    script has no row; `referred` transactions that name no older output; `datum` and `script` rows whose hash or
    transaction is wrong. `of_epochs` are the sums of each epoch. `moves` are those of a part, `before` the references
    of its inputs without a source.
    """

    digests: Digests
    differences: dict[str, list[Difference]]
    of_epochs: dict[int, epochs.Sums]
    moves: Sequence[stake.Moves]
    before: list[Ints]


class Listing(msgspec.Struct, frozen=True):
    """What a part has in some partitions: entries that tables must have, and outputs and inputs."""

    entries: dict[str, Listed]
    sightings: list[spending.Sighting]


async def examine(context: Context, moment: Moment, part: TransactionRange) -> Findings:
    """Compare a part with itself, and add up its digests."""
    db, network, ends = moment.db, by_name[context.network_name], _ends(moment, part)
    transactions, spent = await _read(moment, part)
    try:
        flowing = flows.unpack(transactions, spent)
        of_tables = await expected.derive(db, flowing, numbers.in_folder(context.folder))
        moves = await stake.moves(db, flowing, numbers.in_folder(context.folder), network, *ends)
        shown = await hashes.shown(db, flowing.tx_id, *ends)
        attached = await attachments.wrong(db, transactions, flowing, *ends, shown)
        certified = await certificates.wrong(db, transactions, flowing, *ends, network)
        named = await referred.wrong(db, transactions, from_origin=context.from_origin)
        unbalanced = balances.unbalanced(transactions, flowing, context.deposits) if context.from_origin else []
    except packed.UNREADABLE:
        rows.refuse_unreadable(transactions)
        raise
    digests = {table: each.digest() for table, each in of_tables.items()} | {"spending": spending.digest(flowing)}
    wrong = await spending.wrongly_unresolved(db, flowing.unresolved, from_origin=context.from_origin)
    of_epochs = epochs.add_up(transactions, flowing.lovelace_out, network)
    found = {
        "block": await blocks.wrong(db, flowing.tx_id, *ends),
        "tx": blocks.wrong_hashes(transactions),
        "spender": spenders.wrong(spent, flowing.tx_id[flowing.made.row], flowing.made.index, flowing.spent_by),
        "value": wrong + unbalanced,
        "certificates": certified,
        "attached": attached,
        "referred": named,
        "datum": shown.wrong_datums,
        "script": shown.wrong_scripts,
    }
    first = {check: differences[:MAX_SHOWN] for check, differences in found.items()}
    return Findings(digests, first, of_epochs, moves, [flowing.before])


async def listed(
    context: Context, partitions: Mapping[str, Collection[int]], moment: Moment, part: TransactionRange
) -> Listing:
    """What a part has in some partitions of tables, and of `spending`."""
    transactions, spent = await _read(moment, part)
    flowing = flows.unpack(transactions, spent)
    of_tables = await expected.derive(moment.db, flowing, numbers.in_folder(context.folder))
    return Listing(
        {table: of_tables[table].listed(some) for table, some in partitions.items() if table in of_tables},
        spending.sightings(transactions, flowing, partitions.get("spending", ())),
    )


async def write_numbers(context: Context, moment: Moment, _: None) -> None:
    """Write the files of `numbers`."""
    await numbers.write(moment, context.folder)


async def start_of_snapshots(
    context: Context, genesis: Sequence[GenesisOutput], moment: Moment, noted_slot_no: int
) -> stake.Beginning:
    """What the snapshots up to the noted block begin with."""
    return await stake.beginning(moment.db, noted_slot_no, numbers.in_folder(context.folder), genesis)


async def _read(moment: Moment, part: TransactionRange) -> tuple[list[Row], Spenders]:
    """The transactions of a part, and the spenders of their outputs."""
    ends = _ends(moment, part)
    transactions = await rows.between.all(moment.db, *ends)
    of_outputs = spenders.without_new(await spenders.of_slots(moment.db, *ends), moment)
    return transactions, spenders.spent_in(of_outputs)


def _ends(moment: Moment, part: TransactionRange) -> tuple[int, int]:
    """The first tx_id of a part, and that after its last. The part after the noted block, which should have nothing,
    leaves out the blocks that are there by now.
    """
    first = part.first_tx_id
    return moment.next_new if first == moment.first_new else first, part.next_tx_id
