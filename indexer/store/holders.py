"""Holders in the database. Everything here runs inside a commit of its caller: writer.py or finish_bulk.py.

A deep page of a long list must not read all rows before it, so long lists are counted in buckets: each begins at a
holder whose address opens one. The tables depend on the current holders alone, not on the order of changes.
"""

from collections.abc import Mapping

import asyncpg
import msgspec

from shared import sql
from shared.ledger import AddressNo, AssetNo


async def move(db: asyncpg.Connection, moved: Mapping[tuple[AssetNo, AddressNo], int]) -> None:
    """Move quantities, by asset_no and address_no, and count the buckets that holders left and entered."""
    # Quantities go as text because sums exceed bigint.
    of_addresses = [_Moved(*key, str(quantity)) for key, quantity in moved.items() if quantity]
    if of_addresses:
        await _move_with_policies(db, of_addresses, HOLDERS, _POLICY_HOLDERS)
        of_accounts = await _moved_of_accounts.all(db, *_columns(of_addresses))
        await _move_with_policies(db, of_accounts, _ACCOUNT_HOLDERS, _POLICY_ACCOUNT_HOLDERS)


async def fill(db: asyncpg.Connection) -> None:
    """Count every bucket, at the end of bulk."""
    for holders in (HOLDERS, _POLICY_HOLDERS, _ACCOUNT_HOLDERS, _POLICY_ACCOUNT_HOLDERS):
        await holders.fill_buckets.run(db)


async def _move_with_policies(
    db: asyncpg.Connection, moved: "list[_Moved]", of_assets: "_Holders", of_policies: "_Holders"
) -> None:
    await of_assets.move(db, moved)
    if moved:
        await of_policies.move(db, await _moved_of_policies.all(db, *_columns(moved)))


class _Moved(msgspec.Struct, frozen=True):
    """The quantity of an asset or policy that came to an address or account (above 0), or left it."""

    held_no: int
    holder_no: int
    quantity: str


class _Holders:
    """The holders of assets or policies by address or account."""

    def __init__(self, holder: str, held_no: str, who: str) -> None:
        parts = {"holder": holder, "held_no": held_no, "who": who}
        self.move_quantities = _sql.command("move_holders", **parts)
        self._move_buckets = _sql.command("move_holder_buckets", **parts)
        self.fill_buckets = _sql.command("fill_holder_buckets", **parts)

    async def move(self, db: asyncpg.Connection, moved: list[_Moved]) -> None:
        """Move quantities, and count the buckets that holders left and entered."""
        if moved:
            columns = _columns(moved)
            await self.move_quantities.run(db, *columns)
            await self._move_buckets.run(db, *columns)


def _columns(moved: list[_Moved]) -> list[list[object]]:
    return [list(column) for column in zip(*map(msgspec.structs.astuple, moved), strict=True)]


_sql = sql.beside(__file__)
_moved_of_policies = _sql.query("moved_of_policies", _Moved)
_moved_of_accounts = _sql.query("moved_of_accounts", _Moved)
HOLDERS = _Holders("holder", "asset_no", "address_no")
_POLICY_HOLDERS = _Holders("policy_holder", "policy_no", "address_no")
_ACCOUNT_HOLDERS = _Holders("account_holder", "asset_no", "account_no")
_POLICY_ACCOUNT_HOLDERS = _Holders("policy_account_holder", "policy_no", "account_no")
