"""The packed histories in the database. Everything here runs inside a commit of writer.py."""

from collections.abc import Mapping
from typing import Any

import asyncpg
import msgspec

from indexer.rows.histories import HistoryEntries
from indexer.store.undone import Undone
from shared import sql
from shared.ledger import AddressNo


async def add(db: asyncpg.Connection, entries: HistoryEntries) -> None:
    """Add the entries of a batch."""
    of_histories = (entries.address_txs, entries.account_txs, entries.asset_txs, entries.withdrawals)
    if any(chunks.added for chunks in of_histories):
        grown = await _add_entries.one(db, *(column for chunks in of_histories for column in chunks.columns()))
        expected = sum(len(chunks.added) - len(chunks.begun) for chunks in of_histories)
        assert grown is not None and grown.chunks == expected, f"{grown} where {expected} chunks grow"


async def cut(db: asyncpg.Connection, undone: Undone) -> list[AddressNo]:
    """Cut off the last entries, those of a rollback. Returns the addresses that have no entry left."""
    of_histories: tuple[Mapping[Any, int], ...] = (
        undone.address_txs,
        undone.account_txs,
        undone.asset_txs,
        undone.withdrawals,
    )
    if not any(of_histories):
        return []
    columns = [column for entries in of_histories for column in sql.columns(sorted(entries.items()), empty=2)]
    return [row.address_no for row in await _cut_entries.all(db, *columns)]


class _Grown(msgspec.Struct, frozen=True):
    chunks: int


class _Unused(msgspec.Struct, frozen=True):
    address_no: AddressNo


_sql = sql.beside(__file__)
_add_entries = _sql.query("add_entries", _Grown)
_cut_entries = _sql.query("cut_entries", _Unused)
