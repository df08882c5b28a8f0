"""Checksums over history, compared with sums that are computed one term at a time in exact integers."""

from collections import Counter
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest

from indexer.rows.outputs import pack_spender
from indexer.verify import checksums, flows, spenders
from indexer.verify.keys import PRIME, key_of, weight_of
from indexer.verify.numbers import Numbers
from indexer.verify.spending import Row
from shared import packed
from shared.ledger import AddressNo, AssetNo, TxId, slot_of, tx_id_of

SUPPLY = 45 * 10**15
# Also numbers above 16 bits, and the highest ones; the last is beyond the lists of `numbers`.
ADDRESSES = (0, 1, 2, 65_537, 100_000, 2**31 - 1)
ASSETS = (0, 3, 65_539, 2**31 - 1)
QUANTITIES = (1, 5, 2**31 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
ACCOUNTS = {1: 7, 2: 7, 65_537: 0, 100_000: 2**31 - 2}
TOKENS = {3, 65_539}


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions are unpacked in several steps."""
    monkeypatch.setattr(flows, "_UNPACKED_AT_ONCE", 2)


class Case(msgspec.Struct):
    """Transactions with their outputs, the inputs of each, and the spenders of their outputs."""

    rows: list[Row] = []
    outputs: dict[tuple[TxId, int], packed.Output] = {}
    inputs: dict[TxId, list[packed.Input]] = {}
    mints: dict[TxId, packed.Quantities] = {}
    spent_by: dict[tuple[TxId, int], TxId] = {}

    @property
    def entries(self) -> list[spenders.SpenderRow]:
        """The rows of `spender`."""
        by_slot = dict[int, bytes]()
        for (made_by, index), spent_by in self.spent_by.items():
            slot_no = slot_of(made_by)
            by_slot[slot_no] = by_slot.get(slot_no, b"") + pack_spender(spent_by, made_by, index)
        return [spenders.SpenderRow(slot_no, entries) for slot_no, entries in by_slot.items()]


def random_case(random: Random) -> Case:
    """A chain of some blocks. Some transactions make only a collateral return, and some inputs have no source."""
    case, unspent = Case(), list[tuple[TxId, int]]()
    slots = sorted(random.sample(range(1, 2**31), 6))
    hashes = {}
    for tx_id in (tx_id_of(slot_no, index) for slot_no in slots for index in range(random.randrange(5))):
        hashes[tx_id] = random.randbytes(32)
        inputs = [packed.Input(random.randbytes(32), random.randrange(9), None) for _ in range(random.randrange(2))]
        for _ in range(min(len(unspent), random.randrange(4))):
            made_by, index = unspent.pop(random.randrange(len(unspent)))
            inputs.append(packed.Input(hashes[made_by], index, case.outputs[made_by, index]))
            case.spent_by[made_by, index] = tx_id
        first_index = random.choice((0, 0, 0, 3))
        made = [random_output(random) for _ in range(random.randrange(4))]
        for index, output in enumerate(made, first_index):
            case.outputs[tx_id, index] = output
            unspent.append((tx_id, index))
        case.inputs[tx_id] = inputs
        minted = {AssetNo(number): random.choice((-(2**63), -1, 2**63 - 1)) for number in random_assets(random)}
        case.mints[tx_id] = minted
        case.rows.append(
            Row(
                tx_id=tx_id,
                outputs=packed.pack_outputs(first_index, [pack(output) for output in made]),
                inputs=packed.pack_inputs([pack_input(each) for each in inputs]),
                mint=packed.pack_mint(minted),
                extra=None,
                hash=hashes[tx_id],
                fee=random.choice((None, 0, 7)),
                attached=None,
            )
        )
    return case


def random_output(random: Random) -> packed.Output:
    assets = {AssetNo(number): random.choice(QUANTITIES) for number in random_assets(random)}
    return packed.Output(AddressNo(random.choice(ADDRESSES)), random.choice((0, 1, 2**33, SUPPLY, 2**63 - 1)), assets)


def random_assets(random: Random) -> list[int]:
    return random.sample(ASSETS, random.choice((0, 0, 1, 3)))


def pack_input(spent: packed.Input) -> bytes:
    key = packed.output_key(spent.tx_hash, spent.output_index)
    return packed.pack_input(key, None if spent.source is None else pack(spent.source))


def pack(output: packed.Output) -> bytes:
    return packed.pack_output(output.address_no, output.lovelace, output.quantities)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Numbers:
    folder: Path = tmp_path_factory.mktemp("numbers")
    accounts = np.zeros(max(ACCOUNTS) + 1, np.int32)
    for address_no, stake_no in ACCOUNTS.items():
        accounts[address_no] = stake_no + 1
    accounts.tofile(folder / "accounts")
    np.array([number in TOKENS for number in range(max(TOKENS) + 1)], np.uint8).tofile(folder / "reference-tokens")
    return Numbers(folder)


def expected(case: Case) -> Counter[str]:
    """The sums, one term at a time."""
    sums = Counter[str]()
    for row in case.rows:
        weight = weight_of(row.tx_id)
        made = [output for (tx_id, _), output in case.outputs.items() if tx_id == row.tx_id]
        touched = {output.address_no for output in made}
        touched |= {each.source.address_no for each in case.inputs[TxId(row.tx_id)] if each.source}
        sums["address_tx"] += sum(weight * key_of(number) for number in touched)
        sums["account_tx"] += sum(
            weight * key_of(number) for number in {ACCOUNTS[n] for n in touched & ACCOUNTS.keys()}
        )
        sums["asset_tx"] += sum(weight * value_of(output.quantities) for output in made)
        sums["mint"] += weight * value_of(case.mints[TxId(row.tx_id)])
        sums["spender"] += sum(each.source is not None for each in case.inputs[TxId(row.tx_id)])
    sums["spender"] -= sum(len(row.entries) // 12 for row in case.entries)
    hashes = {row.tx_id: row.hash for row in case.rows}
    for (tx_id, index), output in case.outputs.items():
        spent_by, keys = case.spent_by.get((tx_id, index)), sum(key_of(int(number)) for number in output.quantities)
        if spent_by is None:
            key = key_of(output.address_no)
            sums["utxo"] += weight_of(tx_id) * (index + 1) * (key * (output.lovelace + 1) + keys)
            sums["holder"] += key * value_of(output.quantities)
        token = sum(key_of(number) for number in TOKENS & output.quantities.keys()) * (index + 1)
        sums["reference_output"] += token * weight_of(tx_id)
        if spent_by is not None:
            sums["spent_reference"] += token * int.from_bytes(hashes[tx_id][:4]) * weight_of(spent_by)
    return Counter({name: total % PRIME for name, total in sums.items() if total % PRIME})


def value_of(quantities: packed.Quantities) -> int:
    return sum(key_of(int(asset_no)) * quantity for asset_no, quantity in quantities.items())


@pytest.mark.parametrize("seed", range(40))
def test_sums_in_columns_are_those_of_one_term_at_a_time(seed: int, numbers: Numbers) -> None:
    case = random_case(Random(seed))
    spent = spenders.spent_in(case.entries)
    flowing = flows.of(case.rows, spent)
    found = msgspec.structs.asdict(checksums.of_flows(case.rows, flowing, spent, numbers))
    assert found.pop("spending") == 0
    assert Counter({name: total % PRIME for name, total in found.items() if total % PRIME}) == expected(case)


@pytest.mark.parametrize("seed", range(20))
def test_what_each_transaction_leaves_is_exact(seed: int) -> None:
    """Also with lovelace beyond 64 bits."""
    case = random_case(Random(seed))
    found = flows.of(case.rows, spenders.spent_in(case.entries))
    for place, row in enumerate(case.rows):
        made = [output for (tx_id, _), output in case.outputs.items() if tx_id == row.tx_id]
        spent = [each.source for each in case.inputs[TxId(row.tx_id)] if each.source]
        paid = sum(output.lovelace for output in made)
        assert found.lovelace_out[place] == paid
        assert found.lovelace_left[place] == sum(output.lovelace for output in spent) - paid - (row.fee or 0)
        value = sum(value_of(output.quantities) for output in spent) + value_of(case.mints[TxId(row.tx_id)])
        assert found.assets_left[place] == (value - sum(value_of(output.quantities) for output in made)) % PRIME
    missing = [each.tx_hash for inputs in case.inputs.values() for each in inputs if each.source is None]
    assert found.unresolved == missing and len(found.before) == len(missing)


def test_sums_over_parts_are_exact() -> None:
    """Outputs and the inputs that spend them may be in two parts."""
    source = packed.Output(AddressNo(1), 5, {})
    made = Row(
        1 << 16, packed.pack_outputs(0, [pack(source)] * 400), packed.pack_inputs([]), None, None, bytes(32), 0, None
    )
    inputs = [packed.pack_input(packed.output_key(bytes(32), index), pack(source)) for index in range(400)]
    spends = Row(2 << 16, packed.pack_outputs(0, []), packed.pack_inputs(inputs), None, None, b"\1" * 32, 0, None)
    entries = b"".join(pack_spender(TxId(spends.tx_id), TxId(made.tx_id), index) for index in range(400))
    spent = spenders.spent_in([spenders.SpenderRow(1, entries)])
    halves = [msgspec.structs.replace(spends, inputs=packed.pack_inputs(part)) for part in (inputs[:200], inputs[200:])]
    parts = [flows.of([made], spent), *(flows.of([half], spenders.spent_in([])) for half in halves)]
    assert sum(map(checksums.of_spending, parts)) == 0


def test_only_entries_of_one_row_have_an_order() -> None:
    rows = [
        spenders.SpenderRow(
            slot_no, b"".join(pack_spender(TxId(by), tx_id_of(slot_no, 0), index) for by, index in each)
        )
        for slot_no, each in ((1, [(900, 0), (900, 1), (901, 2)]), (2, [(800, 0)]), (3, [(700, 0), (699, 1), (698, 2)]))
    ]
    assert spenders.spent_in(rows[:2]).disordered == 0
    assert spenders.spent_in(rows).disordered == 1


def test_keys_differ_and_are_never_0() -> None:
    keys = [key_of(number) for number in (*range(100_000), *range(2**31 - 100_000, 2**31))]
    assert len(set(keys)) == len(keys) and 0 not in keys


@pytest.mark.parametrize("quantity", [2**power + step for power in (31, 32, 62, 63, 64) for step in (-1, 0, 1)])
def test_a_quantity_next_to_a_power_of_two_is_unlike_its_neighbours(quantity: int) -> None:
    others = {0, 1, 2, 2**31, 2**32, 2**62, 2**63} - {quantity}
    assert quantity % PRIME not in {each % PRIME for each in others}
