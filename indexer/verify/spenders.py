"""The table `spender` against the inputs of history: a part of verify.

A row of `spender` belongs to the slot whose outputs were spent. The process that reads the transactions of that slot
knows their hashes, so it can add up the entries of the row. Inputs name the same hashes, and the two sums must be
equal. If they differ, both are added up again in partitions by hash, and the rows of a few wrong partitions are
compared one by one.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from indexer.rows.outputs import unpack_spenders
from indexer.verify.keys import Ints, Number, ints, places, places_in
from indexer.verify.moments import Moment
from indexer.verify.results import MOST_SHOWN, Difference
from indexer.verify.spending import GenesisOutput, Row, hash_part
from shared import packed, sql
from shared.ledger import slot_of
from shared.sql import Connection

_PARTITIONS = 1 << 14
_PRIME = (1 << 61) - 1
_LOWEST_SLOT = -(1 << 47)
_ENTRY = np.dtype([("spent_by", ">i8"), ("rest", ">u4")])
"""An entry of `spender`. The place of a transaction in its block and the output's index are the last 32 bits of
output_no.
"""


class Spenders(msgspec.Struct, frozen=True):
    """The outputs in some rows of `spender`, by output_no in ascending order, and the tx_ids that spent them.

    `disordered` is the number of rows whose entries are not in the order of spending.
    """

    output_no: Ints
    spent_by: Ints
    disordered: int

    def of(self, tx_id: Ints, index: Ints) -> Ints:
        """The tx_ids that spent outputs, -1 for one that is not in the rows."""
        place, known = places_in(self.output_no, output_no(tx_id, index))
        found = np.full(len(place), -1)
        found[known] = self.spent_by[place[known]]
        return found


class SpenderRow(msgspec.Struct, frozen=True):
    """A row of `spender`."""

    slot_no: int
    entries: bytes


class SpentOutput(msgspec.Struct, frozen=True, order=True):
    """An output by its transaction's hash and its index, and the tx_id that spent it."""

    tx_hash: bytes
    index: int
    spent_by: int

    @property
    def partition(self) -> int:
        """One of _PARTITIONS, by the hash."""
        return int.from_bytes(self.tx_hash[:2]) % _PARTITIONS

    @property
    def term(self) -> int:
        """Its term in the sum of its partition."""
        return hash_part(self.tx_hash) * (self.index + 1) * (self.spent_by + 1) % _PRIME


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
    return Spenders(output_nos[in_order], spent_by[in_order], len(np.unique(row[1:][earlier])))


# To name differences --------------------------------------------------------------------------------------------------


def sums(transactions: Sequence[Row], rows: Sequence[SpenderRow]) -> dict[int, int]:
    """By partition, the sum over the inputs of some transactions, less that over the entries for their outputs."""
    total = Counter[int]()
    for spending in _of_inputs(transactions):
        total[spending.partition] += spending.term
    for spending in _of_entries({row.tx_id: row.hash for row in transactions}, rows):
        total[spending.partition] -= spending.term
    return total


def sums_of_genesis(outputs: Sequence[GenesisOutput], rows: Sequence[SpenderRow]) -> dict[int, int]:
    """The same for the genesis, which has no inputs."""
    total = Counter[int]()
    for spending in _of_entries({output.tx_id: output.tx_hash for output in outputs}, rows):
        total[spending.partition] -= spending.term
    return total


class Seen(msgspec.Struct):
    """The spendings in some partitions: those of inputs, and those of entries in `spender`."""

    inputs: list[SpentOutput] = []
    entries: list[SpentOutput] = []

    def add(self, other: "Seen") -> None:
        """Add the spendings of another part."""
        self.inputs += other.inputs
        self.entries += other.entries

    def differences(self) -> list[Difference]:
        """The first outputs whose spenders differ."""
        inputs, entries = Counter(self.inputs), Counter(self.entries)
        outputs = sorted({(each.tx_hash, each.index) for each in (inputs - entries) + (entries - inputs)})[:MOST_SHOWN]
        return [
            Difference(
                f"spender of output {tx_hash.hex()}#{index}",
                None,
                _show(self.entries, tx_hash, index),
                _show(self.inputs, tx_hash, index),
            )
            for tx_hash, index in outputs
        ]


def seen(transactions: Sequence[Row], rows: Sequence[SpenderRow], partitions: Collection[int]) -> Seen:
    """The spendings of these partitions in some transactions and in the entries for their outputs."""
    hashes = {row.tx_id: row.hash for row in transactions}
    return Seen(
        inputs=[spending for spending in _of_inputs(transactions) if spending.partition in partitions],
        entries=[spending for spending in _of_entries(hashes, rows) if spending.partition in partitions],
    )


def seen_of_genesis(outputs: Sequence[GenesisOutput], rows: Sequence[SpenderRow], partitions: Collection[int]) -> Seen:
    """The same for the genesis."""
    hashes = {output.tx_id: output.tx_hash for output in outputs}
    return Seen(entries=[spending for spending in _of_entries(hashes, rows) if spending.partition in partitions])


def _of_inputs(transactions: Sequence[Row]) -> Iterator[SpentOutput]:
    for row in transactions:
        for spent in packed.unpack_inputs(row.inputs):
            if spent.source is not None:
                yield SpentOutput(spent.tx_hash, spent.output_index, row.tx_id)


def _of_entries(hashes: Mapping[int, bytes], rows: Sequence[SpenderRow]) -> Iterator[SpentOutput]:
    """The entries for outputs of transactions with these hashes. check_spender in checks.sql reports the others."""
    for row in rows:
        for tx_id, index, spent_by in unpack_spenders(row.slot_no, row.entries):
            if tx_id in hashes:
                yield SpentOutput(hashes[tx_id], index, spent_by)


def _show(spendings: list[SpentOutput], tx_hash: bytes, index: int) -> str | None:
    spent_by = [each.spent_by for each in spendings if (each.tx_hash, each.index) == (tx_hash, index)]
    return " and ".join(f"tx_id {each}" for each in sorted(spent_by)) or None


_sql = sql.beside(__file__)
_rows = _sql.query("rows", SpenderRow)
