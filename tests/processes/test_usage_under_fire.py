"""Each answered request of a credential is counted once, even if processes are killed."""

import asyncio
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import asyncpg
import msgspec
import psutil
import pytest

from api.usage.spool import HEADER_BYTES
from shared import servers, settings
from shared.servers.embedded import Postgres, Server, Valkey
from tests.chain.harness import Process
from tests.patience import PATIENCE_S
from tests.ports import free_port
from tests.processes.process_list import processes_of

CONNECTIONS = 20
REQUESTS = 5_000
RESTARTS = 6
# Requests continue during the kills; this is the time to recover from each.
BETWEEN_KILLS_S = 2.0
BOOTSTRAP_KEY = "iiak_admin_" + "0" * 40
NOBODY = "addr_test1vrm9x2zsux7va6w892g38tvchnzahvcd9tykqf3ygnmwtaqyfg52x"
PATHS = (f"/v1/tx/history/{NOBODY}", "/v1/tx/history/nonsense", "/v1/tx/hash/" + "0" * 64)


class Answered(msgspec.Struct):
    """The answers that the clients saw."""

    authenticated: Counter[bool] = msgspec.field(default_factory=Counter)  # by success
    refused: int = 0  # before the key was known to be good, as with Postgres and Valkey both away
    broken: int = 0  # connections that ended without an answer: possibly counted

    @property
    def requests(self) -> int:
        return self.authenticated.total() + self.refused + self.broken


class Service:
    """An API with two workers and an aggregator on separate embedded servers."""

    def __init__(self, folder: Path) -> None:
        self.data_dir = folder / "data"
        self.port = free_port()
        self._folder = folder
        self._settings = {"DATA_DIR": str(self.data_dir), "BOOTSTRAP_ADMIN_KEY": BOOTSTRAP_KEY}
        self.api = self._start("api", "--port", str(self.port), "--workers", "2")
        self.aggregator = self._start_aggregator()

    def _start(self, *command: str) -> Process:
        return Process([*command], self._settings, self._folder / f"{command[0]}.log")

    def _start_aggregator(self) -> Process:
        return self._start("dramatiq", "api.worker", "-p", "1", "-t", "2")

    def kill_api_process(self) -> None:
        """Kill one of the two; the parent replaces it."""
        workers = [
            child
            for child in psutil.Process(self.api.popen.pid).children()
            if any("multiprocessing.spawn" in word for word in child.cmdline())
        ]
        random.choice(workers).kill()

    def kill_aggregator(self) -> None:
        """Kill its worker or its main process; the test restarts it."""
        whole = psutil.Process(self.aggregator.popen.pid)
        random.choice([whole, *whole.children()]).kill()

    def kill_server(self, kind: type[Server]) -> None:
        """Kill Postgres or Valkey; its supervisor restarts it."""
        pid = kind(self.data_dir).pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def keep_aggregator(self) -> None:
        """Restart it if it has ended, as systemd or a container runtime would."""
        if self.aggregator.popen.poll() is not None:
            self.aggregator = self._start_aggregator()

    def stop(self) -> None:
        """Stop both with SIGTERM."""
        for process in (self.api, self.aggregator):
            process.stop()


@pytest.fixture
def service() -> Iterator[Service]:
    """The processes under fire."""
    with tempfile.TemporaryDirectory(prefix="ledgerline-fire-") as name:
        Path(name).chmod(0o755)  # the account that runs the servers for root has to reach it
        running = Service(Path(name))
        try:
            yield running
        finally:
            for process in (running.api, running.aggregator):
                process.kill()
            deadline = time.monotonic() + PATIENCE_S
            while processes_of(Path(name)) and time.monotonic() < deadline:
                time.sleep(0.1)
            for left in processes_of(Path(name)):
                with suppress(psutil.NoSuchProcess):
                    left.kill()


class ClientConnection:
    """A client's connection, reopened when it breaks."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, key: str, body: bytes = b"") -> tuple[int, bytes, bytes]:
        """Status, head and body of the answer. Raises OSError or IncompleteReadError without an answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        try:
            head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: {len(body)}"
            writer.write(head.encode() + b"\r\n\r\n" + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            return int(answer.split()[1]), answer, await reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError):
            self._streams = None
            writer.close()
            raise


async def test_each_answered_request_is_counted_once_while_processes_are_killed(service: Service) -> None:
    await until(lambda: ready(service))
    keys = await new_keys(service.port)
    async with servers.running(settings.read({"DATA_DIR": str(service.data_dir)})) as found:
        await play_a_chain(found.database_url)
        kills: list[Callable[[], None]] = [
            service.kill_aggregator,
            lambda: service.kill_server(Valkey),
            service.kill_api_process,
            lambda: service.kill_server(Postgres),
            service.kill_aggregator,
            service.kill_api_process,
            lambda: service.kill_server(Valkey),
        ]
        answered, firing = Answered(), asyncio.Event()
        clients = [asyncio.create_task(call(service.port, keys, answered, firing)) for _ in range(CONNECTIONS)]
        for kill in kills:
            await asyncio.sleep(BETWEEN_KILLS_S)
            kill()
            await asyncio.sleep(0.1)
            service.keep_aggregator()
        firing.set()
        await asyncio.gather(*clients)
        assert answered.requests >= REQUESTS
        assert answered.broken <= CONNECTIONS * len(kills)
        assert answered.authenticated.total() > REQUESTS / 2

        await until(lambda: settled(found.database_url, service))
        counted = await requests_in_table(found.database_url)
    for success in (True, False):
        seen = answered.authenticated[success]
        assert seen <= counted[success] <= seen + answered.broken, (answered, counted)
    assert counted.total() <= answered.authenticated.total() + answered.broken, (answered, counted)
    service.stop()


async def call(port: int, keys: list[str], answered: Answered, firing: asyncio.Event, requests: int = REQUESTS) -> None:
    """Send requests over one connection until the kills are over and all clients together have sent `requests`."""
    connection, chance = ClientConnection(port), random.Random(0)
    while not firing.is_set() or answered.requests < requests:
        try:
            status, head, _ = await connection.ask("GET", chance.choice(PATHS), chance.choice(keys))
        except ConnectionRefusedError:
            await asyncio.sleep(0.05)
        except (OSError, asyncio.IncompleteReadError):
            answered.broken += 1
        else:
            if b"\r\nRateLimit-Limit: " in head:  # NOTE: in every answer, a CORS header contains its name
                answered.authenticated[status < 400] += 1
            else:
                assert status == 503, head
                answered.refused += 1
                await asyncio.sleep(0.01)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something to be true."""
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():
            await asyncio.sleep(0.1)


async def ready(service: Service) -> bool:
    """Whether the API answers."""
    try:
        status, _, _ = await ClientConnection(service.port).ask("GET", "/health", "")
    except (OSError, asyncio.IncompleteReadError):
        return False
    return status == 200


async def new_keys(port: int) -> list[str]:
    """API keys of one partner, with limits that some of the requests exceed."""
    connection = ClientConnection(port)

    async def made(path: str, key: str, **body: object) -> dict[str, msgspec.Raw]:
        status, _, answer = await connection.ask("POST", f"/v1/admin/{path}", key, msgspec.json.encode(body))
        assert status == 201, answer
        data: dict[str, msgspec.Raw] = msgspec.json.decode(answer, type=dict[str, msgspec.Raw])
        return msgspec.json.decode(data["data"], type=dict[str, msgspec.Raw])

    admin_key = msgspec.json.decode((await made("admin-keys", BOOTSTRAP_KEY, entity_name="x"))["key"], type=str)
    user_id = msgspec.json.decode((await made("users", admin_key, name="x"))["id"], type=str)
    keys = []
    for limit in (10_000, 10_000, 500):
        fields = {"name": "x", "user_account_id": user_id, "network_id": 1, "rate_limit_per_minute": limit}
        keys.append(msgspec.json.decode((await made("credentials", admin_key, **fields))["api_key"], type=str))
    return keys


async def play_a_chain(database_url: str) -> None:
    """An index of preview with one block, so that some answers are successes."""
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "INSERT INTO chain_preview.tip (slot_no, block_no, block_hash, first_block_no, tx_count, phase)"
        " VALUES (1, 1, $1, 0, 0, 'live')",
        bytes(32),
    )
    await connection.close()


async def requests_in_table(database_url: str) -> Counter[bool]:
    """The counts in the table, by success. The breakdown has the same."""
    connection = await asyncpg.connect(database_url)
    row = await connection.fetchrow("SELECT coalesce(sum(successful), 0), coalesce(sum(failed), 0) FROM partner.usage")
    by_hour = await connection.fetchrow(
        "SELECT coalesce(sum(requests) FILTER (WHERE status_class < 4), 0),"
        " coalesce(sum(requests) FILTER (WHERE status_class >= 4), 0) FROM partner.usage_hour"
    )
    await connection.close()
    assert row is not None
    assert row == by_hour
    return Counter({True: int(row[0]), False: int(row[1])})


async def settled(database_url: str, service: Service) -> bool:
    """Whether the table has every record of every spool, those of killed workers included."""
    service.keep_aggregator()
    try:
        connection = await asyncpg.connect(database_url, timeout=5)
        marks = dict(await connection.fetch("SELECT spool, next_offset FROM partner.usage_batch"))
        await connection.close()
    except (OSError, asyncpg.PostgresError):
        return False
    files = {path.stem: path.stat().st_size - HEADER_BYTES for path in (service.data_dir / "usage").glob("*.spool")}
    return all(marks.get(name, 0) == size for name, size in files.items())


async def test_usage_continues_after_ordinary_restarts_of_postgres(service: Service) -> None:
    """A fast shutdown ends connections with any kind of error, including unlisted ones."""
    await until(lambda: ready(service))
    keys = await new_keys(service.port)
    async with servers.running(settings.read({"DATA_DIR": str(service.data_dir)})) as found:
        await play_a_chain(found.database_url)
        answered, firing = Answered(), asyncio.Event()
        clients = [asyncio.create_task(call(service.port, keys, answered, firing, 0)) for _ in range(CONNECTIONS)]
        for _ in range(RESTARTS):
            await until(partial(asked_since, answered, answered.authenticated.total() + 200))
            pid = Postgres(service.data_dir).pid()
            assert pid is not None
            os.kill(pid, signal.SIGINT)
            await until(partial(has_restarted, service, pid))
        firing.set()
        await asyncio.gather(*clients)
        await until(lambda: settled(found.database_url, service))
        counted = await requests_in_table(found.database_url)
        _, _, metrics = await ClientConnection(service.port).ask("GET", "/metrics", "")
    assert answered.authenticated.total() <= counted.total() <= answered.authenticated.total() + answered.broken
    assert b"ledgerline_usage_lag_seconds 0.0\n" in metrics
    assert b"ledgerline_usage_waiting_bytes 0.0\n" in metrics
    service.stop()


async def asked_since(answered: Answered, count: int) -> bool:
    """Whether that many requests have been answered."""
    return answered.authenticated.total() >= count


async def has_restarted(service: Service, pid: int) -> bool:
    """Whether Postgres has been restarted since, and accepts connections."""
    server = Postgres(service.data_dir)
    return server.pid() not in (None, pid) and await server.state() == "up"
