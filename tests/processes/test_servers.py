"""The embedded servers: shared by processes, running while any process holds them, stopped with the last one."""

import asyncio
import os
import pwd
import shutil
import signal
import stat
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import psutil
import pytest
import redis.asyncio

from shared import lifecycle, servers, settings
from shared.servers.supervisor import LOG_BYTES
from tests.chain.harness import Process
from tests.patience import PATIENCE_S
from tests.ports import free_port
from tests.processes.process_list import processes_of, words_of

CHECKOUT = Path(__file__).parents[2]
# Generous: a machine that runs tests in parallel is a slow one.

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for whom another account runs the servers")


class ServerHolder:
    """A second process that holds the servers."""

    def __init__(self, process: asyncio.subprocess.Process, addresses: str) -> None:
        self.process = process
        self.database_url, self.redis_url = addresses.split()

    async def end(self, number: signal.Signals) -> int:
        """Send the signal; returns the exit status: minus the signal's number if it killed the process."""
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), 10.0)


Hold = Callable[..., Awaitable[ServerHolder]]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A DATA_DIR that does not exist yet. Processes that still use it after the test are killed, and fail the test."""
    with tempfile.TemporaryDirectory(prefix="ledgerline-") as name:
        Path(name).chmod(0o755)
        yield Path(name) / "data"
        left = processes_of(Path(name))
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for server in ("postgres", "valkey"):  # possibly a link out of the folder
            shutil.rmtree((Path(name) / "data" / server).resolve(), ignore_errors=True)
        assert not left, "somebody outlived the last holder"


@pytest.fixture
async def hold(folder: Path) -> AsyncIterator[Hold]:
    """Starts a process that holds the servers in `folder`, and returns when it has them."""
    started: list[asyncio.subprocess.Process] = []

    async def one(**environment: str) -> ServerHolder:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.processes.holder",
            cwd=CHECKOUT,
            env={"PATH": os.environ["PATH"], "DATA_DIR": str(folder), **environment},
            stdout=asyncio.subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)
        return ServerHolder(process, line.decode())

    yield one
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.wait()
    await eventually(lambda: not processes_of(folder))


async def test_processes_share_the_servers_and_the_last_one_out_stops_them(hold: Hold, folder: Path) -> None:
    one, other = await asyncio.gather(hold(), hold())
    assert (one.database_url, one.redis_url) == (other.database_url, other.redis_url)
    assert await one.end(signal.SIGTERM) == 0
    await write(other)
    assert await other.end(signal.SIGTERM) == 0
    await eventually(lambda: not processes_of(folder))
    again = await hold()
    assert again.database_url == other.database_url, "the port is kept"
    await assert_written(again)


async def test_no_secret_of_a_holder_is_in_the_environment_of_a_server(hold: Hold, folder: Path) -> None:
    await hold(BOOTSTRAP_ADMIN_KEY="iiak_admin_" + "5" * 40, LOG_LEVEL="info")
    processes = processes_of(folder)
    assert {process.name() for process in processes} >= {"postgres", "valkey-server"}
    for process in processes:
        if "tests.processes.holder" not in process.cmdline():
            environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
            names = {entry.partition(b"=")[0].decode() for entry in environment if entry}
            # Postgres adds variables, and Python the locale that it chose.
            assert {name for name in names if not name.startswith("PG")} <= {*servers.INHERITED, "LC_CTYPE"}, names


async def test_a_killed_holder_leaves_no_orphan(hold: Hold, folder: Path) -> None:
    one, other = await hold(), await hold()
    await one.end(signal.SIGKILL)
    await write(other)
    await other.end(signal.SIGKILL)
    await eventually(lambda: not processes_of(folder))


@pytest.mark.parametrize("name", ["postgres", "valkey"])
async def test_a_killed_server_comes_back_while_it_is_held(hold: Hold, folder: Path, name: str) -> None:
    holder = await hold()
    await write(holder)
    server_of(folder, name).kill()
    await assert_written(holder)


@pytest.mark.parametrize("name", ["postgres", "valkey"])
async def test_a_killed_supervisor_is_replaced_while_the_server_runs_on(hold: Hold, folder: Path, name: str) -> None:
    holder = await hold()
    await write(holder)
    server, [supervisor] = server_of(folder, name), supervisors_of(folder, name)
    supervisor.kill()
    await eventually(lambda: supervisors_of(folder, name) not in ([], [supervisor]))
    assert server_of(folder, name) == server
    supervisors_of(folder, name)[0].kill()
    server.kill()
    await assert_written(holder)
    assert await holder.end(signal.SIGTERM) == 0


async def test_a_failure_in_the_parent_of_workers_is_in_their_metrics(folder: Path) -> None:
    port = free_port()
    args = ["api", "--port", str(port), "--workers", "2"]
    api = Process(args, {"DATA_DIR": str(folder)}, folder.parent / "api.log")
    try:
        api.says("api.listening")
        supervisors_of(folder, "valkey")[0].kill()
        await eventually(lambda: b'ledgerline_task_failures_total{task="valkey supervision"} 1.0' in metrics_of(port))
        await eventually(lambda: supervisors_of(folder, "valkey") != [])
        assert api.stop() == 0
    finally:
        api.kill()
        await eventually(lambda: not processes_of(folder))


def metrics_of(port: int) -> bytes:
    """The text of /metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return bytes(answer.read())


async def test_the_next_process_restarts_killed_servers(hold: Hold, folder: Path) -> None:
    holder = await hold()
    await write(holder)
    for process in (*processes_of(folder), psutil.Process(holder.process.pid)):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    await holder.process.wait()
    await assert_written(await hold())


async def test_a_pid_file_that_names_a_foreign_process_stops_no_start(hold: Hold, folder: Path) -> None:
    await (await hold()).end(signal.SIGTERM)
    for file in ("postgres/cluster/postmaster.pid", "valkey/valkey.pid"):
        (folder / file).write_text(f"{os.getpid()}\n")
    await hold()


async def test_an_occupied_port_is_changed_before_the_start(hold: Hold, folder: Path) -> None:
    await (await hold()).end(signal.SIGTERM)
    ports = [int((folder / name / "port").read_text()) for name in ("postgres", "valkey")]
    async with await closing_at_once(ports[0]), await closing_at_once(ports[1]):
        holder = await hold()
        await write(holder)
        assert f":{ports[0]}/" not in holder.database_url
        assert f":{ports[1]}/" not in holder.redis_url


async def test_leftovers_of_an_interrupted_creation_are_removed(hold: Hold, folder: Path) -> None:
    (folder / "postgres" / "cluster.unfinished" / "base").mkdir(parents=True)
    await write(await hold())


async def test_other_users_of_the_machine_are_kept_out(hold: Hold, folder: Path) -> None:
    holder = await hold()
    passwords = [(folder / name / "password").read_text() for name in ("postgres", "valkey")]
    for name in ("postgres", "valkey"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / name / "password").stat().st_mode) == 0o600
    for process in processes_of(folder):
        assert not any(password in word for word in process.cmdline() for password in passwords)
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(holder.database_url.replace(passwords[0], "guess"))
    async with redis.asyncio.Redis.from_url(holder.redis_url.replace(passwords[1], "guess")) as client:
        with pytest.raises(redis.exceptions.AuthenticationError):
            await client.ping()


async def test_valkey_keeps_every_write_and_evicts_nothing(hold: Hold) -> None:
    async with redis.asyncio.Redis.from_url((await hold()).redis_url) as client:
        found: object = await client.config_get("appendonly", "save", "maxmemory-policy")
    assert found == {"appendonly": "yes", "save": "", "maxmemory-policy": "noeviction"}


async def test_postgres_sorts_text_by_its_bytes_and_folds_unicode(hold: Hold) -> None:
    async with connected((await hold()).database_url) as connection:
        assert await connection.fetchval("SELECT 'a' > 'B' COLLATE pg_catalog.\"default\"")
        assert await connection.fetchval("SELECT lower('Ä')") == "ä"
        assert await connection.fetchval("SHOW server_encoding") == "UTF8"


async def test_the_reason_of_a_failed_start_reaches_the_caller_in_one_line(folder: Path) -> None:
    (folder / "postgres").mkdir(parents=True)
    (folder / "postgres" / "cluster").mkdir()
    with pytest.raises(servers.ServersError, match=r"^postgres does not start: [^\n]*postgresql.conf[^\n]*$"):
        async with servers.running(settings.read({"DATA_DIR": str(folder)})):
            pass


async def test_the_log_of_a_running_server_is_emptied_when_it_is_too_long(hold: Hold, folder: Path) -> None:
    holder, log = await hold(), folder / "postgres.log"
    os.truncate(log, LOG_BYTES + 1)
    await eventually(lambda: log.stat().st_size < LOG_BYTES)
    await write(holder)


@needs_root
async def test_root_runs_them_as_another_account_even_in_a_closed_folder(hold: Hold, folder: Path) -> None:
    folder.parent.chmod(0o700)
    await write(await hold())
    place = (folder / "postgres").resolve()
    assert place.is_relative_to("/var/lib")
    assert place.stat().st_uid != 0
    assert server_of(folder, "postgres").uids().effective == place.stat().st_uid


@needs_root
async def test_root_leaves_the_folder_to_its_owner(hold: Hold, folder: Path) -> None:
    folder.mkdir()
    user = pwd.getpwnam("daemon").pw_uid
    os.chown(folder, user, user)
    await write(await hold())
    assert {path.stat().st_uid for path in (folder, *folder.rglob("*"))} == {user}


async def write(holder: ServerHolder) -> None:
    """Commit a row and a key that must not be lost."""
    async with connected(holder.database_url) as connection:
        await connection.execute("CREATE TABLE IF NOT EXISTS kept (word text)")
        await connection.execute("INSERT INTO kept VALUES ('row')")
    async with redis.asyncio.Redis.from_url(holder.redis_url) as client:
        await client.set("kept", "key")


async def assert_written(holder: ServerHolder) -> None:
    """Check the row and the key, at the holder's unchanged addresses, as soon as the servers answer."""

    async def row() -> object:
        async with connected(holder.database_url) as connection:
            return await connection.fetchval("SELECT word FROM kept")

    async def key() -> object:
        async with redis.asyncio.Redis.from_url(holder.redis_url) as client:
            return await client.get("kept")

    async with asyncio.timeout(PATIENCE_S):
        assert await lifecycle.wait_for("postgres", row, asyncio.Event()) == "row"
        assert await lifecycle.wait_for("valkey", key, asyncio.Event()) == b"key"


async def closing_at_once(port: int) -> asyncio.Server:
    """Another program on that port, which sends nothing."""
    return await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", port)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def eventually(holds: Callable[[], bool]) -> None:
    given_up_at = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < given_up_at, "it never came true"
        await asyncio.sleep(0.05)


def server_of(folder: Path, name: str) -> psutil.Process:
    file = {"postgres": "cluster/postmaster.pid", "valkey": "valkey.pid"}[name]
    return psutil.Process(int((folder / name / file).read_text().split()[0]))


def supervisors_of(folder: Path, name: str) -> list[psutil.Process]:
    words = ["-m", "shared.servers.supervisor", name, str(folder)]
    return [process for process in psutil.process_iter() if words_of(process)[1:] == words]
