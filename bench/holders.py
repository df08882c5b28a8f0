"""`python -m bench.holders`: pages of holders and of a policy's assets, and the cost per block of maintaining them.

One asset with 500,000 holders, a third of them with the same quantity; one policy of 10,000 assets with 100,000
holders; one of 500,000 assets, most with a quantity of 1. Each figure is compared with its floor: a page with the same
page by OFFSET alone, the holders of the policy with one walk along the index and with their summation on each request.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

import asyncpg
import typer
from rich.console import Console
from rich.table import Table

from api.chain import assets
from bench import databases, machine
from bench.pools import timed_ms
from indexer.rows.histories import SupplyChange
from indexer.store import holders, supplies
from shared import database, servers, settings
from shared.network import MAINNET

PAGE = 100
BLOCK_MOVES = 60
"""The number of pairs of asset and address that a full block changes."""

COIN, COLLECTION, HANDLES = 1, 2, 3
"""Policy numbers: of an asset with many holders, of many assets, and of very many."""

_NAME = b"Coin"
_PIECES = 10_000
_ADDRESSES = 1_000_000
_RAW = "(SELECT raw FROM address WHERE address.address_no = page.address_no)"
_BY_OFFSET = f"""
SELECT {_RAW}, quantity::text FROM (
    SELECT address_no, quantity FROM holder WHERE asset_no = 1
    ORDER BY quantity DESC, address_no DESC LIMIT $1 OFFSET $2
) page
"""  # noqa: S608 - of our own constants
_LOOK_UP = f"""
SELECT {_RAW}, quantity::text FROM (
    SELECT address_no, quantity FROM policy_holder WHERE policy_no = 2
    ORDER BY quantity DESC, address_no DESC LIMIT $1
) page
"""  # noqa: S608 - of our own constants
_ASSETS_BY_OFFSET = """
SELECT name, supply::text, mint_count, burn_count FROM (
    SELECT asset_no FROM asset WHERE policy_no = 3 AND first_tx_id IS NOT NULL
    ORDER BY -supply, name LIMIT $1 OFFSET $2
) page JOIN asset USING (asset_no)
"""
_ADD_UP = """
SELECT address_no, sum(quantity) AS held FROM asset JOIN holder USING (asset_no) WHERE policy_no = 2
GROUP BY address_no ORDER BY held DESC, address_no DESC LIMIT $1
"""


async def fill(db: asyncpg.Connection, of_coin: int, of_collection: int, handles: int) -> None:
    """Fill the tables of holders and those that they refer to; histories stay empty."""
    await db.execute(
        f"""
        INSERT INTO tip VALUES (true, 0, 0, '', 0, 0, 'live', 0);
        INSERT INTO address (address_no, raw)
            SELECT n, '\\x61' || sha224(n::text::bytea) FROM generate_series(1, {_ADDRESSES}) AS n;
        INSERT INTO policy (policy_no, asset_count, policy_id)
            SELECT n, 0, sha224(n::text::bytea) FROM generate_series({COIN}, {HANDLES}) AS n;
        INSERT INTO asset (asset_no, policy_no, fingerprint, name, first_tx_id)
            VALUES (1, {COIN}, 0, '{_NAME.decode()}', 0);
        INSERT INTO asset (asset_no, policy_no, fingerprint, name, first_tx_id)
            SELECT 1 + n, {COLLECTION}, n, n::text::bytea, 0 FROM generate_series(1, {_PIECES}) AS n;
        INSERT INTO asset (asset_no, policy_no, fingerprint, name, supply, first_tx_id)
            SELECT 1 + {_PIECES} + n, {HANDLES}, n, n::text::bytea, 1 + (n % 10 = 0)::integer * (n % 7), 0
            FROM generate_series(1, {handles}) AS n
        """  # noqa: S608 - of our own constants
    )
    await db.execute("SELECT setseed(0.5)")
    await db.execute(
        """
        INSERT INTO holder
        SELECT 1, address_no, CASE WHEN random() < 0.3 THEN 1000 ELSE exp(random() * 30)::bigint END
        FROM (SELECT address_no FROM address ORDER BY sha256(raw) LIMIT $1) a
        """,
        of_coin,
    )
    await db.execute(
        """
        INSERT INTO holder
        SELECT 2 + floor(random() * $1)::integer, address_no, 1 + (random() ^ 8 * 20)::integer
        FROM (SELECT address_no FROM address ORDER BY sha512(raw) LIMIT $2) a
        """,
        _PIECES,
        of_collection,
    )
    await db.execute(
        "INSERT INTO policy_holder"
        " SELECT policy_no, address_no, sum(quantity) FROM holder JOIN asset USING (asset_no) GROUP BY 1, 2"
    )
    await holders.fill(db)
    await supplies.fill(db)
    await db.execute("VACUUM ANALYZE")


async def pages(db: asyncpg.Connection, of_coin: int) -> Table:
    """Pages of the asset's holders."""
    coin: bytes = await db.fetchval("SELECT policy_id FROM policy WHERE policy_no = $1", COIN)
    table = Table("offset", "desc, ms", "asc, ms", "by OFFSET alone, ms", title=f"{of_coin:,} holders of one asset")
    for offset in (0, 1_000, 10_000, of_coin * 4 // 5, of_coin - PAGE):
        desc, asc = [
            await timed_ms(partial(assets.holders_pages[order].all, db, PAGE, offset, coin, _NAME))
            for order in ("desc", "asc")
        ]
        plain = await timed_ms(partial(db.fetch, _BY_OFFSET, PAGE, offset))
        table.add_row(f"{offset:,}", f"{desc:.2f}", f"{asc:.2f}", f"{plain:.2f}")
    return table


async def of_policy(db: asyncpg.Connection, of_collection: int) -> Table:
    """The first holders of the policy."""
    policy: bytes = await db.fetchval("SELECT policy_id FROM policy WHERE policy_no = $1", COLLECTION)
    ours = await timed_ms(partial(assets.policy_holders_pages["desc"].all, db, PAGE, 0, policy))
    look_up = await timed_ms(partial(db.fetch, _LOOK_UP, PAGE))
    added_up = await timed_ms(partial(db.fetch, _ADD_UP, PAGE), 5)
    table = Table("", "ms", title=f"{of_collection:,} holders of a policy with {_PIECES:,} assets")
    table.add_row("page, with tip and policy by hash", f"{ours:.2f}")
    table.add_row("floor: bare look-up in the index", f"{look_up:.2f}")
    table.add_row("added up on each request", f"{added_up:.2f}")
    return table


async def assets_of_policy(db: asyncpg.Connection, handles: int) -> Table:
    """Pages of the longest list of assets."""
    policy: bytes = await db.fetchval("SELECT policy_id FROM policy WHERE policy_no = $1", HANDLES)
    table = Table("offset", "desc, ms", "asc, ms", "by OFFSET alone, ms", title=f"{handles:,} assets of one policy")
    for offset in (0, 1_000, 10_000, handles * 4 // 5, handles - PAGE):
        desc, asc = [
            await timed_ms(partial(assets.policy_assets_pages[order].all, db, policy, PAGE, offset))
            for order in ("desc", "asc")
        ]
        plain = await timed_ms(partial(db.fetch, _ASSETS_BY_OFFSET, PAGE, offset))
        table.add_row(f"{offset:,}", f"{desc:.2f}", f"{asc:.2f}", f"{plain:.2f}")
    return table


async def block(db: asyncpg.Connection, of_coin: int, handles: int) -> Table:
    """Maintain the holders of a block that changes only short lists, or only the long one; and its mints."""
    rng = random.Random(1)

    async def keep(work: Callable[..., Awaitable[Any]], *arguments: object) -> None:
        undone = db.transaction()
        await undone.start()
        await work(db, *arguments)
        await undone.rollback()

    pieces = {(rng.randint(2, _PIECES), rng.randint(1, _ADDRESSES)): 1 for _ in range(BLOCK_MOVES)}
    held = await db.fetch("SELECT address_no FROM holder WHERE asset_no = 1 ORDER BY random() LIMIT $1", BLOCK_MOVES)
    coins = {(1, row["address_no"]): 7 for row in held}
    table = Table("", "ms", title=f"{BLOCK_MOVES} moves of a block")
    accounts = {address_no: -address_no for _, address_no in pieces | coins}
    table.add_row("of short lists", f"{await timed_ms(partial(keep, holders.move, pieces, accounts)):.2f}")
    table.add_row(f"of the list of {of_coin:,}", f"{await timed_ms(partial(keep, holders.move, coins, accounts)):.2f}")
    for mints in (1, BLOCK_MOVES):
        minted = {1 + _PIECES + number: SupplyChange(1, 1) for number in rng.sample(range(1, handles), mints)}
        table.add_row(
            f"{mints} mints of the policy of {handles:,} assets",
            f"{await timed_ms(partial(keep, supplies.move, minted)):.2f}",
        )
    return table


async def _measure(of_coin: int, of_collection: int, handles: int) -> None:
    console = Console()
    async with servers.running(settings.read(), valkey=False) as running, databases.fresh(running.database_url) as url:
        console.print(machine.describe(await machine.postgres_version(url)))
        db = await database.connect(url, MAINNET)
        began = time.perf_counter()
        await fill(db, of_coin, of_collection, handles)
        console.print(f"made in {time.perf_counter() - began:.0f} s")
        for table in (
            await pages(db, of_coin),
            await of_policy(db, of_collection),
            await assets_of_policy(db, handles),
            await block(db, of_coin, handles),
        ):
            for column in table.columns[1:]:
                column.justify = "right"
            console.print(table)
        await db.close()


def main(
    of_coin: Annotated[int, typer.Option(min=10_000, max=_ADDRESSES, help="Holders of one asset.")] = 500_000,
    of_collection: Annotated[int, typer.Option(min=1_000, max=_ADDRESSES, help="Holders of a policy.")] = 100_000,
    handles: Annotated[int, typer.Option(min=10_000, help="Assets of a policy.")] = 500_000,
) -> None:
    """Measure pages of holders and assets, and what keeping them costs."""
    asyncio.run(_measure(of_coin, of_collection, handles))


if __name__ == "__main__":
    typer.run(main)
