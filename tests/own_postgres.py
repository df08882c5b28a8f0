"""Postgres servers that a test may kill, freeze, demote and promote: a primary and its streaming standbys."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psutil

from shared.servers.embedded import Postgres
from shared.servers.os_account import account_of
from tests.patience import PATIENCE_S
from tests.ports import free_port


class OwnPostgres:
    """One server with a separate folder, always on the same port."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        folder.chmod(0o755)
        self.name = folder.name
        self._server = Postgres(folder)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return self._server.url

    @property
    def host(self) -> str:
        """Host and port."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def runs(self) -> bool:
        """Whether it was started and has not been killed since."""
        return self._process is not None

    @property
    def _cluster(self) -> Path:
        return self._server.home / "cluster"

    def make(self) -> None:
        """A new database, as a primary."""
        self._server.prepare()
        self._configure(fsync="off", wal_keep_size="256MB", wal_log_hints="on", wal_retrieve_retry_interval="200ms")

    def follow(self, primary: "OwnPostgres") -> None:
        """Become a standby of another: a new copy of its data, streaming from it once started."""
        if not self._server.folder.exists():
            self._server.folder.mkdir(mode=0o700)
            account = account_of(self._server.folder)
            if account.user is not None and account.group is not None:
                os.chown(self._server.folder, account.user, account.group)
        if not (self._server.home / "port").exists():
            account = account_of(self._server.folder)
            self._server.write("password", primary._server.password, account)
            self._server.write("port", str(free_port()), account)
        shutil.rmtree(self._cluster, ignore_errors=True)
        self._program("pg_basebackup", "-D", str(self._cluster), "-R", "-N", "-c", "fast", "-d", self._link_to(primary))

    def rewind(self, primary: "OwnPostgres") -> None:
        """The same for a former primary that is down; changes that the new one lacks are discarded."""
        self._program("pg_rewind", "-D", str(self._cluster), "-R", "--source-server", self._link_to(primary))

    def start(self) -> None:
        """Start it and return when it answers."""
        account = account_of(self._server.folder)
        with self._server.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._server.command(account),
                cwd=self._server.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=0o077,
                user=account.user,
                group=account.group,
                extra_groups=None if account.user is None else [],
            )
        deadline = time.monotonic() + PATIENCE_S
        while asyncio.run(self._server.state()) != "up":
            assert self._process.poll() is None and time.monotonic() < deadline, self._server.last_error()
            time.sleep(0.05)

    def promote(self) -> None:
        """From standby to primary."""
        self.execute("SELECT pg_promote()")

    def execute(self, statement: str) -> list[Any]:
        """The rows of one statement on a separate connection."""

        async def executed() -> list[Any]:
            connection = await asyncpg.connect(self.url, timeout=10)
            try:
                rows: list[Any] = await connection.fetch(statement)
                return rows
            finally:
                await connection.close()

        with asyncio.Runner() as runner:
            return runner.run(executed())

    def catches_up_with(self, primary: "OwnPostgres") -> None:
        """Wait until this standby has replayed everything that the primary has written so far."""
        (written,) = primary.execute("SELECT pg_current_wal_lsn()::text")[0]
        deadline = time.monotonic() + PATIENCE_S
        while not self.execute(f"SELECT pg_last_wal_replay_lsn() >= '{written}'")[0][0]:
            assert time.monotonic() < deadline, self._server.last_error()
            time.sleep(0.02)

    def freeze(self) -> None:
        """Stop all its processes: connections are accepted, but not answered."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume them."""
        self._signal(signal.SIGCONT)

    def recover(self) -> None:
        """Resume or restart it, after it was frozen or killed."""
        if self._process is None:
            self.start()
        else:
            self.thaw()

    def kill(self) -> None:
        """Kill every process with SIGKILL, like a crash of the machine."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Shut it down in an orderly way, so that standbys have everything."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)
        self._process = None

    def _configure(self, **settings: str) -> None:
        with (self._cluster / "postgresql.conf").open("a") as file:
            file.write("".join(f"{name} = '{value}'\n" for name, value in settings.items()))

    def _link_to(self, primary: "OwnPostgres") -> str:
        return f"{primary.url}&application_name={self.name}"

    def _program(self, name: str, *options: str) -> None:
        account = account_of(self._server.folder)
        self._server._run_program([str(self._server._binaries(account) / name), *options], "", account)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        whole = psutil.Process(self._process.pid)
        for process in (whole, *whole.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # the session of one that has just ended
                process.send_signal(number)


@contextmanager
def clusters(*names: str) -> Iterator[list[OwnPostgres]]:
    """A running primary, and for each further name a standby that streams from it."""
    folder = Path(tempfile.mkdtemp(prefix="ledgerline-cluster-"))
    folder.chmod(0o755)  # the account that runs the servers for root has to reach it
    made: list[OwnPostgres] = []
    try:
        for name in names:
            made.append(OwnPostgres(folder / name))
            if len(made) == 1:
                made[0].make()
            else:
                made[-1].follow(made[0])
            made[-1].start()
        yield made
    finally:
        for server in made:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def made_whole(servers: list[OwnPostgres]) -> list[OwnPostgres]:
    """The same servers after any failover from the first to the second: the current primary, then its standbys."""
    for server in servers:
        server.recover()
    old, leads, other = servers
    (in_recovery,) = leads.execute("SELECT pg_is_in_recovery()")[0]
    if in_recovery:
        for standby in (leads, other):
            standby.execute("SELECT pg_wal_replay_resume()")
        return servers
    for standby in (old, other):
        standby.kill()
        standby.follow(leads)
        standby.start()
    return [leads, old, other]


def address_of(servers: Iterable[OwnPostgres], database: str = "ledgerline") -> str:
    """One address with the hosts of all servers."""
    servers = list(servers)
    before = urlsplit(servers[0].url).netloc.rpartition("@")[0]
    return f"postgresql://{before}@{','.join(server.host for server in servers)}/{database}?sslmode=disable"
