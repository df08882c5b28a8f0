"""The database and the queue of this process: the servers that the settings name, or embedded ones.

The embedded servers lie in DATA_DIR and are shared by the processes of the machine: each holds a lock while it uses
them, and `shared.keeper` runs them while anybody does.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import msgspec
import structlog

from shared.account import leave_to_owner
from shared.embedded import Server
from shared.file_lock import FileLock
from shared.keeper import SERVERS
from shared.settings import Settings

log = structlog.get_logger()

LOOK_EVERY_S = 0.05
WATCH_EVERY_S = 1.0
REMIND_EVERY_S = 10.0
# How long the last holder waits for the end of a server. It is part of its own ten seconds; a longer one goes on alone.
LEAVE_WITHIN_S = 1.0


class ServersError(Exception):
    """An embedded server can't be had. One line for the operator."""


class Servers(msgspec.Struct, frozen=True):
    """Addresses to connect to, passwords included."""

    database_url: str
    read_database_urls: tuple[str, ...]
    redis_url: str


@asynccontextmanager
async def running(settings: Settings, *, postgres: bool = True, valkey: bool = True) -> AsyncIterator[Servers]:
    """The servers of this process, the embedded ones held and kept up until the block ends.

    Named servers are neither started nor asked. A server that is not wanted and not named has the address "". An
    embedded server that is killed comes back with the same address within seconds: connect again.
    Raises ServersError where an embedded server can't be started.
    """
    async with AsyncExitStack() as stack:
        database_url, redis_url = settings.database_url or "", settings.redis_url or ""
        if postgres and not database_url:
            database_url = await stack.enter_async_context(_held("postgres", settings.data_dir))
        if valkey and not redis_url:
            redis_url = await stack.enter_async_context(_held("valkey", settings.data_dir))
        yield Servers(database_url, settings.read_database_urls or (database_url,), redis_url)


@asynccontextmanager
async def _held(name: str, data_dir: Path) -> AsyncIterator[str]:
    """The address of one embedded server, which stays up until the block ends."""
    try:
        if not data_dir.exists():
            data_dir.mkdir(parents=True, exist_ok=True)
            leave_to_owner(data_dir)
        hold = _Hold(SERVERS[name](data_dir))
    except OSError as cause:
        raise ServersError(f"DATA_DIR={data_dir} can't be used: {cause}") from cause
    try:
        await hold.enter()
        watch = asyncio.create_task(hold.watch())
        try:
            yield hold.server.url
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
    finally:
        await hold.leave()


class _Hold:
    """This process' hold on one server, and the keeper that it may have started for it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._held = FileLock(server.data_dir / f"{server.name}.held")
        self._kept = FileLock(server.data_dir / f"{server.name}.kept")
        self._keeper: subprocess.Popen[bytes] | None = None

    async def enter(self) -> None:
        """Hold the server and return when it answers, however long its recovery takes."""
        remind_at = time.monotonic() + REMIND_EVERY_S
        while not self._held.share():  # the keeper is stopping it for the last holder before us
            await asyncio.sleep(LOOK_EVERY_S)
        self._have_it_kept()
        while await self.server.state() != "up":
            self._have_it_kept()
            if time.monotonic() > remind_at:
                log.warning("waiting", **{"for": self.server.name}, cause="the embedded server is starting")
                remind_at += REMIND_EVERY_S
            await asyncio.sleep(LOOK_EVERY_S)

    async def watch(self) -> None:
        """Replace a killed keeper, for ever."""
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            try:
                self._have_it_kept()
            except ServersError as failure:
                log.error("servers.failed", server=self.server.name, cause=str(failure))

    async def leave(self) -> None:
        """Give the server up; the last one waits a while for its end."""
        last = self._held.take()
        self._held.close()
        given_up_at = time.monotonic() + LEAVE_WITHIN_S
        while last and not self._kept.share() and time.monotonic() < given_up_at:
            await asyncio.sleep(LOOK_EVERY_S)
        self._kept.close()
        if self._keeper is not None:
            self._keeper.poll()

    def _have_it_kept(self) -> None:
        """Start a keeper where there is none. Raises ServersError with the reason for which our last one failed."""
        if self._keeper is not None:
            if self._keeper.poll() is None:
                return
            failed, self._keeper = self._keeper.returncode != 0, None
            if failed:
                raise ServersError(self.server.last_words())
        if not self._kept.share():
            return
        self._kept.release()
        with self.server.log.open("ab") as log_file:
            leave_to_owner(self.server.log)
            self._keeper = subprocess.Popen(
                [sys.executable, "-m", "shared.keeper", self.server.name, str(self.server.data_dir)],
                cwd=Path(__file__).parents[1],  # where `shared` is
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,
            )
