"""Compare history with itself: each input equals the output that it names, and no output is spent twice.

`spender` names the transaction that spent an output. Each spent output has a term, a hash of the output and its
spender, and the input that spends it must have the same term. So the sum over all inputs must equal the sum over all
spent outputs (docs/decisions/0045). checksums.py adds up both.

History is read again only if the sums differ, to name the inputs. An output, or the input that spends it, is marked by
64 bits: a hash of its transaction's hash, its index and its content. Marks are written to files, in partitions by
value, so that each partition fits into memory for a chain of any length. Each mark of an input must be among those of
the outputs, and each mark must occur once. Marks that fail are looked up in history once more, to report their rows
(docs/decisions/0019). Inputs from before the first indexed block have no output to match, so they are always marked.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from zlib import crc32

import asyncpg
import msgspec

from indexer.verify.keys import key_of
from indexer.verify.results import Difference
from shared import address, packed, sql
from shared.ledger import AddressNo
from shared.packed import Output

_MOST_SUSPECTS = 50
_PARTITION_TRANSACTIONS = 250_000

KINDS = ("made", "spent", "before")
"""Marks of outputs, of the inputs that spend them, and of inputs from before the first indexed block."""


class UnreadableRow(Exception):
    """A row of `tx` whose bytes can't be unpacked; its argument is the Difference."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row of `tx`."""

    tx_id: int
    outputs: bytes
    inputs: bytes
    mint: bytes | None
    extra: bytes | None
    hash: bytes
    fee: int | None
    attached: bytes | None


class GenesisOutput(msgspec.Struct, frozen=True):
    """An output that exists before the first block, at index 0. `address_no` is None if its address has no row."""

    tx_id: int
    tx_hash: bytes
    address: bytes
    lovelace: int
    address_no: AddressNo | None

    @property
    def output(self) -> Output | None:
        """The output as rows have it; None if its address has no number."""
        return None if self.address_no is None else Output(self.address_no, self.lovelace)

    @property
    def mark(self) -> int | None:
        """Its mark; None if its address has no number."""
        return None if self.output is None else mark_of(self.tx_hash, 0, self.output)


class Marks(msgspec.Struct, frozen=True):
    """Marks of some transactions, by kind."""

    made: "array[int]" = msgspec.field(default_factory=lambda: array("q"))
    spent: "array[int]" = msgspec.field(default_factory=lambda: array("q"))
    before: "array[int]" = msgspec.field(default_factory=lambda: array("q"))


class Sighting(msgspec.Struct, frozen=True):
    """Where a suspect mark comes from: an output that a transaction makes, or an input that spends it."""

    mark: int
    tx_id: int
    by: bytes
    tx_hash: bytes
    index: int
    output: Output | None
    spends: bool


def partitions_of(transactions: int) -> int:
    """How many partitions a history needs, so that a process uses some 110 MB of memory."""
    return transactions // _PARTITION_TRANSACTIONS + 1


def of_genesis(outputs: list[GenesisOutput]) -> Marks:
    """The marks of the genesis."""
    return Marks(made=array("q", [mark for output in outputs if (mark := output.mark) is not None]))


def marks_of(rows: Sequence[Row]) -> Marks:
    """The marks of outputs, and of inputs that have a source, of some transactions."""
    marks = Marks()
    for row in rows:
        first_index, outputs = packed.unpack_outputs(row.outputs)
        marks.made.extend(mark_of(row.hash, index, output) for index, output in enumerate(outputs, first_index))
        inputs = [each for each in packed.unpack_inputs(row.inputs) if each.source is not None]
        marks.spent.extend(mark_of(each.tx_hash, each.output_index, each.source) for each in inputs)
    return marks


# NOTE: Python hashes integers alike in every process, and takes each modulo 2**61 - 1. A sum of assets may exceed that,
# so its bits from the 61st on are hashed as another integer.


hash_part = crc32
"""A number for the hash of a transaction. It depends on every byte, so no single wrong byte is missed."""


def mark_of(tx_hash: bytes, index: int, output: Output | None) -> int:
    """The mark of an output; None is one from before the first indexed block."""
    if output is None:
        return mark_of_missing(tx_hash, index)
    value = sum(key_of(asset_no) * quantity for asset_no, quantity in output.quantities.items())
    return hash((hash_part(tx_hash), index, output.address_no, output.lovelace, value, value >> 61))


def mark_of_missing(tx_hash: bytes, index: int) -> int:
    """The mark of an input from before the first indexed block."""
    return hash((hash_part(tx_hash), index))


def keep(marks: Marks, folder: Path, partitions: int) -> None:
    """Append marks to the files of their partitions."""
    for kind in KINDS:
        of_kind: array[int] = getattr(marks, kind)
        if partitions == 1:
            _append(folder, kind, 0, of_kind)
            continue
        cut: list[array[int]] = [array("q") for _ in range(partitions)]
        for mark in of_kind:
            cut[mark % partitions].append(mark)
        for partition, some in enumerate(cut):
            _append(folder, kind, partition, some)


def compare(folder: Path, partition: int) -> set[int]:
    """Suspect marks of one partition: wrong ones, and some that are equal by chance.

    At most `_MOST_SUSPECTS` of each kind are returned.
    """
    made, spent, before = (_read(folder, kind, partition) for kind in KINDS)
    known = set(made)
    suspects = set[int]()
    if len(known) < len(made):
        suspects.update(_twice(made))
    once = set(spent)
    if len(once) < len(spent):
        suspects.update(_twice(spent))
    if not once <= known:
        suspects.update(sorted(once - known)[:_MOST_SUSPECTS])
    if len(set(before)) < len(before):
        suspects.update(_twice(before))
    return suspects


def sightings(rows: Sequence[Row], wanted: set[int]) -> list[Sighting]:
    """Where suspect marks come from, among some transactions."""
    found = list[Sighting]()
    for row in rows:
        first_index, outputs = packed.unpack_outputs(row.outputs)
        for index, output in enumerate(outputs, first_index):
            mark = mark_of(row.hash, index, output)
            if mark in wanted:
                found.append(Sighting(mark, row.tx_id, row.hash, row.hash, index, output, False))
        for spent in packed.unpack_inputs(row.inputs):
            mark = mark_of(spent.tx_hash, spent.output_index, spent.source)
            if mark in wanted:
                seen = Sighting(mark, row.tx_id, row.hash, spent.tx_hash, spent.output_index, spent.source, True)
                found.append(seen)
    return found


def genesis_sightings(outputs: list[GenesisOutput], wanted: set[int]) -> list[Sighting]:
    """Where suspect marks come from, among the genesis outputs."""
    return [
        Sighting(mark, output.tx_id, output.tx_hash, output.tx_hash, 0, output.output, False)
        for output in outputs
        if (mark := output.mark) in wanted and mark is not None
    ]


async def differences(db: asyncpg.Connection, seen: list[Sighting]) -> list[Difference]:
    """The differences of the outputs and inputs behind suspect marks; marks that are equal by chance have none."""
    found = []
    by_reference: defaultdict[tuple[bytes, int, bool], list[Sighting]] = defaultdict(list)
    for sighting in seen:
        by_reference[sighting.tx_hash, sighting.index, sighting.spends].append(sighting)
    for (tx_hash, index, spends), same in sorted(by_reference.items()):
        output = f"output {tx_hash.hex()}#{index}"
        if len(same) > 1:
            verb = "spenders" if spends else "makers"
            who = " and ".join(f"tx_id {each.tx_id}" for each in same)
            found.append(Difference(f"{verb} of {output}", None, who, f"one of its {verb}"))
        if spends:
            made = await _output_at(db, tx_hash, index)
            found += [
                Difference(
                    f"{output}, an input of tx {each.by.hex()}",
                    None,
                    await _show(db, each.output),
                    await _show(db, made),
                )
                for each in same
                if each.output is not None and each.output != made
            ]
    return found


async def wrongly_unresolved(db: asyncpg.Connection, hashes: list[bytes], *, from_origin: bool) -> list[Difference]:
    """Inputs that wrongly have no source, by the hashes that they name.

    In an index from the origin every input has one; in a partial one, every input that names an indexed transaction.
    """
    if not from_origin:
        hashes = [row.hash for row in await _indexed_hashes.all(db, hashes)]
    return [Difference(f"source of an input that names tx {tx_hash.hex()}", None, None, "known") for tx_hash in hashes]


async def _output_at(db: asyncpg.Connection, tx_hash: bytes, index: int) -> Output | None:
    """The output at a hash and an index, None if it does not exist."""
    for row in await _outputs_of.all(db, tx_hash):
        first_index, outputs = packed.unpack_outputs(row.outputs)
        if 0 <= index - first_index < len(outputs):
            return outputs[index - first_index]
    genesis = await _genesis_output_of.one(db, tx_hash) if index == 0 else None
    return None if genesis is None else genesis.output


def refuse_unreadable(rows: Sequence[Row]) -> None:
    """Raise UnreadableRow for the first row whose bytes can't be unpacked."""
    for row in rows:
        for column, unpack in (
            ("outputs", packed.unpack_outputs),
            ("inputs", packed.unpack_inputs),
            ("mint", packed.unpack_mint),
            ("extra", packed.unpack_extra_strictly),
            ("attached", packed.unpack_attached),
        ):
            try:
                unpack(getattr(row, column))
            except packed.UNREADABLE as error:
                what = f"{column} of tx {row.hash.hex()} (tx_id {row.tx_id})"
                raise UnreadableRow(Difference(what, None, str(error), "packed bytes")) from error


def _twice(marks: Iterable[int]) -> list[int]:
    """Some of the marks that occur more than once."""
    once, twice = set[int](), set[int]()
    for mark in marks:
        (twice if mark in once else once).add(mark)
    return sorted(twice)[:_MOST_SUSPECTS]


def _append(folder: Path, kind: str, partition: int, marks: "array[int]") -> None:
    if not marks:
        return
    # NOTE: one write each, at the end of a file that other processes append to as well.
    with (folder / f"{kind}.{partition}").open("ab", buffering=0) as file:
        written = file.write(marks)
        assert written == len(marks) * marks.itemsize, f"{written} bytes of {len(marks)} marks were written"


def _read(folder: Path, kind: str, partition: int) -> "array[int]":
    marks = array("q")
    path = folder / f"{kind}.{partition}"
    if path.exists():
        marks.frombytes(path.read_bytes())
    return marks


async def _show(db: asyncpg.Connection, output: Output | None) -> str:
    if output is None:
        return "no output"
    assets = f" and {len(output.quantities)} assets" if output.quantities else ""
    found = await _address_of.one(db, output.address_no)
    whose = f"address_no {output.address_no}" if found is None else address.show(found.raw)
    return f"{output.lovelace} lovelace{assets} of {whose}"


class _Hash(msgspec.Struct, frozen=True):
    hash: bytes


class _Address(msgspec.Struct, frozen=True):
    raw: bytes


class _Outputs(msgspec.Struct, frozen=True):
    outputs: bytes


_sql = sql.beside(__file__)
rows_of = _sql.query("rows", Row)
_indexed_hashes = _sql.query("indexed_hashes", _Hash)
_address_of = _sql.query("address_of", _Address)
_outputs_of = _sql.query("outputs_of", _Outputs)
_genesis_output_of = _sql.query("genesis_output_of", GenesisOutput)
