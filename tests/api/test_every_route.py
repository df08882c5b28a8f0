"""Properties of every route in the table: envelope, limits, duplicates, hostile texts."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest
from structlog.testing import capture_logs

from api.answers import CONTENT_TYPE
from api.keys import tokens
from api.keys.restrictions import SCOPES
from api.parameters import MAX_SAFE_INTEGER, Choices, Integer, Moment
from api.route import JSON, Route
from api.routes import ROUTES
from shared import address
from tests.api.chains import FOLLOWED, Chain, hash_of
from tests.api.client import Client, Reply
from tests.api.hostile import BROKEN, HOSTILE
from tests.api.partners import BODIES, BOOTSTRAP_KEY, Partner, changeable, everything, kept
from tests.api.payments import ALICE, STAKE, pays

KEYED = [route for route in ROUTES if route.access != "open" and JSON in route.media_types]
# A log is read by the numbers of its events, instead of an offset.
LISTS = [route for route in KEYED if {"limit", "offset"} <= {field.name for field in route.fields}]
ENVELOPE = ["success", "data", "message", "pagination", "last_updated"]

# The largest and the default limit, if they are not 100 and 20 (admin lists) or 500 and 100 (chain lists).
LIMITS = {
    "/v1/admin/audit-logs": (100, 50),
    "/v1/admin/usage/{id}/breakdown": (1_000, 100),
    "/v1/admin/users/{id}/usage/breakdown": (1_000, 100),
    "/v1/metadata/labels/{label}": (100, 20),
    "/v1/subscriptions": (100, 20),
    "/v1/scripts/{scriptHash}/redeemers": (100, 20),
    "/v1/tx/address/{address}": (100, 20),
    "/v1/accounts/{stake_address}/transactions/detailed": (100, 20),
    "/v1/payment-credentials/{payment_credential}/transactions/detailed": (100, 20),
}


class Caller:
    """Calls routes with the key that each needs, and with existing ids of the caller in their paths."""

    def __init__(self, api: Client, partner: Partner, key: str, things: dict[str, str]) -> None:
        self.api, self.partner, self.key, self.things = api, partner, key, things

    def of(self, route: Route) -> str:
        """The key for a route."""
        return {"api key": self.key, "bootstrap": BOOTSTRAP_KEY}.get(route.access, self.partner.admin_key)

    def path(self, route: Route, **encoded: str) -> str:
        """A route's path with existing ids, some of them replaced."""
        found = re.search(r"/(credentials|usage|subscriptions)/\{id\}", route.path)
        kind = {"subscriptions": "subscription", None: "user"}.get(found and found[1], "credential")
        values = {**self.things, "id": self.things[kind], **encoded}
        return re.sub(r"\{(\w+)\}", lambda found: values[found[1]], route.path)

    async def call(self, route: Route, path: str, **options: Any) -> Reply:
        """One request; the answer must be in the envelope and not a 500."""
        if route.body is not None and not options:
            options = {"json": {}}
        reply = await self.api.call(route.method, path, self.of(route), **options)
        shown = (route.method, path[:200], str(options)[:200], reply.status, reply.body)
        assert reply.status < 500 or reply.headers["Error-Code"] == "no_node", shown  # it has none to read from
        assert reply.headers["Content-Type"] == CONTENT_TYPE, shown
        assert "X-Injected" not in reply.headers
        if reply.status < 400:
            assert list(reply.body) == [name for name in ENVELOPE if name in reply.body], shown
            assert reply.body["success"] is True
            assert all(re.fullmatch(r"[0-9]{4}(-[0-9]{2}){2}T.{8}([.][0-9]+)?Z", time) for time in times(reply.body))
        else:
            assert reply.error
        return reply


@pytest.fixture
async def caller(api: Client, chain: Chain, key: str, partner: Partner, db: asyncpg.Connection) -> Caller:
    """A partner with one object of every kind and an API key for everything, on a chain with a transaction."""
    await db.execute("UPDATE partner.credential SET scopes = $1", SCOPES)
    await chain.append(10, pays("a", ALICE))
    user = await partner.user(external_id="mine")
    credential, _ = await partner.issued(user)
    things = {
        "user": user["id"],
        "credential": credential["id"],
        "subscription": await subscription_of(db, key),
        "external_id": "mine",
        "address": ALICE,
        "stake_address": STAKE,
        "payment_credential": address.show_payment_credential(address.of_node(ALICE)[1:29], "addr_vkh1"),
        "tx_hash": hash_of("a").hex(),
        "index": "0",
        "hash": hash_of("a").hex(),
        "label": "674",
        "scriptHash": "0" * 56,
        "datumHash": "0" * 64,
        "asset": f"{'0' * 56}.00",
        "policyId": "0" * 56,
        "poolId": "0" * 56,
        "block": "latest",
        "epoch": "latest",
    }
    return Caller(api, partner, key, things)


async def subscription_of(db: asyncpg.Connection, key: str) -> str:
    """A live subscription of the credential with this key, on a network that is followed."""
    await db.execute(FOLLOWED)
    subscription_id: str = await db.fetchval(
        "INSERT INTO partner.subscription"
        " (credential_id, network_id, confirmations, state, live_step, after_slot_no, at_slot_no)"
        " SELECT id, network_id, 0, 'live', 1, 0, 0 FROM partner.credential WHERE key_hash = $1 RETURNING id::text",
        tokens.hash_of(key),
    )
    return subscription_id


def times(body: Any) -> Iterator[str]:
    """Every field of an answer that is named like a time and is set."""
    if isinstance(body, dict):
        named = re.compile(r".*(_at|_time|period_start|period_end)")
        yield from (value for name, value in body.items() if named.fullmatch(name) and value is not None)
    for part in body.values() if isinstance(body, dict) else body if isinstance(body, list) else ():
        yield from times(part)


def fields_in_query(route: Route) -> Iterator[Any]:
    """The fields of its question that are query parameters."""
    return (field for field in route.fields if f"{{{field.name}}}" not in route.path)


async def test_each_plain_request_is_answered_in_the_envelope(caller: Caller) -> None:
    """Each answer has the one shape of success or of failure. docs/http-api.md, "Envelope"."""
    for route in KEYED:
        reply = await caller.call(route, caller.path(route))
        if route.method == "GET":
            assert reply.status in ({200, 404, 503} if route.access == "api key" else {200}), route.path


async def test_every_list_has_its_documented_limits(caller: Caller) -> None:
    """The default, the largest value, and the refusal above it."""
    for route in LISTS:
        most, usual = LIMITS.get(route.path, (500, 100) if route.access == "api key" else (100, 20))
        (limit,) = (field for field in route.fields if field.name == "limit")
        assert isinstance(limit.kind, Integer)
        assert (limit.kind.low, limit.kind.high, limit.default) == (1, most, usual), route.path
        path = caller.path(route)
        plain = await caller.call(route, path)
        if plain.status == 200:
            assert (plain.body["pagination"]["limit"], plain.body["pagination"]["offset"]) == (usual, 0), route.path
        for accepted in (1, most):
            assert (await caller.call(route, f"{path}?limit={accepted}")).status == plain.status, route.path
        for wrong in (0, most + 1, -1, "x", "", "1.0"):
            refused = await caller.call(route, f"{path}?limit={wrong}")
            assert (refused.status, refused.error) == (400, f"limit must be between 1 and {most}"), route.path
        for wrong in (-1, MAX_SAFE_INTEGER + 1, "x"):
            refused = await caller.call(route, f"{path}?offset={wrong}")
            assert (refused.status, refused.error) == (400, f"offset must be between 0 and {MAX_SAFE_INTEGER}"), (
                route.path
            )
        assert (await caller.call(route, f"{path}?offset={MAX_SAFE_INTEGER}")).status == plain.status, route.path


async def test_a_repeated_parameter_is_refused_and_unknown_ones_are_ignored(caller: Caller) -> None:
    for route in KEYED:
        path = caller.path(route)
        for field in fields_in_query(route):
            twice = await caller.call(route, f"{path}?{field.name}=1&{field.name}=1")
            assert (twice.status, twice.error) == (400, f"{field.name} must be given once"), route.path
        if route.method == "GET":
            known = (await caller.call(route, path)).status
            ignored = "unknown=1&unknown=2&LIMIT=0&limit%20=0&__proto__=1&admin_key=x&&=&%FF=%00"
            assert (await caller.call(route, f"{path}?{ignored}")).status == known, route.path


async def test_hostile_texts_in_paths_and_queries_are_harmless(caller: Caller, db: asyncpg.Connection) -> None:
    texts = [*(quote(text, safe="") for text in HOSTILE), *BROKEN]

    async def send(route: Route) -> None:
        for text in texts:
            for _, name in route.parameters:
                reply = await caller.call(route, caller.path(route, **{name: text}))
                if name == "label" and text.isdecimal() and int(text) < 2**64:  # which nothing is listed under
                    continue
                assert reply.status in {400, 404, 405}, (route.path, text)
                if route.access == "api key" and text:
                    assert reply.status == 400, (route.path, text)
            for field in fields_in_query(route):
                await caller.call(route, f"{caller.path(route)}?{field.name}={text}")

    before = await kept(db)
    await asyncio.gather(*(send(route) for route in KEYED if route.method == "GET"))
    assert await kept(db) == before
    for text in texts:
        for route in KEYED:
            if route.method != "GET" and "{id}" in route.path and text:
                assert (await caller.call(route, caller.path(route, id=text))).status == 400, (route.path, text)
    assert await kept(db) == before


async def test_hostile_values_in_bodies_are_stored_unchanged_or_refused(caller: Caller) -> None:
    values: list[Any] = [*HOSTILE, *HOSTILE[:5], [], {}, [[]], [None], {"a": None}, 0, -1, 2**64, 1.5, True, False]
    plain: dict[str, Any] = {
        "name": "x",
        "entity_name": "x",
        "user_account_id": caller.things["user"],
        "network_id": 1,
    }
    for route in KEYED:
        if route.body is None or route.access == "api key":  # transactions: tests/api/test_submission.py
            continue
        whole = {field.name: plain[field.name] for field in route.body_fields if field.name in plain}
        for field in route.body_fields:
            for value in values:
                reply = await caller.call(route, caller.path(route), json=whole | {field.name: value})
                if reply.status >= 400:
                    assert reply.status in {400, 404, 409}, (route.path, field.name, value)
                    assert field.name.lower() in reply.error.lower() or reply.status != 400, (route.path, reply.error)
                    continue
                assert route.access != "api key", (route.path, value)
                told = reply.body["data"]
                made = told.get("credential") or told.get("admin_key") or told
                if not isinstance(field.kind, Moment | Choices) and value not in (None, False):
                    expected = None if (field.name, value) == ("external_id", "") else value
                    assert made[field.name] == expected, (route.path, field.name)
        for wrong in ("1", "null", "[]", '"x"', "", "{", '{"a":1}}', "{" * 9_999, '{"a":' * 9_999, "[" * 200_000):
            refused = await caller.call(route, caller.path(route), data=wrong.encode())
            assert (refused.status, refused.error) == (400, "Invalid JSON body"), (route.path, wrong[:20])
        large = b'{"name": "' + b"x" * 1024**2 + b'"}'
        assert (await caller.call(route, caller.path(route), data=large)).status == 413, route.path
        nested = b'{"name": "x", "unknown": ' + b"[" * 90 + b"]" * 90 + b"}"
        assert (await caller.call(route, caller.path(route), data=nested)).status in {200, 201, 400}, route.path


async def test_the_last_of_duplicate_fields_counts(caller: Caller) -> None:
    """RFC 8259, section 4, does not define it; the checked value must be the stored one."""
    user = await caller.partner.data("POST", "/users", {"name": "x"})
    reply = await caller.partner.call("PATCH", f"/users/{user['id']}", data=b'{"name": "\\u0020", "name": "kept"}')
    assert (reply.status, reply.body["data"]["name"]) == (200, "kept")
    reply = await caller.partner.call("PATCH", f"/users/{user['id']}", data=b'{"name": "kept", "name": " "}')
    assert reply.status == 400


async def test_several_authorization_headers_are_malformed_on_every_route(caller: Caller) -> None:
    for route in KEYED:
        line = f"Authorization: Bearer {caller.of(route)}\r\n"
        start = f"{route.method} {caller.path(route)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        for lines in (line * 2, line + "authorization: x\r\n", "AUTHORIZATION:\r\n" + line):
            answer = await caller.api.raw(f"{start}{lines}\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 401 "), (route.path, answer[:50])


async def test_no_admin_call_writes_into_a_newer_schema(caller: Caller, db: asyncpg.Connection) -> None:
    """The first calls would record the use of the key, the others only their own change."""
    await caller.api.get("/v1/admin/admin-keys", BOOTSTRAP_KEY)  # makes its record
    await db.execute("UPDATE partner.schema_version SET version = 9999")
    for used in ("NULL", "now() + interval '1 hour'"):
        await db.execute(f"UPDATE partner.admin_key SET last_used_at = {used}")  # noqa: S608 - one of the two above
        before = await everything(db)
        for route in KEYED:
            if route.access != "api key":
                body = {"json": BODIES.get(route.path, {"entity_name": "x"})} if route.body else {}
                reply = await caller.api.call(route.method, caller.path(route), caller.of(route), **body)
                if used == "NULL" or reply.status != 200:
                    assert (reply.status, reply.error) == (503, "Service is being upgraded"), route.path
        assert await everything(db) == before


async def test_an_admin_change_and_its_audit_entry_are_one_commit(caller: Caller, db: asyncpg.Connection) -> None:
    """If the entry can't be written, nothing changes; a change without an entry would succeed."""
    await caller.api.get("/v1/admin/admin-keys", BOOTSTRAP_KEY)  # makes its record
    await db.execute("ALTER TABLE partner.audit_log ADD CONSTRAINT full_ CHECK (false) NOT VALID")
    before = await changeable(db)
    for route in KEYED:
        if route.access == "api key" or route.method == "GET":
            continue
        body = BODIES.get(route.path, {"entity_name": "x"})
        if "user_account_id" in body:
            body = body | {"user_account_id": caller.things["user"]}
        path = caller.path(route, id=caller.partner.record["id"]) if "admin-keys" in route.path else caller.path(route)
        with capture_logs():  # a traceback is slow to print
            reply = await caller.api.call(
                route.method, path, caller.of(route), **({"json": body} if route.body else {})
            )
        assert reply.status == 500, route.name
        assert await changeable(db) == before, route.name
