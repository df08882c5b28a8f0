"""Compare history with itself: each input equals the output that it names, and no output is spent twice.

`spender` names the transaction that spent an output. Each spent output has a term, a hash of the output and its
spender, and the input that spends it must have the same term. So in each partition of outputs, the sum over all inputs
must equal the sum over all spent outputs (docs/decisions/0045). Where it does not, the outputs and inputs of the
partition are listed, to name those that differ. Inputs from before the first indexed block have no output to match, but
each of them must be the only one.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from indexer.verify.entries import PARTITIONS, Digest, are_in, digest_of
from indexer.verify.history import flows
from indexer.verify.history.flows import Flows, OutputColumns
from indexer.verify.history.rows import GenesisOutput, Row
from indexer.verify.history.spenders import Spenders
from indexer.verify.keys import PRIME, Ints, ints
from indexer.verify.results import Difference
from shared import address, packed, sql
from shared.sql import Connection

_Reference: TypeAlias = tuple[bytes, int]
"""The hash of the transaction that makes an output, and its index there."""


class Sighting(msgspec.Struct, frozen=True):
    """An output where it is made, or where an input spends it: then without its content if that is unknown.

    `tx_id` and `by` are the transaction that makes or spends it. `spent_by` is what `spender` says, where it is made.
    """

    tx_hash: bytes
    index: int
    output: packed.Output | None
    tx_id: int
    by: bytes
    spends: bool
    spent_by: int | None = None


def digest(flows: Flows) -> Digest:
    """The digest of inputs, less that of the outputs that `spender` says are spent."""
    in_history = digest_of(flows.spent.reference, _terms(flows.spent, flows.tx_id[flows.spent.row]))
    return (in_history - _of_made(flows.made, flows.spent_by)) % PRIME


def digest_of_genesis(outputs: Sequence[GenesisOutput], spenders: Spenders) -> Digest:
    """The same for genesis outputs."""
    return -_of_made(flows.of_genesis(outputs), spenders.of_genesis(outputs)) % PRIME


def _of_made(made: OutputColumns, spent_by: Ints) -> Digest:
    spent = spent_by >= 0
    return digest_of(made.reference[spent], _terms(made, spent_by)[spent])


def _terms(outputs: OutputColumns, spent_by: Ints) -> Ints:
    """Hashes of outputs and the transactions that spend them, of 32 bits."""
    mixed = np.zeros(len(spent_by), np.uint64)
    columns = (outputs.hash_part, outputs.index, outputs.address_no, outputs.lovelace, outputs.value, spent_by)
    for factor, column in zip(_FACTORS, columns, strict=True):
        mixed += factor * column.astype(np.uint64)
    # The mixing function of SplitMix64: without it, two wrong terms could cancel each other out.
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(32)).astype(np.int64)


def repeated(before: Sequence[Ints]) -> list[int]:
    """The partitions of inputs from before the first indexed block that several transactions spend."""
    references = np.sort(np.concatenate([*before, ints([])]))
    twice = references[1:][np.diff(references) == 0]
    return sorted({*(twice & PARTITIONS - 1).tolist()})


def sightings(rows: Sequence[Row], flows: Flows, partitions: Collection[int]) -> list[Sighting]:
    """The outputs and inputs of some transactions that are in these partitions."""
    made, found = flows.made, list[Sighting]()
    for place in are_in(made.reference, partitions).tolist():
        row, index, spent_by = rows[made.row[place]], int(made.index[place]), int(flows.spent_by[place])
        first_index, outputs = packed.unpack_outputs(row.outputs)
        output = outputs[index - first_index]
        found.append(Sighting(row.hash, index, output, row.tx_id, row.hash, False, None if spent_by < 0 else spent_by))
    spends = set(flows.spent.row[are_in(flows.spent.reference, partitions)].tolist())
    for place, row in enumerate(rows):
        if place in spends or len(flows.before):
            found += _inputs_of(row, partitions)
    return found


def _inputs_of(row: Row, partitions: Collection[int]) -> Iterable[Sighting]:
    inputs = packed.unpack_inputs(row.inputs)
    for place in are_in(flows.references_of(inputs), partitions).tolist():
        spent = inputs[place]
        yield Sighting(spent.tx_hash, spent.output_index, spent.source, row.tx_id, row.hash, True)


def genesis_sightings(
    outputs: Sequence[GenesisOutput], spenders: Spenders, partitions: Collection[int]
) -> list[Sighting]:
    """The genesis outputs that are in these partitions."""
    made, found = flows.of_genesis(outputs), list[Sighting]()
    spent_by = spenders.of_genesis(outputs).tolist()
    for place in are_in(made.reference, partitions).tolist():
        output = outputs[place]
        by = None if spent_by[place] < 0 else spent_by[place]
        found.append(Sighting(output.tx_hash, 0, output.output, output.tx_id, output.tx_hash, False, by))
    return found


async def differences(db: Connection, seen: Iterable[Sighting]) -> dict[str, list[Difference]]:
    """The differences between outputs and inputs, by check: those of `spender` from inputs, and those of history from
    itself.
    """
    made, spent = defaultdict[_Reference, list[Sighting]](list), defaultdict[_Reference, list[Sighting]](list)
    for each in seen:
        (spent if each.spends else made)[each.tx_hash, each.index].append(each)
    of_history, of_spender = list[Difference](), list[Difference]()
    for reference in sorted(made.keys() | spent.keys()):
        makers, inputs = made[reference], spent[reference]
        what = f"output {reference[0].hex()}#{reference[1]}"
        for verb, several in (("makers", makers), ("spenders", inputs)):
            if len(several) > 1:
                who = _transactions([each.tx_id for each in several])
                of_history.append(Difference(f"{verb} of {what}", None, who, f"one of its {verb}"))
        output = makers[0].output if makers else None
        of_history += [
            Difference(
                f"{what}, an input of tx {each.by.hex()}", None, await _show(db, each.output), await _show(db, output)
            )
            for each in inputs
            if each.output is not None and each.output != output
        ]
        named = _transactions([each.spent_by for each in makers if each.spent_by is not None])
        known = _transactions([each.tx_id for each in inputs if each.output is not None])
        if named != known:
            of_spender.append(Difference(f"spender of {what}", None, named, known))
    return {"spending": of_history, "spender": of_spender}


def _transactions(tx_ids: Sequence[int]) -> str | None:
    return " and ".join(f"tx_id {tx_id}" for tx_id in sorted(tx_ids)) or None


async def wrongly_unresolved(db: Connection, hashes: list[bytes], *, from_origin: bool) -> list[Difference]:
    """Inputs that wrongly have no source, by the hashes that they name.

    In an index from the origin every input has one; in a partial one, every input that names an indexed transaction.
    """
    if not from_origin:
        hashes = await indexed_hashes.all(db, hashes)
    return [Difference(f"source of an input that names tx {tx_hash.hex()}", None, None, "known") for tx_hash in hashes]


async def _show(db: Connection, output: packed.Output | None) -> str:
    if output is None:
        return "no output"
    assets = f" and {len(output.quantities)} assets" if output.quantities else ""
    found = await _address_of.one(db, output.address_no)
    whose = f"address_no {output.address_no}" if found is None else address.show(found)
    return f"{output.lovelace} lovelace{assets} of {whose}"


# Odd numbers, one for each column of a term.
_FACTORS = [
    np.uint64(factor)
    for factor in (
        0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
        0xD6E8FEB86659FD93, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB,
    )
]  # fmt: skip
_sql = sql.beside(__file__)
indexed_hashes = _sql.values("indexed_hashes", bytes)
_address_of = _sql.values("address_of", bytes)
