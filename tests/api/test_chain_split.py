"""While the chain is split: what the API answers, as the operator has chosen."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import msgspec
import pytest

from api.http.turns import FairPool
from api.sources.node_addresses import NodeAddresses, prefer_the_followed
from shared import database, splits
from shared.network import MAINNET, PREVIEW
from shared.splits import ChainBlock, WatchedNode
from tests.api.chains import Chain
from tests.api.client import Client, serving
from tests.api.indexers import Indexer, slot_now
from tests.api.payments import ALICE, pays
from tests.patience import PATIENCE_S

COMMON, OURS, THEIRS = (ChainBlock(number * 20, number, f"{number:064x}") for number in (1_000, 1_020, 1_030))


@pytest.fixture
async def refusing(environment: dict[str, str], no_aggregator: None) -> AsyncIterator[Client]:  # noqa: ARG001
    """An API whose operator has chosen to refuse."""
    async with serving({**environment, "ON_SPLIT": "refuse"}) as client:
        yield client


async def becomes(client: Client, path: str, key: str | None, status: int) -> Any:
    """The answer, once it has this status."""
    async with asyncio.timeout(PATIENCE_S):
        while (reply := await client.get(path, key)).status != status:
            await asyncio.sleep(0.05)
    return reply


async def test_an_operator_can_refuse_chain_requests_while_the_chain_is_split(
    refusing: Client, chain: Chain, indexer: Indexer, db: asyncpg.Connection, key: str, submitter: str
) -> None:
    await chain.append(slot_now(), pays("a", ALICE))
    await indexer.beats()
    await becomes(refusing, "/ready/preview", None, 200)
    assert (await refusing.get("/v1/blocks/latest", key)).status == 200
    await splits.note(db, MAINNET, 2, None, OURS, THEIRS)
    await splits.note(db, PREVIEW, 2, COMMON, OURS, THEIRS)
    reply = await becomes(refusing, "/v1/blocks/latest", key, 503)
    assert reply.error == "The chain has split: there are no answers until its nodes agree again"
    for method, path, body in (
        ("POST", "/v1/tx/submit", {"cbor": "84a0a0f5f6"}),
        ("POST", "/v1/tx/evaluate", {"cbor": "84a0a0f5f6"}),
        ("GET", f"/v1/tx/submitted/{'ab' * 32}", None),
        ("GET", "/blockfrost/api/v0/blocks/latest", None),
    ):
        reply = await refusing.call(method, path, submitter, **({} if body is None else {"json": body}))
        assert (reply.status, reply.headers["Error-Code"]) == (503, "chain_split"), path
    assert (await refusing.get("/v1/subscriptions", key)).status == 200, "events are still read"
    network = await becomes(refusing, "/ready/preview", None, 503)
    assert "the chain of preview has split: node 2 has another one after block 1000" in network.body["error"]
    assert "chain requests are refused" in (await becomes(refusing, "/ready", None, 503)).body["error"]
    await splits.end(db, PREVIEW, 2)
    assert (await becomes(refusing, "/v1/blocks/latest", key, 200)).body["success"]
    await becomes(refusing, "/ready/preview", None, 200)


async def test_a_split_is_shown_and_chain_requests_are_answered_by_default(
    api: Client, chain: Chain, indexer: Indexer, db: asyncpg.Connection, key: str
) -> None:
    await chain.append(slot_now(), pays("a", ALICE))
    await indexer.beats()
    await splits.note(db, PREVIEW, 2, COMMON, OURS, THEIRS)
    assert (await api.get("/v1/blocks/latest", key)).status == 200
    assert (await api.get("/ready/preview")).body["data"]["status"] == "degraded"
    (network,) = (await api.get("/v1/status")).body["data"]["networks"]
    (split,) = network["splits"]
    assert network["state"] == "split"
    assert split["node"] == 2
    told = [split[name] for name in ("common", "our_tip", "node_tip")]
    assert told == msgspec.to_builtins([COMMON, OURS, THEIRS])
    since = split["noticed_at"]
    await splits.note(db, PREVIEW, 2, COMMON, OURS, ChainBlock(30_000, 1_040, "ab" * 32))
    assert b'ledgerline_chain_splits{network="preview"} 1.0' in (await api.get("/metrics")).body
    async with asyncio.timeout(PATIENCE_S):
        while True:
            (network,) = (await api.get("/v1/status")).body["data"]["networks"]
            (split,) = network["splits"]
            if split["node_tip"]["block_no"] == 1_040:
                break
            await asyncio.sleep(0.1)
    assert split["noticed_at"] == since


async def test_the_api_prefers_the_node_that_the_indexer_follows(database_url: str, indexer: Indexer) -> None:
    nodes = [WatchedNode(1, "behind"), WatchedNode(2, "followed")]
    await indexer.beats(nodes=splits.encode_nodes(nodes).decode())
    two, three = (NodeAddresses([f"ws://{number}" for number in range(1, count + 1)]) for count in (2, 3))
    async with await database.create_pool(database_url, None, max_size=1) as pool:
        await prefer_the_followed(FairPool(pool, 1), {"preview": two, "mainnet": three})
        assert (two.in_use, three.in_use) == ("ws://2", "ws://1")
        await prefer_the_followed(FairPool(pool, 1), {"preview": three})
    assert three.in_use == "ws://1", "its list has not the same nodes"
