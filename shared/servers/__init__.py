"""The Postgres and the Valkey of this process: those that the settings name, or embedded ones.

Embedded servers have their data in DATA_DIR, and all processes of the machine with that DATA_DIR share them. A process
holds a lock while it uses a server; `shared.servers.supervisor` runs the server as long as any process does.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import structlog

from shared import lifecycle, tasks
from shared.servers.embedded import Server
from shared.servers.os_account import give_to_folder_owner
from shared.servers.supervisor import SERVERS, supervisor_lock, users_lock
from shared.setting_forms import masked
from shared.settings import Settings

log = structlog.get_logger()

LOOK_EVERY_S = 0.05
WATCH_EVERY_S = 1.0
REMIND_EVERY_S = 10.0
# How long the last user waits for a server to stop, of the ten seconds that a process may take to end. The supervisor
# does the rest.
LEAVE_WITHIN_S = 1.0
# The variables that a server inherits. Ours contain secrets, and a server may run as another account, which can read
# its /proc/<pid>/environ.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH")


class ServersError(Exception):
    """An embedded server can't be started. One line for the operator."""


def unusable_data_dir(data_dir: Path, cause: OSError) -> ServersError:
    """The error for a DATA_DIR that can't be made or written."""
    return ServersError(f"DATA_DIR={data_dir} can't be used: {cause}")


class Servers(msgspec.Struct, frozen=True):
    """Addresses to connect to, passwords included."""

    database_url: str
    read_database_urls: tuple[str, ...]
    redis_url: str


@asynccontextmanager
async def running(
    settings: Settings, *, postgres: bool = True, valkey: bool = True, create: bool = True
) -> AsyncIterator[Servers]:
    """The servers of this process; embedded ones run until the block ends.

    Servers that the settings name are neither started nor contacted. A server that is neither named nor wanted has the
    address "". A killed embedded server restarts within seconds at the same address: reconnect.
    Raises ServersError if an embedded server can't be started, or does not exist and `create` is false.
    """
    async with AsyncExitStack() as stack:
        database_url, redis_url = settings.database_url or "", settings.redis_url or ""
        if postgres and not database_url:
            if not create and not has_embedded_database(settings):
                raise ServersError(
                    f"DATABASE_URL is unset and there is no embedded database in {settings.data_dir}: set DATABASE_URL,"
                    " or create a database here with --embedded"
                )
            database_url = await stack.enter_async_context(_embedded("postgres", settings.data_dir))
        if valkey and not redis_url:
            redis_url = await stack.enter_async_context(_embedded("valkey", settings.data_dir))
        yield Servers(database_url, settings.read_database_urls or (database_url,), redis_url)


def has_embedded_database(settings: Settings) -> bool:
    """Whether DATA_DIR contains an embedded database, running or not. Raises ServersError if that can't be seen."""
    try:
        return SERVERS["postgres"](settings.data_dir).folder.exists()
    except OSError as cause:
        raise unusable_data_dir(settings.data_dir, cause) from cause


def database_in_words(settings: Settings) -> str:
    """Which database the settings name, without its password."""
    if settings.database_url is None:
        return f"the embedded one in {SERVERS['postgres'](settings.data_dir).folder}"
    return masked(settings.database_url).strip("'")


@asynccontextmanager
async def _embedded(name: str, data_dir: Path) -> AsyncIterator[str]:
    """The address of an embedded server, which runs until the block ends."""
    try:
        if not data_dir.exists():
            data_dir.mkdir(parents=True, exist_ok=True)
            give_to_folder_owner(data_dir)
        use = _Use(SERVERS[name](data_dir))
    except OSError as cause:
        raise unusable_data_dir(data_dir, cause) from cause
    try:
        await use.begin()
        async with tasks.background(f"{name} supervision", use.watch):
            yield use.server.url
    finally:
        await use.end()


class _Use:
    """This process' use of one server, and the supervisor that it may have started."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._users = users_lock(server)
        self._supervised = supervisor_lock(server)
        self._supervisor: subprocess.Popen[bytes] | None = None

    async def begin(self) -> None:
        """Register as a user of the server; return when it answers, however long its recovery takes."""
        remind_at = time.monotonic() + REMIND_EVERY_S
        while not self._users.share():  # the supervisor is stopping the server after its last user
            await asyncio.sleep(LOOK_EVERY_S)
        self._ensure_supervisor()
        while await self.server.state() != "up":
            self._ensure_supervisor()
            if time.monotonic() > remind_at:
                lifecycle.log_waiting(self.server.name, cause="the embedded server is starting")
                remind_at += REMIND_EVERY_S
            await asyncio.sleep(LOOK_EVERY_S)

    async def watch(self) -> None:
        """Replace the supervisor whenever it was killed. Raises ServersError if the server does not start."""
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            self._ensure_supervisor()

    async def end(self) -> None:
        """Stop using the server; the last user waits up to LEAVE_WITHIN_S for it to stop."""
        last = self._users.take()
        self._users.close()
        given_up_at = time.monotonic() + LEAVE_WITHIN_S
        while last and not self._supervised.share() and time.monotonic() < given_up_at:
            await asyncio.sleep(LOOK_EVERY_S)
        self._supervised.close()
        if self._supervisor is not None:
            self._supervisor.poll()

    def _ensure_supervisor(self) -> None:
        """Start a supervisor if none runs. Raises ServersError with the reason if our last one failed."""
        if self._supervisor is not None:
            if self._supervisor.poll() is None:
                return
            failed, self._supervisor = self._supervisor.returncode != 0, None
            if failed:
                raise ServersError(self.server.last_error())
        if not self._supervised.share():
            return
        self._supervised.release()
        with self.server.log.open("ab") as log_file:
            give_to_folder_owner(self.server.log)
            self._supervisor = subprocess.Popen(
                [sys.executable, "-m", "shared.servers.supervisor", self.server.name, str(self.server.data_dir)],
                cwd=Path(__file__).parents[2],  # the folder of `shared`
                env={name: os.environ[name] for name in INHERITED if name in os.environ},  # passed on to the server
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,
            )
