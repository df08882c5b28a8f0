"""Admission of chain requests: valid keys, and requests per minute. docs/http-api.md, "Keys" and "Rate limits"."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from redis.asyncio import Redis

from api.http.turns import FairPool
from api.keys import tokens
from api.keys import valkey as valkeys
from api.keys.caller import Callers, KeyReader
from api.keys.limits.scripts import LEASE_S
from api.keys.limits.shared import SharedLimits
from api.keys.limits.verdicts import AskPostgres, KeyLease, Verdict
from shared import database
from tests.api.client import Client, Reply, serving
from tests.api.conftest import IssueKey
from tests.api.minutes import good_key, shorten_minute
from tests.api.own_valkey import OwnValkey
from tests.api.partners import BOOTSTRAP_KEY, CHAIN_PATH, NOTHING_INDEXED, Partner, partner_of
from tests.patience import PATIENCE_S, OwnTime
from tests.processes.relay import TcpRelay

RATE_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[OwnValkey]:
    """A separate Valkey for this test."""
    server = OwnValkey(tmp_path / "valkey")
    server.start()
    yield server
    server.kill()


@pytest.fixture
async def second(environment: dict[str, str], api: Client) -> AsyncIterator[Client]:
    """Another API process as regards keys and limits, on the same database and Valkey as `api`."""
    assert api.port
    async with serving(environment) as client:
        yield client


# Valid keys -----------------------------------------------------------------------------------------------------------


async def test_a_missing_or_malformed_header_is_401(api: Client, key: str) -> None:
    for headers in ({}, *({"Authorization": text} for text in ("", "Bearer", f"Basic {key}", key, f"Bearer {key} x"))):
        reply = await api.call("GET", CHAIN_PATH, headers=headers)
        assert (reply.status, reply.error) == (401, "Missing or invalid API key"), headers
        assert not any(name in reply.headers for name in RATE_HEADERS)


async def test_an_unknown_key_is_403(api: Client, key: str, partner: Partner) -> None:
    unknown = ("x", key[:-1], key + "0", key.upper(), tokens.new_api_key(), BOOTSTRAP_KEY, partner.admin_key)
    for token in unknown:
        reply = await api.get(CHAIN_PATH, token)
        assert (reply.status, reply.error) == (403, "Invalid API key"), token
        assert not any(name in reply.headers for name in RATE_HEADERS)


async def test_a_key_works_only_on_its_network(api: Client, issue_key: IssueKey, db: asyncpg.Connection) -> None:
    """Preview is indexed here, the others are not."""
    await db.execute(
        "INSERT INTO chain_preview.tip (slot_no, block_no, block_hash, first_block_no, tx_count, phase)"
        " VALUES (1, 1, $1, 0, 0, 'live')",
        bytes(32),
    )
    statuses = {network_id: (await api.get(CHAIN_PATH, await issue_key(network_id))).status for network_id in (0, 1, 2)}
    assert statuses == {0: 503, 1: 404, 2: 503}


async def test_suspension_and_reactivation_apply_to_the_next_request_on_every_process(
    api: Client, second: Client, partner: Partner
) -> None:
    user = await partner.user()
    keys = [(await partner.issued(user))[1] for _ in range(3)]
    for _ in range(5):
        for key in keys:
            assert (await second.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
        await partner.data("POST", f"/users/{user['id']}/suspend")
        for client in (second, api):
            for key in keys:
                refused = await client.get(CHAIN_PATH, key)
                assert (refused.status, refused.error) == (403, "User account is not active")
        await partner.data("POST", f"/users/{user['id']}/reactivate")


async def test_a_pending_account_is_not_active(partner: Partner, db: asyncpg.Connection) -> None:
    user = await partner.user()
    _, key = await partner.issued(user)
    await db.execute("UPDATE partner.user_account SET status = 'pending' WHERE id = $1", UUID(user["id"]))
    assert (await partner.api.get(CHAIN_PATH, key)).error == "User account is not active"


async def test_a_key_expires_on_time_although_valkey_caches_it(partner: Partner) -> None:
    expires_at = datetime.now(UTC) + timedelta(seconds=1)
    _, key = await partner.issued(await partner.user(), expires_at=expires_at.isoformat(), rate_limit_per_minute=10_000)
    while (started := datetime.now(UTC)) < expires_at + timedelta(seconds=0.3):
        reply = await partner.api.get(CHAIN_PATH, key)
        if started >= expires_at:
            assert (reply.status, reply.error) == (403, "API key has expired")
        elif datetime.now(UTC) < expires_at:
            assert reply.status == NOTHING_INDEXED


async def test_a_revoked_key_is_refused_by_the_next_request_despite_concurrent_ones(
    api: Client, second: Client, partner: Partner
) -> None:
    """Requests to both processes constantly fill the cache; none that begins after the answer may be admitted."""
    user = await partner.user()

    async def hammer(client: Client, key: str, revoked: asyncio.Event) -> list[Reply]:
        late = []
        for _ in range(5_000):
            after = revoked.is_set()
            reply = await client.get(CHAIN_PATH, key)
            if after:
                late.append(reply)
                if len(late) == 3:
                    break
        return late

    for _ in range(10):
        credential, key = await partner.issued(user, rate_limit_per_minute=10_000)
        revoked = asyncio.Event()
        hammering = [asyncio.create_task(hammer(client, key, revoked)) for client in (api, second, api, second)]
        await asyncio.sleep(random.uniform(0, 0.05))
        await partner.data("DELETE", f"/credentials/{credential['id']}")
        revoked.set()
        for late in await asyncio.gather(*hammering):
            assert [(reply.status, reply.error) for reply in late] == [(403, "Invalid API key")] * 3


async def test_a_key_read_before_its_withdrawal_is_not_cached(redis_url: str) -> None:
    """The race in slow motion: Postgres is queried, the key is invalidated, and only then the answer is cached."""
    async with valkeys.opened(redis_url) as client:
        minutes, key_hash, key = SharedLimits(client), bytes(32), good_key()
        asked = await minutes.take(key_hash)
        assert isinstance(asked, AskPostgres)
        await minutes.fence([key_hash])
        assert isinstance(await minutes.take(key_hash, KeyLease(key, asked.until_us, asked.life)), Verdict)
        assert isinstance(await minutes.take(key_hash), AskPostgres)


async def test_a_key_read_before_a_loss_of_data_is_not_cached(redis_url: str) -> None:
    """The same, but the fence is lost before the answer is cached."""
    async with valkeys.opened(redis_url) as client, Redis.from_url(redis_url) as redis:
        minutes, key_hash, key = SharedLimits(client), bytes(32), good_key()
        asked = await minutes.take(key_hash)
        assert isinstance(asked, AskPostgres)
        await minutes.fence([key_hash])
        await redis.flushdb()
        assert isinstance(await minutes.take(key_hash, KeyLease(key, asked.until_us, asked.life)), Verdict)
        assert isinstance(await minutes.take(key_hash), AskPostgres)


async def test_a_key_read_too_long_ago_is_not_cached(redis_url: str) -> None:
    """A cached key expires within LEASE_S of the start of the query, so an invalidation can wait for that time."""
    async with valkeys.opened(redis_url) as client:
        minutes, key_hash, key = SharedLimits(client), bytes(32), good_key()
        asked = await minutes.take(key_hash)
        assert isinstance(asked, AskPostgres)
        late = KeyLease(key, asked.until_us - LEASE_S * 1_000_000, asked.life)
        assert isinstance(await minutes.take(key_hash, late), Verdict)
        assert isinstance(await minutes.take(key_hash), AskPostgres)
        soon_over = KeyLease(key, asked.until_us - (LEASE_S - 2) * 1_000_000, asked.life)
        assert isinstance(await minutes.take(key_hash, soon_over), Verdict)
        assert isinstance(await minutes.take(key_hash), Verdict)
        async with asyncio.timeout(PATIENCE_S):
            while not isinstance(await minutes.take(key_hash), AskPostgres):
                await asyncio.sleep(0.05)


async def test_a_known_key_is_admitted_in_one_round_trip(
    environment: dict[str, str], valkey: OwnValkey, db: asyncpg.Connection
) -> None:
    async with serving(environment | {"REDIS_URL": valkey.url}) as api:
        partner = await partner_of(api, "ACME")
        _, key = await partner.issued(await partner.user())
        await api.get(CHAIN_PATH, key)
        await db.execute("ALTER TABLE partner.credential RENAME TO hidden")  # queries fail
        before: Any = valkey.client.info("commandstats")
        for _ in range(10):
            assert (await api.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
        after: Any = valkey.client.info("commandstats")
        assert after["cmdstat_evalsha"]["calls"] - before["cmdstat_evalsha"]["calls"] in range(
            10, 25
        )  # and the queue's
        await db.execute("ALTER TABLE partner.hidden RENAME TO credential")


# Without Valkey, and when it comes back -------------------------------------------------------------------------------


async def test_without_valkey_the_api_answers_and_each_process_limits_alone(
    environment: dict[str, str], valkey: OwnValkey
) -> None:
    async with serving(environment | {"REDIS_URL": valkey.url}) as api:
        partner = await partner_of(api, "ACME")
        _, key = await partner.issued(await partner.user(), rate_limit_per_minute=5)
        valkey.kill()
        replies = [await api.get(CHAIN_PATH, key) for _ in range(7)]
        assert [reply.status for reply in replies] == [NOTHING_INDEXED] * 5 + [429] * 2
        assert [reply.headers["RateLimit-Remaining"] for reply in replies] == ["4", "3", "2", "1", "0", "0", "0"]
        assert b"ledgerline_rate_limits_shared 0.0" in await metrics(api)
        assert (await api.get(CHAIN_PATH, tokens.new_api_key())).status == 403
        valkey.start()
        await limits_are_shared(api)
        refused = await api.get(CHAIN_PATH, key)  # which this process knows, but Valkey does not
        assert (refused.status, refused.headers["RateLimit-Remaining"]) == (429, "0")
        assert (await api.get(CHAIN_PATH, tokens.new_api_key())).status == 403
        assert b"ledgerline_rate_limits_shared 1.0" in await metrics(api)


async def metrics(api: Client) -> bytes:
    """The text of /metrics."""
    reply = await api.get("/metrics")
    assert reply.status == 200
    text: bytes = reply.body
    return text


async def limits_are_shared(api: Client) -> None:
    """Send requests with unknown keys until Valkey is used again."""
    async with asyncio.timeout(PATIENCE_S):
        while b"ledgerline_rate_limits_shared 0.0" in await metrics(api):
            assert (await api.get(CHAIN_PATH, tokens.new_api_key())).status == 403
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("trouble", ["killed", "frozen", "back with older data"])
async def test_a_revocation_without_valkey_holds_when_valkey_is_back(
    environment: dict[str, str], valkey: OwnValkey, trouble: str, tmp_path: Path
) -> None:
    """Its data from before the revocation show the key as valid. The answer waits until no process trusts them."""
    async with serving(environment | {"REDIS_URL": valkey.url}) as api:
        partner = await partner_of(api, "ACME")
        credential, key = await partner.issued(await partner.user())
        assert (await api.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
        valkey.copy(tmp_path / "older")
        if trouble == "killed":
            valkey.kill()
        elif trouble == "frozen":
            valkey.freeze()
        took = OwnTime()
        await partner.data("DELETE", f"/credentials/{credential['id']}")
        took_s = took.seconds
        assert (await api.get(CHAIN_PATH, key)).status == 403
        if trouble == "frozen":
            valkey.thaw()
        elif trouble == "killed":
            valkey.start()
        else:
            assert took_s < LEASE_S, "with Valkey at hand nothing has to be waited out"
            valkey.kill()
            valkey.put_back(tmp_path / "older")
            valkey.start()
        for _ in range(20):  # while Valkey is away, while it returns, and afterwards
            reply = await api.get(CHAIN_PATH, key)
            assert (reply.status, reply.error) == (403, "Invalid API key")
            await asyncio.sleep(0.1)


async def test_a_process_that_cannot_reach_valkey_waits_until_cached_keys_expire(
    api: Client, partner: Partner, environment: dict[str, str], redis_url: str
) -> None:
    """The revoking process has lost Valkey, the serving one has not."""
    credential, key = await partner.issued(await partner.user())
    relay = TcpRelay()
    try:
        relay.open()
        apart = environment | {"REDIS_URL": relay.in_front_of(redis_url)}
        async with serving(apart) as revoking:
            relay.close()
            assert (await api.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
            path = f"/v1/admin/credentials/{credential['id']}"
            assert (await revoking.call("DELETE", path, partner.admin_key)).status == 200
            assert (await api.get(CHAIN_PATH, key)).error == "Invalid API key"
    finally:
        relay.end()


async def test_a_key_that_is_cached_again_before_the_commit_is_refused_after_it(
    api: Client, partner: Partner, db: asyncpg.Connection, database_url: str, redis_url: str
) -> None:
    """Valkey loses its data, and with it the first fence, while the revocation is not committed yet."""
    credential, key = await partner.issued(await partner.user())
    async with (
        await database.create_pool(database_url, None, max_size=1) as pool,
        valkeys.opened(redis_url) as client,
        Callers(pool, client, None).invalidating() as invalidation,
        db.transaction(),
    ):
        await db.execute("UPDATE partner.credential SET revoked_at = now() WHERE id = $1", UUID(credential["id"]))
        await invalidation.of([tokens.hash_of(key)])
        await client.ask(valkeys.packed(b"FLUSHDB"))
        assert (await api.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
    assert (await api.get(CHAIN_PATH, key)).error == "Invalid API key"


async def test_requests_that_wait_for_a_connection_share_a_reading_that_begins_after_them(
    partner: Partner, db: asyncpg.Connection, database_url: str
) -> None:
    _, key = await partner.issued(await partner.user())
    key_hash = tokens.hash_of(key)
    async with await database.create_pool(database_url, None, max_size=1) as pool:
        fair = FairPool(pool, 1)
        keys = KeyReader(fair)
        async with fair.acquire():
            waiting = [asyncio.create_task(keys.read(key_hash)) for _ in range(3)]
            await asyncio.sleep(0)
            await db.execute("UPDATE partner.credential SET revoked_at = now() WHERE key_hash = $1", key_hash)
        first, *others = await asyncio.gather(*waiting)
        assert first is not None
        assert first.revoked
        assert all(other is first for other in others)
        assert await keys.read(key_hash) is not first


async def test_a_process_that_dies_right_after_its_commit_has_fenced_the_keys_before(
    api: Client, partner: Partner, db: asyncpg.Connection, database_url: str, redis_url: str
) -> None:
    credential, key = await partner.issued(await partner.user())
    assert (await api.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
    async with await database.create_pool(database_url, None, max_size=1) as pool, valkeys.opened(redis_url) as client:
        invalidating = Callers(FairPool(pool, 1), client, None).invalidating()
        invalidation = await invalidating.__aenter__()
        async with db.transaction():
            await db.execute("UPDATE partner.credential SET revoked_at = now() WHERE id = $1", UUID(credential["id"]))
            await invalidation.of([tokens.hash_of(key)])
    assert (await api.get(CHAIN_PATH, key)).error == "Invalid API key"


# Requests per minute --------------------------------------------------------------------------------------------------


async def test_every_chain_answer_has_rate_headers_and_a_429_also_retry_after(api: Client, issue_key: IssueKey) -> None:
    key = await issue_key(per_minute=4)
    paths = [CHAIN_PATH, "/v1/tx/hash/nonsense", "/v1/tx/history/nonsense?limit=0", CHAIN_PATH]
    for remaining, path in zip((3, 2, 1, 0), paths, strict=True):
        reply = await api.get(path, key)
        assert reply.status in {400, NOTHING_INDEXED}
        assert (reply.headers["RateLimit-Limit"], reply.headers["RateLimit-Remaining"]) == ("4", str(remaining))
        assert 55 <= int(reply.headers["RateLimit-Reset"]) <= 60
        assert "Retry-After" not in reply.headers
    for _ in range(3):
        refused = await api.get(CHAIN_PATH, key)
        assert (refused.status, refused.error) == (429, "Rate limit exceeded")
        assert (refused.headers["RateLimit-Limit"], refused.headers["RateLimit-Remaining"]) == ("4", "0")
        assert refused.headers["Retry-After"] == refused.headers["RateLimit-Reset"]
        assert 50 <= int(refused.headers["Retry-After"]) <= 60
    assert (await api.get(CHAIN_PATH, await issue_key(per_minute=4))).headers["RateLimit-Remaining"] == "3"


async def test_the_limit_is_exact_over_all_processes(api: Client, second: Client, issue_key: IssueKey) -> None:
    key = await issue_key(per_minute=50)
    replies = await asyncio.gather(*(client.get(CHAIN_PATH, key) for _ in range(60) for client in (api, second)))
    assert sorted(reply.status for reply in replies) == [429] * 70 + [NOTHING_INDEXED] * 50
    admitted = [reply for reply in replies if reply.status == NOTHING_INDEXED]
    assert sorted(int(reply.headers["RateLimit-Remaining"]) for reply in admitted) == list(range(50))


async def test_the_limit_is_exact_for_more_callers_than_connections_to_valkey(api: Client, issue_key: IssueKey) -> None:
    key = await issue_key(per_minute=100)
    request = f"GET {CHAIN_PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
    answers = await asyncio.gather(*(api.raw(request.encode()) for _ in range(300)))
    statuses = sorted(answer.split()[1] for answer in answers)
    assert statuses == [b"429"] * 200 + [str(NOTHING_INDEXED).encode()] * 100
    assert b"ledgerline_rate_limits_shared 1.0" in await metrics(api)


async def test_no_window_admits_more_than_the_limit(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bursts and pauses on four connections, against a minute of 0.2 s; refused requests do not count."""
    window_s, limit = 0.2, 7
    shorten_minute(monkeypatch, window_s)
    admitted: list[tuple[float, float]] = []
    refused = 0
    key = good_key(limit)

    async def ask(seed: int) -> None:
        nonlocal refused
        chance = random.Random(seed)
        async with valkeys.opened(redis_url) as client:
            minutes = SharedLimits(client)
            await minutes.take(bytes(31) + b"1", KeyLease(good_key()))  # begins a life of Valkey's data
            while refused <= 100 or len(admitted) < 13 * limit:  # a full minute later there is room again
                before = time.monotonic()
                taken = await minutes.take(bytes(32), KeyLease(key))
                after = time.monotonic()
                assert isinstance(taken, Verdict)
                if taken.admitted:
                    admitted.append((before, after))
                else:
                    refused += 1
                await asyncio.sleep(chance.choice([0, 0, 0.001, 0.01, 0.05]))

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(ask(seed) for seed in range(4)))
    admitted.sort()
    assert all(later[1] - earlier[0] >= window_s for earlier, later in zip(admitted, admitted[limit:], strict=False))


async def test_after_retry_after_a_request_is_admitted(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_minute(monkeypatch, 1)
    async with valkeys.opened(redis_url) as client:
        minutes, told = SharedLimits(client), KeyLease(good_key(1))
        assert (await minutes.take(bytes(32), told)).admitted  # type: ignore[union-attr]
        refused = await minutes.take(bytes(32), told)
        assert isinstance(refused, Verdict)
        assert (refused.admitted, refused.reset_s) == (False, 1)
        await asyncio.sleep(refused.reset_s)
        assert (await minutes.take(bytes(32), told)).admitted  # type: ignore[union-attr]


async def test_admissions_cost_bounded_memory(redis_url: str) -> None:
    async with valkeys.opened(redis_url) as valkey, Redis.from_url(redis_url) as client:
        minutes, told = SharedLimits(valkey), KeyLease(good_key(3))
        for _ in range(20):
            await minutes.take(bytes(32), told)
        (name,) = await client.keys(f"ledgerline:minute:*:{told.key.credential_id}")
        assert await client.llen(name) == 3
        assert 0 < await client.pttl(name) <= 61_000


async def test_no_minute_of_a_process_admits_more_while_valkey_stops_and_starts(
    environment: dict[str, str], redis_url: str, issue_key: IssueKey
) -> None:
    key = await issue_key(per_minute=4)
    relay = TcpRelay()
    try:
        relay.open()
        async with serving(environment | {"REDIS_URL": relay.in_front_of(redis_url)}) as apart:

            async def statuses(requests: int) -> list[int]:
                return [(await apart.get(CHAIN_PATH, key)).status for _ in range(requests)]

            assert await statuses(2) == [NOTHING_INDEXED] * 2
            relay.close()
            assert await statuses(3) == [NOTHING_INDEXED] * 2 + [429]
            relay.open()
            async with asyncio.timeout(PATIENCE_S):
                while b"ledgerline_rate_limits_shared 0.0" in await metrics(apart):
                    await asyncio.sleep(0.1)
                    await apart.get(CHAIN_PATH, key)
            assert await statuses(3) == [429] * 3
        async with Redis.from_url(redis_url) as client:
            # Admissions by Valkey and those reported to it. With refused ones, the key would be refused for longer.
            (minute,) = await client.keys("ledgerline:minute:*")
            assert await client.llen(minute) == 4
    finally:
        relay.end()


# Secrets --------------------------------------------------------------------------------------------------------------


async def test_no_key_is_in_logs_or_metrics(
    api: Client, partner: Partner, capfd: pytest.CaptureFixture[str], db: asyncpg.Connection
) -> None:
    user = await partner.user()
    credential, key = await partner.issued(user)
    await db.execute("ALTER TABLE chain_preview.tip RENAME TO hidden")  # a fault of ours, which is logged at length
    for token in (key, partner.admin_key, BOOTSTRAP_KEY):
        await api.get(CHAIN_PATH, token)
        await api.get(f"/v1/admin/users/{user['id']}?key={token}", token)
        await api.get(f"/{token}")
    await db.execute("ALTER TABLE chain_preview.hidden RENAME TO tip")
    await partner.data("DELETE", f"/credentials/{credential['id']}")
    shown = "".join(capfd.readouterr()) + (await metrics(api)).decode()
    for token in (key, partner.admin_key, BOOTSTRAP_KEY):
        assert token[12:] not in shown
        assert tokens.hash_of(token).hex() not in shown
    assert credential["api_key_prefix"] not in shown
