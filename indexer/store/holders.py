"""Holders in the database. Everything here runs inside a commit of writer.py.

A deep page of a long list must not read all rows before it, so long lists are counted in buckets: each begins at a
holder whose address opens one. The tables depend on the current holders alone, not on the order of changes.
"""

from collections.abc import Mapping

import asyncpg
import msgspec

from shared import sql
from shared.ledger import AddressNo, AssetNo, PolicyNo


async def move(db: asyncpg.Connection, moved: Mapping[tuple[AssetNo, AddressNo], int]) -> None:
    """Move quantities, by asset_no and address_no, and count the buckets that holders left and entered."""
    # Quantities go as text because sums exceed bigint.
    rows = [(*key, str(quantity)) for key, quantity in moved.items() if quantity]
    if not rows:
        return
    columns = [list(column) for column in zip(*rows, strict=True)]
    await move_quantities.run(db, *columns)
    await _move_holder_buckets.run(db, *columns)
    of_policies = [msgspec.structs.astuple(row) for row in await _moved_of_policies.all(db, *columns)]
    if of_policies:
        columns = [list(column) for column in zip(*of_policies, strict=True)]
        await _move_policy_holders.run(db, *columns)
        await _move_policy_holder_buckets.run(db, *columns)


async def fill(db: asyncpg.Connection) -> None:
    """Count every bucket, at the end of bulk."""
    await _fill_holder_buckets.run(db)
    await _fill_policy_holder_buckets.run(db)


class _MovedOfPolicy(msgspec.Struct, frozen=True):
    policy_no: PolicyNo
    address_no: AddressNo
    quantity: str


_OF_ASSETS = {"holder": "holder", "held_no": "asset_no"}
_OF_POLICIES = {"holder": "policy_holder", "held_no": "policy_no"}

_sql = sql.beside(__file__)
move_quantities = _sql.command("move_holders", **_OF_ASSETS)
_move_holder_buckets = _sql.command("move_holder_buckets", **_OF_ASSETS)
_fill_holder_buckets = _sql.command("fill_holder_buckets", **_OF_ASSETS)
_moved_of_policies = _sql.query("moved_of_policies", _MovedOfPolicy)
_move_policy_holders = _sql.command("move_holders", **_OF_POLICIES)
_move_policy_holder_buckets = _sql.command("move_holder_buckets", **_OF_POLICIES)
_fill_policy_holder_buckets = _sql.command("fill_holder_buckets", **_OF_POLICIES)
