"""Effects of transactions: failed scripts, sub-transactions, sizes, metadata, and the preservation of value."""

import asyncio
from itertools import islice
from typing import Any

import msgspec
import pytest

from indexer.blocks import effects, packed_block
from indexer.blocks.effects import BlockEffects, Effects, PaidOutput
from indexer.ogmios import frames
from indexer.rows import rows, tables
from indexer.rows.caches import ResolvedOutput
from indexer.rows.resolver import FirstFree, Resolver
from indexer.rows.tables import Inserts
from indexer.rows.value_check import Deposits, Rules, Unbalanced
from shared import address, packed
from shared.encoding import bech32_encode
from shared.ledger import AddressNo, AssetNo, Point, PolicyNo, PoolNo, StakeNo, tx_id_of
from shared.network import PREVIEW
from tests.chain.harness import blocks_of, recorded

PAYMENT = address.show(b"\x60" + bytes(28))
POLICY = "ab" * 28
AT = Point(7, bytes(32))
RULES = Rules(Deposits(2_000_000, 500_000_000), from_origin=True)
CHANGED = Rules(Deposits(2_000_000, 500_000_000, changed=True), from_origin=True)
PARTIAL = msgspec.structs.replace(RULES, from_origin=False)


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
    (found,) = effects.of_transaction(tx, era)
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
    assert [packed.output_of(key) for key in found.inputs] == [(bytes.fromhex(_id(5)), 0)]
    assert (found.first_index, [output.lovelace for output in found.outputs], found.fee) == (3, [40], 60)
    assert found.mint == {} and found.extra.withdrawals == {} and not found.extra.valid


def test_failed_scripts_without_a_return_lose_all_collateral() -> None:
    found = _only(_tx(**FAILED))
    assert found.outputs == [] and found.fee is None
    assert _fee(found, 100) == 100


def test_sub_transactions_precede_their_host_and_pay_no_fee() -> None:
    sub = {"id": _id(2), "inputs": [_spend(3)], "outputs": [_output(5)]}
    found = effects.of_transaction(_tx(subTransactions=[sub], outputs=[_output(1)]), "dijkstra")
    assert [tx.tx_hash.hex() for tx in found] == [_id(2), _id(1)]
    assert [tx.fee for tx in found] == [0, 10]
    assert _fee_of(found, {3: _source(6), 9: _source(10)}) == 10


def test_sub_transactions_of_a_failed_host_did_not_happen() -> None:
    sub = {"id": _id(2), "inputs": [_spend(3)], "outputs": [_output(5)]}
    (host,) = effects.of_transaction(_tx(**FAILED, subTransactions=[sub]), "dijkstra")
    assert host.tx_hash.hex() == _id(1)


@pytest.mark.parametrize(
    ("era", "sent", "size"),
    [
        ("byron", "82a0a0", 3),
        ("mary", "83a0a0f6", 4),
        ("alonzo", "84a0a0f5f6", 4),
        ("conway", "84a0a0f5f6", 4),
        ("dijkstra", "83a0a0f6", 4),
        ("dijkstra", "84a0a0f5f6", 4),
    ],
)
def test_the_validity_flag_does_not_count(era: str, sent: str, size: int) -> None:
    assert _only(_tx(cbor=sent), era).size == size
    assert _only(_tx(), era).size is None


def test_a_sub_transaction_has_no_validity_flag() -> None:
    sub, host = effects.of_transaction(
        _tx(cbor="83a0a0f6", subTransactions=[{"id": _id(2), "cbor": "83a0a0f6"}]), "dijkstra"
    )
    assert (sub.size, host.size) == (4, 4)


def test_quantities_of_zero_mean_nothing() -> None:
    found = _only(_tx(outputs=[_output(1, aa=0, bb=2)], mint={POLICY: {"cc": 0}}))
    assert found.outputs[0].assets == {bytes.fromhex(POLICY): {b"\xbb": 2}}
    assert found.mint == {}


def test_metadata_is_kept_as_cbor_if_the_node_sends_it() -> None:
    labels = {"721": {"cbor": "a0", "json": {}}, "18446744073709551615": {"json": {"a": [1]}}}
    extra = _only(_tx(metadata={"hash": "", "labels": labels})).extra
    assert extra.metadata_cbor == {721: b"\xa0"}
    assert {label: msgspec.json.decode(text) for label, text in extra.metadata_json.items()} == {2**64 - 1: {"a": [1]}}


def test_an_empty_treasury_of_ogmios_6_14_is_read() -> None:
    assert _fee(_only(_tx(treasury={}, outputs=[_output(90)])), 100) == 10


@pytest.mark.parametrize(
    "part",
    [
        {"id": "xyz!" * 16},
        {"id": "33" * 31 + "  "},
        {"inputs": [{"transaction": {"id": "33" * 31 + "  "}, "index": 0}]},
        {"outputs": [{"address": "addr1!", "value": _ada(1)}]},
    ],
)
def test_invalid_hex_and_addresses_are_unreadable_and_name_the_block(part: dict[str, Any]) -> None:
    block = frames.Block(
        type="praos",
        era="conway",
        id=_id(4),
        ancestor=_id(3),
        height=1,
        slot=7,
        size=frames.NumberOfBytes(9),
        issuer=frames.Issuer("00" * 32),
        transactions=[_tx(**part)],
    )
    with pytest.raises(frames.Unreadable, match=f"{_id(4)} at slot 7"):
        effects.of_block(block)


@pytest.mark.parametrize(
    "part",
    [
        {"outputs": [_output(1 << 64)]},
        {"outputs": [_output(1, aa=1 << 64)]},
        {"fee": _ada(1 << 64)},
        {"validityInterval": {"invalidAfter": 1 << 64}},
    ],
)
def test_numbers_beyond_64_bits_are_unreadable_and_name_the_transaction(part: dict[str, Any]) -> None:
    block = BlockEffects(AT, 1, "", False, bytes(28), [[_only(_tx(**part))]], "conway", 9)
    with pytest.raises(frames.Unreadable, match=f"{'00' * 32} at slot 7: transaction {_id(1)}"):
        packed_block.pack(block, frames.NodePoint(7, _id(0)), PREVIEW)


def test_issuers_of_byron_have_the_names_of_cardano_db_sync() -> None:
    """Those in answers of Blockfrost about mainnet, with the sizes there."""
    told = {0: ("52df0f2c5539b2b1", 665), 99: ("52df0f2c5539b2b1", 667), 5998: ("8e8a7b0f4a23f07a", 631)}
    found = {}
    for block in islice(blocks_of(recorded("mainnet-byron-from-genesis.jsonl.xz")), 6_001):
        read = effects.of_block(msgspec.json.decode(msgspec.json.encode(block), type=frames.Block))
        if read.point.slot_no in told and read.issuer is not None:
            found[read.point.slot_no] = read.issuer[:8].hex(), read.size
    assert found == told


def test_collateral_and_references_are_kept_of_transactions_whose_scripts_succeed() -> None:
    parts = {"references": [_spend(3, 1)], "collaterals": [_spend(4)], "collateralReturn": _output(5)}
    done, failed = _only(_tx(**parts)), _only(_tx(**parts, spends="collaterals"))
    assert (done.references, done.collaterals) == ([_key(3, 1)], [_key(4, 0)])
    assert done.returned == PaidOutput(address.of_node(PAYMENT), 5)
    assert (failed.references, failed.collaterals, failed.returned) == ([], [], None)


def _key(number: int, index: int) -> bytes:
    return packed.output_key(bytes.fromhex(_id(number)), index)


def test_an_output_is_spent_once() -> None:
    with pytest.raises(Unbalanced, match=f"spends {_id(9)}#0, which no block or genesis made, or which another"):
        _fee(_only(_tx(inputs=[_spend(9), _spend(9)], outputs=[_output(190)])), 100)


def _source(lovelace: int, **assets: int) -> PaidOutput:
    held = {bytes.fromhex(POLICY): {bytes.fromhex(name): n for name, n in assets.items()}} if assets else {}
    return PaidOutput(bytes(29), lovelace, held)


def _fee(tx: Effects, spent: int, rules: Rules = RULES) -> int | None:
    return _fee_of([tx], {int(packed.output_of(key)[0].hex(), 16): _source(spent) for key in tx.inputs}, rules)


def _fee_of(group: list[Effects], sources: dict[int, PaidOutput], rules: Rules = RULES) -> int | None:
    """The fee in the row of a transaction whose inputs spend the first outputs of transactions by number."""
    resolver = Resolver(PREVIEW, FirstFree(AddressNo(1), StakeNo(1), PoolNo(1), PolicyNo(1), AssetNo(1)))
    outputs = [*sources.values(), *(output for tx in group for output in tx.outputs)]
    for bundle in (*(output.assets for output in outputs), *(tx.mint for tx in group)):
        for policy, quantities in bundle.items():
            resolver.assets.update(
                {policy + name: AssetNo(len(resolver.assets) + place) for place, name in enumerate(quantities)}
            )
    resolver.addresses.update({output.address: (AddressNo(1), None, None) for output in outputs})
    for account in ((b"\xe0" + bytes(28)), b"\xf0" + bytes(28)):
        resolver.stakes[account] = StakeNo(1)
    resolver.pools[bytes(28)] = PoolNo(1)
    for number, output in sources.items():
        named = {policy + name: quantity for policy, some in output.assets.items() for name, quantity in some.items()}
        held = {resolver.assets[asset]: quantity for asset, quantity in named.items()}
        in_row = packed.pack_output(AddressNo(1), output.lovelace, held)
        resolved = ResolvedOutput(tx_id_of(0, 0), 0, in_row, output.lovelace, AddressNo(1), None, None, held, 0)
        resolver.unspent.add({packed.output_key(bytes.fromhex(_id(number)), 0): resolved})
    block = packed_block.pack(
        BlockEffects(AT, 1, "", False, bytes(28), [group], "conway", 9), frames.NodePoint(7, _id(0)), PREVIEW
    )
    first_seen = Inserts()
    built = asyncio.run(rows.build([block], first_seen, [], "conway", resolver, rules))
    return built.rows.inserts[tables.TX][-1].fee


REGISTRATION = {"type": "stakeCredentialRegistration", "credential": "00" * 28, "from": "verificationKey"}
DEREGISTRATION = {**REGISTRATION, "type": "stakeCredentialDeregistration"}
DREP = {"type": "delegateRepresentativeRegistration", "deposit": _ada(500)}
POOL = {
    "type": "stakePoolRegistration",
    "stakePool": {
        "id": bech32_encode("pool", bytes(28)),
        "vrfVerificationKeyHash": _id(0),
        "pledge": _ada(1),
        "cost": _ada(1),
        "margin": "1/100",
    },
}


@pytest.mark.parametrize(
    ("parts", "spent"),
    [
        ({"outputs": [_output(90)]}, 100),
        ({"certificates": [{**REGISTRATION, "deposit": _ada(3)}]}, 13),
        ({"certificates": [{**DEREGISTRATION, "deposit": _ada(3)}], "outputs": [_output(3)]}, 10),
        ({"certificates": [DREP]}, 510),
        ({"certificates": [{**DREP, "type": "delegateRepresentativeRetirement"}], "outputs": [_output(500)]}, 10),
        ({"withdrawals": {address.show_stake(b"\xe0" + bytes(28)): _ada(5)}, "outputs": [_output(5)]}, 10),
        ({"credits": {address.show_stake(b"\xe0" + bytes(28)): _ada(5)}}, 15),
        ({"proposals": [{"deposit": _ada(7)}, {}]}, 17),
        ({"treasury": {"donation": _ada(8), "value": _ada(1)}}, 18),
    ],
)
def test_value_is_preserved_by_every_kind_of_deposit_and_refund(parts: dict[str, Any], spent: int) -> None:
    tx = _only(_tx(**parts))
    assert _fee(tx, spent) == 10
    for wrong in (spent - 1, spent + 1):
        with pytest.raises(Unbalanced, match=f"slot 7 .*{_id(1)}"):
            _fee(tx, wrong)


@pytest.mark.parametrize(
    ("certificates", "taken", "not_taken"),
    [
        ([REGISTRATION], [2_000_000], [-1, 0, 1_500_000, 2_000_001]),
        ([REGISTRATION, REGISTRATION], [4_000_000], [2_000_000, 3_999_999]),
        ([DEREGISTRATION], [-2_000_000], [0, 1, -1_500_000]),
        ([REGISTRATION, DEREGISTRATION], [0], [1, -500_000, 2_000_000]),
        ([POOL], [0, 500_000_000], [-1, 250_000_000, 1_000_000_000]),
        ([POOL, POOL], [0, 500_000_000, 1_000_000_000], [-1, 1_500_000_000]),
        ([POOL, REGISTRATION, DEREGISTRATION], [0, 500_000_000], [500_000_001]),
        ([{**REGISTRATION, "deposit": _ada(3)}, REGISTRATION], [2_000_003], [3, 4_000_000]),
        ([{**REGISTRATION, "deposit": _ada(3)}], [3], [2, 4, 2_000_000]),
        ([DREP], [500], [499, 501]),
        ([], [0], [-1, 1, 2_000_000, 500_000_000]),
    ],
)
def test_certificates_without_an_amount_take_the_deposits_of_the_genesis(
    certificates: list[dict[str, Any]], taken: list[int], not_taken: list[int]
) -> None:
    balances(RULES, certificates, taken, not_taken)


@pytest.mark.parametrize(
    ("certificates", "taken", "not_taken"),
    [
        ([REGISTRATION], [2_000_000, 1, 0], [-1]),
        ([DEREGISTRATION], [-2_000_000, -3_000_000], [1]),
        ([POOL], [0, 250_000_000], [-1]),
        ([{**REGISTRATION, "deposit": _ada(3)}], [3], [2, 4]),
        ([DREP], [500], [499, 501]),
        ([], [0], [-1, 1]),
    ],
)
def test_certificates_may_take_any_amount_once_governance_has_changed_deposits(
    certificates: list[dict[str, Any]], taken: list[int], not_taken: list[int]
) -> None:
    balances(CHANGED, certificates, taken, not_taken)


def balances(rules: Rules, certificates: list[dict[str, Any]], taken: list[int], not_taken: list[int]) -> None:
    """A transaction with these certificates balances only if it leaves one of the amounts in `taken`."""
    tx = _only(_tx(certificates=certificates, outputs=[_output(5_000_000)]))
    for lovelace in taken:
        assert _fee(tx, 5_000_010 + lovelace, rules) == 10
    for lovelace in not_taken:
        with pytest.raises(Unbalanced):
            _fee(tx, 5_000_010 + lovelace, rules)


@pytest.mark.parametrize("spent", [{"aa": 4}, {"aa": 6}, {"bb": 5}, {}])
def test_assets_must_balance_too(spent: dict[str, int]) -> None:
    tx = _only(_tx(outputs=[_output(0, aa=7, cc=0)], mint={POLICY: {"aa": 2}}))
    assert _fee_of([tx], {9: _source(10, aa=5)}) == 10
    with pytest.raises(Unbalanced, match=POLICY):
        _fee_of([tx], {9: _source(10, **spent)})


@pytest.mark.parametrize("spent", [{"aa": 6}, {"aa": 8}, {"aa": 7, "bb": 1}, {}])
def test_assets_must_balance_without_a_mint(spent: dict[str, int]) -> None:
    tx = _only(_tx(outputs=[_output(0, aa=7)]))
    assert _fee_of([tx], {9: _source(10, aa=7)}) == 10
    with pytest.raises(Unbalanced, match=POLICY):
        _fee_of([tx], {9: _source(10, **spent)})


def test_burning_balances() -> None:
    tx = _only(_tx(mint={POLICY: {"aa": -(2**63)}}))
    assert _fee_of([tx], {9: _source(10, aa=2**63)}) == 10


def test_a_byron_fee_is_inputs_less_outputs() -> None:
    tx = _only(_tx(outputs=[_output(90)]), "byron")
    assert _fee(tx, 100) == 10
    with pytest.raises(Unbalanced, match="more than it spends"):
        _fee(tx, 89)


def test_an_unknown_input_stops_an_index_from_the_origin_and_no_other() -> None:
    with pytest.raises(Unbalanced, match=f"{_id(9)}#3"):
        _fee_of([_only(_tx(inputs=[_spend(9, 3)]))], {9: _source(10)})
    with pytest.raises(Unbalanced, match=f"{_id(9)}#0"):
        _fee_of([_only(_tx())], {})
    assert _fee_of([_only(_tx())], {}, PARTIAL) == 10
    assert _fee_of([_only(_tx(), "byron")], {}, PARTIAL) is None
