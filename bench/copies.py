"""`python -m bench.copies --transactions N`: a snapshot and its restore, beside the first sync of the same chain.

A chain is made and indexed in bulk, to the end of bulk. Then snapshots are taken, and the first is restored into
another database, each in a separate process while nothing else runs. Beside them stand parts of a restore by
themselves: to build all indexes again over as many connections, and to write the bytes of the database to the disk.
"""

import asyncio
import os
import resource
import time
from collections import deque
from collections.abc import Awaitable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import asyncpg
import psutil
import typer
from rich.console import Console
from rich.table import Table

from bench import databases, machine
from bench.chain import BLOCK_TRANSACTIONS
from bench.index import fill, make_chain
from bench.processes import apart
from indexer.snapshot import manifest
from indexer.snapshot.restore import restore
from indexer.snapshot.take import take
from shared import copies, database, servers, settings
from shared.network import MAINNET


class Cost(NamedTuple):
    """Seconds, and CPU seconds of Python with its children and of all of Postgres; None if that is not local."""

    took_s: float
    python_s: float
    postgres_s: float | None


async def sync(url: str, path: Path, transactions: int) -> Cost:
    """Index a chain in bulk, to the end of bulk."""
    return await _timed(url, fill(url, path, transactions))


async def snapshot(url: str, out: Path, jobs: int, since: Path | None) -> Cost:
    """Take a snapshot, which may continue another."""
    db = await database.connect(url, MAINNET)
    return await _timed(url, take(db, url, MAINNET, out, jobs, lambda *_: None, since=since))


async def fill_again(url: str, folder: Path, jobs: int) -> Cost:
    """Restore a snapshot into an empty database."""
    db = await database.connect(url, MAINNET)
    assert await database.try_to_lead(db, MAINNET), "no indexer runs"
    return await _timed(url, restore(db, url, MAINNET, folder, jobs, lambda *_: None))


async def build_indexes(url: str, jobs: int) -> Cost:
    """Build all indexes of a restored database again, the largest first."""
    db = await database.connect(url, MAINNET)
    names = [
        str(row[0])
        for row in await db.fetch(
            "SELECT indexrelid::regclass FROM pg_index JOIN pg_class ON pg_class.oid = indrelid"
            " WHERE relnamespace = current_schema()::regnamespace ORDER BY pg_relation_size(indexrelid) DESC"
        )
    ]
    waiting = deque(names)

    async def some() -> None:
        connection = await database.connect(url, MAINNET)
        await connection.execute(f"SET maintenance_work_mem = '{1024 // jobs}MB'")
        while waiting:
            await connection.execute(f"REINDEX INDEX {waiting.popleft()}")
        await connection.close()

    async def every() -> None:
        await asyncio.gather(*(some() for _ in range(jobs)))

    return await _timed(url, every())


async def write_bytes(folder: Path, size_bytes: int) -> float:
    """Seconds to write a file of that size and to sync it."""
    began = time.perf_counter()
    chunk = os.urandom(1 << 20)
    with (folder / "written").open("wb") as file:
        for _ in range(size_bytes >> 20):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    (folder / "written").unlink()
    return time.perf_counter() - began


async def _timed(url: str, work: Awaitable[object]) -> Cost:
    server = await _server(url)
    before = _python_s(), _postgres_s(server), time.perf_counter()
    await work
    took_s = time.perf_counter() - before[2]
    python_s, postgres_s = _python_s() - before[0], _postgres_s(server)
    return Cost(took_s, python_s, None if postgres_s is None or before[1] is None else postgres_s - before[1])


async def _server(url: str) -> psutil.Process | None:
    """The server's first process, which has the others as its children; None if it is on another machine."""
    db = await asyncpg.connect(url)
    try:
        session = psutil.Process(db.get_server_pid())
        return session.parent() if session.name().startswith("postgres") else None
    except psutil.Error:
        return None
    finally:
        await db.close()


def _postgres_s(server: psutil.Process | None) -> float | None:
    if server is None:
        return None
    total_s = sum(server.cpu_times()[:4])  # with the children that have ended
    for child in server.children():
        try:
            total_s += sum(child.cpu_times()[:2])
        except psutil.NoSuchProcess:
            continue
    return float(total_s)


def _python_s() -> float:
    """Of this process and of its children that have ended."""
    times = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(spent.ru_utime + spent.ru_stime for spent in times)


async def _measure(transactions: int, seed: int, jobs: int) -> None:
    console = Console()
    with TemporaryDirectory(prefix="bench_") as name:
        folder = Path(name)
        async with servers.running(settings.read(), valkey=False) as running:
            server_url = running.database_url
            console.print(machine.describe(await machine.postgres_version(server_url)))
            make_chain(folder / "frames", transactions, seed)
            async with databases.fresh(server_url) as url, databases.fresh(server_url) as other_url:
                first, rows = folder / "first", list[tuple[str, Cost]]()
                rows.append(("sync, to the end of bulk", await apart(sync, url, folder / "frames", transactions)))
                rows.append(("snapshot", await apart(snapshot, url, first, jobs, None)))
                again = await apart(snapshot, url, folder / "again", jobs, first / copies.MANIFEST)
                rows.append(("snapshot with --since the first", again))
                rows.append(("restore", await apart(fill_again, other_url, first, jobs)))
                rows.append(("all indexes alone", await apart(build_indexes, other_url, jobs)))
                database_bytes = await databases.size_bytes(other_url, MAINNET)
            files = [path.stat() for path in (first / manifest.PARTS).iterdir()]
            size_bytes = sum(file.st_size for file in files)
            linked_bytes = sum(file.st_size for file in files if file.st_nlink > 1)
            disk_s = await write_bytes(folder, database_bytes)
    table = Table("", "s", "Python CPU s", "Postgres CPU s", title=f"{transactions:,} transactions, {jobs} connections")
    for column in table.columns[1:]:
        column.justify = "right"
    for step, cost in rows:
        postgres = "not local" if cost.postgres_s is None else f"{cost.postgres_s:.1f}"
        table.add_row(step, f"{cost.took_s:.1f}", f"{cost.python_s:.1f}", postgres)
    table.add_row("write the database's bytes to the disk", f"{disk_s:.1f}", "", "")
    console.print(table)
    console.print(
        f"{size_bytes / 1e6:,.0f} MB in the folder, of which the second snapshot links {linked_bytes / 1e6:,.0f} MB; "
        f"{database_bytes / 1e6:,.0f} MB in the database"
    )


def main(
    transactions: Annotated[int, typer.Option(min=10_000, help="Length of the chain.")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="Seed of the chain.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, max=32, help="Connections of snapshot and restore.")] = 2,
) -> None:
    """Measure a sync, a snapshot and a restore of the same index."""
    asyncio.run(_measure(transactions - transactions % BLOCK_TRANSACTIONS, seed, jobs))


if __name__ == "__main__":
    typer.run(main)
