"""`python -m api`: serve the API, aggregate usage, migrate and check the database, manage admin keys and networks."""

import gc
import os
import signal
import sys

# NOTE: before the other imports, which take most of a second. Nothing needs to be finished yet: a service (the API or
# the aggregator) exits with status 0, and a command, which has done nothing, with 1. SystemExit would be lost if the
# signal arrived during a weakref callback.
signal.signal(
    signal.SIGTERM, lambda *_: os._exit(0 if sys.argv[1:2] in ([], ["worker"]) or sys.argv[1].startswith("-") else 1)
)

# NOTE: what is imported stays. The collector would look through it again and again, also at the end: a third of the
# work of a short command.
gc.disable()

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, NoReturn

import structlog
import typer
from dramatiq import cli as dramatiq

from api.commands import backup as backups
from api.commands import check, database, keys, networks, processes, verify_usage
from api.commands.database import on_database
from api.keys import caller
from shared import command, lifecycle, schema, trials
from shared import log as logs
from shared import settings as environment
from shared.command import EmbeddedOption, VersionOption, name_database
from shared.servers import ServersError, running
from shared.settings import Settings

gc.freeze()
gc.enable()

log = structlog.get_logger()

AGGREGATOR = "api.worker"
"""The module that Dramatiq loads."""

commands = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
commands.add_typer(keys.commands, name="keys")
commands.add_typer(networks.commands, name="networks")
commands.command("verify-usage")(verify_usage.verify_usage)


@commands.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    _version: VersionOption = False,
    host: Annotated[str | None, typer.Option(help="Address to listen on; overrides API_HOST.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="Port to listen on; overrides API_PORT.")] = None,
    count: Annotated[int, typer.Option("--workers", min=1, max=64, help="Processes that share the port.")] = 1,
) -> None:
    """Serve the HTTP API, or run one of the commands below."""
    if context.invoked_subcommand is not None:
        return
    settings = _settings()
    logs.started("api", workers=count)
    host, port = host or settings.api_host, settings.api_port if port is None else port
    try:
        listening = _bind(host, port)
    except OSError as cause:
        raise typer.Exit(lifecycle.fail(f"can't listen on {host}:{port} (API_HOST and API_PORT): {cause}")) from cause

    async def main(stop: asyncio.Event) -> int:
        with listening:
            async with running(settings) as servers:
                async with database.migrated(servers.database_url, stop) as db:
                    if settings.bootstrap_admin_key and await caller.was_issued(db, settings.bootstrap_admin_key):
                        raise environment.issued_bootstrap_key()
                if count == 1:
                    await processes.serve(settings, servers, listening, stop)
                else:
                    await processes.supervise(count, settings, servers, listening, stop)
        log.info("api.stopped")
        return 0

    raise typer.Exit(_run(main))


@commands.command()
def migrate(embedded: EmbeddedOption = False) -> None:
    """Create the tables of the database, or migrate those of an older version to the current schema."""
    settings = _settings()

    async def main(stop: asyncio.Event) -> int:
        async with (
            running(settings, valkey=False, create=embedded) as servers,
            database.migrated(servers.database_url, stop, once=True),
        ):
            name_database(settings)
        typer.echo(f"the database has schema version {schema.VERSION}")
        return 0

    raise typer.Exit(_run(main, once=True))


@commands.command()
def backup(
    out: Annotated[Path, typer.Option(help="Folder to write; it must be empty or not exist.")],
    embedded: EmbeddedOption = False,
) -> None:
    """Copy partner data to a folder: admin keys, accounts, credentials, usage, audit. The service may be running."""
    made = on_database(lambda db: backups.take(db, out), create=embedded, migrate=False)
    typer.echo(f"{made}, in {out}")


@commands.command()
def restore(
    folder: Annotated[Path, typer.Option("--from", help="Folder of the backup.")],
    replace: Annotated[bool, typer.Option("--replace", help="Delete the partner data in the database first.")] = False,
    embedded: EmbeddedOption = False,
) -> None:
    """Fill the database with the partner data of a backup. Stop all other processes first."""
    made = on_database(lambda db: backups.restore(db, folder, replace=replace), create=embedded)
    typer.echo(f"restored {made}")


@commands.command("check")
def check_servers(embedded: EmbeddedOption = False) -> None:
    """Print the settings in effect, without secrets, and try each server. The exit status is 1 if one fails."""
    settings = _settings()
    trials.show_settings(settings)

    async def main(stop: asyncio.Event) -> int:
        async with running(settings, create=embedded) as servers:
            return await lifecycle.unless_stopped(check.servers(settings, servers), stop)

    raise typer.Exit(_run(main, once=True))


@commands.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def worker(context: typer.Context) -> None:
    """Run the usage aggregator with the options of `dramatiq api.worker`. Dramatiq's log lines use LOG_FORMAT."""
    parser = dramatiq.make_argument_parser()  # type: ignore[no-untyped-call] # it has no hints
    parser.error = _refuse
    arguments = parser.parse_args([AGGREGATOR, "--skip-logging", *context.args])
    _settings()
    logs.started("usage aggregator")
    raise typer.Exit(dramatiq.main(arguments))  # type: ignore[no-untyped-call] # nor has this


def _refuse(wrong: str) -> NoReturn:
    raise typer.Exit(lifecycle.fail(wrong))


def _settings() -> Settings:
    """Read the settings and configure logging. Ends the process with one line if a variable is invalid."""
    try:
        settings = environment.read()
    except environment.SettingsError as cause:
        raise typer.Exit(lifecycle.fail(cause)) from cause
    logs.configure(settings.log_level, settings.log_format)
    return settings


def _run(main: Callable[[asyncio.Event], Awaitable[int]], *, once: bool = False) -> int:
    """Run a process; if it can't start, print one line and return status 2."""
    try:
        return lifecycle.run(main, once=once)
    except (schema.WrongSchema, ServersError, environment.SettingsError) as cause:
        return lifecycle.fail(cause)


def _bind(host: str, port: int) -> socket.socket:
    """A socket bound to the first address of `host`. Connections are refused until a process listens on it."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(address)
    return bound


if __name__ == "__main__":
    command.run(commands)
