"""A whole service for a campaign: servers, two indexers, two API hosts, an aggregator, and a chain that moves."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import asyncpg
import psutil

from devnet.generator import Generated, options_of
from shared import log, servers, settings
from shared.servers.embedded import Postgres, Valkey
from tests.chain.harness import Node, Process
from tests.ports import free_port
from tests.processes.relay import TcpRelay

NETWORK = "preview"
ANY_AGE = {"READY_LAG_S": "999999999"}  # generated blocks have slots from years ago
BLOCKS_AT_START = 300
NEW_BLOCK_EVERY_S = 1.0
FORK_EVERY, MAX_FORK_DEPTH = 15, 20


class ServiceProcess:
    """A process of the service, and the function that starts it again."""

    def __init__(self, name: str, start: Callable[[], Process]) -> None:
        self.name = name
        self._start = start
        self.process = start()

    @property
    def pid(self) -> int:
        """The id of the started process; its children are in its group."""
        return self.process.popen.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and its children."""
        os.killpg(self.pid, number)

    def start(self) -> None:
        """Run it again, once it has ended."""
        self.process = self._start()

    async def restart(self) -> None:
        """Send SIGTERM, wait for its orderly end, and start it again."""
        status = await asyncio.to_thread(self.process.stop)
        assert status == 0, f"{self.name} ended with status {status} after SIGTERM"
        self.start()

    def has_ended(self) -> bool:
        """Whether it has ended unasked."""
        return self.process.popen.poll() is not None


class Host:
    """An API host: its process, its folder of spools, and the relays between it and the servers."""

    def __init__(self, part: ServiceProcess, port: int, data_dir: Path, postgres: TcpRelay, valkey: TcpRelay) -> None:
        self.part, self.port, self.data_dir = part, port, data_dir
        self.postgres, self.valkey = postgres, valkey


class World:
    """All running processes. Made by `opened`."""

    hosts: list[Host]
    indexers: list[ServiceProcess]
    aggregator: ServiceProcess

    def __init__(self, folder: Path, found: servers.Servers, node: Node, session: aiohttp.ClientSession) -> None:
        self.folder, self.node, self.session = folder, node, session
        self.database_url, self.redis_url = found.database_url, found.redis_url
        self.servers_dir = folder / "servers"

    @property
    def parts(self) -> list[ServiceProcess]:
        """Every process of ours."""
        return [*self.indexers, *(host.part for host in self.hosts), self.aggregator]

    @property
    def chain(self) -> Generated:
        """The chain that the node plays now."""
        chain = self.node.server.chain
        assert isinstance(chain, Generated)
        return chain

    def server_processes(self, kind: type[Postgres] | type[Valkey]) -> list[psutil.Process]:
        """A server and its children; none while it is away."""
        pid = kind(self.servers_dir).pid()
        if pid is None:
            return []
        with suppress(psutil.NoSuchProcess):
            whole = psutil.Process(pid)
            return [whole, *whole.children(recursive=True)]
        return []

    def leader(self) -> ServiceProcess | None:
        """The indexer that follows the node; None while none or both are connected to it."""
        port = int(self.node.url.rpartition(":")[2])
        found = []
        for indexer in self.indexers:
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                peers = psutil.Process(indexer.pid).net_connections("tcp")
                if any(peer.raddr and peer.raddr.port == port for peer in peers):
                    found.append(indexer)
        return found[0] if len(found) == 1 else None

    async def ready(self, host: Host) -> tuple[int, dict[str, Any]]:
        """Status and body of /ready; 0 without an answer."""
        try:
            async with self.session.get(f"http://127.0.0.1:{host.port}/ready") as answer:
                return answer.status, await answer.json()
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return 0, {}

    async def metrics(self, host: Host) -> dict[str, float] | None:
        """Every sample of /metrics by its name and labels; None if it does not answer."""
        try:
            async with self.session.get(f"http://127.0.0.1:{host.port}/metrics") as answer:
                lines = (await answer.text()).splitlines()
        except (aiohttp.ClientError, TimeoutError):
            return None
        pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    async def rows(self, statement: str, *args: Any) -> list[asyncpg.Record]:
        """The rows of one statement, on a connection without a relay."""
        connection = await asyncpg.connect(self.database_url, timeout=10)
        try:
            found: list[asyncpg.Record] = await connection.fetch(statement, *args, timeout=30)
            return found
        finally:
            await connection.close(timeout=5)

    async def grow(self, random: Random) -> None:
        """Let the chain grow until cancelled, with occasional forks."""
        turn = 0
        while True:
            await asyncio.sleep(NEW_BLOCK_EVERY_S)
            turn += 1
            await asyncio.to_thread(self.fork if turn % FORK_EVERY == 0 else self._grow, random)

    def fork(self, random: Random) -> None:
        """Replace some of the last blocks with one more block than before."""
        depth = random.randint(1, MAX_FORK_DEPTH)
        chain = self.chain.fork(len(self.chain.blocks) - 1 - depth, random.getrandbits(30), depth + 1)
        self.node.do(self.node.server.switch, chain)

    def _grow(self, _: Random) -> None:
        self.node.do(self.node.server.grow)


@asynccontextmanager
async def opened(folder: Path, seed: int) -> AsyncIterator[World]:
    """Start everything and wait until it is ready; any remaining processes are killed at the end."""
    chain = await asyncio.to_thread(Generated, options_of(NETWORK, seed=seed, density=3.0), BLOCKS_AT_START)
    async with AsyncExitStack() as stack:
        found = await stack.enter_async_context(
            servers.running(settings.read({"DATA_DIR": str(folder / "servers"), "LOG_LEVEL": "error"}))
        )
        node = stack.enter_context(Node(chain))
        session = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=8)))
        world = World(folder, found, node, session)
        # A campaign kills processes, not the machine, so Postgres need not sync its disk.
        connection = await asyncpg.connect(found.database_url)
        await connection.execute("ALTER SYSTEM SET fsync = off")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.close()
        _start(world, stack)
        await until("both API hosts are ready", lambda: all_ready(world), 90)
        yield world


def _start(world: World, stack: AsyncExitStack) -> None:
    def door(url: str) -> tuple[TcpRelay, str]:
        relay = TcpRelay()
        address = relay.in_front_of(url)
        relay.open()
        stack.callback(relay.end)
        stack.callback(relay.thaw)
        return relay, address

    def part(name: str, environment: dict[str, str], *command: str) -> ServiceProcess:
        log = world.folder / f"{name}.log"
        made = ServiceProcess(name, lambda: Process(list(command), environment, log))
        stack.callback(_kill, made)
        return made

    ours = {"DATABASE_URL": world.database_url, "REDIS_URL": world.redis_url, "DATA_DIR": str(world.folder / "ours")}
    ours |= ANY_AGE
    follow = ("indexer", "run", "--network", NETWORK, "--ogmios-url", world.node.url)
    world.indexers = [part(f"indexer-{number}", ours, *follow) for number in (1, 2)]
    world.hosts = []
    for number in (1, 2):
        data_dir, port = world.folder / f"host-{number}", free_port()
        data_dir.mkdir(exist_ok=True)
        postgres, database_url = door(world.database_url)
        valkey, redis_url = door(world.redis_url)
        environment = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "DATA_DIR": str(data_dir)} | ANY_AGE
        process = part(f"api-{number}", environment, "api", "--port", str(port))
        world.hosts.append(Host(process, port, data_dir, postgres, valkey))
    world.aggregator = part("aggregator", ours, "dramatiq", "api.worker", "-p", "1", "-t", "2")


def _kill(part: ServiceProcess) -> None:
    if not part.has_ended():
        part.signal(signal.SIGCONT)
        part.process.kill()


async def all_ready(world: World) -> bool:
    """Whether no host reports a problem."""
    for host in world.hosts:
        status, body = await world.ready(host)
        if status != 200 or body["data"]["status"] != "ready":
            return False
    return True


async def until(what: str, holds: Callable[[], Any], within_s: float) -> float:
    """Wait until `holds` is true; returns the seconds that it took. Raises AssertionError."""
    began = time.monotonic()
    while not await holds():
        if time.monotonic() - began > within_s:
            raise AssertionError(f"{what}: not within {within_s:.0f} s")
        await asyncio.sleep(0.1)
    return time.monotonic() - began


def run_in_own_folder(name: str, holds: Callable[[Path], bool], passed: str, failed: str) -> None:
    """Run a campaign in a folder of its own, and print one of two sentences; exit status 1 if it does not hold."""
    log.configure("error", "console")
    with own_folder(name) as folder:
        if not holds(folder):
            print(f"{failed} The logs are in {folder}.")
            sys.exit(1)
    print(passed)


@contextmanager
def own_folder(name: str) -> Iterator[Path]:
    """A new folder for everything that a campaign writes. It is kept if the block raises, as `sys.exit` does."""
    folder = Path(tempfile.mkdtemp(prefix=f"ledgerline-{name}-"))
    folder.chmod(0o755)  # the account that runs the servers for root must reach it
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def mounted_small(folder: Path, megabytes: int) -> bool:
    """Put a small file system at `folder`; False without the right to mount."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "ledgerline-campaign", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def unmount(folder: Path) -> None:
    """Unmount it."""
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


async def indexer_status(world: World) -> tuple[int, dict[str, Any]]:
    """Exit status and answer of `python -m indexer status --json`; status -1 if it takes longer than 5 s."""
    log = world.folder / "status.log"
    log.unlink(missing_ok=True)
    environment = {"DATABASE_URL": world.database_url, "DATA_DIR": str(world.folder / "ours")} | ANY_AGE
    process = Process(["indexer", "status", "--network", NETWORK, "--json"], environment, log)
    try:
        status = await asyncio.to_thread(process.ends, 8)
    except subprocess.TimeoutExpired:
        process.kill()
        return -1, {}
    try:
        return status, json.loads(process.output())
    except ValueError:
        return status, {}
