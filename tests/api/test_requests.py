"""Common to all paths: the envelope, limits, malformed requests, faults."""

import asyncio
import gzip
import itertools
import zlib

import asyncpg
import pytest

from api.answers import CONTENT_TYPE
from api.server import body as request_body
from api.server import deadlines
from shared import database
from shared.network import PREVIEW
from tests.api.chains import Chain
from tests.api.client import Client, serving
from tests.api.conftest import IssueKey
from tests.api.payments import ALICE, pays
from tests.patience import PATIENCE_S, OwnTime
from tests.processes.relay import TcpRelay

MIB = 1024**2
ADMIN_KEY = "iiak_admin_" + "0" * 40
HISTORY = f"/v1/tx/history/{ALICE}"


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """An environment with a bootstrap key, because requests with bodies need one."""
    return {**environment, "BOOTSTRAP_ADMIN_KEY": ADMIN_KEY}


async def test_unknown_paths_are_not_found(api: Client, key: str) -> None:
    for path in (
        *("//", "/v1", "/v1/", "/v2/tx/hash/0", "/nope", "/v1/tx/address", "/v1/tx/address/", "/health/"),
        *(f"{HISTORY}/", f"{HISTORY}/x", f"/{HISTORY}", f"/v1//tx/history/{ALICE}", f"/V1/tx/history/{ALICE}"),
        *("/v1/tx%2Fhash/00", "/v1/tx/../../health", "/.", "/..", "/%2e", "/%00", "/%ff", "/docs/../routes.py"),
        *("/docs/..%2f..%2froutes.py", "/docs/", "/docs/shared", "/v1/admin"),
    ):
        reply = await api.get(path, key)
        assert (reply.status, reply.error) == (404, "Not found"), path
        assert reply.headers["Content-Type"] == CONTENT_TYPE


async def test_other_methods_are_not_allowed(api: Client, key: str) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        reply = await api.call(method, HISTORY, key)
        assert (reply.status, reply.error) == (405, "Method not allowed")
        assert reply.headers["Allow"] == "GET, HEAD"
    reply = await api.call("PUT", "/v1/admin/users", ADMIN_KEY)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD, POST")


async def test_head_is_get_without_its_body(api: Client, chain: Chain, key: str) -> None:
    await chain.append(10, pays("a", ALICE))
    whole = await api.get(HISTORY, key)
    head = await api.call("HEAD", HISTORY, key)
    assert (head.status, head.body) == (200, b"")
    for name in ("Content-Type", "Content-Length", "RateLimit-Limit"):
        assert head.headers[name] == whole.headers[name]
    assert (await api.call("HEAD", "/nope")).status == 404


async def test_no_answer_shows_versions(api: Client, key: str) -> None:
    for path in ("/health", "/docs", "/docs/look.css", "/metrics", "/nope", HISTORY):
        assert (await api.get(path, key)).headers["Server"] == "ledgerline"


@pytest.mark.parametrize(
    "sent",
    [
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nNo colon\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 9000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n",
        b"GET /" + b"a" * 30_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"".join(b"A%d: b\r\n" % number for number in range(200)) + b"\r\n",
        b"POST /v1/admin/users HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/admin/users HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /v1/admin/users HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"OPTIONS",
    ],
)
async def test_malformed_http_is_refused_in_the_envelope(api: Client, sent: bytes) -> None:
    if sent == b"OPTIONS":
        sent += b"\r\n\r\n"
    head, _, body = (await api.raw(sent)).partition(b"\r\n\r\n")
    assert b" 400 Bad Request\r\n" in head + b"\r\n"
    assert f"Content-Type: {CONTENT_TYPE}\r\n".encode() in head
    assert body == b'{"success":false,"error":"Bad request"}'


def post(headers: bytes, body: bytes = b"") -> bytes:
    """A POST of the bootstrap key, as bytes; the connection ends with its answer."""
    start = b"POST /v1/admin/admin-keys HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    return start + b"Authorization: Bearer " + ADMIN_KEY.encode() + b"\r\n" + headers + b"\r\n" + body


@pytest.mark.parametrize(
    ("sent", "status", "error"),
    [
        (post(b"Content-Length: 1048577\r\n"), 413, "Request body too large"),
        (post(b"Content-Length: 99999999999999\r\n"), 413, "Request body too large"),
        (post(b"Transfer-Encoding: chunked\r\n", b"zz\r\n"), 400, "Bad request"),
        (post(b"Content-Encoding: gzip\r\nContent-Length: 3\r\n", b"abc"), 400, "Bad request"),
        (post(b"Content-Encoding: deflate\r\nContent-Length: 3\r\n", b"abc"), 400, "Bad request"),
        (post(b"Expect: something\r\nContent-Length: 2\r\n", b"{}"), 417, "Expectation failed"),
        (post(b"Content-Length: 2\r\n", b"{}"), 400, "entity_name is required"),
        (post(b""), 400, "Invalid JSON body"),
    ],
)
async def test_incomplete_and_mislabelled_bodies_are_refused(api: Client, sent: bytes, status: int, error: str) -> None:
    head, _, body = (await api.raw(sent)).partition(b"\r\n\r\n")
    assert b" %d " % status in head.splitlines()[0]
    assert body == b'{"success":false,"error":"%b"}' % error.encode()


async def test_a_client_that_goes_away_in_the_middle_of_a_body_is_no_outage_of_the_database(
    api: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """tests/pure/test_connections.py has the bodies that break off while the client waits for an answer."""
    _, writer = await asyncio.open_connection("127.0.0.1", api.port)
    sent = post(b"Transfer-Encoding: chunked\r\n", b"1\r\n{\r\n")
    writer.write(sent.replace(b"Connection: close\r\n", b""))
    await api.get("/health")
    writer.transport.abort()
    said = ""
    async with asyncio.timeout(PATIENCE_S):
        while "/v1/admin/admin-keys" not in said:
            await asyncio.sleep(0.05)
            captured = capsys.readouterr()
            said += captured.out + captured.err
    assert "without_database" not in said
    assert '"status":400' in said


async def test_a_body_that_does_not_arrive_is_refused_in_time(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "_SEND_WITHIN_S", 0.3)
    answer = await api.raw(post(b"Content-Length: 20\r\n", b'{"entity'))
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert answer.endswith(b'{"success":false,"error":"Request timeout"}')


async def test_expect_100_continue_is_answered(api: Client) -> None:
    sent = post(b"Expect: 100-continue\r\nContent-Length: 2\r\n", b"{}")
    answer = await api.raw(sent)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 Bad Request\r\n")
    assert answer.endswith(b'{"success":false,"error":"entity_name is required"}')


async def test_a_body_may_have_one_mebibyte_however_it_is_sent(api: Client) -> None:
    async def name(data: bytes, **headers: str) -> str:
        reply = await api.call("POST", "/v1/admin/admin-keys", ADMIN_KEY, data=data, headers=headers)
        return reply.error

    too_large, too_many_letters = "Request body too large", "entity_name must be text of 1 to 255 characters"
    largest = b'{"entity_name":"' + b"a" * (MIB - 18) + b'"}'
    assert len(largest) == MIB
    assert await name(largest) == too_many_letters
    assert await name(largest + b" ") == too_large
    assert await name(gzip.compress(largest), **{"Content-Encoding": "gzip"}) == too_many_letters
    assert await name(zlib.compress(largest + b" "), **{"Content-Encoding": "deflate"}) == too_large
    assert await name(gzip.compress(b"\0" * 200 * MIB), **{"Content-Encoding": "gzip"}) == too_large


ENCODINGS = (b"br", b"zstd", b"gzip", b"deflate", b"compress", b"gzip, br", b"\xff", b"a" * 500)
BROKEN = (b"\x1f\x8b\x08\x00", gzip.compress(b"{}")[:-3], zlib.compress(b"{}")[:-3], b"{}", bytes(20))


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_body_whose_encoding_is_unknown_or_broken_leaves_no_traceback(
    api: Client,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    encoding: bytes,
) -> None:
    for start, body in itertools.product((b"POST /v1/admin/admin-keys", b"GET /health", b"GET /nope"), BROKEN):
        for length, sent in (
            (b"Content-Length: %d" % len(body), body),
            (b"Transfer-Encoding: chunked", b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)),
            (b"Transfer-Encoding: chunked", b"%x\r\n%b\r\nzz\r\n\r\n" % (len(body), body)),
        ):
            headers = post(b"Content-Encoding: %b\r\n%b\r\n" % (encoding, length)).partition(b" HTTP/1.1")[2]
            answer = await api.raw(start + b" HTTP/1.1" + headers + sent)
            status = int(answer.split()[1])
            assert status == 400 or (start.startswith(b"GET") and status in (200, 404)), answer
            if status == 400:
                assert answer.endswith(b'{"success":false,"error":"Bad request"}'), answer
    assert [record for record in caplog.records if record.levelname in ("ERROR", "WARNING")] == []
    assert "Traceback" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'"name"',
        b"1",
        b"{",
        b"{}{}",
        b"{'entity_name': 1}",
        b'{"entity_name": NaN}',
        b'{"entity_name": "\xff"}',
        b'\xef\xbb\xbf{"entity_name": "a"}',
        '{"entity_name": "a"}'.encode("utf-16"),
        b'{"entity_name": "a\\u0000b"}',
        b'{"entity_name": "a\x00b"}',
        b'{"entity_name": "\\ud800"}',
        b'{"\\ud800": 1}',
        b'{"other": {"deep": ["\\u0000"]}}',
        b'{"other": {"\\u0000": 1}}',
        b'{"other":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"other":' + b'{"a":' * 200 + b"1" + b"}" * 201,
        b'{"other": ' + b"9" * 5_000 + b"}",
        b'{"other": 1e999}',
    ],
    ids=lambda data: repr(data[:30]),
)
async def test_a_body_that_cannot_be_stored_is_refused(api: Client, data: bytes) -> None:
    reply = await api.call("POST", "/v1/admin/admin-keys", ADMIN_KEY, data=data)
    assert (reply.status, reply.error) == (400, "Invalid JSON body")


async def test_invalid_utf_8_and_nul_are_refused_in_queries_and_paths(api: Client) -> None:
    for text in ("%ED%A0%80", "%FF", "a%00b", "%F4%90%80%80"):
        reply = await api.get(f"/v1/admin/audit-logs?action={text}", ADMIN_KEY)
        assert (reply.status, reply.error) == (400, "action must be text of at most 255 characters"), text
        reply = await api.get(f"/v1/admin/users/by-external-id/{text}", ADMIN_KEY)
        assert (reply.status, reply.error) == (400, "external_id must be text of at most 255 characters"), text
    assert (await api.get("/v1/admin/audit-logs?action=%E2%82%AC+%25&%FF=1", ADMIN_KEY)).status == 200


async def test_the_caller_is_checked_before_the_parameters(api: Client, key: str) -> None:
    assert (await api.get("/v1/tx/hash/nonsense?groupByPolicy=x")).status == 401
    assert (await api.get("/v1/tx/hash/nonsense?groupByPolicy=x", key[:-1] + "g")).status == 403
    assert (await api.get("/v1/tx/hash/nonsense", key)).status == 400
    assert (await api.call("POST", "/v1/admin/admin-keys", data=b"nonsense")).status == 401


async def test_rate_headers_are_on_every_answer_of_a_chain_path(api: Client, issue_key: IssueKey) -> None:
    key = await issue_key(per_minute=4)
    statuses = []
    for path in ("/v1/tx/hash/x", HISTORY, f"{HISTORY}?limit=0", f"{HISTORY}?limit=1", HISTORY):
        reply = await api.get(path, key)
        statuses.append(reply.status)
        assert reply.headers["RateLimit-Limit"] == "4"
        assert reply.headers["RateLimit-Remaining"] == str(max(4 - len(statuses), 0))
        assert 0 < int(reply.headers["RateLimit-Reset"]) <= 61
        assert ("Retry-After" in reply.headers) == (reply.status == 429)
    assert statuses == [400, 503, 400, 503, 429]


async def test_requests_do_not_wait_for_locks_of_the_indexer(
    api: Client, chain: Chain, key: str, database_url: str
) -> None:
    await chain.append(10, pays("a", ALICE))
    connection = await database.connect(database_url, PREVIEW)
    async with connection.transaction():
        await connection.execute("LOCK TABLE address_tx IN ACCESS EXCLUSIVE MODE")
        took = OwnTime()
        reply = await api.get(HISTORY, key)
        assert took.seconds < database.CHAIN_ANSWER_WITHIN_S / 2
        assert (reply.status, reply.error) == (503, "Network not available")
    await connection.close()
    assert (await api.get(HISTORY, key)).status == 200


async def test_a_slow_request_is_cancelled_and_the_next_one_is_not(
    api: Client, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "MAX_REQUEST_S", 0.3)
    path = "/v1/admin/admin-keys"
    async with asyncio.timeout(25), db.transaction():  # less than without the patch
        await db.execute("LOCK TABLE partner.admin_key")
        late = await asyncio.gather(*(api.get(path, ADMIN_KEY) for _ in range(3)))
        assert [(reply.status, reply.error) for reply in late] == [(503, "Request timed out")] * 3
    assert [(await api.get(path, ADMIN_KEY)).status for _ in range(3)] == [200] * 3


async def test_an_internal_error_is_logged_and_not_shown(
    api: Client, chain: Chain, key: str, db: asyncpg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    await chain.append(10, pays("a", ALICE))
    await db.execute("ALTER TABLE chain_preview.block RENAME TO elsewhere")
    reply = await api.get(HISTORY, key)
    assert (reply.status, reply.error) == (500, "Internal server error")
    assert "UndefinedTableError" in capsys.readouterr().out


async def test_a_dropped_connection_to_the_database_is_503(
    api: Client, chain: Chain, key: str, db: asyncpg.Connection
) -> None:
    await chain.append(10, pays("a", ALICE))
    assert (await api.get(HISTORY, key)).status == 200
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    await db.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")  # noqa: S608
    statuses = [(await api.get(HISTORY, key)).status for _ in range(20)]
    assert set(statuses) <= {200, 503}
    assert statuses[-1] == 200


@pytest.mark.usefixtures("no_aggregator")
async def test_a_lost_replica_is_skipped(environment: dict[str, str], chain: Chain, key: str) -> None:
    await chain.append(10, pays("a", ALICE))
    primary, relay = environment["DATABASE_URL"], TcpRelay()
    environment["READ_DATABASE_URL"] = f"{primary},{relay.in_front_of(primary)}"
    relay.open()
    async with serving(environment) as client:
        assert [(await client.get(HISTORY, key)).status for _ in range(4)] == [200] * 4
        relay.close()
        assert [(await client.get(HISTORY, key)).status for _ in range(8)] == [200] * 8
        relay.open()
        assert [(await client.get(HISTORY, key)).status for _ in range(8)] == [200] * 8
    relay.end()
