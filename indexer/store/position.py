"""Where the index stands, and questions about the blocks of its chain. Nothing here writes."""

from collections.abc import Sequence

import msgspec

from shared import ledger, sql
from shared.ledger import Point
from shared.phase import Phase


class IndexPosition(msgspec.Struct, frozen=True):
    """The position of the index: its last block, its first, its phase, the completed steps of the end of bulk, the era
    of the last block, and whether that is an epoch boundary block.
    """

    slot_no: int
    block_hash: bytes
    block_no: int
    first_block_no: int
    tx_count: int
    phase: str
    finalize_step: int
    era: str
    ebb: bool

    @property
    def point(self) -> Point:
        """The last block."""
        return Point(self.slot_no, self.block_hash)

    @property
    def is_bulk(self) -> bool:
        """Whether histories and amounts are staged."""
        return self.phase == Phase.BULK


class OurBlock(msgspec.Struct, frozen=True):
    """The number and the era of a block of our chain, and whether it is an epoch boundary block."""

    block_no: int
    era: str
    ebb: bool


class NumberedBlock(msgspec.Struct, frozen=True):
    """A block of our chain."""

    slot_no: int
    block_no: int
    block_hash: bytes


class Counts(msgspec.Struct, frozen=True):
    """The number of blocks after a point, and of the transactions in them."""

    blocks: int
    transactions: int


async def read(db: sql.Connection) -> IndexPosition | None:
    """The position of the index, None if nothing is indexed."""
    return await _position.one(db)


async def points(db: sql.Connection, *depths: int) -> list[Point]:
    """Points of our chain to offer to a node, newest first. Some have these depths; one is as deep as a node can roll
    back.
    """
    return await _points.all(db, [ledger.SECURITY_PARAMETER, *depths])


async def holds(db: sql.Connection, point: Point) -> bool:
    """Whether a block of our chain, epoch boundary blocks included, is at this point."""
    return await _block_at.one(db, point.slot_no, point.block_hash) is not None


async def our_block(db: sql.Connection, point: Point) -> OurBlock:
    """The block of our chain at this point."""
    block = await _block_at.one(db, point.slot_no, point.block_hash)
    assert block is not None, f"{point} is not of our chain"
    return block


async def numbered(db: sql.Connection, block_nos: Sequence[int]) -> list[NumberedBlock]:
    """Our blocks with some numbers, those that there are, the last one first."""
    return await _numbered.all(db, list(block_nos))


async def last_at_or_before(db: sql.Connection, slot_no: int) -> Point | None:
    """The last block at or before a slot."""
    return await _last_at_or_before.one(db, slot_no)


async def counts_after(db: sql.Connection, point: Point | None) -> Counts:
    """The blocks after a point (None: all) and their transactions. Takes about a second for ten million blocks."""
    return await _counts_after.only(db, -1 if point is None else point.slot_no)


_sql = sql.beside(__file__)
_position = _sql.query("position", IndexPosition)
_points = _sql.query("points", Point)
_block_at = _sql.query("block_at", OurBlock)
_numbered = _sql.query("numbered", NumberedBlock)
_last_at_or_before = _sql.query("last_at_or_before", Point)
_counts_after = _sql.query("counts_after", Counts)
