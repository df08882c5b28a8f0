"""Transactions over HTTP: pages of an address, and one by its hash."""

from typing import Any

import cbor2
import pytest

from api.chain.pools import show_pool_id
from indexer.blocks.effects import PaidOutput
from shared import address
from shared.network import MAINNET, PREPROD
from shared.packed import Anchor, Certificate, Extra
from tests.api.chains import Chain, Input, Tx, hash_of
from tests.api.client import Client
from tests.api.conftest import IssueKey
from tests.api.payments import (
    ALICE,
    BOB,
    BYRON,
    BYRON_ON_MAINNET,
    KEY_HASH,
    NOBODY,
    ON_MAINNET,
    OTHER_HASH,
    STAKE,
    byron,
    pays,
    raw,
)

POLICY = bytes(28)


async def names(api: Client, key: str, query: str, path: str = "history") -> list[str]:
    """The names of the transactions on one page of ALICE's."""
    reply = await api.get(f"/v1/tx/{path}/{ALICE}?{query}", key)
    assert reply.status == 200, reply.body
    return [NAMES[entry["tx_hash"]] for entry in reply.body["data"]]


# Slots 10, 20, 30, 40 with one, three, two and one transaction of ALICE's.
SLOTS = {10: ("a",), 20: ("b", "c", "d"), 30: ("e", "f"), 40: ("g",)}
NAMES = {hash_of(name).hex(): name for name in "abcdefg"}


@pytest.fixture
async def history(chain: Chain) -> None:
    """The chain of SLOTS, with others' transactions around it."""
    await chain.append(5, pays("x", BOB))
    for slot_no, found in SLOTS.items():
        await chain.append(slot_no, *(pays(name, ALICE) for name in found), pays(f"x{slot_no}", BOB))
    await chain.append(50, pays("y", BOB))


async def test_a_transaction_shows_what_it_spent_and_paid(api: Client, chain: Chain, key: str) -> None:
    spent = PaidOutput(raw(BOB), 7_000_000, {POLICY: {b"": 2, b"coin": 2**63 + 1}})
    tx = Tx(
        name="a",
        fee=200_000,
        size=321,
        inputs=[Input(hash_of("source"), 4, spent), Input(hash_of("unknown"), 70_000, None)],
        outputs=[PaidOutput(raw(ALICE), 45_000_000_000_000_001), PaidOutput(BYRON, 1, {POLICY: {b"coin": 2**53 + 1}})],
    )
    block_hash = await chain.append(10, pays("first", BOB), tx)
    tip_hash = await chain.append(11)

    reply = await api.get(f"/v1/tx/address/{ALICE}", key)

    coin, no_name = f"{POLICY.hex()}.{b'coin'.hex()}", f"{POLICY.hex()}."
    entry = {
        "tx_hash": tx.hash.hex(),
        "block_hash": block_hash,
        "slot_no": 10,
        "block_no": 0,
        "block_time": "2022-10-25T00:00:10Z",
        "fee": 200_000,
        "size": 321,
        "inputs": [
            {
                "tx_hash": hash_of("source").hex(),
                "output_index": 4,
                "address": BOB,
                "value": {"lovelace": 7_000_000, "assets": {no_name: 2, coin: 2**63 + 1}},
            },
            {"tx_hash": hash_of("unknown").hex(), "output_index": 70_000, "address": None, "value": None},
        ],
        "outputs": [
            {"output_index": 0, "address": ALICE, "value": {"lovelace": 45_000_000_000_000_001}},
            {"output_index": 1, "address": address.show(BYRON), "value": {"lovelace": 1, "assets": {coin: 2**53 + 1}}},
        ],
    }
    assert reply.status == 200
    assert reply.body == {
        "success": True,
        "data": [entry],
        "pagination": {"limit": 20, "offset": 0, "total": 1, "hasMore": False},
        "last_updated": {"slot_no": 11, "block_hash": tip_hash, "block_time": "2022-10-25T00:00:11Z"},
    }
    for other in (BOB, address.show(BYRON)):
        assert entry in (await api.get(f"/v1/tx/address/{other}", key)).body["data"]


async def test_the_longest_byron_addresses_are_found(api: Client, chain: Chain, key: str) -> None:
    long = byron({1: bytes(7_600), 2: cbor2.dumps(1)})
    await chain.append(10, Tx(name="a", outputs=[PaidOutput(long, 1)]))
    text = address.show(long)
    assert 10_400 < len(text) < address.MAX_TEXT_LENGTH
    for path in ("history", "address"):
        reply = await api.get(f"/v1/tx/{path}/{text}?limit=7&order=asc", key)
        assert (reply.status, reply.body["pagination"]["total"]) == (200, 1)
    reply = await api.get(f"/v1/tx/history/{'2' * (address.MAX_TEXT_LENGTH + 1)}", key)
    assert (reply.status, reply.body["error"]) == (400, "Invalid address format")


async def test_assets_are_grouped_by_policy_on_request(api: Client, chain: Chain, key: str) -> None:
    assets = {POLICY: {b"": 2, b"coin": 3}, OTHER_HASH: {b"coin": 4}}
    tx = Tx(name="a", outputs=[PaidOutput(raw(ALICE), 1, assets), PaidOutput(raw(ALICE), 2)])
    await chain.append(10, tx)
    for path in (f"address/{ALICE}", f"hash/{tx.hash.hex()}"):
        for flag in ("true", "1"):
            data = (await api.get(f"/v1/tx/{path}?groupByPolicy={flag}", key)).body["data"]
            first, second = (data if isinstance(data, dict) else data[0])["outputs"]
            grouped = {POLICY.hex(): {"": 2, b"coin".hex(): 3}, OTHER_HASH.hex(): {b"coin".hex(): 4}}
            assert first["value"] == {"lovelace": 1, "assets": grouped}
            assert second["value"] == {"lovelace": 2}
        for flag in ("false", "0"):
            data = (await api.get(f"/v1/tx/{path}?groupByPolicy={flag}", key)).body["data"]
            first, _ = (data if isinstance(data, dict) else data[0])["outputs"]
            assert first["value"]["assets"][f"{OTHER_HASH.hex()}.{b'coin'.hex()}"] == 4


async def test_a_collateral_return_keeps_its_index(api: Client, chain: Chain, key: str) -> None:
    await chain.append(10, Tx(name="a", outputs=[PaidOutput(raw(ALICE), 5)], first_index=3, extra=Extra(valid=False)))
    (entry,) = (await api.get(f"/v1/tx/address/{ALICE}", key)).body["data"]
    assert [output["output_index"] for output in entry["outputs"]] == [3]


async def test_unknown_figures_are_null(api: Client, chain: Chain, key: str) -> None:
    await chain.append(10, Tx(name="a", outputs=[PaidOutput(raw(ALICE), 5)], fee=None, size=None))
    (entry,) = (await api.get(f"/v1/tx/address/{ALICE}", key)).body["data"]
    assert entry["fee"] is entry["size"] is None


async def test_a_history_entry_has_the_position_of_the_transaction(api: Client, chain: Chain, key: str) -> None:
    await chain.append(9)
    block_hash = await chain.append(10, pays("a", ALICE))
    reply = await api.get(f"/v1/tx/history/{ALICE}", key)
    assert reply.body["data"] == [
        {
            "tx_hash": hash_of("a").hex(),
            "block_hash": block_hash,
            "slot_no": 10,
            "block_no": 1,
            "block_time": "2022-10-25T00:00:10Z",
        }
    ]
    assert reply.body["pagination"] == {"limit": 100, "offset": 0, "total": 1, "hasMore": False}


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("path", ["history", "address"])
async def test_newest_first_is_the_default_order(api: Client, key: str, path: str) -> None:
    assert await names(api, key, "", path) == list("gfedcba")
    assert await names(api, key, "order=desc", path) == list("gfedcba")
    assert await names(api, key, "order=asc", path) == list("abcdefg")
    assert await names(api, key, "order=asc&limit=2&offset=3", path) == list("de")
    assert await names(api, key, "limit=2&offset=3", path) == list("dc")
    assert await names(api, key, "limit=3&offset=6", path) == list("a")


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("fromSlot=30", "fedcba"),
        ("fromSlot=29", "dcba"),
        ("fromSlot=9", ""),
        ("fromSlot=0", ""),
        ("fromSlot=9007199254740991", "gfedcba"),
        ("fromSlot=140737488355327", "gfedcba"),
        ("fromSlot=20&offset=2", "ba"),
        ("order=asc&fromSlot=20", "bcdefg"),
        ("order=asc&fromSlot=21", "efg"),
        ("order=asc&fromSlot=0", "abcdefg"),
        ("order=asc&fromSlot=41", ""),
        ("order=asc&fromSlot=9007199254740991", ""),
        ("order=asc&fromSlot=20&offset=4", "fg"),
    ],
)
async def test_from_slot_ends_a_list_at_that_slot(api: Client, key: str, query: str, found: str) -> None:
    assert await names(api, key, query) == list(found)
    pagination = (await api.get(f"/v1/tx/history/{ALICE}?{query}", key)).body["pagination"]
    assert pagination["total"] == len(found) + pagination["offset"]
    assert pagination["hasMore"] is False


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(
    ("query", "pagination"),
    [
        ("limit=1", {"limit": 1, "offset": 0, "total": 7, "hasMore": True, "next_cursor": 39}),
        ("limit=2", {"limit": 2, "offset": 0, "total": 7, "hasMore": True}),
        ("limit=3", {"limit": 3, "offset": 0, "total": 7, "hasMore": True, "next_cursor": 29}),
        ("limit=3&offset=3", {"limit": 3, "offset": 3, "total": 7, "hasMore": True, "next_cursor": 19}),
        ("limit=3&offset=4", {"limit": 3, "offset": 4, "total": 7, "hasMore": False}),
        ("limit=1&order=asc", {"limit": 1, "offset": 0, "total": 7, "hasMore": True, "next_cursor": 11}),
        ("limit=4&order=asc&fromSlot=20", {"limit": 4, "offset": 0, "total": 6, "hasMore": True}),
        ("offset=7", {"limit": 100, "offset": 7, "total": 7, "hasMore": False}),
        ("offset=9007199254740991", {"limit": 100, "offset": 2**53 - 1, "total": 7, "hasMore": False}),
    ],
)
async def test_a_page_has_the_cursor_of_the_next_one(
    api: Client, key: str, query: str, pagination: dict[str, Any]
) -> None:
    assert (await api.get(f"/v1/tx/history/{ALICE}?{query}", key)).body["pagination"] == pagination


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("path", ["history", "address"])
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_walking_by_cursor_yields_each_transaction_once(api: Client, key: str, path: str, order: str) -> None:
    for limit in range(1, 9):
        met: list[str] = []
        query: str | None = f"order={order}&limit={limit}"
        while query is not None:
            page = (await api.get(f"/v1/tx/{path}/{ALICE}?{query}", key)).body
            met += [NAMES[entry["tx_hash"]] for entry in page["data"]]
            query = next_query(query, page["pagination"])
            assert len(met) <= len(NAMES)
        assert met == sorted(NAMES.values(), reverse=order == "desc"), f"limit={limit}"


def next_query(query: str, pagination: dict[str, Any]) -> str | None:
    """The query for the next page, by the rule in docs/http-api.md, "Chain data"."""
    asked = dict(part.split("=") for part in query.split("&"))
    if not pagination["hasMore"]:
        return None
    if "next_cursor" in pagination:
        asked |= {"fromSlot": str(pagination["next_cursor"]), "offset": "0"}
    else:
        asked["offset"] = str(pagination["offset"] + pagination["limit"])
    return "&".join(f"{name}={text}" for name, text in asked.items())


@pytest.mark.usefixtures("history")
async def test_an_unknown_address_has_an_empty_list(api: Client, key: str) -> None:
    for path in ("address", "history"):
        for text in (NOBODY, address.show(BYRON)):
            reply = await api.get(f"/v1/tx/{path}/{text}?fromSlot=30&limit=5", key)
            assert reply.status == 200
            assert reply.body["data"] == []
            assert reply.body["pagination"] == {"limit": 5, "offset": 0, "total": 0, "hasMore": False}
            assert reply.body["last_updated"]["slot_no"] == 50


@pytest.mark.usefixtures("history")
async def test_addresses_and_hashes_may_be_upper_case(api: Client, key: str) -> None:
    assert (await api.get(f"/v1/tx/history/{ALICE.upper()}", key)).body["pagination"]["total"] == 7
    reply = await api.get(f"/v1/tx/hash/{hash_of('a').hex().upper()}", key)
    assert reply.body["data"]["tx_hash"] == hash_of("a").hex()


@pytest.mark.usefixtures("history")
async def test_a_path_may_be_percent_encoded(api: Client, key: str) -> None:
    encoded = "".join(f"%{ord(letter):02x}" for letter in ALICE)
    assert (await api.get(f"/v1/tx/history/{encoded}", key)).body["pagination"]["total"] == 7


@pytest.mark.usefixtures("history")
async def test_a_key_reads_only_its_network(api: Client, issue_key: IssueKey) -> None:
    on_preprod = await issue_key(network_id=PREPROD.network_id)
    for path in (f"history/{ALICE}", f"hash/{hash_of('a').hex()}"):
        reply = await api.get(f"/v1/tx/{path}", on_preprod)
        assert (reply.status, reply.error) == (503, "Network not available")


async def test_a_network_whose_histories_are_not_built_is_not_available(api: Client, chain: Chain, key: str) -> None:
    await chain.append(10, pays("a", ALICE))
    await chain.set_phase("bulk")
    for path in (f"address/{ALICE}", f"history/{ALICE}", f"hash/{hash_of('a').hex()}"):
        reply = await api.get(f"/v1/tx/{path}", key)
        assert (reply.status, reply.error) == (503, "Network not available")
    await chain.set_phase("live")
    assert (await api.get(f"/v1/tx/history/{ALICE}", key)).status == 200


@pytest.mark.usefixtures("history")
async def test_an_address_of_another_network_is_refused(api: Client, key: str, issue_key: IssueKey) -> None:
    on_mainnet = await issue_key(network_id=MAINNET.network_id)
    for text, foreign_key in (
        (ON_MAINNET, key),
        (address.show(BYRON_ON_MAINNET), key),
        (ALICE, on_mainnet),
        (address.show(BYRON), on_mainnet),
    ):
        for path in ("address", "history"):
            reply = await api.get(f"/v1/tx/{path}/{text}", foreign_key)
            assert (reply.status, reply.error) == (400, "Address does not belong to this network")


NO_PAYMENT_ADDRESSES = (
    STAKE,
    "addr_test1",
    "addr_test1qqqq",
    ALICE[:-1],
    ALICE[:-1] + ("q" if ALICE[-1] != "q" else "p"),
    ALICE[:-3] + ALICE[-3:].upper(),
    ALICE + "%20",
    ALICE + "%00",
    ALICE + "%ED%A0%80",
    "%FF",
    ALICE.replace("1", "%D9%A1", 1),
    address.show(BYRON)[:-1],
    address.show(BYRON)[:-1] + "2",
    "pool1pu5jlj4q9w9jlxeu370a3c9myx47md5j5m2str0naunn2q3lkdy",
    "0x60",
    "60" + KEY_HASH.hex(),
    "'%20OR%201=1--",
    "null",
    "1",
    "addr" * 400,
)


async def test_other_kinds_of_addresses_are_refused(api: Client, key: str) -> None:
    for path in ("address", "history"):
        for text in NO_PAYMENT_ADDRESSES:
            reply = await api.get(f"/v1/tx/{path}/{text}", key)
            assert (reply.status, reply.error) == (400, "Invalid address format"), text


WRONG_NUMBERS = (
    *("", "%20", "abc", "-1", "1.0", "1e1", "+1", "%2B1", "0x1", "%D9%A5", "%EF%BC%91", "1_0", "null", "true", "1%00"),
    *("9" * 30, str(2**63), str(2**64)),
)
WRONG_PARAMETERS = (
    *(("address", "limit", text, "must be between 1 and 100") for text in (*WRONG_NUMBERS, "0", "101")),
    *(("history", "limit", text, "must be between 1 and 500") for text in (*WRONG_NUMBERS, "0", "501")),
    *(
        (path, name, text, "must be between 0 and 9007199254740991")
        for path in ("address", "history")
        for name in ("offset", "fromSlot")
        for text in (*WRONG_NUMBERS, str(2**53))
    ),
    *(
        (path, "order", text, "must be asc or desc")
        for path in ("address", "history")
        for text in ("", "ASC", "Desc", "newest", "asc%20", "asc,desc", "1", "asc;DROP")
    ),
    *(
        ("address", "groupByPolicy", text, "must be true, false, 1 or 0")
        for text in ("", "yes", "TRUE", "True", "2", "null", "on")
    ),
    ("address", "limit", "5&limit=5", "must be given once"),
    ("history", "order", "asc&order=desc", "must be given once"),
    ("history", "fromSlot", "1&offset=0&fromSlot=2", "must be given once"),
    ("address", "groupByPolicy", "1&groupByPolicy=0", "must be given once"),
)


async def test_a_wrong_parameter_is_named(api: Client, key: str) -> None:
    for path, name, text, expected in WRONG_PARAMETERS:
        reply = await api.get(f"/v1/tx/{path}/{ALICE}?{name}={text}", key)
        assert (reply.status, reply.error) == (400, f"{name} {expected}"), text


@pytest.mark.usefixtures("history")
async def test_unknown_parameters_are_ignored(api: Client, key: str) -> None:
    for query in ("page=2", "Limit=0", "from_slot=x", "groupByPolicy=7", "unknown=1&unknown=2", "&&", "=", "%00=%00"):
        assert (await api.get(f"/v1/tx/history/{ALICE}?{query}", key)).status == 200, query


async def test_one_transaction_by_its_hash(api: Client, chain: Chain, key: str) -> None:
    reward = b"\xe0" + KEY_HASH
    extra = Extra(
        metadata_cbor={721: b"\xa1\x01\x02"},
        metadata_json={2**64 - 1: b'{"a": [1, 123456789012345678901234567890]}'},
        withdrawals={reward: 12},
        invalid_before=3,
        invalid_hereafter=2**64 - 1,
    )
    mint = {POLICY: {b"coin": -5, b"": 2**63}}
    tx = Tx(name="a", outputs=[PaidOutput(raw(ALICE), 5)], mint=mint, extra=extra)
    await chain.append(10, tx)
    tip_hash = await chain.append(20)
    listed = (await api.get(f"/v1/tx/address/{ALICE}", key)).body["data"][0]
    reply = await api.get(f"/v1/tx/hash/{tx.hash.hex()}", key)
    assert reply.status == 200
    assert reply.body == {
        "success": True,
        "data": listed
        | {
            "valid": True,
            "redeemer_count": 0,
            "treasury_donation": 0,
            "metadata": {
                "721": {"cbor": "a10102", "json": {"map": [{"k": {"int": 1}, "v": {"int": 2}}]}},
                str(2**64 - 1): {
                    "json": {
                        "map": [
                            {
                                "k": {"string": "a"},
                                "v": {"list": [{"int": 1}, {"int": 123456789012345678901234567890}]},
                            }
                        ]
                    }
                },
            },
            "mint": {f"{POLICY.hex()}.{b'coin'.hex()}": -5, f"{POLICY.hex()}.": 2**63},
            "withdrawals": [{"stake_address": STAKE, "lovelace": 12}],
            "certificates": [],
            "invalid_before": 3,
            "invalid_hereafter": 2**64 - 1,
        },
        "last_updated": {"slot_no": 20, "block_hash": tip_hash, "block_time": "2022-10-25T00:00:20Z"},
    }


async def test_metadata_that_is_nested_too_deeply_is_only_cbor(api: Client, chain: Chain, key: str) -> None:
    """JSON of 310 maps, each in a list, is deeper than the encoder writes."""
    deep = b"\xa1\x01" * 310 + b"\x01"
    tx = Tx(name="a", extra=Extra(metadata_cbor={1: deep}, metadata_json={2: b'{"a":' * 400 + b"1" + b"}" * 400}))
    await chain.append(10, tx)
    reply = await api.get(f"/v1/tx/hash/{tx.hash.hex()}", key)
    assert (reply.status, reply.body["data"]["metadata"]) == (200, {"1": {"cbor": deep.hex()}, "2": {}})


async def test_certificates_are_shown_with_the_fields_of_their_type(api: Client, chain: Chain, key: str) -> None:
    stake, script, pool_id = b"\0" + KEY_HASH, b"\1" + KEY_HASH, bytes(28)
    certificates = [
        Certificate(0, stake=stake, deposit=2_000_000),
        Certificate(2, stake=stake, pool_id=pool_id, representative=b"\2"),
        Certificate(6, cold=stake, hot=script),
        Certificate(9, representative=script, anchor=Anchor("https://example.org", b"\xab")),
        Certificate("someLaterType", stake=stake),
    ]
    tx = Tx(name="a", outputs=[PaidOutput(raw(ALICE), 5)], extra=Extra(certificates=certificates))
    await chain.append(10, tx)
    credential = {"id": KEY_HASH.hex(), "origin": "verificationKey"}
    assert (await api.get(f"/v1/tx/hash/{tx.hash.hex()}", key)).body["data"]["certificates"] == [
        {"type": "stakeCredentialRegistration", "stake_address": STAKE, "deposit": 2_000_000},
        {
            "type": "stakeDelegation",
            "stake_address": STAKE,
            "pool_id": show_pool_id(pool_id),
            "delegate_representative": {"type": "abstain"},
        },
        {
            "type": "constitutionalCommitteeDelegation",
            "committee_member": credential,
            "committee_delegate": credential | {"origin": "script"},
        },
        {
            "type": "delegateRepresentativeUpdate",
            "delegate_representative": {"type": "registered", **credential, "origin": "script"},
            "anchor": {"url": "https://example.org", "hash": "ab"},
        },
        {"type": "someLaterType", "stake_address": STAKE},
    ]


@pytest.mark.usefixtures("history")
async def test_an_unknown_hash_is_not_found(api: Client, key: str) -> None:
    reply = await api.get(f"/v1/tx/hash/{bytes(32).hex()}", key)
    assert (reply.status, reply.error) == (404, "Transaction not found")


async def test_a_malformed_transaction_hash_is_refused(api: Client, key: str) -> None:
    wrong = (
        "a",
        "zz",
        "0" * 63,
        "0" * 65,
        "g" + "0" * 63,
        "0x" + "0" * 62,
        "%00" * 64,
        "%D9%A0" * 64,
        "0" * 62 + "%20%20",
    )
    for text in wrong:
        reply = await api.get(f"/v1/tx/hash/{text}", key)
        assert (reply.status, reply.error) == (400, "Invalid transaction hash format"), text
