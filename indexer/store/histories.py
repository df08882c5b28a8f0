"""The packed histories in the database. Everything here runs inside a commit of its caller."""

from collections.abc import Mapping

import asyncpg
import msgspec

from indexer.rows.histories import HistoryCounts, HistoryEntries, Owner
from shared import sql
from shared.ledger import AddressNo


class LongHistories(msgspec.Struct):
    """Owners of changed histories that are long: those that were so before, those that have become so, and those that
    no longer are.
    """

    kept: set[int] = msgspec.field(default_factory=set)
    begun: set[int] = msgspec.field(default_factory=set)
    ended: set[int] = msgspec.field(default_factory=set)


class Lengths(msgspec.Struct):
    """What changed about the lengths of histories: `used` is 1 for each address whose history was empty, and -1 for
    each whose history is empty now; and the long histories of addresses and accounts.
    """

    used: dict[AddressNo, int] = msgspec.field(default_factory=dict)
    addresses: LongHistories = msgspec.field(default_factory=LongHistories)
    accounts: LongHistories = msgspec.field(default_factory=LongHistories)


async def change(db: asyncpg.Connection, cut: HistoryCounts, added: HistoryEntries) -> Lengths:
    """Cut the last entries off histories, those of a rollback, then add others."""
    changes = (
        *_columns(cut.address_txs, added.address_txs),
        *_columns(cut.account_txs, added.account_txs),
        *_columns(cut.asset_txs, added.asset_txs),
        *_columns(cut.withdrawals, added.withdrawals),
        *_columns(cut.label_txs, added.label_txs),
        *_columns(cut.credential_txs, added.credential_txs),
        *_columns(cut.redeemer_txs, added.redeemer_txs),
    )
    lengths = Lengths()
    for row in await _change.all(db, *changes) if any(changes) else ():
        if row.used:
            lengths.used[AddressNo(row.owner_no)] = row.used
        if row.was_long or row.is_long:
            of_kind = lengths.accounts if row.is_account else lengths.addresses
            (of_kind.ended if not row.is_long else of_kind.kept if row.was_long else of_kind.begun).add(row.owner_no)
    return lengths


def _columns(cut: Mapping[Owner, int], added: Mapping[Owner, bytes]) -> tuple[list[Owner], list[int], list[bytes]]:
    """The owner of each changed history, how many entries to cut, and the entries to add."""
    numbers = sorted(cut.keys() | added.keys())
    return numbers, [cut.get(number, 0) for number in numbers], [added.get(number, b"") for number in numbers]


class _Changed(msgspec.Struct, frozen=True):
    is_account: bool
    owner_no: int
    used: int
    was_long: bool
    is_long: bool


_sql = sql.beside(__file__)


def _change_of(place: int, history: str, owner_no: str, entries: str, width: int, number: str = "integer") -> str:
    """The part of the statement for the history at this place among the arguments of _change. `number` is the type of
    its owner's, of a script its key.
    """
    numbers, counts, added = (f"${3 * place + column}" for column in (1, 2, 3))
    return _sql.text(
        "change_history",
        history=history,
        owner_no=owner_no,
        entries=entries,
        width=str(width),
        number=number,
        numbers=numbers,
        counts=counts,
        added=added,
    )


_change = _sql.query(
    "change_histories",
    _Changed,
    addresses=_change_of(0, "address_tx", "address_no", "tx_ids", 8),
    accounts=_change_of(1, "account_tx", "stake_no", "tx_ids", 8),
    assets=_change_of(2, "asset_tx", "asset_no", "entries", 18),
    withdrawals=_change_of(3, "account_withdrawal", "stake_no", "entries", 18),
    labels=_change_of(4, "label_tx", "label_no", "tx_ids", 8, "bigint"),
    credentials=_change_of(5, "credential_tx", "credential_no", "tx_ids", 8),
    redeemers=_change_of(6, "redeemer_tx", "script_key", "tx_ids", 8, "bytea"),
)
