"""Every answer besides its body: codes, links, limits, tags, compression, CORS. docs/http-api.md."""

import asyncio
import errno
import gzip
from collections.abc import AsyncIterator

import aiohttp
import asyncpg
import pytest

from api.blockfrost.shape import ROOT
from api.http import compression
from api.reference import error_reference
from api.usage import disk
from tests.api.chains import Chain
from tests.api.client import Client
from tests.api.conftest import IssueKey
from tests.api.partners import BOOTSTRAP_KEY, Partner
from tests.api.payments import ALICE, NOBODY, pays
from tests.chain.written import POLICY, Written, mints, person, tx
from tests.chain.written import pays as pays_assets
from tests.patience import PATIENCE_S

HISTORY = f"/v1/tx/history/{ALICE}"


@pytest.fixture
async def paid(chain: Chain) -> Chain:
    """A chain with five payments to Alice in three blocks."""
    await chain.append(10, pays("a", ALICE))
    await chain.append(20, pays("b", ALICE), pays("c", ALICE), pays("d", ALICE))
    await chain.append(30, pays("e", ALICE))
    return chain


# Error-Code -----------------------------------------------------------------------------------------------------------


async def test_each_error_has_its_code(api: Client, paid: Chain, key: str, partner: Partner) -> None:  # noqa: ARG001
    for path, code in (
        ("/nowhere", "not_found"),
        (f"{HISTORY}?limit=0", "invalid_parameter"),
        ("/v1/tx/history/nobody", "invalid_address"),
        (f"/v1/tx/hash/{'0' * 64}", "transaction_not_found"),
        ("/v1/pools/x", "invalid_pool_id"),
    ):
        reply = await api.get(path, key)
        assert reply.headers["Error-Code"] == code, path
    assert (await api.get(HISTORY)).headers["Error-Code"] == "missing_api_key"
    assert (await api.get(HISTORY, "iiak_x")).headers["Error-Code"] == "invalid_api_key"
    assert (await partner.call("POST", "/users", {})).headers["Error-Code"] == "missing_parameter"
    assert (await partner.call("POST", "/admin-keys", {})).headers["Error-Code"] == "permission_denied"
    assert b"Error-Code: malformed_request\r\n" in await api.raw(b"nonsense\r\n\r\n")
    assert "Error-Code" not in (await api.get(HISTORY, key)).headers


async def test_the_reference_lists_each_code(api: Client) -> None:
    listed = (await api.get("/openapi.json")).body["x-errors"]
    documented = error_reference.documented()
    assert len(documented) > 30
    assert [(each["code"], each["status"]) for each in listed] == [(each.code, each.status) for each in documented]
    assert all(each["causes"] and each["remedies"] for each in listed)


# Lists ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["limit=1", "limit=2", "limit=2&order=asc", "limit=3&%6Fffset=0"])
async def test_links_lead_through_a_whole_list(api: Client, paid: Chain, key: str, query: str) -> None:  # noqa: ARG001
    path: str | None = f"{HISTORY}?{query}"
    seen: list[str] = []
    while path:
        reply = await api.get(path, key)
        assert reply.status == 200, reply.body
        seen += [entry["tx_hash"] for entry in reply.body["data"]]
        link = reply.headers.get("Link")
        assert (link is not None) == reply.body["pagination"]["hasMore"]
        path = link.removeprefix("<").removesuffix('>; rel="next"') if link else None
    assert len(seen) == len(set(seen)) == 5


async def test_lists_without_has_more_have_links_too(partner: Partner) -> None:
    for number in range(3):
        await partner.user(name=f"{number}")
    first = await partner.get("/audit-logs?limit=2")
    assert first.headers["Link"] == '</v1/admin/audit-logs?limit=2&offset=2>; rel="next"'
    assert "Link" not in (await partner.get("/audit-logs?limit=100")).headers
    strange = await partner.get("/users?limit=1&x=%ff>")
    assert strange.headers["Link"] == '</v1/admin/users?limit=1&x=%ff%3E&offset=1>; rel="next"'


async def test_limits_have_both_forms(api: Client, paid: Chain, issue_key: IssueKey) -> None:  # noqa: ARG001
    headers = (await api.get(HISTORY, await issue_key(per_minute=7))).headers
    reset = headers["RateLimit-Reset"]
    assert headers["RateLimit-Policy"] == '"minute";q=7;w=60'
    assert headers["RateLimit"] == f'"minute";r={headers["RateLimit-Remaining"]};t={reset}'


# Caching --------------------------------------------------------------------------------------------------------------


async def test_refusals_of_an_authenticated_request_show_its_limits(
    api: Client, issue_key: IssueKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await issue_key(per_minute=5)
    head = f"GET {HISTORY} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: 2000000\r\n\r\n"
    too_large = await api.raw(head.encode())
    assert too_large.startswith(b"HTTP/1.1 413 ")
    assert b"RateLimit-Remaining: 4\r\n" in too_large

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "write", full)
    not_counted = await api.get(HISTORY, key)
    assert (not_counted.status, not_counted.headers["Error-Code"]) == (503, "usage_not_recorded")
    assert not_counted.headers["RateLimit-Remaining"] == "3"
    not_counted = await api.call("POST", "/v1/bulk/transactions", key, json={"ids": ["0" * 64]})
    assert (not_counted.status, "Requests-Counted" in not_counted.headers) == (503, False)


async def test_a_history_has_a_tag_until_the_tip_changes(
    api: Client, paid: Chain, key: str, db: asyncpg.Connection
) -> None:
    first = await api.get(HISTORY, key)
    assert first.headers["Cache-Control"] == "private, no-cache"
    tag = first.headers["ETag"]
    assert tag.startswith('W/"')
    # An answer that depends only on the tip needs no other table.
    await db.execute("ALTER TABLE chain_preview.address_tx RENAME TO elsewhere")
    for known in (tag, tag.removeprefix("W/"), f'"x", {tag}'):
        again = await api.call("GET", HISTORY, key, headers={"If-None-Match": known})
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
        assert "RateLimit-Remaining" in again.headers
    await db.execute("ALTER TABLE chain_preview.elsewhere RENAME TO address_tx")
    await paid.append(40, pays("f", NOBODY))
    changed = await api.call("GET", HISTORY, key, headers={"If-None-Match": tag})
    assert changed.status == 200
    assert changed.headers["ETag"] != tag


@pytest.mark.parametrize(
    ("path", "status"), [("/v1/tx/history/garbage", 400), (f"/v1/tx/hash/{'00' * 32}", 404)], ids=["wrong", "missing"]
)
@pytest.mark.usefixtures("paid")
async def test_the_tag_of_another_answer_hides_no_refusal(api: Client, key: str, path: str, status: int) -> None:
    tag = (await api.get(HISTORY, key)).headers["ETag"]
    assert (await api.call("GET", path, key, headers={"If-None-Match": tag})).status == status


async def test_an_asset_has_the_tag_of_its_body(api: Client, key: str, db: asyncpg.Connection) -> None:
    await db.execute("SET search_path = chain_preview")
    chain = Written(db)
    await chain.append(10, tx("a", pays_assets(person("p"), ("00", 5)), mint=mints(("00", 5))))
    path = f"/v1/assets/{POLICY}.00"
    tag = (await api.get(path, key)).headers["ETag"]
    await chain.append(20, tx("b", pays_assets(person("p"))))
    again = await api.call("GET", path, key, headers={"If-None-Match": tag})
    assert (again.status, again.headers["ETag"]) == (304, tag)
    await chain.append(30, tx("c", pays_assets(person("p"), ("00", 1)), mint=mints(("00", 1))))
    assert (await api.call("GET", path, key, headers={"If-None-Match": tag})).status == 200


async def test_a_transaction_below_all_rollbacks_never_changes(
    api: Client, paid: Chain, key: str, db: asyncpg.Connection
) -> None:
    tx_hash = (await api.get(f"{HISTORY}?limit=1&order=asc", key)).body["data"][0]["tx_hash"]
    path = f"/v1/tx/hash/{tx_hash}"
    first_block_no = (await api.get(path, key)).body["data"]["block_no"]
    for depth, settled in ((2_160, False), (2_161, True)):
        await db.execute("UPDATE chain_preview.tip SET block_no = $1", first_block_no + depth)
        reply = await api.get(path, key)
        assert ("immutable" in reply.headers["Cache-Control"]) == settled
    await paid.append(50, pays("g", NOBODY))
    await db.execute("UPDATE chain_preview.tip SET block_no = block_no + 3000")
    again = await api.call("GET", path, key, headers={"If-None-Match": reply.headers["ETag"]})
    assert (again.status, again.headers["Cache-Control"]) == (304, "private, max-age=31536000, immutable")


async def test_a_cache_gives_no_answer_to_another_key(api: Client, paid: Chain, key: str) -> None:  # noqa: ARG001
    """Keys of different networks get different answers from the same URL."""
    known = {"If-None-Match": (await api.get("/v1/blocks/latest", key)).headers["ETag"]}
    for reply in (
        await api.get("/v1/blocks/latest", key),
        await api.call("GET", "/v1/blocks/latest", key, headers=known),
        await api.get("/v1/blocks/nonsense", key),
        await api.get("/v1/blocks/latest"),
    ):
        assert reply.headers["Vary"] == "Authorization", reply.status
    for given in ({"project_id": key}, {"Authorization": f"Bearer {key}"}):
        reply = await api.call("GET", f"{ROOT}/blocks/latest", headers=given)
        assert (reply.status, reply.headers["Vary"]) == (200, "Authorization, project_id")
    assert "Vary" not in (await api.get("/health")).headers


async def test_an_answer_with_a_key_is_not_stored(partner: Partner) -> None:
    body = {"name": "x", "user_account_id": (await partner.user())["id"], "network_id": 1}
    made = await partner.call("POST", "/credentials", body)
    assert (made.status, made.headers["Cache-Control"]) == (201, "no-store")
    assert "ETag" not in made.headers
    listed = await partner.get("/credentials")
    assert listed.headers["Cache-Control"] == "private, no-cache"
    known = {"If-None-Match": listed.headers["ETag"]}
    assert (await partner.call("GET", "/credentials", headers=known)).status == 304


# Compression ----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def plain() -> AsyncIterator[aiohttp.ClientSession]:
    """A client that does not decompress bodies."""
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session


@pytest.mark.parametrize("encoding", compression.KNOWN)
async def test_a_long_answer_is_compressed_on_request(
    api: Client, chain: Chain, key: str, plain: aiohttp.ClientSession, encoding: str
) -> None:
    for number in range(40):
        await chain.append(number, pays(f"{number}", ALICE))
    sent = {"Authorization": f"Bearer {key}", "Accept-Encoding": encoding}
    async with plain.get(f"http://127.0.0.1:{api.port}{HISTORY}", headers=sent) as reply:
        body = await reply.read()
    whole = await api.call("GET", HISTORY, key, headers={"Accept-Encoding": "identity"})
    assert (reply.headers["Content-Encoding"], reply.headers["Vary"]) == (encoding, "Authorization, Accept-Encoding")
    assert len(body) == int(reply.headers["Content-Length"]) < int(whole.headers["Content-Length"]) / 2
    assert reply.headers["ETag"] == whole.headers["ETag"]
    if encoding == "gzip":
        assert len(gzip.decompress(body)) == int(whole.headers["Content-Length"])
    async with plain.get(f"http://127.0.0.1:{api.port}/health", headers=sent) as short:
        assert "Content-Encoding" not in short.headers


# CORS -----------------------------------------------------------------------------------------------------------------


async def test_scripts_of_any_origin_may_read_chain_answers(api: Client, paid: Chain, issue_key: IssueKey) -> None:  # noqa: ARG001
    key = await issue_key(per_minute=1)
    origin = {"Origin": "https://wallet.example"}
    replies = [
        await api.call("GET", HISTORY, None, headers=origin),
        await api.call("GET", HISTORY, "iiak_x", headers=origin),
        await api.call("GET", HISTORY, key, headers=origin),
        await api.call("GET", HISTORY, key, headers=origin),
        await api.call("GET", "/openapi.json", headers=origin),
        await api.call("GET", "/v1/nowhere", headers=origin),
        await api.call("PUT", HISTORY, headers=origin),
    ]
    assert [reply.status for reply in replies] == [401, 403, 200, 429, 200, 404, 405]
    for reply in replies:
        assert reply.headers["Access-Control-Allow-Origin"] == "*"
        assert "Error-Code" in reply.headers["Access-Control-Expose-Headers"]


async def test_a_preflight_is_answered_only_for_chain_paths(api: Client, partner: Partner) -> None:
    asked = {"Origin": "https://wallet.example", "Access-Control-Request-Method": "GET"}
    allowed = await api.call("OPTIONS", HISTORY, headers=asked)
    assert (allowed.status, allowed.body) == (204, b"")
    assert allowed.headers["Access-Control-Allow-Origin"] == "*"
    assert set(allowed.headers["Access-Control-Allow-Methods"].split(", ")) == {"GET", "HEAD", "POST", "PUT", "DELETE"}
    # The headers that the clients send.
    assert {"Authorization", "Content-Type", "Idempotency-Key", "If-None-Match", "X-Request-Id"} <= set(
        allowed.headers["Access-Control-Allow-Headers"].split(", ")
    )
    assert allowed.headers["X-Request-Id"]
    for path in ("/v1/admin/users", "/v1/%61dmin/users", "/health"):
        refused = await api.call("OPTIONS", path, headers=asked)
        assert refused.status == 405
        assert "Access-Control-Allow-Origin" not in refused.headers
    for reply in (await partner.get("/users"), await api.get("/v1/%61dmin/users", partner.admin_key)):
        assert reply.status == 200
        assert "Access-Control-Allow-Origin" not in reply.headers


# Connections ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"Content-Length: 50\r\n\r\n{", b"401"),
        (f"Authorization: Bearer {BOOTSTRAP_KEY}\r\nContent-Length: 2000000\r\n\r\n{{".encode(), b"413"),
        (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
    ],
)
async def test_a_connection_that_will_be_closed_says_so(api: Client, sent: bytes, status: bytes) -> None:
    async with asyncio.timeout(PATIENCE_S):
        head, _, _ = (await api.raw(b"POST /v1/admin/users HTTP/1.1\r\nHost: x\r\n" + sent)).partition(b"\r\n\r\n")
    assert head.split()[1] == status
    assert b"Connection: close" in head


async def test_a_connection_that_stays_open_does_not_say_that_it_closes(api: Client, partner: Partner) -> None:
    made = await partner.call("POST", "/users", {"name": "x"})
    assert made.status == 201
    assert "close" not in made.headers.get("Connection", "")
    assert "close" not in (await api.get("/nowhere")).headers.get("Connection", "")
