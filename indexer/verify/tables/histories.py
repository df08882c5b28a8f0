"""Entries of the tables of histories, which processes read, a range of numbers each.

Postgres would take three times as long, since it has to create a row for each entry. The histories of addresses also
say how many addresses each account has.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path

import asyncpg
import msgspec
import numpy as np

from indexer.verify import entries
from indexer.verify.entries import Digests, Entries, Listed
from indexer.verify.history import numbers
from indexer.verify.keys import PRIME, Ints, Mask, Words, ints, key_of, weight_of
from indexer.verify.moments import Moment
from indexer.verify.results import MAX_SHOWN, CheckResult, Difference
from shared import sql

_RANGE_NUMBERS = 100_000
_ROWS_AT_ONCE = 2_000
_ENTRIES_IN_CHUNK = 64


class HistoryRange(msgspec.Struct, frozen=True):
    """A range of row numbers of a history, `last_no` included."""

    history: str
    first_no: int
    last_no: int


class Found(msgspec.Struct, frozen=True):
    """What was found in a range: the digests of its history and, for addresses, of `address_count`; and the first
    numbers whose owner has no row, and whose entries are not in order.
    """

    digests: Digests
    unowned: list[int]
    disordered: list[int]


async def ranges(db: asyncpg.Connection, histories: Collection[str]) -> list[HistoryRange]:
    """These histories, in ranges of some thousand numbers."""
    return [each for name in _KINDS if name in histories for each in await _KINDS[name].ranges.all(db, _RANGE_NUMBERS)]


async def examine(folder: Path, moment: Moment, part: HistoryRange) -> Found:
    """Add up a range up to the noted block; `folder` has the files of `numbers`."""
    found, end = Found({}, [], []), _End()
    async for rows in _rows(moment, part):
        chunks = _columns(rows, _KINDS[part.history])
        of_tables = _entries(part.history, chunks, folder)
        entries.add(found.digests, {table: each.digest() for table, each in of_tables.items()})
        found.unowned.extend(row.number for row in rows if not row.owned)
        found.disordered.extend(chunks.disordered(end))
        end = chunks.end()
    return Found(found.digests, *(list(dict.fromkeys(each))[:MAX_SHOWN] for each in (found.unowned, found.disordered)))


async def listed(
    folder: Path, partitions: Mapping[str, Collection[int]], moment: Moment, part: HistoryRange
) -> dict[str, Listed]:
    """The entries of a range that are in these partitions, by table."""
    found = dict[str, Listed]()
    async for rows in _rows(moment, part):
        of_tables = _entries(part.history, _columns(rows, _KINDS[part.history]), folder)
        chosen = {table: each.listed(partitions.get(table, ())) for table, each in of_tables.items()}
        entries.add_listed(found, chosen)
    return found


def without_rows(history: str, owners: Sequence[int]) -> CheckResult:
    """That these owners of a history have no row in their table."""
    kind = _KINDS[history]
    what = [f"row of {kind.owner_no} {number}, which has a {history}" for number in owners]
    return CheckResult(kind.owner, [Difference(each, None, "none", "a row") for each in what])


async def _rows(moment: Moment, part: HistoryRange) -> "AsyncIterator[Sequence[_Chunk]]":
    """The chunks of a range up to the noted block, some thousand at a time."""
    kind = _KINDS[part.history]
    async for found in kind.chunks.parts(moment.db, part.first_no, part.last_no, rows=_ROWS_AT_ONCE):
        rows = _without_new(found, kind.entry, moment)
        if rows:
            yield rows


class _Chunk(msgspec.Struct, frozen=True):
    """A chunk of the owner with a number; `rest` tells scripts with the same number apart, it is 0 for others."""

    number: int
    rest: int
    chunk: int
    entries: bytes
    owned: bool


class _End(msgspec.Struct, frozen=True):
    """The last chunk that was read, and its last entry. The default precedes every history, even one with its number,
    which a label may have.
    """

    number: int = -1
    rest: int = 0
    chunk: int = -1
    count: int = _ENTRIES_IN_CHUNK
    tx_id: int = -1


class _Chunks(msgspec.Struct, frozen=True):
    """Chunks in columns: owner, place in the history and number of entries; and their entries, each with its owner.

    `repeats` says whether a transaction may have several entries, and `whole` whether the bytes of a chunk are entries.
    `low` and `high` are the quantity in two parts. In a history without quantities they are 1 and `rest` modulo PRIME.
    """

    number: Ints
    rest: Ints
    chunk: Ints
    count: Ints
    whole: Mask
    owner: Ints
    tx_id: Ints
    low: Words
    high: Ints
    repeats: bool

    def disordered(self, before: _End) -> list[int]:
        """The owners whose entries are not numbered 0, 1, 2 … in order of tx_id, or have a quantity of 0. Only the last
        chunk of a history may not be full.
        """
        continued = self.number == _shifted(self.number, before.number)
        continued &= self.rest == _shifted(self.rest, before.rest)
        next_one = self.chunk == _shifted(self.chunk, before.chunk) + 1
        numbered = np.where(
            continued, next_one & (_shifted(self.count, before.count) == _ENTRIES_IN_CHUNK), self.chunk == 0
        )
        numbered &= self.whole
        same_owner = np.ones(len(self.tx_id), np.bool_)
        filled = self.count > 0
        same_owner[(np.cumsum(self.count) - self.count)[filled]] = continued[filled]
        right = self.tx_id > np.where(same_owner, _shifted(self.tx_id, before.tx_id), -1) - self.repeats
        right &= (self.low > 0) | (self.high > 0)
        wrong: list[int] = np.unique(np.concatenate((self.number[~numbered], self.owner[~right]))).tolist()
        return wrong

    def end(self) -> _End:
        """The last chunk and its last entry."""
        tx_id = int(self.tx_id[-1]) if len(self.tx_id) else -1
        return _End(int(self.number[-1]), int(self.rest[-1]), int(self.chunk[-1]), int(self.count[-1]), tx_id)


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


def _columns(rows: Sequence[_Chunk], kind: "_Kind") -> _Chunks:
    """Chunks in columns."""
    number, lengths = ints([row.number for row in rows]), ints([len(row.entries) for row in rows])
    count, rest = lengths // kind.entry.itemsize, lengths % kind.entry.itemsize
    entries_of = [row.entries for row in rows]
    if rest.any():
        entries_of = [entries[: len(entries) - more] for entries, more in zip(entries_of, rest.tolist(), strict=True)]
    found = np.frombuffer(b"".join(entries_of), kind.entry)
    rest_of_number = ints([row.rest for row in rows])
    low, high = np.ones(len(found), np.uint64), np.repeat(rest_of_number % PRIME, count)
    if kind.entry is _QUANTITY:
        low, high = found["low"].astype(np.uint64), found["high"].astype(np.int64)
    return _Chunks(
        number=number,
        rest=rest_of_number,
        chunk=ints([row.chunk for row in rows]),
        count=count,
        whole=(rest == 0) & (count > 0),
        owner=np.repeat(number, count),
        tx_id=found["tx_id"].astype(np.int64),
        low=low + np.uint64(kind.more),
        high=high,
        repeats=kind.repeats,
    )


def _entries(history: str, chunks: _Chunks, folder: Path) -> dict[str, Entries]:
    """The entries of chunks, by table."""
    hashes = key_of(chunks.owner) * weight_of(chunks.tx_id) % PRIME
    found = {history: Entries(chunks.owner, chunks.tx_id, hashes, chunks.low, chunks.high)}
    if history == "address_tx":
        account_no = numbers.in_folder(folder).account_nos(chunks.number[chunks.chunk == 0])
        found["address_count"] = entries.of_accounts(account_no[account_no >= 0])
    return found


def _shifted(column: Ints, first: int) -> Ints:
    """The value before each in a column; `first` is that before the first one."""
    return np.concatenate(([first], column[:-1]))


class _Kind(msgspec.Struct, frozen=True):
    owner_no: str
    owner: str
    entry: np.dtype[np.void]
    more: int
    ranges: sql.Query[HistoryRange]
    chunks: sql.Query[_Chunk]
    repeats: bool = False


def _kind(
    history: str,
    owner_no: str,
    owner: str,
    entries: str,
    entry: np.dtype[np.void],
    *,
    may_be_0: bool = False,
    key: str = "",
) -> _Kind:
    """`key` is the column of `owner` to which `owner_no` refers, if its name differs."""
    return _Kind(
        owner_no,
        owner,
        entry,
        1 if may_be_0 else 0,
        _sql.query("ranges", HistoryRange, history=history, owner_no=owner_no),
        _sql.query(
            "chunks", _Chunk, history=history, owner_no=owner_no, entries=entries, owner=owner, key=key or owner_no
        ),
    )


def _without_owners(history: str, owner_no: str, entries: str) -> _Kind:
    """A history of what has no row of its own, by numbers with gaps of any size."""
    ranges = _sql.query("sparse_ranges", HistoryRange, history=history, owner_no=owner_no)
    chunks = _sql.query("chunks_without_owners", _Chunk, history=history, owner_no=owner_no, entries=entries)
    return _Kind(owner_no, "", _TX, 0, ranges, chunks)


# The entries of a chunk, as in schema.sql.
_TX = np.dtype([("tx_id", ">i8")])
_QUANTITY = np.dtype([("tx_id", ">i8"), ("high", ">u2"), ("low", ">u8")])
_sql = sql.beside(__file__)
_script_ranges = _sql.query("script_ranges", HistoryRange)
_script_chunks = _sql.query("script_chunks", _Chunk)
_KINDS = {
    "address_tx": _kind("address_tx", "address_no", "address", "tx_ids", _TX),
    "account_tx": _kind("account_tx", "stake_no", "stake", "tx_ids", _TX),
    "credential_tx": _kind("credential_tx", "credential_no", "address", "tx_ids", _TX, key="address_no"),
    "account_withdrawal": _kind("account_withdrawal", "stake_no", "stake", "entries", _QUANTITY, may_be_0=True),
    "asset_tx": _kind("asset_tx", "asset_no", "asset", "entries", _QUANTITY),
    "label_tx": _without_owners("label_tx", "label_no", "tx_ids"),
    "redeemer_tx": _Kind("script_key", "", _TX, 0, _script_ranges, _script_chunks, repeats=True),
}
HISTORIES = tuple(_KINDS)
"""The tables of histories."""
