"""The buckets of policies with many assets stay right when supplies change, and every page of their lists is found."""

from collections.abc import AsyncIterator
from decimal import Decimal
from random import Random

import asyncpg
import pytest

from api.chain import assets
from indexer.store import beginning
from indexer.verify.tables import checks
from shared import database
from shared.network import PREVIEW
from tests.chain.written import POLICY, Written, mints, pays, person, tx

MANY = 6_000
CHECK = dict(checks.CHECKS)["asset_bucket"]
ALL = "SELECT name, supply::text FROM asset WHERE first_tx_id IS NOT NULL"


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


def piece(number: int) -> str:
    return f"Piece {number * 7919 % MANY:05}".encode().hex()


async def collect(chain: Written, slot: int = 10, many: int = MANY) -> None:
    """Mint one unit of most assets, and a few more of every fifth."""
    pieces = [(piece(number), 1 if number % 5 else number % 9 + 1) for number in range(many)]
    await chain.append(slot, tx("collect", pays(person("p"), *pieces), mint=mints(*pieces)))


async def buckets(db: asyncpg.Connection) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await db.fetch("SELECT * FROM asset_bucket ORDER BY 1, 2, 3")]


async def openers(db: asyncpg.Connection) -> list[str]:
    """The assets that open buckets."""
    return [row["name"].hex() for row in await db.fetch("SELECT name FROM asset WHERE opens_bucket(asset_no)")]


async def holds(db: asyncpg.Connection, random: Random) -> None:
    """Check that the buckets match the list, and that pages at all kinds of offsets match the sorted list."""
    assert [str(difference) for difference in await CHECK.all(db, 5)] == []
    listed = {bytes(name): supply for name, supply in await db.fetch(ALL)}
    ranked = sorted(listed, key=lambda name: (-int(listed[name]), name))
    for order, names in (("desc", ranked), ("asc", ranked[::-1])):
        ends = [0, 999, 1_000, len(names) - 1, len(names), len(names) + 5_000]
        for offset in [*ends, *(random.randrange(1_000, len(names)) for _ in range(6))]:
            rows = await assets.policy_assets_pages[order].all(db, bytes.fromhex(POLICY), 100, offset)
            page = [(row.name, row.supply) for row in rows if row.name is not None]
            assert page == [(name, listed[name]) for name in names[offset : offset + 100]], (order, offset)
            assert rows[0].total == len(names)


async def test_buckets_follow_every_mint_and_burn(db: asyncpg.Connection) -> None:
    chain, random = Written(db), Random(5)
    await collect(chain)
    await holds(db, random)
    begun, opening = await buckets(db), await openers(db)
    assert len(begun) >= 5
    for step in range(8):
        # They always include one that begins a bucket, and supplies beyond 2^63, of 0 and below.
        moved = {opening[step % len(opening)]: random.choice([-1, 1, (1 << 63) - 1])}
        moved |= {piece(random.randrange(MANY)): random.randint(-1, 8) or 3 for _ in range(20)}
        moved |= {f"{step:02}{number:04}": 1 for number in range(300)}
        await chain.append(20 + step, tx(f"step{step}", mint=mints(*moved.items())))
        await holds(db, random)
    assert await buckets(db) != begun
    await chain.back_to(23)
    await holds(db, random)
    await chain.back_to(10)
    await holds(db, random)
    assert [bucket for bucket in await buckets(db) if bucket[-1]] == begun


async def test_buckets_stay_exact_whether_or_not_the_moved_assets_open_some(db: asyncpg.Connection) -> None:
    chain, random = Written(db), Random(8)
    await collect(chain)
    opening = await openers(db)
    states = [await db.fetch(ALL + " ORDER BY name")]
    for step in range(40):
        moved = {piece(random.randrange(MANY)): random.choice([-1, 1, 2, 5]) for _ in range(random.randrange(1, 12))}
        moved |= {name: random.choice([-1, 1, 3]) for name in random.sample(opening, random.choice([0, 0, 1, 3]))}
        moved |= {f"{step:02}{number:04}": 1 for number in range(random.choice([0, 2]))}
        await chain.append(20 + step, tx(f"step{step}", mint=mints(*moved.items())))
        assert [str(difference) for difference in await CHECK.all(db, 5)] == [], step
        states.append(await db.fetch(ALL + " ORDER BY name"))
    for step in (31, 30, 12, 11, 1):
        await chain.back_to(19 + step)
        assert [str(difference) for difference in await CHECK.all(db, 5)] == [], step
        assert await db.fetch(ALL + " ORDER BY name") == states[step]


async def test_a_list_has_buckets_while_it_is_long(db: asyncpg.Connection) -> None:
    chain = Written(db)
    await collect(chain, many=500)
    assert await buckets(db) == []
    rest = [(piece(number), 1) for number in range(500, MANY)]
    await chain.append(20, tx("rest", mint=mints(*rest)))
    assert len(await buckets(db)) >= 5
    await holds(db, Random(6))
    await chain.back_to(10)
    assert await buckets(db) == []


async def test_the_end_of_bulk_makes_the_same_buckets(db: asyncpg.Connection) -> None:
    chain = Written(db, bulk=True)
    await collect(chain)
    assert await buckets(db) == []
    await chain.finalize()
    await holds(db, Random(7))
    in_bulk = await buckets(db)
    await beginning.erase(db)
    await collect(Written(db))
    assert await buckets(db) == in_bulk


async def test_an_asset_enters_the_first_bucket_when_none_was_in_it_at_the_end_of_bulk(db: asyncpg.Connection) -> None:
    chain = Written(db, bulk=True)
    await collect(chain)
    opening = await openers(db)
    await chain.append(20, tx("opening", mint=mints((opening[0], 1_000))))
    await chain.finalize()
    assert not [rank for _, rank, *_ in await buckets(db) if rank == Decimal("-Infinity")]
    other = next(name for name in map(piece, range(MANY)) if name not in opening)
    await chain.append(30, tx("other", mint=mints((other, 2_000))))
    await holds(db, Random(9))


async def test_an_asset_minted_before_the_first_block_exists_while_transactions_pay_it(db: asyncpg.Connection) -> None:
    """Its supply as far as indexed is 0: a rollback recognises it only by its first transaction."""
    chain, counted = Written(db), "SELECT asset_count FROM policy"
    await chain.append(10, tx("begin", pays(person("p"))))
    for _ in range(2):
        await chain.append(20, tx("pay", pays(person("p"), ("aa", 5))))
        await chain.append(30, tx("pay again", pays(person("p"), ("aa", 3), ("bb", 1))))
        assert await db.fetchval(counted) == 2
        await chain.back_to(20)
        assert [bytes(name).hex() for name, _ in await db.fetch(ALL)] == ["aa"]
        assert await db.fetchval(counted) == 1
        await chain.back_to(10)
        assert await db.fetch(ALL) == []
        assert await db.fetchval(counted) == 0
