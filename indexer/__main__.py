"""`python -m indexer`: the commands for one network's index."""

import gc
import os
import signal
import sys

# NOTE: before the other imports, which take most of a second. There is nothing to finish yet, so SIGTERM ends the
# process immediately, with status 0 if the command runs until SIGTERM. SystemExit would be lost in a weakref callback.
_RUNS_UNTIL_SIGTERM = sys.argv[1:2] == ["run"] or any(word.startswith("--every") for word in sys.argv)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0 if _RUNS_UNTIL_SIGTERM else 1))

# NOTE: what is imported stays. The collector would look through it again and again, also at the end: a third of the
# work of a short command.
gc.disable()

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import asyncpg
import psutil
import structlog
import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, ProgressColumn
from rich.progress import Progress as Bar

from indexer.blocks import eras, genesis
from indexer.blocks.node_warnings import NodeWarnings
from indexer.ogmios import connection as ogmios
from indexer.ogmios import frames
from indexer.ogmios import record as recording
from indexer.snapshot import download, signing, take
from indexer.snapshot import restore as restoring
from indexer.store import backward, beginning, finish_bulk, position
from indexer.sync import check, follow, leading, status
from indexer.sync.choice import NodeChoice
from indexer.sync.progress import Progress
from indexer.sync.signals import Signals, served
from indexer.verify import rounds
from indexer.verify.node import ledger_state
from indexer.verify.results import MAX_SHOWN
from shared import command, database, lifecycle, network_state, schema, servers, service_manager, settings, trials
from shared import log as logging
from shared.command import EmbeddedOption, VersionOption, name_database
from shared.copies import CopyRefused
from shared.ledger import MAX_SLOT, SECURITY_PARAMETER
from shared.network import Network, by_name
from shared.setting_forms import masked

gc.freeze()
gc.enable()

commands = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Index the chain of one Cardano network through Ogmios.",
)
log = structlog.get_logger()


@commands.callback()
def _any_command(_version: VersionOption = False) -> None:
    pass


def _network(name: str) -> Network:
    if name not in by_name:
        raise typer.BadParameter(f"{name!r}, expected one of {', '.join(by_name)}")
    return by_name[name]


def _duration(text: str) -> float:
    try:
        return rounds.parse_duration(text)
    except ValueError as cause:
        raise typer.BadParameter(str(cause)) from cause


NetworkOption = Annotated[
    Network, typer.Option("--network", help="Cardano network.", parser=_network, metavar="|".join(by_name))
]
MetricsPortOption = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", min=1, max=65_535, help="Port for Prometheus metrics. If omitted, metrics are not served."
    ),
]
MetricsHostOption = Annotated[str, typer.Option("--metrics-host", help="Address to serve metrics on.")]
OgmiosOption = Annotated[
    str | None,
    typer.Option(
        "--ogmios-url",
        help="Address of Ogmios (ws:// or wss://), several with commas; overrides OGMIOS_URL_<NETWORK>.",
    ),
]


@commands.command()
def run(
    network: NetworkOption,
    ogmios_url: OgmiosOption = None,
    metrics_port: MetricsPortOption = None,
    metrics_host: MetricsHostOption = "127.0.0.1",
) -> None:
    """Follow the chain until SIGTERM.

    A second process for the same network stands by and takes over when the first one ends or hangs.
    """
    chosen = _settings()
    logging.started("indexer", network=network.name)
    nodes = NodeChoice(_ogmios_urls(chosen, network, ogmios_url))
    progress = Progress(network)

    async def follow_chain(stop: asyncio.Event) -> int:
        async with servers.running(chosen, valkey=False) as running:
            progress.start()
            service_manager.notify(service_manager.READY)  # it may have to wait, which is part of its work
            try:
                await follow.Follower(
                    network, running.database_url, nodes, chosen.split_blocks, progress, NodeWarnings()
                ).run(stop)
            except follow.FATAL as fatal:
                log.error("follow.refused", network=network.name, cause=str(fatal), after=progress.at)
                return 1
            except Exception:
                log.exception("follow.failed", network=network.name, after=progress.at)
                return 1
            finally:
                progress.stop()
        return 0

    # Batches leave no cycles, and each collection would walk the caches. follow.py collects when it is worth it.
    gc.disable()
    with _metrics(progress.signals, metrics_host, metrics_port):
        raise typer.Exit(_run(follow_chain))


@contextmanager
def _metrics(signals: Signals, host: str, port: int | None) -> Iterator[None]:
    """Serve metrics if a port is given; ends the command if that port can't be opened."""
    with ExitStack() as stack:
        if port is not None:
            try:
                stack.enter_context(served(signals, host, port))
            except OSError as cause:
                where = f"{host}:{port} (--metrics-host and --metrics-port)"
                raise typer.Exit(lifecycle.fail(f"can't listen on {where}: {cause}")) from cause
        yield


@commands.command("status")
def show_status(
    network: NetworkOption,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    embedded: EmbeddedOption = False,
) -> None:
    """Show the state of the index: tips, lag, progress, node, size of the tables.

    Ends within 5 seconds, with status 0 if the index is in step with the chain, 2 if it is syncing, and 1 if it is
    down, unreachable or empty.
    """
    chosen = _settings(or_exit=status.DOWN)
    within_s = max(_STATUS_WITHIN_S - (time.time() - psutil.Process().create_time()), _STATUS_AT_LEAST_S)

    async def look(_: asyncio.Event) -> int:
        url = chosen.database_url or ""
        try:
            async with asyncio.timeout(within_s), servers.running(chosen, valkey=False, create=embedded) as running:
                url = running.database_url
                state = await _state(url, network, chosen.ready_lag_s)
        except servers.ServersError as cause:
            print(cause, file=sys.stderr)
        except lifecycle.UNUSABLE as cause:
            print(settings.unusable_database(url, cause), file=sys.stderr)
        except asyncpg.UndefinedTableError:
            print(f"{network.name}: nothing is indexed, the database is empty", file=sys.stderr)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as cause:
            print(settings.silent_database(url, cause), file=sys.stderr)
        else:
            name_database(chosen)
            print(json.dumps(state)) if as_json else status.show(state)
            exit_status: int = state["exit_status"]
            return exit_status
        return status.DOWN

    raise typer.Exit(_run(look, once=True))


# The command may take 5 s from the start of its process. On a busy machine, the imports alone may use them up.
_STATUS_WITHIN_S, _STATUS_AT_LEAST_S = 4.5, 1.0


async def _state(url: str, network: Network, ready_lag_s: float) -> dict[str, Any]:
    """The state that `status` shows. Raises the database's errors."""
    db = await database.connect(url, network)
    try:
        return await status.read(db, network, ready_lag_s)
    finally:
        db.terminate()


@commands.command()
def resync(
    network: NetworkOption,
    from_slot: Annotated[
        int,
        typer.Option("--from-slot", min=0, max=MAX_SLOT, help="Roll back to the last block at or before this slot."),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation, however many blocks are removed.")] = False,
    embedded: EmbeddedOption = False,
) -> None:
    """Roll back to a slot; the next `run` continues there. Slot 0, or any before the first block, erases the index.

    Asks before it removes more than 2,160 blocks, the longest rollback of a node.
    """

    async def go_back(most_blocks: int | None, db: asyncpg.Connection, url: str) -> int:
        async with _leading(db, url, network):
            print(await _go_back(db, network, from_slot, most_blocks))
        return 0

    try:
        exit_status = _run_on_database(network, partial(go_back, None if yes else SECURITY_PARAMETER), create=embedded)
    except _Unconfirmed as large:
        if not sys.stdin.isatty():
            raise typer.Exit(lifecycle.fail(f"{large}: add --yes to confirm")) from large
        # NOTE: after the loop, because the prompt would block it and keep it from seeing a signal.
        typer.confirm(f"{large}. Continue?", abort=True, err=True)
        exit_status = _run_on_database(network, partial(go_back, None))
    raise typer.Exit(exit_status)


_LOCK_FREED_WITHIN_S = 2.0
_TRY_LOCK_EVERY_S = 0.1


@asynccontextmanager
async def _leading(db: asyncpg.Connection, url: str, network: Network) -> AsyncIterator[None]:
    """Lead the network on this connection until the block ends. Raises _CommandFailed while an indexer leads.

    NOTE: Postgres may notice the end of an indexer a moment later. Until then its session holds the lock.
    """
    deadline = time.monotonic() + _LOCK_FREED_WITHIN_S
    while not await database.try_to_lead(db, network):
        if time.monotonic() > deadline:
            raise _CommandFailed(f"an indexer is running for {network.name}: stop it first")
        await asyncio.sleep(_TRY_LOCK_EVERY_S)
    async with leading.sending_heartbeats(url, network, db):
        yield


class _Unconfirmed(Exception):
    """A resync would remove many blocks; the message says how many."""


async def _go_back(db: asyncpg.Connection, network: Network, from_slot: int, most_blocks: int | None) -> str:
    """Roll back on the leading connection; returns a line about the new state. Raises _Unconfirmed."""
    index = await position.read(db)
    if index is None:
        raise _CommandFailed(f"nothing is indexed for {network.name}")
    point = None if from_slot == 0 else await position.last_at_or_before(db, from_slot)
    gone = await position.counts_after(db, point)
    removed = f"{gone.blocks:,} blocks with {gone.transactions:,} transactions of {network.name}"
    if most_blocks is not None and gone.blocks > most_blocks:
        raise _Unconfirmed(f"this removes {removed}")
    if point is None:
        await beginning.erase(db)
        return f"removed {removed}: the index is now empty, and the next run starts over"
    if index.finalize_step:
        await finish_bulk.finalize(db, index.finalize_step)
    await backward.rollback(db, network, point)
    return f"removed {removed}: it is at {point} now"


@commands.command()
def verify(
    network: NetworkOption,
    with_node: Annotated[
        bool, typer.Option("--against-node", help="Also read the blocks from the node again and compare their rows.")
    ] = False,
    sample: Annotated[
        str, typer.Option("--sample", help="Share of the blocks to compare, in random ranges; requires --against-node.")
    ] = "100%",
    from_slot: Annotated[
        int,
        typer.Option("--from-slot", min=0, max=MAX_SLOT, help="First slot to compare; requires --against-node."),
    ] = 0,
    ogmios_url: Annotated[
        str | None,
        typer.Option("--ogmios-url", help="Address of Ogmios, as for `run`; requires --against-node."),
    ] = None,
    embedded: EmbeddedOption = False,
    every_s: Annotated[
        float | None,
        typer.Option("--every", parser=_duration, metavar="24h", help="Repeat at this interval until SIGTERM."),
    ] = None,
) -> None:
    """Compare all derived tables with history, and history with itself.

    Can run beside the indexer. Prints the differences; if there are any, the exit status is 1. With --every (30m, 24h,
    7d) it repeats at that interval, from start to start, and logs the differences.
    """
    percent = _percent(sample)
    if not with_node and (percent != _ALL or from_slot or ogmios_url is not None):
        raise typer.Exit(lifecycle.fail("--sample, --from-slot and --ogmios-url require --against-node"))
    chosen = _settings()
    url = _ogmios_urls(chosen, network, ogmios_url)[0] if with_node else None
    connect = None if url is None else partial(_connect if every_s is None else ogmios.connect, url)
    options = rounds.VerifyOptions(network, connect, percent, from_slot)

    async def once(db: asyncpg.Connection, database_url: str) -> int:
        with _bar(MofNCompleteColumn()) as tell:
            outcome = await rounds.once(db, database_url, options, tell)
        _print(outcome, network)
        compared = await network_state.comparisons(db)
        if compared:
            print(f"{network.name}: {ledger_state.last_in_words(compared)}")
        return 1 if outcome.results else 0

    async def again_and_again(stop: asyncio.Event) -> int:
        logging.started("verify", network=network.name)
        async with servers.running(chosen, valkey=False, create=embedded) as running:
            try:
                await rounds.repeat(running.database_url, options, every_s or 0.0, stop)
            except _REFUSALS as refused:
                log.error("verify.refused", network=network.name, cause=str(refused))
                return 1
        return 0

    if every_s is None:
        raise typer.Exit(_run_on_database(network, once, create=embedded))
    raise typer.Exit(_run(again_and_again))


def _print(outcome: rounds.Round, network: Network) -> None:
    for line in outcome.said:
        print(line)
    for result in outcome.results:
        count = len(result.differences)
        or_more = " or more" if count == MAX_SHOWN else ""
        print(f"{result.check}: {count}{or_more} difference{'' if count == 1 else 's'}")
        for difference in result.differences:
            print(f"  {difference}")
    if not outcome.results:
        print(f"{network.name}: all derived tables match history")


async def _connect(url: str) -> ogmios.Ogmios:
    try:
        return await ogmios.connect(url)
    except (OSError, aiohttp.ClientError) as cause:
        raise _CommandFailed(f"can't connect to Ogmios at {masked(url)}: {cause}") from cause


def _percent(text: str) -> float:
    """The number of a percentage like `1%` or `0.5`; ends the command if it is invalid."""
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = 0.0
    if not 0 < percent <= _ALL:
        raise typer.Exit(lifecycle.fail(f"--sample is {text!r}, expected a percentage above 0% and up to 100%"))
    return percent


_ALL = 100.0


JobsOption = Annotated[int, typer.Option("--jobs", min=1, max=32, help="Number of parallel connections.")]
_JOBS = min(os.cpu_count() or 1, 4)


@commands.command()
def snapshot(
    network: NetworkOption,
    out: Annotated[Path, typer.Option("--out", help="Folder to write; it must be empty or not exist.")],
    since: Annotated[
        Path | None, typer.Option("--since", help="manifest.json of an earlier snapshot, whose parts to reuse.")
    ] = None,
    sign_with: Annotated[
        Path | None, typer.Option("--sign-with", help="PEM file of the private key (Ed25519) that signs the manifest.")
    ] = None,
    jobs: JobsOption = _JOBS,
) -> None:
    """Write a consistent copy of the index to a folder; can run beside the indexer.

    The folder gets files with rows, and a manifest with the tip and a checksum of each file.
    """

    async def copy(db: asyncpg.Connection, url: str) -> int:
        key = None if sign_with is None else signing.private_key(sign_with)
        with _bar() as tell:
            taken = await take.take(db, url, network, out, jobs, tell, since=since, key=key)
        print(f"{network.name} up to {taken} in {out}")
        return 0

    raise typer.Exit(_run_on_database(network, copy))


@commands.command()
def restore(
    network: NetworkOption,
    source: Annotated[str, typer.Option("--from", help="Folder of the snapshot, or its URL.")],
    into: Annotated[
        Path | None,
        typer.Option("--download", help="Folder for a snapshot from a URL; what it has is not downloaded again."),
    ] = None,
    signed_by: Annotated[
        Path | None,
        typer.Option("--signed-by", help="PEM file of the public key (Ed25519) that signed it; required for a URL."),
    ] = None,
    jobs: JobsOption = _JOBS,
    embedded: EmbeddedOption = False,
) -> None:
    """Fill an empty network from a snapshot; the next `run` continues there."""

    async def fill(db: asyncpg.Connection, url: str) -> int:
        key = None if signed_by is None else signing.public_key(signed_by)
        folder = Path(source) if into is None else into
        async with _leading(db, url, network):
            with _bar() as tell:
                if into is not None and key is not None:
                    await restoring.refuse_filled(db, network)
                    await download.download(source, into, key, network, jobs, tell)
                restored = await restoring.restore(db, url, network, folder, jobs, tell, key=key)
        print(f"{network.name} is at {restored}")
        return 0

    try:
        if download.is_url(source):
            download.check_url(source)
    except CopyRefused as refused:
        raise typer.Exit(lifecycle.fail(refused)) from None
    if download.is_url(source) and (into is None or signed_by is None):
        raise typer.Exit(lifecycle.fail("--from with a URL requires --download and --signed-by"))
    if not download.is_url(source) and into is not None:
        raise typer.Exit(lifecycle.fail("--download requires --from with a URL"))
    raise typer.Exit(_run_on_database(network, fill, create=embedded))


@contextmanager
def _bar(*columns: ProgressColumn) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on a terminal, with these columns at its end. Yields a function of the step, the completed amount
    and the total.
    """
    shown = (*Bar.get_default_columns(), *columns)
    with Bar(*shown, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=None)
        yield lambda step, done, of: bar.update(task, description=step, completed=done, total=of)


@commands.command()
def record(
    network: NetworkOption,
    from_slot: Annotated[int, typer.Option("--from-slot", min=0, max=MAX_SLOT, help="First slot to record.")],
    blocks: Annotated[int, typer.Option("--blocks", min=1, help="Number of blocks.")],
    out: Annotated[Path, typer.Option("--out", help="File to write; compressed if the name ends in .xz.")],
    ogmios_url: OgmiosOption = None,
    embedded: EmbeddedOption = False,
) -> None:
    """Write blocks from Ogmios to a file that `python -m devnet serve` can play.

    Reading starts at the last indexed block before the slot, or at the origin if there is none.
    """
    url = _ogmios_urls(_settings(), network, ogmios_url)[0]
    if not (out.parent.is_dir() and os.access(out.parent, os.W_OK)) or out.is_dir():
        raise typer.Exit(
            lifecycle.fail(f"--out is '{out}', expected a file in a folder that exists and can be written")
        )

    async def copy(db: asyncpg.Connection) -> None:
        start = await position.last_at_or_before(db, from_slot - 1)
        node = await _connect(url)
        with Bar(*Bar.get_default_columns(), MofNCompleteColumn()) as bar:
            task = bar.add_task(f"blocks of {network.name}", total=blocks)
            try:
                await eras.check(node, network)
                await recording.record(node, start, from_slot, blocks, out, lambda n: bar.update(task, completed=n))
            finally:
                await node.close()
        print(f"{blocks} blocks in {out}")

    _with_database(network, copy, create=embedded)


@commands.command("check")
def check_servers(
    network: Annotated[
        Network | None,
        typer.Option("--network", help="Only this network.", parser=_network, metavar="|".join(by_name)),
    ] = None,
    ogmios_url: OgmiosOption = None,
    embedded: EmbeddedOption = False,
) -> None:
    """Print the settings in effect, without secrets, and try each server. The exit status is 1 if one fails."""
    chosen = _settings()
    if ogmios_url is not None and network is None:
        raise typer.Exit(lifecycle.fail("--ogmios-url requires --network"))
    wanted = [network] if network is not None else [by_name[name] for name in chosen.ogmios_urls]
    nodes = {each: _ogmios_urls(chosen, each, ogmios_url) for each in wanted}
    trials.show_settings(chosen)

    async def main(stop: asyncio.Event) -> int:
        async with servers.running(chosen, valkey=False, create=embedded) as running:
            return await lifecycle.unless_stopped(check.servers(running, nodes), stop)

    raise typer.Exit(_run(main, once=True))


class _CommandFailed(Exception):
    """A command can't run; the message is one line for the operator."""


_REFUSALS = (
    _CommandFailed,
    *rounds.INCOMPLETE,
    CopyRefused,
    schema.WrongSchema,
    genesis.WrongNetwork,
    recording.NotRecorded,
    ogmios.Refused,
    frames.Unreadable,
)


def _settings(*, or_exit: int = 2) -> settings.Settings:
    """The settings; if one is invalid, ends the command with status `or_exit`."""
    try:
        chosen = settings.read()
    except settings.SettingsError as error:
        lifecycle.fail(error)
        raise typer.Exit(or_exit) from None
    logging.configure(chosen.log_level, chosen.log_format)
    return chosen


def _ogmios_urls(chosen: settings.Settings, network: Network, option: str | None) -> tuple[str, ...]:
    """The addresses of a network's nodes, the first one to follow. Commands that read once use that one."""
    if option is None:
        urls = chosen.ogmios_urls.get(network.name)
        if urls is None:
            variable, form, _ = settings.OGMIOS_URLS[network.name]
            raise typer.Exit(lifecycle.fail(f"{variable} is unset, expected {form.expected} (or --ogmios-url)"))
        return urls
    try:
        return settings.ogmios_urls("--ogmios-url", option)
    except settings.SettingsError as error:
        raise typer.Exit(lifecycle.fail(error)) from None


def _run(main: Callable[[asyncio.Event], Awaitable[int | None]], *, once: bool = False) -> int:
    try:
        return lifecycle.run(main, once=once)
    except servers.ServersError as error:
        return lifecycle.fail(error)


def _with_database(network: Network, work: Callable[[asyncpg.Connection], Awaitable[None]], *, create: bool) -> None:
    """Run a command on a network's database, and end the process."""

    async def do(db: asyncpg.Connection, _: str) -> int:
        await work(db)
        return 0

    raise typer.Exit(_run_on_database(network, do, create=create))


def _run_on_database(
    network: Network, work: Callable[[asyncpg.Connection, str], Awaitable[int]], *, create: bool = False
) -> int:
    """Connect to a network's database, name it on standard error, run `work(db, url)` on it; returns the exit status.

    Creates missing tables; creates a missing embedded database only with `create`.
    """
    chosen = _settings()

    async def do(db: asyncpg.Connection, database_url: str) -> int:
        await schema.migrate(db)
        return await work(db, database_url)

    async def main(stop: asyncio.Event) -> int:
        async with servers.running(chosen, valkey=False, create=create) as running:
            try:
                db = await lifecycle.wait_for("postgres", lambda: database.connect(running.database_url, network), stop)
                name_database(chosen)
                try:
                    # NOTE: terminate, then cancel: a cancelled transaction waits for Postgres, which may hang.
                    return await lifecycle.unless_stopped(do(db, running.database_url), stop, on_stop=db.terminate)
                finally:
                    db.terminate()
            except _REFUSALS as refused:
                print(refused, file=sys.stderr)
            except lifecycle.UNUSABLE as cause:
                print(settings.unusable_database(running.database_url, cause), file=sys.stderr)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, aiohttp.ClientError, OSError) as failure:
                print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
            return 1

    return _run(main, once=True)


if __name__ == "__main__":
    command.run(commands)
