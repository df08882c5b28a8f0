"""Questions that are asked again: the answer is kept, and everything else is as the first time (decision 77).

The tests change rows without moving the tip, which no indexer does, to tell a kept answer from a new one.
"""

import asyncio
import gzip
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
import asyncpg
import pytest

from api.blockfrost.shape import ROOT
from api.chain import blocks
from api.repeats.kept import OfServer
from indexer.ledger import reader
from shared.network import MAINNET, PREVIEW
from tests.api.chains import Chain
from tests.api.client import Client, Reply
from tests.api.conftest import IssueKey
from tests.api.counting import until_counted
from tests.api.partners import Partner
from tests.api.payments import ALICE, pays

HISTORY, FACADE = f"/v1/tx/history/{ALICE}", f"{ROOT}/addresses/{ALICE}/transactions"
ANEW = {"Cache-Control": "no-cache"}
OWN_HEADERS = {"ratelimit", "ratelimit-remaining", "ratelimit-reset", "x-request-id", "date"}


@pytest.fixture
async def paid(chain: Chain) -> Chain:
    """A chain with forty payments to Alice."""
    await chain.append(10, *(pays(f"{number}", ALICE) for number in range(40)))
    return chain


async def forget(chain: Chain) -> None:
    """Empty Alice's history, without a block."""
    await chain._db.execute("DELETE FROM address_tx")


def same(reply: Reply, first: Reply) -> bool:
    """Whether two answers are equal, apart from what belongs to one request."""
    names = {name.lower() for name in (*reply.headers, *first.headers)} - OWN_HEADERS
    return (reply.status, reply.body) == (first.status, first.body) and all(
        reply.headers.get(name) == first.headers.get(name) for name in names
    )


@pytest.mark.parametrize("path", [HISTORY, f"{HISTORY}?limit=2&nonsense=1", FACADE])
async def test_a_kept_answer_is_the_first_one_with_headers_of_its_own(
    api: Client, paid: Chain, key: str, issue_key: IssueKey, path: str
) -> None:
    first = await api.get(path, key)
    assert first.status == 200
    assert first.body
    await forget(paid)
    again, of_other = await api.get(path, key), await api.get(path, await issue_key(per_minute=7))
    assert same(again, first)
    left = [int(reply.headers["RateLimit-Remaining"]) for reply in (first, again, of_other)]
    assert left == [9_999, 9_998, 6]
    assert first.headers["X-Request-Id"] != again.headers["X-Request-Id"]
    named = await api.call("GET", path, key, headers={"X-Request-Id": "mine"})
    assert named.headers["X-Request-Id"] == "mine"
    anew = await api.call("GET", path, key, headers=ANEW)
    assert anew.body != first.body
    assert same(await api.get(path, key), first), "which `no-cache` does not replace"
    await paid.append(20)
    assert (await api.get(path, key)).body != first.body
    elsewhere = await api.get(path, await issue_key(MAINNET.network_id))
    assert elsewhere.status in (400, 503), "an answer is kept for its network"


async def test_a_kept_answer_is_given_only_to_those_who_may_ask(
    api: Client, paid: Chain, partner: Partner, issue_key: IssueKey
) -> None:
    key = await issue_key(per_minute=2)
    first = await api.get(HISTORY, key)
    await forget(paid)
    assert same(await api.get(HISTORY, key), first)
    limited = await api.get(HISTORY, key)
    assert (limited.status, limited.headers["Error-Code"]) == (429, "rate_limit_exceeded")
    assert (await api.get(HISTORY)).status == 401
    credential, revoked = await partner.issued(await partner.user(), network_id=PREVIEW.network_id)
    assert (await api.get(HISTORY, revoked)).body == first.body
    assert (await partner.call("DELETE", f"/credentials/{credential['id']}")).status == 200
    refused = await api.get(HISTORY, revoked)
    assert (refused.status, refused.headers["Error-Code"]) == (403, "invalid_api_key")


@pytest.mark.parametrize("path", [HISTORY, FACADE])
async def test_a_kept_answer_has_tags_and_encodings(api: Client, paid: Chain, key: str, path: str) -> None:
    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def get(encoding: str, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
            sent = {"Authorization": f"Bearer {key}", "Accept-Encoding": encoding, **headers}
            async with session.get(f"http://127.0.0.1:{api.port}{path}", headers=sent) as response:
                return response.status, response.headers, await response.read()

        plain, packed = await get("identity"), await get("gzip")
        assert gzip.decompress(packed[2]) == plain[2]
        await forget(paid)
        for encoding, (status, headers, body) in (("identity", plain), ("gzip", packed)):
            again = await get(encoding)
            assert (again[0], again[2]) == (status, body)
            for name in ("Content-Encoding", "Vary", "ETag", "Content-Type", "Content-Length", "Cache-Control"):
                assert again[1].get(name) == headers.get(name), name
            unchanged = await get(encoding, **{"If-None-Match": headers["ETag"]})
            assert (unchanged[0], unchanged[2]) == (304, b"")
            assert (await get(encoding, **{"If-None-Match": '"another"'}))[2] == body


async def test_errors_are_not_kept(api: Client, chain: Chain, key: str) -> None:
    await chain.append(10, pays("a", ALICE))
    path = f"/v1/tx/hash/{pays('b', ALICE).hash.hex()}"
    assert (await api.get(path, key)).status == 404
    await chain.append(20, pays("b", ALICE))
    assert (await api.get(path, key)).status == 200


async def test_a_reading_of_the_ledger_ends_what_is_kept(api: Client, paid: Chain, key: str) -> None:
    await paid._db.execute("INSERT INTO ledger_state (slot_no, epoch_no, next_stake_no) VALUES (10, 0, 5)")
    first = await api.get(HISTORY, key)
    await forget(paid)
    assert same(await api.get(HISTORY, key), first)
    await reader._set_next_stake_no.run(paid._db, None)
    assert await paid._db.fetchval("SELECT next_stake_no FROM ledger_state") == 5
    assert (await api.get(HISTORY, key)).body != first.body


async def test_the_stake_of_an_epoch_is_added_up_once(api: Client, paid: Chain, key: str) -> None:
    async def active() -> str:
        reply = await api.call("GET", "/v1/network", key, headers=ANEW)
        stake: str = reply.body["data"]["stake"]["active"]
        return stake

    await paid._db.execute("INSERT INTO pool_epoch (pool_no, epoch_no, active_stake) VALUES (1, 0, 5), (2, 0, 6)")
    assert await active() == "11"
    await paid._db.execute("UPDATE pool_epoch SET active_stake = 7 WHERE pool_no = 1")
    assert await active() == "11", "which only a reading or another fork changes"
    await paid._db.execute("INSERT INTO ledger_state (slot_no, epoch_no) VALUES (10, 0)")
    assert await active() == "13"
    await paid._db.execute("UPDATE pool_epoch SET active_stake = 8 WHERE pool_no = 1")
    assert await active() == "13"
    await reader._set_next_stake_no.run(paid._db, 1)
    assert await active() == "14"


async def test_many_who_ask_at_once_are_all_counted(
    api: Client,
    paid: Chain,
    issue_key: IssueKey,
    db: asyncpg.Connection,
    aggregator: Callable[[], Any],
) -> None:
    aggregator()
    await paid.append(20)
    keys = [await issue_key(per_minute=10) for _ in range(4)]
    replies = await asyncio.gather(*(api.get(HISTORY, key) for key in keys for _ in range(12)))
    assert sorted(reply.status for reply in replies) == [200] * 40 + [429] * 8
    assert len({str(reply.body) for reply in replies if reply.status == 200}) == 1
    await until_counted(db, (40, 8))


@pytest.mark.parametrize("path", [f"{ROOT}/addresses/{ALICE}/utxos", f"{ROOT}/addresses/{ALICE}"])
async def test_an_answer_read_while_the_index_moved_is_read_again(
    api: Client, paid: Chain, key: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await paid.append(20, pays("last", ALICE))
    first = await api.get(path, key)
    moved = list[bool]()

    async def has_moved(*_: Any) -> bool:
        moved.append(True)
        return True

    monkeypatch.setattr(OfServer, "_has_moved", has_moved)
    again = await api.call("GET", path, key, headers=ANEW)
    assert (again.status, again.body) == (200, first.body)
    assert moved


@pytest.mark.parametrize("way", ["next", "previous"])
async def test_neighbours_of_a_block_are_of_its_chain(
    api: Client, paid: Chain, key: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index changes to a fork after the block was found, and before its neighbours are."""
    middle = await paid.append(20)
    await paid.append(30, pays("last", ALICE))
    look_up, looked = blocks.look_up, list[object]()

    async def over_a_fork(db: Any, block: bytes | int | None) -> Any:
        looked.append(block)
        if len(looked) == 2:
            await paid._db.execute(
                "UPDATE block SET hash = sha256(hash); UPDATE tip SET block_hash = sha256(block_hash)"
            )
        return await look_up(db, block)

    monkeypatch.setattr(blocks, "look_up", over_a_fork)
    reply = await api.call("GET", f"{ROOT}/blocks/{middle}/{way}", key, headers=ANEW)
    assert reply.status == 404, "the fork has no such block"
