"""User accounts: created, changed, suspended and listed. docs/http-api.md, "Requests" and "Keys"."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from tests.api.partners import NOWHERE, Partner

FIELDS = [
    "id",
    "admin_key_id",
    "admin_entity_name",
    "external_id",
    "name",
    "email",
    "metadata",
    "created_at",
    "updated_at",
    "status",
    "billing_plan",
]


async def test_a_user_is_created_active_and_belongs_to_the_calling_key(partner: Partner) -> None:
    body = {"name": "Bob", "external_id": "b-1", "email": "b@x", "metadata": {"tier": [1, "é"]}, "billing_plan": "pro"}
    reply = await partner.call("POST", "/users", body)
    assert reply.status == 201
    assert list(reply.body) == ["success", "data", "message"]
    user = reply.body["data"]
    assert list(user) == FIELDS
    assert {field: user[field] for field in body} == body
    assert user["admin_key_id"] == partner.record["id"]
    assert user["admin_entity_name"] == "ACME"
    assert (user["status"], user["updated_at"]) == ("active", None)
    assert user["created_at"].endswith("Z")
    assert abs((datetime.now(UTC) - datetime.fromisoformat(user["created_at"])).total_seconds()) < 60
    assert await partner.data("GET", f"/users/{user['id']}") == user


async def test_omitted_fields_are_null_and_metadata_is_empty(partner: Partner) -> None:
    bare = await partner.user()
    nulls = await partner.user(external_id=None, email=None, metadata=None, billing_plan=None, unknown="ignored")
    for user in (bare, nulls):
        assert (user["external_id"], user["email"], user["billing_plan"], user["metadata"]) == (None, None, None, {})


async def test_a_name_is_required_not_blank_and_at_most_255_characters(partner: Partner) -> None:
    """A name of white space counts as empty. docs/http-api.md, "Requests"."""
    for body in ({}, {"name": None}):
        reply = await partner.call("POST", "/users", body)
        assert (reply.status, reply.error) == (400, "name is required")
    empty: list[object] = ["", " \t\n", 5, True, [], {}]
    for name in empty:
        reply = await partner.call("POST", "/users", {"name": name})
        assert reply.status == 400, name
        assert reply.error.startswith("name ")
    long = await partner.call("POST", "/users", {"name": "é" * 256})
    assert (long.status, long.error) == (400, "Name must be 255 characters or less")
    assert (await partner.user(name="é" * 255))["name"] == "é" * 255


@pytest.mark.parametrize("field", ["external_id", "email", "billing_plan"])
async def test_other_texts_are_at_most_255_characters(partner: Partner, field: str) -> None:
    assert (await partner.user(**{field: "x" * 255}))[field] == "x" * 255
    for wrong in ("x" * 256, 1, {"a": 1}, ["x"], False):
        reply = await partner.call("POST", "/users", {"name": "x", field: wrong})
        assert reply.status == 400
        assert reply.error.startswith(f"{field} ")


async def test_metadata_is_an_object_of_at_most_16_kib_of_compact_json(partner: Partner) -> None:
    """Its size is that of its compact JSON in UTF-8, not of the bytes sent. docs/http-api.md, "Requests"."""
    most = {"é": "x" * (16 * 1024 - len('{"é":""}'.encode()))}
    assert len(msgspec.json.encode(most)) == 16 * 1024
    assert (await partner.user(metadata=most))["metadata"] == most
    spaced = b'{"name": "x", "metadata": {' + b" " * 20_000 + b'"a": 1}}'
    assert (await partner.call("POST", "/users", data=spaced)).status == 201
    escaped = ('{"name": "x", "metadata": {"a": "' + "\\u0061" * 16_000 + '"}}').encode()
    assert (await partner.call("POST", "/users", data=escaped)).status == 201
    no_metadata: list[object] = [{"é": "x" * 16 * 1024}, [], "x", 1, True]
    for wrong in no_metadata:
        reply = await partner.call("POST", "/users", {"name": "x", "metadata": wrong})
        assert reply.status == 400
        assert reply.error.startswith("metadata ")


async def test_metadata_is_returned_unchanged(partner: Partner) -> None:
    sent = {
        "z": 2**64 + 1,
        "a": -(2**63),
        "ü'; DROP TABLE partner.user_account; --": "' OR 1=1",
        "nested": {"deep": [[[{"x": None}], True], 0.1, 1e300]},
        "": "\u2028\uffff😀",
    }
    user = await partner.user(metadata=sent)
    assert user["metadata"] == sent
    assert list((await partner.data("GET", f"/users/{user['id']}"))["metadata"]) == list(sent)


async def test_nul_and_lone_surrogates_are_refused_everywhere(partner: Partner) -> None:
    user = await partner.user()
    for text in ('"a\\u0000b"', '"\\ud800"', '"\\udc00\\ud800"'):
        for body in (f'{{"name": {text}}}', f'{{"name": "x", "metadata": {{"k": [{text}]}}}}'):
            for method, path in (("POST", "/users"), ("PATCH", f"/users/{user['id']}")):
                assert (await partner.call(method, path, data=body.encode())).status == 400, body
        key = f'{{"name": "x", "metadata": {{{text}: 1}}}}'
        assert (await partner.call("POST", "/users", data=key.encode())).status == 400
    for path in ("a%00b", "%ED%A0%80", "%FF"):
        reply = await partner.get(f"/users/by-external-id/{path}")
        assert reply.status == 400, path


@pytest.mark.parametrize("body", [b"", b"[]", b'"x"', b"{", b"null", b'{"name": "\xff"}', b"{" * 50_000, b"[" * 50_000])
async def test_a_body_other_than_a_json_object_is_refused(partner: Partner, body: bytes) -> None:
    user = await partner.user()
    for method, path in (("POST", "/users"), ("PATCH", f"/users/{user['id']}"), ("POST", "/credentials")):
        reply = await partner.call(method, path, data=body)
        assert (reply.status, reply.error) == (400, "Invalid JSON body")


async def test_users_are_listed_newest_first_in_pages_with_a_total(partner: Partner, rival: Partner) -> None:
    made = [await partner.user(name=f"user {number}") for number in range(5)]
    await rival.user()
    newest = [user["id"] for user in reversed(made)]
    first = await partner.get("/users?limit=2")
    assert [user["id"] for user in first.body["data"]] == newest[:2]
    assert first.body["pagination"] == {"limit": 2, "offset": 0, "total": 5, "hasMore": True}
    last = await partner.get("/users?limit=2&offset=4")
    assert [user["id"] for user in last.body["data"]] == newest[4:]
    assert last.body["pagination"] == {"limit": 2, "offset": 4, "total": 5, "hasMore": False}
    beyond = await partner.get("/users?offset=99")
    assert (beyond.body["data"], beyond.body["pagination"]["hasMore"]) == ([], False)
    assert (await partner.get("/users")).body["pagination"]["limit"] == 20


async def test_users_are_filtered_by_status(partner: Partner) -> None:
    active, suspended = await partner.user(), await partner.user()
    await partner.data("POST", f"/users/{suspended['id']}/suspend")
    for status, expected in (("active", [active["id"]]), ("suspended", [suspended["id"]]), ("pending", [])):
        reply = await partner.get(f"/users?status={status}")
        assert [user["id"] for user in reply.body["data"]] == expected
        assert reply.body["pagination"]["total"] == len(expected)
    wrong = await partner.get("/users?status=gone")
    assert (wrong.status, wrong.error) == (400, "status must be active, suspended or pending")


async def test_wrong_pages_are_refused(partner: Partner) -> None:
    for query in ("limit=0", "limit=101", "limit=", "limit=1.0", "limit=-1", "limit=%201", "limit=1e1"):
        reply = await partner.get(f"/users?{query}")
        assert (reply.status, reply.error) == (400, "limit must be between 1 and 100"), query
    for query in ("offset=-1", "offset=x", f"offset={2**64}"):
        assert (await partner.get(f"/users?{query}")).error.startswith("offset must be between 0 and")
    assert (await partner.get("/users?limit=1&limit=2")).error == "limit must be given once"
    assert (await partner.get("/users?nonsense=1")).status == 200


async def test_only_given_fields_change(partner: Partner) -> None:
    """Metadata is replaced as a whole, updated_at is set, and null clears an optional field."""
    before = await partner.user(external_id="e", email="m", billing_plan="p", metadata={"a": 1, "b": 2})
    reply = await partner.call("PATCH", f"/users/{before['id']}", {"email": "new"})
    assert (reply.status, list(reply.body)) == (200, ["success", "data", "message"])
    after = reply.body["data"]
    assert after["updated_at"] > before["created_at"]
    assert after == before | {"email": "new", "updated_at": after["updated_at"]}
    after = await partner.data("PATCH", f"/users/{before['id']}", {"metadata": {"c": 3}, "name": "other"})
    assert (after["metadata"], after["name"], after["email"]) == ({"c": 3}, "other", "new")
    nulls = {"external_id": None, "email": None, "billing_plan": None, "metadata": None}
    after = await partner.data("PATCH", f"/users/{before['id']}", nulls)
    assert {field: after[field] for field in nulls} == nulls | {"metadata": {}}
    assert after["name"] == "other"


async def test_an_empty_update_changes_nothing(partner: Partner) -> None:
    before = await partner.user(email="m")
    for body in ({}, {"status": "suspended", "id": NOWHERE, "admin_key_id": NOWHERE}):
        assert await partner.data("PATCH", f"/users/{before['id']}", body) == before
    assert await partner.data("GET", f"/users/{before['id']}") == before


async def test_a_name_cannot_be_cleared(partner: Partner) -> None:
    user = await partner.user(name="kept")
    for wrong in (None, "", "  ", 7, "x" * 256):
        reply = await partner.call("PATCH", f"/users/{user['id']}", {"name": wrong, "email": "changed"})
        assert reply.status == 400, wrong
    assert await partner.data("GET", f"/users/{user['id']}") == user


async def test_an_external_id_is_unique_within_one_admin_key(partner: Partner, rival: Partner) -> None:
    await partner.user(external_id="same")
    other = await partner.user(external_id="other")
    for method, path in (("POST", "/users"), ("PATCH", f"/users/{other['id']}")):
        reply = await partner.call(method, path, {"name": "x", "external_id": "same"})
        assert (reply.status, reply.error) == (409, "external_id already in use")
    assert (await rival.user(external_id="same"))["external_id"] == "same"
    assert (await partner.data("PATCH", f"/users/{other['id']}", {"external_id": "other"}))["external_id"] == "other"
    first, second = await asyncio.gather(
        *(partner.call("POST", "/users", {"name": "x", "external_id": "race"}) for _ in range(2))
    )
    assert sorted((first.status, second.status)) == [201, 409]


@pytest.mark.parametrize("external_id", ["plain", "with/slash", "per%cent", "ü😀", "a b+c", "?x=1#y", ".."])
async def test_a_user_is_found_by_its_external_id(partner: Partner, rival: Partner, external_id: str) -> None:
    user = await partner.user(external_id=external_id)
    path = "".join(f"%{byte:02X}" for byte in external_id.encode())
    assert await partner.data("GET", f"/users/by-external-id/{path}") == user
    foreign = await rival.get(f"/users/by-external-id/{path}")
    assert (foreign.status, foreign.error) == (404, "User account not found")


async def test_a_missing_user_is_404_and_a_malformed_id_400(partner: Partner) -> None:
    routes = [
        ("GET", "", None),
        ("PATCH", "", {"name": "x"}),
        ("PATCH", "", {}),
        ("POST", "/suspend", None),
        ("POST", "/reactivate", None),
        ("GET", "/usage", None),
    ]
    for method, path, body in routes:
        missing = await partner.call(method, f"/users/{NOWHERE}{path}", body)
        assert (missing.status, missing.error) == (404, "User account not found"), path
        for wrong in ("1", NOWHERE[:-1], NOWHERE.replace("-", ""), f"%7B{NOWHERE}%7D", "%00"):
            malformed = await partner.call(method, f"/users/{wrong}{path}", body)
            assert (malformed.status, malformed.error) == (400, "Invalid user account ID format"), wrong
    assert (await partner.get("/users/by-external-id/nobody")).error == "User account not found"
    user = await partner.user()
    assert await partner.data("GET", f"/users/{user['id'].upper()}") == user
    wrong_first = await partner.call("PATCH", f"/users/{NOWHERE}", {"email": 5})
    assert wrong_first.status == 400


async def test_suspending_and_reactivating_can_be_repeated(partner: Partner) -> None:
    user = await partner.user()
    first = await partner.data("POST", f"/users/{user['id']}/suspend")
    assert (first["status"], first["updated_at"] is None) == ("suspended", False)
    assert await partner.data("POST", f"/users/{user['id']}/suspend") == first
    active = await partner.data("POST", f"/users/{user['id']}/reactivate")
    assert active["status"] == "active"
    assert active["updated_at"] > first["updated_at"]
    assert await partner.data("POST", f"/users/{user['id']}/reactivate") == active
    assert await partner.actions("action=user_account.suspended") == ["user_account.suspended"]
    assert await partner.actions("action=user_account.reactivated") == ["user_account.reactivated"]


async def test_a_trailing_slash_is_another_path(partner: Partner) -> None:
    assert (await partner.get("/users/")).error == "Not found"
    reply = await partner.call("DELETE", "/users")
    assert (reply.status, reply.error) == (405, "Method not allowed")
