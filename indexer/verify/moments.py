"""The snapshots of verify: each is held for one statement or one part of history, never for all of it.

An old snapshot makes Postgres keep every version of a row that it may see. So verify notes the last block of the index,
adds up the tables that change with every block in the snapshot where it noted that, and reads everything else in
snapshots of their own: rows of history up to the noted block, and comparisons of tables with each other, which must
hold at any block. Rows of later blocks are left out. Every snapshot must still have the noted block
(docs/decisions/0065).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import msgspec

from shared import sql
from shared.ledger import tx_id_of


class TipGone(Exception):
    """The noted block is no longer on the chain: a rollback has removed it, or the whole index."""


class Noted(msgspec.Struct, frozen=True):
    """The last block of the index when a comparison began; `block_hash` is None if there was none."""

    slot_no: int
    block_hash: bytes | None
    ebb: bool

    @property
    def next_tx_id(self) -> int:
        """The first number after its transactions. An epoch boundary block has none, and may precede a block in its
        slot.
        """
        if self.block_hash is None:
            return 0
        return tx_id_of(self.slot_no if self.ebb else self.slot_no + 1, 0)

    def moment(self, db: asyncpg.Connection) -> "Moment":
        """The snapshot in which it was noted."""
        return Moment(db, self.next_tx_id, self.next_tx_id)


class Moment(msgspec.Struct, frozen=True):
    """A connection in a snapshot that has the noted block. Transactions from `first_new` to before `next_new` are those
    of later blocks.
    """

    db: asyncpg.Connection
    first_new: int
    next_new: int

    @property
    def has_new(self) -> bool:
        """Whether there are blocks after the noted one."""
        return self.next_new > self.first_new

    def is_new(self, tx_id: int) -> bool:
        """Whether this is a transaction of a later block."""
        return self.first_new <= tx_id < self.next_new


@asynccontextmanager
async def at(db: asyncpg.Connection, noted: Noted) -> AsyncIterator[Moment]:
    """A snapshot of a connection. Raises TipGone."""
    async with db.transaction(isolation="repeatable_read", readonly=True):
        yield await _moment(db, noted)


@asynccontextmanager
async def noting(db: asyncpg.Connection) -> AsyncIterator[Noted]:
    """A snapshot of a connection, and its last block."""
    async with db.transaction(isolation="repeatable_read", readonly=True):
        yield await _note(db)


class Moments(msgspec.Struct, frozen=True):
    """Snapshots of a connection that have the noted block, one after the other."""

    db: asyncpg.Connection
    noted: Noted

    @asynccontextmanager
    async def next(self) -> AsyncIterator[Moment]:
        """The next snapshot, for a large comparison. Raises TipGone."""
        async with at(self.db, self.noted) as moment:
            await allow_memory(self.db)
            yield moment

    async def all(self, query: sql.Query[sql.Row], *arguments: object) -> list[sql.Row]:
        """Every row of a statement, in its own snapshot. Raises TipGone."""
        async with self.next() as moment:
            return await query.all(moment.db, *arguments)


async def allow_memory(db: asyncpg.Connection) -> None:
    """Let Postgres sort and hash whole tables in memory, up to the end of the transaction."""
    await db.execute("SET LOCAL work_mem = '256MB'")


async def _note(db: asyncpg.Connection) -> Noted:
    return await _last.one(db) or Noted(0, None, False)


async def _moment(db: asyncpg.Connection, noted: Noted) -> Moment:
    if not await _has.only(db, noted.slot_no, noted.block_hash, noted.ebb):
        raise TipGone
    return Moment(db, noted.next_tx_id, (await _note(db)).next_tx_id)


_sql = sql.beside(__file__)
_last = _sql.query("last", Noted)
_has = _sql.values("has", bool)
