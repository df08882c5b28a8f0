"""Who holds what, in the database. Everything here runs inside a commit of store.py.

A deep page of a long list must not cost a walk through all that lies before it, so long lists are counted in buckets:
each begins at a holder whose address opens one. What the tables hold depends on the holders alone, not on the way
there.
"""

from collections.abc import Mapping

import asyncpg
import msgspec

from shared import sql


async def move(db: asyncpg.Connection, moved: Mapping[tuple[int, int], int]) -> None:
    """Move quantities, by asset_id and address_id, and count the buckets that holders left and entered."""
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
    policy_id: int
    address_id: int
    quantity: str


_moved_of_policies = sql.query("moved_of_policies", _MovedOfPolicy)
move_quantities = sql.command("move_holders")
_move_policy_holders = sql.command("move_policy_holders")
_move_holder_buckets = sql.command("move_holder_buckets")
_move_policy_holder_buckets = sql.command("move_policy_holder_buckets")
_fill_holder_buckets = sql.command("fill_holder_buckets")
_fill_policy_holder_buckets = sql.command("fill_policy_holder_buckets")
