"""Addresses are numbered in the order of their first use, also after a rollback. Runs inside its commit."""

from collections.abc import Mapping

import asyncpg

from shared import sql
from shared.ledger import AddressNo


async def delete_unused(db: asyncpg.Connection, undone: Mapping[AddressNo, int], *, bulk: bool) -> list[bytes]:
    """Delete the addresses that only undone transactions have used, and return them. When used again, they get new
    numbers, after those of the addresses in use.

    `undone` counts the undone transactions of each address. In a live index call this before its history is cut, in
    bulk after its staged rows are deleted.
    """
    if not undone:
        return []
    numbers = list(undone)
    if bulk:
        return await _delete_unused_in_bulk.all(db, numbers)
    return await _delete_unused.all(db, numbers, list(undone.values()))


_sql = sql.beside(__file__)
_delete_unused = _sql.values("delete_unused", bytes)
_delete_unused_in_bulk = _sql.values("delete_unused_in_bulk", bytes)
