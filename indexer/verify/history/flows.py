"""The outputs and inputs of some transactions in columns, for all comparisons of verify.

Unpacking transactions is most of verify's work, so it is done once. The columns are numpy arrays, which are added up
without a step in Python for each output and input (docs/decisions/0049).
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np

from indexer.verify.history.rows import GenesisOutput, Row
from indexer.verify.history.spenders import Spenders
from indexer.verify.keys import PRIME, Ints, Words, exact_sums_at, ints, key_of, places, reduced, sums_at
from shared import packed
from shared.ledger import AddressNo, LabelNo, ScriptKey

_UNPACKED_AT_ONCE = 1_000
"""A number of transactions. The unpacked objects of more would not fit into a core's cache."""

_HASH_BYTES = 32
# Odd numbers, one for each 8 bytes of a hash, and one for an output's index.
_HASH_FACTORS = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)
_INDEX_FACTOR = 0x2545F4914F6CDD1D
# The columns of OutputColumns and of AssetColumns that are joined as they are.
_OF_OUTPUTS = ("row", "hash_part", "index", "address_no", "lovelace", "value")
_OF_ASSETS = ("asset_no", "key", "value", "quantity")


class AssetColumns(msgspec.Struct, frozen=True):
    """Quantities of assets in columns: the place of the output that has each, the asset, its key, and the product of
    key and quantity, modulo PRIME.
    """

    place: Ints
    asset_no: Ints
    key: Ints
    value: Ints
    quantity: Words


class OutputColumns(msgspec.Struct, frozen=True):
    """Outputs in columns, in order of the transactions that make or spend them.

    `row` is the place of that transaction. `hash_part` is that of the one which made the output, and `index` the
    output's index there. `value` is the sum of the values of its assets, modulo PRIME.
    """

    row: Ints
    hash_part: Ints
    index: Ints
    address_no: Ints
    lovelace: Ints
    value: Ints
    assets: AssetColumns

    @property
    def reference(self) -> Ints:
        """A number for the transaction that made each output and its index, which depends on every bit of them."""
        return references(self.hash_part, self.index)


class Mint(msgspec.Struct, frozen=True):
    """What the transaction at a place mints (above 0) and burns (below 0), and its extras, which may describe it."""

    place: int
    tx_id: int
    quantities: packed.Quantities
    extra: packed.Extra


class Withdrawal(msgspec.Struct, frozen=True):
    """A withdrawal in a transaction."""

    tx_id: int
    account: bytes
    lovelace: int


class Labels(NamedTuple):
    """The labels of the metadata of a transaction."""

    tx_id: int
    label_nos: list[LabelNo]


class Redeemed(NamedTuple):
    """The redeemers of a transaction: the keys of the scripts that it names, and the addresses that scripts lock."""

    tx_id: int
    script_keys: list[ScriptKey]
    address_nos: list[AddressNo]


class Flows(msgspec.Struct, frozen=True):
    """The flows of some transactions, whole blocks.

    `made` are their outputs, and `spent_by` the tx_ids that spent these, -1 if none did. `spent` are the outputs that
    their inputs spend. `lovelace_out`, `lovelace_left` and `assets_left` have an entry for each transaction: the
    lovelace of its outputs, and the surplus of its inputs, withdrawals and mint over its payments and fee, in lovelace
    and in assets (the sum of their values, modulo PRIME). `certificates` are by the place of their transaction.
    `script_outputs` are the outputs with a reference script, by tx_id and index.

    For inputs without a source, `unresolved` has the transaction hashes that they name, and `before` their references.
    """

    tx_id: Ints
    made: OutputColumns
    spent_by: Ints
    spent: OutputColumns
    mints: list[Mint]
    withdrawals: list[Withdrawal]
    labels: list[Labels]
    redeemed: list[Redeemed]
    script_outputs: list[tuple[int, int]]
    certificates: dict[int, list[packed.Certificate]]
    rewards: dict[int, list[packed.InstantaneousRewards]]
    lovelace_out: list[int]
    lovelace_left: list[int]
    assets_left: list[int]
    unresolved: list[bytes]
    before: Ints


def unpack(rows: Sequence[Row], spenders: Spenders) -> Flows:
    """The flows of some transactions, whole blocks. `spenders` are those of their outputs."""
    count, tx_id = len(rows), ints([row.tx_id for row in rows])
    firsts = range(0, count or 1, _UNPACKED_AT_ONCE)
    made = _joined([_made(rows[first : first + _UNPACKED_AT_ONCE], first) for first in firsts])
    inputs = [_spent(rows[first : first + _UNPACKED_AT_ONCE], first) for first in firsts]
    spent, unresolved = _joined([outputs for outputs, _ in inputs]), [each for _, some in inputs for each in some]
    lovelace_out = exact_sums_at(made.lovelace, made.row, count)
    lovelace_in = exact_sums_at(spent.lovelace, spent.row, count)
    lovelace_left = [
        taken - paid - (row.fee or 0) for taken, paid, row in zip(lovelace_in, lovelace_out, rows, strict=True)
    ]
    mints, withdrawals, certificates = list[Mint](), list[Withdrawal](), dict[int, list[packed.Certificate]]()
    rewards = dict[int, list[packed.InstantaneousRewards]]()
    labels, script_outputs = list[Labels](), list[tuple[int, int]]()
    redeemed = list[Redeemed]()
    for place, row in enumerate(rows):
        extra = packed.unpack_extra_strictly(row.extra)
        if row.mint is not None:
            mints.append(Mint(place, row.tx_id, packed.unpack_mint(row.mint), extra))
        if extra.withdrawals or extra.credits:
            lovelace_left[place] += sum(extra.withdrawals.values()) - sum(extra.credits.values())
            withdrawals += [Withdrawal(row.tx_id, *each) for each in extra.withdrawals.items()]
        if extra.certificates:
            certificates[place] = extra.certificates
        if extra.instantaneous_rewards:
            rewards[place] = extra.instantaneous_rewards
        if label_nos := extra.label_nos:
            labels.append(Labels(row.tx_id, label_nos))
        if extra.redeemers or extra.spends:
            redeemed.append(_redeemed(row, extra))
        if row.attached is not None:
            attached = packed.unpack_attached(row.attached).items()
            script_outputs += [(row.tx_id, index) for index, each in attached if each.script_hash is not None]
    assets_left = sums_at(spent.value, spent.row, count) - sums_at(made.value, made.row, count)
    assets_left += _minted(mints, count)
    return Flows(
        tx_id=tx_id,
        made=made,
        spent_by=spenders.find(tx_id[made.row], made.index),
        spent=spent,
        mints=mints,
        withdrawals=withdrawals,
        labels=labels,
        redeemed=redeemed,
        script_outputs=script_outputs,
        certificates=certificates,
        rewards=rewards,
        lovelace_out=lovelace_out,
        lovelace_left=lovelace_left,
        assets_left=(assets_left % PRIME).tolist(),
        unresolved=[each.tx_hash for each in unresolved],
        before=references_of(unresolved),
    )


def references(hash_part: Ints, index: Ints) -> Ints:
    """A number for each output of these transactions, by its index."""
    return hash_part + index * _INDEX_FACTOR


def references_of(inputs: Sequence[packed.Input]) -> Ints:
    """The numbers of the outputs that some inputs name."""
    return references(_hash_parts([each.tx_hash for each in inputs]), ints([each.output_index for each in inputs]))


def of_genesis(outputs: Sequence[GenesisOutput]) -> OutputColumns:
    """Genesis outputs."""
    address_nos = [output.address_no or AddressNo(0) for output in outputs]
    made = [packed.Output(number, output.lovelace) for number, output in zip(address_nos, outputs, strict=True)]
    hash_parts = _hash_parts([output.tx_hash for output in outputs])
    return _columns(made, np.arange(len(outputs)), hash_parts, np.zeros(len(outputs), np.int64))


def _redeemed(row: Row, extra: packed.Extra) -> Redeemed:
    """The redeemers of a transaction, without those of inputs from before the first indexed block."""
    inputs = packed.unpack_spent(row.inputs) if extra.spends else []
    sources = [inputs[place].source for place in extra.spends if place < len(inputs)]
    script_keys = [script_key for script_key in extra.redeemers if script_key is not None]
    return Redeemed(row.tx_id, script_keys, [source.address_no for source in sources if source is not None])


def _made(rows: Sequence[Row], first_place: int) -> OutputColumns:
    """The outputs of transactions, of which the first is at a place."""
    unpacked = [packed.unpack_outputs(row.outputs) for row in rows]
    counts = ints([len(outputs) for _, outputs in unpacked])
    row = places(counts)
    index_less_place = ints([first for first, _ in unpacked]) - (np.cumsum(counts) - counts)
    index = np.arange(len(row)) + index_less_place[row]
    outputs = list(chain.from_iterable([outputs for _, outputs in unpacked]))
    return _columns(outputs, row + first_place, _hash_parts([each.hash for each in rows])[row], index)


def _spent(rows: Sequence[Row], first_place: int) -> tuple[OutputColumns, list[packed.Input]]:
    """The outputs that transactions spend, and the inputs without a source, from before the first indexed block."""
    inputs = [packed.unpack_inputs(row.inputs) for row in rows]
    row = places(ints([len(of_row) for of_row in inputs])) + first_place
    known, unresolved = list(chain.from_iterable(inputs)), list[packed.Input]()
    sources = [each.source for each in known]
    outputs = [source for source in sources if source is not None]
    if len(outputs) < len(sources):
        row = row[[source is not None for source in sources]]
        unresolved = [each for each in known if each.source is None]
        known = [each for each in known if each.source is not None]
    hash_parts = _hash_parts([each.tx_hash for each in known])
    return _columns(outputs, row, hash_parts, ints([each.output_index for each in known])), unresolved


def _hash_parts(hashes: Sequence[bytes]) -> Ints:
    """A number for each transaction hash. It depends on every byte, so no single wrong byte is missed."""
    joined = b"".join(hashes)
    if len(joined) != _HASH_BYTES * len(hashes):  # one has another length, which other checks report
        joined = b"".join([each[:_HASH_BYTES].ljust(_HASH_BYTES) for each in hashes])
    words = np.frombuffer(joined, np.uint64).reshape(-1, len(_HASH_FACTORS))
    parts: Words = (words * _HASH_FACTORS).sum(axis=1)
    return parts.view(np.int64)


def _joined(parts: Sequence[OutputColumns]) -> OutputColumns:
    """The outputs of consecutive transactions."""
    place, before = list[Ints](), 0
    for part in parts:
        place.append(part.assets.place + before)
        before += len(part.row)
    assets = [part.assets for part in parts]
    return OutputColumns(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in _OF_OUTPUTS},
        assets=AssetColumns(
            np.concatenate(place),
            **{name: np.concatenate([getattr(each, name) for each in assets]) for name in _OF_ASSETS},
        ),
    )


def _columns(outputs: Sequence[packed.Output], row: Ints, hash_parts: Ints, index: Ints) -> OutputColumns:
    quantities = [output.quantities for output in outputs]
    asset_no = ints(chain.from_iterable(quantities))
    quantity: Words = np.fromiter(chain.from_iterable(map(dict.values, quantities)), np.uint64)
    key = key_of(asset_no)
    assets = AssetColumns(
        place=places(ints([len(each) for each in quantities])),
        asset_no=asset_no,
        key=key,
        value=key * reduced(quantity) % PRIME,
        quantity=quantity,
    )
    return OutputColumns(
        row=row,
        hash_part=hash_parts,
        index=index,
        address_no=ints([output.address_no for output in outputs]),
        lovelace=ints([output.lovelace for output in outputs]),
        value=sums_at(assets.value, assets.place, len(outputs)) % PRIME,
        assets=assets,
    )


def _minted(mints: Sequence[Mint], count: int) -> Ints:
    """The value that each of some transactions mints."""
    asset_no = ints([asset_no for mint in mints for asset_no in mint.quantities])
    quantity = ints([quantity % PRIME for mint in mints for quantity in mint.quantities.values()])
    place = ints([mint.place for mint in mints for _ in mint.quantities])
    return sums_at(key_of(asset_no) * quantity % PRIME, place, count)
