"""The changes of certificates in order, for every era and version of Ogmios; and margins as exact decimals."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from api.blockfrost.pools import shown_relay
from api.chain.certificates import PoolRelay
from api.chain.pools import PoolIdKind, show_ratio, show_relay
from api.chain.pools import Relay as ShownRelay
from indexer.blocks import certificates, effects, packed_block
from indexer.blocks.certificates import (
    PoolRetirement,
    PoolUpdate,
    RepresentativeChange,
    StakeChange,
    VoteDelegation,
)
from indexer.blocks.node_warnings import NodeWarnings
from indexer.blocks.packed_block import PackedBlock
from indexer.ogmios import frames
from indexer.rows import staking
from shared.encoding import bech32_encode
from shared.ledger import Point
from shared.network import MAINNET, PREVIEW
from shared.packed import Anchor, PoolParameters, Relay, pack_pool_parameters, unpack_pool_parameters

HASH, OTHER_HASH = bytes(range(28)), bytes(range(28, 56))
POOL = bech32_encode("pool", OTHER_HASH)
KEY_ACCOUNT, SCRIPT_ACCOUNT = b"\xe0" + HASH, b"\xf0" + HASH
CREDENTIAL = {"from": "verificationKey", "credential": HASH.hex()}
REGISTRATION: dict[str, Any] = {
    "id": POOL,
    "vrfVerificationKeyHash": "ab" * 32,
    "pledge": {"ada": {"lovelace": 2**64 - 1}},
    "cost": {"ada": {"lovelace": 340_000_000}},
    "margin": "1/100",
    "rewardAccount": bech32_encode("stake_test", SCRIPT_ACCOUNT),
    "owners": [HASH.hex()],
    "relays": [
        {"type": "ipAddress", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "port": 3001},
        {"type": "hostname", "hostname": "_cardano._tcp.example.org"},
    ],
    "metadata": {"url": "https://example.org/\0", "hash": "cd" * 32},
}


def _changes(*declared_certificates: dict[str, Any], **parts: Any) -> list[certificates.Change]:
    declared = {
        "id": "00" * 32,
        "spends": "inputs",
        "fee": {"ada": {"lovelace": 1}},
        "certificates": declared_certificates,
    }
    tx = msgspec.json.decode(msgspec.json.encode(declared | parts), type=frames.Transaction)
    return [
        change
        for found in effects.of_transaction(tx, "conway")
        for change in certificates.changes_of(found.certificates, found.tx_hash, PREVIEW)
    ]


def test_certificates_change_stake_in_their_order() -> None:
    assert _changes(
        {"type": "stakeCredentialRegistration", **CREDENTIAL, "deposit": {"ada": {"lovelace": 2_000_000}}},
        {"type": "stakeDelegation", **CREDENTIAL, "stakePool": {"id": POOL}},
        {"type": "stakeCredentialDeregistration", "from": "script", "credential": HASH.hex()},
    ) == [
        StakeChange("registration", KEY_ACCOUNT),
        StakeChange("delegation", KEY_ACCOUNT, OTHER_HASH),
        StakeChange("deregistration", SCRIPT_ACCOUNT),
    ]


def test_a_certificate_may_delegate_stake_and_vote() -> None:
    vote = {"type": "stakeDelegation", **CREDENTIAL, "delegateRepresentative": {"type": "abstain"}}
    assert _changes(vote, vote | {"stakePool": {"id": POOL}}) == [
        VoteDelegation(KEY_ACCOUNT, b"\2"),
        StakeChange("delegation", KEY_ACCOUNT, OTHER_HASH),
        VoteDelegation(KEY_ACCOUNT, b"\2"),
    ]


def test_a_registration_may_also_delegate() -> None:
    assert _changes({"type": "stakeCredentialRegistration", **CREDENTIAL, "stakePool": {"id": POOL}}) == [
        StakeChange("registration", KEY_ACCOUNT),
        StakeChange("delegation", KEY_ACCOUNT, OTHER_HASH),
    ]


def test_pools_have_all_parameters_of_their_certificate() -> None:
    update, retirement = _changes(
        {"type": "stakePoolRegistration", "stakePool": REGISTRATION},
        {"type": "stakePoolRetirement", "stakePool": {"id": POOL, "retirementEpoch": 300}},
    )
    said = PoolParameters(
        vrf_key_hash=b"\xab" * 32,
        pledge=2**64 - 1,
        fixed_cost=340_000_000,
        margin="1/100",
        reward_account=SCRIPT_ACCOUNT,
        owners=[KEY_ACCOUNT],
        relays=[
            Relay(port=3001, ipv4="192.0.2.1", ipv6="2001:db8::1"),
            Relay(hostname="_cardano._tcp.example.org"),
        ],
        metadata_url="https://example.org/\0",
        metadata_hash=b"\xcd" * 32,
    )
    assert update == PoolUpdate(OTHER_HASH, said)
    assert unpack_pool_parameters(pack_pool_parameters(said)) == said
    assert retirement == PoolRetirement(OTHER_HASH, 300)


def test_certificates_of_failed_scripts_change_nothing_and_those_of_sub_transactions_come_first() -> None:
    delegation = {"type": "stakeDelegation", **CREDENTIAL, "stakePool": {"id": POOL}}
    leave = {"type": "stakeCredentialDeregistration", **CREDENTIAL}
    sub = {"id": "11" * 32, "certificates": [delegation]}
    assert [change.kind for change in _changes(leave, subTransactions=[sub]) if isinstance(change, StakeChange)] == [
        "delegation",
        "deregistration",
    ]
    assert _changes(leave, spends="collaterals", collaterals=[], subTransactions=[sub]) == []


def test_representatives_register_update_and_retire() -> None:
    who = {"id": HASH.hex(), "from": "script", "type": "registered"}
    deposit = {"deposit": {"ada": {"lovelace": 500_000_000}}}
    anchor = {"metadata": {"url": "https://example.org/\0", "hash": "ab" * 32}}
    assert _changes(
        {"type": "delegateRepresentativeRegistration", "delegateRepresentative": who, **deposit, **anchor},
        {"type": "delegateRepresentativeUpdate", "delegateRepresentative": who},
        {"type": "delegateRepresentativeRetirement", "delegateRepresentative": who, **deposit},
    ) == [
        RepresentativeChange(
            "registration", b"\1" + HASH, 500_000_000, Anchor("https://example.org/\0", bytes.fromhex("ab" * 32))
        ),
        RepresentativeChange("update", b"\1" + HASH, None, None),
        RepresentativeChange("retirement", b"\1" + HASH, 500_000_000, None),
    ]


def test_a_retirement_of_a_representative_without_a_deposit_is_unreadable() -> None:
    who = {"id": HASH.hex(), "from": "script", "type": "registered"}
    with pytest.raises(frames.Unreadable, match="a delegateRepresentativeRetirement without a deposit"):
        _changes({"type": "delegateRepresentativeRetirement", "delegateRepresentative": who})


def test_other_and_unknown_certificates_change_nothing() -> None:
    assert (
        _changes(
            {"type": "genesisDelegation", "delegate": {"id": HASH.hex()}, "issuer": {"id": HASH.hex()}},
            {"type": "delegateRepresentativeRetirement", "delegateRepresentative": {"id": HASH.hex()}},
            {"type": "neverHeardOf", "of": "this"},
        )
        == []
    )


def test_an_invalid_pool_id_is_reported() -> None:
    with pytest.raises(frames.Unreadable, match="certificates of transaction 0000"):
        _changes({"type": "stakeDelegation", **CREDENTIAL, "stakePool": {"id": "pool1!"}})


def test_epochs_begin_between_blocks_of_different_epochs() -> None:
    def between(before: int | None, first: int) -> list[int]:
        before_point = None if before is None else Point(before, b"")
        return staking.epochs_begun(before_point, Point(first, b""), PREVIEW)

    assert between(None, 500_000) == []
    assert between(0, 86_399) == []
    assert between(86_399, 86_400) == [1]
    assert between(10, 3 * 86_400 + 7) == [1, 2, 3]
    assert staking.epochs_begun(Point(4_492_799, b""), Point(4_492_800, b""), MAINNET) == [208]


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [
        ("0/1", "0"),
        ("1/1", "1"),
        ("1/100", "0.01"),
        ("3/40", "0.075"),
        ("61576236620585531/100000000000000000", "0.61576236620585531"),
        ("1/3", "0.3333333333333333"),
        ("1/18446744073709551615", "5.421010862427522e-20"),
    ],
)
def test_a_margin_is_shown_with_all_its_digits(ratio: str, shown: str) -> None:
    assert bytes(show_ratio(Fraction(ratio))).decode() == shown


def test_relays_of_every_kind_have_a_port_and_one_name() -> None:
    kinds = {
        Relay(3001, ipv4="192.0.2.1", ipv6="::1"): ShownRelay(3001, ipv4="192.0.2.1"),
        Relay(ipv4="192.0.2.1"): ShownRelay(0, ipv4="192.0.2.1"),
        Relay(3001, ipv6="2001:db8::1"): ShownRelay(3001, dns="2001:db8::1"),
        Relay(3001, hostname="example.org"): ShownRelay(3001, dns="example.org"),
        Relay(hostname="_cardano._tcp.example.org"): ShownRelay(0, dns="_cardano._tcp.example.org"),
        Relay(3001): None,
    }
    assert {relay: show_relay(relay) for relay in kinds} == kinds


@pytest.mark.parametrize(
    ("relay", "dns", "dns_srv"),
    [
        (Relay(3001, hostname="example.org"), "example.org", None),
        (Relay(0, hostname="example.org"), "example.org", None),
        (Relay(hostname="_cardano._tcp.example.org"), None, "_cardano._tcp.example.org"),
    ],
)
def test_blockfrost_names_a_host_alike_in_a_pool_and_in_its_certificate(
    relay: Relay, dns: str | None, dns_srv: str | None
) -> None:
    registered = PoolRelay(
        **{name: value for name, value in msgspec.structs.asdict(relay).items() if value is not None}
    )
    assert shown_relay(relay) == shown_relay(registered)
    assert (shown_relay(relay).dns, shown_relay(relay).dns_srv) == (dns, dns_srv)


def test_pools_are_named_in_hex_and_bech32_of_either_case() -> None:
    kind = PoolIdKind()
    for text in (POOL, POOL.upper(), OTHER_HASH.hex(), OTHER_HASH.hex().upper()):
        assert kind.of_text(text) == OTHER_HASH
    wrong = [POOL[:-1], POOL[:-1] + "q", POOL[:5] + POOL[5:].upper(), bech32_encode("stake", OTHER_HASH), "ab" * 27]
    for text in (*wrong, "", "zz" * 28, "\u0660" * 56, bech32_encode("pool", OTHER_HASH[:27])):
        with pytest.raises(ValueError, match=r".*"):
            kind.of_text(text)


def test_unknown_certificates_are_logged_once_by_type() -> None:
    warnings = NodeWarnings()
    with capture_logs() as logs:
        for _ in range(2):
            warnings.look([_block("neverHeardOf", "stakeDelegation", "neverHeardOf"), _block("another")])
    told = [entry["kind"] for entry in logs if entry["event"] == "ogmios.certificate_unknown"]
    assert told == ["neverHeardOf", "another"]


def test_a_missing_flag_of_ogmios_is_logged_once() -> None:
    warnings = NodeWarnings()
    plain = {"metadata": {"labels": {"674": {"json": "text"}}}}
    with capture_logs() as logs:
        for block in (_block(), _block(cbor=None), _block(cbor=None, **plain), _block(cbor=None, **plain)):
            warnings.look([block])
    told = [entry["flag"] for entry in logs if entry["event"] == "ogmios.flag_missing"]
    assert told == ["--include-metadata-cbor (or --metadata-detailed-schema)"], "the first block has its CBOR"


def _block(*kinds: str, cbor: str | None = "00", **more: object) -> PackedBlock:
    tx = {"id": "00" * 32, "spends": "inputs", "certificates": [{"type": kind} for kind in kinds], **more}
    if cbor is not None:
        tx["cbor"] = cbor
    block = {"type": "praos", "era": "conway", "id": "00" * 32, "ancestor": "", "height": 1, "slot": 1}
    block |= {"issuer": {"verificationKey": "00" * 32}, "size": {"bytes": 9}}
    read = msgspec.json.decode(msgspec.json.encode(block | {"transactions": [tx]}), type=frames.Block)
    return packed_block.pack(effects.of_block(read), frames.NodePoint(1, "00" * 32), PREVIEW)
