"""Answers as long as valid transactions can make them: in pieces, limited, compressed, and by HEAD. Decision 0060."""

import asyncio
import gzip
import socket
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from api.http import bodies, sending, turns
from api.http.bodies import MAX_BYTES, Room, Writer
from api.sources.chain_servers import CONNECTIONS, ChainServers
from shared import database, packed
from shared.network import PREVIEW, Network
from tests import long_answers
from tests.api.client import Client, serving
from tests.api.conftest import IssueKey
from tests.api.locks import until_blocked
from tests.api.test_blockfrost import spooled_statuses
from tests.api.test_owners import unread
from tests.long_answers import ASSETS, LONG
from tests.patience import PATIENCE_S

LONG_ONES, INPUTS = 3, 40
HASHES = [long_answers.hash_at(number).hex() for number in range(LONG_ONES)]
BULK, FACADE = "/v1/bulk/transactions", "/blockfrost/api/v0"
LONG_PATHS = (
    f"/v1/tx/hash/{HASHES[0]}",
    f"/v1/tx/address/{LONG}?limit=1&order=asc",
    f"/v1/addresses/{LONG}/utxos?limit=60",
    f"{FACADE}/txs/{HASHES[0]}/utxos",
    f"{FACADE}/addresses/{LONG}/utxos?count=40",
)


pytestmark = pytest.mark.usefixtures("long_chain", "no_aggregator")


@pytest.fixture
async def long_chain(database_url: str) -> None:
    db = await database.connect(database_url, PREVIEW)
    await long_answers.fill(db, LONG_ONES, INPUTS, 5 * ASSETS)
    await db.close()


@pytest.fixture(autouse=True)
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two long transactions, or the outputs of some 30 others, exceed it."""
    monkeypatch.setattr(bodies, "MAX_BYTES", MAX_BYTES // 4)


async def test_a_long_transaction_is_answered_whole_by_every_route(api: Client, key: str) -> None:
    """Each form of it has the same inputs with the same values, compressed or not."""
    whole = (await api.get(LONG_PATHS[0], key)).body["data"]
    assert [len(spent["value"]["assets"]) for spent in whole["inputs"]] == [ASSETS] * INPUTS
    listed = (await api.get(LONG_PATHS[1], key)).body["data"][0]
    assert listed == {name: whole[name] for name in listed}
    asked = await api.call("POST", BULK, key, json={"ids": [HASHES[0]]})
    assert asked.body["data"] == [whole]
    shown = (await api.get(LONG_PATHS[3], key)).body["inputs"]
    for ours, theirs in zip(whole["inputs"], shown, strict=True):
        held = {each["unit"]: int(each["quantity"]) for each in theirs["amount"]}
        assert held.pop("lovelace") == ours["value"]["lovelace"]
        assert held == {name.replace(".", ""): count for name, count in ours["value"]["assets"].items()}


@pytest.mark.parametrize("path", LONG_PATHS[:3:2])
async def test_a_long_answer_is_compressed_while_it_is_built(api: Client, key: str, path: str) -> None:
    plain = await api.get(path, key)
    packed = await asyncio.to_thread(_raw, api.port, path, key)
    head, _, body = packed.partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in head
    assert f"ETag: {plain.headers['ETag']}".encode() in head
    assert b"Vary: Authorization, Accept-Encoding" in head
    assert msgspec.json.decode(gzip.decompress(body)) == plain.body
    assert plain.headers["Vary"] == "Authorization, Accept-Encoding"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (f"/v1/tx/address/{LONG}?order=asc", "limit"),
        (f"/v1/tx/address/{LONG}?offset=60", "limit"),
        (f"/v1/addresses/{LONG}/utxos?offset=7", "limit"),
        (f"{FACADE}/addresses/{LONG}/utxos?order=desc", "count"),
    ],
)
async def test_a_list_that_is_too_long_is_refused_with_the_limit_that_fits(
    api: Client, key: str, path: str, name: str
) -> None:
    """It is never shortened: with that limit it has as many entries, with one more it is refused again."""
    most = "100" if "utxos" not in path or name == "count" else "500"
    refused = await api.get(f"{path}&{name}={most}", key)
    assert (refused.status, refused.headers["Error-Code"]) == (400, "answer_too_large")
    fitting = int(refused.headers["Fitting-Limit"])
    message = refused.body["message"] if name == "count" else refused.error
    assert message == f"Answer too large: send a smaller {name}, at most {fitting}"
    page = (await api.get(f"{path}&{name}={fitting}", key)).body
    assert len(page if name == "count" else page["data"]) == fitting
    again = await api.get(f"{path}&{name}={fitting + 1}", key)
    assert (again.status, again.headers["Fitting-Limit"]) == (400, str(fitting))


async def test_several_long_transactions_are_refused_and_one_alone_is_answered(api: Client, key: str) -> None:
    refused = await api.call("POST", BULK, key, json={"ids": HASHES})
    assert (refused.status, refused.error) == (400, "Answer too large: send fewer ids, at most 1")
    assert (await api.call("POST", BULK, key, json={"ids": HASHES[:1]})).status == 200


async def test_an_id_is_taken_once(api: Client, key: str) -> None:
    upper = [HASHES[0], HASHES[1], HASHES[0].upper()]
    for ids, error in (
        ([HASHES[0]] * 100, "ids[1] repeats ids[0]: send each id once"),
        (upper, "ids[2] repeats ids[0]: send each id once"),
    ):
        reply = await api.call("POST", BULK, key, json={"ids": ids})
        assert (reply.status, reply.headers["Error-Code"], reply.error) == (400, "invalid_parameter", error)


async def test_head_does_not_build_the_body(api: Client, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    got = {path: await api.get(path, key) for path in LONG_PATHS}

    async def write(*_: object) -> None:
        raise AssertionError("a body is built")

    monkeypatch.setattr(Writer, "write", write)
    for path, whole in got.items():
        head = await api.call("HEAD", path, key)
        assert head.status == 200, path
        for name in ("Link", "Cache-Control", "Content-Type", *(() if path.startswith(FACADE) else ("ETag",))):
            assert head.headers.get(name) == whole.headers.get(name), (path, name)
        assert "Content-Length" not in head.headers


async def test_an_answer_waits_for_a_file_without_holding_a_connection(
    environment: dict[str, str],
    issue_key: IssueKey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A caller that reads nothing holds the only file. Its next requests wait, but other requests are answered."""
    monkeypatch.setattr(bodies, "FILES", 1)
    monkeypatch.setattr(turns, "WAIT_S", PATIENCE_S)
    slow, other = await issue_key(), await issue_key()
    async with serving(environment) as api:
        with unread(api, LONG_PATHS[0], slow) as holding:
            async with asyncio.timeout(PATIENCE_S):
                while not _has_file():
                    await asyncio.sleep(0.01)
            plain = {"Accept-Encoding": "identity"}
            waiting = [asyncio.create_task(api.call("GET", LONG_PATHS[0], slow, headers=plain)) for _ in range(4)]
            for key in (other, slow, other, slow):
                assert (await api.get("/v1/blocks/latest", key)).status == 200
            assert not any(each.done() for each in waiting)
            holding.close()
        assert [(await each).status for each in waiting] == [200] * 4


async def test_answers_that_wait_to_be_built_hold_no_connection(
    environment: dict[str, str], data_dir: Path, issue_key: IssueKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many keys as there are connections wait for the turn that another one has; a further key does not."""
    monkeypatch.setattr(bodies, "BUILDING", 1)
    monkeypatch.setattr(turns, "WAIT_S", PATIENCE_S)
    room = Room.in_folder(data_dir)
    monkeypatch.setattr(Room, "in_folder", lambda _: room)
    keys = [await issue_key() for _ in range(CONNECTIONS + 1)]
    async with serving(environment) as api:
        building = room.building
        await building.take("another")
        waiting = [asyncio.create_task(api.get(LONG_PATHS[0], key)) for key in keys[:CONNECTIONS]]
        async with asyncio.timeout(PATIENCE_S):
            while len(building._waiting) < CONNECTIONS:
                await asyncio.sleep(0.01)
            assert (await api.get("/v1/blocks/latest", keys[-1])).status == 200
        assert not any(each.done() for each in waiting)
        building.end("another")
        assert [(await each).status for each in waiting] == [200] * CONNECTIONS


async def test_an_answer_that_has_its_turn_to_be_built_waits_for_no_other_read_of_its_key(
    environment: dict[str, str], data_dir: Path, key: str, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would keep others from being built meanwhile."""
    room = Room.in_folder(data_dir)
    monkeypatch.setattr(Room, "in_folder", lambda _: room)
    async with serving(environment) as api, asyncio.timeout(PATIENCE_S):
        for other in range(bodies.BUILDING):
            await room.building.take(other)
        waiting = asyncio.create_task(api.get(LONG_PATHS[0], key))
        while not room.building._waiting:
            await asyncio.sleep(0.01)
        async with db.transaction():
            await db.execute("LOCK TABLE chain_preview.policy_holder")
            slow = asyncio.create_task(api.get(f"/v1/assets/policy/{'03' * 28}/holders", key))
            await until_blocked(db)
            room.building.end(0)
            assert (await waiting).status == 200
            assert not slow.done()
        assert (await slow).status == 200


async def test_an_answer_that_is_refused_because_too_many_are_unread_counts_as_failed(
    api: Client, key: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does its form below /blockfrost. It has the headers of any answer, and no others of the lost one."""
    paths = "/v1/blocks/latest", f"{FACADE}/blocks/latest"
    for path in paths:
        assert (await api.get(path, key)).status == 200
    monkeypatch.setattr(sending, "MAX_UNREAD_BYTES_EACH", 0)
    for path in paths:
        refused = await api.get(path, key)
        assert (refused.status, refused.headers["Error-Code"]) == (503, "too_many_concurrent_requests")
        assert {"RateLimit-Limit", "Vary", "X-Request-Id", "Retry-After"} <= refused.headers.keys()
        assert "ETag" not in refused.headers
    assert spooled_statuses(data_dir) == [200, 200, 503, 503]


async def test_an_answer_of_a_server_that_is_behind_leaves_nothing_to_that_of_another(
    api: Client, key: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one was long. It is dropped, and the second one, which is short, is sent."""
    db = await database.connect(database_url, PREVIEW)
    read = ChainServers.read

    async def read_twice(self: ChainServers, network: Network, work: Any, **options: Any) -> Any:
        await work(self.primary)
        await db.execute("UPDATE tx SET inputs = $1", packed.pack_inputs([]))
        return await read(self, network, work, **options)

    monkeypatch.setattr(ChainServers, "read", read_twice)
    anew = {"Cache-Control": "no-cache"}  # no block has come
    assert (await api.call("GET", LONG_PATHS[0], key, headers=anew)).body["data"]["inputs"] == []
    await db.close()


def _has_file() -> bool:
    """Whether this process holds a file without a name that is longer than an answer in memory."""
    for each in Path("/proc/self/fd").iterdir():
        try:
            if "(deleted)" in str(each.readlink()) and each.stat().st_size > bodies.MAX_IN_MEMORY_BYTES:
                return True
        except OSError:
            continue
    return False


def _raw(port: int, path: str, key: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nAccept-Encoding: gzip\r\n"
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))
