"""Admin keys: their permissions, how they are issued and revoked. docs/http-api.md, "Keys"."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import asyncpg

from api.keys import tokens
from api.routes import ROUTES
from api.services import KEY_CONNECTIONS
from tests.api.client import Client, serving
from tests.api.partners import ALL, BOOTSTRAP_KEY, CHAIN_PATH, NOTHING_INDEXED, NOWHERE, Partner, partner_of
from tests.patience import PATIENCE_S

CHECKOUT = Path(__file__).parents[2]
RECORD_FIELDS = [
    "id",
    "entity_name",
    "key_prefix",
    "permissions",
    "is_bootstrap",
    "created_at",
    "last_used_at",
    "revoked",
    "revoked_at",
]
ADMIN_ROUTES = [route for route in ROUTES if route.path.startswith("/v1/admin/")]


def filled(path: str) -> str:
    """A route's path with an id that does not exist."""
    return re.sub(r"\{\w+\}", NOWHERE, path)


async def test_every_admin_route_refuses_a_caller_without_a_key(api: Client) -> None:
    """401 for a missing or malformed header, 403 for an unknown key, before any other check."""
    for route in ADMIN_ROUTES:
        missing = await api.call(route.method, filled(route.path))
        assert (missing.status, missing.error) == (401, "Missing or invalid admin API key")
        for header in ("Bearer", "Bearer ", "Basic abc", BOOTSTRAP_KEY, "Bearer a b", "Bearer \u00fc", "Token x"):
            malformed = await api.call(route.method, filled(route.path), headers={"Authorization": header})
            assert (malformed.status, malformed.error) == (401, "Missing or invalid admin API key"), header
        for key in ("x", tokens.new_admin_key(), tokens.new_api_key(), BOOTSTRAP_KEY[:-1], BOOTSTRAP_KEY + "0"):
            invalid = await api.call(route.method, filled(route.path), key)
            assert (invalid.status, invalid.error) == (403, "Invalid admin API key"), key


async def test_two_authorization_headers_are_malformed(api: Client) -> None:
    line = f"Authorization: Bearer {BOOTSTRAP_KEY}\r\n"
    sent = f"GET /v1/admin/admin-keys HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{line}{line}\r\n"
    assert b"HTTP/1.1 401" in await api.raw(sent.encode())


async def test_the_scheme_is_read_in_any_case(api: Client) -> None:
    """RFC 9110, section 11.1."""
    for scheme in ("bearer", "BEARER"):
        reply = await api.call("GET", "/v1/admin/admin-keys", headers={"Authorization": f"{scheme} {BOOTSTRAP_KEY}"})
        assert reply.status == 200


async def test_a_permission_opens_only_its_routes(api: Client) -> None:
    """A route accepts exactly the permission that it requires. docs/http-api.md, "Endpoints"."""
    for permission in ALL:
        partner = await partner_of(api, "narrow", [permission])
        for route in ADMIN_ROUTES:
            reply = await api.call(route.method, filled(route.path), partner.admin_key)
            if route.access == permission:
                assert reply.status != 403, route.path
            else:
                assert (reply.status, reply.error) == (403, f"Permission denied: {route.access} required"), route.path


async def test_issuing_shows_the_key_once(bootstrap: Partner, db: asyncpg.Connection) -> None:
    reply = await bootstrap.call("POST", "/admin-keys", {"entity_name": "ACME", "permissions": ["view_usage"]})
    assert reply.status == 201
    assert list(reply.body["data"]) == ["admin_key", "key"]
    record, key = reply.body["data"]["admin_key"], reply.body["data"]["key"]
    assert list(record) == RECORD_FIELDS
    assert re.fullmatch(r"iiak_admin_[0-9a-f]{40}", key)
    assert len(key) == 51
    assert key.startswith(record["key_prefix"])
    assert (record["entity_name"], record["permissions"]) == ("ACME", ["view_usage"])
    assert (record["is_bootstrap"], record["revoked"], record["revoked_at"]) == (False, False, None)
    assert record["last_used_at"] is None
    stored = await db.fetchrow("SELECT * FROM partner.admin_key WHERE NOT is_bootstrap")
    assert stored is not None
    assert stored["key_hash"] == tokens.hash_of(key)
    assert key not in str(stored)
    assert key not in str((await bootstrap.get("/admin-keys")).body)


async def test_permissions_default_to_all_and_must_be_some_of_the_four(bootstrap: Partner) -> None:
    made = await bootstrap.data("POST", "/admin-keys", {"entity_name": "x"})
    assert made["admin_key"]["permissions"] == ALL
    assert (await bootstrap.data("POST", "/admin-keys", {"entity_name": "x", "permissions": None}))["admin_key"][
        "permissions"
    ] == ALL
    sent = ["view_usage", "manage_users", "view_usage"]
    made = await bootstrap.data("POST", "/admin-keys", {"entity_name": "x", "permissions": sent})
    assert made["admin_key"]["permissions"] == ["view_usage", "manage_users"]
    no_permissions: list[object] = [[], ["manage_users", "fly"], "manage_users", [1], {}, [["manage_users"]]]
    for wrong in no_permissions:
        reply = await bootstrap.call("POST", "/admin-keys", {"entity_name": "x", "permissions": wrong})
        assert reply.status == 400, wrong
        assert reply.error.startswith("permissions ")


async def test_an_entity_name_is_1_to_255_characters(bootstrap: Partner) -> None:
    for name in (None, "", "   ", 5, "x" * 256, "a\0b", ["x"]):
        reply = await bootstrap.call("POST", "/admin-keys", {"entity_name": name})
        assert reply.status == 400
        assert "entity_name" in reply.error or reply.error == "Invalid JSON body"
    assert (await bootstrap.call("POST", "/admin-keys", {"entity_name": "x" * 255})).status == 201


async def test_admin_keys_are_listed_in_pages_newest_first(bootstrap: Partner) -> None:
    for number in range(4):
        await bootstrap.data("POST", "/admin-keys", {"entity_name": f"partner {number}"})
    first = await bootstrap.get("/admin-keys?limit=3")
    assert [record["entity_name"] for record in first.body["data"]] == ["partner 3", "partner 2", "partner 1"]
    assert first.body["pagination"] == {"limit": 3, "offset": 0, "total": 5, "hasMore": True}
    last = await bootstrap.get("/admin-keys?limit=3&offset=3")
    assert [record["is_bootstrap"] for record in last.body["data"]] == [False, True]
    assert last.body["pagination"] == {"limit": 3, "offset": 3, "total": 5, "hasMore": False}
    assert all(list(record) == RECORD_FIELDS for record in last.body["data"])
    for query, message in (("limit=0", "limit"), ("limit=101", "limit"), ("offset=-1", "offset"), ("limit=x", "limit")):
        assert (await bootstrap.get(f"/admin-keys?{query}")).error.startswith(f"{message} must be between")


async def test_a_revoked_admin_key_is_refused_at_once_and_its_api_keys_still_work(
    bootstrap: Partner, partner: Partner
) -> None:
    _, api_key = await partner.issued(await partner.user())
    record = await bootstrap.data("DELETE", f"/admin-keys/{partner.record['id']}")
    assert record["revoked"] is True
    assert record["revoked_at"] is not None
    refused = await partner.get("/users")
    assert (refused.status, refused.error) == (403, "Invalid admin API key")
    assert (await partner.api.get(CHAIN_PATH, api_key)).status == NOTHING_INDEXED


async def test_revoking_a_missing_key_is_404_and_the_bootstrap_key_400(bootstrap: Partner, partner: Partner) -> None:
    await bootstrap.data("DELETE", f"/admin-keys/{partner.record['id']}")
    for missing in (partner.record["id"], NOWHERE):
        reply = await bootstrap.call("DELETE", f"/admin-keys/{missing}")
        assert (reply.status, reply.error) == (404, "Admin key not found or already revoked")
    malformed = await bootstrap.call("DELETE", "/admin-keys/nonsense")
    assert (malformed.status, malformed.error) == (400, "Invalid admin key ID format")
    own = next(record for record in (await bootstrap.get("/admin-keys")).body["data"] if record["is_bootstrap"])
    stays = await bootstrap.call("DELETE", f"/admin-keys/{own['id']}")
    assert (stays.status, stays.error) == (400, "The bootstrap admin key cannot be revoked")
    assert (await bootstrap.get("/admin-keys")).status == 200


async def test_the_bootstrap_key_owns_nothing(bootstrap: Partner, partner: Partner) -> None:
    """400 if it would own something, empty lists otherwise. docs/http-api.md, "Keys" and "Refusals"."""
    user = await partner.user(external_id="one")
    credential, _ = await partner.issued(user)
    new_key = {"name": "x", "user_account_id": user["id"], "network_id": 1}
    for method, path, body in (
        ("POST", "/users", {"name": "x"}),
        ("PATCH", f"/users/{user['id']}", {"name": "x"}),
        ("POST", f"/users/{user['id']}/suspend", None),
        ("POST", f"/users/{user['id']}/reactivate", None),
        ("POST", "/credentials", new_key),
    ):
        reply = await bootstrap.call(method, path, body)
        what = path.split("/")[1]
        expected = f"The bootstrap admin key cannot manage {what}: create an admin key first"
        assert (reply.status, reply.error) == (400, expected), path
    for path in ("/users", "/credentials", "/usage", "/users/usage/summary"):
        reply = await bootstrap.get(path)
        assert (reply.status, reply.body["data"], reply.body["pagination"]["total"]) == (200, [], 0), path
    for method, path, body in (
        ("GET", f"/users/{user['id']}", None),
        ("GET", "/users/by-external-id/one", None),
        ("GET", f"/users/{user['id']}/usage", None),
        ("GET", f"/credentials/{credential['id']}", None),
        ("PATCH", f"/credentials/{credential['id']}", {"name": "x"}),
        ("DELETE", f"/credentials/{credential['id']}", None),
        ("GET", f"/usage/{credential['id']}", None),
    ):
        assert (await bootstrap.call(method, path, body)).status == 404, path


async def test_several_first_calls_with_the_bootstrap_key_at_once_succeed(
    bootstrap: Partner, db: asyncpg.Connection
) -> None:
    """Only one of them makes the record; the others wait for it."""
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
    async with asyncio.timeout(PATIENCE_S):
        async with db.transaction():
            await db.execute(
                "INSERT INTO partner.admin_key (is_bootstrap, entity_name, key_prefix, permissions)"
                " VALUES (true, 'bootstrap', '', '{}')"
            )
            calls = [asyncio.create_task(bootstrap.get("/admin-keys")) for _ in range(5)]
            while await db.fetchval(waiting) < KEY_CONNECTIONS:
                await asyncio.sleep(0.02)
        assert {reply.status for reply in await asyncio.gather(*calls)} == {200}
    assert await db.fetchval("SELECT count(*) FROM partner.admin_key WHERE is_bootstrap") == 1


async def test_without_the_setting_the_former_bootstrap_key_is_refused(
    bootstrap: Partner, environment: dict[str, str]
) -> None:
    assert (await bootstrap.get("/users")).status == 200
    other = "iiak_admin_" + "f" * 40
    async with serving(environment | {"BOOTSTRAP_ADMIN_KEY": other}) as changed:
        assert (await changed.get("/v1/admin/users", BOOTSTRAP_KEY)).status == 403
        listed = await changed.get("/v1/admin/admin-keys", other)
        assert [record["is_bootstrap"] for record in listed.body["data"]] == [True]
    async with serving(environment | {"BOOTSTRAP_ADMIN_KEY": ""}) as unset:
        for key in (BOOTSTRAP_KEY, other):
            assert (await unset.get("/v1/admin/users", key)).status == 403


async def test_the_last_use_of_an_admin_key_is_stored(bootstrap: Partner, partner: Partner) -> None:
    await partner.get("/users")
    records = (await bootstrap.get("/admin-keys")).body["data"]
    assert all(record["last_used_at"] for record in records)


async def test_keys_are_issued_listed_and_revoked_on_the_command_line(
    api: Client, bootstrap: Partner, db: asyncpg.Connection, environment: dict[str, str]
) -> None:
    def keys(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "api", "keys", *arguments]
        return subprocess.run(
            command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
        )

    made = keys("create", "--entity-name", "Terminal", "--permissions", "manage_users,view_usage")
    assert made.returncode == 0, made.stderr
    assert re.fullmatch(r"iiak_admin_[0-9a-f]{40}\n", made.stdout)
    key = made.stdout.strip()
    assert (await api.get("/v1/admin/users", key)).status == 200
    assert (await api.get("/v1/admin/credentials", key)).status == 403

    record = next(r for r in (await bootstrap.get("/admin-keys")).body["data"] if r["entity_name"] == "Terminal")
    listed = keys("list")
    assert record["id"] in listed.stdout
    assert key not in listed.stdout + listed.stderr
    assert listed.stderr.startswith("database: postgresql://") and "password" not in listed.stderr
    printed = json.loads(keys("list", "--json").stdout)
    assert [sorted(each) for each in printed] == [sorted(RECORD_FIELDS)] * 2
    assert {each["id"]: each["entity_name"] for each in printed}[record["id"]] == "Terminal"
    await db.execute(
        "INSERT INTO partner.admin_key (entity_name, key_prefix, permissions)"
        " SELECT 'number ' || n, 'iiak_admin_', '{view_usage}' FROM generate_series(1, 2050) AS n"
    )
    every = keys("list").stdout.splitlines()
    assert len(every) == 1 + 2_050 + 2, "one line for each key below the head of the table"

    assert keys("revoke", record["id"]).returncode == 0
    assert (await api.get("/v1/admin/users", key)).status == 403
    again = keys("revoke", record["id"])
    assert again.returncode == 2
    assert again.stderr.splitlines()[1:] == [f"{record['id']}: Admin key not found or already revoked"]
    for wrong, line in (
        (("--entity-name", " "), "--entity-name is ' ', expected 1 to 255 characters, not all blank"),
        (
            ("--entity-name", "x", "--permissions", "view_usage,fly"),
            f"--permissions contains 'fly', expected some of {', '.join(ALL)}",
        ),
    ):
        refused = keys("create", *wrong)
        assert (refused.returncode, refused.stderr) == (2, f"{line}\n")
    assert [entry["action"] for entry in await bootstrap.data("GET", "/audit-logs?action=admin_key.revoked")] == [
        "admin_key.revoked"
    ]
