"""Usage by period, endpoint and status: sums are exact, percentiles are close, an export is complete."""

import asyncio
import csv
import io
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import aiohttp
import asyncpg
import msgspec
import pytest

from api import errors, worker
from api.admin import breakdown
from api.services import ADMIN_TURNS_EACH
from api.usage import durations
from api.usage.queue import BreakdownSum, UsageBatch
from tests.api.locks import until_blocked
from tests.api.partners import Partner

HASH, POOL = "GET /v1/tx/hash/{hash}", "GET /v1/pools/{poolId}"
WIDTH = 0.125
Took = Callable[[dict[str, Any], str, str, int, list[int]], Awaitable[None]]


def histogram(each_us: list[int]) -> list[int]:
    return durations.packed(Counter(map(durations.bucket_of, each_us)))


@pytest.fixture
def took(db: asyncpg.Connection) -> Took:
    """Adds requests of a credential at one time to one endpoint, by the aggregator's own commit."""
    spools = 0

    async def add(credential: dict[str, Any], at: str, endpoint: str, status: int, each_us: list[int]) -> None:
        nonlocal spools
        spools += 1
        hour = int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()) // 3600
        part = BreakdownSum(
            credential["id"], hour, endpoint, status // 100, len(each_us), sum(each_us), histogram(each_us)
        )
        assert await worker.add_batch(db, UsageBatch(f"part {spools}", 0, 38, [], [part]))

    return add


async def test_postgres_adds_histograms_up(db: asyncpg.Connection) -> None:
    one, other = [3, 5, 700, 700, 2**32 - 1], [4, 5, 699, 90_000]
    assert await db.fetchval("SELECT partner.durations_add($1, $2)", histogram(one), histogram(other)) == histogram(
        one + other
    )
    assert await db.fetchval("SELECT partner.durations_sum(d) FROM (VALUES (null::bigint[])) AS x (d)") == []


async def test_usage_is_grouped_by_period_endpoint_and_status(partner: Partner, took: Took) -> None:
    credential, _ = await partner.issued(await partner.user())
    await took(credential, "2026-03-01T10:05", HASH, 200, [1_000, 3_000])
    await took(credential, "2026-03-01T10:55", HASH, 200, [2_000])
    await took(credential, "2026-03-01T11:00", HASH, 429, [100])
    await took(credential, "2026-03-01T23:00", POOL, 200, [5_000])
    await took(credential, "2026-04-01T00:00", POOL, 200, [7_000])

    async def parts(query: str) -> list[tuple[Any, ...]]:
        path = f"/usage/{credential['id']}/breakdown?start_date=2026-01-01&{query}"
        return [
            (part["period_start"][:13], part["endpoint"], part["status_class"], part["total_requests"])
            for part in await partner.data("GET", path)
        ]

    assert await parts("granularity=hour") == [
        ("2026-04-01T00", POOL, "2xx", 1),
        ("2026-03-01T23", POOL, "2xx", 1),
        ("2026-03-01T11", HASH, "4xx", 1),
        ("2026-03-01T10", HASH, "2xx", 3),
    ]
    assert await parts("granularity=month&group_by=endpoint") == [
        ("2026-04-01T00", POOL, None, 1),
        ("2026-03-01T00", POOL, None, 1),
        ("2026-03-01T00", HASH, None, 4),
    ]
    assert await parts("group_by=status") == [
        ("2026-04-01T00", None, "2xx", 1),
        ("2026-03-01T00", None, "2xx", 4),
        ("2026-03-01T00", None, "4xx", 1),
    ]
    assert await parts("group_by=none&end_date=2026-03-01") == [("2026-03-01T00", None, None, 5)]
    assert await parts("granularity=hour&limit=2&offset=1") == (await parts("granularity=hour"))[1:3]
    late = await partner.get(f"/usage/{credential['id']}/breakdown?start_date=2026-01-01&offset=100")
    assert (late.body["data"], late.body["pagination"]["total"]) == ([], 4)
    assert await partner.data("GET", f"/usage/{credential['id']}/breakdown?start_date=2099-01-01") == []
    [whole] = await partner.data(
        "GET", f"/usage/{credential['id']}/breakdown?start_date=2026-03-01T10:30:00Z&end_date=2026-03-01T10:59:00Z"
    )
    assert (whole["total_requests"], whole["avg_response_time_ms"]) == (3, 2.0), "whole hours count"
    assert whole["p50_response_time_ms"] == pytest.approx(2.0, rel=WIDTH)
    assert whole["p99_response_time_ms"] == pytest.approx(3.0, rel=WIDTH)


async def test_events_are_added_up_and_are_no_requests(db: asyncpg.Connection, partner: Partner, took: Took) -> None:
    credential, _ = await partner.issued(await partner.user())
    await took(credential, "2026-03-01T10:05", POOL, 200, [1_000])
    hour = int(datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp()) // 3600
    for spool, (endpoint, events) in enumerate(((POOL, 70), (POOL, 5), (HASH, 3))):
        part = BreakdownSum(credential["id"], hour, endpoint, 2, events=events, stream_minutes=events + 1)
        batch = UsageBatch(f"events {spool}", 0, 38, [], [part])
        for _ in range(2):
            await worker.add_batch(db, batch)
    path = f"/usage/{credential['id']}/breakdown?start_date=2026-03-01&end_date=2026-03-01&group_by=endpoint"
    parts = await partner.data("GET", path)
    names = "total_requests", "delivered_events", "stream_minutes"
    counted = {part["endpoint"]: tuple(part[name] for name in names) for part in parts}
    assert counted == {POOL: (1, 75, 77), HASH: (0, 3, 4)}
    exported = await partner.get("/usage/export?start_date=2026-03-01&end_date=2026-03-01")
    lines = csv.DictReader(io.StringIO(exported.body.decode()))
    assert {line["endpoint"]: tuple(int(line[name]) for name in names) for line in lines} == counted


async def test_an_account_has_the_usage_of_all_its_credentials(partner: Partner, took: Took) -> None:
    user = await partner.user()
    for _ in range(2):
        credential, _ = await partner.issued(user)
        await took(credential, "2026-03-01T10:05", HASH, 200, [1_000])
    await took((await partner.issued(await partner.user()))[0], "2026-03-01T10:05", HASH, 200, [1_000])
    [part] = await partner.data("GET", f"/users/{user['id']}/usage/breakdown?start_date=2026-03-01&end_date=2026-03-01")
    assert (part["endpoint"], part["total_requests"]) == (HASH, 2)
    assert await partner.data("GET", f"/users/{(await partner.user())['id']}/usage/breakdown") == []


async def test_an_export_has_every_line_once(
    partner: Partner, rival: Partner, took: Took, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breakdown, "_ROWS_AT_ONCE", 3)
    monkeypatch.setattr(breakdown, "_CREDENTIALS_AT_ONCE", 2)
    user = await partner.user(external_id="=1+1")
    expected = Counter[tuple[str, ...]]()
    for number in range(5):
        credential, _ = await partner.issued(user, name=f'"{number}", x')
        for hour in range(number):
            for endpoint in (HASH, POOL):
                await took(credential, f"2026-03-0{1 + hour % 2}T{hour:02}:00", endpoint, 200, [1_000] * (hour + 1))
                day = f"2026-03-0{1 + hour % 2}T00:00:00Z"
                expected[credential["id"], credential["name"], day, endpoint, "2xx"] += hour + 1
    foreign, _ = await rival.issued(await rival.user())
    await took(foreign, "2026-03-01T10:00", HASH, 200, [1_000])

    reversed_dates = await partner.get("/usage/export?start_date=2000-01-02&end_date=2000-01-01")
    assert (reversed_dates.status, reversed_dates.error) == (400, errors.dates_reversed().message)
    period = "start_date=2026-03-01&end_date=2026-03-09"
    answer = await partner.get(f"/usage/export?{period}")
    assert answer.headers["Content-Type"] == "text/csv;charset=utf-8"
    lines = list(csv.DictReader(io.StringIO(answer.body.decode())))
    columns = ("credential_id", "credential_name", "period_start", "endpoint", "status_class")
    assert len(lines) == len(expected)
    assert Counter({tuple(line[name] for name in columns): int(line["total_requests"]) for line in lines}) == expected
    assert {line["external_id"] for line in lines} == {"'=1+1"}, "no spreadsheet computes it"

    answer = await partner.get(f"/usage/export?{period}&format=ndjson")
    objects = [msgspec.json.decode(line) for line in answer.body.splitlines()]
    assert Counter({tuple(line[name] for name in columns): line["total_requests"] for line in objects}) == expected
    assert {line["external_id"] for line in objects} == {"=1+1"}
    assert (await rival.get(f"/usage/export?{period}")).body.count(b"\n") == 2


async def test_an_export_waits_for_its_turn_and_is_cut_off_in_the_end(
    partner: Partner,
    took: Took,
    db: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It has begun, so it can no longer be refused."""
    credential, _ = await partner.issued(await partner.user())
    await took(credential, "2026-03-01T10:00", HASH, 200, [1_000])
    path = "/usage/export?start_date=2026-03-01&end_date=2026-03-09"
    monkeypatch.setattr("api.http.turns.WAIT_S", 0.1)
    async with db.transaction():
        await db.execute("LOCK TABLE partner.user_account")
        waiting = [asyncio.create_task(partner.get("/users")) for _ in range(ADMIN_TURNS_EACH)]
        await until_blocked(db, len(waiting))
        with monkeypatch.context() as patched:
            patched.setattr("api.http.turns.WAIT_BETWEEN_PARTS_S", 0.1)
            with pytest.raises(aiohttp.ClientPayloadError):
                await partner.get(path)
        exporting = asyncio.create_task(partner.get(path))
        await asyncio.sleep(0.5)  # longer than WAIT_S
        assert not exporting.done()
    assert (await exporting).body.count(b"\n") == 2
    assert {reply.status for reply in await asyncio.gather(*waiting)} == {200}
    told = capsys.readouterr().out
    assert "answer.cut_off" in told and "Traceback" not in told
