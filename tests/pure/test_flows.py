"""Flows of transactions, and the balance that follows from them."""

import msgspec
import pytest

from indexer.rows.outputs import pack_spender
from indexer.rows.value_check import Deposits
from indexer.verify.entries import Digest
from indexer.verify.history import balances, flows, spenders
from indexer.verify.history import spending as of_spending
from indexer.verify.history.rows import Row
from shared import packed
from shared.ledger import AddressNo, AssetNo, TxId

OWNER, COIN, OTHER = AddressNo(1), AssetNo(5), AssetNo(6)
FIRST = Deposits(2, 5)
CHANGED = Deposits(2, 5, changed=True)
UNSPENT = spenders.spent_in([])


def transaction(
    paid: packed.Quantities, *certificates: packed.Certificate, lovelace: int = 90, fee: int | None = 10
) -> Row:
    """A transaction that spends 100 lovelace and 7 of a coin, and mints 3 more."""
    source = packed.pack_output(OWNER, 100, {COIN: 7})
    return Row(
        tx_id=1 << 16,
        outputs=packed.pack_outputs(0, [packed.pack_output(OWNER, lovelace, paid)]),
        inputs=packed.pack_inputs([packed.pack_input(packed.output_key(b"\1" * 32, 0), source)]),
        mint=packed.pack_mint({COIN: 3}),
        extra=packed.pack_extra(packed.Extra(certificates=list(certificates))),
        hash=b"\2" * 32,
        fee=fee,
        attached=None,
        referred=None,
    )


def test_a_balanced_transaction_leaves_nothing() -> None:
    rows = [transaction({COIN: 10})]
    found = flows.unpack(rows, UNSPENT)
    assert (found.lovelace_left, found.assets_left, found.lovelace_out) == ([0], [0], [90])
    assert balances.unbalanced(rows, found, FIRST) == []


@pytest.mark.parametrize(
    ("row", "left"),
    [
        (transaction({COIN: 9}), {"quantity of asset_no 5": "1"}),
        (transaction({COIN: 10, OTHER: 2}), {"quantity of asset_no 6": "-2"}),
        (transaction({OTHER: 10}), {"quantity of asset_no 5": "10", "quantity of asset_no 6": "-10"}),
        (transaction({COIN: 10}, lovelace=91), {"lovelace": "-1"}),
        (transaction({COIN: 10}, fee=None), {"fee of": None}),
    ],
    ids=["too few", "from nothing", "of another asset", "a lovelace too many", "without a fee"],
)
def test_the_imbalance_of_a_transaction_is_named(row: Row, left: dict[str, str | None]) -> None:
    wrong = balances.unbalanced([row], flows.unpack([row], UNSPENT), FIRST)
    named = {what: each.indexed for each in wrong for what in left if each.what.startswith(what)}
    assert (named, len(wrong)) == (left, len(left))


@pytest.mark.parametrize(("slot_of_host", "left"), [(1, []), (2, ["lovelace", "quantity of asset_no 5"])])
def test_a_transaction_without_a_fee_balances_with_the_next_in_its_block(slot_of_host: int, left: list[str]) -> None:
    sub = transaction({COIN: 11}, lovelace=110, fee=0)
    host = msgspec.structs.replace(transaction({COIN: 9}, lovelace=80), tx_id=slot_of_host << 16 | 1, hash=b"\3" * 32)
    wrong = balances.unbalanced([sub, host], flows.unpack([sub, host], UNSPENT), FIRST)
    of_sub = [each for each in wrong if sub.hash.hex() in each.what]
    assert len(of_sub) == len(left)
    assert all(each.what.startswith(what) for each, what in zip(of_sub, left, strict=True))
    assert bool(wrong) == bool(left)


def certificate(kind: str, named: int | None = None) -> packed.Certificate:
    return packed.Certificate(packed.CERTIFICATES.index(kind), deposit=named)


REGISTRATION, DEREGISTRATION = "stakeCredentialRegistration", "stakeCredentialDeregistration"


@pytest.mark.parametrize(
    ("certificates", "lovelace", "left"),
    [
        ([certificate(REGISTRATION, 2)], 88, None),
        ([certificate(REGISTRATION, 2)], 89, "-1"),
        ([certificate(REGISTRATION, 2)], 90, "-2"),
        ([certificate(DEREGISTRATION, 2)], 92, None),
        ([certificate(DEREGISTRATION, 2)], 93, "-1"),
        ([certificate("delegateRepresentativeRetirement", 5)], 95, None),
        ([certificate("delegateRepresentativeRetirement", 5)], 96, "-1"),
        ([certificate(REGISTRATION)], 88, None),
        ([certificate(REGISTRATION)], 89, "1"),
        ([certificate("stakePoolRegistration")], 90, None),
        ([certificate("stakePoolRegistration")], 91, "-1"),
        ([certificate(DEREGISTRATION)], 92, None),
        ([certificate(DEREGISTRATION)], 93, "-3"),
        ([certificate(DEREGISTRATION), certificate(REGISTRATION, 2)], 90, None),
        ([certificate(DEREGISTRATION), certificate(REGISTRATION, 2)], 91, "-3"),
    ],
)
def test_certificates_take_their_named_amount_or_else_the_first_deposits(
    certificates: list[packed.Certificate], lovelace: int, left: str | None
) -> None:
    row = transaction({COIN: 10}, *certificates, lovelace=lovelace)
    wrong = balances.unbalanced([row], flows.unpack([row], UNSPENT), FIRST)
    assert [each.indexed for each in wrong] == ([] if left is None else [left])


@pytest.mark.parametrize(
    ("kind", "lovelace", "left"), [(REGISTRATION, 90, None), (REGISTRATION, 91, "-1"), (DEREGISTRATION, 95, None)]
)
def test_certificates_may_take_any_amount_once_deposits_have_changed(
    kind: str, lovelace: int, left: str | None
) -> None:
    row = transaction({COIN: 10}, certificate(kind), lovelace=lovelace)
    wrong = balances.unbalanced([row], flows.unpack([row], UNSPENT), CHANGED)
    assert [each.indexed for each in wrong] == ([] if left is None else [left])


MADE, SPENT_BY = 1 << 16, 2 << 16


def spending(
    *outputs: packed.Output,
    index: int = 0,
    tx_hash: bytes = b"\2" * 32,
    made_hash: bytes = b"\2" * 32,
    spent_by: int = SPENT_BY,
) -> Digest:
    """The digest of a transaction that makes an output, and one that spends these outputs, named by `spender`."""
    outputs_made = packed.pack_outputs(0, [packed.pack_output(OWNER, 90, {COIN: 3})])
    made = msgspec.structs.replace(transaction({}), outputs=outputs_made, inputs=NO_INPUTS, hash=made_hash)
    inputs = [
        packed.pack_input(packed.output_key(tx_hash, index), packed.pack_output(*msgspec.structs.astuple(output)))
        for output in outputs
    ]
    spends = msgspec.structs.replace(
        made, tx_id=SPENT_BY, hash=b"\3" * 32, outputs=NO_OUTPUTS, inputs=packed.pack_inputs(inputs)
    )
    entry = spenders.SpenderRow(MADE >> 16, pack_spender(TxId(spent_by), TxId(MADE), 0))
    return of_spending.digest(flows.unpack([made, spends], spenders.spent_in([entry])))


NO_INPUTS, NO_OUTPUTS = packed.pack_inputs([]), packed.pack_outputs(0, [])
RIGHT = packed.Output(OWNER, 90, {COIN: 3})


def test_the_sum_of_a_spent_output_is_that_of_its_input() -> None:
    assert not spending(RIGHT).any()


@pytest.mark.parametrize(
    "wrong",
    [
        spending(),
        spending(RIGHT, RIGHT),
        spending(RIGHT, index=1),
        spending(RIGHT, tx_hash=b"\4" * 32),
        spending(RIGHT, made_hash=b"\2" * 31),
        spending(RIGHT, spent_by=SPENT_BY + 1),
        spending(packed.Output(OWNER, 91, {COIN: 3})),
        spending(packed.Output(AddressNo(2), 90, {COIN: 3})),
        spending(packed.Output(OWNER, 90, {COIN: 4})),
        spending(packed.Output(OWNER, 90, {COIN: 3 + 4 * ((1 << 61) - 1)})),
        spending(packed.Output(OWNER, 90, {OTHER: 3})),
    ],
    ids=[
        "missing",
        "twice",
        "index",
        "hash",
        "short hash",
        "spender",
        "lovelace",
        "address",
        "quantity",
        "hash's modulus",
        "asset",
    ],
)
def test_an_input_that_is_not_the_spent_output_has_another_sum(wrong: Digest) -> None:
    assert wrong.any()


@pytest.mark.parametrize("place", range(32))
def test_each_byte_of_a_hash_counts(place: int) -> None:
    wrong = bytearray(b"\2" * 32)
    wrong[place] ^= 1
    assert spending(RIGHT, tx_hash=bytes(wrong)).any()
