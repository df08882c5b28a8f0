"""Compare transactions with their blocks: a part of verify.

consistency.py compares blocks with each other.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from indexer.verify.history.rows import Row
from indexer.verify.keys import Ints
from indexer.verify.results import Difference
from shared import sql
from shared.ledger import slot_of
from shared.sql import Connection

_HASH_BYTES = 32


async def wrong(db: Connection, tx_id: Ints, first_tx_id: int, next_tx_id: int) -> list[Difference]:
    """Blocks of a range that count their transactions wrongly, or whose transactions are not numbered 0, 1, 2 …"""
    slot_no, index = tx_id >> 16, tx_id & 0xFFFF
    ends = np.flatnonzero(np.diff(slot_no, append=-1))
    counts = np.diff(ends, prepend=-1)
    counted = dict(zip(slot_no[ends].tolist(), counts.tolist(), strict=True))
    stored = {row.slot_no: row.tx_count for row in await _blocks.all(db, slot_of(first_tx_id), slot_of(next_tx_id))}
    found = [
        Difference(f"tx_count of block {slot}", None, _text(stored.get(slot)), str(counted.get(slot, 0)))
        for slot in sorted(stored.keys() | counted.keys())
        if stored.get(slot) != counted.get(slot, 0)
    ]
    last = index[ends]
    return found + [
        Difference(
            f"transactions of block {slot_no[ends[place]]}",
            None,
            f"the last of {counts[place]} has index {last[place]}",
            f"index {counts[place] - 1}",
        )
        for place in np.flatnonzero(last != counts - 1)
    ]


def wrong_hashes(rows: Sequence[Row]) -> list[Difference]:
    """Transactions whose hash has a wrong length."""
    return [
        Difference(f"length of hash of tx_id {row.tx_id}", None, str(len(row.hash)), str(_HASH_BYTES))
        for row in rows
        if len(row.hash) != _HASH_BYTES
    ]


def _text(count: int | None) -> str | None:
    return None if count is None else str(count)


class _Block(msgspec.Struct, frozen=True):
    slot_no: int
    tx_count: int


_sql = sql.beside(__file__)
_blocks = _sql.query("blocks", _Block)
