"""Metadata by label: at /v1 and below /blockfrost."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import cbor2
import pytest

from api.chain.labels import MAX_SKIPPED
from shared import database
from shared.network import PREVIEW
from tests import blockfrost_schemas
from tests.api.client import Client
from tests.chain.written import Json, Written, pays, person, tx

HIGHEST = 2**64 - 1
FACADE = "/blockfrost/api/v0/metadata/txs/labels"


def noted(name: str, by_label: dict[int, Any], *, valid: bool = True) -> Json:
    """A transaction with metadata, sent as CBOR."""
    labels = {str(label): {"cbor": cbor2.dumps(value).hex()} for label, value in by_label.items()}
    no_fee = {"ada": {"lovelace": 0}}
    rest: Json = {} if valid else {"spends": "collaterals", "collaterals": [], "totalCollateral": no_fee}
    return tx(name, pays(person("p")), metadata={"labels": labels}) | rest


@pytest.fixture
async def written(database_url: str) -> AsyncIterator[Written]:
    connection: asyncpg.Connection = await database.connect(database_url, PREVIEW)
    yield Written(connection)
    await connection.close()


async def labels(api: Client, key: str, query: str = "") -> list[tuple[str, int]]:
    told = (await api.get(f"/v1/metadata/labels{query}", key)).body["data"]
    return [(each["label"], each["transaction_count"]) for each in told]


async def test_labels_are_sorted_by_number_and_counted(api: Client, written: Written, key: str) -> None:
    await written.append(10, noted("a", {674: "x", 5: 1}), noted("b", {674: {"msg": ["hi"]}}))
    await written.append(20, noted("c", {HIGHEST: 1, 0: 2}), tx("plain", pays(person("p"))))
    expected = [("0", 1), ("5", 1), ("674", 2), (str(HIGHEST), 1)]
    assert await labels(api, key) == expected
    assert await labels(api, key, "?order=desc") == expected[::-1]
    assert await labels(api, key, "?limit=2&offset=1") == expected[1:3]
    paging = (await api.get("/v1/metadata/labels?limit=2", key)).body["pagination"]
    assert paging == {"limit": 2, "offset": 0, "hasMore": True, "next_cursor": "5"}
    assert await labels(api, key, "?cursor=5") == expected[2:]
    assert await labels(api, key, "?cursor=6&order=desc&offset=1") == expected[:1]
    assert await labels(api, key, f"?cursor={HIGHEST}") == await labels(api, key, "?cursor=0&order=desc") == []
    reply = await api.call("GET", FACADE, headers={"project_id": key})
    blockfrost_schemas.check("/metadata/txs/labels", reply.body)
    assert reply.body[2] == {
        "label": "674", "cip10": "CIP-0020 - Transaction message/comment metadata", "count": "2"
    }  # fmt: skip
    assert [each["cip10"] for each in reply.body if each["label"] != "674"] == [None] * 3
    await written.back_to(10)
    assert await labels(api, key) == [("5", 1), ("674", 2)]


async def test_an_offset_skips_100000_labels_at_most(
    api: Client, written: Written, db: asyncpg.Connection, key: str
) -> None:
    """However many strangers have used. A cursor leads on."""
    await written.append(10, noted("a", {0: 1}))
    await db.execute(
        "INSERT INTO chain_preview.label_tx SELECT n - 9223372036854775808, 0, '\\x0000000000000000'"
        " FROM generate_series(1, $1::integer) AS n",
        MAX_SKIPPED,
    )
    await db.execute("VACUUM ANALYZE chain_preview.label_tx")
    assert await labels(api, key, f"?offset={MAX_SKIPPED}") == [(str(MAX_SKIPPED), 1)]
    for path in (f"/v1/metadata/labels?offset={MAX_SKIPPED + 1}", f"{FACADE}?page={MAX_SKIPPED // 100 + 2}"):
        reply = await api.get(path, key)
        assert reply.status == 400 and "More than 100000 labels precede this page" in str(reply.body)
    assert await labels(api, key, f"?cursor={MAX_SKIPPED - 1}") == [(str(MAX_SKIPPED), 1)]
    await db.execute("DELETE FROM chain_preview.label_tx WHERE label_no > -9223372036854775808 + 5")
    assert await labels(api, key, f"?offset={MAX_SKIPPED + 1}") == []


async def test_a_label_beyond_64_bits_or_malformed_is_refused(api: Client, written: Written, key: str) -> None:
    await written.append(10, noted("a", {1: 1}))
    for wrong in (str(HIGHEST + 1), "-1", "1x", "9" * 30):
        reply = await api.get(f"/v1/metadata/labels/{wrong}", key)
        assert (reply.status, reply.error) == (400, f"label must be a number from 0 to {HIGHEST}"), wrong
        reply = await api.call("GET", f"{FACADE}/{wrong}", headers={"project_id": key})
        assert (reply.status, reply.body["message"]) == (400, "Missing, out of range or malformed label."), wrong
    reply = await api.get(f"/v1/metadata/labels/{HIGHEST}", key)
    assert reply.body["data"] == [] and reply.body["pagination"]["total"] == 0
    for path in (f"{FACADE}/{HIGHEST}", f"{FACADE}/1?page=2", f"{FACADE}/2/cbor"):
        assert (await api.call("GET", path, headers={"project_id": key})).status == 404


async def test_metadata_of_failed_scripts_is_not_listed(api: Client, written: Written, key: str) -> None:
    await written.append(10, noted("good", {1: "a"}), noted("bad", {1: "b", 2: "c"}, valid=False))
    assert await labels(api, key) == [("1", 1)]
    (only,) = (await api.get("/v1/metadata/labels/1", key)).body["data"]
    assert only["metadata"]["json"] == {"string": "a"}


async def test_long_metadata_of_many_transactions_is_listed_whole(api: Client, written: Written, key: str) -> None:
    """In parts, as one answer of 100 may have megabytes."""
    texts = ["".join(chr(ord("a") + (number + at) % 26) for at in range(64)) for number in range(120)]
    for slot, text in enumerate(texts):
        await written.append(10 + slot, noted(f"t{slot}", {7: [text] * 100}))
    told = (await api.get("/v1/metadata/labels/7?limit=100&offset=10&order=asc", key)).body
    assert [each["metadata"]["json"]["list"][99]["string"] for each in told["data"]] == texts[10:110]
    assert told["pagination"] == {"limit": 100, "offset": 10, "total": 120, "hasMore": True}
    for page, expected in ((1, texts[:100]), (2, texts[100:])):
        plain, raw = await asyncio.gather(
            api.call("GET", f"{FACADE}/7?page={page}", headers={"project_id": key}),
            api.call("GET", f"{FACADE}/7/cbor?page={page}", headers={"project_id": key}),
        )
        assert [each["json_metadata"][0] for each in plain.body] == expected
        assert [cbor2.loads(bytes.fromhex(each["metadata"]))[7][0] for each in raw.body] == expected


async def test_a_metadatum_that_is_nested_too_deeply_is_null(api: Client, written: Written, key: str) -> None:
    deep: Any = 1
    for _ in range(150):
        deep = [deep]
    await written.append(10, noted("deep", {7: deep}))
    (only,) = (await api.call("GET", f"{FACADE}/7", headers={"project_id": key})).body
    assert only["json_metadata"] is None
    (only,) = (await api.get("/v1/metadata/labels/7", key)).body["data"]
    assert list(only["metadata"]) == ["cbor"]
