"""`/metrics` and `/addresses/{address}/extended` below /blockfrost."""

from datetime import UTC, datetime, timedelta

import asyncpg
from aiohttp import web

from api import worker
from api.usage import hours
from api.usage.queue import UNKNOWN_ENDPOINT, BreakdownSum, UsageBatch, UsageSum
from shared import database
from shared.network import PREVIEW
from tests import blockfrost_schemas
from tests.api.client import Client, serving
from tests.api.conftest import IssueKey
from tests.api.registries import COIN, entry, serving_registry
from tests.chain.written import POLICY, Written, mints, pays, person, tx

ROOT = "/blockfrost/api/v0"
OTHER = b"Other"


async def add(db: asyncpg.Connection, spool: str, credential_id: str, at: datetime, endpoint: str, count: int) -> None:
    """Add successful requests, as the aggregator does."""
    minute = int(at.timestamp()) // 60
    used = UsageSum(credential_id, minute, count, 0, 1_000, int(at.timestamp() * 1e6))
    part = BreakdownSum(credential_id, minute // 60, endpoint, 2, count, 1_000, [(7 << 48) + count])
    assert await worker.add_batch(db, UsageBatch(spool, 0, 32, [used], [part]))


async def test_metrics_count_the_last_30_days_of_the_credential_alone(
    api: Client, db: asyncpg.Connection, issue_key: IssueKey
) -> None:
    mine, other = await issue_key(), await issue_key()
    rows = await db.fetch("SELECT id::text FROM partner.credential ORDER BY created_at")
    credential, of_other = (row["id"] for row in rows)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [today - timedelta(days=back) for back in (30, 29, 1)]
    blocks, assets = f"GET {ROOT}/blocks/{{block}}", "GET /v1/assets/{asset}"
    for number, (day, endpoint, count) in enumerate(
        [
            (days[0], blocks, 7),
            (days[1], blocks, 2),
            (days[1], assets, 3),
            (days[2], blocks, 4),
            (days[2], f"GET {ROOT}/assets/{{asset}}", 5),
            (days[2], UNKNOWN_ENDPOINT, 1),
        ]
    ):
        await add(db, f"mine {number}", credential, day + timedelta(hours=number), endpoint, count)
    await add(db, "other", of_other, days[2], blocks, 100)
    sent = BreakdownSum(credential, int(days[2].timestamp()) // 3600, hours.WEBHOOK, 2, events=3)
    await hours.add(db, 0, [sent])
    times = [int(day.timestamp()) for day in days]
    by_day = (await api.call("GET", f"{ROOT}/metrics", headers={"project_id": mine})).body
    blockfrost_schemas.check("/metrics", by_day)
    assert by_day == [{"time": times[1], "calls": 5}, {"time": times[2], "calls": 10}]
    by_endpoint = (await api.call("GET", f"{ROOT}/metrics/endpoints", headers={"project_id": mine})).body
    blockfrost_schemas.check("/metrics/endpoints", by_endpoint)
    assert by_endpoint == [
        {"time": times[1], "calls": 3, "endpoint": "assets"},
        {"time": times[1], "calls": 2, "endpoint": "blocks"},
        {"time": times[2], "calls": 5, "endpoint": "assets"},
        {"time": times[2], "calls": 4, "endpoint": "blocks"},
        {"time": times[2], "calls": 1, "endpoint": UNKNOWN_ENDPOINT},
    ]
    others = (await api.call("GET", f"{ROOT}/metrics", headers={"project_id": other})).body
    assert others == [{"time": times[2], "calls": 100}]


async def test_extended_amounts_have_the_decimals_of_the_registry(
    environment: dict[str, str], database_url: str, issue_key: IssueKey
) -> None:
    connection = await database.connect(database_url, PREVIEW)
    held = (COIN.hex(), 5), (OTHER.hex(), 6)
    await Written(connection).append(10, tx("a", pays(person("p"), *held), mint=mints(*held)))
    await connection.close()
    path = f"{ROOT}/addresses/{person('p')}/extended"

    async def answer(request: web.Request) -> web.Response:
        subject = request.path.rpartition("/")[2]
        known = subject == POLICY + COIN.hex()
        return web.json_response(
            entry(subject, name="Coin", decimals=6) if known else None, status=200 if known else 404
        )

    async with (
        serving_registry() as served,
        serving(environment | {"TOKEN_REGISTRY_URL": served.url}) as api,
    ):
        served.handler = answer
        key = await issue_key()
        reply = await api.call("GET", path, headers={"project_id": key})
        blockfrost_schemas.check("/addresses/{address}/extended", reply.body)
        assert [(each["unit"][56:], each["decimals"]) for each in reply.body["amount"]] == [
            ("", 6), (COIN.hex(), 6), (OTHER.hex(), None)
        ]  # fmt: skip
        assert "Metadata-Warning" not in reply.headers
    async with serving(environment | {"TOKEN_REGISTRY_URL": served.url}) as api:  # which has ended
        reply = await api.call("GET", path, headers={"project_id": key})
        assert [each["decimals"] for each in reply.body["amount"]] == [6, None, None]
        assert reply.headers["Metadata-Warning"] == 'source_failed;source="registry"'
