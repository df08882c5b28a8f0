"""One partner's load does not slow another: turns, stored totals, lists of one snapshot, retention. Decision 0022."""

import asyncio
import random
from uuid import UUID

import asyncpg
import pytest

from api.admin import usage
from api.http.turns import FairPool
from api.sources import retention
from api.sources.chain_servers import CONNECTIONS_EACH
from api.sources.retention import Pruned
from shared import database
from shared.settings import Settings
from tests.api.chains import Chain, Tx, hash_of
from tests.api.client import Client
from tests.api.conftest import IssueKey, Use
from tests.api.locks import until_blocked
from tests.api.partners import Partner, counts
from tests.patience import PATIENCE_S, OwnTime

CREDENTIALS = 20_000
LISTS = 200
"""The number of credentials that are compared with their totals."""
FAST_S = 2.0
"""Far above the present time of these calls, far below the former one."""


async def fill(db: asyncpg.Connection, partner: Partner, days: int) -> None:
    """CREDENTIALS of one partner with 100,000,000 requests, each on `days` days."""
    owner = UUID(partner.record["id"])
    await db.execute(
        """
        WITH account AS (INSERT INTO partner.user_account (admin_key_id, name) VALUES ($1, 'busy') RETURNING id)
        INSERT INTO partner.credential
            (user_account_id, admin_key_id, created_at, rate_limit_per_minute, network_id, key_hash,
             api_key_prefix, name)
        SELECT id, $1, now() - number * interval '1 second', 60, 1, sha256(number::text::bytea), 'iiak_', number::text
        FROM account, generate_series(1, $2) AS number
        """,
        owner,
        CREDENTIALS,
    )
    await db.execute(
        """
        INSERT INTO partner.usage_day (credential_id, day, successful, failed, took_us)
        SELECT id, current_date - day, 5000 / $2 - 1, 1, 1 FROM partner.credential, generate_series(1, $2) AS day
        WHERE admin_key_id = $1
        """,
        owner,
        days,
    )
    if await db.fetchval("SELECT to_regclass('partner.usage_total')") is not None:
        await db.execute(
            """
            INSERT INTO partner.usage_total (credential_id, admin_key_id, created_at, successful, failed)
            SELECT id, admin_key_id, created_at, 5000 - name::int % 7, name::int % 7 FROM partner.credential
            WHERE admin_key_id = $1
            """,
            owner,
        )
    await db.execute("UPDATE partner.admin_key SET credentials = $2 WHERE id = $1", owner, CREDENTIALS)
    await db.execute("VACUUM ANALYZE partner.credential, partner.usage_day")


async def test_connections_are_lent_in_the_order_of_the_requests(database_url: str) -> None:
    served: list[int] = []
    async with await database.create_pool(database_url, None, max_size=2) as pool:
        fair = FairPool(pool, 2)
        async with fair.acquire(), fair.acquire():  # both are open, so that none has to wait for a connect
            pass

        async def ask(number: int) -> None:
            async with fair.acquire() as db:
                served.append(number)
                await db.fetchval("SELECT 1")

        asking: list[asyncio.Task[None]] = []
        while not served or served[-1] < 100:  # more arrive while others wait
            asking.append(asyncio.create_task(ask(len(asking))))
            await asyncio.sleep(0)
        await asyncio.gather(*asking)
    assert served == list(range(len(asking)))


async def test_a_partner_with_many_credentials_delays_neither_other_partners_nor_ready(
    api: Client, partner: Partner, rival: Partner, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine they may take longer, but are answered before most of the partner's requests that wait."""
    monkeypatch.setattr("api.operate.health._ANSWER_WITHIN_S", PATIENCE_S)
    await fill(db, partner, days=10)
    user = await rival.user()
    period = "&start_date=2000-01-01"  # which adds up days: the most expensive of all lists
    for query in ("", period):
        loading = [asyncio.create_task(partner.get(f"/usage?limit=1{query}")) for _ in range(40)]
        for path in ("/ready", f"/v1/admin/users/{user['id']}", "/v1/admin/usage", "/ready"):
            await asyncio.sleep(0.1)
            took, waiting = OwnTime(), [each for each in loading if not each.done()]
            reply = await api.get(path, rival.admin_key)
            still_waiting = sum(not each.done() for each in waiting)
            assert took.seconds < FAST_S or still_waiting > len(waiting) / 2, (path, query, still_waiting)
            assert reply.status == (503 if path == "/ready" else 200)
            assert path != "/ready" or reply.error == "Not ready: no network is available yet"
        for task in loading:
            task.cancel()
        await asyncio.gather(*loading, return_exceptions=True)


async def test_a_list_of_usage_costs_its_page(partner: Partner, db: asyncpg.Connection) -> None:
    """Measured in database pages, which do not depend on the load of the machine."""
    await fill(db, partner, days=1)
    await db.execute("VACUUM ANALYZE partner.usage_total")
    owner = UUID(partner.record["id"])
    for limit, offset, most in ((20, 0, 300), (100, 0, 1_200), (1, 19_999, 600)):
        reply = await partner.get(f"/usage?limit={limit}&offset={offset}")
        assert reply.body["pagination"]["total"] == CREDENTIALS
        assert [entry["total_requests"] for entry in reply.body["data"]] == [5_000] * limit
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {usage._credentials_totals.text}"
        (told,) = await db.fetchval(explain, owner, limit, offset)
        assert told["Plan"]["Shared Hit Blocks"] + told["Plan"]["Shared Read Blocks"] < most


async def test_stored_totals_order_the_list_and_equal_the_days(
    partner: Partner, use: Use, db: asyncpg.Connection
) -> None:
    chance = random.Random(1)
    user = await partner.user()
    credentials = [(await partner.issued(user, name=str(number)))[0] for number in range(12)]
    for _ in range(60):
        day = chance.randrange(1, 28)
        used = {"successful": chance.randrange(3), "failed": chance.randrange(3)}
        await use(chance.choice(credentials[:9]), f"2026-03-{day:02}T10:00", **used)
    kept = (await partner.get("/usage?limit=100")).body["data"]
    summed = (await partner.get("/usage?limit=100&start_date=2000-01-01")).body["data"]
    assert kept == summed
    assert len(kept) == (await partner.get("/usage")).body["pagination"]["total"] == 12
    assert [entry["credential_name"] for entry in kept[-3:]] == ["11", "10", "9"]
    paged = [(await partner.get(f"/usage?limit=1&offset={offset}")).body["data"][0] for offset in range(12)]
    assert paged == kept
    differing = await db.fetch(
        """
        SELECT credential_id FROM partner.usage_total
        FULL JOIN (
            SELECT credential_id, sum(successful) AS good, sum(failed) AS bad FROM partner.usage_day GROUP BY 1
        ) AS days USING (credential_id)
        WHERE successful <> coalesce(good, 0) OR failed <> coalesce(bad, 0) OR usage_total.admin_key_id IS NULL
        """
    )
    assert differing == []


async def test_a_page_and_its_total_are_from_one_snapshot(partner: Partner) -> None:
    """While users, credentials and audit entries are added, every list matches its total."""
    user = await partner.user()
    asked, wrong = 0, []
    churning = True

    async def churn() -> None:
        while churning:
            await partner.user()
            credential, _ = await partner.issued(user)
            await partner.call("DELETE", f"/credentials/{credential['id']}")

    async def look(path: str) -> None:
        nonlocal asked
        offset = 0
        while churning:
            body = (await partner.get(f"{path}?limit=100&offset={offset}")).body
            rows, page = len(body["data"]), body["pagination"]
            left = max(page["total"] - offset, 0)
            asked += 1
            if rows != min(left, 100) or page.get("hasMore", left > rows) != (left > rows):
                wrong.append((path, rows, page))
            offset = max(page["total"] - 50, 0)

    paths = ["/users", "/credentials", "/audit-logs", "/usage", "/users/usage/summary"]
    working = [asyncio.create_task(work) for work in [churn(), churn(), *(look(path) for path in paths)]]
    async with asyncio.timeout(PATIENCE_S):
        while asked < LISTS and not wrong:
            await asyncio.sleep(0.05)
    churning = False
    await asyncio.gather(*working)
    assert wrong == []


async def test_a_slow_statement_of_an_admin_key_is_cancelled(
    partner: Partner, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = await database.create_pool(database_url, None, max_size=1, within_s=1)
    with pytest.raises(asyncpg.QueryCanceledError):
        await pool.execute("SELECT pg_sleep(10)")
    await pool.close()

    async def slow(*_: object) -> list[object]:
        raise asyncpg.QueryCanceledError("canceling statement due to statement timeout")

    monkeypatch.setattr("api.admin.usage._credentials_totals.all", slow)
    reply = await partner.get("/usage")
    assert (reply.status, reply.error) == (503, "Request timed out")


# Turns ----------------------------------------------------------------------------------------------------------------


async def test_a_key_with_many_chain_requests_delays_no_other_key(
    api: Client, chain: Chain, issue_key: IssueKey, db: asyncpg.Connection
) -> None:
    """One key's 30 requests wait for a lock. Without turns, eight of them held all connections of the network."""
    await chain.append(10, Tx(name="a"))
    busy, other = await issue_key(), await issue_key()
    async with db.transaction():
        await db.execute("LOCK TABLE chain_preview.tx")
        loading = [asyncio.create_task(api.get(f"/v1/tx/hash/{hash_of('a').hex()}", busy)) for _ in range(30)]
        await until_blocked(db, CONNECTIONS_EACH)
        assert (await api.get(f"/v1/assets/policy/{'00' * 28}", other)).status == 200
        assert sum(not each.done() for each in loading) > 20
    assert {(await each).status for each in loading} <= {200, 503}


# Retention ------------------------------------------------------------------------------------------------------------


async def test_old_minutes_are_deleted_and_their_days_kept(
    partner: Partner, use: Use, db: asyncpg.Connection, database_url: str
) -> None:
    credential, _ = await partner.issued(await partner.user())
    for at in ("2020-01-01T10:00", "2020-01-01T20:00", "2020-01-02T10:00"):
        await use(credential, at, successful=1)
    today = (await db.fetchval("SELECT now() AT TIME ZONE 'UTC'")).strftime("%Y-%m-%dT00:00")
    await use(credential, today, failed=2)
    await db.execute(
        "INSERT INTO partner.usage SELECT $1, timestamptz '2019-01-01' + n * interval '1 minute', 1, 0, 1"
        " FROM generate_series(1, 5000) AS n",
        UUID(credential["id"]),
    )
    await db.execute("INSERT INTO partner.endpoint (name) VALUES ('GET /x')")
    await db.execute(
        "INSERT INTO partner.usage_hour SELECT $1, now() - n * interval '1 hour', endpoint_no, 2, 1, 1, '{}'"
        " FROM partner.endpoint, generate_series(0, 4799) AS n",
        UUID(credential["id"]),
    )
    pool = await database.create_pool(database_url, None, max_size=2)
    assert await retention.prune(pool, Settings(usage_minutes_days=30, usage_hours_days=100)) == Pruned(
        usage_minutes=5_003, usage_hours=2_400
    )
    assert await db.fetchval("SELECT count(*) FROM partner.usage_hour") == 2_400
    assert await db.fetchval("SELECT count(*) FROM partner.usage") == 1
    path = f"/usage/{credential['id']}"
    assert counts((await partner.data("GET", f"{path}?start_date=2020-01-01"))["summary"]) == (5, 3, 2)
    part = await partner.data("GET", f"{path}?start_date=2020-01-01T15:00:00Z&end_date=2020-01-02T01:00:00Z")
    assert counts(part["summary"]) == (3, 3, 0), "exact to the day, where minutes are gone"
    minute = f"{today}:00Z"
    assert counts((await partner.data("GET", f"{path}?start_date={minute}&end_date={today}:30Z"))["summary"]) == (
        2,
        0,
        2,
    )
    assert counts((await partner.get("/usage")).body["data"][0]) == (5, 3, 2)
    await pool.close()


async def test_old_entries_of_reads_are_deleted_and_those_of_changes_kept(
    partner: Partner, db: asyncpg.Connection, database_url: str
) -> None:
    user = await partner.user()
    for _ in range(3):
        await partner.data("GET", f"/users/{user['id']}")
        await partner.get("/credentials")
    await db.execute("UPDATE partner.audit_log SET created_at = now() - interval '91 days'")
    await partner.get("/users")
    pool = await database.create_pool(database_url, None, max_size=2)
    assert await retention.prune(pool, Settings()) == Pruned(audit_readings=6)
    assert await partner.actions() == ["user_account.listed", "user_account.created"]
    await pool.close()


async def test_one_process_prunes_at_a_time(database_url: str) -> None:
    pool = await database.create_pool(database_url, None, max_size=2)
    async with retention._step(pool):
        with pytest.raises(retention.Busy):
            await retention.prune(pool, Settings())
    assert await retention.prune(pool, Settings()) == Pruned()
    await pool.close()
