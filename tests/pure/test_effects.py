"""What a transaction did: failed scripts, sub-transactions, sizes, metadata, and whether value is preserved."""

from typing import Any

import msgspec
import pytest

from indexer import balance, effects, frames
from indexer.balance import Rules, Unbalanced
from indexer.effects import Effects
from shared import address
from shared.ledger import Point
from shared.packed import Input, Output

PAYMENT = address.show(b"\x60" + bytes(28))
POLICY = "ab" * 28
AT = Point(7, bytes(32))
RULES = Rules(stake_deposit=2_000_000, pool_deposit=500_000_000, from_origin=True)


def _id(number: int) -> str:
    return f"{number:064x}"


def _ada(lovelace: int) -> dict[str, dict[str, int]]:
    return {"ada": {"lovelace": lovelace}}


def _output(lovelace: int, **assets: int) -> dict[str, Any]:
    return {"address": PAYMENT, "value": {**_ada(lovelace), **({POLICY: assets} if assets else {})}}


def _tx(**parts: Any) -> frames.Transaction:
    declared = {"id": _id(1), "spends": "inputs", "inputs": [_spend(9)], "fee": _ada(10), **parts}
    return msgspec.json.decode(msgspec.json.encode(declared), type=frames.Transaction)


def _spend(number: int, index: int = 0) -> dict[str, Any]:
    return {"transaction": {"id": _id(number)}, "index": index}


def _only(tx: frames.Transaction, era: str = "conway") -> Effects:
    (found,) = effects.of(tx, era)
    return found


FAILED: dict[str, Any] = {
    "spends": "collaterals",
    "outputs": [_output(1), _output(2), _output(3)],
    "collaterals": [_spend(5)],
    "mint": {POLICY: {"aa": 1}},
    "certificates": [{"type": "stakeCredentialRegistration", "credential": "00" * 28, "from": "script"}],
    "withdrawals": {address.show_stake(b"\xe0" + bytes(28)): _ada(5)},
}


def test_failed_scripts_spend_collateral_and_pay_its_return_after_the_declared_outputs() -> None:
    found = _only(_tx(**FAILED, collateralReturn=_output(40), totalCollateral=_ada(60)))
    assert [reference.tx_hash.hex() for reference in found.inputs] == [_id(5)]
    assert (found.first_index, [output.lovelace for output in found.outputs], found.fee) == (3, [40], 60)
    assert found.mint == {} and found.extra.mint == {} and found.extra.withdrawals == {} and not found.extra.valid


def test_failed_scripts_without_a_return_lose_all_collateral() -> None:
    found = _only(_tx(**FAILED))
    assert found.outputs == [] and found.fee is None
    assert _fee(found, [100]) == 100


def test_sub_transactions_come_before_their_host_and_pay_no_fee_of_their_own() -> None:
    sub = {"id": _id(2), "inputs": [_spend(3)], "outputs": [_output(5)]}
    found = effects.of(_tx(subTransactions=[sub], outputs=[_output(1)]), "dijkstra")
    assert [tx.tx_hash.hex() for tx in found] == [_id(2), _id(1)]
    assert [tx.fee for tx in found] == [0, 10]
    assert balance.fee_of(found, [[_source(3, 6)], [_source(9, 10)]], RULES, AT) == 10


def test_sub_transactions_of_a_failed_host_did_not_happen() -> None:
    sub = {"id": _id(2), "inputs": [_spend(3)], "outputs": [_output(5)]}
    assert [tx.tx_hash.hex() for tx in effects.of(_tx(**FAILED, subTransactions=[sub]), "dijkstra")] == [_id(1)]


@pytest.mark.parametrize(("era", "size"), [("byron", 3), ("mary", 3), ("alonzo", 2), ("conway", 2), ("dijkstra", 2)])
def test_the_validity_flag_does_not_count_from_alonzo_on(era: str, size: int) -> None:
    assert _only(_tx(cbor="010203"), era).size == size
    assert _only(_tx(), era).size is None


def test_quantities_of_zero_mean_nothing() -> None:
    found = _only(_tx(outputs=[_output(1, aa=0, bb=2)], mint={POLICY: {"cc": 0}}))
    assert found.outputs[0].assets == {bytes.fromhex(POLICY): {b"\xbb": 2}}
    assert found.mint == {}


def test_metadata_is_kept_as_cbor_where_there_is_cbor() -> None:
    labels = {"721": {"cbor": "a0", "json": {}}, "18446744073709551615": {"json": {"a": [1]}}}
    extra = _only(_tx(metadata={"hash": "", "labels": labels})).extra
    assert extra.metadata_cbor == {721: b"\xa0"}
    assert {label: msgspec.json.decode(text) for label, text in extra.metadata_json.items()} == {2**64 - 1: {"a": [1]}}


def test_ogmios_6_14_writes_an_empty_treasury_where_there_is_none() -> None:
    assert _fee(_only(_tx(treasury={}, outputs=[_output(90)])), [100]) == 10


@pytest.mark.parametrize("part", [{"id": "xyz!" * 16}, {"outputs": [{"address": "addr1!", "value": _ada(1)}]}])
def test_what_is_not_hex_or_an_address_is_unreadable_and_names_the_block(part: dict[str, Any]) -> None:
    block = frames.Block(
        type="praos", era="conway", id=_id(4), ancestor=_id(3), height=1, slot=7, transactions=[_tx(**part)]
    )
    with pytest.raises(frames.Unreadable, match=f"{_id(4)} at slot 7"):
        effects.of_block(block)


def _source(number: int, lovelace: int, **assets: int) -> Input:
    held = {bytes.fromhex(POLICY): {bytes.fromhex(name): n for name, n in assets.items()}} if assets else {}
    return Input(bytes.fromhex(_id(number)), 0, Output(bytes(29), lovelace, held))


def _fee(tx: Effects, spent: list[int], rules: Rules = RULES) -> int | None:
    return balance.fee_of([tx], [[_source(9, lovelace) for lovelace in spent]], rules, AT)


REGISTRATION = {"type": "stakeCredentialRegistration", "credential": "00" * 28, "from": "verificationKey"}
DEREGISTRATION = {**REGISTRATION, "type": "stakeCredentialDeregistration"}
DREP = {"type": "delegateRepresentativeRegistration", "deposit": _ada(500)}
POOL = {"type": "stakePoolRegistration", "stakePool": {"id": "pool1"}}


@pytest.mark.parametrize(
    ("parts", "spent"),
    [
        ({"outputs": [_output(90)]}, 100),
        ({"certificates": [REGISTRATION]}, 2_000_010),
        ({"certificates": [{**REGISTRATION, "deposit": _ada(3)}]}, 13),
        ({"certificates": [DEREGISTRATION], "outputs": [_output(2_000_000)]}, 10),
        ({"certificates": [{**DEREGISTRATION, "deposit": _ada(3)}], "outputs": [_output(3)]}, 10),
        ({"certificates": [DREP]}, 510),
        ({"certificates": [{**DREP, "type": "delegateRepresentativeRetirement"}], "outputs": [_output(500)]}, 10),
        ({"certificates": [POOL]}, 500_000_010),
        ({"certificates": [POOL]}, 10),  # the pool is registered already
        ({"withdrawals": {address.show_stake(b"\xe0" + bytes(28)): _ada(5)}, "outputs": [_output(5)]}, 10),
        ({"credits": {address.show_stake(b"\xe0" + bytes(28)): _ada(5)}}, 15),
        ({"proposals": [{"deposit": _ada(7)}, {}]}, 17),
        ({"treasury": {"donation": _ada(8), "value": _ada(1)}}, 18),
    ],
)
def test_value_is_preserved_by_every_kind_of_deposit_and_refund(parts: dict[str, Any], spent: int) -> None:
    tx = _only(_tx(**parts))
    assert _fee(tx, [spent]) == 10
    for wrong in (spent - 1, spent + 1):
        with pytest.raises(Unbalanced, match=f"slot 7 .*{_id(1)}"):
            _fee(tx, [wrong])


@pytest.mark.parametrize(("certificates", "deposits"), [([], 1), ([POOL], 2), ([POOL, POOL], 3)])
def test_no_more_pool_deposits_are_taken_than_pools_are_registered(
    certificates: list[dict[str, Any]], deposits: int
) -> None:
    with pytest.raises(Unbalanced):
        _fee(_only(_tx(certificates=certificates)), [10 + deposits * RULES.pool_deposit])


@pytest.mark.parametrize("spent", [{"aa": 4}, {"aa": 6}, {"bb": 5}, {}])
def test_assets_must_balance_too(spent: dict[str, int]) -> None:
    tx = _only(_tx(outputs=[_output(0, aa=7, cc=0)], mint={POLICY: {"aa": 2}}))
    assert balance.fee_of([tx], [[_source(9, 10, aa=5)]], RULES, AT) == 10
    with pytest.raises(Unbalanced, match=POLICY):
        balance.fee_of([tx], [[_source(9, 10, **spent)]], RULES, AT)


def test_burning_balances() -> None:
    tx = _only(_tx(mint={POLICY: {"aa": -(2**63)}}))
    assert balance.fee_of([tx], [[_source(9, 10, aa=2**63)]], RULES, AT) == 10


def test_a_byron_fee_is_inputs_less_outputs() -> None:
    tx = _only(_tx(outputs=[_output(90)]), "byron")
    assert _fee(tx, [100]) == 10
    with pytest.raises(Unbalanced, match="more than it spends"):
        _fee(tx, [89])


def test_an_unknown_input_stops_an_index_from_the_origin_and_no_other() -> None:
    unknown = [[Input(bytes.fromhex(_id(9)), 3, None)]]
    with pytest.raises(Unbalanced, match=f"{_id(9)}#3"):
        balance.fee_of([_only(_tx())], unknown, RULES, AT)
    partial = msgspec.structs.replace(RULES, from_origin=False)
    assert balance.fee_of([_only(_tx())], unknown, partial, AT) == 10
    assert balance.fee_of([_only(_tx(), "byron")], unknown, partial, AT) is None
