"""Addresses, accounts and outputs: long lists at every depth, several at once, and whole lists as CSV."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest
from ledgerline_client import AsyncLedgerline

from shared import address, database
from shared.network import PREVIEW
from tests.api.client import Client
from tests.api.conftest import IssueKey
from tests.api.payments import NOBODY, ON_MAINNET
from tests.chain.model import stake_address_of
from tests.chain.model_chain import Chain as Model
from tests.chain.model_owners import Owners
from tests.chain.written import POLICY, Written, hash_of, mints, pays, person, reward_account, tx
from tests.patience import PATIENCE_S

Json = dict[str, Any]
COIN, RARE = b"Coin".hex(), b"Rare".hex()
MANY = 6_000
STAKED = person("busy", staked=True)
OTHER = person("other")


@pytest.fixture
async def client(api: Client, key: str) -> Any:
    async with AsyncLedgerline(f"http://127.0.0.1:{api.port}", api_key=key) as service:
        yield service


@pytest.fixture
async def db(database_url: str) -> Any:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


def block(slot: int, height: int, *transactions: Json) -> Json:
    return {
        "type": "praos",
        "era": "conway",
        "id": hash_of(f"block {slot}"),
        "ancestor": hash_of("before"),
        "height": height,
        "slot": slot,
        "issuer": {"verificationKey": "00" * 32},
        "size": {"bytes": 1_000},
        "transactions": list(transactions),
    }


def blocks() -> list[Json]:
    """An address with enough outputs for buckets in its list; every third output is spent again."""
    outputs = [pays(STAKED, (COIN, 1 + n % 5)) if n % 4 == 0 else pays(STAKED) for n in range(MANY)]
    outputs[17] = pays(STAKED, (RARE, 1))
    coins = sum(each["value"].get(POLICY, {}).get(COIN, 0) for each in outputs)
    gone = tuple(("spread", n) for n in range(1, MANY, 3))
    return [
        block(10, 1, tx("spread", *outputs, mint=mints((COIN, coins), (RARE, 1)))),
        block(20, 2, tx("gather", pays(OTHER, (COIN, 9)), pays(STAKED), spends=gone)),
    ]


async def test_long_lists_are_right_at_every_depth_also_after_a_rollback(
    api: Client, key: str, db: asyncpg.Connection
) -> None:
    chain, (first, second) = Written(db), blocks()
    buckets = []
    for step in ("spread", "gathered", "rolled back"):
        if step == "rolled back":
            await chain.back_to(10)
        else:
            await chain.index(first if step == "spread" else second)
        owners = Owners(Model("preview").feed([first, second] if step == "gathered" else [first]).ledger)
        buckets.append(await db.fetchval("SELECT count(*) FROM utxo_bucket"))
        for kind, owner in (("addresses", STAKED), ("accounts", stake_address_of(STAKED)), ("addresses", OTHER)):
            assert owner is not None
            path = f"/v1/{kind}/{owner}"
            told = (await api.get(path, key)).body["data"]
            assert told.items() >= owners.summary(owner).items(), (step, kind)
            await deep(api, key, f"{path}/utxos?", owners.unspent(owner))
            for name in (COIN, RARE):
                await deep(api, key, f"{path}/utxos?asset={POLICY}.{name}&", owners.unspent(owner, (POLICY, name)))
    assert buckets[0] >= 4 and buckets[0] == buckets[2]


def reference_of(output: Json) -> tuple[str, int]:
    """The transaction and index of an output."""
    return output["tx_hash"], output["output_index"]


async def deep(api: Client, key: str, path: str, oldest_first: list[Json]) -> None:
    """Pages of a list at some offsets, in both directions."""
    total = len(oldest_first)
    for order, rows in (("asc", oldest_first), ("desc", oldest_first[::-1])):
        for offset in {0, 999, 1_000, total // 2, max(total - 2, 0), total}:
            body = (await api.get(f"{path}limit=3&offset={offset}&order={order}", key)).body
            assert body["data"] == rows[offset : offset + 3], (path, order, offset)
            cursor = body["pagination"].pop("next_cursor", None)
            assert body["pagination"] == {"limit": 3, "offset": offset, "hasMore": offset + 3 < total}
            assert (cursor is not None) == (offset + 3 < total)
            if cursor is not None:
                following = (await api.get(f"{path}limit=3&offset=1&order={order}&cursor={cursor}", key)).body
                assert following["data"] == rows[offset + 4 : offset + 7], (path, order, offset)


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("query", ["", f"&asset={POLICY}.{COIN}"])
async def test_a_walk_by_cursor_returns_each_kept_output_once_while_blocks_come_and_go(
    api: Client, key: str, db: asyncpg.Connection, query: str, order: str
) -> None:
    chain, (first, second) = Written(db), blocks()
    await chain.index(first)
    before, after = (Owners(Model("preview").feed(fed).ledger) for fed in ([first], [first, second]))
    asset = (POLICY, COIN) if query else None
    there_after = {reference_of(row) for row in after.unspent(STAKED, asset)}
    kept = [row for row in before.unspent(STAKED, asset) if reference_of(row) in there_after]
    assert len(kept) > 900
    path: str | None = f"/v1/addresses/{STAKED}/utxos?limit=200&order={order}{query}"
    met: list[Json] = []
    pages = 0
    while path:
        reply = await api.get(path, key)
        assert reply.status == 200, reply.body
        met += reply.body["data"]
        link = reply.headers.get("Link")
        path = link.removeprefix("<").removesuffix('>; rel="next"') if link else None
        pages += 1
        if pages == 2:
            await chain.index(second)
        if pages == 4:
            await chain.back_to(10)
    references = [reference_of(row) for row in met]
    assert len(references) == len(set(references))
    stays = {reference_of(row) for row in kept}
    assert [row for row in met if reference_of(row) in stays] == (kept if order == "asc" else kept[::-1])


async def test_lists_of_names_continue_after_one_that_was_left_and_refuse_an_unknown_one(
    api: Client, key: str, db: asyncpg.Connection, client: AsyncLedgerline
) -> None:
    chain, account = Written(db), reward_account("busy")
    names = [f"{n:02x}" for n in range(9)]
    others = [address.show(b"\x00" + bytes([n]) * 28 + address.parse_stake(account, PREVIEW)[1:]) for n in range(8)]
    everything = [(name, 1) for name in names]
    await chain.append(10, tx("a", pays(STAKED, *everything), mint=mints(*everything)))
    await chain.append(20, *(tx(f"b{n}", pays(each)) for n, each in enumerate(others)))
    assets = [each["asset_name"] async for each in client.iterate_account_assets(account, limit=2)]
    assert assets == names[::-1]
    addresses = [each["address"] async for each in client.iterate_account_addresses(account, limit=2)]
    assert len(addresses) == 9 and set(addresses) == {STAKED, *others}
    await chain.append(30, tx("c", pays(OTHER, *everything[4:]), pays(STAKED, *everything[:4]), spends=(("a", 0),)))
    path = f"/v1/accounts/{account}"
    reply = await api.get(f"{path}/assets?order=asc&cursor={POLICY}.05", key)
    assert (reply.status, reply.body["data"]) == (200, []), "it holds none of those that follow"
    reply = await api.get(f"{path}/assets?cursor={POLICY}.05", key)
    assert [each["asset_name"] for each in reply.body["data"]] == names[3::-1]
    await chain.back_to(10)
    reply = await api.get(f"{path}/addresses?cursor={addresses[0]}", key)
    assert [each["address"] for each in reply.body["data"]] == [STAKED], "after one that a rollback has unused"


@pytest.mark.parametrize(
    ("listed", "cursors"),
    [
        ("utxos", ("", "1", "1.", "x.1", "1.x", "-.1", "1.1.1", "9223372036854775808.0", "1.100000", "\u0661.1")),
        ("delegations", ("1", "9223372036854775808.0", "1.-1")),
        ("assets", (f"{POLICY}.ffff", "x", POLICY, "asset1" + "q" * 38)),
        ("addresses", ("x", NOBODY, ON_MAINNET)),
    ],
)
async def test_an_invalid_cursor_is_refused(
    api: Client, key: str, db: asyncpg.Connection, listed: str, cursors: tuple[str, ...]
) -> None:
    await Written(db).append(10, tx("a", pays(STAKED)))
    for cursor in cursors:
        reply = await api.get(f"/v1/accounts/{stake_address_of(STAKED)}/{listed}?cursor={quote(cursor)}", key)
        assert (reply.status, reply.error) == (400, "cursor must be the next_cursor of a page of this list"), cursor


async def test_several_ids_are_answered_in_order_as_one_request(
    api: Client, key: str, db: asyncpg.Connection, issue_key: IssueKey
) -> None:
    chain, account = Written(db), stake_address_of(STAKED)
    await chain.append(10, tx("a", pays(STAKED, (COIN, 5)), pays(OTHER), mint=mints((COIN, 5))))
    await chain.append(20, tx("b", pays(OTHER), spends=(("a", 1),)))
    made, nothing = hash_of("a"), hash_of("nothing")
    asset = f"{POLICY}.{COIN}"
    singles: dict[str, tuple[list[str], Callable[[str], str], int]] = {
        "addresses": ([OTHER, NOBODY, STAKED], lambda each: f"/v1/addresses/{each}", 3),
        "accounts": ([account or ""], lambda each: f"/v1/accounts/{each}", 1),
        "transactions": ([hash_of("b"), nothing, made], lambda each: f"/v1/tx/hash/{each}", 2),
        "assets": ([f"{POLICY}.00", asset], lambda each: f"/v1/assets/{each}", 1),
        "utxos": ([f"{made}#1", f"{made}#2", f"{nothing}#0"], lambda each: f"/v1/utxos/{each.replace('#', '/')}", 1),
    }
    for kind, (ids, path_of, found) in singles.items():
        reply = await api.call("POST", f"/v1/bulk/{kind}", key, json={"ids": ids})
        assert (reply.status, reply.headers["Requests-Counted"]) == (200, "1"), reply.body
        expected = [(await api.get(path_of(each), key)).body.get("data") for each in ids]
        assert reply.body["data"] == expected, kind
        assert sum(each is not None for each in expected) == found
        assert reply.body["last_updated"]["slot_no"] == 20
    spent = (await api.get(f"/v1/utxos/{made}/1", key)).body["data"]["spent_by"]
    assert (spent["tx_hash"], spent["slot_no"]) == (hash_of("b"), 20)
    limited = await issue_key(per_minute=10)
    reply = await api.call("POST", "/v1/bulk/addresses", limited, json={"ids": [person(str(n)) for n in range(100)]})
    assert (reply.status, len(reply.body["data"]), reply.headers["RateLimit-Remaining"]) == (200, 100, "9")
    for ids, error in (
        ([OTHER, "x"], "ids[1]: Invalid address format"),
        ([ON_MAINNET], "ids[0]: Address does not belong to this network"),
        ([OTHER] * 101, "ids must be an array of 1 to 100 texts"),
        ([], "ids must be an array of 1 to 100 texts"),
    ):
        reply = await api.call("POST", "/v1/bulk/addresses", key, json={"ids": ids})
        assert (reply.status, reply.error) == (400, error)


async def test_a_download_has_every_holder_in_the_order_of_the_list(
    api: Client, key: str, db: asyncpg.Connection
) -> None:
    people = [person(f"p{n}", staked=n % 3 == 0) for n in range(1_200)]
    outputs = [pays(each, (COIN, 1 + n % 400)) for n, each in enumerate(people)]
    coins = sum(1 + n % 400 for n in range(len(people)))
    await Written(db).append(10, tx("spread", *outputs, mint=mints((COIN, coins))))
    for subject in (f"{POLICY}.{COIN}", f"policy/{POLICY}"):
        for kind in ("holders", "holders/accounts"):
            reply = await api.get(f"/v1/assets/{subject}/{kind}.csv", key)
            assert reply.headers["Content-Disposition"] == 'attachment; filename="holders-10.csv"'
            header, *lines = reply.body.decode().split("\r\n")[:-1]
            listed = []
            for offset in range(0, len(people), 500):
                page = await api.get(f"/v1/assets/{subject}/{kind}?limit=500&offset={offset}", key)
                listed += page.body["data"]
            columns = header.split(",")
            assert len(lines) == len(people)
            assert [dict(zip(columns, line.split(","), strict=True)) for line in lines] == [
                {name: value or "" for name, value in row.items()} for row in listed
            ]
    missing = await api.get(f"/v1/assets/{POLICY}.00/holders.csv", key)
    assert (missing.status, missing.error) == (404, "Asset not found")


async def test_a_download_holds_its_file_until_it_is_sent_or_not_read(
    api: Client, key: str, issue_key: IssueKey, db: asyncpg.Connection, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Written(db).append(10, tx("spread", pays(OTHER, (COIN, 1)), mint=mints((COIN, 1))))
    await db.execute(
        """
        WITH more AS (
            INSERT INTO address (address_no, raw) SELECT 1000 + n, '\\x60' || substr(sha256(n::text::bytea), 5)
            FROM generate_series(1, 10000) AS n RETURNING address_no
        )
        INSERT INTO holder SELECT asset_no, more.address_no, 1 FROM holder, more
        """
    )
    path = f"/v1/assets/{POLICY}.{COIN}/holders.csv"
    (tip,) = {(await api.call("HEAD", path, key)).headers["Snapshot-Block"] for _ in range(3)}
    assert tip == (await api.get("/v1/network", key)).body["last_updated"]["block_hash"]
    monkeypatch.setattr("api.http.turns.WAIT_S", 0.2)
    with unread(api, path, key) as first, unread(api, path, key):
        await until_held(data_dir, 2)
        refused = await api.get(path, key)
        assert (refused.status, refused.error) == (503, "Too many downloads are in progress: try again later")
        assert (await api.get(path, await issue_key())).status == 200
        first.close()
        await until_held(data_dir, 1)
        assert (await api.get(path, key)).body.count(b"\n") == 10_002
        monkeypatch.setattr("api.http.sending._GRACE_S", 0.2)
        monkeypatch.setattr("api.http.sending._SLOWEST_BYTES_S", 10**9)
        with unread(api, path, key):
            await until_held(data_dir, 2)
            await until_held(data_dir, 1)
    await until_held(data_dir, 0)


def unread(api: Client, path: str, key: str) -> socket.socket:
    """A connection that asks for a path and does not read the answer. Its buffers are small."""
    asking = socket.socket()
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    asking.connect(("127.0.0.1", api.port))
    asking.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    return asking


async def until_held(folder: Path, files: int) -> None:
    """Wait until this process has `files` open files in a folder; they have no names."""
    async with asyncio.timeout(PATIENCE_S):
        while sum(parent == folder for parent in held()) != files:
            await asyncio.sleep(0.02)


def held() -> Iterator[Path]:
    """The folders of all open files."""
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            yield descriptor.readlink().parent
