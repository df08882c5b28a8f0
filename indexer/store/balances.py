"""Balances of stake credentials, and the counts of their addresses. Everything here runs inside a commit of its caller.

A rollback moves the same amounts with the opposite sign.
"""

from collections.abc import Mapping

import asyncpg

from shared import sql
from shared.ledger import AddressNo, StakeNo


async def move(db: asyncpg.Connection, moved: Mapping[StakeNo, int], used: Mapping[AddressNo, int]) -> list[StakeNo]:
    """Move lovelace, and count the used addresses of credentials; `used` is that of histories.Lengths. Returns the
    credentials whose balance changes.
    """
    balances = [(stake_no, lovelace) for stake_no, lovelace in moved.items() if lovelace]
    if balances or used:
        await _move_balances.run(db, *sql.columns(balances, empty=2), list(used), list(used.values()))
    return [stake_no for stake_no, _ in balances]


async def add_up_staged(db: asyncpg.Connection) -> None:
    """Add up the balances staged in bulk, because an epoch begins or bulk ends."""
    await _add_up_staged_balances.run(db)
    await db.execute("TRUNCATE balance_staged")


async def count_addresses(db: asyncpg.Connection) -> None:
    """Count the addresses of all accounts again."""
    await _count_addresses.run(db)


_sql = sql.beside(__file__)
_move_balances = _sql.command("move_balances")
_count_addresses = _sql.command("count_addresses")
_add_up_staged_balances = _sql.command("add_up_staged_balances")
