"""Digests of entries, compared with sums that are computed one term at a time in exact integers."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest

from indexer.rows.outputs import pack_spender
from indexer.verify import entries
from indexer.verify.entries import PARTITIONS, Entries
from indexer.verify.history import flows, spenders, spending
from indexer.verify.history.numbers import Numbers
from indexer.verify.history.rows import Row
from indexer.verify.keys import PRIME, ints, key_of, weight_of
from indexer.verify.tables import expected
from shared import packed
from shared.ledger import AddressNo, AssetNo, TxId, slot_of, tx_id_of

SUPPLY = 45 * 10**15
# Also numbers above 16 bits, and the highest ones; the last is beyond the lists of `numbers`.
ADDRESSES = (0, 1, 2, 65_537, 100_000, 2**31 - 1)
ASSETS = (0, 3, 65_539, 2**31 - 1)
QUANTITIES = (1, 5, 2**31 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
ACCOUNTS = {1: 7, 2: 7, 65_537: 0, 100_000: 2**31 - 2}
CREDENTIALS = {2: 1, 65_537: 1, 100_000: 0}  # the first address with the same payment credential
TOKENS = {3, 65_539}
POLICIES = {0: 4, 3: 4, 65_539: 2**31 - 1}
LONG_ADDRESSES = (1, 65_537, 2**31 - 1)  # those of long histories
LONG_ACCOUNTS = (0, 2**31 - 2)


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
                referred=None,
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
    credentials = np.zeros(max(CREDENTIALS) + 1, np.int32)
    for address_no, credential_no in CREDENTIALS.items():
        credentials[address_no] = credential_no + 1
    credentials.tofile(folder / "credentials")
    policies = np.zeros(max(POLICIES) + 1, np.int32)
    for asset_no, policy_no in POLICIES.items():
        policies[asset_no] = policy_no
    policies.tofile(folder / "policies")
    np.array([number in TOKENS for number in range(max(TOKENS) + 1)], np.uint8).tofile(folder / "reference-tokens")
    ints((-1, *LONG_ADDRESSES)).tofile(folder / "long-addresses")
    ints((-1, *LONG_ACCOUNTS)).tofile(folder / "long-accounts")
    return Numbers(folder)


Figures = dict[str, Counter[tuple[int, int]]]


def figures(case: Case) -> Figures:
    """The entries of each table, one at a time, without those of 0."""
    found: Figures = {table: Counter() for table in (*TABLES, "utxo")}
    for row in case.rows:
        made = [output for (tx_id, _), output in case.outputs.items() if tx_id == row.tx_id]
        touched = {int(output.address_no) for output in made}
        touched |= {int(each.source.address_no) for each in case.inputs[TxId(row.tx_id)] if each.source}
        found["address_tx"].update((number, row.tx_id) for number in touched)
        found["account_tx"].update((number, row.tx_id) for number in {ACCOUNTS[n] for n in touched & ACCOUNTS.keys()})
        shared = {CREDENTIALS[n] for n in touched & CREDENTIALS.keys()} - touched
        found["credential_tx"].update((number, row.tx_id) for number in shared)
        for output in made:
            for asset_no, quantity in output.quantities.items():
                found["asset_tx"][asset_no, row.tx_id] += quantity
    for (tx_id, index), output in case.outputs.items():
        spent_by = case.spent_by.get((tx_id, index))
        for asset_no, quantity in output.quantities.items():
            if spent_by is None:
                owner_no = ACCOUNTS.get(output.address_no, -output.address_no)
                found["holder"][asset_no, output.address_no] += quantity
                found["policy_holder"][POLICIES.get(asset_no, 0), output.address_no] += quantity
                found["account_holder"][asset_no, owner_no] += quantity
                found["policy_account_holder"][POLICIES.get(asset_no, 0), owner_no] += quantity
                if output.address_no in CREDENTIALS:
                    found["credential_holder"][asset_no, CREDENTIALS[output.address_no]] += quantity
            if asset_no in TOKENS:
                found["reference_output"][asset_no, tx_id << 16 | index] += 1 if spent_by is None else spent_by + 2
        if spent_by is None and output.address_no in ACCOUNTS:
            found["stake"][ACCOUNTS[output.address_no], 0] += output.lovelace
        if spent_by is None:
            account = key_of(ACCOUNTS[output.address_no]) if output.address_no in ACCOUNTS else 0
            keys = sum(key_of(int(number)) for number in output.quantities)
            inside = key_of(output.address_no) * (output.lovelace + 1) + keys + account * 1_640_531_527
            credential = key_of(CREDENTIALS[output.address_no]) if output.address_no in CREDENTIALS else 0
            inside += credential * 1_183_186_591
            found["utxo"][tx_id, index] = inside % PRIME
    return found | sent(case)


def sent(case: Case) -> Figures:
    """What is spent; lovelace as an asset with the number 0, which is another asset's here, too."""
    found: Figures = {table: Counter() for table in SENT}
    for source in (each.source for inputs in case.inputs.values() for each in inputs if each.source):
        address_no, stake_no = int(source.address_no), ACCOUNTS.get(source.address_no)
        for asset_no, quantity in ((0, source.lovelace), *source.quantities.items()):
            if address_no in LONG_ADDRESSES:
                found["address_sent"][asset_no, address_no] += quantity
            if stake_no is not None and stake_no in LONG_ACCOUNTS:
                found["account_sent"][asset_no, stake_no] += quantity
            if address_no in CREDENTIALS:
                found["credential_sent"][asset_no, CREDENTIALS[address_no]] += quantity
    return found


SENT = ("address_sent", "account_sent", "credential_sent")
TABLES: dict[str, Callable[[int, int], int]] = {
    "address_tx": lambda address_no, tx_id: key_of(address_no) * weight_of(tx_id),
    "account_tx": lambda stake_no, tx_id: key_of(stake_no) * weight_of(tx_id),
    "credential_tx": lambda credential_no, tx_id: key_of(credential_no) * weight_of(tx_id),
    "asset_tx": lambda asset_no, tx_id: key_of(asset_no) * weight_of(tx_id),
    **dict.fromkeys(
        ("holder", "policy_holder", "account_holder", "policy_account_holder", "credential_holder", *SENT),
        lambda held_no, owner_no: key_of(held_no + 2**30) * key_of(owner_no),
    ),
    "stake": lambda stake_no, _: key_of(stake_no),
    "reference_output": lambda asset_no, output: key_of(asset_no) * weight_of(output >> 16) * ((output & 0xFFFF) + 1),
    "utxo": lambda tx_id, index: weight_of(tx_id) * (index + 1),
}
"""The hash of a pair, by table."""


@pytest.mark.parametrize("seed", range(40))
def test_digests_in_columns_are_those_of_one_entry_at_a_time(seed: int, numbers: Numbers) -> None:
    case = random_case(Random(seed))
    flowing = flows.unpack(case.rows, spenders.spent_in(case.entries))
    found, right = expected.of_flows(flowing, numbers), figures(case)
    assert found.keys() == right.keys()
    for table, hash_of in TABLES.items():
        digest = [0] * PARTITIONS
        for pair, quantity in right[table].items():
            hashed = hash_of(*pair) % PRIME
            digest[hashed % PARTITIONS] += hashed * quantity
        assert found[table].digest().tolist() == [total % PRIME for total in digest], table
        assert found[table].listed(range(PARTITIONS)) == right[table], table
    assert not spending.digest(flowing).any()
    assert not spenders.wrong(
        spenders.spent_in(case.entries), flowing.tx_id[flowing.made.row], flowing.made.index, flowing.spent_by
    )


@pytest.mark.parametrize("quantity", [0, 1, -1, -5, 2**63, 2**64 - 1, 2**64, 2**70 + 7, -(2**63), -(2**64) - 3])
def test_a_quantity_of_any_size_is_exact(quantity: int) -> None:
    some = entries.of_exact(ints([3, 3]), ints([5, 5]), ints([7, 7]), [quantity, 2])
    assert some.listed([7]) == {(3, 5): quantity + 2}
    assert some.listed([8]) == {}
    digest = some.digest()
    assert (digest[7], digest.sum()) == (7 * (quantity + 2) % PRIME,) * 2


def test_a_wrong_entry_differs_in_its_partition_only() -> None:
    hashes = ints([1, 2, PARTITIONS + 2, 77])
    right = Entries(hashes, hashes, hashes, ints([5, 6, 7, 8]))
    wrong = Entries(hashes, hashes, hashes, ints([5, 6, 8, 8]))
    sides = [{"a table": each.digest(), "another": right.digest()} for each in (right, wrong)]
    assert entries.wrong_partitions(*sides) == {"a table": [2]}
    assert entries.wrong_partitions(sides[0], {"a table": right.digest()}) == {"another": [1, 2, 77]}
    assert wrong.listed([2]) == {(2, 2): 6, (PARTITIONS + 2, PARTITIONS + 2): 8}


def value_of(quantities: packed.Quantities) -> int:
    return sum(key_of(int(asset_no)) * quantity for asset_no, quantity in quantities.items())


@pytest.mark.parametrize("seed", range(20))
def test_what_each_transaction_leaves_is_exact(seed: int) -> None:
    """Also with lovelace beyond 64 bits."""
    case = random_case(Random(seed))
    found = flows.unpack(case.rows, spenders.spent_in(case.entries))
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
        1 << 16,
        packed.pack_outputs(0, [pack(source)] * 400),
        packed.pack_inputs([]),
        None,
        None,
        bytes(32),
        0,
        None,
        None,
    )
    inputs = [packed.pack_input(packed.output_key(bytes(32), index), pack(source)) for index in range(400)]
    spends = Row(2 << 16, packed.pack_outputs(0, []), packed.pack_inputs(inputs), None, None, b"\1" * 32, 0, None, None)
    entries = b"".join(pack_spender(TxId(spends.tx_id), TxId(made.tx_id), index) for index in range(400))
    spent = spenders.spent_in([spenders.SpenderRow(1, entries)])
    halves = [msgspec.structs.replace(spends, inputs=packed.pack_inputs(part)) for part in (inputs[:200], inputs[200:])]
    parts = [flows.unpack([made], spent), *(flows.unpack([half], spenders.spent_in([])) for half in halves)]
    total = sum(map(spending.digest, parts), np.zeros(PARTITIONS, np.int64))
    assert not (total % PRIME).any()


def test_only_entries_of_one_row_have_an_order() -> None:
    rows = [
        spenders.SpenderRow(
            slot_no, b"".join(pack_spender(TxId(by), tx_id_of(slot_no, 0), index) for by, index in each)
        )
        for slot_no, each in ((1, [(900, 0), (900, 1), (901, 2)]), (2, [(800, 0)]), (3, [(700, 0), (699, 1), (698, 2)]))
    ]
    assert spenders.spent_in(rows[:2]).disordered == []
    assert spenders.spent_in(rows).disordered == [3]


def test_keys_differ_and_are_never_0() -> None:
    keys = [key_of(number) for number in (*range(100_000), *range(2**31 - 100_000, 2**31))]
    assert len(set(keys)) == len(keys) and 0 not in keys


@pytest.mark.parametrize("quantity", [2**power + step for power in (31, 32, 62, 63, 64) for step in (-1, 0, 1)])
def test_a_quantity_next_to_a_power_of_two_is_unlike_its_neighbours(quantity: int) -> None:
    others = {0, 1, 2, 2**31, 2**32, 2**62, 2**63} - {quantity}
    assert quantity % PRIME not in {each % PRIME for each in others}
