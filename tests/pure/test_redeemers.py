"""Redeemers and required signers in the bytes of transactions: real ones, and each purpose and encoding."""

from collections import Counter
from hashlib import blake2b
from typing import Any

import cbor2
import msgspec
import pytest

from indexer.blocks.redeemers import of
from indexer.ogmios import frames
from shared import redeemers
from shared.cbor import Malformed
from shared.encoding import bech32_payload
from shared.ledger import script_key_of
from tests.chain.harness import Json
from tests.chain.recordings import FILES

PURPOSES = {"publish": "cert", "withdraw": "reward"}
KEY, SCRIPT, OTHER = b"\x01" * 28, b"\x02" * 28, b"\x00" * 28
UNITS = [10, 20]


@pytest.mark.parametrize("name", [name for name in FILES if name != "conway-defaults"])
def test_they_are_those_that_ogmios_shows(name: str) -> None:
    transactions = [tx for block in FILES[name].blocks() for tx in block.get("transactions", ())]
    if name == "allegra":
        transactions = transactions[:200]
    for tx in transactions:
        found = redeemers.parse(bytes.fromhex(tx["cbor"]))
        assert sorted(map(shown, found.redeemers)) == sorted(map(told, tx.get("redeemers", ()))), tx["id"]
        assert [each.hex() for each in found.required_signers] == sorted(tx.get("requiredExtraSignatories", ()))
        references = [(bytes.fromhex(each["transaction"]["id"]), each["index"]) for each in tx["inputs"]]
        assert all(each.spends in references for each in found.redeemers if each.purpose == "spend")
        assert all(each.script_hash is not None for each in found.redeemers if each.purpose != "spend")


@pytest.mark.parametrize("name", [name for name in FILES if name != "conway-defaults"])
def test_the_index_lists_them_under_their_scripts_as_far_as_ogmios_shows_those(name: str) -> None:
    """With and without CBOR, which only certificates, votes, proposals and guards need."""
    purposes = set[str]()
    for tx in (tx for block in FILES[name].blocks() for tx in block.get("transactions", ())):
        if not tx.get("redeemers"):
            continue
        found = redeemers.parse(bytes.fromhex(tx["cbor"])).redeemers
        purposes |= {each.purpose for each in found}
        references = [(bytes.fromhex(each["transaction"]["id"]), each["index"]) for each in tx["inputs"]]
        for sent, others in ((tx, True), ({name: part for name, part in tx.items() if name != "cbor"}, False)):
            accounts = map(bech32_payload, tx.get("withdrawals", ()))
            decoded = msgspec.json.decode(msgspec.json.encode(sent), type=frames.Transaction)
            scripts, spends = of(decoded, list(accounts))
            assert Counter(references[place] for place in spends) == Counter(
                each.spends for each in found if each.purpose == "spend"
            )
            assert Counter(scripts) == Counter(
                None
                if each.script_hash is None or not (others or each.purpose in ("mint", "reward"))
                else script_key_of(each.script_hash)
                for each in found
                if each.purpose != "spend"
            )
    assert name != "conway" or purposes >= {"spend", "mint", "reward"}


def shown(found: redeemers.Redeemer) -> tuple[Any, ...]:
    return found.purpose, found.index, found.data_hash.hex(), found.memory, found.cpu


def told(redeemer: Json) -> tuple[Any, ...]:
    units, purpose = redeemer["executionUnits"], redeemer["validator"]["purpose"]
    data_hash = blake2b(bytes.fromhex(redeemer["redeemer"]), digest_size=32).hexdigest()
    return PURPOSES.get(purpose, purpose), redeemer["validator"]["index"], data_hash, units["memory"], units["cpu"]


def parsed(body: dict[int, Any], *found: tuple[int, int, Any], as_map: bool = True) -> list[redeemers.Redeemer]:
    """The redeemers (purpose, index, data) of a transaction with that body."""
    listed: Any = {(purpose, index): [data, UNITS] for purpose, index, data in found}
    if not as_map:
        listed = [[purpose, index, data, UNITS] for purpose, index, data in found]
    return redeemers.parse(cbor2.dumps([{0: [], **body}, {5: listed}, True, None])).redeemers


BODIES: list[tuple[int, dict[int, Any], list[bytes | None]]] = [
    (1, {9: {SCRIPT: {b"": 1}, OTHER: {b"": 1}}}, [OTHER, SCRIPT]),
    # Scripts precede keys, whatever their bytes.
    (3, {5: {b"\xe0" + OTHER: 0, b"\xf0" + SCRIPT: 0, b"\xe0" + KEY: 0}}, [SCRIPT, None, None]),
    (
        4,
        {19: {(4, KEY): {}, (2, KEY): {}, (3, SCRIPT): {}, (0, OTHER): {}, (1, SCRIPT): {}}},
        [SCRIPT, None, SCRIPT, None, None],
    ),
    (
        5,
        {20: [[1, b"", [2, {}, SCRIPT], []], [1, b"", [6], []], [1, b"", [0, None, {}, SCRIPT], []]]},
        [SCRIPT, None, SCRIPT],
    ),
    (5, {20: [[1, b"", [2, {}, None], []]]}, [None]),
    (6, {14: [[0, KEY], [1, SCRIPT]]}, [None, SCRIPT]),
]


@pytest.mark.parametrize(("purpose", "body", "expected"), BODIES)
def test_each_purpose_has_its_order(purpose: int, body: dict[int, Any], expected: list[bytes | None]) -> None:
    places = [(purpose, at, at) for at in range(len(expected) + 1)]
    assert [each.script_hash for each in parsed(body, *places)] == [*expected, None]  # the last one points nowhere


def test_the_credential_of_a_certificate_decides_unless_it_needs_no_witness() -> None:
    kinds = [0, 1, 2, 3, 4, *range(5, 19)]
    listed = [[kind, [1, SCRIPT], 0, 0] for kind in kinds] + [[2, [0, KEY], OTHER]]
    found = parsed({4: listed}, *((2, at, 0) for at in range(len(listed))))
    without = {kinds.index(kind) for kind in (0, 3, 4, 5, 6)} | {len(kinds)}
    assert {each.index for each in found if each.script_hash is None} == without


def test_both_forms_of_redeemers_keep_the_bytes_of_their_data() -> None:
    data = bytes.fromhex("9f1801ff")  # 1 in two bytes, in a list of indefinite length
    for form in (b"\xa1\x82\x00\x00\x82" + data + b"\x82\x0a\x14", b"\x81\x84\x00\x00" + data + b"\x82\x0a\x14"):
        whole = b"\x84" + cbor2.dumps({0: [[b"t" * 32, 3]]}) + b"\xa1\x05" + form + b"\xf5\xf6"
        (found,) = redeemers.parse(whole).redeemers
        assert (found.data_hash, found.memory, found.cpu) == (blake2b(data, digest_size=32).digest(), 10, 20)
        assert found.spends == (b"t" * 32, 3)


def test_they_are_sorted_by_index_and_then_by_purpose() -> None:
    for as_map in (True, False):
        found = parsed({}, (1, 1, 0), (0, 1, 0), (3, 0, 0), as_map=as_map)
        assert [(each.index, each.purpose) for each in found] == [(0, "reward"), (1, "spend"), (1, "mint")]


@pytest.mark.parametrize(
    "wrong",
    ["", "80", "81a0", "82a000", "84a0a10500f5f6", "84a0a10581830000f5f6", "84a0a1058184180700d87980820102f5f6"],
)
def test_other_bytes_are_malformed(wrong: str) -> None:
    with pytest.raises(Malformed):
        redeemers.parse(bytes.fromhex(wrong))
