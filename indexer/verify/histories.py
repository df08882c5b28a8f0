"""Checksums over the tables of histories: a part of checksums.py that processes add up, a range of numbers each.

Postgres would take three times as long, since it has to create a row for each entry. The histories of addresses also
say how many addresses each account has.
"""

from collections.abc import Sequence
from pathlib import Path

import asyncpg
import msgspec
import numpy as np

from indexer.verify import numbers
from indexer.verify.keys import PRIME, Ints, ints, key_of, reduced, weight_of
from indexer.verify.moments import Moment
from shared import sql

_RANGE_NUMBERS = 100_000
_ROWS_AT_ONCE = 2_000
_ENTRIES_IN_CHUNK = 64


class HistoryRange(msgspec.Struct, frozen=True):
    """A range of row numbers of a history; `next_no` is not in it."""

    history: str
    first_no: int
    next_no: int


class Sum(msgspec.Struct, frozen=True):
    """The checksum of a range, and whether each history is numbered 0, 1, 2 … in order of tx_id and has its owner.

    `address_count` adds up the keys of the accounts of all addresses that have a history; it is 0 for other histories.
    """

    total: int
    address_count: int
    consistent: bool


async def ranges(db: asyncpg.Connection) -> list[HistoryRange]:
    """All histories, in ranges of some thousand."""
    return [each for kind in _KINDS.values() for each in await kind.ranges.all(db, _RANGE_NUMBERS)]


async def added_up(folder: Path, moment: Moment, part: HistoryRange) -> Sum:
    """The checksum of a range up to the noted block; `folder` has the files of `numbers`."""
    kind = _KINDS[part.history]
    total, address_count, consistent, end = 0, 0, True, _End()
    async for found in kind.chunks.parts(moment.db, part.first_no, part.next_no, rows=_ROWS_AT_ONCE):
        rows = _without_new(found, kind.entry, moment)
        if not rows:
            continue
        chunks = _columns(rows, kind.entry)
        if chunks is None:
            return Sum(0, 0, False)
        total += chunks.total()
        if part.history == "address_tx":
            account_no = numbers.of(folder).account_nos(chunks.number[chunks.chunk == 0])
            address_count += int(key_of(account_no[account_no >= 0]).sum())
        consistent = consistent and all(row.owned for row in rows) and chunks.in_order(end)
        end = chunks.end()
    return Sum(total, address_count, consistent)


class _Chunk(msgspec.Struct, frozen=True):
    number: int
    chunk: int
    entries: bytes
    owned: bool


class _End(msgspec.Struct, frozen=True):
    """The last chunk that was read, and its last entry. The default precedes every history."""

    number: int = -1
    chunk: int = -1
    count: int = 0
    tx_id: int = -1


class _Chunks(msgspec.Struct, frozen=True):
    """Chunks in columns: owner, place in the history and number of entries; and their entries, each with its owner.

    `quantity` is modulo PRIME, and 1 in a history without quantities.
    """

    number: Ints
    chunk: Ints
    count: Ints
    owner: Ints
    tx_id: Ints
    quantity: Ints

    def total(self) -> int:
        """The checksum."""
        terms = key_of(self.owner) * weight_of(self.tx_id) % PRIME * self.quantity % PRIME
        return int(terms.sum())

    def in_order(self, before: _End) -> bool:
        """Whether each history is numbered 0, 1, 2 … in order of tx_id: only its last chunk may not be full."""
        continued = self.number == _shifted(self.number, before.number)
        next_one = self.chunk == _shifted(self.chunk, before.chunk) + 1
        numbered = np.where(
            continued, next_one & (_shifted(self.count, before.count) == _ENTRIES_IN_CHUNK), self.chunk == 0
        )
        same_owner = self.owner == _shifted(self.owner, before.number)
        ascending = self.tx_id > np.where(same_owner, _shifted(self.tx_id, before.tx_id), -1)
        return bool(numbered.all() and ascending.all())

    def end(self) -> _End:
        """The last chunk and its last entry."""
        return _End(int(self.number[-1]), int(self.chunk[-1]), int(self.count[-1]), int(self.tx_id[-1]))


def _without_new(rows: Sequence[_Chunk], entry: np.dtype[np.void], moment: Moment) -> Sequence[_Chunk]:
    """Chunks without the entries of blocks after the noted one."""
    if not moment.has_new:
        return rows
    found = list[_Chunk]()
    for row in rows:
        if len(row.entries) % entry.itemsize == 0 and moment.is_new(_last_tx_id(row, entry)):
            tx_id = np.frombuffer(row.entries, entry)["tx_id"]
            old = np.frombuffer(row.entries, entry)[(tx_id < moment.first_new) | (tx_id >= moment.next_new)]
            if len(old):
                found.append(msgspec.structs.replace(row, entries=old.tobytes()))
        else:
            found.append(row)
    return found


def _last_tx_id(row: _Chunk, entry: np.dtype[np.void]) -> int:
    last = len(row.entries) - entry.itemsize
    return int.from_bytes(row.entries[last : last + 8], signed=True)


def _columns(rows: Sequence[_Chunk], entry: np.dtype[np.void]) -> _Chunks | None:
    """Chunks in columns; None if the bytes of one are not entries, or a quantity is 0."""
    lengths = ints([len(row.entries) for row in rows])
    if not lengths.all() or (lengths % entry.itemsize).any():
        return None
    entries = np.frombuffer(b"".join([row.entries for row in rows]), entry)
    quantity = np.ones(len(entries), np.int64)
    if entry is _QUANTITY:
        high, low = entries["high"].astype(np.int64), entries["low"].astype(np.uint64)
        if not (high | (low > 0)).all():
            return None
        quantity = (high * (2**64 % PRIME) + reduced(low)) % PRIME
    number, count = ints([row.number for row in rows]), lengths // entry.itemsize
    return _Chunks(
        number=number,
        chunk=ints([row.chunk for row in rows]),
        count=count,
        owner=np.repeat(number, count),
        tx_id=entries["tx_id"].astype(np.int64),
        quantity=quantity,
    )


def _shifted(column: Ints, first: int) -> Ints:
    """The value before each in a column; `first` is that before the first one."""
    return np.concatenate(([first], column[:-1]))


class _Kind(msgspec.Struct, frozen=True):
    ranges: sql.Query[HistoryRange]
    chunks: sql.Query[_Chunk]
    entry: np.dtype[np.void]


def _kind(history: str, owner_no: str, owner: str, entries: str, entry: np.dtype[np.void]) -> _Kind:
    return _Kind(
        _sql.query("ranges", HistoryRange, history=history, owner_no=owner_no),
        _sql.query("chunks", _Chunk, history=history, owner_no=owner_no, entries=entries, owner=owner),
        entry,
    )


# The entries of a chunk, as in schema.sql.
_TX = np.dtype([("tx_id", ">i8")])
_QUANTITY = np.dtype([("tx_id", ">i8"), ("high", ">u2"), ("low", ">u8")])
_sql = sql.beside(__file__)
_KINDS = {
    "address_tx": _kind("address_tx", "address_no", "address", "tx_ids", _TX),
    "account_tx": _kind("account_tx", "stake_no", "stake", "tx_ids", _TX),
    "asset_tx": _kind("asset_tx", "asset_no", "asset", "entries", _QUANTITY),
}
