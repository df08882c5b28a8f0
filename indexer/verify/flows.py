"""One pass over the outputs and inputs of some transactions, for all that verify compares them with.

Unpacking a transaction and looking at each output and input is most of verify's work, so it is done once: the
checksums, the sum that matches inputs with outputs, the balance of each transaction and the sums of epochs all take
what they need from here.
"""

from array import array
from collections.abc import Sequence
from operator import mul

import msgspec

from indexer.verify.keys import Keys, square_of, sum_of_keys, weight_of
from indexer.verify.spenders import Spent
from indexer.verify.spending import Row, mark_of_missing
from shared import packed
from shared.ledger import AddressNo, AssetNo

Held = list[tuple[int, packed.Quantities]]
"""The assets of outputs or inputs, each with the factor of its term in a checksum."""

_NONE: dict[int, int] = {}


class Flows(msgspec.Struct):
    """What some transactions, whole blocks, paid and spent.

    The lists `weights` to `assets_left` have an entry for each transaction: its weight, that in histories (square_of),
    the addresses of its outputs and inputs, the lovelace of its outputs, and what is left of what it spends, withdraws
    and mints beyond what it pays out and its fee: lovelace, and the sum of assets, each quantity times the key of its
    asset. `withdrawals` is what accounts withdrew, with the weight of each. `inputs` counts the inputs with a source.
    For inputs without one, `unresolved` has the transaction hashes that they name and `before` their marks.
    """

    weights: list[int] = []
    squares: list[int] = []
    touched: list[set[AddressNo]] = []
    lovelace_out: list[int] = []
    lovelace_left: list[int] = []
    assets_left: list[int] = []
    inputs: int = 0
    before: "array[int]" = msgspec.field(default_factory=lambda: array("q"))
    unresolved: list[bytes] = []
    keys: Keys = msgspec.field(default_factory=Keys)
    paid: Held = []
    spent: Held = []
    described: list[tuple[int, packed.Quantities, packed.Extra]] = []
    withdrawals: list[tuple[bytes, int, int]] = []
    # Sums, see checksums.Sums.
    asset_tx: int = 0
    mint: int = 0
    holder: int = 0
    spending: int = 0
    utxo: int = 0

    @property
    def address_tx(self) -> int:
        """The sum over the addresses of each transaction."""
        return sum(map(mul, self.squares, map(sum_of_keys, self.touched)))

    @property
    def addresses(self) -> set[AddressNo]:
        """The addresses of outputs and inputs."""
        return set[AddressNo]().union(*self.touched)

    @property
    def assets(self) -> set[AssetNo]:
        """The assets that were paid or spent."""
        return set[AssetNo]().union(*(quantities for _, quantities in (*self.paid, *self.spent)))


def of(rows: Sequence[Row], spent: Spent) -> Flows:
    """What some transactions, whole blocks, paid and spent. `spent` tells what spent their outputs."""
    flows = Flows()
    _add_outputs(flows, rows, spent)
    _add_inputs(flows, rows)
    _add_rest(flows, rows)
    return flows


def _add_outputs(flows: Flows, rows: Sequence[Row], spent: Spent) -> None:
    """NOTE: long on purpose, like the next one. A call for each output would cost more than the sums."""
    keys, unpack = flows.keys, packed.unpack_outputs
    asset_tx = holder = spending = utxo = 0
    for row in rows:
        hash_part = int.from_bytes(row.hash[:8])
        weight, square = weight_of(row.tx_id), square_of(row.tx_id)
        gone = spent.get(row.tx_id, _NONE)
        touched = set()
        paid = value_of_all = unspent = 0
        first_index, outputs = unpack(row.outputs)
        for index, output in enumerate(outputs, first_index):
            address_no, lovelace, quantities = output.address_no, output.lovelace, output.quantities
            touched.add(address_no)
            paid += lovelace
            value = held = 0
            if quantities:
                for asset_no, quantity in quantities.items():
                    key = keys[asset_no]
                    held += key
                    value += key * quantity
                value_of_all += value
                holder += keys[address_no] * value
                flows.paid.append((weight * (index + 1), quantities))
            if index in gone:
                # NOTE: spending.spending_of, without a call for each.
                spending += hash((hash_part, index, address_no, lovelace, value, gone[index]))
            else:
                unspent += (index + 1) * (keys[address_no] * (lovelace + 1) + held)
        if unspent:
            utxo += weight * unspent
        if value_of_all:
            asset_tx += square * value_of_all
        flows.weights.append(weight)
        flows.squares.append(square)
        flows.touched.append(touched)
        flows.lovelace_out.append(paid)
        flows.assets_left.append(-value_of_all)
    flows.asset_tx, flows.utxo, flows.spending, flows.holder = asset_tx, utxo, -spending, holder


def _add_inputs(flows: Flows, rows: Sequence[Row]) -> None:
    keys, unpack = flows.keys, packed.unpack_inputs
    holder = spending = all_inputs = 0
    for place, (row, touched) in enumerate(zip(rows, flows.touched, strict=True)):
        tx_id, taken, value_of_all = row.tx_id, 0, 0
        inputs = unpack(row.inputs)
        all_inputs += len(inputs)
        for each in inputs:
            index, source = each.output_index, each.source
            if source is None:
                flows.before.append(mark_of_missing(each.tx_hash, index))
                flows.unresolved.append(each.tx_hash)
                continue
            hash_part = int.from_bytes(each.tx_hash[:8])
            address_no, lovelace, quantities = source.address_no, source.lovelace, source.quantities
            touched.add(address_no)
            taken += lovelace
            value = 0
            if quantities:
                for asset_no, quantity in quantities.items():
                    value += keys[asset_no] * quantity
                value_of_all += value
                holder -= keys[address_no] * value
                flows.spent.append(((hash_part >> 32) * (index + 1) * flows.weights[place], quantities))
            spending += hash((hash_part, index, address_no, lovelace, value, tx_id))
        flows.lovelace_left.append(taken - flows.lovelace_out[place])
        flows.assets_left[place] += value_of_all
    flows.inputs = all_inputs - len(flows.unresolved)
    flows.spending += spending
    flows.holder += holder


def _add_rest(flows: Flows, rows: Sequence[Row]) -> None:
    """Fees, mints, withdrawals and credits."""
    keys = flows.keys
    for place, row in enumerate(rows):
        if row.fee:
            flows.lovelace_left[place] -= row.fee
        extra = packed.unpack_extra(row.extra) if row.mint is not None or packed.may_move_lovelace(row.extra) else None
        if row.mint is not None:
            minted = packed.unpack_mint(row.mint)
            value = sum(keys[asset_no] * quantity for asset_no, quantity in minted.items())
            flows.mint += flows.weights[place] * value
            flows.assets_left[place] += value
            if row.extra is not None and extra is not None:
                flows.described.append((flows.weights[place], minted, extra))
        if extra is not None:
            flows.lovelace_left[place] += sum(extra.withdrawals.values()) - sum(extra.credits.values())
            flows.withdrawals += [
                (account, lovelace, flows.weights[place]) for account, lovelace in extra.withdrawals.items()
            ]
