"""The transactions of an account with the addresses in them, for `/accounts/{stake_address}/transactions`.

The list has an entry for each address of the account in each of its transactions. A page near an end of the list reads
the transactions from there. For others, the histories of addresses have the same entries, so the number of entries
before a transaction is the sum of the transactions before it in each of these: a page begins at the transaction that a
binary search finds by it.
"""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import msgspec

from api.blockfrost import outputs
from api.blockfrost.ranges import RangePage, limits
from shared import address, packed, sql
from shared.ledger import AddressNo, StakeNo, index_of, slot_of
from shared.network import Network
from shared.sql import Connection

_NEAR = 64
"""A search ends this many transactions before the one that it looks for: these are read with the page. A page that
begins within as many entries of an end of the list needs no search.
"""

_GUESSES = 3
_ROWS_AT_ONCE = 20
_BEFORE_ALL, _AFTER_ALL = -(1 << 63), (1 << 63) - 1


class AccountTransaction(msgspec.Struct, frozen=True):
    """An address of the account and a transaction that spends from it or pays to it."""

    address: str
    tx_hash: str
    tx_index: int
    block_height: int
    block_time: int


class _Rank(msgspec.Struct, frozen=True):
    """How many transactions and entries of an account precede a place in its history."""

    transactions: int
    entries: int


class _Span(msgspec.Struct, frozen=True):
    """The transactions of an account in a range of its history: the first, and the one after the last."""

    first: int
    beyond: int


class _Row(msgspec.Struct, frozen=True):
    tx_id: int
    hash: bytes
    inputs: bytes
    outputs: bytes


class _AddressRow(msgspec.Struct, frozen=True):
    address_no: AddressNo
    raw: bytes


class _Entry(msgspec.Struct, frozen=True):
    tx_id: int
    tx_hash: bytes
    address_no: AddressNo


_sql = sql.beside(__file__)
_stake_no = _sql.values("stake_no", StakeNo)
_span = _sql.query("span", _Span)
_rank = _sql.query("rank", _Rank)
_tx_id = _sql.values("tx_id", int)
_transactions = _sql.query("transactions", _Row)
_addresses = _sql.query("addresses", _AddressRow)


async def page(db: Connection, account: bytes, asked: RangePage, network: Network) -> list[AccountTransaction]:
    """A page of the list, in a snapshot. In a transaction, addresses are in the order of their first use."""
    stake_no = await _stake_no.one(db, account)
    if stake_no is None:
        return []
    first, beyond = await limits(db, asked)
    if asked.offset <= _NEAR:
        return await _near_an_end(db, stake_no, asked, (first, beyond), network)
    start = _Rank(0, 0) if first is None else await _rank.only(db, stake_no, first)
    end = await _rank.only(db, stake_no, _AFTER_ALL if beyond is None else beyond)
    lowest = start.entries + asked.offset if asked.order == "asc" else end.entries - asked.offset - asked.count
    highest = min(lowest + asked.count, end.entries)
    lowest = max(lowest, start.entries)
    if lowest >= highest:
        return []
    before = await _before(db, stake_no, start, end, lowest)
    entries, shown = list[_Entry](), dict[AddressNo, str]()
    passed = lowest - before.entries
    async for some in _entries(db, stake_no, before.transactions, end.transactions, shown):
        entries += some
        if len(entries) >= passed + highest - lowest:
            break
    listed = await _show(db, entries[passed : passed + highest - lowest], shown, network)
    return listed if asked.order == "asc" else listed[::-1]


async def _near_an_end(
    db: Connection, stake_no: StakeNo, asked: RangePage, limited: tuple[int | None, int | None], network: Network
) -> list[AccountTransaction]:
    """A page near the end of the list from which it is read: as many transactions have at least as many entries."""
    first, beyond = limited
    span = await _span.only(
        db, stake_no, _BEFORE_ALL if first is None else first, _AFTER_ALL if beyond is None else beyond
    )
    reach, shown = asked.offset + asked.count, dict[AddressNo, str]()
    if asked.order == "asc":
        span = _Span(span.first, min(span.first + reach, span.beyond))
    else:
        span = _Span(max(span.beyond - reach, span.first), span.beyond)
    entries = [entry async for some in _entries(db, stake_no, span.first, span.beyond, shown) for entry in some]
    if asked.order == "desc":
        entries.reverse()
    return await _show(db, entries[asked.offset : reach], shown, network)


async def _before(db: Connection, stake_no: StakeNo, start: _Rank, end: _Rank, entry: int) -> _Rank:
    """A place at most _NEAR transactions before that of an entry, or at it, from `start` on and before `end`.

    Each transaction has an entry or more, so numbers of entries bound numbers of transactions in both directions. A
    probe costs some look-ups for each address of the account. The first ones are where the entry is if transactions
    have equally many, which mostly ends the search; the others halve what is left.
    """
    for probe in count():
        highest = min(start.transactions + entry - start.entries, end.transactions - 1)
        if highest - start.transactions <= _NEAR:
            break
        lowest = max(start.transactions + 1, end.transactions - (end.entries - entry))
        middle = (lowest + highest + 1) // 2
        if probe < _GUESSES:
            ahead = (entry - start.entries) * (end.transactions - start.transactions) // (end.entries - start.entries)
            middle = min(max(start.transactions + ahead - _NEAR // 2, lowest), highest)
        tx_id = await _tx_id.only(db, stake_no, middle)
        found = await _rank.only(db, stake_no, tx_id)
        if found.entries <= entry:
            start = found
        else:
            end = found
    return start


async def _entries(
    db: Connection, stake_no: StakeNo, first: int, beyond: int, shown: dict[AddressNo, str]
) -> AsyncIterator[list[_Entry]]:
    """The entries of an account's transactions from one to before another, oldest first; adds their addresses."""
    for at in range(first, beyond, _ROWS_AT_ONCE):
        rows = await _transactions.all(db, stake_no, at, min(at + _ROWS_AT_ONCE, beyond) - 1)
        moved = []
        for row in rows:
            moved.append(_moved(row))
            await asyncio.sleep(0)  # other requests go on: a transaction may have thousands of inputs
        unknown = {address_no for of_tx in moved for address_no in of_tx} - shown.keys()
        own = await _addresses.all(db, stake_no, list(unknown))
        texts = address.show_all([found.raw for found in own])
        shown.update(zip((found.address_no for found in own), texts, strict=True))
        yield [
            _Entry(row.tx_id, row.hash, address_no)
            for row, of_tx in zip(rows, moved, strict=True)
            for address_no in sorted(of_tx & shown.keys())
        ]


def _moved(row: _Row) -> set[AddressNo]:
    """The addresses from which a transaction spends, and to which it pays."""
    spent = (each.source.address_no for each in packed.unpack_spent(row.inputs) if each.source is not None)
    return {*packed.addresses_in(row.outputs), *spent}


async def _show(
    db: Connection, entries: list[_Entry], shown: dict[AddressNo, str], network: Network
) -> list[AccountTransaction]:
    blocks = await outputs.blocks_at(db, [slot_of(entry.tx_id) for entry in entries])
    return [
        AccountTransaction(
            shown[entry.address_no],
            entry.tx_hash.hex(),
            index_of(entry.tx_id),
            blocks[slot_of(entry.tx_id)].block_no,
            int(network.slot_time(slot_of(entry.tx_id)).timestamp()),
        )
        for entry in entries
    ]
