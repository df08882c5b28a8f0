"""Flows of transactions, and the balance that follows from them."""

import pytest

from indexer.verify import balances, flows
from indexer.verify.spending import Row
from shared import packed
from shared.ledger import AddressNo, AssetNo

OWNER, COIN, OTHER = AddressNo(1), AssetNo(5), AssetNo(6)


def transaction(paid: packed.Quantities, *, lovelace: int = 90, fee: int | None = 10) -> Row:
    """It spends 100 lovelace and 7 of a coin, and mints 3 more."""
    source = packed.pack_output(OWNER, 100, {COIN: 7})
    return Row(
        tx_id=1 << 16,
        outputs=packed.pack_outputs(0, [packed.pack_output(OWNER, lovelace, paid)]),
        inputs=packed.pack_inputs([packed.pack_input(packed.output_key(b"\1" * 32, 0), source)]),
        mint=packed.pack_mint({COIN: 3}),
        extra=None,
        hash=b"\2" * 32,
        fee=fee,
    )


def test_nothing_is_left_of_a_transaction_that_balances() -> None:
    rows = [transaction({COIN: 10})]
    found = flows.of(rows, {})
    assert (found.lovelace_left, found.assets_left, found.lovelace_out) == ([0], [0], [90])
    assert balances.unbalanced(rows, found, {}) == ([], 0)


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
def test_what_is_left_of_a_transaction_is_named(row: Row, left: dict[str, str | None]) -> None:
    wrong, _ = balances.unbalanced([row], flows.of([row], {}), {})
    named = {what: each.indexed for each in wrong for what in left if each.what.startswith(what)}
    assert (named, len(wrong)) == (left, len(left))
