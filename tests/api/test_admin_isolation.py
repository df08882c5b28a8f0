"""Two partners can't see or change anything of each other's, on any admin route, including future ones."""

from typing import Any

import pytest

from api import worker
from api.route import JSON
from api.routes import ROUTES
from api.usage.queue import BreakdownSum, UsageBatch, UsageSum
from tests.api.client import Client, Reply
from tests.api.partners import ALL, BODIES, NOWHERE, Partner, partner_of

ADMIN_ROUTES = [route for route in ROUTES if route.path.startswith("/v1/admin/") and route.access != "bootstrap"]
EXTERNAL_ID = "the-victims-own-reference"

# The kind of object that a path parameter names: any of the victim's objects could be in its place.
OF_VICTIM: dict[str, tuple[str, ...]] = {
    "id": ("user", "credential", "admin_key", "entry"),
    "external_id": ("external",),
}
QUERIES = ("", "limit=100&includeRevoked=true", "status=active", "admin_key_id={admin_key}", "target_id={user}")


class Victim:
    """A partner with one object of every kind, and everything that it can read."""

    def __init__(self, partner: Partner, things: dict[str, str]) -> None:
        self.partner, self.things = partner, things

    async def world(self) -> list[Any]:
        """Everything that it can read about itself, except the traces of reading."""
        shown = [
            (await self.partner.get(path)).body
            for path in (
                "/users?limit=100",
                "/credentials?limit=100&includeRevoked=true",
                "/usage?limit=100",
                f"/users/{self.things['user']}/usage?start_date=2026-01-01&end_date=2026-12-31",
                "/audit-logs?limit=100&action=user_account.updated",
                "/audit-logs?limit=100&action=credential.revoked",
            )
        ]
        assert all(body["success"] for body in shown)
        return shown


@pytest.fixture
async def victim(api: Client, db: Any) -> Victim:
    """A partner with an account, a credential, usage, an audit entry."""
    partner = await partner_of(api, "the victim's own name")
    user = await partner.user(name="the victim's customer", external_id=EXTERNAL_ID, email="victim@x")
    credential, _ = await partner.issued(user, name="the victim's key")
    used = UsageSum(credential["id"], 29_538_720, 7, 5, 12_000, 1_772_323_200_000_000)
    part = BreakdownSum(credential["id"], 492_312, "GET /v1/pools/{poolId}", 2, 7, 12_000, [(7 << 48) + 7])
    assert await worker.add_batch(db, UsageBatch("victim", 0, 32, [used], [part]))
    entry = (await partner.data("GET", "/audit-logs"))[0]
    things = {
        "user": user["id"],
        "credential": credential["id"],
        "admin_key": partner.record["id"],
        "entry": entry["id"],
        "external": EXTERNAL_ID,
    }
    return Victim(partner, things)


def shape(reply: Reply, *ids: str) -> tuple[int, str]:
    """Status and body without the ids of the request: everything that could distinguish two answers."""
    text = str(reply.body)
    for known in ids:
        text = text.replace(known, "ID")
    return reply.status, text


async def test_a_foreign_row_and_a_missing_one_get_the_same_answer(api: Client, victim: Victim) -> None:
    intruder = await partner_of(api, "intruder", ALL)
    before = await victim.world()
    for route in ADMIN_ROUTES:
        names = [segment[1:-1] for segment in route.path.split("/") if segment.startswith("{")]
        for name in names:
            for thing in OF_VICTIM[name]:
                foreign = victim.things[thing]
                path, missing_path = (route.path.replace(f"{{{name}}}", each) for each in (foreign, NOWHERE))
                options = {"json": BODIES[route.path]} if route.body else {}
                reply = await api.call(route.method, path, intruder.admin_key, **options)
                missing = await api.call(route.method, missing_path, intruder.admin_key, **options)
                assert shape(reply, foreign) == shape(missing, NOWHERE), (route.method, path)
                assert reply.status == 404, (route.method, path)
    assert await victim.world() == before


async def test_no_answer_shows_anything_of_another_partner(api: Client, victim: Victim) -> None:
    """Not in lists, filters, counts or messages, and not if a body contains the other's ids."""
    intruder = await partner_of(api, "intruder", ALL)
    before = await victim.world()
    secrets = [*victim.things.values(), "the victim", "victim@x"]
    for route in ADMIN_ROUTES:
        if "{" in route.path:
            continue
        for query in QUERIES:
            sent = query.format(**victim.things)
            bodies: list[dict[str, Any]] = [{}]
            if route.body:
                foreign_ids = {"user_account_id": victim.things["user"], "admin_key_id": victim.things["admin_key"]}
                bodies = [{"json": BODIES[route.path]}, {"json": BODIES[route.path] | foreign_ids}]
            replies = [
                await api.call(route.method, f"{route.path}?{sent}", intruder.admin_key, **each) for each in bodies
            ]
            assert len({reply.status for reply in replies}) == 1, (route.method, route.path, "foreign is not missing")
            for reply in replies:
                shown = str(reply.body)
                assert not any(secret in shown for secret in secrets), (route.method, route.path, query)
                if route.method == "GET" and JSON in route.media_types:
                    page = reply.body["pagination"]
                    assert page["total"] == len(reply.body["data"]) or page["total"] > page["limit"], route.path
                    assert all(
                        entry["admin_key_id"] == intruder.record["id"]
                        for entry in reply.body["data"]
                        if "admin_key_id" in entry
                    )
    assert (await intruder.get("/usage")).body["pagination"]["total"] == 0
    assert (await intruder.get("/credentials")).body["pagination"]["total"] == 0
    assert (await intruder.get("/users/usage/summary")).body["data"][0]["total_requests"] == 0
    assert await victim.world() == before


async def test_references_of_one_partner_are_free_for_another(api: Client, victim: Victim) -> None:
    intruder = await partner_of(api, "intruder", ALL)
    assert victim.things["external"] == EXTERNAL_ID
    assert (await intruder.user(external_id=EXTERNAL_ID))["external_id"] == EXTERNAL_ID


async def test_api_keys_are_refused_as_admin_keys(api: Client, victim: Victim) -> None:
    credential, api_key = await victim.partner.issued({"id": victim.things["user"]})
    assert credential["api_key_prefix"] in api_key
    for route in ADMIN_ROUTES:
        reply = await api.call(route.method, route.path.replace("{id}", NOWHERE), api_key)
        assert (reply.status, reply.error) == (403, "Invalid admin API key")
