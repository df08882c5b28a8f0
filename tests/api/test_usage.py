"""From an answered request to the table. docs/http-api.md, "Usage"."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import asyncpg

from tests.api.client import Client
from tests.api.counting import VISIBLE_WITHIN_S, until_counted
from tests.api.partners import CHAIN_PATH, NOTHING_INDEXED, Partner


async def test_every_authenticated_request_counts_within_five_seconds(
    api: Client, partner: Partner, db: asyncpg.Connection, aggregator: Callable[[], Any]
) -> None:
    """Whatever its status, 429 included; 401 and 403 do not count. docs/http-api.md, "Usage"."""
    aggregator()
    credential, key = await partner.issued(await partner.user(), rate_limit_per_minute=3)
    path = "/v1/tx/history/nonsense"
    statuses = [(await api.get(each, key)).status for each in (CHAIN_PATH, path, CHAIN_PATH, CHAIN_PATH, path)]
    assert statuses == [NOTHING_INDEXED, 400, NOTHING_INDEXED, 429, 429]
    for token in (None, "nonsense"):
        assert (await api.get(CHAIN_PATH, token)).status in {401, 403}
    await until_counted(db, (0, 5))  # the first time, the aggregator has to start
    last = datetime.now(UTC)
    await db.execute("INSERT INTO chain_preview.tip VALUES (true, 1, 1, $1, 0, 0, 'live', 0)", bytes(32))
    _, other = await partner.issued(await partner.user())
    nobody = "addr_test1vrm9x2zsux7va6w892g38tvchnzahvcd9tykqf3ygnmwtaqyfg52x"
    assert (await api.get(f"/v1/tx/history/{nobody}", other)).status == 200
    await until_counted(db, (1, 5), VISIBLE_WITHIN_S)
    detail = await partner.data("GET", f"/usage/{credential['id']}")
    assert (detail["summary"]["total_requests"], detail["summary"]["failed_requests"]) == (5, 5)
    shown = await partner.data("GET", f"/credentials/{credential['id']}")
    assert datetime.fromisoformat(shown["last_used_at"]) <= last
    (used, unused) = (await partner.get("/users/usage/summary")).body["data"]
    assert used["total_requests"] == 5
    assert used["avg_response_time_ms"] > 0
    assert unused["successful_requests"] == 1


async def test_a_request_shows_under_its_endpoint(
    api: Client, partner: Partner, db: asyncpg.Connection, aggregator: Callable[[], Any]
) -> None:
    credential, key = await partner.issued(await partner.user())
    aggregator()
    for _ in range(3):
        await api.get(CHAIN_PATH, key)
    await until_counted(db, (0, 3))
    [part] = await partner.data("GET", f"/usage/{credential['id']}/breakdown?group_by=endpoint_and_status")
    assert (part["endpoint"], part["status_class"], part["total_requests"]) == ("GET /v1/tx/hash/{hash}", "5xx", 3)
    assert 0 < part["p50_response_time_ms"] <= part["p99_response_time_ms"]
