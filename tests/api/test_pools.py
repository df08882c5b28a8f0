"""Stake pools over HTTP: a single one, and pages of its delegators."""

import json
from typing import Any

import asyncpg
import pytest

from api.chain import pools
from shared import address, database, packed
from shared.encoding import bech32_encode
from shared.network import PREVIEW
from tests.api.chains import Chain
from tests.api.client import Client
from tests.api.conftest import IssueKey

HASH, OTHER_HASH = bytes(range(28)), bytes(range(28, 56))
POOL = bech32_encode("pool", HASH)
EPOCH = 86_400
PARAMETERS = packed.PoolParameters(
    vrf_key_hash=b"\xab" * 32,
    pledge=2**64 - 1,
    fixed_cost=340_000_000,
    margin="61576236620585531/100000000000000000",
    reward_account=b"\xf0" + HASH,
    owners=[b"\xe0" + HASH, b"\xe0" + OTHER_HASH],
    relays=[packed.Relay(3001, ipv4="192.0.2.1"), packed.Relay(hostname="_cardano._tcp.example.org")],
    metadata_url="https://example.org/pool.json",
    metadata_hash=b"\xcd" * 32,
)


@pytest.fixture
async def preview(database_url: str) -> Any:
    """A connection to the tables of preview, whose tip is in epoch 5."""
    connection = await database.connect(database_url, PREVIEW)
    await Chain(connection).append(5 * EPOCH + 10)
    yield connection
    await connection.close()


async def register(preview: asyncpg.Connection, tx: int = 1, **changes: Any) -> None:
    """Pool 1 is registered, by the certificate of a transaction."""
    await preview.execute("INSERT INTO pool VALUES (1, $1) ON CONFLICT DO NOTHING", HASH)
    parameters = packed.pack_pool_parameters(packed.PoolParameters(**{**_fields(PARAMETERS), **changes}))
    await preview.execute(
        "INSERT INTO pool_update (tx_id, pool_no, place, parameters) VALUES ($1, 1, 0, $2)", tx, parameters
    )


def _fields(parameters: packed.PoolParameters) -> dict[str, Any]:
    return {name: getattr(parameters, name) for name in parameters.__struct_fields__}


async def delegators(preview: asyncpg.Connection, amounts: list[int]) -> None:
    """Credentials number 1, 2, 3 … delegate these amounts to pool 1."""
    await preview.execute(
        """
        WITH given AS (SELECT * FROM unnest($1::bigint[]) WITH ORDINALITY AS given (amount, number)),
        stakes AS (
            INSERT INTO stake (stake_no, pool_no, active_epoch_no, balance, raw)
            SELECT number, 1, number % 7, amount, '\\xe0' || decode(lpad(to_hex(number), 56, '0'), 'hex') FROM given
        )
        INSERT INTO delegator (stake_no, pool_no, amount) SELECT number, 1, amount FROM given
        """,
        amounts,
    )
    await preview.execute(
        "INSERT INTO delegator_bucket SELECT pool_no, bucket, count(*), sum(amount) FROM delegator GROUP BY 1, 2"
    )


async def test_a_pool_shows_its_registration_and_its_figures(
    api: Client, preview: asyncpg.Connection, key: str
) -> None:
    await register(preview)
    await delegators(preview, [5_000_000, 7])
    await preview.execute("INSERT INTO pool_epoch VALUES (1, 3, 4, 9), (1, 5, 2, 10), (1, 6, 0, 11)")
    await preview.execute("INSERT INTO pool_reward VALUES (1, 5, 3), (1, 6, 4)")
    await preview.execute(
        "INSERT INTO ledger_state (slot_no, epoch_no, desired_pools, reserves) VALUES (0, 5, 2, 44999999990000000)"
    )
    for name in (POOL, POOL.upper(), HASH.hex(), HASH.hex().upper()):
        reply = await api.get(f"/v1/pools/{name}", key)
        assert reply.status == 200
        assert reply.body == {
            "success": True,
            "data": {
                "pool_id": POOL,
                "pool_id_hex": HASH.hex(),
                "vrf_key_hash": "ab" * 32,
                "pledge": str(2**64 - 1),
                "margin": 0.61576236620585531,
                "fixed_cost": "340000000",
                "reward_account": address.show_stake(b"\xf0" + HASH),
                "owners": [address.show_stake(b"\xe0" + HASH), address.show_stake(b"\xe0" + OTHER_HASH)],
                "relays": [{"port": 3001, "ipv4": "192.0.2.1"}, {"port": 0, "dns": "_cardano._tcp.example.org"}],
                "metadata_url": "https://example.org/pool.json",
                "metadata_hash": "cd" * 32,
                "active_stake": "13",
                "live_stake": "5000007",
                "delegator_count": 2,
                "blocks_minted": 6,
                "blocks_epoch": 2,
                "saturation": 5_000_007 * 2 / 10_000_000,
                "status": "active",
                "retiring_epoch": None,
            },
        }


@pytest.mark.parametrize(
    ("published", "shown"),
    [
        (PARAMETERS.margin, "0.61576236620585531"),
        ("0/1", "0"),
        ("1/1", "1"),
        ("3/100", "0.03"),
        ("1/3", "0.3333333333333333"),
        ("1/18446744073709551616", "0.0000000000000000000542101086242752217003726400434970855712890625"),
    ],
)
async def test_margins_keep_all_their_digits(
    api: Client, preview: asyncpg.Connection, key: str, published: str, shown: str
) -> None:
    await register(preview, margin=published)
    async with api._session.get(
        f"http://127.0.0.1:{api.port}/v1/pools/{POOL}", headers={"Authorization": f"Bearer {key}"}
    ) as response:
        said = json.loads(await response.read(), parse_float=str, parse_int=str)
    assert said["data"]["margin"] == shown


async def test_every_kind_of_relay_is_shown(api: Client, preview: asyncpg.Connection, key: str) -> None:
    relays = [
        (packed.Relay(3001, ipv4="192.0.2.1"), {"port": 3001, "ipv4": "192.0.2.1"}),
        (packed.Relay(3001, "192.0.2.2", "2001:db8::2"), {"port": 3001, "ipv4": "192.0.2.2"}),
        (packed.Relay(6000, ipv6="2001:db8::1"), {"port": 6000, "dns": "2001:db8::1"}),
        (packed.Relay(ipv4="192.0.2.3"), {"port": 0, "ipv4": "192.0.2.3"}),
        (packed.Relay(3002, hostname="relay.example.org"), {"port": 3002, "dns": "relay.example.org"}),
        (packed.Relay(hostname="_cardano._tcp.example.org"), {"port": 0, "dns": "_cardano._tcp.example.org"}),
    ]
    await register(preview, relays=[relay for relay, _ in relays])
    assert (await api.get(f"/v1/pools/{POOL}", key)).body["data"]["relays"] == [shown for _, shown in relays]


async def test_the_latest_certificate_counts(api: Client, preview: asyncpg.Connection, key: str) -> None:
    async def status() -> tuple[str, int | None, str]:
        anew = {"Cache-Control": "no-cache"}  # no block has come
        data = (await api.call("GET", f"/v1/pools/{POOL}", key, headers=anew)).body["data"]
        return data["status"], data["retiring_epoch"], data["pledge"]

    async def retire(tx: int, epoch: int) -> None:
        await preview.execute("INSERT INTO pool_retirement VALUES ($1, 1, $2, 0)", tx, epoch)

    await register(preview, tx=10, pledge=1)
    assert await status() == ("active", None, "1")
    await retire(20, 7)
    assert await status() == ("retiring", 7, "1")
    await retire(30, 6)
    assert await status() == ("retiring", 6, "1")
    await register(preview, tx=40, pledge=2)
    assert await status() == ("active", None, "2")
    await retire(50, 5)
    assert await status() == ("retired", None, "2")
    await register(preview, tx=60, pledge=3)
    assert await status() == ("active", None, "3")


async def test_delegators_are_listed_by_amount_at_any_offset(
    api: Client, preview: asyncpg.Connection, key: str
) -> None:
    amounts = [0, 3, 10**9, 10**9 + 1, 0, 45 * 10**15, 3, 64, 63, 65, 10**9, 1, 2, 31, 32, 33] + [
        10**6 + n for n in range(40)
    ]
    await register(preview)
    await delegators(preview, amounts)
    expected = sorted(enumerate(amounts, start=1), key=lambda row: (-row[1], row[0]))
    shown = [
        {
            "stake_address": address.show_stake(b"\xe0" + number.to_bytes(28)),
            "amount": str(amount),
            "active_epoch_no": number % 7,
        }
        for number, amount in expected
    ]
    for offset in range(len(amounts) + 2):
        for limit in (7, 500):
            reply = await api.get(f"/v1/pools/{POOL}/delegators/list?limit={limit}&offset={offset}", key)
            assert reply.body == {
                "success": True,
                "data": {"pool_id": POOL, "delegators": shown[offset : offset + limit]},
                "pagination": {
                    "limit": limit,
                    "offset": offset,
                    "total": len(amounts),
                    "hasMore": offset + limit < len(amounts),
                },
            }


async def test_a_page_of_delegators_costs_the_same_at_any_offset(preview: asyncpg.Connection) -> None:
    """Measured in database blocks, with amounts distributed like stakes, a fifth of them 0."""
    count = 30_000
    await register(preview)
    await delegators(preview, [0 if n % 5 == 0 else 2 ** (n * 50 // count) + n * 7919 for n in range(count)])
    await preview.execute("VACUUM ANALYZE")
    touched = []
    for offset in (0, count // 2, count - 100):
        plan = await preview.fetchval(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {pools.delegators_of.text}", HASH, 100, offset
        )
        top = plan[0]["Plan"]
        touched.append(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
    assert max(touched) < 2 * min(touched), touched


async def test_a_pool_without_delegators_has_an_empty_list(api: Client, preview: asyncpg.Connection, key: str) -> None:
    await register(preview)
    reply = await api.get(f"/v1/pools/{POOL}/delegators/list", key)
    assert reply.status == 200
    assert reply.body["data"] == {"pool_id": POOL, "delegators": []}
    tip: str = await preview.fetchval("SELECT encode(block_hash, 'hex') FROM tip")
    assert reply.headers["Snapshot-Block"] == tip, "from which its events continue"
    assert reply.body["pagination"] == {"limit": 100, "offset": 0, "total": 0, "hasMore": False}


@pytest.mark.parametrize("path", ["", "/delegators/list"])
async def test_a_pool_that_never_registered_is_not_found(
    api: Client, preview: asyncpg.Connection, key: str, path: str
) -> None:
    # It makes blocks, like a genesis delegate.
    await preview.execute("INSERT INTO pool VALUES (1, $1)", HASH)
    for name in (POOL, OTHER_HASH.hex()):
        reply = await api.get(f"/v1/pools/{name}{path}", key)
        assert (reply.status, reply.error) == (404, "Pool not found")


@pytest.mark.parametrize("path", ["", "/delegators/list"])
@pytest.mark.parametrize("name", ["pool1", POOL[:-1], POOL[:-1] + "q", "ab", "zz" * 28, bech32_encode("stake", HASH)])
async def test_a_malformed_pool_is_refused(api: Client, key: str, name: str, path: str) -> None:
    reply = await api.get(f"/v1/pools/{name}{path}", key)
    assert (reply.status, reply.error) == (400, "Invalid pool ID format")


async def test_limits_of_a_page(api: Client, preview: asyncpg.Connection, key: str) -> None:
    await register(preview)
    for query, error in (
        ("limit=0", "limit must be between 1 and 500"),
        ("limit=501", "limit must be between 1 and 500"),
        ("offset=-1", "offset must be between 0 and 9007199254740991"),
    ):
        reply = await api.get(f"/v1/pools/{POOL}/delegators/list?{query}", key)
        assert (reply.status, reply.error) == (400, error)


@pytest.mark.parametrize("path", ["", "/delegators/list"])
async def test_a_network_without_an_index_is_not_available(
    api: Client, preview: asyncpg.Connection, issue_key: IssueKey, path: str
) -> None:
    await register(preview)
    await preview.execute("UPDATE tip SET phase = 'bulk'")
    for network_id in (0, 1):
        reply = await api.get(f"/v1/pools/{POOL}{path}", await issue_key(network_id))
        assert (reply.status, reply.error) == (503, "Network not available")
