"""Credentials: issued, changed, revoked and listed. docs/http-api.md, "Requests" and "Keys"."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from api.keys import tokens
from tests.api.chains import Chain
from tests.api.indexers import slot_now
from tests.api.partners import CHAIN_PATH, NOTHING_INDEXED, NOWHERE, Partner
from tests.api.payments import ALICE, pays

FIELDS = [
    "id",
    "name",
    "description",
    "api_key_prefix",
    "created_at",
    "user_account_id",
    "user_account_name",
    "user_external_id",
    "admin_key_id",
    "admin_entity_name",
    "network_id",
    "last_used_at",
    "expires_at",
    "revoked",
    "revoked_at",
    "rate_limit_per_minute",
    "metadata",
]
REVOKED_FIELDS = [
    "id",
    "name",
    "api_key_prefix",
    "user_account_id",
    "user_account_name",
    "admin_key_id",
    "admin_entity_name",
    "network_id",
    "revoked",
    "revoked_at",
]
NETWORK_ID = "network_id is required (0=Mainnet, 1=Preview, 2=Preprod)"


async def test_a_key_of_a_network_that_is_not_served_says_so(partner: Partner, chain: Chain) -> None:
    user = await partner.user()
    body = {"name": "k", "user_account_id": user["id"]}

    async def told(network_id: int) -> str:
        message: str = (await partner.call("POST", "/credentials", body | {"network_id": network_id})).body["message"]
        return message.removeprefix("Credential created. Store the API key now: it is not shown again")

    await chain.append(slot_now(), pays("a", ALICE))
    unserved = ". Chain requests of mainnet are answered with 503 until it is available"
    assert [await told(network_id) for network_id in (1, 0)] == ["", unserved]


async def test_the_key_is_shown_once_and_only_its_hash_is_stored(partner: Partner, db: asyncpg.Connection) -> None:
    user = await partner.user(name="Bob", external_id="b")
    body = {"name": "k", "user_account_id": user["id"], "network_id": 1}
    reply = await partner.call("POST", "/credentials", body)
    assert reply.status == 201
    assert list(reply.body) == ["success", "data", "message"]
    assert list(reply.body["data"]) == ["credential", "api_key"]
    credential, api_key = reply.body["data"]["credential"], reply.body["data"]["api_key"]
    assert list(credential) == FIELDS
    assert re.fullmatch(r"iiak_[0-9a-f]{48}", api_key)
    assert len(api_key) == 53
    assert credential["api_key_prefix"].startswith("iiak_")
    assert api_key.startswith(credential["api_key_prefix"])
    assert len(credential["api_key_prefix"]) < 20
    assert credential["user_account_name"] == "Bob"
    assert (credential["user_external_id"], credential["admin_key_id"]) == ("b", partner.record["id"])
    assert (credential["rate_limit_per_minute"], credential["metadata"], credential["description"]) == (60, {}, None)
    assert (credential["revoked"], credential["revoked_at"], credential["expires_at"]) == (False, None, None)

    stored = str(await db.fetch("SELECT credential::text FROM partner.credential"))
    stored += str(await db.fetch("SELECT audit_log::text FROM partner.audit_log"))
    assert api_key[5:] not in stored
    assert api_key.encode().hex() not in stored
    assert tokens.hash_of(api_key).hex() in stored
    for path in (f"/credentials/{credential['id']}", "/credentials", "/usage", "/audit-logs"):
        assert api_key not in str((await partner.get(path)).body)


async def test_every_field_is_stored(partner: Partner) -> None:
    user = await partner.user()
    given: dict[str, Any] = {
        "name": "é" * 255,
        "description": "d" * 2_000,
        "expires_at": "2199-05-06T07:08:09.5Z",
        "rate_limit_per_minute": 10_000,
        "metadata": {"a": [1, None]},
    }
    for network_id in (0, 1, 2):
        credential, _ = await partner.issued(user, network_id=network_id, **given)
        assert {field: credential[field] for field in given} == given | {"expires_at": "2199-05-06T07:08:09.500000Z"}
        assert credential["network_id"] == network_id
        assert await partner.data("GET", f"/credentials/{credential['id']}") == credential


async def test_missing_fields_are_refused_in_the_specified_words(partner: Partner) -> None:
    user = await partner.user()
    whole: dict[str, Any] = {"name": "k", "user_account_id": user["id"], "network_id": 1}
    for field, message in (
        ("name", "name is required"),
        ("user_account_id", "user_account_id is required"),
        ("network_id", NETWORK_ID),
    ):
        left_out = {name: value for name, value in whole.items() if name != field}
        for body in (left_out, whole | {field: None}):
            reply = await partner.call("POST", "/credentials", body)
            assert (reply.status, reply.error) == (400, message)
    no_network: list[object] = [3, -1, "1", 1.0, True, [], "preview"]
    for wrong in no_network:
        reply = await partner.call("POST", "/credentials", whole | {"network_id": wrong})
        assert (reply.status, reply.error) == (400, NETWORK_ID), wrong


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("name", ["", "  ", "x" * 256, 1]),
        ("user_account_id", ["x", 1, NOWHERE[:-1], {}]),
        ("description", ["x" * 2_001, 1, []]),
        ("expires_at", ["tomorrow", 1, "2199-13-01", "2199-01-01T25:00:00Z", "2199-01-01T00:00:00 05:00", ""]),
        ("rate_limit_per_minute", [0, 10_001, "60", 1.5, -1, True]),
        ("metadata", [[], "x", 1, {"a": "x" * 16_385}]),
    ],
)
async def test_wrong_fields_are_named(partner: Partner, field: str, wrong: list[object]) -> None:
    user = await partner.user()
    for value in wrong:
        body = {"name": "k", "user_account_id": user["id"], "network_id": 1, field: value}
        reply = await partner.call("POST", "/credentials", body)
        assert reply.status == 400, value
        assert reply.error.lower().startswith(field), reply.error


async def test_null_is_the_same_as_leaving_it_out(partner: Partner) -> None:
    nulls = dict.fromkeys(("description", "expires_at", "rate_limit_per_minute", "metadata"))
    credential, _ = await partner.issued(await partner.user(), **nulls)
    assert (credential["rate_limit_per_minute"], credential["metadata"], credential["expires_at"]) == (60, {}, None)


async def test_an_expiry_must_lie_in_the_future(partner: Partner) -> None:
    """A date without a time means its first instant (UTC). docs/http-api.md, "Requests"."""
    user = await partner.user()
    now = datetime.now(UTC)
    body = {"name": "k", "user_account_id": user["id"], "network_id": 1}
    for past in (now.isoformat(), "2020-01-01", now.date().isoformat(), "2020-01-01T00:00:00+14:00"):
        reply = await partner.call("POST", "/credentials", body | {"expires_at": past})
        assert (reply.status, reply.error) == (400, "expires_at must be in the future"), past
    tomorrow = (now + timedelta(days=1)).date().isoformat()
    credential, _ = await partner.issued(user, expires_at=tomorrow)
    assert credential["expires_at"] == f"{tomorrow}T00:00:00Z"
    credential, _ = await partner.issued(user, expires_at="2199-01-01T00:00:00-05:00")
    assert credential["expires_at"] == "2199-01-01T05:00:00Z"
    for last in ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999998Z"):
        credential, _ = await partner.issued(user, expires_at=last)
        assert credential["expires_at"] == "9999-12-31T23:59:59.999998Z"


async def test_the_account_must_be_the_callers(partner: Partner, rival: Partner) -> None:
    foreign = await rival.user()
    for user_account_id in (foreign["id"], NOWHERE):
        body = {"name": "k", "user_account_id": user_account_id, "network_id": 1}
        reply = await partner.call("POST", "/credentials", body)
        assert (reply.status, reply.error) == (404, "User account not found")
    wrong_first = await partner.call("POST", "/credentials", body | {"rate_limit_per_minute": 0})
    assert wrong_first.status == 400


async def test_credentials_are_listed_newest_first_without_revoked_ones(partner: Partner) -> None:
    user, other = await partner.user(), await partner.user()
    made = [(await partner.issued(each, name=str(number)))[0] for number, each in enumerate([user, other, user])]
    await partner.data("DELETE", f"/credentials/{made[1]['id']}")

    def names(reply: Any) -> list[str]:
        return [credential["name"] for credential in reply.body["data"]]

    plain = await partner.get("/credentials")
    assert names(plain) == ["2", "0"]
    assert plain.body["pagination"] == {"limit": 20, "offset": 0, "total": 2, "hasMore": False}
    assert all(list(credential) == FIELDS for credential in plain.body["data"])
    for flag in ("false", "0"):
        assert names(await partner.get(f"/credentials?includeRevoked={flag}")) == ["2", "0"]
    for flag in ("true", "1"):
        everything = await partner.get(f"/credentials?includeRevoked={flag}&limit=2")
        assert names(everything) == ["2", "1"]
        assert everything.body["pagination"] == {"limit": 2, "offset": 0, "total": 3, "hasMore": True}
    for wrong in ("yes", "True", "", "2"):
        assert (await partner.get(f"/credentials?includeRevoked={wrong}")).error == (
            "includeRevoked must be true, false, 1 or 0"
        )
    for wrong in ("0", "101", "x"):
        assert (await partner.get(f"/credentials?limit={wrong}")).error == "limit must be between 1 and 100"


async def test_only_name_and_description_can_be_changed(partner: Partner) -> None:
    before, _ = await partner.issued(await partner.user(), description="d")
    path = f"/credentials/{before['id']}"
    reply = await partner.call("PATCH", path, {"name": "new", "network_id": 2, "rate_limit_per_minute": 9})
    assert (reply.status, list(reply.body)) == (200, ["success", "data", "message"])
    assert reply.body["data"] == before | {"name": "new"}
    assert await partner.data("PATCH", path, {"description": "e"}) == before | {"name": "new", "description": "e"}
    assert await partner.data("PATCH", path, {"description": None}) == before | {"name": "new", "description": None}
    for body in ({}, {"network_id": 2}):
        nothing = await partner.call("PATCH", path, body)
        assert (nothing.status, nothing.error) == (400, "At least one field (name or description) must be provided")
    long = await partner.call("PATCH", path, {"name": "x" * 256})
    assert (long.status, long.error) == (400, "Name must be 255 characters or less")
    for wrong in ({"name": None}, {"name": " "}, {"name": 1}, {"description": 1}, {"description": "x" * 2_001}):
        assert (await partner.call("PATCH", path, wrong)).status == 400
    assert await partner.data("GET", path) == before | {"name": "new", "description": None}


async def test_a_revoked_credential_stays_readable_and_can_never_change(partner: Partner) -> None:
    """revoked_at is set, the key is invalid immediately, the record stays, any further update or revocation is 404."""
    credential, api_key = await partner.issued(await partner.user())
    path = f"/credentials/{credential['id']}"
    assert (await partner.api.get(CHAIN_PATH, api_key)).status == NOTHING_INDEXED
    reply = await partner.call("DELETE", path)
    assert (reply.status, list(reply.body)) == (200, ["success", "data", "message"])
    revoked = reply.body["data"]
    assert list(revoked) == REVOKED_FIELDS
    assert revoked["revoked"] is True
    assert {field: revoked[field] for field in REVOKED_FIELDS[:-2]} == {
        field: credential[field] for field in REVOKED_FIELDS[:-2]
    }
    refused = await partner.api.get(CHAIN_PATH, api_key)
    assert (refused.status, refused.error) == (403, "Invalid API key")
    kept = await partner.data("GET", path)
    assert (kept["revoked"], kept["revoked_at"]) == (True, revoked["revoked_at"])
    for method, body in (("PATCH", {"name": "x"}), ("DELETE", None)):
        again = await partner.call(method, path, body)
        assert (again.status, again.error) == (404, "Credential not found or already revoked")


async def test_a_missing_credential_is_404_and_a_malformed_id_400(partner: Partner) -> None:
    for method, path, body, message in (
        ("GET", "/credentials", None, "Credential not found"),
        ("PATCH", "/credentials", {"name": "x"}, "Credential not found or already revoked"),
        ("DELETE", "/credentials", None, "Credential not found or already revoked"),
        ("GET", "/usage", None, "Credential not found"),
    ):
        missing = await partner.call(method, f"{path}/{NOWHERE}", body)
        assert (missing.status, missing.error) == (404, message)
        for wrong in ("x", NOWHERE + "0", NOWHERE.replace("-", ""), "%00", "a%2Fb"):
            malformed = await partner.call(method, f"{path}/{wrong}", body)
            assert (malformed.status, malformed.error) == (400, "Invalid credential ID format"), wrong


async def test_rotation_leaves_no_gap(partner: Partner) -> None:
    """Create a new credential for the same account, switch to it, revoke the old one."""
    user = await partner.user()
    old, old_key = await partner.issued(user)
    _, new_key = await partner.issued(user)
    for key in (old_key, new_key):
        assert (await partner.api.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
    await partner.data("DELETE", f"/credentials/{old['id']}")
    assert (await partner.api.get(CHAIN_PATH, old_key)).status == 403
    assert (await partner.api.get(CHAIN_PATH, new_key)).status == NOTHING_INDEXED


async def test_a_suspended_users_new_key_works_once_it_is_active_again(partner: Partner) -> None:
    user = await partner.user()
    await partner.data("POST", f"/users/{user['id']}/suspend")
    _, api_key = await partner.issued(user)
    refused = await partner.api.get(CHAIN_PATH, api_key)
    assert (refused.status, refused.error) == (403, "User account is not active")
    await partner.data("POST", f"/users/{user['id']}/reactivate")
    assert (await partner.api.get(CHAIN_PATH, api_key)).status == NOTHING_INDEXED
