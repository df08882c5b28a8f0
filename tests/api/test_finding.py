"""Filters, and reports of ignored parts of a request. docs/http-api.md, "Requests"."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.api.client import Client
from tests.api.partners import CHAIN_PATH, Partner

HEADER = "Ignored-Fields"


async def test_ignored_parameters_and_fields_are_named_with_the_endpoint_that_can(
    api: Client, partner: Partner, key: str
) -> None:
    user = await partner.user()
    credential, _ = await partner.issued(user)
    in_vain = {"name": "x", "status": "suspended", "nmae": 1}
    reply = await partner.call("PATCH", f"/users/{user['id']}?dry_run=1", in_vain)
    assert reply.status == 200
    use = 'use="POST /v1/admin/users/{id}/suspend"'
    assert reply.headers[HEADER] == f'"dry_run", "status";{use}, "nmae"'
    reply = await partner.call("PATCH", f"/credentials/{credential['id']}", {"rate_limit_per_minute": 5})
    assert reply.status == 400, "a refusal names them as well"
    assert reply.headers[HEADER] == '"rate_limit_per_minute";use="PUT /v1/admin/credentials/{id}/limits"'
    quota = {"requests": 5, "per": "day", "per_day": True}
    path = f"/credentials/{credential['id']}/limits"
    assert (await partner.call("PUT", path, {"quota": quota})).headers[HEADER] == '"quota.per_day"'
    assert (await partner.get("/users?stauts=active")).headers[HEADER] == '"stauts"'
    assert (await api.get(f"{CHAIN_PATH}?Limit=5", key)).headers[HEADER] == '"Limit"'
    for path in ("/v1/admin/users?status=active&limit=1", "/v1/admin/credentials"):
        assert HEADER not in (await api.get(path, partner.admin_key)).headers


async def test_no_name_breaks_out_of_the_header(partner: Partner) -> None:
    names = ["a%0D%0AX-Injected:%201", "%22", "%5C", "%C3%A9", "%FF", "x" * 5_000, *map(str, range(100))]
    reply = await partner.get("/users?" + "&".join(f"{name}=1" for name in names))
    assert reply.status == 200 and "X-Injected" not in reply.headers
    shown = reply.headers[HEADER].split(", ")
    assert shown[:6] == ['"a%0D%0AX-Injected: 1"', '"%22"', '"%5C"', '"%C3%A9"', '"%FF"', '"' + "x" * 100 + '"']
    assert shown[6:] == [f'"{number}"' for number in range(100)]


async def test_the_audit_log_is_found_by_time_kind_and_request(partner: Partner, rival: Partner) -> None:
    before = datetime.now(UTC)
    user = await partner.user()
    reply = await partner.call("POST", "/credentials", {"name": "x", "user_account_id": user["id"], "network_id": 1})
    request_id = reply.headers["X-Request-Id"]
    hour = timedelta(hours=1)

    async def actions(query: str) -> list[str]:
        body = (await partner.get(f"/audit-logs?{query}")).body
        assert body["pagination"]["total"] == len(body["data"])
        return [entry["action"] for entry in body["data"]]

    both = ["credential.created", "user_account.created"]
    assert await actions("target_type=user_account") == ["user_account.created"]
    assert await actions(f"request_id={request_id}") == ["credential.created"]
    assert await actions("request_id=x") == []
    for start, end, found in ((-hour, hour, both), (hour, 2 * hour, []), (-2 * hour, -hour, [])):
        period = [(before + shift).strftime("%Y-%m-%dT%H:%M:%SZ") for shift in (start, end)]
        assert await actions(f"from={period[0]}&to={period[1]}") == found
    assert await actions(f"to={before:%Y-%m-%d}") in (both, []), "a date includes its day; or it is midnight"
    assert (await rival.get(f"/audit-logs?request_id={request_id}")).body["data"] == []
    for query in ("from=x", "to=2026-13-01", "target_type=key"):
        assert (await partner.get(f"/audit-logs?{query}")).error.startswith(query.split("=")[0])
    assert (await partner.get("/audit-logs?from=2026-02-01&to=2026-01-01")).error == "from must not be after to"


async def test_an_empty_reference_becomes_null(partner: Partner) -> None:
    first, second = await partner.user(external_id=""), await partner.user(external_id="")
    assert first["external_id"] is second["external_id"] is None
    named = await partner.user(external_id="mine")
    changed = await partner.data("PATCH", f"/users/{named['id']}", {"external_id": ""})
    assert changed["external_id"] is None


@pytest.mark.parametrize(
    ("path", "first", "again"),
    [
        ("suspend", "User account suspended", "User account was already suspended"),
        ("reactivate", "User account was already active", "User account was already active"),
    ],
)
async def test_a_change_that_changes_nothing_says_so(partner: Partner, path: str, first: str, again: str) -> None:
    user = await partner.user()
    for message in (first, again):
        assert (await partner.call("POST", f"/users/{user['id']}/{path}")).body["message"] == message
    assert (await partner.call("PATCH", f"/users/{user['id']}", {})).body["message"] == "User account unchanged"
