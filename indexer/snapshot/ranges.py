"""Which ranges of its rows a table is copied in: whole epochs, if rows of old blocks do not change any more.

How a rollback finds the rows of undone blocks (rows/tables.py) says whether a table is of that kind, and by which
column. The ranges of older epochs stay the same from one snapshot to the next; that their rows do is not assumed.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from indexer.rows import tables
from indexer.rows.tables import Found
from indexer.snapshot.manifest import Range
from shared.network import Network

LEAST_ROWS = 100_000
"""Of a table that is copied in ranges, by Postgres' estimate."""
TRANSACTIONS = 100_000
"""After as many, an epoch ends a range. So mainnet's are an epoch each, and short epochs do not make many files."""
ADDRESSES = 1 << 20

_COLUMNS = {
    Found.BY_TX_ID: "tx_id",
    Found.BY_SLOT_NO: "slot_no",
    Found.AFTER_TIP: "slot_no",
    Found.BY_EPOCH_NO: "epoch_no",
    Found.BY_NEXT_EPOCH_NO: "epoch_no",
    Found.BY_EARNED_EPOCH_NO: "epoch_no",
}
_FOUND = {table.name: table.found for table in tables.ALL}


class Epoch(msgspec.Struct, frozen=True):
    """An epoch with blocks, and the number of its transactions."""

    epoch_no: int
    tx_count: int


def ends_of(epochs: Sequence[Epoch]) -> list[int]:
    """The epochs, without the last one, that end a range, in order."""
    ends, transactions = list[int](), 0
    for epoch in epochs[:-1]:
        transactions += epoch.tx_count
        if transactions >= TRANSACTIONS:
            ends.append(epoch.epoch_no)
            transactions = 0
    return ends


def of_table(
    name: str, rows: int, ends: Sequence[int], last_address_no: int, network: Network
) -> Iterator[Range | None]:
    """The ranges of a table of about `rows` rows, together all of it; a single None if it is copied whole."""
    column = "address_no" if name == tables.ADDRESS.name else _COLUMNS.get(_FOUND.get(name, Found.BY_CONCERN))
    if column is None or rows < LEAST_ROWS:
        yield None
        return
    first_slots = [network.epoch_start(epoch_no + 1) for epoch_no in ends]
    bounds: dict[str, list[int]] = {
        "tx_id": [slot_no << 16 for slot_no in first_slots],
        "slot_no": first_slots,
        "epoch_no": [epoch_no + 1 for epoch_no in ends],
        "address_no": list(range(ADDRESSES, last_address_no, ADDRESSES)),
    }
    for first, end in pairwise([None, *bounds[column], None]):
        yield Range(column, first, end)
