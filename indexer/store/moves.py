"""What a commit moves once, at its end: histories, amounts held and spent, delegators, and unspent outputs."""

from collections.abc import Mapping, Sequence

import asyncpg
import msgspec

from indexer.rows.amounts import Amounts
from indexer.rows.histories import HistoryCounts, HistoryEntries
from indexer.rows.outputs import UtxoRow
from indexer.store import balances, epochs, histories, holders, outputs, sent
from shared.ledger import StakeNo


class Moves(msgspec.Struct, frozen=True):
    """The changes of one commit. Most transactions of a fork are also in the blocks that it replaces, so most of their
    moves cancel out.

    `cut` and `entries` are those of histories. `delegators` are stake credentials whose delegation or reward may have
    changed. `removed` and `added` are rows of `utxo`. By slot_no, `spenders_cut` is the number of entries to cut off
    `spender`, and `spenders` are those to add after that.
    """

    amounts: Amounts
    cut: HistoryCounts = HistoryCounts()
    entries: HistoryEntries = HistoryEntries()
    delegators: set[StakeNo] = set()
    removed: Sequence[UtxoRow] = ()
    added: Sequence[UtxoRow] = ()
    spenders_cut: Mapping[int, int] = {}
    spenders: Mapping[int, bytes] = {}


def fork(undone: Moves, replacement: Moves) -> Moves:
    """The moves of a fork: those of the undone blocks, and those of the blocks that replace them."""
    amounts = Amounts()
    amounts.add(undone.amounts)
    amounts.add(replacement.amounts)
    removed, added = [*undone.removed, *replacement.removed], [*undone.added, *replacement.added]
    in_both = set(removed).intersection(added)
    return Moves(
        amounts=amounts,
        cut=undone.cut,
        entries=replacement.entries,
        delegators=undone.delegators | replacement.delegators,
        removed=[row for row in removed if row not in in_both],
        added=[row for row in added if row not in in_both],
        spenders_cut=undone.spenders_cut,
        spenders=replacement.spenders,
    )


async def make(db: asyncpg.Connection, moves: Moves) -> None:
    """Make the moves. Runs inside a commit of its caller."""
    lengths = await histories.change(db, moves.cut, moves.entries)
    changed = await balances.move(db, moves.amounts.stakes, lengths.used)
    await holders.move(db, moves.amounts)
    await sent.move(db, moves.amounts, lengths)
    await epochs.refresh(db, moves.delegators.union(changed))
    await outputs.change(db, moves.removed, moves.added)
    await outputs.change_spenders(db, moves.spenders_cut, moves.spenders)
