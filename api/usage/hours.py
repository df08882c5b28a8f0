"""Add to the usage by hour, endpoint and class of status: requests, delivered events, and minutes of streams.

Whoever adds does so in the commit that says what has been counted, so that it is counted once.
"""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from api.sources import held_snapshots
from api.usage.queue import BreakdownSum
from shared import sql

WEBHOOK = "webhook"
"""The endpoint of events that a webhook has acknowledged."""

_CALLS_IN_PART = 16  # each further update of a row costs more while an old snapshot is held

_sql = sql.beside(__file__)
_part = _sql.values("part", int)
_name_endpoints = _sql.command("name_endpoints")
_add = _sql.command("add")


async def part(db: asyncpg.Connection) -> int:
    """The part of the usage tables to add to; not 0 while a session holds an old snapshot."""
    return await _part.only(db, held_snapshots.OLD_S, _CALLS_IN_PART)


async def add(db: asyncpg.Connection, to_part: int, sums: Sequence[BreakdownSum]) -> None:
    """Add sums, each of another credential, hour, endpoint or class of status, in the open transaction."""
    await _name_endpoints.run(db, sorted({row.endpoint for row in sums}))
    await _add.run(
        db,
        to_part,
        [UUID(hex=row.credential_id) for row in sums],
        [row.hour for row in sums],
        [row.endpoint for row in sums],
        [row.status_class for row in sums],
        [row.requests for row in sums],
        [row.took_us for row in sums],
        # NOTE: as text, since an array of arrays must be rectangular.
        ["{" + ",".join(map(str, row.durations)) + "}" for row in sums],
        [row.events for row in sums],
        [row.stream_minutes for row in sums],
    )
