"""`python -m tests.campaigns.faults --faults 1000 --seed 1`: random faults under load, and checks of their effects.

Two indexers, two API hosts, the aggregator, Postgres and Valkey run on a chain that grows and forks, while callers send
requests and a partner rotates their keys. There is one fault at a time. During each fault the signals must be right
within 10 s, and after it the whole service must report within a minute that it is ready. At intervals and at the end,
usage is compared with the callers' observations, and the index is verified; at the end the index is also compared with
one made without faults.

A wrong signal or figure is reported, counted, and makes the exit status 1; the campaign continues. It ends immediately
if the service does not recover. The same seed gives the same faults in the same order.
"""

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Annotated

import asyncpg
import typer
import uvloop

from tests.campaigns import world as worlds
from tests.campaigns.campaign import Campaign
from tests.campaigns.fault_kinds import FAULTS, fill_disk
from tests.campaigns.load import Load, paths_of
from tests.campaigns.partner import new_partner
from tests.campaigns.world import ServiceProcess
from tests.chain.dump import differences
from tests.chain.harness import Ledgerline, Node

CHECK_EVERY = 100
STATUS_EVERY = 20
MAX_PAUSE_S = 3.0
RATE, CONNECTIONS = 100, 10
LIMITS = (10_000, 10_000, 10_000, 300, 120, 120)
QUOTAS = (None, None, None, None, None, 600)  # the last one is used up after some minutes
DISK_MEGABYTES = 48


async def play(campaign: Campaign, faults: int, rotating: asyncio.Task[None]) -> None:
    """Play the faults one after the other while keys are rotated, then stop."""
    kinds, weights = list(FAULTS), list(FAULTS.values())
    began, slowest = time.monotonic(), 0.0
    for campaign.number in range(1, faults + 1):
        # The random choices of a fault depend on its findings; those of the next one must not.
        campaign.random = Random(f"{campaign.seed} {campaign.number}")
        fault = campaign.random.choices(kinds, weights)[0]
        await asyncio.sleep(campaign.random.uniform(0, MAX_PAUSE_S))
        started = time.monotonic()
        await fault(campaign)
        over = time.monotonic()
        recovered_s = await campaign.ready_again()
        campaign.report_over_limit()
        campaign.report_unauthorized()
        if rotating.done():
            rotating.result()
        slowest = max(slowest, recovered_s)
        print(
            f"{time.monotonic() - began:7.1f} s  {campaign.number:4}  {fault.__name__:28}"
            f"{over - started:5.1f} s, ready {recovered_s:4.1f} s later, {campaign.load.requests:,} requests",
            flush=True,
        )
        if campaign.number % STATUS_EVERY == 0:
            code, state = await worlds.indexer_status(campaign.world)
            if code != 0:
                campaign.report(f"indexer status ends with {code}: {state}")
        if campaign.number % CHECK_EVERY == 0 or campaign.number == faults:
            await campaign.check()
    took_s = time.monotonic() - began
    print(f"{faults} faults in {took_s:.0f} s, each recovered within {slowest:.1f} s", flush=True)


async def compare(campaign: Campaign) -> None:
    """Stop everything with SIGTERM, and compare the index with one made from the same blocks without faults."""
    world, tip = campaign.world, campaign.world.node.tip()
    for part in (*(host.part for host in world.hosts), world.aggregator):
        await _end(campaign, part)
    whole = Ledgerline(world.database_url, world.redis_url, world.folder)
    await asyncio.to_thread(whole.reaches, worlds.NETWORK, tip)
    for part in world.indexers:
        await _end(campaign, part)
    await world.rows("CREATE DATABASE straight")
    straight = Ledgerline(world.database_url.replace("/ledgerline?", "/straight?"), world.redis_url, world.folder)

    def index() -> list[str]:
        assert straight.run("api", "migrate").returncode == 0
        with Node(world.chain) as node, straight.indexing(worlds.NETWORK, node.url) as process:
            straight.reaches(worlds.NETWORK, node.tip(), process, within_s=300)
        return differences(straight.dump(worlds.NETWORK), whole.dump(worlds.NETWORK))

    for words in await asyncio.to_thread(index):
        campaign.report(f"differs from the index of the same blocks without faults: {words}")


async def _end(campaign: Campaign, part: ServiceProcess) -> None:
    try:
        status = await asyncio.to_thread(part.process.stop)
    except AssertionError as late:
        campaign.report(f"{part.name}: {late}")
    else:
        if status != 0:
            campaign.report(f"{part.name} ended with status {status} after SIGTERM")


async def run(folder: Path, faults: int, seed: int) -> list[str]:
    """Play the campaign; returns the errors."""
    with ExitStack() as stack:
        if worlds.mounted_small(folder / "host-2", DISK_MEGABYTES):
            stack.callback(worlds.unmount, folder / "host-2")
        else:
            print("No small file system can be mounted here: disks are not filled.")
            FAULTS.pop(fill_disk)
        async with worlds.opened(folder, seed) as world:
            partner = await new_partner(world.database_url, worlds.NETWORK, LIMITS, QUOTAS)
            ports = [host.port for host in world.hosts]
            load = Load(ports, partner, paths_of(world.chain), RATE, CONNECTIONS)
            campaign = Campaign(world, load, seed)
            growing = asyncio.create_task(world.grow(Random(seed)))
            rotating = asyncio.create_task(partner.rotate(ports, Random(seed)))
            try:
                async with load.running():
                    await play(campaign, faults, rotating)
            except (AssertionError, OSError, asyncpg.PostgresError) as failure:
                campaign.report(f"the campaign ends here: {failure}")
                return campaign.wrong
            finally:
                growing.cancel()
                rotating.cancel()
                await asyncio.gather(growing, rotating, return_exceptions=True)
            print(f"{partner.rotations} rotations of keys", flush=True)
            await compare(campaign)
            return campaign.wrong


def main(
    faults: Annotated[int, typer.Option(min=1, help="Number of faults.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of their choice and order.")] = 1,
) -> None:
    """Play a campaign of random faults; if there are errors, prints them and exits with status 1."""

    def holds(folder: Path) -> bool:
        wrong = uvloop.run(run(folder, faults, seed))
        print("", *wrong, sep="\n  ")
        return not wrong

    print(f"seed {seed}, {faults} faults", flush=True)
    worlds.run_in_own_folder("faults", holds, "No errors.", f"There are errors with seed {seed}.")


if __name__ == "__main__":
    typer.run(main)
