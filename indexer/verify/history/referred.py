"""The outputs that transactions name without spending them: each exists and is older than the transaction.

Whether it is the one that the transaction has named, only the node knows (against_node.py).
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from indexer.verify.history import spending
from indexer.verify.history.rows import Row
from indexer.verify.results import MAX_SHOWN, Difference
from shared import packed, sql
from shared.sql import Connection

_LOOKED_UP_AT_ONCE = 1_000


class _Outputs(msgspec.Struct, frozen=True):
    tx_id: int
    outputs: bytes | None  # null for an output of the genesis


async def wrong(db: Connection, rows: Sequence[Row], *, from_origin: bool) -> list[Difference]:
    """The first outputs that some transactions, whole blocks, can't have named, and returns of collateral to no output.

    An output without a number precedes the first indexed block. In an index from the origin none does.
    """
    naming = [(row, packed.unpack_referred(row.referred)) for row in rows if row.referred is not None]
    found = [each for row, said in naming for each in _out_of_place(row, said, from_origin=from_origin)]
    named = {number for _, said in naming for number, _ in _named(said) if isinstance(number, int)}
    made = {row.tx_id: row.outputs for row in rows}
    indexes = {number: packed.output_indexes(made[number]) for number in named & made.keys()}
    elsewhere = sorted(named - made.keys())
    for first in range(0, len(elsewhere), _LOOKED_UP_AT_ONCE):
        for each in await _outputs_of.all(db, elsewhere[first : first + _LOOKED_UP_AT_ONCE]):
            indexes[each.tx_id] = range(1) if each.outputs is None else packed.output_indexes(each.outputs)
    for row, said in naming:
        for number, index in _named(said):
            if isinstance(number, int) and index not in indexes.get(number, ()):
                found.append(_difference(row, f"output {index} of tx_id {number}", "an output"))
    hashes = {number: row for row, said in naming for number, _ in _named(said) if isinstance(number, bytes)}
    if not from_origin:
        indexed = await spending.indexed_hashes.all(db, list(hashes))
        found += [_difference(hashes[tx_hash], f"tx {tx_hash.hex()}", "its tx_id") for tx_hash in indexed]
    return found[:MAX_SHOWN]


def _named(said: packed.References) -> Iterable[packed.Referred]:
    return (*said.references, *said.collaterals)


def _out_of_place(row: Row, said: packed.References, *, from_origin: bool) -> Iterator[Difference]:
    """What shows in the row itself."""
    for number, index in _named(said):
        if isinstance(number, bytes):
            if from_origin:
                yield _difference(row, f"output {index} of tx {number.hex()}", "a tx_id")
        elif number >= row.tx_id:
            yield _difference(row, f"output {index} of tx_id {number}", "an older one")
    place = None if said.returned is None else said.returned.address
    if isinstance(place, int) and place not in packed.output_indexes(row.outputs):
        yield _difference(row, f"the address of output {place}", "one of its outputs")


def _difference(row: Row, indexed: str, expected: str) -> Difference:
    return Difference(f"output that tx {row.hash.hex()} names", None, indexed, expected)


_sql = sql.beside(__file__)
_outputs_of = _sql.query("outputs_of", _Outputs)
