"""`python -m indexer`: run, status, resync, verify and record, each for one network."""

import asyncio
import gc
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import aiohttp
import asyncpg
import structlog
import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn
from rich.progress import Progress as Bar

from indexer import bulk, eras, follow, frames, genesis, ogmios, status, store, verify_pools
from indexer import record as recording
from indexer import verify as verifying
from indexer.findings import MOST_SHOWN
from indexer.flags import Flags
from indexer.progress import Progress
from shared import database, lifecycle, schema, servers, settings
from shared import log as logging
from shared.ledger import MOST_SLOT
from shared.network import Network, by_name

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Follows the chain of one Cardano network through Ogmios and keeps its index.",
)
log = structlog.get_logger()


class NetworkName(StrEnum):
    """The networks there are."""

    MAINNET = "mainnet"
    PREVIEW = "preview"
    PREPROD = "preprod"


NetworkOption = Annotated[NetworkName, typer.Option("--network", help="whose chain")]
OgmiosOption = Annotated[
    str | None, typer.Option("--ogmios-url", help="ws:// or wss:// address of Ogmios, instead of OGMIOS_URL_<NETWORK>")
]


@app.command()
def run(network: NetworkOption, ogmios_url: OgmiosOption = None) -> None:
    """Follow the chain until SIGTERM. A second one for the same network waits and takes over."""
    chosen = _settings()
    url = _ogmios_url(chosen, network, ogmios_url)

    async def follow_chain(stop: asyncio.Event) -> int:
        progress = Progress(by_name[network])
        async with servers.running(chosen, valkey=False) as running:
            progress.start()
            try:
                await follow.Follower(by_name[network], running.database_url, url, progress, Flags()).run(stop)
            except follow.FATAL as fatal:
                log.error("follow.refused", network=network.value, cause=str(fatal), after=progress.at)
                return 1
            except Exception:
                log.exception("follow.failed", network=network.value, after=progress.at)
                return 1
            finally:
                progress.stop()
        return 0

    # Batches are trees without cycles, and the collector would walk the caches again and again: follow.py calls it.
    gc.disable()
    raise typer.Exit(_run(follow_chain))


@app.command("status")
def show_status(
    network: NetworkOption, as_json: Annotated[bool, typer.Option("--json", help="for machines")] = False
) -> None:
    """Show where the index stands: local tip, node tip, lag, rows, progress."""

    async def look(db: asyncpg.Connection, chain: Network) -> None:
        state = await status.of(db, chain)
        if as_json:
            print(json.dumps(state))
        else:
            status.show(state)

    _with_database(network, look)


@app.command()
def resync(
    network: NetworkOption,
    from_slot: Annotated[
        int, typer.Option("--from-slot", min=0, max=MOST_SLOT, help="roll back to the last block at or before it")
    ],
) -> None:
    """Roll the database back; the next `run` follows the chain again from there. Slot 0 starts over."""

    async def go_back(db: asyncpg.Connection, chain: Network) -> None:
        if not await database.become_writer(db, chain):
            raise _Refused(f"an indexer is running for {chain.name}: stop it first")
        present = await store.position(db)
        if present is None:
            raise _Refused(f"nothing is indexed for {chain.name}")
        point = await store.last_at_or_before(db, from_slot)
        if from_slot == 0 or point is None:
            await store.erase(db)
            print(f"{chain.name} is empty: the next run starts over")
            return
        if present.finalize_step:
            await bulk.finalize(db, present.finalize_step)
        await store.rollback(db, chain, point)
        print(f"{chain.name} stands at {point}")

    _with_database(network, go_back)


@app.command()
def verify(network: NetworkOption) -> None:
    """Recompute every derived figure from history and compare, beside a running indexer or not.

    Exit status 1 and a list where anything differs.
    """

    async def compare(db: asyncpg.Connection, chain: Network, url: str) -> int:
        columns = (*Bar.get_default_columns(), MofNCompleteColumn())
        with Bar(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task("transactions", total=None)
            try:
                found = await verifying.verify(
                    db, url, chain, lambda step, done, of: bar.update(task, description=step, completed=done, total=of)
                )
            except verifying.NotComplete as cause:
                raise _Refused(str(cause)) from cause
        for finding in found:
            more = " and more" if len(finding.differences) == MOST_SHOWN else ""
            print(f"{finding.check}: {len(finding.differences)} differences{more}")
            for difference in finding.differences:
                print(f"  {difference}")
        if not found:
            print(f"{chain.name}: every figure is as history says")
        compared = await verify_pools.node_comparison(db)
        if compared is not None:
            print(f"{chain.name}: {compared}")
        return 1 if found else 0

    _with_servers(network, compare)


@app.command()
def record(
    network: NetworkOption,
    from_slot: Annotated[int, typer.Option("--from-slot", min=0, max=MOST_SLOT, help="the first slot wanted")],
    blocks: Annotated[int, typer.Option("--blocks", min=1, help="how many")],
    out: Annotated[Path, typer.Option("--out", help="a file to write, compressed where it ends in .xz")],
    ogmios_url: OgmiosOption = None,
) -> None:
    """Write blocks from Ogmios to a file that the replay server can play.

    Reading starts at the last block before the slot that the index holds, or at the origin where it holds none.
    """
    url = _ogmios_url(_settings(), network, ogmios_url)

    async def copy(db: asyncpg.Connection, chain: Network) -> None:
        start = await store.last_at_or_before(db, from_slot - 1)
        try:
            node = await ogmios.connect(url)
        except (OSError, aiohttp.ClientError) as cause:
            raise _Refused(f"no Ogmios at {settings.masked(url)}: {cause}") from cause
        with Bar(*Bar.get_default_columns(), MofNCompleteColumn()) as bar:
            task = bar.add_task(f"blocks of {chain.name}", total=blocks)
            try:
                await eras.check(node, chain)
                await recording.record(node, start, from_slot, blocks, out, lambda n: bar.update(task, completed=n))
            finally:
                await node.close()
        print(f"{blocks} blocks in {out}")

    _with_database(network, copy)


class _Refused(Exception):
    """What a command can't do, in one line for the operator."""


_REFUSALS = (_Refused, schema.NewerSchema, genesis.WrongNetwork, ogmios.Refused, frames.Unreadable)


def _settings() -> settings.Settings:
    try:
        chosen = settings.read()
    except settings.SettingsError as error:
        raise typer.Exit(lifecycle.fail(error)) from None
    logging.configure(chosen.log_level, chosen.log_format)
    return chosen


def _ogmios_url(chosen: settings.Settings, network: NetworkName, option: str | None) -> str:
    if option is None:
        url = chosen.ogmios_urls.get(network)
        if url is None:
            variable = f"OGMIOS_URL_{network.name}"
            raise typer.Exit(lifecycle.fail(f"{variable} is unset, expected {settings.OGMIOS_URL} (or --ogmios-url)"))
        return url
    try:
        return settings.ogmios_url("--ogmios-url", option)
    except settings.SettingsError as error:
        raise typer.Exit(lifecycle.fail(error)) from None


def _run(main: Callable[[asyncio.Event], Awaitable[int | None]], *, once: bool = False) -> int:
    try:
        return lifecycle.run(main, once=once)
    except servers.ServersError as error:
        return lifecycle.fail(error)


def _with_database(network: NetworkName, work: Callable[[asyncpg.Connection, Network], Awaitable[None]]) -> None:
    """Run one command against a network's database, which is created where there is none."""

    async def do(db: asyncpg.Connection, chain: Network, _: str) -> int:
        await work(db, chain)
        return 0

    _with_servers(network, do)


def _with_servers(network: NetworkName, work: Callable[[asyncpg.Connection, Network, str], Awaitable[int]]) -> None:
    """The same for one that also wants the database's address, and that says its own exit status."""
    chosen = _settings()
    chain = by_name[network]

    async def do(db: asyncpg.Connection, database_url: str) -> int:
        await schema.migrate(db)
        return await work(db, chain, database_url)

    async def main(stop: asyncio.Event) -> int:
        async with servers.running(chosen, valkey=False) as running:
            try:
                db = await lifecycle.wait_for("postgres", lambda: database.connect(running.database_url, chain), stop)
                return await _unless_stopped(stop, db, do(db, running.database_url))
            except _REFUSALS as refused:
                print(refused, file=sys.stderr)
            except lifecycle.UNUSABLE as cause:
                print(settings.unusable_database(running.database_url, cause), file=sys.stderr)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, aiohttp.ClientError, OSError) as failure:
                print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
            return 1

    raise typer.Exit(_run(main, once=True))


async def _unless_stopped(stop: asyncio.Event, db: asyncpg.Connection, work: Coroutine[None, None, int]) -> int:
    """The result of work on a connection, which ends with it. Raises Stopped once `stop` is set: what it has not
    committed is lost.
    """
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
    finally:
        stopping.cancel()
        # NOTE: in this order, as a cancelled transaction waits for Postgres, which may hang.
        db.terminate()
        working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    raise lifecycle.Stopped


if __name__ == "__main__":
    app()
