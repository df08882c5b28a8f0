"""The open paths: health, readiness, metrics."""

import asyncio

import pytest

from shared import database
from shared.network import PREVIEW
from tests.api.chains import Chain
from tests.api.client import Client, serving
from tests.api.test_transactions import ALICE, pays
from tests.processes.relay import Relay


async def test_health_says_that_the_process_answers(api: Client) -> None:
    reply = await api.get("/health")
    assert (reply.status, reply.body) == (200, {"success": True, "data": {"status": "alive"}})


async def test_ready_shows_each_network_that_is_indexed(api: Client, chain: Chain, database_url: str) -> None:
    await chain.append(10, pays("a", ALICE))
    writer = await database.connect(database_url, PREVIEW)
    assert await database.become_writer(writer, PREVIEW)
    await writer.execute("INSERT INTO node_tip (slot_no, block_no, seen_at) VALUES (17, 3, now())")
    reply = await api.get("/ready")
    assert (reply.status, reply.body) == (
        200,
        {
            "success": True,
            "data": {
                "status": "ready",
                "networks": [
                    {
                        "network": "preview",
                        "network_id": 1,
                        "phase": "live",
                        "slot_no": 10,
                        "block_no": 0,
                        "lag_slots": 7,
                        "unlike_pools": None,
                        "indexer_running": True,
                    }
                ],
            },
        },
    )
    await writer.close()


async def test_ready_says_what_is_missing(api: Client, chain: Chain) -> None:
    async def reason() -> str:
        reply = await api.get("/ready")
        assert reply.status == 503
        return reply.error

    assert await reason() == "Not ready: no network is available yet"
    await chain.append(10, pays("a", ALICE))
    assert await reason() == "Not ready: no indexer is running for preview"
    await chain.set_phase("bulk")
    assert await reason() == "Not ready: no network is available yet"


@pytest.mark.usefixtures("no_worker")
async def test_ready_without_database_or_queue(environment: dict[str, str]) -> None:
    postgres, valkey = Relay(), Relay()
    environment["DATABASE_URL"] = postgres.in_front_of(environment["DATABASE_URL"])
    environment["REDIS_URL"] = valkey.in_front_of(environment["REDIS_URL"])
    postgres.open()
    valkey.open()
    async with serving(environment) as client:
        valkey.close()
        reply = await client.get("/ready")
        assert reply.status == 503
        assert "queue not available, rates are limited per process" in reply.error
        postgres.close()
        reply = await client.get("/ready")
        assert reply.status == 503
        assert "Database not available" in reply.error
        for path in ("/health", "/metrics", "/docs", "/openapi.json"):
            assert (await client.get(path)).status == 200
        postgres.open()
        valkey.open()
        await asyncio.sleep(1.5)
        assert (await client.get("/ready")).error == "Not ready: no network is available yet"
    postgres.end()
    valkey.end()


async def test_metrics_count_requests_by_route_and_status(api: Client, chain: Chain, key: str) -> None:
    def count(text: bytes, status: int) -> float:
        labels = f'method="GET",route="/v1/tx/history/{{address}}",status="{status}"'
        name = f"ledgerline_requests_total{{{labels}}} "
        lines = [line for line in text.decode().splitlines() if line.startswith(name)]
        return float(lines[0].removeprefix(name)) if lines else 0.0

    await chain.append(10, pays("a", ALICE))
    before = (await api.get("/metrics")).body
    for query in ("", "?limit=1", "?limit=0"):
        await api.get(f"/v1/tx/history/{ALICE}{query}", key)
    reply = await api.get("/metrics")
    assert reply.headers["Content-Type"].startswith("text/plain; version=")
    assert count(reply.body, 200) - count(before, 200) == 2
    assert count(reply.body, 400) - count(before, 400) == 1
    assert b'ledgerline_chain_slot{network="preview"} 10.0\n' in reply.body
    assert b'ledgerline_indexer_running{network="preview"} 0.0\n' in reply.body
    for private in (ALICE, key, key[:13]):
        assert private.encode() not in reply.body
