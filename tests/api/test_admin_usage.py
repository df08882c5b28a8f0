"""Usage endpoints over rows that the aggregator wrote. docs/http-api.md, "Usage" and "Requests"."""

import random
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from tests.api.conftest import Use
from tests.api.partners import Partner, counts


async def test_the_list_shows_every_credential_by_requests_then_newest(partner: Partner, use: Use) -> None:
    user = await partner.user(name="Bob")
    made = [(await partner.issued(user, name=str(number)))[0] for number in range(4)]
    await use(made[1], "2026-03-01T10:00", successful=3, failed=2)
    await use(made[1], "2026-03-02T10:00", successful=1)
    await use(made[0], "2026-03-02T10:00", failed=9)
    await partner.data("DELETE", f"/credentials/{made[0]['id']}")
    reply = await partner.get("/usage")
    assert list(reply.body) == ["success", "data", "pagination"]
    assert reply.body["pagination"] == {"limit": 20, "offset": 0, "total": 4}
    assert [(entry["credential_name"], *counts(entry)) for entry in reply.body["data"]] == [
        ("0", 9, 0, 9),
        ("1", 6, 4, 2),
        ("3", 0, 0, 0),
        ("2", 0, 0, 0),
    ]
    first = reply.body["data"][1]
    assert list(first) == [
        "credential_id",
        "credential_name",
        "api_key_prefix",
        "user_account_id",
        "user_account_name",
        "total_requests",
        "successful_requests",
        "failed_requests",
        "last_used_at",
    ]
    assert (first["user_account_name"], first["last_used_at"]) == ("Bob", "2026-03-02T10:00:00Z")
    assert reply.body["data"][2]["last_used_at"] is None
    page = await partner.get("/usage?limit=2&offset=1")
    assert [entry["credential_name"] for entry in page.body["data"]] == ["1", "3"]
    assert page.body["pagination"] == {"limit": 2, "offset": 1, "total": 4}
    dated = await partner.get("/usage?start_date=2026-03-01&end_date=2026-03-01")
    assert (dated.body["data"][0]["credential_name"], *counts(dated.body["data"][0])) == ("1", 5, 3, 2)


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ("", 31),
        ("start_date=2026-03-01&end_date=2026-03-01", 15),
        ("start_date=2026-03-02", 16),
        ("end_date=2026-03-01", 15),
        ("start_date=2026-03-01T23:59:00Z&end_date=2026-03-02T00:01:00Z", 24),
        ("start_date=2026-03-01T23:59:59Z&end_date=2026-03-02T00:00:00Z", 8),
        ("start_date=2026-03-01T23:59:59Z&end_date=2026-03-02T00:00:01Z", 24),
        ("start_date=2026-03-02T00:00:30Z&end_date=2026-03-02T00:00:31Z", 16),
        ("start_date=2026-03-02T01:00:00%2B01:00&end_date=2026-03-02T01:01:00%2B01:00", 16),
        ("start_date=2026-03-02T01:00:00+01:00&end_date=2026-03-02T01:01:00+01:00", 16),
        ("start_date=2026-03-01T00:00:00&end_date=2026-03-01T00:01:00.000001", 3),
        ("start_date=2026-03-01%2000:01&end_date=2026-03-01%2000:02", 2),
        ("start_date=0001-01-01&end_date=9999-12-31", 31),
        ("start_date=2027-01-01&end_date=2027-01-01", 0),
    ],
)
async def test_start_and_end_are_exact_to_the_minute(partner: Partner, use: Use, period: str, expected: int) -> None:
    """A period includes the whole minute of its start, and that of its end unless the end is the minute's beginning."""
    credential, _ = await partner.issued(await partner.user())
    for bit, at in enumerate(
        ["2026-03-01T00:00", "2026-03-01T00:01", "2026-03-01T12:00", "2026-03-01T23:59", "2026-03-02T00:00"]
    ):
        await use(credential, at, successful=2**bit)
    (listed,) = (await partner.get(f"/usage?{period}")).body["data"]
    assert listed["total_requests"] == expected
    if "start_date" in period:
        detail = await partner.data("GET", f"/usage/{credential['id']}?{period}")
        assert detail["summary"]["total_requests"] == expected
        assert sum(day["total_requests"] for day in detail["daily"]) == expected


async def test_whole_days_plus_minutes_equal_the_sum_of_minutes(
    partner: Partner, use: Use, db: asyncpg.Connection
) -> None:
    """The usage of any period equals the sum of its minutes."""
    credential, _ = await partner.issued(await partner.user())
    chance = random.Random(1)
    midnight = datetime(2026, 3, 1, tzinfo=UTC)
    edges = [0, 1, 1439, 1440, 1441, 2879, 2880, 4319, 4320]
    minutes = sorted({*edges, *(chance.randrange(4 * 1440) for _ in range(60))})
    for minute in minutes:
        at = f"{midnight + timedelta(minutes=minute):%Y-%m-%dT%H:%M}"
        await use(credential, at, successful=chance.randrange(5), failed=chance.randrange(5), took_ms=1)
    moments = [midnight + timedelta(minutes=minute, seconds=s) for minute in [*edges, -5, 9_999] for s in (0, 30)]
    straight = """
        SELECT coalesce(sum(successful), 0), coalesce(sum(failed), 0), coalesce(sum(took_us), 0)
        FROM partner.usage WHERE credential_id = $1 AND minute >= date_trunc('minute', $2::timestamptz) AND minute < $3
    """
    function = """
        SELECT coalesce(sum(successful), 0), coalesce(sum(failed), 0), coalesce(sum(took_us), 0)
        FROM partner.usage_of($1, $2, $3)
    """
    for start in moments:
        for end in moments:
            period = (UUID(credential["id"]), start, end)
            if start <= end:
                assert await db.fetchrow(function, *period) == await db.fetchrow(straight, *period), period


async def test_one_credential_is_shown_in_total_and_by_day_newest_first(partner: Partner, use: Use) -> None:
    credential, _ = await partner.issued(await partner.user(name="Bob"), name="k")
    await use(credential, "2026-03-01T00:00", successful=1)
    await use(credential, "2026-03-01T23:59", successful=2, failed=1)
    await use(credential, "2026-03-03T12:00", failed=4)
    reply = await partner.get(f"/usage/{credential['id']}?start_date=2026-03-01&end_date=2026-03-03")
    assert (reply.status, list(reply.body), list(reply.body["data"])) == (
        200,
        ["success", "data"],
        ["summary", "daily"],
    )
    assert reply.body["data"]["summary"] == {
        "credential_id": credential["id"],
        "credential_name": "k",
        "api_key_prefix": credential["api_key_prefix"],
        "user_account_id": credential["user_account_id"],
        "user_account_name": "Bob",
        "total_requests": 8,
        "successful_requests": 3,
        "failed_requests": 5,
        "period_start": "2026-03-01T00:00:00Z",
        "period_end": "2026-03-03T23:59:59.999999Z",
    }
    assert reply.body["data"]["daily"] == [
        {"date": "2026-03-03", "total_requests": 4, "successful_requests": 0, "failed_requests": 4},
        {"date": "2026-03-01", "total_requests": 4, "successful_requests": 3, "failed_requests": 1},
    ]


async def test_without_dates_a_credentials_usage_runs_from_its_creation_to_now(partner: Partner, use: Use) -> None:
    credential, _ = await partner.issued(await partner.user())
    now = datetime.now(UTC)
    await use(credential, now.strftime("%Y-%m-%dT%H:%M"), successful=1)
    await partner.data("DELETE", f"/credentials/{credential['id']}")
    detail = await partner.data("GET", f"/usage/{credential['id']}")
    assert counts(detail["summary"]) == (1, 1, 0)
    assert detail["summary"]["period_start"] == credential["created_at"]
    assert abs(datetime.fromisoformat(detail["summary"]["period_end"]) - now) < timedelta(minutes=1)
    ended = await partner.data("GET", f"/usage/{credential['id']}?end_date=2020-01-01")
    assert (counts(ended["summary"]), ended["daily"]) == ((0, 0, 0), [])


@pytest.mark.parametrize("path", ["/usage", "/usage/{credential}", "/users/{user}/usage", "/users/usage/summary"])
async def test_wrong_dates_are_refused(partner: Partner, path: str) -> None:
    user = await partner.user()
    credential, _ = await partner.issued(user)
    path = path.format(credential=credential["id"], user=user["id"])
    for field in ("start_date", "end_date"):
        for wrong in ("yesterday", "2026-02-30", "2026-1-1", "", "20260101", "2026-01-01T25:00", "1767225600", "%00"):
            reply = await partner.get(f"{path}?{field}={wrong}")
            assert (reply.status, reply.error) == (400, f"Invalid {field} format"), wrong
    turned = await partner.get(f"{path}?start_date=2026-03-02T00:00:00Z&end_date=2026-03-01T23:59:59Z")
    assert (turned.status, turned.error) == (400, "start_date must not be after end_date")
    assert (await partner.get(f"{path}?start_date=2026-03-01&end_date=2026-03-01")).status == 200
    for extreme in ("start_date=0001-01-01T00:00:00%2B14:00", "end_date=9999-12-31T23:59:59-14:00"):
        assert (await partner.get(f"{path}?{extreme}")).status == 400


@pytest.mark.parametrize("path", ["/usage", "/usage/{credential}", "/users/{user}/usage", "/users/usage/summary"])
async def test_a_period_that_starts_in_the_future_is_empty(partner: Partner, use: Use, path: str) -> None:
    user = await partner.user()
    credential, _ = await partner.issued(user)
    await use(credential, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M"), successful=1)
    path = path.format(credential=credential["id"], user=user["id"])
    data = await partner.data("GET", f"{path}?start_date=2099-01-01")
    summary = data[0] if isinstance(data, list) else data.get("summary", data)
    assert summary["total_requests"] == 0
    if path != "/usage":  # its summaries have no period
        assert (summary["period_start"], summary["period_end"]) == ("2099-01-01T00:00:00Z",) * 2


@pytest.mark.parametrize("path", ["/users/{user}/usage", "/users/usage/summary"])
async def test_the_default_start_is_30_days_before_an_end_that_is_longer_ago(partner: Partner, path: str) -> None:
    user = await partner.user()
    for end, start in (
        ("2026-01-31T12:00:00Z", "2026-01-01T12:00:00Z"),
        ("0001-01-02T00:00:00Z", "0001-01-01T00:00:00Z"),
    ):
        data = await partner.data("GET", f"{path.format(user=user['id'])}?end_date={end}")
        shown = data[0] if isinstance(data, list) else data
        assert (shown["period_start"], shown["period_end"]) == (start, end)


async def test_a_users_usage_sums_all_its_credentials(partner: Partner, use: Use) -> None:
    user = await partner.user(name="Bob", external_id="b")
    now = datetime.now(UTC)
    today, long_ago = now.strftime("%Y-%m-%dT%H:%M"), (now - timedelta(days=31)).strftime("%Y-%m-%dT%H:%M")
    first, second = (await partner.issued(user))[0], (await partner.issued(user))[0]
    revoked = (await partner.issued(user))[0]
    await use(first, today, successful=2, failed=1, took_ms=30)
    await use(second, today, successful=1, took_ms=10)
    await use(revoked, today, failed=1, took_ms=2)
    await use(first, long_ago, successful=100, took_ms=100)
    await partner.data("DELETE", f"/credentials/{revoked['id']}")
    reply = await partner.get(f"/users/{user['id']}/usage")
    usage = reply.body["data"]
    assert list(usage) == [
        "user_account_id",
        "user_name",
        "external_id",
        "total_requests",
        "successful_requests",
        "failed_requests",
        "avg_response_time_ms",
        "credential_count",
        "period_start",
        "period_end",
    ]
    assert (usage["user_account_id"], usage["user_name"], usage["external_id"]) == (user["id"], "Bob", "b")
    assert (counts(usage), usage["avg_response_time_ms"], usage["credential_count"]) == ((5, 3, 2), 8.4, 2)
    start, end = (datetime.fromisoformat(usage[field]) for field in ("period_start", "period_end"))
    assert end - start == timedelta(days=30)
    assert abs(end - now) < timedelta(minutes=1)
    whole = await partner.data("GET", f"/users/{user['id']}/usage?start_date=2000-01-01")
    assert whole["total_requests"] == 105
    unused = await partner.data("GET", f"/users/{(await partner.user())['id']}/usage")
    assert (counts(unused), unused["avg_response_time_ms"], unused["credential_count"]) == ((0, 0, 0), 0, 0)


async def test_an_expired_credential_is_not_counted_as_active(partner: Partner, db: asyncpg.Connection) -> None:
    user = await partner.user()
    credential, _ = await partner.issued(user, expires_at="2199-01-01")
    assert (await partner.data("GET", f"/users/{user['id']}/usage"))["credential_count"] == 1
    await db.execute("UPDATE partner.credential SET expires_at = now() WHERE id = $1", credential["id"])
    assert (await partner.data("GET", f"/users/{user['id']}/usage"))["credential_count"] == 0


async def test_the_summary_lists_active_users_by_requests(partner: Partner, use: Use) -> None:
    today = datetime.now(UTC).date().isoformat()
    users = [await partner.user(name=str(number)) for number in range(4)]
    credentials = [(await partner.issued(user))[0] for user in users]
    await use(credentials[0], f"{today}T00:00", successful=1, took_ms=5)
    await use(credentials[1], f"{today}T00:00", successful=7, took_ms=7)
    await use(credentials[3], f"{today}T00:00", failed=9)
    await partner.data("POST", f"/users/{users[3]['id']}/suspend")
    reply = await partner.get(f"/users/usage/summary?start_date={today}&end_date={today}")
    assert [(usage["user_name"], *counts(usage)) for usage in reply.body["data"]] == [
        ("1", 7, 7, 0),
        ("0", 1, 1, 0),
        ("2", 0, 0, 0),
    ]
    assert reply.body["pagination"] == {"limit": 20, "offset": 0, "total": 3, "hasMore": False}
    assert reply.body["data"][0] == await partner.data(
        "GET", f"/users/{users[1]['id']}/usage?start_date={today}&end_date={today}"
    )
    page = await partner.get("/users/usage/summary?limit=1&offset=1")
    assert [usage["user_name"] for usage in page.body["data"]] == ["0"]
    assert page.body["pagination"] == {"limit": 1, "offset": 1, "total": 3, "hasMore": True}
    assert (await partner.get("/users/usage/summary?limit=101")).error == "limit must be between 1 and 100"
