"""`python -m api`: serve, create the database, issue admin keys."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Annotated

import structlog
import typer

from api import caller, database, keys, workers
from shared import lifecycle, schema
from shared import log as logs
from shared import settings as environment
from shared.servers import ServersError, running
from shared.settings import Settings

log = structlog.get_logger()

commands = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
commands.add_typer(keys.commands, name="keys")


@commands.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="Address to listen on, instead of API_HOST.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="Port to listen on, instead of API_PORT.")] = None,
    count: Annotated[int, typer.Option("--workers", min=1, max=64, help="Processes that share the port.")] = 1,
) -> None:
    """Serve the HTTP API of Ledgerline; with a command, do that instead."""
    if context.invoked_subcommand is not None:
        return
    settings = _settings()
    host, port = host or settings.api_host, settings.api_port if port is None else port
    try:
        listening = _bind(host, port)
    except OSError as cause:
        raise typer.Exit(lifecycle.fail(f"can't listen on {host}:{port} (API_HOST and API_PORT): {cause}")) from cause

    async def main(stop: asyncio.Event) -> int:
        with listening:
            async with running(settings) as servers:
                async with database.migrated(servers.database_url, stop) as db:
                    if settings.bootstrap_admin_key and await caller.is_partners(db, settings.bootstrap_admin_key):
                        raise environment.partners_bootstrap_key()
                if count == 1:
                    await workers.serve(settings, servers, listening, stop)
                else:
                    await workers.supervise(count, settings, servers, listening, stop)
        log.info("api.stopped")
        return 0

    raise typer.Exit(_run(main))


@commands.command()
def migrate() -> None:
    """Create the database, or lead an old one to the present schema."""
    settings = _settings()

    async def main(stop: asyncio.Event) -> int:
        async with running(settings, valkey=False) as servers, database.migrated(servers.database_url, stop, once=True):
            pass
        typer.echo(f"the database has schema version {schema.VERSION}")
        return 0

    raise typer.Exit(_run(main, once=True))


def _settings() -> Settings:
    """The environment, with logs as it asks for them. Ends the process with one line where a variable is wrong."""
    try:
        settings = environment.read()
    except environment.SettingsError as cause:
        raise typer.Exit(lifecycle.fail(cause)) from cause
    logs.configure(settings.log_level, settings.log_format)
    return settings


def _run(main: Callable[[asyncio.Event], Awaitable[int]], *, once: bool = False) -> int:
    """Run a process; what it can't start without is one line and status 2."""
    try:
        return lifecycle.run(main, once=once)
    except (schema.NewerSchema, ServersError, environment.SettingsError) as cause:
        return lifecycle.fail(cause)


def _bind(host: str, port: int) -> socket.socket:
    """A socket on the first address of `host`. It refuses connections until somebody listens on it."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(address)
    return bound


if __name__ == "__main__":
    commands()
