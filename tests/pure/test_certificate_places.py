"""The places of certificates, which Ogmios' lists lose: against the CBOR of recorded and of made transactions."""

from typing import Any

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.blocks import certificate_places
from indexer.ogmios import frames
from tests.chain.recordings import FILES

Json = dict[str, Any]
KEYS = ["aa" * 28, "bb" * 28]
POOL = "pool1pu5jlj4q9w9jlxeu370a3c9myx47md5j5m2str0naunn2q3lkdy"
MOVED: Json = {"action": {"type": "treasuryWithdrawals", "withdrawals": {}, "guardrails": None}}


def _shown(number: int, key: str) -> list[Json]:
    """What Ogmios shows for a certificate of a type, by its `encodeTxCert`."""
    who: Json = {"credential": key, "from": "verificationKey"}
    pool, vote = {"stakePool": {"id": POOL}}, {"delegateRepresentative": {"type": "abstain"}}
    new: Json = {"type": "stakeCredentialRegistration", **who}
    paid = new | {"deposit": {"ada": {"lovelace": 2_000_000}}}
    chosen: Json = {"type": "stakeDelegation", **who}
    match number:
        case 0:
            return [new]
        case 2:
            return [chosen | pool]
        case 4:
            return [{"type": "stakePoolRetirement", "stakePool": {"id": POOL, "retirementEpoch": 9}}]
        case 6:
            return []
        case 7:
            return [paid]
        case 9:
            return [chosen | vote]
        case 11:
            return [paid, chosen | pool]
        case 12:
            return [paid, chosen | vote]
        case _:
            return [paid, chosen | pool | vote]


def _tx(certificates: list[tuple[int, str]], set_tag: bool, cbor: bool) -> frames.Transaction:
    listed = b"".join(cbor2.dumps([number, key]) for number, key in certificates)
    parts = (b"\xd9\x01\x02" if set_tag else b"") + b"\x9f" + listed + b"\xff"
    body = b"\xa2\x00" + cbor2.dumps([[bytes(32), 0]]) + b"\x04" + parts
    sent: Json = {
        "id": "00" * 32,
        "certificates": [each for number, key in certificates for each in _shown(number, key)],
        "proposals": [MOVED] * sum(number == 6 for number, _ in certificates),
    }
    if cbor:
        sent["cbor"] = (b"\x84" + body + bytes.fromhex("a0f5f6")).hex()
    return msgspec.json.decode(msgspec.json.encode(sent), type=frames.Transaction)


def _places(tx: frames.Transaction, era: str) -> list[int | None]:
    """With those that are left out since they are 0, 1, 2 and so on."""
    return certificate_places.locate(tx, era) or [*range(len(tx.certificates))]


def _right(certificates: list[tuple[int, str]]) -> list[int]:
    return [place for place, (number, key) in enumerate(certificates) for _ in _shown(number, key)]


conway = st.lists(st.tuples(st.sampled_from([0, 2, 4, 7, 9, 11, 12, 13]), st.sampled_from(KEYS)), max_size=6)
shelley = st.lists(st.tuples(st.sampled_from([0, 2, 4, 6]), st.sampled_from(KEYS)), max_size=6)


@given(st.one_of(st.tuples(st.just("conway"), conway), st.tuples(st.just("mary"), shelley)), st.booleans())
def test_the_places_are_those_of_the_cbor(made: tuple[str, list[tuple[int, str]]], set_tag: bool) -> None:
    era, certificates = made
    assert _places(_tx(certificates, set_tag, cbor=True), era) == _right(certificates)


@given(st.one_of(st.tuples(st.just("conway"), conway), st.tuples(st.just("mary"), shelley)))
def test_without_cbor_a_place_is_right_or_unknown(made: tuple[str, list[tuple[int, str]]]) -> None:
    era, certificates = made
    places = _places(_tx(certificates, set_tag=True, cbor=False), era)
    right = _right(certificates)
    assert len(places) == len(right)
    assert all(place in (None, expected) for place, expected in zip(places, right, strict=True))
    if not {6, 7, 11, 12, 13} & {number for number, _ in certificates}:
        assert places == right


def test_a_registration_with_its_delegation_is_one_certificate_or_two() -> None:
    one, two = [(11, KEYS[0]), (4, KEYS[0])], [(7, KEYS[0]), (2, KEYS[0]), (4, KEYS[0])]
    assert _tx(one, True, cbor=False).certificates == _tx(two, True, cbor=False).certificates
    assert certificate_places.locate(_tx(one, True, cbor=True), "conway") == [0, 0, 1]
    assert certificate_places.locate(_tx(two, True, cbor=True), "conway") == []
    assert certificate_places.locate(_tx(one, True, cbor=False), "conway") == [0, None, None]


def test_withdrawals_of_governance_are_no_certificates() -> None:
    tx = _tx([(2, KEYS[0]), (6, KEYS[0])], set_tag=False, cbor=False)
    assert certificate_places.locate(tx, "conway") == []
    assert certificate_places.locate(tx, "babbage") == [None]


@pytest.mark.parametrize("name", sorted(FILES))
def test_ogmios_shows_recorded_certificates_as_they_are_counted(name: str) -> None:
    """Types 11 to 13 as two, 6 not at all; and the others once."""
    met = 0
    for block in FILES[name].blocks():
        for sent in block.get("transactions", ()):
            if "cbor" not in sent or not sent.get("certificates"):
                continue
            tx = msgspec.json.decode(msgspec.json.encode(sent), type=frames.Transaction)
            on_chain = certificate_places._on_chain(tx)
            assert on_chain is not None and len(on_chain) == len(tx.certificates)
            assert all(place is not None for place in _places(tx, block["era"]))
            met += len(on_chain)
    assert met or name in ("byron", "conway-defaults")
