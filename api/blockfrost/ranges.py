"""`from` and `to` of lists of transactions, both inclusive: a block number, optionally with a transaction index."""

import re
from typing import Annotated

import msgspec

from api.blockfrost import refusals
from api.blockfrost.paging import Page
from api.chain import blocks
from api.parameters import JsonSchema, Kind
from shared.ledger import MAX_BLOCK_TRANSACTIONS, tx_id_of
from shared.sql import Connection


class Place(msgspec.Struct, frozen=True):
    """A block and, if `index` is set, a transaction in it."""

    block_no: int
    index: int | None


class PlaceKind(Kind[Place]):
    """A block number, optionally followed by a colon and the index of a transaction."""

    _FORM = re.compile(r"([0-9]{1,9})(?::([0-9]{1,4}))?")

    def __init__(self) -> None:
        schema: JsonSchema = {"type": "string", "pattern": f"^{self._FORM.pattern}$"}
        expected = "a block number, or a block number and the index of a transaction such as `8929261:10`"
        super().__init__(expected, schema, refusals.invalid_range)

    def of_text(self, text: str) -> Place:
        match = self._FORM.fullmatch(text)
        if match is None:
            raise ValueError(text)
        block_no, index = match.groups()
        return Place(int(block_no), None if index is None else int(index))


class RangePage(Page, frozen=True, kw_only=True):
    """A page of a list of transactions between two places, both included."""

    first: Annotated[Place | None, PlaceKind()] = msgspec.field(name="from", default=None)
    last: Annotated[Place | None, PlaceKind()] = msgspec.field(name="to", default=None)

    def check(self) -> None:
        if self.first is None or self.last is None:
            return
        if (self.first.block_no, self.first.index or 0) > (self.last.block_no, _end(self.last)):
            raise refusals.invalid_range()


async def limits(db: Connection, asked: RangePage) -> tuple[int | None, int | None]:
    """The first tx_id of a range, and the first one after it, in a snapshot; None for no limit."""
    first = None if asked.first is None else await _at(db, asked.first, asked.first.index or 0)
    last = None if asked.last is None else await _at(db, asked.last, _end(asked.last))
    return first, None if last is None else last + 1


async def _at(db: Connection, place: Place, index: int) -> int:
    """The tx_id at a place; outside the indexed blocks, a tx_id that no transaction has."""
    row = await blocks.look_up(db, place.block_no)
    if row.block_hash is None:
        return tx_id_of(row.tip_slot_no + 1, 0) if place.block_no > row.tip_block_no else -1
    return tx_id_of(row.slot_no, index)


def _end(place: Place) -> int:
    """The last index that a place includes."""
    return MAX_BLOCK_TRANSACTIONS - 1 if place.index is None else place.index
