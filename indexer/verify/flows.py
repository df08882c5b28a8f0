"""One pass over the outputs and inputs of some transactions, for all comparisons of verify.

Unpacking a transaction and looking at each output and input is most of verify's work, so it is done once, for the
checksums, the sum that matches inputs with outputs, the balance of each transaction and the sums of epochs.
"""

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from operator import mul

import msgspec

from indexer.verify.keys import Keys, sum_of_squares, weight_of
from indexer.verify.spenders import Spent
from indexer.verify.spending import Row, hash_part, mark_of_missing
from shared import packed
from shared.ledger import AddressNo

WithAssets = tuple[Row, int, packed.Quantities, int | None]
"""An output with assets: its transaction, its index there, the assets, and the tx_id that spent it, None if unspent."""


NetLovelace = defaultdict[AddressNo, int]
"""Lovelace that addresses received, less the lovelace that they spent."""


class Flows(msgspec.Struct):
    """The payments and spendings of some transactions, whole blocks.

    The lists `weights` to `assets_left` have an entry for each transaction: its weight in histories, the addresses of
    its outputs and inputs, the lovelace of its outputs, and the surplus of its inputs, withdrawals and mint over its
    payments and fee, in lovelace and in assets (the sum of each quantity times the key of its asset).

    `withdrawals` are those of accounts, each with its weight. `inputs` counts the inputs with a source. For inputs
    without a source, `unresolved` has the transaction hashes that they name, and `before` their marks. Every asset that
    moves has its key in `asset_keys`. `net_lovelace` has an entry for each snapshot: the changes by address from there
    on, up to the next snapshot.
    """

    weights: list[int] = []
    touched: list[set[AddressNo]] = []
    lovelace_out: list[int] = []
    lovelace_left: list[int] = []
    assets_left: list[int] = []
    inputs: int = 0
    before: "array[int]" = msgspec.field(default_factory=lambda: array("q"))
    unresolved: list[bytes] = []
    asset_keys: Keys = msgspec.field(default_factory=Keys)
    with_assets: list[WithAssets] = []
    described: list[tuple[int, packed.Quantities, packed.Extra]] = []
    withdrawals: list[tuple[bytes, int, int]] = []
    net_lovelace: list[NetLovelace] = []
    # Sums, see checksums.Sums.
    asset_tx: int = 0
    mint: int = 0
    holder: int = 0
    spending: int = 0
    utxo: int = 0

    @property
    def address_tx(self) -> int:
        """The sum over the addresses of each transaction."""
        return sum(map(mul, self.weights, map(sum_of_squares, self.touched)))


def of(rows: Sequence[Row], spent: Spent, snapshots: Sequence[int] = ()) -> Flows:
    """The payments and spendings of some transactions, whole blocks.

    `spent` has the spenders of their outputs, `snapshots` the tx_ids at which snapshots of stake were taken, in order.
    """
    flows = Flows(net_lovelace=[NetLovelace(int) for _ in snapshots])
    nets = [None, *flows.net_lovelace]
    net_of_rows = [nets[bisect_right(snapshots, row.tx_id)] for row in rows] if snapshots else [None] * len(rows)
    _add_outputs(flows, rows, spent, net_of_rows)
    _add_inputs(flows, rows, net_of_rows)
    _add_rest(flows, rows)
    return flows


def _add_outputs(flows: Flows, rows: Sequence[Row], spent: Spent, net_of_rows: Sequence[NetLovelace | None]) -> None:
    """Add the outputs of transactions.

    NOTE: long on purpose, like _add_inputs. A call for each output would cost more than the sums.
    """
    keys, address_keys = flows.asset_keys, Keys()
    unpack, spender_of, carry = packed.unpack_outputs, spent.get, flows.with_assets.append
    holder = spending = utxo = 0
    for row, net in zip(rows, net_of_rows, strict=True):
        part = hash_part(row.hash)
        first_no = row.tx_id << 16
        touched = set()
        paid = value_of_all = unspent = 0
        first_index, outputs = unpack(row.outputs)
        for index, output in enumerate(outputs, first_index):
            address_no, lovelace, quantities = output.address_no, output.lovelace, output.quantities
            touched.add(address_no)
            paid += lovelace
            if net is not None:
                net[address_no] += lovelace
            value = held = 0
            spent_by = spender_of(first_no | index)  # NOTE: spenders.output_no, without a call for each
            if quantities:
                for asset_no, quantity in quantities.items():
                    key = keys[asset_no]
                    held += key
                    value += key * quantity
                value_of_all += value
                carry((row, index, quantities, spent_by))
            if spent_by is None:
                key = address_keys[address_no]
                holder += key * value
                unspent += (index + 1) * (key * (lovelace + 1) + held)
            else:
                # NOTE: spending.spending_of, without a call for each.
                spending += hash((part, index, address_no, lovelace, value, value >> 61, spent_by))
        if unspent:
            utxo += weight_of(row.tx_id) * unspent
        flows.weights.append(row.tx_id + 1)
        flows.touched.append(touched)
        flows.lovelace_out.append(paid)
        flows.assets_left.append(-value_of_all)
    flows.asset_tx = -sum(map(mul, flows.weights, flows.assets_left))
    flows.utxo, flows.spending, flows.holder = utxo, -spending, holder


def _add_inputs(flows: Flows, rows: Sequence[Row], net_of_rows: Sequence[NetLovelace | None]) -> None:
    """Add the inputs of transactions, and their fees."""
    keys, unpack = flows.asset_keys, packed.unpack_inputs
    spending = all_inputs = 0
    for place, (row, touched, net) in enumerate(zip(rows, flows.touched, net_of_rows, strict=True)):
        tx_id, taken, value_of_all = row.tx_id, 0, 0
        inputs = unpack(row.inputs)
        all_inputs += len(inputs)
        for each in inputs:
            index, source = each.output_index, each.source
            if source is None:
                flows.before.append(mark_of_missing(each.tx_hash, index))
                flows.unresolved.append(each.tx_hash)
                continue
            part = hash_part(each.tx_hash)
            address_no, lovelace, quantities = source.address_no, source.lovelace, source.quantities
            touched.add(address_no)
            taken += lovelace
            if net is not None:
                net[address_no] -= lovelace
            value = 0
            if quantities:
                for asset_no, quantity in quantities.items():
                    value += keys[asset_no] * quantity
                value_of_all += value
            spending += hash((part, index, address_no, lovelace, value, value >> 61, tx_id))
        flows.lovelace_left.append(taken - flows.lovelace_out[place] - (row.fee or 0))
        flows.assets_left[place] += value_of_all
    flows.inputs = all_inputs - len(flows.unresolved)
    flows.spending += spending


def _add_rest(flows: Flows, rows: Sequence[Row]) -> None:
    """Add mints, withdrawals and credits."""
    keys, unpack = flows.asset_keys, packed.unpack_extra_strictly
    for place, row in enumerate(rows):
        extra = unpack(row.extra)
        if row.mint is None and not (extra.withdrawals or extra.credits):
            continue
        weight = weight_of(row.tx_id)
        if row.mint is not None:
            minted = packed.unpack_mint(row.mint)
            value = sum(map(mul, map(keys.__getitem__, minted), minted.values()))
            flows.mint += weight * value
            flows.assets_left[place] += value
            if row.extra is not None:
                flows.described.append((weight, minted, extra))
        flows.lovelace_left[place] += sum(extra.withdrawals.values()) - sum(extra.credits.values())
        flows.withdrawals += [(account, lovelace, weight) for account, lovelace in extra.withdrawals.items()]
