"""A key after its creation: rotation, limits, restrictions, the end of its account. docs/http-api.md, "Keys"."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from redis.asyncio import Redis

from api.admin.limits import Networks, QuotaKind
from api.keys.restrictions import MAX_NETWORKS, SCOPES
from api.sources import retention
from shared import database
from shared.settings import Settings
from tests.api.client import Client, Reply, serving
from tests.api.conftest import Use
from tests.api.locks import until_blocked
from tests.api.partners import CHAIN_PATH, NOTHING_INDEXED, NOWHERE, Partner
from tests.patience import PATIENCE_S
from tests.processes.relay import TcpRelay

OTHERS = ["10.0.0.0/8", "2001:db8::/32"]
LOOPBACK = ["127.0.0.0/8", "::1/128"]


@pytest.fixture
async def credential(partner: Partner) -> dict[str, Any]:
    """A credential, with its key under `key`."""
    made, key = await partner.issued(await partner.user(name="Alice", external_id="alice"))
    return made | {"key": key}


async def put(partner: Partner, credential: dict[str, Any], what: str, **fields: Any) -> Any:
    """Change limits or restrictions of a credential, which must succeed."""
    return await partner.data("PUT", f"/credentials/{credential['id']}/{what}", fields)


async def rotate(partner: Partner, credential: dict[str, Any], overlap_seconds: int) -> dict[str, Any]:
    """A new key for a credential."""
    path = f"/credentials/{credential['id']}/rotate"
    found: dict[str, Any] = await partner.data("POST", path, {"overlap_seconds": overlap_seconds})
    return found


def told(reply: Reply) -> tuple[int, str]:
    """Status and error."""
    return reply.status, reply.error


async def details(partner: Partner, action: str) -> Any:
    """The details of the last such action, without its request id."""
    found: dict[str, Any] = (await partner.data("GET", f"/audit-logs?action={action}"))[0]["details"]
    return {name: value for name, value in found.items() if name != "request_id"}


# Rotation -------------------------------------------------------------------------------------------------------------


async def test_both_keys_work_until_the_overlap_ends_and_share_one_minute(
    api: Client, second: Client, partner: Partner, credential: dict[str, Any]
) -> None:
    assert (await second.get(CHAIN_PATH, credential["key"])).headers["RateLimit-Remaining"] == "59"
    rotated = await rotate(partner, credential, 2)
    ends_at = datetime.fromisoformat(rotated["former_key"]["ends_at"])
    assert rotated["former_key"]["api_key_prefix"] == credential["api_key_prefix"]
    assert rotated["api_key"].startswith(rotated["credential"]["api_key_prefix"])
    assert {name for name, value in rotated["credential"].items() if value != credential[name]} == {"api_key_prefix"}
    left = 59
    while datetime.now(UTC) < ends_at + timedelta(seconds=0.3):
        began = datetime.now(UTC)
        reply = await second.get(CHAIN_PATH, credential["key"])
        if began >= ends_at:
            assert told(reply) == (403, "API key has expired")
        elif reply.status == NOTHING_INDEXED:
            left -= 1
            assert reply.headers["RateLimit-Remaining"] == str(left)
        await asyncio.sleep(0.1)
    assert (await api.get(CHAIN_PATH, rotated["api_key"])).headers["RateLimit-Remaining"] == str(left - 1)
    assert await details(partner, "credential.rotated") == {
        "name": credential["name"],
        "old": {"api_key_prefix": credential["api_key_prefix"]},
        "new": {"api_key_prefix": rotated["credential"]["api_key_prefix"]},
        "former_key_ends_at": rotated["former_key"]["ends_at"],
    }


async def test_without_overlap_the_next_request_with_the_former_key_is_refused(
    second: Client, partner: Partner, credential: dict[str, Any]
) -> None:
    key = credential["key"]
    for _ in range(5):
        assert (await second.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
        rotated = await rotate(partner, credential, 0)
        assert told(await second.get(CHAIN_PATH, key)) == (403, "API key has expired")
        key = rotated["api_key"]
    await rotate(partner, credential, 600)
    await partner.data("DELETE", f"/credentials/{credential['id']}")
    assert told(await second.get(CHAIN_PATH, key)) == (403, "Invalid API key"), "a revocation ends former keys"
    again = await partner.call("POST", f"/credentials/{credential['id']}/rotate", {"overlap_seconds": 0})
    assert told(again) == (404, "Credential not found or already revoked")


async def test_a_rotation_without_overlap_ends_all_former_keys(
    second: Client, partner: Partner, credential: dict[str, Any]
) -> None:
    keys = [credential["key"]] + [(await rotate(partner, credential, 600))["api_key"] for _ in range(2)]
    for key in keys:
        assert (await second.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
    new = (await rotate(partner, credential, 0))["api_key"]
    for key in keys:
        assert told(await second.get(CHAIN_PATH, key)) == (403, "API key has expired")
    assert (await second.get(CHAIN_PATH, new)).status == NOTHING_INDEXED


async def test_a_suspension_refuses_former_keys(second: Client, partner: Partner, credential: dict[str, Any]) -> None:
    new = (await rotate(partner, credential, 600))["api_key"]
    for key in (credential["key"], new):
        assert (await second.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
    await partner.data("POST", f"/users/{credential['user_account_id']}/suspend")
    for key in (credential["key"], new):
        assert told(await second.get(CHAIN_PATH, key)) == (403, "User account is not active")


async def test_a_rotation_and_the_usage_of_the_key_do_not_block_each_other(
    partner: Partner, credential: dict[str, Any], db: asyncpg.Connection
) -> None:
    async with db.transaction():  # as the aggregator does: usage refers to the credential, then its last use is noted
        await db.execute("INSERT INTO partner.usage VALUES ($1, now(), 1, 0, 1)", credential["id"])
        rotating = asyncio.create_task(rotate(partner, credential, 0))
        await until_blocked(db)
        await db.execute("UPDATE partner.credential SET last_used_at = now() WHERE id = $1", credential["id"])
    await rotating


async def test_an_overlap_is_0_to_30_days_and_required(partner: Partner, credential: dict[str, Any]) -> None:
    path = f"/credentials/{credential['id']}/rotate"
    for wrong in (-1, 30 * 86_400 + 1, "1", None, 0.5):
        assert (await partner.call("POST", path, {"overlap_seconds": wrong})).error.startswith("overlap_seconds ")
    assert (await partner.call("POST", path, {})).error == "overlap_seconds is required"
    assert (await rotate(partner, credential, 30 * 86_400))["api_key"]


async def test_ended_keys_are_forgotten_after_a_month(
    partner: Partner, credential: dict[str, Any], db: asyncpg.Connection, database_url: str
) -> None:
    await rotate(partner, credential, 0)
    await rotate(partner, credential, 0)
    await db.execute(
        "UPDATE partner.former_key SET ends_at = now() - interval '31 days'"
        " WHERE key_hash = (SELECT min(key_hash::text)::bytea FROM partner.former_key)"
    )
    async with await database.create_pool(database_url, None, max_size=1) as pool:
        await retention.prune(pool, Settings())
    assert await db.fetchval("SELECT count(*) FROM partner.former_key") == 1


# Limits ---------------------------------------------------------------------------------------------------------------


async def test_limits_apply_to_the_very_next_request(
    second: Client, partner: Partner, credential: dict[str, Any]
) -> None:
    key = credential["key"]
    assert (await second.get(CHAIN_PATH, key)).headers["RateLimit-Limit"] == "60"
    assert (await put(partner, credential, "limits", rate_limit_per_minute=2))["rate_limit_per_minute"] == 2
    reply = await second.get(CHAIN_PATH, key)
    assert (reply.headers["RateLimit-Limit"], reply.headers["RateLimit-Remaining"]) == ("2", "0")
    assert told(await second.get(CHAIN_PATH, key)) == (429, "Rate limit exceeded")
    await put(partner, credential, "limits", rate_limit_per_minute=100)
    assert (await second.get(CHAIN_PATH, key)).headers["RateLimit-Remaining"] == "97"
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    await put(partner, credential, "limits", expires_at=soon.isoformat())
    async with asyncio.timeout(PATIENCE_S):
        while (await second.get(CHAIN_PATH, key)).status != 403:
            await asyncio.sleep(0.05)
    assert datetime.now(UTC) >= soon
    limits = await put(partner, credential, "limits", expires_at=None)
    assert (await second.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
    assert limits == {
        "credential_id": credential["id"],
        "rate_limit_per_minute": 100,
        "expires_at": None,
        "quota": None,
    }
    assert await partner.data("GET", f"/credentials/{credential['id']}/limits") == limits


async def test_a_change_is_recorded_with_old_and_new_values_and_no_change_says_so(
    partner: Partner, credential: dict[str, Any]
) -> None:
    await put(partner, credential, "limits", rate_limit_per_minute=60, quota={"requests": 9, "per": "day"})
    quota = {"requests": 9, "per": "day"}
    expected = {"name": credential["name"], "fields": ["quota"], "old": {"quota": None}, "new": {"quota": quota}}
    assert await details(partner, "credential.updated") == expected
    await put(partner, credential, "restrictions", scopes=["pools", "assets"], ip_networks=["10.1.2.3"])
    assert await details(partner, "credential.updated") == {
        "name": credential["name"],
        "fields": ["ip_networks", "scopes"],
        "old": {"ip_networks": [], "scopes": []},
        "new": {"ip_networks": ["10.1.2.3/32"], "scopes": ["pools", "assets"]},
    }
    before = await partner.actions()
    for what, same in (("limits", {"quota": quota}), ("restrictions", {"ip_networks": ["10.1.2.3/32"]})):
        reply = await partner.call("PUT", f"/credentials/{credential['id']}/{what}", same)
        assert reply.body["message"] == f"{what.capitalize()} unchanged"
    assert (await partner.actions())[:2] == ["credential.viewed"] * 2
    assert (await partner.actions())[2:] == before


WRONG_QUOTAS: tuple[Any, ...] = (
    5,
    {},
    {"requests": 0, "per": "day"},
    {"requests": 1, "per": "hour"},
    {"requests": True, "per": "day"},
    {"requests": 2**53, "per": "day"},
)
WRONG_NETWORKS: tuple[Any, ...] = (
    "10.0.0.0/8",
    ["10.0.0.1/8"],
    [167_772_160],
    ["::1%eth0"],
    ["::1"] * (MAX_NETWORKS + 1),
)


async def test_wrong_limits_and_restrictions_are_named(partner: Partner, credential: dict[str, Any]) -> None:
    quota, networks = QuotaKind().refusal("quota").message, Networks().refusal("ip_networks").message
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("limits", {}, "At least one field (rate_limit_per_minute, expires_at or quota) must be provided"),
        ("limits", {"rate_limit_per_minute": 0}, "rate_limit_per_minute must be between 1 and 10000"),
        ("limits", {"rate_limit_per_minute": None}, "rate_limit_per_minute must be between 1 and 10000"),
        ("limits", {"expires_at": "2020-01-01"}, "expires_at must be in the future"),
        *(("limits", {"quota": wrong}, quota) for wrong in WRONG_QUOTAS),
        ("restrictions", {}, "At least one field (ip_networks or scopes) must be provided"),
        *(("restrictions", {"ip_networks": wrong}, networks) for wrong in WRONG_NETWORKS),
        ("restrictions", {"scopes": ["tx"]}, f"scopes must be an array with values from: {', '.join(SCOPES)}"),
    ]
    for what, body, error in cases:
        for thing in (credential["id"], NOWHERE):
            assert told(await partner.call("PUT", f"/credentials/{thing}/{what}", body)) == (400, error), body


async def test_limits_of_a_foreign_or_revoked_credential_cannot_be_changed(
    partner: Partner, rival: Partner, credential: dict[str, Any]
) -> None:
    await partner.data("DELETE", f"/credentials/{credential['id']}")
    changes: list[tuple[str, dict[str, Any]]] = [
        ("limits", {"rate_limit_per_minute": 5}),
        ("restrictions", {"scopes": []}),
    ]
    for what, body in changes:
        path = f"/credentials/{credential['id']}/{what}"
        assert told(await partner.call("PUT", path, body)) == (404, "Credential not found or already revoked")
        assert (await partner.get(path)).status == 200
        assert told(await rival.call("PUT", path, body)) == (404, "Credential not found or already revoked")
        assert told(await rival.get(path)) == (404, "Credential not found")


# Quotas ---------------------------------------------------------------------------------------------------------------


async def test_a_quota_is_exact_over_all_processes_and_counts_admitted_requests_only(
    api: Client, second: Client, partner: Partner, credential: dict[str, Any]
) -> None:
    key = credential["key"]
    assert (await api.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
    await put(partner, credential, "limits", rate_limit_per_minute=20, quota={"requests": 30, "per": "month"})
    replies = await asyncio.gather(*(client.get(CHAIN_PATH, key) for _ in range(40) for client in (api, second)))
    assert sum(reply.status == NOTHING_INDEXED for reply in replies) == 19
    assert {told(reply) for reply in replies if reply.status == 429} == {(429, "Rate limit exceeded")}
    await put(partner, credential, "limits", rate_limit_per_minute=1_000)
    replies = await asyncio.gather(*(client.get(CHAIN_PATH, key) for _ in range(40) for client in (api, second)))
    assert sum(reply.status == NOTHING_INDEXED for reply in replies) in {10, 11}, "the first was before the quota"
    refused = await api.get(CHAIN_PATH, key)
    assert told(refused) == (429, "Quota exceeded")
    now = datetime.now(UTC)
    ends = (now.replace(day=1) + timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    assert abs(int(refused.headers["Retry-After"]) - (ends - now).total_seconds()) < 30
    await put(partner, credential, "limits", quota={"requests": 40, "per": "month"})
    assert (await api.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
    await put(partner, credential, "limits", quota=None)
    assert (await api.get(CHAIN_PATH, key)).status == NOTHING_INDEXED


async def test_a_quota_that_valkey_lost_is_recounted_from_the_usage_table(
    api: Client, partner: Partner, credential: dict[str, Any], use: Use, redis_url: str
) -> None:
    now = datetime.now(UTC)
    yesterday = (now - timedelta(days=1)).isoformat(timespec="minutes").removesuffix("+00:00")
    today = now.isoformat(timespec="minutes").removesuffix("+00:00")
    await use(credential, yesterday, successful=50)
    await use(credential, today, successful=4, failed=9, limited=7)
    await put(partner, credential, "limits", quota={"requests": 10, "per": "day"})
    async with Redis.from_url(redis_url) as client:
        for left in (3, 2, 1, 0):
            key = await api.get("/v1/key", credential["key"])
            assert key.body["data"]["quota"]["remaining"] == left
        assert told(await api.get(CHAIN_PATH, credential["key"])) == (429, "Quota exceeded")
        await client.flushdb()
        key = await api.get("/v1/key", credential["key"])
        assert key.body["data"]["quota"]["remaining"] == 3, "these four are not in the table"


# Restrictions ---------------------------------------------------------------------------------------------------------


async def test_restrictions_apply_to_the_very_next_request_with_and_without_valkey(
    environment: dict[str, str], api: Client, partner: Partner, credential: dict[str, Any], redis_url: str
) -> None:
    key, pool = credential["key"], "/v1/pools/" + "0" * 56
    relay = TcpRelay()
    try:
        relay.open()
        async with serving(environment | {"REDIS_URL": relay.in_front_of(redis_url)}) as other:

            async def ask(path: str) -> list[tuple[int, str]]:
                return [told(await client.get(path, key)) for client in (api, other)]

            nothing = [(NOTHING_INDEXED, "Network not available")] * 2
            for away in (False, True):
                if away:
                    relay.close()
                await put(partner, credential, "restrictions", ip_networks=OTHERS)
                assert await ask(CHAIN_PATH) == [(403, "IP address not allowed")] * 2
                await put(partner, credential, "restrictions", ip_networks=LOOPBACK)
                assert await ask(CHAIN_PATH) == nothing
                await put(partner, credential, "restrictions", ip_networks=[], scopes=["pools"])
                assert await ask(CHAIN_PATH) == [(403, "Key does not cover transactions")] * 2
                assert await ask(pool) == nothing
                assert (await other.get("/v1/key", key)).status == 200
                await put(partner, credential, "restrictions", scopes=None)
                assert await ask(CHAIN_PATH) == nothing
    finally:
        relay.end()


async def test_a_barred_request_does_not_count_towards_the_limit(
    api: Client, partner: Partner, credential: dict[str, Any]
) -> None:
    await put(partner, credential, "restrictions", ip_networks=OTHERS)
    for _ in range(3):
        reply = await api.get(CHAIN_PATH, credential["key"])
        assert reply.status == 403 and "RateLimit-Limit" not in reply.headers
    await put(partner, credential, "restrictions", ip_networks=LOOPBACK)
    assert (await api.get(CHAIN_PATH, credential["key"])).headers["RateLimit-Remaining"] == "59"


@pytest.mark.usefixtures("no_aggregator")
async def test_the_address_is_that_of_the_client_behind_trusted_proxies(
    environment: dict[str, str], partner: Partner, credential: dict[str, Any]
) -> None:
    await put(partner, credential, "restrictions", ip_networks=OTHERS)
    async with serving(environment | {"TRUSTED_PROXIES": "127.0.0.0/8"}) as api:
        for address, status in (("10.9.8.7", NOTHING_INDEXED), ("192.0.2.1", 403), ("2001:db8::7", NOTHING_INDEXED)):
            headers = {"X-Forwarded-For": address}
            assert (await api.call("GET", CHAIN_PATH, credential["key"], headers=headers)).status == status, address
    forged = await partner.api.call("GET", CHAIN_PATH, credential["key"], headers={"X-Forwarded-For": "10.9.8.7"})
    assert forged.status == 403


# What a key knows of itself -------------------------------------------------------------------------------------------


async def test_a_key_reads_its_own_limits(partner: Partner, credential: dict[str, Any]) -> None:
    expires_at = "2090-01-01T00:00:00Z"
    quota = {"requests": 100, "per": "day"}
    await put(partner, credential, "limits", rate_limit_per_minute=10, expires_at=expires_at, quota=quota)
    await put(partner, credential, "restrictions", scopes=["assets"], ip_networks=LOOPBACK)
    rotated = await rotate(partner, credential, 600)
    reply = await partner.api.get("/v1/key", rotated["api_key"])
    assert reply.status == 200
    own = reply.body["data"]
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT00:00:00Z")
    assert own == {
        "credential_id": credential["id"],
        "network_id": 1,
        "rate_limit_per_minute": 10,
        "remaining": 9,
        "quota": quota | {"remaining": 99, "resets_at": tomorrow},
        "expires_at": expires_at,
        "ip_networks": LOOPBACK,
        "scopes": ["assets"],
    }
    former = (await partner.api.get("/v1/key", credential["key"])).body["data"]
    assert former == own | {
        "remaining": 8,
        "expires_at": rotated["former_key"]["ends_at"],
        "quota": own["quota"] | {"remaining": 98},
    }
    assert (await partner.api.get("/v1/key")).status == 401


# The end of an account ------------------------------------------------------------------------------------------------


async def test_a_deleted_account_is_gone_with_its_keys_and_names_and_its_usage_stays(
    second: Client, partner: Partner, credential: dict[str, Any], use: Use, db: asyncpg.Connection
) -> None:
    user_id = credential["user_account_id"]
    await partner.data(
        "PATCH", f"/users/{user_id}", {"email": "alice@example.org", "metadata": {"phone": "+44 7700 900"}}
    )
    await put(partner, credential, "restrictions", ip_networks=LOOPBACK)
    revoked, _ = await partner.issued({"id": user_id}, name="Alice's first")
    await partner.data("DELETE", f"/credentials/{revoked['id']}")
    new = (await rotate(partner, credential, 600))["api_key"]
    for key in (credential["key"], new):
        assert (await second.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
    await use(credential, "2026-03-01T10:00", successful=3)
    deleted = await partner.data("DELETE", f"/users/{user_id}")
    assert (deleted["id"], deleted["revoked_credentials"]) == (user_id, 1)
    for key in (credential["key"], new):
        assert told(await second.get(CHAIN_PATH, key)) == (403, "Invalid API key")
    for method, path in (
        ("GET", f"/users/{user_id}"),
        ("GET", "/users/by-external-id/alice"),
        ("PATCH", f"/users/{user_id}"),
        ("DELETE", f"/users/{user_id}"),
        ("POST", f"/users/{user_id}/reactivate"),
    ):
        reply = await partner.call(method, path, {"name": "x"} if method == "PATCH" else None)
        assert told(reply) == (404, "User account not found"), (method, path)
    body = {"name": "x", "user_account_id": user_id, "network_id": 1}
    assert (await partner.call("POST", "/credentials", body)).status == 404
    assert (await partner.get("/users")).body["pagination"]["total"] == 0
    assert (await partner.user(external_id="alice"))["external_id"] == "alice"
    used = await partner.data("GET", f"/usage/{credential['id']}?start_date=2026-03-01&end_date=2026-03-01")
    assert used["summary"]["successful_requests"] == 3
    assert set((await partner.actions())[2:4]) == {"user_account.deleted", "credential.revoked"}
    await partner.data("DELETE", f"/users/{(await partner.data('GET', '/users?external_id=alice'))[0]['id']}")
    for (table,) in await db.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'partner'"):
        for (row,) in await db.fetch(f"SELECT each::text FROM partner.{table} AS each"):  # noqa: S608
            assert not any(text in row.lower() for text in ("alice", "+44 7700", "127.0.0.0/8")), (table, row)


async def test_a_deletion_and_the_usage_of_the_keys_do_not_block_each_other(
    partner: Partner, credential: dict[str, Any], db: asyncpg.Connection
) -> None:
    user_id = credential["user_account_id"]
    ids = [credential["id"], *[(await partner.issued({"id": user_id}))[0]["id"] for _ in range(8)]]
    low, high = next(  # the usage aggregator locks credentials by id; these two were created in the other order
        (later, former) for number, former in enumerate(ids) for later in ids[number:] if later < former
    )
    locks = "SELECT FROM partner.credential WHERE id = $1 FOR NO KEY UPDATE"
    async with db.transaction():
        await db.execute(locks, low)
        deleting = asyncio.create_task(partner.data("DELETE", f"/users/{user_id}"))
        await until_blocked(db)
        await db.execute(locks, high)
    assert (await deleting)["revoked_credentials"] == len(ids)


async def test_the_bootstrap_key_deletes_no_account(bootstrap: Partner, credential: dict[str, Any]) -> None:
    reply = await bootstrap.call("DELETE", f"/users/{credential['user_account_id']}")
    assert told(reply) == (400, "The bootstrap admin key cannot manage users: create an admin key first")


# Finding keys and accounts --------------------------------------------------------------------------------------------


async def test_filters_narrow_lists_and_their_totals(partner: Partner, db: asyncpg.Connection) -> None:
    users = [await partner.user(name=f"Shop {name}", external_id=name) for name in ("Oslo", "Rome")]
    soon = (datetime.now(UTC) + timedelta(days=3)).isoformat()
    made = [
        (await partner.issued(users[0], name="web", description="Front end"))[0],
        (await partner.issued(users[0], name="100% mobile", network_id=0, expires_at=soon))[0],
        (await partner.issued(users[1], name="batch_1", expires_at="2090-01-01"))[0],
        (await partner.issued(users[1], name="old"))[0],
        (await partner.issued(users[1], name="gone"))[0],
    ]
    await db.execute(
        "UPDATE partner.credential SET expires_at = now() - interval '1 s' WHERE id = $1", UUID(made[3]["id"])
    )
    await partner.data("DELETE", f"/credentials/{made[4]['id']}")

    async def found(path: str) -> list[str]:
        body = (await partner.get(path)).body
        assert body["pagination"]["total"] == len(body["data"]), path
        return [each["name"] for each in body["data"]]

    for query, names in {
        f"user_account_id={users[0]['id']}": ["100% mobile", "web"],
        f"user_account_id={NOWHERE}": [],
        "network_id=0": ["100% mobile"],
        "search=FRONT": ["web"],
        "search=%25": ["100% mobile"],
        "search=H_1": ["batch_1"],
        f"search={made[2]['api_key_prefix']}": ["batch_1"],
        "status=active": ["batch_1", "100% mobile", "web"],
        "status=expired": ["old"],
        "status=revoked": ["gone"],
        "expires_within=3": ["100% mobile"],
        "expires_within=2": [],
        "includeRevoked=true&search=o": ["gone", "old", "100% mobile", "web"],
    }.items():
        assert await found(f"/credentials?{query}") == names, query
    for query, names in {"search=shop": ["Shop Rome", "Shop Oslo"], "search=ROM": ["Shop Rome"]}.items():
        assert await found(f"/users?{query}") == names, query
    assert await found("/users?external_id=Oslo") == ["Shop Oslo"]
    assert await found("/users?external_id=oslo") == []
    metrics = (await partner.api.get("/metrics")).body
    assert b'ledgerline_credentials_expiring{days="7"} 1.0\n' in metrics
    assert b'ledgerline_credentials_expiring{days="30"} 1.0\n' in metrics
    for query in ("status=x", "network_id=3", "user_account_id=x", "expires_within=0"):
        assert (await partner.get(f"/credentials?{query}")).status == 400, query
