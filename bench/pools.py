"""`python -m bench.pools`: pages of a large pool's delegators, and the cost of an epoch's boundary.

Postgres generates the stake credentials: as many delegators as on mainnet, 200,000 of them in one pool, with amounts
spread over many magnitudes, half of them equal or zero. Each figure is compared with its floor: a page with the same
page by OFFSET alone, the boundary with only the sum per pool.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated

import asyncpg
import typer
from rich.console import Console
from rich.table import Table

from api.chain import pools
from bench import databases, machine
from indexer.rows.staking import Staking
from indexer.store import epochs
from shared import database, servers, settings
from shared.network import MAINNET

PAGE = 100
BLOCK_STAKES = 300
"""The number of stake credentials that a full block touches."""

_POOLS = 3_000
_LARGEST_POOL = 1
_HASH = bytes(28)
_BY_OFFSET = """
SELECT stake.raw, page.amount, stake.active_epoch_no
FROM (
    SELECT stake_no, amount FROM delegator WHERE pool_no = $1
    ORDER BY bucket, amount DESC, stake_no LIMIT $2 OFFSET $3
) page JOIN stake USING (stake_no)
"""
_SUM_PER_POOL = "SELECT pool_no, sum(balance) FROM stake WHERE pool_no IS NOT NULL GROUP BY pool_no"


async def fill(db: asyncpg.Connection, delegators: int, in_largest: int) -> None:
    """Insert as many credentials without a pool as with one, in no order; one in three delegators has rewards."""
    await db.execute("SELECT setseed(0.5)")
    await db.execute(
        """
        INSERT INTO stake (stake_no, pool_no, active_epoch_no, balance, raw)
        SELECT n, pool_no, CASE WHEN pool_no IS NOT NULL THEN 500 END, balance, '\\xe1' || sha224(n::text::bytea)
        FROM (
            SELECT n, CASE WHEN n % 2 = 0 THEN NULL WHEN random() < $2::float8 THEN $3
                           ELSE 2 + floor(random() ^ 3 * ($4 - 1))::integer END AS pool_no,
                   CASE WHEN random() < 0.2 THEN 0 WHEN random() < 0.3 THEN 5000000
                        ELSE exp(random() * 24)::bigint END AS balance
            FROM generate_series(1, $1 * 2) AS n
        ) made
        """,
        delegators,
        in_largest / delegators,
        _LARGEST_POOL,
        _POOLS,
    )
    await db.execute(
        "INSERT INTO reward SELECT stake_no, 1 + (random() * 1e9)::bigint FROM stake"
        " WHERE pool_no IS NOT NULL AND stake_no % 3 = 0"
    )
    await db.execute(
        "INSERT INTO pool SELECT n, CASE n WHEN $1 THEN $2 ELSE sha224(n::text::bytea) END"
        " FROM generate_series(1, $3) AS n",
        _LARGEST_POOL,
        _HASH,
        _POOLS,
    )
    await db.execute("INSERT INTO pool_update SELECT 0, pool_no, 0, '' FROM pool")
    await db.execute("INSERT INTO pool_reaping SELECT pool_no, 300 FROM pool")  # all have registered again
    await db.execute("INSERT INTO tip VALUES (true, 0, 0, '', 0, 0, 'live', 0)")
    await epochs.fill(db)
    await db.execute("VACUUM ANALYZE")


async def timed_ms(work: Callable[[], Awaitable[object]], rounds: int = 30) -> float:
    """The median time of some calls, after a warm-up call."""
    await work()
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1_000


async def pages(db: asyncpg.Connection) -> Table:
    """A page at each of several offsets."""
    table = Table("offset", "page, ms", "by OFFSET alone, ms", title="delegators of one pool")
    for column in table.columns:
        column.justify = "right"
    total: int = await db.fetchval("SELECT count(*) FROM delegator WHERE pool_no = $1", _LARGEST_POOL)
    for offset in (0, 1_000, 10_000, 50_000, 100_000, 150_000, total - PAGE):
        ours = await timed_ms(partial(pools.delegators_of.all, db, _HASH, PAGE, offset))
        plain = await timed_ms(partial(db.fetch, _BY_OFFSET, _LARGEST_POOL, PAGE, offset))
        table.add_row(f"{offset:,}", f"{ours:.2f}", f"{plain:.2f}")
    table.add_row("the pool itself", f"{await timed_ms(lambda: pools.pool_of.one(db, _HASH, 500)):.2f}", "")
    return table


async def boundary(db: asyncpg.Connection) -> Table:
    """Begin an epoch in which the largest pool, and one in a hundred others, are reaped; and an ordinary block."""
    table = Table("", "ms", title="the epoch's boundary")
    table.columns[1].justify = "right"
    table.add_row("floor: the sum per pool", f"{await timed_ms(lambda: db.fetch(_SUM_PER_POOL), 3):,.0f}")

    async def cross(reaped: str) -> float:
        async def once() -> None:
            undone = db.transaction()
            await undone.start()
            await db.execute(f"INSERT INTO pool_retirement SELECT 1, pool_no, 501, 0 FROM pool WHERE {reaped}")  # noqa: S608 - ours
            await epochs.begin(db, [501])
            await epochs.change_delegations(db, Staking([]))
            await epochs.change_rewards(db, Staking([]), 0)
            await undone.rollback()

        return await timed_ms(once, 3)

    async def block() -> None:
        stakes = [
            row["stake_no"]
            for row in await db.fetch("SELECT stake_no FROM stake TABLESAMPLE SYSTEM (0.1) LIMIT $1", BLOCK_STAKES)
        ]
        async with db.transaction():
            await epochs.refresh(db, stakes)

    table.add_row("snapshot", f"{await cross('false'):,.0f}")
    table.add_row(
        "snapshot, small pools reaped", f"{await cross(f'pool_no % 100 = 0 AND pool_no <> {_LARGEST_POOL}'):,.0f}"
    )
    table.add_row("snapshot, the largest pool reaped", f"{await cross(f'pool_no = {_LARGEST_POOL}'):,.0f}")
    table.add_row(f"lists of delegators after a block with {BLOCK_STAKES} credentials", f"{await timed_ms(block):,.1f}")
    return table


async def _measure(delegators: int, in_largest: int) -> None:
    console = Console()
    async with servers.running(settings.read(), valkey=False) as running, databases.fresh(running.database_url) as url:
        console.print(machine.describe(await machine.postgres_version(url)))
        db = await database.connect(url, MAINNET)
        began = time.perf_counter()
        await fill(db, delegators, in_largest)
        console.print(f"{delegators:,} delegators, made in {time.perf_counter() - began:.0f} s")
        console.print(await pages(db))
        console.print(await boundary(db))
        await db.close()


def main(
    delegators: Annotated[int, typer.Option(min=1_000, help="Delegators of all pools.")] = 1_300_000,
    in_largest: Annotated[int, typer.Option(min=500, help="Delegators of the largest pool.")] = 200_000,
) -> None:
    """Measure pages of delegators and the epoch's boundary."""
    asyncio.run(_measure(delegators, in_largest))


if __name__ == "__main__":
    typer.run(main)
