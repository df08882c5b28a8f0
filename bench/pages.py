"""`python -m bench.pages`: pages of an address with more than a million transactions, at any depth.

Each figure is the time of an API statement, including the construction of its rows. The floor beside it reads only the
same range of the primary key. In a round all offsets take turns, so that other load on the machine affects all of them
alike. History at offset 1,000,000 should cost at most 1.2 times as much as at offset 0.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any

import asyncpg
import typer
from rich.console import Console
from rich.table import Table

from api.chain import transactions
from bench import databases, machine, owners
from shared import database, packed, servers, settings, sql
from shared.ledger import AddressNo, AssetNo
from shared.network import MAINNET

BUSY = b"\x01" + bytes(range(56))
"""The address of every transaction."""

OFFSETS = (0, 10_000, 1_000_000)
_OWNER_DEPTHS = (0, 10_000, owners.ENTRIES - 1_000)
_GOAL = 1.2
_BUSY_NO = 1
_BLOCK_TRANSACTIONS = 20
_BLOCK_SLOTS = 20
_KINDS = (
    ("history", 100, transactions.history_pages["address"]),
    ("detail", 20, transactions.detailed_pages["address"]),
)
_FLOOR = "SELECT tx_id FROM address_tx_range($1, $2::bigint, $2::bigint + $3::bigint) ORDER BY seq"


async def fill(db: asyncpg.Connection, count: int) -> None:
    """Insert transactions of two inputs and three outputs, 20 in a block, all at one address."""
    outputs = [packed.pack_output(AddressNo(_BUSY_NO + n), 5_000_000 + n, {}) for n in range(3)]
    outputs[1] = packed.pack_output(AddressNo(_BUSY_NO + 1), 2_000_000, {AssetNo(1): 7})
    inputs = [packed.pack_input(packed.output_key(bytes(32), n), output) for n, output in enumerate(outputs[:2])]
    addresses = [BUSY, *(bytes([1, n]) + bytes(55) for n in (1, 2))]
    await db.copy_records_to_table(
        "address", columns=("address_no", "raw"), records=list(enumerate(addresses, start=_BUSY_NO))
    )
    await db.execute("INSERT INTO policy (policy_no, policy_id) VALUES (1, $1)", bytes(28))
    columns = "asset_no, policy_no, fingerprint, name, first_tx_id"
    await db.execute(f"INSERT INTO asset ({columns}) VALUES (1, 1, 0, 'token', 0)")  # noqa: S608 - of our own constants
    await db.execute(
        "INSERT INTO block (slot_no, block_no, tx_count, pool_no, size, hash)"
        " SELECT n * $2::integer, n, $3::integer, 1, 1, sha256(n::text::bytea)"
        " FROM generate_series(0, $1::integer / $3::integer) AS n",
        count,
        _BLOCK_SLOTS,
        _BLOCK_TRANSACTIONS,
    )
    await db.execute(
        "INSERT INTO tx (tx_id, fee, size, hash, outputs, inputs)"
        " SELECT (n / $2::integer * $3::bigint) << 16 | n % $2::integer, 170000, 400, sha256(('tx' || n)::bytea),"
        " $4, $5"
        " FROM generate_series(0, $1::integer - 1) AS n",
        count,
        _BLOCK_TRANSACTIONS,
        _BLOCK_SLOTS,
        packed.pack_outputs(0, outputs),
        packed.pack_inputs(inputs),
    )
    await db.execute(
        "INSERT INTO address_tx (address_no, chunk, tx_ids)"
        " SELECT $1::integer, chunk, string_agg(int8send(tx_id), '' ORDER BY tx_id)"
        " FROM (SELECT (row_number() OVER (ORDER BY tx_id) - 1) >> 6 AS chunk, tx_id FROM tx) numbered"
        " GROUP BY chunk ORDER BY chunk",
        _BUSY_NO,
    )
    await db.execute(
        "INSERT INTO tip (slot_no, block_no, block_hash, first_block_no, tx_count, phase)"
        " SELECT slot_no, block_no, hash, 0, $1::bigint, 'live' FROM block ORDER BY slot_no DESC LIMIT 1",
        count,
    )
    await db.execute("VACUUM ANALYZE")


class _Stopwatch:
    """The times of one of several calls that take turns."""

    def __init__(self) -> None:
        self._took_s: list[float] = []

    async def time(self, work: Callable[[], Awaitable[Sequence[object]]]) -> None:
        """Time some work after one untimed run, so that the previous turn does not affect it."""
        await work()
        began = time.perf_counter()
        page = await work()
        self._took_s.append(time.perf_counter() - began)
        assert len(page) > 1, "there is a page at each of the offsets"

    @property
    def median_ms(self) -> float:
        return statistics.median(self._took_s) * 1_000


async def measure(db: asyncpg.Connection, statement: sql.Query[Any], limit: int, count: int, rounds: int) -> Table:
    """Both orders, with and without fromSlot (which begins a fifth of the way in), and the floor."""
    slot_no = count // _BLOCK_TRANSACTIONS * _BLOCK_SLOTS // 5
    whole = {order: (None, None, order == "desc") for order in ("desc", "asc")}
    asked = {
        "newest first": whole["desc"],
        "oldest first": whole["asc"],
        "newest first, fromSlot": (None, (count // _BLOCK_TRANSACTIONS * _BLOCK_SLOTS - slot_no) << 16, True),
        "oldest first, fromSlot": (slot_no << 16, None, False),
    }
    clocks = {(name, offset): _Stopwatch() for name in (*asked, "floor: the range alone") for offset in OFFSETS}
    for _ in range(rounds):
        for (name, offset), clock in clocks.items():
            if name in asked:
                await clock.time(partial(statement.all, db, BUSY, limit, offset, *asked[name]))
            else:
                await clock.time(partial(db.fetch, _FLOOR, _BUSY_NO, offset, limit))
    table = Table("ms", *(f"{offset:,}" for offset in OFFSETS), "last / first")
    for column in table.columns[1:]:
        column.justify = "right"
    for name in dict.fromkeys(name for name, _ in clocks):
        medians = [clocks[name, offset].median_ms for offset in OFFSETS]
        table.add_row(name, *(f"{median:.2f}" for median in medians), f"{medians[-1] / medians[0]:.2f}")
    return table


async def measure_owners(db: asyncpg.Connection, rounds: int) -> Table:
    """Lists of an owner, after a cursor and at an offset."""
    clocks = {
        (entries, by_cursor, depth): _Stopwatch()
        for entries in owners.lists(BUSY)
        for by_cursor in (True, False)
        for depth in _OWNER_DEPTHS
    }
    for _ in range(rounds):
        for (entries, by_cursor, depth), clock in clocks.items():
            await clock.time(partial(entries.page, db, 100, depth, by_cursor=by_cursor))
    table = Table("ms", *(f"{depth:,}" for depth in _OWNER_DEPTHS), "last / first")
    for column in table.columns[1:]:
        column.justify = "right"
    for entries, by_cursor in dict.fromkeys((entries, by_cursor) for entries, by_cursor, _ in clocks):
        medians = [clocks[entries, by_cursor, depth].median_ms for depth in _OWNER_DEPTHS]
        name = f"{entries.name}, {'cursor' if by_cursor else 'offset'}"
        table.add_row(name, *(f"{median:.2f}" for median in medians), f"{medians[-1] / medians[0]:.2f}")
    return table


async def _measure(count: int, rounds: int) -> None:
    console = Console()
    async with servers.running(settings.read(), valkey=False) as running, databases.fresh(running.database_url) as url:
        console.print(machine.describe(await machine.postgres_version(url)))
        db = await database.connect(url, MAINNET)
        began = time.perf_counter()
        await fill(db, count)
        console.print(f"{count:,} transactions at one address, made in {time.perf_counter() - began:.0f} s")
        for name, limit, statement in _KINDS:
            table = await measure(db, statement, limit, count, rounds)
            table.title = f"{name}, {limit} a page, by offset (goal: last / first at most {_GOAL})"
            console.print(table)
        await owners.fill(db)
        table = await measure_owners(db, rounds)
        table.title = f"lists of an owner, 100 a page (goal after a cursor: last / first at most {_GOAL})"
        console.print(table)
        await db.close()


def main(
    count: Annotated[
        int, typer.Option("--transactions", min=1_300_000, help="Transactions of the address.")
    ] = 1_500_000,
    rounds: Annotated[int, typer.Option(min=5, help="Readings of each page.")] = 60,
) -> None:
    """Measure pages of an address' transactions, and of the lists of an owner with many entries."""
    asyncio.run(_measure(count, rounds))


if __name__ == "__main__":
    typer.run(main)
