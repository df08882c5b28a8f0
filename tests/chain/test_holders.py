"""The buckets of long lists of holders stay right when holders change, and exist only for long lists."""

from collections.abc import AsyncIterator
from random import Random

import asyncpg
import pytest

from indexer.store import writer as store
from indexer.verify import checks
from shared import address, database
from shared.network import PREVIEW
from tests.chain.written import Written, mints, pays, person, tx

COIN = b"Coin".hex()
MANY = 6_000
CHECKS = [query for name, query in checks.CHECKS if name.endswith("holder_bucket")]


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


async def wrong(db: asyncpg.Connection) -> list[str]:
    return [str(difference) for check in CHECKS for difference in await check.all(db, 5)]


async def buckets(db: asyncpg.Connection) -> list[tuple[object, ...]]:
    """Every bucket of both tables."""
    rows = await db.fetch(
        "SELECT * FROM holder_bucket UNION ALL SELECT * FROM policy_holder_bucket ORDER BY 1, 2, 3, 4"
    )
    return [tuple(row) for row in rows]


async def openers(db: asyncpg.Connection) -> list[int]:
    """The people whose addresses begin buckets, by their index in MANY."""
    rows = await db.fetch("SELECT raw FROM holder JOIN address USING (address_no) WHERE opens_bucket(address_no)")
    opening = {bytes(row["raw"]) for row in rows}
    return [number for number in range(MANY) if raw_of(number) in opening]


def raw_of(number: int) -> bytes:
    return address.of_node(person(f"p{number}"))


async def spread(chain: Written) -> None:
    """Give each person 10 to 16 units."""
    quantities = [10 + number % 7 for number in range(MANY)]
    outputs = [pays(person(f"p{number}"), (COIN, quantity)) for number, quantity in enumerate(quantities)]
    await chain.append(10, tx("spread", *outputs, mint=mints((COIN, sum(quantities)))))


async def test_buckets_follow_every_move(db: asyncpg.Connection) -> None:
    chain, random = Written(db), Random(3)
    await spread(chain)
    assert await wrong(db) == []
    begun = await buckets(db)
    assert len(begun) >= 10
    opening = await openers(db)
    unspent = dict.fromkeys(range(MANY))
    for step in range(8):
        # Some leave and some return with more, always including one whose address begins a bucket.
        moving = [*random.sample([n for n in unspent if n not in opening], 30), opening[step % len(opening)]]
        moving = [number for number in moving if number in unspent]
        back = moving[: len(moving) // 2] if step % 2 else moving[len(moving) // 2 :]
        outputs = [pays(person(f"p{number}"), (COIN, random.randint(1, 30))) for number in back]
        spends = tuple(("spread", number) for number in moving)
        await chain.append(20 + step, tx(f"step{step}", *outputs, spends=spends))
        for number in moving:
            del unspent[number]
        assert await wrong(db) == [], step
    ended = await buckets(db)
    assert ended != begun
    await chain.back_to(10)
    assert await wrong(db) == []
    assert await buckets(db) == begun


async def test_a_list_that_becomes_short_has_no_buckets(db: asyncpg.Connection) -> None:
    chain = Written(db)
    await spread(chain)
    opening = await openers(db)
    spends = tuple(("spread", number) for number in opening[: len(opening) - 3])
    await chain.append(20, tx("leave", spends=spends))
    assert await buckets(db) == []
    await chain.back_to(10)
    assert await wrong(db) == []
    assert len(await buckets(db)) == 2 * (len(opening) + 1)


async def test_the_end_of_bulk_makes_the_same_buckets(db: asyncpg.Connection) -> None:
    chain = Written(db, bulk=True)
    await spread(chain)
    assert await buckets(db) == []
    await chain.finalize()
    in_bulk = await buckets(db)
    assert await wrong(db) == []
    await store.erase(db)
    await spread(Written(db))
    assert await buckets(db) == in_bulk
