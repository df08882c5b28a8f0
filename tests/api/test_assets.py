"""Assets over HTTP: a single one with its metadata, the assets of a policy, holders, transactions and mints."""

import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import cbor2
import pytest

from shared import database
from shared.ledger import fingerprint, fingerprint_digest, fingerprint_number
from shared.network import PREVIEW
from tests.api.client import Client
from tests.api.conftest import IssueKey
from tests.chain.written import ADA, POLICY, Json, Written, hash_of, mints, pays, person, tx

OTHER_POLICY = "ab" * 28
COIN, PIECE = b"Coin".hex(), b"Piece".hex()
REFERENCE, NFT, FT, RFT = "000643b0", "000de140", "0014df10", "001bc280"
ALICE, BOB, CAROL = person("alice"), person("bob", staked=True), person("carol")
NOT_AN_ASSET = (
    "Invalid asset identifier format. Expected: {policy_id}.{asset_name} where policy_id is 56 hex characters"
)
NO_METADATA = dict.fromkeys(("name", "ticker", "description", "decimals", "image", "url", "logo"))


@pytest.fixture
async def chain(database_url: str) -> AsyncIterator[Written]:
    """An empty chain of network preview, filled by the indexer's own steps."""
    connection = await database.connect(database_url, PREVIEW)
    yield Written(connection)
    await connection.close()


async def data(api: Client, key: str, path: str) -> Any:
    reply = await api.get(path, key)
    assert reply.status == 200, reply.body
    return reply.body["data"]


async def described(api: Client, key: str, name: str = PIECE, source: str = "auto") -> tuple[Any, Any]:
    """The metadata of an asset without nulls, and their source."""
    told = await data(api, key, f"/v1/assets/{POLICY}.{name}?metadata_source={source}")
    if told["metadata"] is None:
        return None, told["metadata_source"]
    assert list(told["metadata"]) == list(NO_METADATA)
    return {field: value for field, value in told["metadata"].items() if value is not None}, told["metadata_source"]


def label_721(entry: Any, name: str = PIECE) -> Json:
    """Metadata that describes one asset, as in a transaction."""
    label = {bytes.fromhex(POLICY): {bytes.fromhex(name): entry}, "version": 2}
    return {"metadata": {"hash": "00" * 32, "labels": {"721": {"cbor": cbor2.dumps(label).hex()}}}}


def datum(**entry: Any) -> bytes:
    """CIP-68 metadata."""
    fields = {name.encode(): value.encode() if isinstance(value, str) else value for name, value in entry.items()}
    return cbor2.dumps(cbor2.CBORTag(121, [fields, 1]))


def datum_hash(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=32).hexdigest()


async def test_an_asset_is_shown_with_all_fields(api: Client, chain: Written, key: str) -> None:
    await chain.append(10, tx("other", pays(ALICE, (COIN, 1), policy=OTHER_POLICY)))
    await chain.append(20, tx("a", pays(ALICE, (COIN, 70)), mint=mints((COIN, 70))))
    await chain.append(30, tx("b", pays(ALICE, (COIN, 30)), mint=mints((COIN, 30))))
    await chain.append(40, tx("c", pays(ALICE, (COIN, 25)), spends=(("b", 0),), mint=mints((COIN, -5))))

    reply = await api.get(f"/v1/assets/{POLICY}.{COIN}", key)

    assert reply.body == {
        "success": True,
        "data": {
            "policy_id": POLICY,
            "asset_name": COIN,
            "asset_name_ascii": "Coin",
            "fingerprint": fingerprint(bytes.fromhex(POLICY), b"Coin"),
            "total_supply": "95",
            "mint_count": 2,
            "burn_count": 1,
            "first_mint_tx": hash_of("a"),
            "first_mint_slot": 20,
            "first_mint_time": "2022-10-25T00:00:20Z",
            "metadata": None,
            "metadata_source": None,
        },
    }


@pytest.mark.parametrize(
    ("name", "shown"), [("", ""), ("ff00", None), ("00", "\0"), ("c3a9", "é"), ("20" * 32, " " * 32)]
)
async def test_names_of_all_kinds(api: Client, chain: Written, key: str, name: str, shown: str | None) -> None:
    await chain.append(10, tx("a", pays(ALICE, (name, 1)), mint=mints((name, 1))))
    told = await data(api, key, f"/v1/assets/{POLICY}.{name}")
    assert (told["asset_name"], told["asset_name_ascii"]) == (name, shown)
    assert (await data(api, key, f"/v1/assets/policy/{POLICY}"))[0]["asset_name_ascii"] == shown


async def test_hex_in_upper_case_is_the_same(api: Client, chain: Written, key: str) -> None:
    await chain.append(10, tx("a", pays(ALICE, ("c3a9", 1)), mint=mints(("c3a9", 1))))
    upper = await api.get(f"/v1/assets/{POLICY.upper()}.C3A9", key)
    assert upper.body == (await api.get(f"/v1/assets/{POLICY}.c3a9", key)).body
    assert len(await data(api, key, f"/v1/assets/policy/{POLICY.upper()}")) == 1


async def test_an_asset_from_before_the_first_block_counts_from_there_on(api: Client, chain: Written, key: str) -> None:
    await chain.append(10, tx("a", pays(ALICE, (COIN, 7)), spends=(("unknown", 0),)))
    told = await data(api, key, f"/v1/assets/{POLICY}.{COIN}")
    assert [told[field] for field in ("total_supply", "mint_count", "first_mint_tx")] == ["0", 0, None]
    assert [told[field] for field in ("first_mint_slot", "first_mint_time")] == [None, None]
    assert [holder["quantity"] for holder in await data(api, key, f"/v1/assets/{POLICY}.{COIN}/holders")] == ["7"]
    await chain.append(20, tx("b", spends=(("a", 0),), mint=mints((COIN, -7))))
    assert (await data(api, key, f"/v1/assets/{POLICY}.{COIN}"))["total_supply"] == "-7"


async def test_sums_beyond_64_bits_are_exact(api: Client, chain: Written, key: str) -> None:
    most = 2**63 - 1
    for number in range(3):
        await chain.append(10 + number, tx(f"t{number}", pays(ALICE, (COIN, most)), mint=mints((COIN, most))))
    merged = tx(
        "all", pays(BOB, (COIN, 2**64 - 1)), pays(BOB, (COIN, 2**64 - 1)), spends=tuple((f"t{n}", 0) for n in range(3))
    )
    path = f"/v1/assets/{POLICY}.{COIN}"
    assert (await data(api, key, path))["total_supply"] == str(3 * most)
    assert (await data(api, key, f"{path}/holders"))[0]["quantity"] == str(3 * most)
    assert (await data(api, key, f"/v1/assets/policy/{POLICY}"))[0]["total_supply"] == str(3 * most)
    assert (await data(api, key, f"/v1/assets/policy/{POLICY}/holders"))[0]["quantity"] == str(3 * most)
    await chain.append(20, merged)
    assert (await data(api, key, f"{path}/transactions"))[0]["quantity"] == str(2 * (2**64 - 1))
    assert (await data(api, key, f"{path}/holders"))[0]["quantity"] == str(2 * (2**64 - 1))
    assert [mint["quantity"] for mint in await data(api, key, f"{path}/mints")] == [str(most)] * 3


# Metadata


async def test_the_latest_mint_that_names_the_asset_describes_it(api: Client, chain: Written, key: str) -> None:
    minted = mints((PIECE, 1))
    await chain.append(10, tx("a", pays(ALICE, (PIECE, 1)), mint=minted, **label_721({"name": "first"})))
    assert await described(api, key) == ({"name": "first"}, "cip25")
    await chain.append(20, tx("b", pays(ALICE, (PIECE, 1)), mint=minted, **label_721({"name": "second"})))
    await chain.append(30, tx("c", pays(ALICE, (PIECE, 1)), mint=minted, **label_721({"name": "other"}, COIN)))
    await chain.append(40, tx("d", pays(ALICE, (PIECE, 1)), mint=minted))
    burned = tx("e", spends=(("a", 0),), mint=mints((PIECE, -1)), **label_721({"name": "burned"}))
    await chain.append(50, burned)
    await chain.append(60, tx("f", pays(BOB), **label_721({"name": "without a mint"})))
    assert await described(api, key) == ({"name": "second"}, "cip25")
    await chain.back_to(10)
    assert await described(api, key) == ({"name": "first"}, "cip25")


async def test_failed_scripts_describe_nothing(api: Client, chain: Written, key: str) -> None:
    await chain.append(10, tx("a", pays(ALICE, (PIECE, 1)), mint=mints((PIECE, 1))))
    failed = tx(
        "b",
        pays(ALICE, (PIECE, 1)),
        mint=mints((PIECE, 1)),
        **label_721({"name": "failed"}),
    ) | {"spends": "collaterals", "collaterals": [], "totalCollateral": {"ada": {"lovelace": 5 * ADA}}}
    await chain.append(20, failed)
    assert await described(api, key) == (None, None)


@pytest.mark.parametrize("label", [NFT, FT, RFT])
async def test_the_datum_beside_the_reference_token_describes_the_asset(
    api: Client, chain: Written, key: str, label: str
) -> None:
    body = datum(name="Pair", image="ipfs://Qm", decimals=6)
    reference = pays(CAROL, (REFERENCE + PIECE, 1), datum=body.hex())
    minted = mints((REFERENCE + PIECE, 1), (label + PIECE, 1))
    await chain.append(10, tx("a", pays(ALICE, (label + PIECE, 1)), reference, mint=minted))
    expected = {"name": "Pair", "image": "ipfs://Qm", "decimals": 6}
    assert await described(api, key, label + PIECE) == (expected, "cip68")
    assert await described(api, key, REFERENCE + PIECE) == (None, None)


@pytest.mark.parametrize("seen", ["before", "with it", "after", "in failed scripts"])
async def test_a_datum_by_hash_is_found_in_any_witness(api: Client, chain: Written, key: str, seen: str) -> None:
    body = datum(name="Pair")
    witnessed: Json = {"datums": {datum_hash(body): body.hex(), "11" * 32: "d8799f01ff"}}
    mint = tx(
        "mint",
        pays(ALICE, (NFT + PIECE, 1)),
        pays(CAROL, (REFERENCE + PIECE, 1), datumHash=datum_hash(body)),
        mint=mints((REFERENCE + PIECE, 1), (NFT + PIECE, 1)),
    )
    other = tx("other", pays(BOB), **witnessed)
    if seen == "in failed scripts":
        other |= {"spends": "collaterals", "collaterals": [], "totalCollateral": {"ada": {"lovelace": ADA}}}
    if seen == "before":
        await chain.append(10, other)
    await chain.append(20, mint | witnessed if seen == "with it" else mint)
    if seen in ("after", "in failed scripts"):
        assert await described(api, key, NFT + PIECE) == (None, None)
        await chain.append(30, other)
    assert await described(api, key, NFT + PIECE) == ({"name": "Pair", "decimals": 0}, "cip68")
    if seen == "after":
        await chain.back_to(20)
        assert await described(api, key, NFT + PIECE) == (None, None)


async def test_a_datum_seen_twice_outlives_the_rollback_of_the_second(api: Client, chain: Written, key: str) -> None:
    body = datum(name="Pair")
    witnessed: Json = {"datums": {datum_hash(body): body.hex()}}
    token = pays(CAROL, (REFERENCE + PIECE, 1), (NFT + PIECE, 1), datumHash=datum_hash(body))
    await chain.append(10, tx("a", token, mint=mints((REFERENCE + PIECE, 1), (NFT + PIECE, 1)), **witnessed))
    await chain.append(20, tx("b", pays(BOB), **witnessed))
    await chain.back_to(10)
    assert await described(api, key, NFT + PIECE) == ({"name": "Pair", "decimals": 0}, "cip68")


async def test_the_current_output_of_the_reference_token_describes_the_asset(
    api: Client, chain: Written, key: str
) -> None:
    reference = REFERENCE + PIECE
    first, second = datum(name="first").hex(), datum(name="second").hex()
    minted = tx(
        "a", pays(CAROL, (reference, 1), (NFT + PIECE, 1), datum=first), mint=mints((reference, 1), (NFT + PIECE, 1))
    )
    await chain.append(10, minted | label_721({"name": "fallback"}, NFT + PIECE))
    held = (NFT + PIECE, 1)
    await chain.append(20, tx("b", pays(CAROL, (reference, 1), held, datum=second), spends=(("a", 0),)))
    assert await described(api, key, NFT + PIECE) == ({"name": "second", "decimals": 0}, "cip68")
    await chain.append(30, tx("c", pays(CAROL, (reference, 1), held), spends=(("b", 0),)))
    assert await described(api, key, NFT + PIECE) == ({"name": "fallback"}, "cip25")
    await chain.append(40, tx("d", pays(CAROL, held), spends=(("c", 0),), mint=mints((reference, -1))))
    assert await described(api, key, NFT + PIECE) == ({"name": "fallback"}, "cip25")
    await chain.back_to(20)
    assert await described(api, key, NFT + PIECE) == ({"name": "second", "decimals": 0}, "cip68")
    await chain.back_to(10)
    assert await described(api, key, NFT + PIECE) == ({"name": "first", "decimals": 0}, "cip68")


async def test_two_reference_outputs_in_one_block(api: Client, chain: Written, key: str) -> None:
    reference, held = (REFERENCE + PIECE, 1), (NFT + PIECE, 1)
    first = tx("a", pays(CAROL, reference, held, datum=datum(name="first").hex()), mint=mints(reference, held))
    second = tx("b", pays(CAROL, reference, held, datum=datum(name="second").hex()), spends=(("a", 0),))
    await chain.append(10, first, second)
    assert await described(api, key, NFT + PIECE) == ({"name": "second", "decimals": 0}, "cip68")


async def test_the_collateral_return_of_failed_scripts_holds_the_reference_token(
    api: Client, chain: Written, key: str
) -> None:
    reference, held = (REFERENCE + PIECE, 1), (NFT + PIECE, 1)
    await chain.append(
        10, tx("a", pays(CAROL, reference, held, datum=datum(name="first").hex()), mint=mints(reference, held))
    )
    change = pays(CAROL, reference, held, datum=datum(name="returned").hex())
    failed = tx("b", pays(BOB, reference, held, datum=datum(name="declared").hex()), pays(BOB)) | {
        "spends": "collaterals",
        "collaterals": [{"transaction": {"id": hash_of("a")}, "index": 0}],
        "collateralReturn": change,
    }
    await chain.append(20, failed)
    assert await described(api, key, NFT + PIECE) == ({"name": "returned", "decimals": 0}, "cip68")
    await chain.append(30, tx("c", pays(BOB, held), spends=(("b", 2),), mint=mints((REFERENCE + PIECE, -1))))
    assert await described(api, key, NFT + PIECE) == (None, None)


async def test_a_sub_transaction_describes_as_well(api: Client, chain: Written, key: str) -> None:
    reference, held = (REFERENCE + PIECE, 1), (NFT + PIECE, 1)
    sub = tx("sub", pays(CAROL, reference, held, datum=datum(name="below").hex()), mint=mints(reference, held))
    await chain.append(10, tx("host", pays(BOB), subTransactions=[sub]))
    assert await described(api, key, NFT + PIECE) == ({"name": "below", "decimals": 0}, "cip68")


async def test_a_label_needs_its_checksum(api: Client, chain: Written, key: str) -> None:
    reference, held = (REFERENCE + PIECE, 1), ("000de141" + PIECE, 1)
    body = datum(name="Pair").hex()
    await chain.append(10, tx("a", pays(CAROL, reference, held, datum=body), mint=mints(reference, held)))
    assert await described(api, key, "000de141" + PIECE) == (None, None)


async def test_a_forced_source_is_the_only_source(api: Client, chain: Written, key: str) -> None:
    reference, held = (REFERENCE + PIECE, 1), (NFT + PIECE, 1)
    body = datum(name="on datum").hex()
    minted = tx("a", pays(CAROL, reference, held, datum=body), mint=mints(reference, held))
    await chain.append(10, minted | label_721({"name": "on label"}, NFT + PIECE))
    assert await described(api, key, NFT + PIECE, "cip68") == ({"name": "on datum", "decimals": 0}, "cip68")
    assert await described(api, key, NFT + PIECE, "cip25") == ({"name": "on label"}, "cip25")
    assert await described(api, key, NFT + PIECE, "registry") == (None, None)
    reply = await api.get(f"/v1/assets/{POLICY}.{PIECE}?metadata_source=cip26", key)
    assert (reply.status, reply.error) == (400, "metadata_source must be auto, cip68, cip25 or registry")


async def test_nul_in_metadata_loses_nothing(api: Client, chain: Written, key: str) -> None:
    entry = {"name": "nul \0 inside", "description": ["Größe", " 2"]}
    await chain.append(10, tx("a", pays(ALICE, (PIECE, 1)), mint=mints((PIECE, 1)), **label_721(entry)))
    assert await described(api, key) == ({"name": "nul \0 inside", "description": "Größe 2"}, "cip25")


async def test_lone_surrogates_in_metadata_lose_no_block(api: Client, chain: Written, key: str) -> None:
    label = {POLICY: {"Piece": {"name": "a\ud800b"}}}
    metadata: Json = {"metadata": {"hash": "00" * 32, "labels": {"721": {"json": label}}}}
    transaction = tx("a", pays(ALICE, (PIECE, 1)), mint=mints((PIECE, 1)), **metadata)
    await chain.append(10, transaction)
    assert await described(api, key) == ({"name": "a?b"}, "cip25")


# Policies


async def test_the_assets_of_a_policy_by_supply(api: Client, chain: Written, key: str) -> None:
    minted = [("aa", 5), ("bb", 9), ("cc", 5), ("dd", 1)]
    await chain.append(10, tx("a", pays(ALICE, *minted), mint=mints(*minted)))
    await chain.append(20, tx("b", pays(ALICE, *minted[:3]), spends=(("a", 0),), mint=mints(("dd", -1))))
    path = f"/v1/assets/policy/{POLICY}"
    listed = await data(api, key, path)
    assert [(entry["asset_name"], entry["total_supply"]) for entry in listed] == [
        ("bb", "9"),
        ("aa", "5"),
        ("cc", "5"),
        ("dd", "0"),
    ]
    assert listed[3] == {
        "asset_name": "dd",
        "asset_name_ascii": None,
        "fingerprint": fingerprint(bytes.fromhex(POLICY), b"\xdd"),
        "total_supply": "0",
        "mint_count": 1,
        "burn_count": 1,
    }
    assert await data(api, key, f"{path}?order=asc") == listed[::-1]
    for order, expected in (("desc", listed), ("asc", listed[::-1])):
        reply = await api.get(f"{path}?order={order}&limit=3&offset=1", key)
        assert reply.body["data"] == expected[1:4]
        assert reply.body["pagination"] == {"limit": 3, "offset": 1, "total": 4, "hasMore": False}
    reply = await api.get(f"{path}?limit=1", key)
    assert reply.body["pagination"] == {"limit": 1, "offset": 0, "total": 4, "hasMore": True}
    reply = await api.get(f"{path}?offset=4", key)
    assert (reply.body["data"], reply.body["pagination"]["total"]) == ([], 4)
    assert list(reply.body) == ["success", "data", "pagination", "last_updated"]
    assert reply.body["last_updated"]["slot_no"] == 20


async def test_a_rollback_removes_assets_from_their_policy(api: Client, chain: Written, key: str) -> None:
    await chain.append(10, tx("a", pays(ALICE, ("aa", 1)), mint=mints(("aa", 1))))
    await chain.append(20, tx("b", pays(ALICE, ("bb", 1)), mint=mints(("bb", 1))))
    await chain.back_to(10)
    reply = await api.get(f"/v1/assets/policy/{POLICY}", key)
    assert ([entry["asset_name"] for entry in reply.body["data"]], reply.body["pagination"]["total"]) == (["aa"], 1)
    assert (await api.get(f"/v1/assets/{POLICY}.bb", key)).error == "Asset not found"
    await chain.append(30, tx("c", pays(ALICE, ("bb", 1)), mint=mints(("bb", 1))))
    assert (await api.get(f"/v1/assets/policy/{POLICY}", key)).body["pagination"]["total"] == 2


async def test_the_holders_of_a_policy_hold_all_its_assets(api: Client, chain: Written, key: str) -> None:
    outputs = (pays(ALICE, ("aa", 2), ("bb", 3)), pays(BOB, ("bb", 4)), pays(ALICE, ("cc", 9), policy=OTHER_POLICY))
    await chain.append(10, tx("a", *outputs, mint=mints(("aa", 2), ("bb", 7)) | mints(("cc", 9), policy=OTHER_POLICY)))
    path = f"/v1/assets/policy/{POLICY}/holders"
    reply = await api.get(path, key)
    stake_address = reply.body["data"][1].pop("stake_address")
    assert stake_address.startswith("stake_test1")
    assert reply.body["data"] == [
        {"address": ALICE, "stake_address": None, "quantity": "5"},
        {"address": BOB, "quantity": "4"},
    ]
    assert reply.body["pagination"] == {"limit": 100, "offset": 0, "hasMore": False}
    assert [holder["quantity"] for holder in await data(api, key, f"{path}?order=asc")] == ["4", "5"]


async def test_an_unknown_policy_has_empty_lists(api: Client, chain: Written, key: str) -> None:
    await chain.append(10)
    for path, pagination in (
        (f"/v1/assets/policy/{POLICY}", {"limit": 100, "offset": 0, "total": 0, "hasMore": False}),
        (f"/v1/assets/policy/{POLICY}/holders", {"limit": 100, "offset": 0, "hasMore": False}),
    ):
        reply = await api.get(path, key)
        assert (reply.status, reply.body["data"], reply.body["pagination"]) == (200, [], pagination)


# Lists of an asset


async def test_holders_are_listed_by_quantity_in_either_order(api: Client, chain: Written, key: str) -> None:
    people = {person(f"p{number}"): number % 4 + 1 for number in range(12)}
    outputs = [pays(address, (COIN, quantity)) for address, quantity in people.items()]
    await chain.append(10, tx("a", *outputs, mint=mints((COIN, sum(people.values())))))
    path = f"/v1/assets/{POLICY}.{COIN}/holders"
    greatest_first = await data(api, key, path)
    assert {holder["address"]: int(holder["quantity"]) for holder in greatest_first} == people
    assert [holder["quantity"] for holder in greatest_first] == sorted(map(str, people.values()), reverse=True)
    assert await data(api, key, f"{path}?order=asc") == greatest_first[::-1]
    for order, expected in (("desc", greatest_first), ("asc", greatest_first[::-1])):
        for offset in range(13):
            reply = await api.get(f"{path}?order={order}&limit=5&offset={offset}", key)
            assert reply.body["data"] == expected[offset : offset + 5]
            assert reply.body["pagination"] == {"limit": 5, "offset": offset, "hasMore": offset + 5 < 12}


async def test_transactions_with_the_asset_in_an_output(api: Client, chain: Written, key: str) -> None:
    minted = tx("a", pays(ALICE, (COIN, 5)), pays(BOB, (COIN, 6)), mint=mints((COIN, 11)))
    first = await chain.append(10, minted)
    await chain.append(20, tx("b", pays(BOB), pays(BOB)))
    third = await chain.append(30, tx("c", pays(BOB, (COIN, 5)), spends=(("a", 0),)))
    await chain.append(40, tx("d", pays(BOB), spends=(("c", 0),), mint=mints((COIN, -5))))
    path = f"/v1/assets/{POLICY}.{COIN}/transactions"
    newest_first = [
        {
            "tx_hash": hash_of("c"),
            "block_hash": third,
            "block_no": 3,
            "slot_no": 30,
            "block_time": "2022-10-25T00:00:30Z",
            "quantity": "5",
        },
        {
            "tx_hash": hash_of("a"),
            "block_hash": first,
            "block_no": 1,
            "slot_no": 10,
            "block_time": "2022-10-25T00:00:10Z",
            "quantity": "11",
        },
    ]
    assert await data(api, key, path) == newest_first
    assert await data(api, key, f"{path}?order=asc") == newest_first[::-1]
    reply = await api.get(f"{path}?limit=1", key)
    assert reply.body["data"] == newest_first[:1]
    assert reply.body["pagination"] == {"limit": 1, "offset": 0, "hasMore": True}
    assert reply.body["last_updated"]["slot_no"] == 40
    reply = await api.get(f"{path}?limit=1&offset=1", key)
    assert (reply.body["data"], reply.body["pagination"]["hasMore"]) == (newest_first[1:], False)
    assert await data(api, key, f"{path}?offset=2") == await data(api, key, f"{path}?offset=2&order=asc") == []


async def test_mints_and_burns(api: Client, chain: Written, key: str) -> None:
    await chain.append(10, tx("a", pays(ALICE, (COIN, 5)), mint=mints((COIN, 5))))
    await chain.append(20, tx("b", pays(ALICE, (COIN, 5)), spends=(("a", 0),)))
    await chain.append(30, tx("c", spends=(("b", 0),), mint=mints((COIN, -5))))
    path = f"/v1/assets/{POLICY}.{COIN}/mints"
    newest_first = [
        {"tx_hash": hash_of("c"), "block_no": 3, "slot_no": 30, "block_time": "2022-10-25T00:00:30Z", "quantity": "-5"},
        {"tx_hash": hash_of("a"), "block_no": 1, "slot_no": 10, "block_time": "2022-10-25T00:00:10Z", "quantity": "5"},
    ]
    reply = await api.get(path, key)
    assert reply.body["data"] == newest_first
    assert reply.body["pagination"] == {"limit": 100, "offset": 0, "total": 2, "hasMore": False}
    assert await data(api, key, f"{path}?order=asc") == newest_first[::-1]
    reply = await api.get(f"{path}?limit=1&order=asc", key)
    assert (reply.body["data"], reply.body["pagination"]["hasMore"]) == (newest_first[1:], True)
    assert await data(api, key, f"/v1/assets/{POLICY}.{COIN}/holders") == []


# Refusals


MALFORMED_ASSETS = [
    POLICY + COIN[:-1],
    POLICY + "00" * 33,
    POLICY[:-1] + "." + COIN,
    POLICY + "." + COIN[:-1],
    POLICY + "." + "00" * 33,
    POLICY + ".xx",
    POLICY + ".." + COIN,
    POLICY + "." + COIN + ".",
    POLICY + "." + COIN + "%0a",
    POLICY + ".%D9%A1%D9%A1",
    "." + COIN,
    "lovelace",
    "%00",
]


async def test_the_dot_before_a_name_is_optional(api: Client, chain: Written, key: str) -> None:
    await chain.append(10, tx("a", pays(ALICE, (COIN, 5)), mint=mints((COIN, 5))))
    for path in ("", "/holders", "/transactions", "/mints"):
        without = await api.get(f"/v1/assets/{POLICY}{COIN}{path}", key)
        assert without.status == 200
        assert without.body == (await api.get(f"/v1/assets/{POLICY}.{COIN}{path}", key)).body


async def test_malformed_assets(api: Client, chain: Written, key: str) -> None:
    await chain.append(10)
    for asset in MALFORMED_ASSETS:
        for path in ("", "/holders", "/transactions", "/mints"):
            reply = await api.get(f"/v1/assets/{asset}{path}", key)
            assert (reply.status, reply.error) == (400, NOT_AN_ASSET), asset
    assert (await api.get("/v1/assets/policy", key)).error == NOT_AN_ASSET


async def test_an_asset_is_found_by_its_fingerprint(api: Client, chain: Written, key: str) -> None:
    both = mints((COIN, 5), (PIECE, 1), ("", 2))
    await chain.append(10, tx("a", pays(ALICE, (COIN, 5), (PIECE, 1), ("", 2)), mint=both))
    for name in (COIN, PIECE, ""):
        shown = fingerprint(bytes.fromhex(POLICY), bytes.fromhex(name))
        for path in ("", "/holders", "/transactions", "/mints"):
            expected = (await api.get(f"/v1/assets/{POLICY}.{name}{path}", key)).body
            for form in (shown, shown.upper()):
                reply = await api.get(f"/v1/assets/{form}{path}", key)
                assert (reply.status, reply.body) == (200, expected), (name, path, form)
    await chain.append(20)
    await chain.append(30, tx("b", pays(ALICE, ("aa", 1)), mint=mints(("aa", 1))))
    later = f"/v1/assets/{fingerprint(bytes.fromhex(POLICY), bytes.fromhex('aa'))}"
    assert (await api.get(later, key)).status == 200
    await chain.back_to(20)
    assert (await api.get(later, key)).error == "Asset not found"


async def test_assets_that_share_the_stored_part_of_a_fingerprint_are_told_apart(
    api: Client, chain: Written, key: str, db: asyncpg.Connection
) -> None:
    await chain.append(10, tx("a", pays(ALICE, (COIN, 5), (PIECE, 1)), mint=mints((COIN, 5), (PIECE, 1))))
    await db.execute("UPDATE chain_preview.asset SET fingerprint = 7 - fingerprint")
    shown = fingerprint(bytes.fromhex(POLICY), bytes.fromhex(COIN))
    assert (await api.get(f"/v1/assets/{shown}", key)).error == "Asset not found"
    number = fingerprint_number(fingerprint_digest(bytes.fromhex(POLICY + COIN)))
    await db.execute("UPDATE chain_preview.asset SET fingerprint = $1", number)
    assert (await data(api, key, f"/v1/assets/{shown}"))["asset_name"] == COIN


@pytest.mark.parametrize(
    ("spoiled", "fault"),
    [
        (lambda text: text[:-1] + ("q" if text[-1] != "q" else "p"), "its checksum is wrong"),
        (lambda text: text[:-1], "it has 43 characters instead of 44"),
        (lambda text: text + "q", "it has 45 characters instead of 44"),
        (lambda text: text[:-1] + "b", "it has a character that bech32 does not use"),
        (lambda text: "Asset" + text[5:], "upper and lower case are mixed"),
        (lambda text: "pool" + text[5:], "it does not begin with asset1"),
        (lambda _: "asset1", "it has 6 characters instead of 44"),
    ],
)
async def test_the_refusal_of_a_malformed_fingerprint_says_what_is_wrong(
    api: Client, chain: Written, key: str, spoiled: Callable[[str], str], fault: str
) -> None:
    await chain.append(10, tx("a", pays(ALICE, (COIN, 5)), mint=mints((COIN, 5))))
    wrong = spoiled(fingerprint(bytes.fromhex(POLICY), bytes.fromhex(COIN)))
    for path in ("", "/holders", "/transactions", "/mints"):
        reply = await api.get(f"/v1/assets/{wrong}{path}", key)
        assert reply.status == 400
        assert reply.headers["Error-Code"] == "invalid_fingerprint"
        assert reply.error.startswith(f"Invalid asset fingerprint: {fault}")


async def test_the_missing_part_of_an_asset_is_named(api: Client, chain: Written, key: str) -> None:
    await chain.append(10, tx("a", pays(ALICE, (COIN, 5)), mint=mints((COIN, 5))))
    assert (await api.get(f"/v1/assets/{POLICY}", key)).error == f"{NOT_AN_ASSET}; the dot is missing"
    unknown = fingerprint(bytes.fromhex(POLICY), b"unknown")
    for path in ("", "/holders", "/transactions", "/mints"):
        reply = await api.get(f"/v1/assets/{unknown}{path}", key)
        assert (reply.status, reply.error) == (404, "Asset not found")
    for path in ("", "/holders"):
        reply = await api.get(f"/v1/assets/policy/{unknown}{path}", key)
        assert reply.status == 400
        assert reply.error.endswith("; a fingerprint identifies a single asset")


async def test_malformed_policies(api: Client, chain: Written, key: str) -> None:
    await chain.append(10)
    for policy in (POLICY[:-1], POLICY + "0", "z" * 56, "%20" + POLICY, "holders"):
        for path in ("", "/holders"):
            reply = await api.get(f"/v1/assets/policy/{policy}{path}", key)
            assert (reply.status, reply.error) == (400, "Invalid policy ID format. Expected 56 hex characters"), policy


async def test_unknown_assets(api: Client, chain: Written, key: str) -> None:
    await chain.append(10, tx("a", pays(ALICE, (COIN, 1)), mint=mints((COIN, 1))))
    for asset in (f"{POLICY}.{PIECE}", f"{POLICY}.", f"{OTHER_POLICY}.{COIN}"):
        for path in ("", "/holders", "/transactions", "/mints"):
            reply = await api.get(f"/v1/assets/{asset}{path}", key)
            assert (reply.status, reply.error) == (404, "Asset not found"), asset


LISTS = [
    f"/v1/assets/{POLICY}.{COIN}/holders",
    f"/v1/assets/{POLICY}.{COIN}/transactions",
    f"/v1/assets/{POLICY}.{COIN}/mints",
    f"/v1/assets/policy/{POLICY}",
    f"/v1/assets/policy/{POLICY}/holders",
]


async def test_parts_of_lists_have_bounds(api: Client, chain: Written, key: str) -> None:
    await chain.append(10, tx("a", pays(ALICE, (COIN, 1)), mint=mints((COIN, 1))))
    for path in LISTS:
        for query, error in (
            ("limit=0", "limit must be between 1 and 500"),
            ("limit=501", "limit must be between 1 and 500"),
            ("offset=-1", "offset must be between 0 and 9007199254740991"),
            ("order=up", "order must be asc or desc"),
        ):
            reply = await api.get(f"{path}?{query}", key)
            assert (reply.status, reply.error) == (400, error), path
        for order in ("asc", "desc"):
            reply = await api.get(f"{path}?limit=500&offset=9007199254740991&order={order}", key)
            assert (reply.status, reply.body["data"], reply.body["pagination"]["hasMore"]) == (200, [], False), path


async def test_a_network_without_an_index_is_refused(
    api: Client, database_url: str, chain: Written, issue_key: IssueKey
) -> None:
    await chain.append(10, tx("a", pays(ALICE, (COIN, 1)), mint=mints((COIN, 1))))
    mainnet, preview = await issue_key(0), await issue_key()
    paths = [*LISTS, f"/v1/assets/{POLICY}.{COIN}"]
    for path in paths:
        assert (await api.get(path, mainnet)).error == "Network not available", path
        assert (await api.get(path, preview)).status == 200, path
    connection: asyncpg.Connection = await database.connect(database_url, PREVIEW)
    await connection.execute("UPDATE tip SET phase = 'bulk'")
    await connection.close()
    for path in paths:
        reply = await api.get(path, preview)
        assert (reply.status, reply.error) == (503, "Network not available"), path
