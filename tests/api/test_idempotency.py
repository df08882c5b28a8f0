"""A POST with an Idempotency-Key is executed once despite losses and retries. docs/http-api.md, "Idempotency"."""

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import msgspec
import pytest
from redis.asyncio import Redis

from api.keys import tokens
from api.route import Route
from api.routes import ROUTES
from api.sources import retention
from api.sources.retention import Pruned
from shared import database
from shared.settings import Settings
from tests.api.client import Client, Reply
from tests.api.partners import BODIES, BOOTSTRAP_KEY, CHAIN_PATH, NOTHING_INDEXED, Partner, changeable, everything
from tests.chain.harness import Process
from tests.patience import PATIENCE_S
from tests.ports import free_port

POSTS = [route for route in ROUTES if route.method == "POST" and route.access != "api key"]
KEY = "5f0c4a53-8d7e-4b6a-9c1d-2e3f4a5b6c7d"
ANY_KEY = re.compile(r"iiak_(admin_)?[0-9a-f]{40,}")
TWINS = 3
"""Requests at the same time to each process: fewer than the turns that an admin key has."""


class Post:
    """A POST route with a valid path and body, to be called with an idempotency key."""

    def __init__(self, route: Route, partner: Partner, things: dict[str, str]) -> None:
        self.route = route
        self.path = route.path.replace("{id}", things["credential" if "/credentials/" in route.path else "user"])
        self.admin_key = BOOTSTRAP_KEY if route.access == "bootstrap" else partner.admin_key
        body = BODIES.get(route.path, {"entity_name": "another"}) if route.body else {}
        self.body = body | {"user_account_id": things["user"]} if "user_account_id" in body else body

    async def send(self, api: Client, key: str = KEY, body: bytes | None = None) -> Reply:
        """Send it, or another body with its key."""
        options = {"data": body or msgspec.json.encode(self.body)} if self.route.body else {}
        return await api.call("POST", self.path, self.admin_key, headers={"Idempotency-Key": key}, **options)

    def executed(self, replies: Sequence[Reply]) -> Reply:
        """The answer to the only one that was executed; asserts that the others are answers to repetitions."""
        [first] = [reply for reply in replies if reply.status < 300 and not is_replayed(reply)]
        assert first.status == self.route.status
        for reply in replies:
            if reply is not first:
                self.assert_repeats(reply, first)
        return first

    def assert_repeats(self, reply: Reply, first: Reply) -> None:
        """Assert that a reply answers a repetition: the first answer or, if that contains a key, a refusal."""
        assert is_replayed(reply), self.path
        data = first.body["data"]
        if ANY_KEY.search(str(data)) is None:
            assert (reply.status, reply.body) == (self.route.status, first.body), self.path
            return
        kind, record = ("admin key", data["admin_key"]) if "admin_key" in data else ("credential", data["credential"])
        assert (reply.status, reply.headers["Error-Code"]) == (409, "key_not_shown_again")
        assert reply.error == f"Already executed: the key of {kind} {record['id']} is not shown again"


def is_replayed(reply: Reply) -> bool:
    """Whether an answer says that its request was not executed."""
    return reply.headers.get("Idempotent-Replayed") == "true"


@pytest.fixture
async def posts(partner: Partner) -> list[Post]:
    """Every POST of the table of routes, for an account and a credential of a partner."""
    user = await partner.user()
    credential, _ = await partner.issued(user)
    return [Post(route, partner, {"user": user["id"], "credential": credential["id"]}) for route in POSTS]


async def until_locked(db: asyncpg.Connection, executing: int, waiting: int) -> None:
    """Wait until `executing` requests wait for the audit log, and `waiting` others for these."""
    waits = """SELECT count(*) FILTER (WHERE relation = 'partner.audit_log'::regclass),
        count(*) FILTER (WHERE locktype = 'advisory') FROM pg_locks WHERE NOT granted"""
    async with asyncio.timeout(PATIENCE_S):
        while tuple(await db.fetchrow(waits)) != (executing, waiting):
            await asyncio.sleep(0.01)


# Every POST -----------------------------------------------------------------------------------------------------------


async def test_concurrent_repeats_over_two_processes_are_executed_once_by_every_post(
    posts: list[Post], api: Client, second: Client, db: asyncpg.Connection
) -> None:
    for post in posts:
        entries = await db.fetchval("SELECT count(*) FROM partner.audit_log")
        async with db.transaction():
            await db.execute("LOCK TABLE partner.audit_log IN EXCLUSIVE MODE")
            twins = [asyncio.create_task(post.send(client)) for client in (api, second) for _ in range(TWINS)]
            await until_locked(db, 1, 2 * TWINS - 1)
        first = post.executed(await asyncio.gather(*twins))
        assert await db.fetchval("SELECT count(*) FROM partner.audit_log") == entries + 1, post.path

        before = await changeable(db)
        post.assert_repeats(await post.send(second), first)
        if post.route.body:
            fields = reversed(post.body.items())
            spaced = msgspec.json.format(msgspec.json.encode(dict(fields)), indent=3)
            post.assert_repeats(await post.send(api, body=spaced), first)
            other = await post.send(api, body=msgspec.json.encode(post.body | {"unknown": 1}))
            assert (other.status, other.headers["Error-Code"]) == (409, "idempotency_key_reused")
            assert other.error == "Idempotency-Key was used with another body"
            assert not is_replayed(other)
        assert await changeable(db) == before, post.path
        again = await post.send(api, key="another key")
        assert again.status == post.route.status and not is_replayed(again), post.path


async def test_no_key_is_stored_by_any_post(posts: list[Post], api: Client, db: asyncpg.Connection) -> None:
    issued = [found[0] for post in posts if (found := ANY_KEY.search(str((await post.send(api)).body)))]
    assert len(issued) == 3
    stored = " ".join(str(await everything(db)).split("\\\\x"))
    assert tokens.hash_of(issued[0]).hex() in stored, "hashes are, so columns of bytes are in sight"
    answers = [row["answer"] for row in await db.fetch("SELECT answer FROM partner.idempotency_key")]
    assert len(answers) == len(POSTS)
    for text in (*issued, KEY):
        assert text not in stored
        assert text.encode().hex() not in stored
        assert not any(text.encode() in answer for answer in answers if answer is not None)


async def test_a_malformed_idempotency_key_is_refused_by_every_post(
    posts: list[Post], api: Client, db: asyncpg.Connection
) -> None:
    before = await changeable(db)
    for post in posts:
        body = msgspec.json.encode(post.body)
        start = (
            f"POST {post.path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {post.admin_key}\r\n"
        )
        end = f"Content-Length: {len(body)}\r\n\r\n".encode() + body
        for sent in (b"", b" ", b"x" * 256, "é".encode(), b"a\tb", b"a\r\nIdempotency-Key: a"):
            answer = await api.raw(start.encode() + b"Idempotency-Key: " + sent + b"\r\n" + end)
            assert answer.startswith(b"HTTP/1.1 400 "), (post.path, sent)
            assert b"Error-Code: invalid_idempotency_key" in answer, (post.path, sent)
    assert await changeable(db) == before
    [post] = [each for each in posts if each.route.operation == "create_user"]
    for longest in ("x" * 255, '"quoted, as in the draft" ~'):
        assert [is_replayed(await post.send(api, key=longest)) for _ in range(2)] == [False, True]


async def test_a_malformed_idempotency_key_is_refused_by_a_post_that_only_reads(api: Client, key: str) -> None:
    wrong = {"Idempotency-Key": "x" * 256}
    reply = await api.call("POST", "/v1/bulk/transactions", key, json={"ids": ["0" * 64]}, headers=wrong)
    assert (reply.status, reply.headers["Error-Code"]) == (400, "invalid_idempotency_key")


# Whose key, and for what ----------------------------------------------------------------------------------------------


async def test_a_key_belongs_to_its_partner_and_path(api: Client, partner: Partner, rival: Partner) -> None:
    headers = {"Idempotency-Key": KEY}
    made = [await each.call("POST", "/users", {"name": "x"}, headers=headers) for each in (partner, rival, partner)]
    assert [is_replayed(reply) for reply in made] == [False, False, True]
    assert made[0].body["data"]["id"] == made[2].body["data"]["id"] != made[1].body["data"]["id"]
    mine, others = (reply.body["data"]["id"] for reply in made[:2])
    foreign = await partner.call("POST", f"/users/{others}/suspend", headers=headers)
    assert (foreign.status, foreign.error) == (404, "User account not found")
    for path, replayed in (
        (f"{mine}/suspend", False),
        (f"{mine.upper()}/suspend", True),
        (f"{mine}/reactivate", False),
    ):
        reply = await partner.call("POST", f"/users/{path}", headers=headers)
        assert (reply.status, is_replayed(reply)) == (200, replayed), path
    body = {"entity_name": "x"}
    for _ in range(2):
        refused = await api.call("POST", "/v1/admin/admin-keys", partner.admin_key, json=body, headers=headers)
        assert (refused.status, refused.headers["Error-Code"]) == (403, "permission_denied")


async def test_a_refused_or_failed_request_is_not_remembered(
    partner: Partner, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"Idempotency-Key": KEY}
    taken = await partner.user(external_id="mine")
    body = {"name": "x", "external_id": "mine"}
    for _ in range(2):
        reply = await partner.call("POST", "/users", body, headers=headers)
        assert (reply.status, reply.error) == (409, "external_id already in use")
    assert (await partner.call("POST", "/users", {"name": " "}, headers=headers)).status == 400
    await partner.data("PATCH", f"/users/{taken['id']}", {"external_id": None})

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as broken:
        broken.setattr("api.admin.users.audit.record", fail)
        assert (await partner.call("POST", "/users", body, headers=headers)).status == 500
    assert await db.fetchval("SELECT count(*) FROM partner.idempotency_key") == 0
    reply = await partner.call("POST", "/users", body, headers=headers)
    assert (reply.status, is_replayed(reply)) == (201, False)
    assert is_replayed(await partner.call("POST", "/users", body, headers=headers))


async def test_a_repetition_is_recognized_after_its_expires_at(
    partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = await partner.user()
    body = {"name": "x", "user_account_id": user["id"], "network_id": 1, "expires_at": "2098-12-31"}
    made = await partner.call("POST", "/credentials", body, headers={"Idempotency-Key": KEY})
    assert made.status == 201
    monkeypatch.setattr("api.admin.credentials.clock.now", lambda: datetime(2099, 1, 1, tzinfo=UTC))
    reply = await partner.call("POST", "/credentials", body, headers={"Idempotency-Key": KEY})
    assert reply.headers["Error-Code"] == "key_not_shown_again"
    assert made.body["data"]["credential"]["id"] in reply.error
    assert (await partner.call("POST", "/credentials", body)).error == "expires_at must be in the future"


async def test_a_large_body_leaves_a_small_row(partner: Partner, db: asyncpg.Connection) -> None:
    body = {"name": "x", "unknown": "y" * 900_000, "metadata": {"z": "z" * 16_000}}
    replies = [await partner.call("POST", "/users", body, headers={"Idempotency-Key": KEY}) for _ in range(2)]
    assert replies[0].body == replies[1].body
    assert (
        await db.fetchval("SELECT octet_length(answer) + octet_length(body_hash) FROM partner.idempotency_key") < 20_000
    )


# Lost answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [False, True])
async def test_a_killed_process_leaves_all_or_nothing(
    partner: Partner, db: asyncpg.Connection, environment: dict[str, str], tmp_path: Path, committed: bool
) -> None:
    """Killed before its commit or before its answer is read: another process executes the request, or repeats it."""
    port = free_port()
    process = Process(["api", "--port", str(port)], environment, tmp_path / "api.log")
    try:
        await asyncio.to_thread(process.says, "api.listening")
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        async with db.transaction():
            await db.execute("LOCK TABLE partner.audit_log IN EXCLUSIVE MODE")
            head = f"Authorization: Bearer {partner.admin_key}\r\nIdempotency-Key: {KEY}\r\nContent-Length: 17"
            writer.write(f'POST /v1/admin/users HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n{{"name": "Alice"}}'.encode())
            await until_locked(db, 1, 0)
            if not committed:
                process.kill()
        async with asyncio.timeout(PATIENCE_S):
            while committed and not await db.fetchval("SELECT count(*) FROM partner.user_account"):
                await asyncio.sleep(0)
    finally:
        process.kill()
    writer.close()
    for number in range(2):
        reply = await partner.call("POST", "/users", {"name": "Alice"}, headers={"Idempotency-Key": KEY})
        assert (reply.status, is_replayed(reply)) == (201, committed or number > 0)
    names = [user["name"] for user in (await partner.get("/users")).body["data"]]
    assert names == ["Alice"]
    assert (await partner.actions()).count("user_account.created") == 1
    times = "SELECT created_at FROM partner.user_account UNION SELECT created_at FROM partner.idempotency_key"
    assert len(await db.fetch(times)) == 1, "now() is the begin of a commit: both rows are of one"


async def test_a_repeated_suspension_fences_its_keys_again(second: Client, partner: Partner, redis_url: str) -> None:
    """Its process may have died before the second fence, while Valkey had lost the first one."""
    user = await partner.user()
    _, key = await partner.issued(user)
    assert (await second.get(CHAIN_PATH, key)).status == NOTHING_INDEXED
    name = f"ledgerline:key:{tokens.hash_of(key).hex()}"
    path, headers = f"/users/{user['id']}/suspend", {"Idempotency-Key": KEY}
    async with Redis.from_url(redis_url) as valkey:
        cached = await valkey.dump(name)
        assert cached is not None
        assert (await partner.call("POST", path, headers=headers)).status == 200
        await valkey.restore(name, 60_000, cached, replace=True)
    assert (await second.get(CHAIN_PATH, key)).status == NOTHING_INDEXED, "from the cache"
    assert is_replayed(await partner.call("POST", path, headers=headers))
    assert (await second.get(CHAIN_PATH, key)).error == "User account is not active"


# The end of a row -----------------------------------------------------------------------------------------------------


async def test_a_deleted_account_is_erased_from_answers_and_not_created_again(
    partner: Partner, db: asyncpg.Connection
) -> None:
    body = {"name": "Alice Example", "email": "alice@example.com", "external_id": "her own reference"}
    headers = {"Idempotency-Key": KEY}
    user = (await partner.call("POST", "/users", body, headers=headers)).body["data"]
    for action in ("suspend", "suspend", "reactivate"):
        assert (await partner.call("POST", f"/users/{user['id']}/{action}", headers=headers)).status == 200
    await partner.data("DELETE", f"/users/{user['id']}")
    stored = str(await everything(db))
    for text in body.values():
        assert text not in stored
        assert text.encode().hex() not in stored
    before = await changeable(db)
    for path, sent in (("/users", body), (f"/users/{user['id']}/suspend", None)):
        reply = await partner.call("POST", path, sent, headers=headers)
        assert (reply.status, reply.headers["Error-Code"]) == (409, "answer_erased")
        assert reply.error == "Already executed: the answer was erased with its account"
    assert await changeable(db) == before


async def test_a_key_is_free_after_24_hours(partner: Partner, db: asyncpg.Connection) -> None:
    headers = {"Idempotency-Key": KEY}
    ids = set()
    for age, replayed in (("0 s", False), ("23:59:00", True), ("24:00:00", False)):
        await db.execute("UPDATE partner.idempotency_key SET created_at = now() - $1::text::interval", age)
        name = "x" if age != "24:00:00" else "y"
        reply = await partner.call("POST", "/users", {"name": name}, headers=headers)
        assert (reply.status, is_replayed(reply)) == (201, replayed), age
        ids.add(reply.body["data"]["id"])
    assert len(ids) == 2
    assert is_replayed(await partner.call("POST", "/users", {"name": "y"}, headers=headers))


async def test_old_keys_are_deleted_in_steps(partner: Partner, db: asyncpg.Connection, database_url: str) -> None:
    reply = await partner.call("POST", "/users", {"name": "x"}, headers={"Idempotency-Key": KEY})
    assert reply.status == 201
    await db.execute(
        "INSERT INTO partner.idempotency_key SELECT sha256(n::text::bytea), now() - interval '25 hours', '\\x00',"
        " gen_random_uuid(), NULL, '\\x00', '{}' FROM generate_series(1, 2500) AS n"
    )
    async with await database.create_pool(database_url, None, max_size=1) as pool:
        assert await retention.prune(pool, Settings()) == Pruned(idempotency_keys=2_500)
    assert await db.fetchval("SELECT count(*) FROM partner.idempotency_key") == 1
