"""The table `spender`: which transactions spent the outputs of a slot.

The process that reads the transactions of a slot also reads its row. The outputs that an entry names must exist there,
and spending.py compares the spenders with the inputs of history.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from indexer.verify.history.rows import GenesisOutput
from indexer.verify.keys import Ints, Number, ints, places, places_in
from indexer.verify.moments import Moment
from indexer.verify.results import MAX_SHOWN, Difference
from shared import sql
from shared.ledger import slot_of
from shared.sql import Connection

_LOWEST_SLOT = -(1 << 47)
_ENTRY = np.dtype([("spent_by", ">i8"), ("rest", ">u4")])
"""An entry of `spender`. The place of a transaction in its block and the output's index are the last 32 bits of
output_no.
"""


class Spenders(msgspec.Struct, frozen=True):
    """The outputs in some rows of `spender`, by output_no in ascending order, and the tx_ids that spent them.

    `disordered` are the slots whose entries are not in the order of spending.
    """

    output_no: Ints
    spent_by: Ints
    disordered: list[int]

    def find(self, tx_id: Ints, index: Ints) -> Ints:
        """The tx_ids that spent outputs, -1 for one that is not in the rows."""
        place, known = places_in(self.output_no, output_no(tx_id, index))
        spent_by = np.full(len(place), -1)
        spent_by[known] = self.spent_by[place[known]]
        return spent_by

    def of_genesis(self, outputs: Sequence[GenesisOutput]) -> Ints:
        """The tx_ids that spent genesis outputs, -1 for one that is not in the rows."""
        return self.find(ints([output.tx_id for output in outputs]), np.zeros(len(outputs), np.int64))


class SpenderRow(msgspec.Struct, frozen=True):
    """A row of `spender`."""

    slot_no: int
    entries: bytes


async def of_slots(db: Connection, first_tx_id: int, next_tx_id: int) -> list[SpenderRow]:
    """The rows of the slots of transactions from one tx_id up to another."""
    return await _rows.all(db, slot_of(first_tx_id), slot_of(next_tx_id))


async def of_genesis(db: Connection) -> list[SpenderRow]:
    """The rows of the slots of genesis outputs."""
    return await _rows.all(db, _LOWEST_SLOT, 0)


def without_new(rows: Sequence[SpenderRow], moment: Moment) -> list[SpenderRow]:
    """Rows without the entries of blocks after the noted one."""
    if not moment.has_new:
        return list(rows)
    spent_by = np.frombuffer(b"".join([row.entries for row in rows]), _ENTRY)["spent_by"]
    kept = (spent_by < moment.first_new) | (spent_by >= moment.next_new)
    if kept.all():
        return list(rows)
    found, end = list[SpenderRow](), 0
    for row in rows:
        first, end = end, end + len(row.entries) // _ENTRY.itemsize
        entries = np.frombuffer(row.entries, _ENTRY)[kept[first:end]].tobytes()
        if entries:
            found.append(SpenderRow(row.slot_no, entries))
    return found


def output_no(tx_id: Number, index: Number) -> Number:
    """One number for an output, by the tx_id that made it and its index."""
    return tx_id << 16 | index


def spent_in(rows: Sequence[SpenderRow]) -> Spenders:
    """The spenders in rows."""
    row = places(ints([len(each.entries) // _ENTRY.itemsize for each in rows]))
    entries = np.frombuffer(b"".join([each.entries for each in rows]), _ENTRY)
    output_nos = (ints([each.slot_no for each in rows]) << 32)[row] | entries["rest"]
    spent_by = entries["spent_by"].astype(np.int64)
    earlier = (row[1:] == row[:-1]) & (spent_by[1:] < spent_by[:-1])
    in_order = np.argsort(output_nos)
    disordered = [rows[place].slot_no for place in np.unique(row[1:][earlier]).tolist()]
    return Spenders(output_nos[in_order], spent_by[in_order], disordered)


def wrong(spenders: Spenders, tx_id: Ints, index: Ints, spent_by: Ints) -> list[Difference]:
    """Entries of outputs that do not exist or have another entry, and slots that are not in order.

    `tx_id`, `index` and `spent_by` are those of all outputs of the slots.
    """
    found = [
        Difference(f"spender of the outputs of slot {slot_no}", None, "not in the order of spending", "in order")
        for slot_no in spenders.disordered[:MAX_SHOWN]
    ]
    if (spent_by >= 0).sum() == len(spenders.output_no):
        return found
    again = np.diff(spenders.output_no, prepend=_NO_OUTPUT) == 0
    left = again | ~np.isin(spenders.output_no, output_no(tx_id, index))
    for place in np.flatnonzero(left)[:MAX_SHOWN].tolist():
        number = int(spenders.output_no[place])
        what = f"spender of output {number & 0xFFFF} of tx_id {number >> 16}"
        found.append(Difference(what, None, f"tx_id {spenders.spent_by[place]}", None))
    return found


_NO_OUTPUT = -1 << 63
_sql = sql.beside(__file__)
_rows = _sql.query("rows", SpenderRow)
