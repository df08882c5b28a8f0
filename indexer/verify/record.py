"""The record of the last verification of each network, for `/status` and for `verify --every`."""

from datetime import datetime

import asyncpg
import msgspec

from shared import schema, sql
from shared.network import Network


class Verification(msgspec.Struct, frozen=True):
    """A verification that ran to its end.

    The last verified block is at `slot_no`. `node_blocks` is the number of blocks compared with a node, None without
    one. `differing` are the checks that found differences.
    """

    began_at: datetime
    slot_no: int
    block_no: int
    node_blocks: int | None
    differing: list[str]


async def now(db: asyncpg.Connection) -> datetime:
    """The time by the clock of the database, which all records use."""
    found: datetime = await db.fetchval("SELECT clock_timestamp()")
    return found


async def keep(db: asyncpg.Connection, network: Network, done: Verification) -> None:
    """Record a verification that ends now. Raises WrongSchema."""
    async with schema.commit(db):
        await _keep.run(
            db, network.network_id, done.began_at, done.slot_no, done.block_no, done.node_blocks, done.differing
        )


async def due_in_s(db: asyncpg.Connection, network: Network, every_s: float) -> float:
    """Seconds until the next verification is due; 0 if it is."""
    due = await _due.one(db, network.network_id, every_s)
    return 0.0 if due is None else max(due.in_s, 0.0)


class _Due(msgspec.Struct, frozen=True):
    in_s: float


_sql = sql.beside(__file__)
_keep = _sql.command("keep")
_due = _sql.query("due", _Due)
