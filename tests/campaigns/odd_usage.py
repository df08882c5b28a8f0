"""`python -m tests.campaigns.odd_usage --minutes 10`: usage stays exact and cheap while the database or a clock is odd.

The whole service answers a steady rate of requests. Each stage takes the given time:

1. A session holds a snapshot. The CPU of Postgres for a batch may grow by FLAT_WITHIN from the first third to the last.
2. The aggregator is away. The memory of Valkey may grow by FLAT_WITHIN from the first third to the last.
3. An API process has a clock that is 40 days ahead, and another one is in 1979.

At the end, each answered request must be counted once, in a minute of the campaign, and the tables must agree.
"""

import asyncio
import signal
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import asyncpg
import psutil
import redis
import typer
import uvloop

from api.commands import verify_usage
from tests.campaigns import world as worlds
from tests.campaigns.load import Load, paths_of
from tests.campaigns.partner import new_partner
from tests.campaigns.world import World, until
from tests.chain.harness import Process
from tests.ports import free_port

FLAT_WITHIN = 0.10
SAMPLE_EVERY_S = 1.0
CONNECTIONS = 16
LIMITS = (10_000,) * 60
CLOCKS_AHEAD_S = {"40 days ahead": 40 * 86_400, "in 1979": -47 * 365 * 86_400}
SETTLED_WITHIN_S = 60.0
ODD_CLOCK = """
import os, time
right, right_ns, ahead_s = time.time, time.time_ns, int(os.environ["CLOCK_AHEAD_S"])
time.time, time.time_ns = lambda: right() + ahead_s, lambda: right_ns() + ahead_s * 10**9
"""


def growth(samples: list[float]) -> float:
    """From the first third to the last, by their medians."""
    third = len(samples) // 3
    return statistics.median(samples[-third:]) / statistics.median(samples[:third]) - 1


async def sampled(minutes: float, sample: Callable[[], Awaitable[float | None]]) -> list[float]:
    """Samples of a stage; those that are None are left out."""
    found, ends_at = [], time.monotonic() + minutes * 60
    while time.monotonic() < ends_at:
        await asyncio.sleep(SAMPLE_EVERY_S)
        if (value := await sample()) is not None:
            found.append(value)
    return found


class BatchCost:
    """The CPU of the aggregator's sessions in Postgres, for each batch since the last sample."""

    def __init__(self, world: World, db: asyncpg.Connection) -> None:
        self._world, self._db = world, db
        self._before: tuple[int, int] | None = None

    async def __call__(self) -> float | None:
        """Milliseconds; None without a batch."""
        whole = psutil.Process(self._world.aggregator.pid)
        ports = [
            peer.laddr.port
            for process in (whole, *whole.children(recursive=True))
            for peer in process.net_connections("tcp")
        ]
        pids = await self._db.fetch("SELECT pid FROM pg_stat_activity WHERE client_port = ANY($1::integer[])", ports)
        cpu_ns = sum(int(Path(f"/proc/{row['pid']}/schedstat").read_text().split()[0]) for row in pids)
        batches = await self._db.fetchval("SELECT last_value FROM partner.usage_part")
        before, self._before = self._before, (cpu_ns, batches)
        if before is None or batches == before[1] or cpu_ns < before[0]:
            return None
        return float((cpu_ns - before[0]) / (batches - before[1]) / 1e6)


async def hold_snapshot(world: World, db: asyncpg.Connection, minutes: float) -> bool:
    """The first stage."""
    session = await asyncpg.connect(world.database_url)
    await session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await session.execute("SELECT FROM partner.usage LIMIT 1")
    costs = await sampled(minutes, BatchCost(world, db))
    await session.close()
    grown = growth(costs)
    print(f"CPU of a batch: {statistics.median(costs):.1f} ms, growth {grown:.1%} over {len(costs)} samples")
    return grown <= FLAT_WITHIN


async def stop_aggregator(world: World, minutes: float) -> bool:
    """The second stage."""
    client: Any = redis.Redis.from_url(world.redis_url)
    assert await asyncio.to_thread(world.aggregator.process.stop) == 0

    async def used() -> float:
        return float(client.info("memory")["used_memory"])

    memory = await sampled(minutes, used)
    world.aggregator.start()
    grown = growth(memory)
    print(f"memory of Valkey: {statistics.median(memory) / 2**20:.1f} MiB, growth {grown:.1%}")
    return grown <= FLAT_WITHIN


@asynccontextmanager
async def odd_clocks(world: World) -> AsyncIterator[list[int]]:
    """The ports of API processes with odd clocks."""
    shim = world.folder / "odd_clock"
    shim.mkdir()
    (shim / "sitecustomize.py").write_text(ODD_CLOCK)
    ports, started = [], []
    for name, ahead_s in CLOCKS_AHEAD_S.items():
        port, data_dir = free_port(), world.folder / name.replace(" ", "-")
        data_dir.mkdir()
        environment = {
            "DATABASE_URL": world.database_url,
            "REDIS_URL": world.redis_url,
            "DATA_DIR": str(data_dir),
            "PYTHONPATH": str(shim),
            "CLOCK_AHEAD_S": str(ahead_s),
        } | worlds.ANY_AGE
        started.append(Process(["api", "--port", str(port)], environment, world.folder / f"{data_dir.name}.log"))
        ports.append(port)
    try:
        for port, process in zip(ports, started, strict=True):
            await until("an API listens", partial(_reports_its_clock, world, port), 60)
            assert process.popen.poll() is None
        yield ports
    finally:
        for process in started:
            process.popen.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.ends, 15)


async def _reports_its_clock(world: World, port: int) -> bool:
    try:
        async with world.session.get(f"http://127.0.0.1:{port}/ready") as answer:
            return "the clock of this host is" in await answer.text()
    except OSError:
        return False


async def settle(world: World, db: asyncpg.Connection) -> None:
    """Wait until everything is counted and folded."""

    async def settled() -> bool:
        found = [await world.metrics(host) for host in world.hosts]
        unfolded = await db.fetchval("SELECT count(*) FROM partner.usage_total WHERE part > 0")
        return not unfolded and all(each and each["ledgerline_usage_waiting_bytes"] == 0 for each in found)

    await until("usage is added up", settled, SETTLED_WITHIN_S)


async def run(folder: Path, minutes: float, rate: float) -> bool:
    """All stages; returns whether everything held."""
    async with worlds.opened(folder, seed=1) as world:
        db = await asyncpg.connect(world.database_url)
        began = await db.fetchval("SELECT date_trunc('minute', now())")
        partner = await new_partner(world.database_url, worlds.NETWORK, LIMITS)
        ordinary = Load([host.port for host in world.hosts], partner, paths_of(world.chain), rate, CONNECTIONS)
        async with ordinary.running():
            is_flat = await hold_snapshot(world, db, minutes)
            is_flat &= await stop_aggregator(world, minutes)
            async with odd_clocks(world) as ports:
                odd = Load(ports, partner, paths_of(world.chain), rate, CONNECTIONS)
                async with odd.running():
                    await asyncio.sleep(minutes * 60)
                    await odd.pause()
            await ordinary.pause()
        await settle(world, db)
        answered, broken = ordinary.answered + odd.answered, ordinary.broken + odd.broken
        counted = await db.fetchval("SELECT coalesce(sum(successful + failed), 0) FROM partner.usage")
        dated = "SELECT bool_and(minute BETWEEN $1 AND now()) FROM partner.usage"
        is_dated = await db.fetchval(dated, began)
        _, differences = await verify_usage.differences(db)
        await db.close()
    print(f"{answered:,} requests answered, {broken} broken, {counted:,} counted; {len(differences)} differences")
    print(f"all in minutes of the campaign: {is_dated}")
    return is_flat and answered <= counted <= answered + broken and is_dated and not differences


def main(
    minutes: Annotated[float, typer.Option(min=0.3, help="Length of each of the three stages.")] = 10,
    rate: Annotated[float, typer.Option(min=1, help="Requests per second.")] = 100,
) -> None:
    """Run the service while the database or a clock is odd; exit status 1 if usage is wrong or not cheap."""
    worlds.run_in_own_folder(
        "odd-usage",
        lambda folder: uvloop.run(run(folder, minutes, rate)),
        "Usage stayed exact and cheap.",
        "Something is wrong.",
    )


if __name__ == "__main__":
    typer.run(main)
