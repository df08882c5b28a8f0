"""Metadata of pools: fetched once for each registration, kept apart from the chain, and shown unless delisted."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest
from aiohttp import web

from api.chain.pools import show_pool_id
from api.sources import egress, pool_metadata
from shared import database, pool_list
from shared.network import PREVIEW
from tests import blockfrost_schemas
from tests.api.client import Client
from tests.chain.written import Written, hash_of, pays, person, reward_account, tx
from tests.ports import free_port

POOL, OTHER = bytes([1] * 28), bytes([2] * 28)
TEXTS = {"name": "Pool", "ticker": "POOL", "description": "A pool", "homepage": "https://pool.example"}
NOTHING = dict.fromkeys(TEXTS) | {"fetched_at": None, "error": None}
BLOCKFROST = "/blockfrost/api/v0"


def document(**changes: Any) -> bytes:
    return msgspec.json.encode(TEXTS | changes)


def blake2b(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=32).digest()


def registers(pool: bytes, url: str | None = None, content: bytes = b"") -> dict[str, Any]:
    """A certificate that registers a pool with this URL and the hash of this document."""
    ada = {"ada": {"lovelace": 340_000_000}}
    parameters: dict[str, Any] = {
        "id": show_pool_id(pool),
        "vrfVerificationKeyHash": "0" * 64,
        "pledge": ada,
        "cost": ada,
        "margin": "1/100",
        "rewardAccount": reward_account("x"),
        "owners": [],
        "relays": [],
    }
    if url is not None:
        parameters["metadata"] = {"url": url, "hash": blake2b(content).hex()}
    return {"type": "stakePoolRegistration", "stakePool": parameters}


class Site:
    """A server of documents by path, which counts its requests."""

    def __init__(self) -> None:
        self.port = free_port()
        self.documents: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.asked: Counter[str] = Counter()
        self.delay_s = 0.0

    def url(self, path: str, content: bytes | None = None) -> str:
        """The URL of a path, which gives a document from now on."""
        if content is not None:
            self.documents[path] = content
        return f"http://pool.example:{self.port}{path}"

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a request."""
        self.asked[request.path] += 1
        await asyncio.sleep(self.delay_s)
        if request.path in self.redirects:
            return web.Response(status=302, headers={"Location": self.redirects[request.path]})
        content = self.documents.get(request.path)
        return web.Response(status=404) if content is None else web.Response(body=content, content_type="image/png")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    app = web.Application()
    app.router.add_get("/{path:.*}", site.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", site.port).start()
    yield site
    await runner.cleanup()


class Aggregator:
    """The background task of the aggregator, step by step, which may reach the loopback address of a test."""

    def __init__(self, database_url: str, pool: asyncpg.Pool, out: egress.Egress) -> None:
        self._database_url, self.pool, self.out = database_url, pool, out

    async def passes(self, delisted: Path | None = None) -> int:
        """One turn; returns how many documents were tried."""
        await pool_metadata.apply_list(self.pool, delisted)
        await pool_metadata.register_all(self.pool, self._database_url)
        return await pool_metadata.fetch_due(self.pool, self.out)


def _look_up(host: str) -> list[str]:
    addresses = {"pool.example": "127.0.0.1", "inside.example": "127.0.0.2"}
    if host not in addresses:
        raise OSError("no such name")
    return [addresses[host]]


OPEN = egress.Rules(lambda address: address == "127.0.0.1", None, _look_up)


@asynccontextmanager
async def _aggregating(database_url: str, rules: egress.Rules) -> AsyncIterator[Aggregator]:
    async with await database.create_pool(database_url, None, max_size=1) as pool, egress.opened(rules) as out:
        yield Aggregator(database_url, pool, out)


@pytest.fixture
async def aggregator(database_url: str) -> AsyncIterator[Aggregator]:
    async with _aggregating(database_url, OPEN) as aggregator:
        yield aggregator


@pytest.fixture
async def written(database_url: str) -> AsyncIterator[Written]:
    connection = await database.connect(database_url, PREVIEW)
    yield Written(connection)
    await connection.close()


async def shown(api: Client, key: str, pool: bytes = POOL) -> dict[str, Any]:
    """The texts of a pool, its error and the time, without its ids and its URL."""
    data = (await api.get(f"/v1/pools/{pool.hex()}/metadata", key)).body["data"]
    assert data["pool_id_hex"] == pool.hex()
    return {name: data[name] for name in NOTHING}


async def error_of(api: Client, key: str, pool: bytes = POOL) -> dict[str, str]:
    """Why a pool has no texts."""
    found = await shown(api, key, pool)
    error = found.pop("error")
    assert set(found.values()) == {None}
    assert isinstance(error, dict)
    return error


async def test_a_registered_document_is_fetched_once_and_shown(
    api: Client, key: str, written: Written, site: Site, aggregator: Aggregator
) -> None:
    url = site.url("/p.json", document())
    await written.append(10, tx("a", certificates=[registers(POOL, url, document()), registers(OTHER)]))
    assert await shown(api, key) == NOTHING
    assert [await aggregator.passes() for _ in range(3)] == [1, 0, 0]
    assert site.asked == {"/p.json": 1}
    found = await shown(api, key)
    assert found.pop("fetched_at").endswith("Z")
    assert found == TEXTS | {"error": None}
    assert await shown(api, key, OTHER) == NOTHING
    assert (await api.get(f"/v1/pools/{'0' * 56}/metadata", key)).status == 404


async def test_blockfrosts_paths_have_the_texts(
    api: Client, key: str, written: Written, site: Site, aggregator: Aggregator
) -> None:
    certificates = [
        registers(POOL, site.url("/p.json", document()), document()),
        registers(OTHER, site.url("/none.json"), b"none"),
    ]
    await written.append(10, tx("a", certificates=certificates))
    await aggregator.passes()
    location = {"url": site.url("/p.json"), "hash": blake2b(document()).hex()}
    failed = {
        "url": site.url("/none.json"),
        "hash": blake2b(b"none").hex(),
        **dict.fromkeys(TEXTS),
        "error": {"code": "HTTP_RESPONSE_ERROR", "message": "The server answers with status 404."},
    }
    reply = await api.get(f"{BLOCKFROST}/pools/{POOL.hex()}/metadata", key)
    assert reply.body == {"pool_id": show_pool_id(POOL), "hex": POOL.hex(), **location, **TEXTS}
    one = await api.get(f"{BLOCKFROST}/pools/{OTHER.hex()}/metadata", key)
    assert one.body == {"pool_id": show_pool_id(OTHER), "hex": OTHER.hex(), **failed}
    listed = (await api.get(f"{BLOCKFROST}/pools/extended", key)).body
    assert [each["metadata"] for each in listed] == [location | TEXTS, failed]
    updates = (await api.get(f"{BLOCKFROST}/txs/{hash_of('a')}/pool_updates", key)).body
    assert [each["metadata"] for each in updates] == [location | TEXTS, failed]
    for path, body in (("/pools/{pool_id}/metadata", one.body), ("/pools/extended", listed)):
        blockfrost_schemas.check(path, body)


async def test_each_reason_is_kept_and_tried_again_but_unusable_bytes_are_not(
    api: Client, key: str, written: Written, site: Site, aggregator: Aggregator, db: asyncpg.Connection
) -> None:
    long, html = document(description="x" * 255, more="x" * 255), b"<html>"
    expected = {
        "connection_error": (
            f"http://pool.example:{free_port()}/",
            b"x",
            "The server of the metadata can't be reached",
        ),
        "http_response_error": (site.url("/404"), b"x", "The server answers with status 404."),
        "size_exceeded": (site.url("/long", long), long, "The document has more than 512 bytes."),
        "hash_mismatch": (
            site.url("/other", document()),
            b"x",
            f"The document has the hash {blake2b(document()).hex()}",
        ),
        "decode_error": (site.url("/html", html), html, "The document is not metadata of a pool: "),
    }
    pools = {code: bytes([number] * 28) for number, code in enumerate(expected)}
    await written.append(
        10, tx("a", certificates=[registers(pools[code], *given[:2]) for code, given in expected.items()])
    )
    assert await aggregator.passes() == 5
    for code, (_, _, message) in expected.items():
        error = await error_of(api, key, pools[code])
        assert error["code"] == code
        assert error["message"].startswith(message)
    rows = await db.fetch(
        "SELECT failure_code, attempts, extract(epoch FROM try_at - tried_at)::float8 AS pause_s, content IS NULL none"
        " FROM partner.pool_metadata ORDER BY 1"
    )
    assert [row["failure_code"] for row in rows] == sorted(expected)
    assert all(row["none"] and row["attempts"] == 1 for row in rows)
    pauses = {row["failure_code"]: row["pause_s"] for row in rows}
    assert pauses.pop("decode_error") is None
    assert all(100 < pause < 140 for pause in pauses.values()), pauses


async def test_a_failure_is_tried_again_after_pauses_that_grow(
    api: Client, key: str, written: Written, site: Site, aggregator: Aggregator, db: asyncpg.Connection
) -> None:
    await written.append(10, tx("a", certificates=[registers(POOL, site.url("/late.json"), document())]))
    pauses = []
    for attempts in range(1, 13):
        assert await aggregator.passes() == 1
        assert await aggregator.passes() == 0
        found, pause_s = await db.fetchrow(
            "SELECT attempts, extract(epoch FROM try_at - now())::float8 FROM partner.pool_metadata"
        )
        assert found == attempts
        pauses.append(pause_s)
        await db.execute("UPDATE partner.pool_metadata SET try_at = now()")
    expected = [min(120.0 * 2**number, 86_400.0) for number in range(12)]
    assert all(0.85 * want < got < 1.15 * want for got, want in zip(pauses, expected, strict=True)), pauses
    site.documents["/late.json"] = document()
    assert await aggregator.passes() == 1
    assert (await shown(api, key))["name"] == "Pool"


async def test_a_replaced_certificate_shows_its_own_document_and_the_old_row_is_kept_a_while(
    api: Client, key: str, written: Written, site: Site, aggregator: Aggregator, db: asyncpg.Connection
) -> None:
    old, new = document(name="Old"), document(name="New")
    await written.append(10, tx("a", certificates=[registers(POOL, site.url("/old", old), old)]))
    await aggregator.passes()
    await written.append(20, tx("b", certificates=[registers(POOL, site.url("/new", new), new)]))
    assert await shown(api, key) == NOTHING  # what it registers now is not fetched yet
    await aggregator.passes()
    assert (await shown(api, key))["name"] == "New"
    await db.execute("UPDATE partner.pool_metadata SET replaced_at = replaced_at - interval '29 days 23 hours'")
    await aggregator.passes()
    assert await db.fetchval("SELECT count(*) FROM partner.pool_metadata") == 2
    await db.execute("UPDATE partner.pool_metadata SET replaced_at = replaced_at - interval '2 hours'")
    await aggregator.passes()
    assert await db.fetch("SELECT url, replaced_at FROM partner.pool_metadata") == [(site.url("/new").encode(), None)]


async def test_a_rollback_and_a_resync_fetch_nothing_again(
    api: Client, key: str, written: Written, site: Site, aggregator: Aggregator, db: asyncpg.Connection
) -> None:
    old, new = document(name="Old"), document(name="New")
    first = tx("a", certificates=[registers(POOL, site.url("/old", old), old)])
    second = tx("b", certificates=[registers(POOL, site.url("/new", new), new)])
    await written.append(10, first)
    await written.append(20, second)
    assert await aggregator.passes() == 1
    await written.back_to(10)
    assert await shown(api, key) == NOTHING
    assert await aggregator.passes() == 1
    assert (await shown(api, key))["name"] == "Old"
    await written.append(21, second)
    assert (await shown(api, key))["name"] == "New"
    assert await aggregator.passes() == 0
    # An index that begins again has no registrations for a while; its metadata stays.
    await db.execute("TRUNCATE chain_preview.pool_update")
    await aggregator.passes()
    assert await db.fetchval("SELECT count(*) FROM partner.pool_metadata WHERE replaced_at IS NULL") == 1
    assert site.asked == {"/old": 1, "/new": 1}


async def test_the_same_document_at_another_url_is_shown_at_once(
    api: Client, key: str, written: Written, site: Site, aggregator: Aggregator
) -> None:
    await written.append(10, tx("a", certificates=[registers(POOL, site.url("/a", document()), document())]))
    await aggregator.passes()
    await written.append(20, tx("b", certificates=[registers(POOL, site.url("/none"), document())]))
    await aggregator.passes()
    assert (await shown(api, key))["name"] == "Pool"


async def test_a_delisted_pool_is_neither_shown_nor_fetched_until_the_list_changes(
    api: Client, key: str, written: Written, site: Site, aggregator: Aggregator, tmp_path: Path
) -> None:
    delisted = tmp_path / "delisted"
    delisted.write_text(f"{show_pool_id(POOL)} # a court's order\n")
    mine, theirs = document(name="Mine"), document(name="Theirs")
    certificates = [registers(POOL, site.url("/p", mine), mine), registers(OTHER, site.url("/o", theirs), theirs)]
    await written.append(10, tx("a", certificates=certificates))
    await aggregator.passes(delisted)
    assert site.asked == {"/o": 1}
    assert (await error_of(api, key))["code"] == "delisted"
    assert (await shown(api, key, OTHER))["name"] == "Theirs"
    told = (await api.get(f"{BLOCKFROST}/pools/{POOL.hex()}/metadata", key)).body
    assert told["error"]["code"] == "UNKNOWN_ERROR"
    delisted.write_text(f"#\n{OTHER.hex().upper()}\n")
    await aggregator.passes(delisted)
    assert (await shown(api, key))["name"] == "Mine"
    assert (await error_of(api, key, OTHER))["code"] == "delisted"
    for unusable in ("pool1nonsense", "x" * (pool_list.MAX_BYTES + 1)):
        delisted.write_text(unusable)
        await aggregator.passes(delisted)
        assert (await error_of(api, key, OTHER))["code"] == "delisted"  # the last list stays in effect
    delisted.unlink()
    await aggregator.passes(delisted)
    assert (await error_of(api, key, OTHER))["code"] == "delisted"
    await aggregator.passes(None)
    assert (await shown(api, key, OTHER))["name"] == "Theirs"


async def test_private_addresses_are_never_connected_to_and_callers_learn_nothing_of_them(
    api: Client, key: str, written: Written, site: Site, database_url: str, db: asyncpg.Connection
) -> None:
    """With the rules of production, but for its ports."""
    names = {"inside.example": ["127.0.0.1"]}

    def look_up(host: str) -> list[str]:
        if host.endswith(".invalid"):
            raise OSError("no such name")
        return names.get(host) or egress.PUBLIC.look_up(host)

    hosts = ("127.0.0.1", "[::ffff:127.0.0.1]", "localhost", "inside.example", "unknown.invalid", "2130706433")
    pools = {host: bytes([number] * 28) for number, host in enumerate(hosts)}
    certificates = [registers(pool, f"http://{host}:{site.port}/p.json", document()) for host, pool in pools.items()]
    site.documents["/p.json"] = document()
    await written.append(10, tx("a", certificates=certificates))
    async with _aggregating(database_url, egress.PUBLIC._replace(ports=None, look_up=look_up)) as aggregator:
        assert await aggregator.passes() == len(hosts)
    assert not site.asked
    errors = [await error_of(api, key, pool) for pool in pools.values()]
    assert [error["code"] for error in errors] == ["connection_error"] * len(hosts)
    assert len({error["message"] for error in errors}) == 1  # whether a name exists inside is not told
    reasons = [row["failure"] for row in await db.fetch("SELECT failure FROM partner.pool_metadata")]
    assert any("inside.example has the address 127.0.0.1, which is not public" in reason for reason in reasons)


async def test_a_redirect_is_followed_to_public_addresses_only(
    api: Client, key: str, written: Written, site: Site, aggregator: Aggregator, db: asyncpg.Connection
) -> None:
    site.redirects = {"/short": site.url("/long/path", document()), "/in": f"http://inside.example:{site.port}/"}
    certificates = [registers(POOL, site.url("/short"), document()), registers(OTHER, site.url("/in"), b"other")]
    await written.append(10, tx("a", certificates=certificates))
    await aggregator.passes()
    assert (await shown(api, key))["name"] == "Pool"
    assert (await error_of(api, key, OTHER))["code"] == "connection_error"
    assert site.asked == {"/short": 1, "/long/path": 1, "/in": 1}
    source = await db.fetchval("SELECT source FROM partner.pool_metadata WHERE content IS NOT NULL")
    assert source == site.url("/long/path")


async def test_a_slow_server_delays_no_other_document(
    api: Client, key: str, written: Written, site: Site, aggregator: Aggregator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_metadata, "WITHIN_S", 0.3)
    site.delay_s = 3.0
    certificates = [registers(bytes([number] * 28), site.url(f"/{number}"), document()) for number in range(16)]
    await written.append(10, tx("a", certificates=certificates))
    async with asyncio.timeout(2.5):
        assert await aggregator.passes() == 16
    assert (await error_of(api, key))["code"] == "connection_error"


async def test_odd_urls_harm_nothing(
    api: Client, key: str, written: Written, aggregator: Aggregator, db: asyncpg.Connection
) -> None:
    urls = (
        "",
        "\0",
        "http://\0/",
        "http://[",
        "ftp://pool.example/",
        "http://pool.example:0/",
        "ü",
        "http://" + "a" * 100,
    )
    pools = {url: bytes([number] * 28) for number, url in enumerate(urls)}
    certificates = [registers(pool, url, document()) for url, pool in pools.items()]
    await written.append(10, tx("a", certificates=certificates))
    assert await aggregator.passes() == len(urls)
    for pool in pools.values():
        assert (await error_of(api, key, pool))["code"] == "connection_error"
    assert await db.fetchval("SELECT max(length(failure)) FROM partner.pool_metadata") <= 300


async def test_texts_are_cleaned_and_the_document_is_kept_as_received(
    api: Client, key: str, written: Written, site: Site, aggregator: Aggregator, db: asyncpg.Connection
) -> None:
    odd = document(name="<b>\u202eloop\0</b>\n'\"", homepage="javascript:alert(1)")
    await written.append(10, tx("a", certificates=[registers(POOL, site.url("/odd", odd), odd)]))
    await aggregator.passes()
    found = await shown(api, key)
    assert (found["name"], found["homepage"]) == ("<b>loop</b> '\"", None)
    assert await db.fetchval("SELECT content FROM partner.pool_metadata") == odd


async def test_several_processes_fetch_each_document_once(
    written: Written, site: Site, database_url: str, db: asyncpg.Connection
) -> None:
    certificates = [
        registers(bytes([number] * 28), site.url(f"/{number}", document()), document()) for number in range(40)
    ]
    await written.append(10, tx("a", certificates=certificates))
    async with (
        _aggregating(database_url, OPEN) as one,
        _aggregating(database_url, OPEN) as two,
        _aggregating(database_url, OPEN) as three,
    ):
        turns = [await pool_metadata.take_turn(each.pool, 60) for each in (one, two, three)]
        assert turns == [True, False, False]
        await db.execute("UPDATE partner.pool_metadata_turn SET taken_at = taken_at - interval '61 seconds'")
        assert await pool_metadata.take_turn(two.pool, 60)
        await pool_metadata.register_all(one.pool, database_url)
        tried = await asyncio.gather(*(pool_metadata.fetch_due(each.pool, each.out) for each in (one, two, three)))
    assert sum(tried) == 40
    assert set(site.asked.values()) == {1}


async def test_what_a_killed_process_had_claimed_is_due_again_later(
    written: Written, site: Site, aggregator: Aggregator, db: asyncpg.Connection
) -> None:
    await written.append(10, tx("a", certificates=[registers(POOL, site.url("/p", document()), document())]))
    await pool_metadata.register(aggregator.pool, PREVIEW, [(blake2b(document()), site.url("/p").encode())])
    assert len(await pool_metadata._claim.all(db, 8, 300.0)) == 1
    assert await aggregator.passes() == 0
    await db.execute("UPDATE partner.pool_metadata SET try_at = try_at - interval '301 seconds'")
    assert await aggregator.passes() == 1


async def test_rows_of_a_network_are_bounded(
    written: Written, site: Site, aggregator: Aggregator, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_metadata, "MOST_ROWS", 3)
    for slot in range(1, 9):
        content = document(name=str(slot))
        pool = bytes([slot % 4] * 28)
        await written.append(
            slot, tx(str(slot), certificates=[registers(pool, site.url(f"/{slot}", content), content)])
        )
        await aggregator.passes()
    present, replaced = await db.fetchrow(
        "SELECT count(*) FILTER (WHERE replaced_at IS NULL), count(*) FILTER (WHERE replaced_at IS NOT NULL)"
        " FROM partner.pool_metadata"
    )
    assert (present, replaced) == (3, 3)


async def test_metrics_count_the_states(
    api: Client, written: Written, site: Site, aggregator: Aggregator, db: asyncpg.Connection
) -> None:
    await written.append(
        10,
        tx("a", certificates=[registers(POOL, site.url("/p", document()), document())]),
        tx("b", certificates=[registers(OTHER, site.url("/none"), document())]),
        tx("c", pays(person("p"))),
    )
    assert b"ledgerline_pool_metadata{" not in (await api.call("GET", "/metrics")).body
    await aggregator.passes()
    metrics = (await api.call("GET", "/metrics")).body
    for family in (b"ledgerline_pool_metadata", b"ledgerline_pool_metadata_new"):
        for state, number in ((b"fetched", b"1.0"), (b"failed", b"1.0"), (b"waiting", b"0.0")):
            assert family + b'{network="preview",state="' + state + b'"} ' + number in metrics
    await db.execute("UPDATE partner.pool_metadata SET found_at = found_at - interval '8 days'")
    metrics = (await api.call("GET", "/metrics")).body
    assert b'ledgerline_pool_metadata_new{network="preview",state="failed"} 0.0' in metrics


async def test_nothing_is_requested_unless_the_operator_wants_it(
    api: Client, key: str, written: Written, site: Site, database_url: str, tmp_path: Path, db: asyncpg.Connection
) -> None:
    await written.append(10, tx("a", certificates=[registers(POOL, site.url("/p", document()), document())]))
    delisted = tmp_path / "delisted"
    delisted.write_text(POOL.hex())
    task = asyncio.create_task(pool_metadata.run(database_url, fetches=False, delisted=delisted))
    async with asyncio.timeout(10):
        while not await db.fetchval("SELECT count(*) FROM partner.delisted_pool"):
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await db.fetchval("SELECT count(*) FROM partner.pool_metadata") == 0
    assert (await error_of(api, key))["code"] == "delisted"


async def test_the_task_as_the_aggregator_runs_it_reaches_no_server_of_ours(
    api: Client, key: str, written: Written, site: Site, database_url: str
) -> None:
    await written.append(
        10,
        tx("a", certificates=[registers(POOL, f"http://127.0.0.1:{site.port}/p.json", document())]),
        tx("b", certificates=[registers(OTHER, f"http://localhost:{site.port}/p.json", document())]),
    )
    task = asyncio.create_task(pool_metadata.run(database_url, fetches=True, delisted=None))
    async with asyncio.timeout(20):
        while None in [(await shown(api, key, pool))["error"] for pool in (POOL, OTHER)]:
            await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not site.asked
