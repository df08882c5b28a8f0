"""The buckets of long lists of holders stay right when holders change, and exist only for long lists."""

import re
from collections.abc import AsyncIterator
from random import Random
from typing import get_args

import asyncpg
import pytest

from api.chain import owners
from indexer.store import beginning, holders
from indexer.verify.tables import checks
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


async def test_a_list_in_which_four_holders_open_a_bucket_is_long(db: asyncpg.Connection) -> None:
    """As the comments in the schema promise; present indexes depend on it."""
    chain = Written(db)
    await spread(chain)
    opening = await openers(db)
    await chain.append(20, tx("leave", spends=tuple(("spread", number) for number in opening[: len(opening) - 4])))
    assert len(await buckets(db)) == 2 * (4 + 1)


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
    await beginning.erase(db)
    await spread(Written(db))
    assert await buckets(db) == in_bulk


async def indexes_used(connection: asyncpg.Connection, statement: str, arguments: str) -> set[str]:
    """The indexes of holders that a statement uses in its generic plan."""
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    await connection.execute(f"PREPARE planned AS {statement}")
    plan = await connection.fetch(f"EXPLAIN EXECUTE planned ({arguments})")
    await connection.execute("DEALLOCATE planned")
    return {index for row in plan for index in re.findall(r"Index \w*.*using (\w*holder\w*)", row[0])}


async def test_a_holder_is_found_by_the_primary_key(database_url: str, db: asyncpg.Connection) -> None:
    """The indexes by quantity contain the same columns, but a whole list would have to be read for one holder."""
    # Each asset and each policy has one holder: the planner expects that a list is not longer than one row.
    rows = [(number, 1 + number * 17 % 20_003, 1 + number * 7919 % 100_003) for number in range(22_000)]
    for table, owner_no in (("holder", "address_no"), ("account_holder", "account_no")):
        await db.copy_records_to_table(table, columns=("asset_no", owner_no, "quantity"), records=rows)
        await db.copy_records_to_table(f"policy_{table}", columns=("policy_no", owner_no, "quantity"), records=rows)
    await db.execute("VACUUM ANALYZE")
    for of_owners in (holders._ADDRESSES, holders._ACCOUNTS):
        used = await indexes_used(db, of_owners._move.text, "'{1}', '{2}', '{3}'")
        assert {index.rsplit("_", 1)[1] for index in used} == {"pkey"}, used
    async with await database.create_pool(database_url, PREVIEW, max_size=1) as pool, pool.acquire() as connection:
        for kind in get_args(owners.OwnerKind):
            used = await indexes_used(connection, owners.holdings_pages[kind, "asc"].text, "NULL, 1, 0, NULL, NULL")
            assert {index.rsplit("_", 1)[1] for index in used} == {"pkey"}, used
