"""Checksums over the tables of histories: a part of checksums.py that processes add up, a range of numbers each.

Postgres would take three times as long, since it has to create a row for each entry.
"""

from collections.abc import Callable
from operator import lt, mul
from struct import unpack

import asyncpg
import msgspec

from indexer.verify.keys import key_of, square_of
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
    """The checksum of a range, and whether each history is numbered 0, 1, 2 … in order of tx_id and has its owner."""

    total: int
    consistent: bool


async def ranges(db: asyncpg.Connection) -> list[HistoryRange]:
    """All histories, in ranges of some thousand."""
    return [each for kind in _KINDS.values() for each in await kind.ranges.all(db, _RANGE_NUMBERS)]


async def added_up(db: asyncpg.Connection, part: HistoryRange) -> Sum:
    """The checksum of a range. The connection must be in a transaction."""
    kind = _KINDS[part.history]
    total, consistent = 0, True
    number, next_chunk, last = None, 0, -1
    async for rows in kind.chunks.parts(db, part.first_no, part.next_no, rows=_ROWS_AT_ONCE):
        for row in rows:
            if row.number != number:
                number, next_chunk, last = row.number, 0, -1
                key = kind.key_of(number)
            try:
                tx_ids, moved = kind.sum(row.entries)
            except ValueError:
                return Sum(0, False)
            total += key * moved
            in_order = tx_ids[0] > last and (len(tx_ids) == 1 or all(map(lt, tx_ids, tx_ids[1:])))
            consistent = consistent and row.owned and row.chunk == next_chunk and in_order
            last = tx_ids[-1]
            # A chunk that is not full is the last one.
            next_chunk = row.chunk + 1 if len(tx_ids) == _ENTRIES_IN_CHUNK else -1
    return Sum(total, consistent)


def _of_txs(entries: bytes) -> tuple[tuple[int, ...], int]:
    """The tx_ids in a chunk, and the sum of their weights. Raises ValueError."""
    count, rest = divmod(len(entries), 8)
    if rest or not count:
        raise ValueError(f"{len(entries)} bytes of tx_ids")
    tx_ids = unpack(f">{count}q", entries)
    return tx_ids, sum(tx_ids) + count


def _of_quantities(entries: bytes) -> tuple[tuple[int, ...], int]:
    """The tx_ids in a chunk of quantities, and the sum of quantities times weights. Raises ValueError."""
    count, rest = divmod(len(entries), 18)
    if rest or not count:
        raise ValueError(f"{len(entries)} bytes of quantities")
    numbers = unpack(">" + "qHQ" * count, entries)
    tx_ids, high, quantities = numbers[::3], numbers[1::3], numbers[2::3]
    if any(high):
        quantities = tuple(first << 64 | rest for first, rest in zip(high, quantities, strict=True))
    if 0 in quantities:
        raise ValueError("a quantity of 0")
    # NOTE: the sum of (tx_id + 1) * quantity, without a Python step per entry.
    return tx_ids, sum(map(mul, tx_ids, quantities)) + sum(quantities)


class _Chunk(msgspec.Struct, frozen=True):
    number: int
    chunk: int
    entries: bytes
    owned: bool


class _Kind(msgspec.Struct, frozen=True):
    ranges: sql.Query[HistoryRange]
    chunks: sql.Query[_Chunk]
    sum: Callable[[bytes], tuple[tuple[int, ...], int]]
    key_of: Callable[[int], int]


def _kind(
    history: str,
    owner_no: str,
    entries: str,
    owner: str,
    add: Callable[[bytes], tuple[tuple[int, ...], int]],
    key: Callable[[int], int],
) -> _Kind:
    return _Kind(
        _sql.query("ranges", HistoryRange, history=history, owner_no=owner_no),
        _sql.query("chunks", _Chunk, history=history, owner_no=owner_no, entries=entries, owner=owner),
        add,
        key,
    )


_sql = sql.beside(__file__)
_KINDS = {
    "address_tx": _kind("address_tx", "address_no", "tx_ids", "address", _of_txs, square_of),
    "account_tx": _kind("account_tx", "stake_no", "tx_ids", "stake", _of_txs, square_of),
    "asset_tx": _kind("asset_tx", "asset_no", "entries", "asset", _of_quantities, key_of),
}
