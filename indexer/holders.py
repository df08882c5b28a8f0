"""Who holds what, in the database. Everything here runs inside a commit of store.py.

A deep page of a long list must not cost a walk through all that lies before it, so long lists are counted in buckets:
each begins at a holder whose address opens one. What the tables hold depends on the holders alone, not on the way
there.
"""

from collections.abc import Mapping

import asyncpg

from shared import sql

Moved = Mapping[tuple[int, int], int]
"""Net change of quantity by asset_id or policy_id, and address_id."""


async def move(db: asyncpg.Connection, holders: Moved, policy_holders: Moved, *, bulk: bool) -> None:
    """Move held quantities and, unless in bulk, count the buckets that they left and entered."""
    for moved, move_quantities, move_buckets in (
        (holders, _move_holders, _move_holder_buckets),
        (policy_holders, _move_policy_holders, _move_policy_holder_buckets),
    ):
        # Quantities go as text because sums exceed bigint.
        rows = [(*key, str(quantity)) for key, quantity in moved.items() if quantity]
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            await move_quantities.run(db, *columns)
            if not bulk:
                await move_buckets.run(db, *columns)


async def fill(db: asyncpg.Connection) -> None:
    """Count every bucket, at the end of bulk."""
    await _fill_holder_buckets.run(db)
    await _fill_policy_holder_buckets.run(db)


_move_holders = sql.command("move_holders")
_move_policy_holders = sql.command("move_policy_holders")
_move_holder_buckets = sql.command("move_holder_buckets")
_move_policy_holder_buckets = sql.command("move_policy_holder_buckets")
_fill_holder_buckets = sql.command("fill_holder_buckets")
_fill_policy_holder_buckets = sql.command("fill_policy_holder_buckets")
