"""The audit log: its actions, actors and addresses. docs/operations.md, `TRUSTED_PROXIES`."""

from typing import Any

from tests.api.client import serving
from tests.api.partners import BOOTSTRAP_KEY, NOWHERE, Partner, partner_of

FIELDS = [
    "id",
    "action",
    "admin_key_id",
    "admin_entity_name",
    "target_id",
    "target_type",
    "ip_address",
    "details",
    "created_at",
]


async def entries(partner: Partner, query: str = "limit=100") -> list[dict[str, Any]]:
    """Entries of the audit log, newest first."""
    found: list[dict[str, Any]] = await partner.data("GET", f"/audit-logs?{query}")
    return found


async def test_every_action_leaves_its_entry(partner: Partner) -> None:
    user = await partner.user(name="Bob", external_id="b")
    credential, _ = await partner.issued(user, name="k")
    await partner.get("/users")
    await partner.get(f"/users/{user['id']}")
    await partner.get("/users/by-external-id/b")
    await partner.call("PATCH", f"/users/{user['id']}", {"email": "m"})
    await partner.call("POST", f"/users/{user['id']}/suspend")
    await partner.call("POST", f"/users/{user['id']}/reactivate")
    await partner.get("/credentials")
    await partner.get(f"/credentials/{credential['id']}")
    await partner.call("PATCH", f"/credentials/{credential['id']}", {"description": "d"})
    await partner.call("DELETE", f"/credentials/{credential['id']}")

    told = [(entry["action"], entry["target_id"]) for entry in reversed(await entries(partner))]
    assert told == [
        ("user_account.created", user["id"]),
        ("credential.created", credential["id"]),
        ("user_account.listed", None),
        ("user_account.viewed", user["id"]),
        ("user_account.viewed", user["id"]),
        ("user_account.updated", user["id"]),
        ("user_account.suspended", user["id"]),
        ("user_account.reactivated", user["id"]),
        ("credential.listed", None),
        ("credential.viewed", credential["id"]),
        ("credential.updated", credential["id"]),
        ("credential.revoked", credential["id"]),
    ]


async def test_an_entry_names_actor_action_and_address(bootstrap: Partner, partner: Partner) -> None:
    user = await partner.user(name="Bob", external_id="b")
    reply = await partner.get("/audit-logs")
    assert list(reply.body) == ["success", "data", "pagination"]
    assert reply.body["pagination"] == {"limit": 50, "offset": 0, "total": 1}
    (entry,) = reply.body["data"]
    assert list(entry) == FIELDS
    assert entry["details"] == {"name": "Bob", "external_id": "b", "request_id": entry["details"]["request_id"]}
    assert (entry["admin_key_id"], entry["admin_entity_name"]) == (partner.record["id"], "ACME")
    assert (entry["target_type"], entry["target_id"], entry["ip_address"]) == ("user_account", user["id"], "127.0.0.1")
    assert entry["created_at"] == user["created_at"]  # one commit
    (issued,) = await entries(bootstrap, "action=admin_key.created")
    assert (issued["target_type"], issued["target_id"]) == ("admin_key", partner.record["id"])
    assert issued["details"]["name"] == "ACME"
    await bootstrap.call("DELETE", f"/admin-keys/{partner.record['id']}")
    (revoked,) = await entries(bootstrap, "action=admin_key.revoked")
    assert revoked["target_id"] == partner.record["id"]


async def test_a_refused_request_leaves_no_entry(partner: Partner) -> None:
    user = await partner.user(external_id="b")
    before = await entries(partner)
    for method, path, body in (
        ("POST", "/users", {"name": "x", "external_id": "b"}),
        ("POST", "/users", {}),
        ("GET", f"/users/{NOWHERE}", None),
        ("PATCH", f"/users/{NOWHERE}", {"name": "x"}),
        ("PATCH", f"/users/{user['id']}", {"name": ""}),
        ("POST", f"/users/{NOWHERE}/suspend", None),
        ("POST", "/credentials", {"name": "x", "user_account_id": NOWHERE, "network_id": 1}),
        ("GET", f"/credentials/{NOWHERE}", None),
        ("DELETE", f"/credentials/{NOWHERE}", None),
    ):
        assert (await partner.call(method, path, body)).status >= 400
    assert await entries(partner) == before


async def test_a_partner_reads_its_own_entries_and_the_bootstrap_key_all(
    bootstrap: Partner, partner: Partner, rival: Partner
) -> None:
    mine, theirs = await partner.user(), await rival.user()
    assert {entry["target_id"] for entry in await entries(partner)} == {mine["id"]}
    for query in (f"admin_key_id={rival.record['id']}", f"target_id={theirs['id']}"):
        reply = await partner.get(f"/audit-logs?{query}")
        assert (reply.body["data"], reply.body["pagination"]["total"]) == ([], 0)
    assert {mine["id"], theirs["id"], rival.record["id"]} <= {entry["target_id"] for entry in await entries(bootstrap)}
    (only,) = await entries(bootstrap, f"admin_key_id={rival.record['id']}")
    assert only["target_id"] == theirs["id"]


async def test_entries_are_filtered_and_paged(partner: Partner) -> None:
    users = [await partner.user(name=str(number)) for number in range(3)]
    await partner.get(f"/users/{users[0]['id']}")
    reply = await partner.get("/audit-logs?action=user_account.created&limit=2&offset=1")
    assert [entry["details"]["name"] for entry in reply.body["data"]] == ["1", "0"]
    assert reply.body["pagination"] == {"limit": 2, "offset": 1, "total": 3}
    target = await entries(partner, f"target_id={users[0]['id']}")
    assert [entry["action"] for entry in target] == ["user_account.viewed", "user_account.created"]
    own = await entries(partner, f"admin_key_id={partner.record['id']}&target_id={users[1]['id']}")
    assert len(own) == 1
    assert await entries(partner, "action=no.such.action") == []
    for query, error in (
        ("limit=0", "limit must be between 1 and 100"),
        ("limit=101", "limit must be between 1 and 100"),
        ("target_id=x", "target_id must be a UUID"),
        ("admin_key_id=x", "admin_key_id must be a UUID"),
        ("action=%00", "action must be text of at most 255 characters"),
    ):
        wrong = await partner.get(f"/audit-logs?{query}")
        assert (wrong.status, wrong.error) == (400, error), query


async def test_entries_of_reads_can_be_left_out(partner: Partner) -> None:
    user = await partner.user()
    await partner.get("/users")
    await partner.get(f"/users/{user['id']}")
    await partner.issued(user)
    await partner.get("/credentials")
    await partner.get(f"/users/{user['id']}")
    everything = await entries(partner)
    assert everything == await entries(partner, "limit=100&includeReads=true")
    reply = await partner.get("/audit-logs?limit=1&includeReads=false")
    assert [entry["action"] for entry in reply.body["data"]] == ["credential.created"]
    assert reply.body["pagination"]["total"] == 2
    reads = [entry for entry in everything if entry["action"].endswith((".viewed", ".listed"))]
    changes = await entries(partner, "limit=100&includeReads=false")
    assert (len(reads), len(reads) + len(changes)) == (4, len(everything))
    assert not any(entry in reads for entry in changes)


async def test_every_change_names_its_target_until_the_account_is_deleted(partner: Partner) -> None:
    user = await partner.user(name="Bob")
    credential, _ = await partner.issued(user, name="k")
    await partner.call("PATCH", f"/users/{user['id']}", {"email": "m"})
    await partner.call("POST", f"/users/{user['id']}/suspend")
    await partner.call("POST", f"/users/{user['id']}/reactivate")
    path = f"/credentials/{credential['id']}"
    await partner.call("PATCH", path, {"description": "d"})
    await partner.call("PUT", f"{path}/limits", {"rate_limit_per_minute": 7})
    await partner.call("PUT", f"{path}/restrictions", {"scopes": ["assets"]})
    await partner.call("POST", f"{path}/rotate", {"overlap_seconds": 0})
    await partner.call("DELETE", path)
    names = [entry["details"].get("name") for entry in await entries(partner)]
    assert names == ["k"] * 5 + ["Bob"] * 3 + ["k", "Bob"]
    await partner.call("DELETE", f"/users/{user['id']}")
    assert not any("name" in entry["details"] for entry in await entries(partner))


async def test_forwarded_addresses_count_behind_trusted_proxies_only(
    environment: dict[str, str],
) -> None:
    async with serving(environment) as untrusting:
        partner = await partner_of(untrusting, "ACME")
        forged = await partner.call("GET", "/users", headers={"X-Forwarded-For": "1.2.3.4"})
        assert forged.status == 200
        assert (await entries(partner))[0]["ip_address"] == "127.0.0.1"
    async with serving(environment | {"TRUSTED_PROXIES": "127.0.0.0/8,10.0.0.0/8"}) as trusting:
        partner = await partner_of(trusting, "ACME")
        for header, expected in (
            ("1.2.3.4", "1.2.3.4"),
            ("6.6.6.6, 1.2.3.4, 10.1.1.1", "1.2.3.4"),
            ("2001:DB8::1", "2001:db8::1"),
            ("nonsense", "127.0.0.1"),
            ("", "127.0.0.1"),
        ):
            await partner.call("GET", "/users", headers={"X-Forwarded-For": header})
            assert (await entries(partner))[0]["ip_address"] == expected, header
        assert (await trusting.call("GET", "/v1/admin/users", BOOTSTRAP_KEY)).status == 200
