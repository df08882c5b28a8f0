"""Blocks and epochs: their names, pages, refusals, caching. tests/chain compares every field with the model."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from shared import database
from shared.network import PREVIEW
from tests.api.client import Client
from tests.chain.written import ADA, Written, hash_of, pays, person, tx

EPOCH = PREVIEW.epoch_slots
NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


@pytest.fixture
async def hashes(db: asyncpg.Connection) -> list[str]:
    """Three blocks, in two epochs; the second has five transactions."""
    chain = Written(db)
    blocks = [(10, ["first"]), (30, NAMES), (EPOCH + 5, ["last"])]
    return [await chain.append(slot, *(tx(name, pays(person("p"))) for name in names)) for slot, names in blocks]


async def test_a_block_has_three_names(api: Client, key: str, hashes: list[str]) -> None:
    for name in (hashes[2], hashes[2].upper(), "3", "0003", "latest"):
        reply = await api.get(f"/v1/blocks/{name}", key)
        assert reply.body["data"]["block_hash"] == hashes[2], name
        assert reply.body["data"]["previous_block"] == hashes[1]
        assert reply.body["data"]["next_block"] is None
        assert reply.body["last_updated"]["block_hash"] == hashes[2]
    second = (await api.get("/v1/blocks/2", key)).body["data"]
    assert (second["fees"], second["output"]) == (str(5 * 170_000), str(5 * 2 * ADA))


async def test_pages_contain_each_transaction_of_a_block_once(api: Client, key: str, hashes: list[str]) -> None:
    listed = list(enumerate(map(hash_of, NAMES)))
    for order, expected in (("asc", listed), ("desc", listed[::-1])):
        rows = []
        for offset in (0, 2, 4, 6):
            path = f"/v1/blocks/{hashes[1]}/transactions?limit=2&offset={offset}&order={order}"
            body = (await api.get(path, key)).body
            rows += [(row["tx_index"], row["tx_hash"]) for row in body["data"]]
            assert body["pagination"] == {"limit": 2, "offset": offset, "total": 5, "hasMore": offset < 4}
        assert rows == expected


async def test_an_epoch_ends_where_the_next_one_begins(api: Client, key: str, hashes: list[str]) -> None:
    first, second = [(await api.get(f"/v1/epochs/{name}", key)).body["data"] for name in ("0", "latest")]
    assert (first["epoch_no"], first["block_count"], first["tx_count"]) == (0, 2, 6)
    assert (first["first_block"]["block_hash"], first["last_block"]["block_hash"]) == (hashes[0], hashes[1])
    assert first["end_time"] == second["start_time"] == "2022-10-26T00:00:00Z"
    assert (second["epoch_no"], second["first_slot_no"], second["fees"]) == (1, EPOCH, "170000")


async def test_an_unknown_or_malformed_block_or_epoch_is_refused(api: Client, key: str, hashes: list[str]) -> None:
    assert hashes
    missing = {
        "/v1/blocks/4": "block_not_found",
        f"/v1/blocks/{'0' * 64}": "block_not_found",
        f"/v1/blocks/{'9' * 9}/transactions": "block_not_found",
        "/v1/epochs/2": "epoch_not_found",
        "/v1/epochs/999999999": "epoch_not_found",
    }
    wrong = ("blocks/-1", f"blocks/{'9' * 10}", "blocks/Latest", f"blocks/{'0' * 63}", "blocks/%D9%A3", "epochs/1e3")
    refused = {path: (404, code) for path, code in missing.items()}
    refused |= {f"/v1/{path}": (400, "invalid_parameter") for path in wrong}
    for path, expected in refused.items():
        reply = await api.get(path, key)
        assert (reply.status, reply.headers["Error-Code"]) == expected, path


async def test_a_block_and_an_epoch_below_all_rollbacks_never_change(
    api: Client, key: str, hashes: list[str], db: asyncpg.Connection
) -> None:
    paths = (f"/v1/blocks/{hashes[1]}", "/v1/blocks/2/transactions", "/v1/epochs/0")
    for depth, settled in ((2_160, False), (2_161, True)):
        await db.execute("UPDATE tip SET block_no = $1", 2 + depth)
        tags = {path: (await api.get(path, key)).headers for path in paths}
        assert {path: "immutable" in headers["Cache-Control"] for path, headers in tags.items()} == dict.fromkeys(
            paths, settled
        )
    await db.execute("UPDATE tip SET block_no = block_no + 1, block_hash = set_byte(block_hash, 0, 1)")
    for path in paths:
        again = await api.call("GET", path, key, headers={"If-None-Match": tags[path]["ETag"]})
        assert again.status == 304


async def test_a_rolled_back_epoch_is_gone(api: Client, key: str, hashes: list[str], db: asyncpg.Connection) -> None:
    await Written(db).back_to(10)
    assert (await api.get("/v1/epochs/1", key)).status == (await api.get(f"/v1/blocks/{hashes[2]}", key)).status == 404
    left = (await api.get("/v1/epochs/0", key)).body["data"]
    assert (left["block_count"], left["tx_count"], left["fees"], left["output"]) == (1, 1, "170000", str(2 * ADA))
