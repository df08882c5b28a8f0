"""Real processes around a chain under test: the indexer, the API, and a caller with a key."""

import asyncio
import http.client
import json
import lzma
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email.message import Message
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import asyncpg

from devnet import blocks
from devnet.dialect import Dialect
from devnet.ledger import Ledger
from devnet.parameters import MAX_SUPPLY
from devnet.server import NodeServer
from devnet.session import Session
from tests.chain.dump import Dump, dump
from tests.patience import PATIENCE_S, OwnTime
from tests.ports import free_port
from tests.programs import NO_AUTHORITIES

Json = dict[str, Any]
T = TypeVar("T")

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "tests" / "vectors"
CUT = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
)
NETWORK_IDS = {"mainnet": 0, "preview": 1, "preprod": 2}


def recorded(name: str) -> Path:
    """A file of real blocks, or of genesis outputs."""
    return VECTORS / name


def blocks_of(path: Path) -> Iterator[Json]:
    with lzma.open(path, "rt") as lines:
        yield from map(json.loads, lines)


def until(what: str, holds: Callable[[], Any], within_s: float = PATIENCE_S, every_s: float = 0.05) -> Any:
    """Wait until `holds` returns something true, and return it."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        found = holds()
        if found:
            return found
        time.sleep(every_s)
    raise AssertionError(f"{what}: not within {within_s} s")


class Process:
    """A process of the service. Its output goes to a file, which a failed test can quote."""

    def __init__(self, args: list[str], settings: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", *args],
                cwd=ROOT,
                env=environment(settings),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def says(self, *words: str) -> None:
        """Wait for a line of output with all these words."""

        def said() -> bool:
            if any(all(word in line for word in words) for line in self.output().splitlines()):
                return True
            assert self.popen.poll() is None, f"exited with {self.popen.returncode}: {self.output()[-3000:]}"
            return False

        try:
            until(f"a line with {words}", said)
        except AssertionError as missing:
            raise AssertionError(f"{missing}; the output is: {self.output()[-3000:]}") from None

    def ends(self, within_s: float = PATIENCE_S) -> int:
        """Wait for its end; returns the exit status. Raises subprocess.TimeoutExpired."""
        return self.popen.wait(within_s)

    def stop(self, within_s: float = 10) -> int:
        """Send SIGTERM: every process of the service ends within 10 s."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
        took = OwnTime(self.popen.pid)
        while self.popen.poll() is None:
            if took.seconds > within_s:
                self.kill()
                raise AssertionError(f"alive {within_s} s after SIGTERM: {self.output()[-3000:]}")
            time.sleep(0.05)
        return self.popen.returncode

    def kill(self) -> None:
        """Send SIGKILL to it and its children."""
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait(PATIENCE_S)


def environment(settings: dict[str, str]) -> dict[str, str]:
    ours = (
        "DATABASE_URL",
        "READ_DATABASE_URL",
        "REDIS_URL",
        "OGMIOS_URL_",
        "API_",
        "BOOTSTRAP_",
        "TOKEN_",
        "DATA_DIR",
        "LOG_",
        "ACCESS_LOG",
    )
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return inherited | {"LOG_FORMAT": "json", "PYTHONUNBUFFERED": "1"} | NO_AUTHORITIES | settings


class Rewardless(NodeServer):
    """A node whose accounts have no rewards, so that stakes in an index depend only on the blocks.

    NOTE: the blocks withdraw rewards nevertheless. What an epoch paid does not add up if a rollback undoes a withdrawal
    after its account was read, and `verify` reports it.
    """

    def query(self, session: Session, method: str, params: Any) -> Any:
        if method == "queryLedgerState/governanceProposals":
            return []
        if method == "queryLedgerState/liveStakeDistribution":
            return self._live_stakes_of_outputs(self._acquired_ledger(session))
        if asks_for_snapshot(method, params):
            outputs = self._acquired_ledger(session).stake_snapshot_of_outputs
            return {pool: {"id": pool, "stake": {"ada": {"lovelace": stake}}} for pool, stake in outputs.items()}
        return without_rewards(super().query(session, method, params))

    def _acquired_ledger(self, session: Session) -> Ledger:
        index = self.index_of(session.acquired)
        return self.ledger_after(len(self.blocks) - 1 if index is None else index)

    def _live_stakes_of_outputs(self, ledger: Ledger) -> Json:
        stakes = Counter[str]()
        for credential, account in ledger.accounts.items():
            if account.pool in ledger.pools:
                stakes[account.pool] += ledger.stakes.get(credential, 0)
        shares = {pool: Fraction(stake, MAX_SUPPLY - ledger.reserves) for pool, stake in stakes.items() if stake}
        return {pool: {"stake": "{}/{}".format(*share.as_integer_ratio())} for pool, share in shares.items()}


def asks_for_snapshot(method: str, params: Any) -> bool:
    """Whether a query asks for the stakes of the last snapshot, which vote."""
    return method == "queryLedgerState/stakePools" and bool(json.loads(bytes(params)).get("includeStake"))


def without_rewards(answer: Any) -> Any:
    if isinstance(answer, list):
        return [without_rewards(each) for each in answer]
    if isinstance(answer, dict):
        nothing = {"ada": {"lovelace": 0}}
        return {key: nothing if key == "rewards" else without_rewards(each) for key, each in answer.items()}
    return answer


class Node:
    """The devnet server in a separate thread, so that a test can kill, wait and query synchronously.

    `do` runs a call in that thread and returns its result; every use of `server` goes through it.
    """

    def __init__(
        self,
        chain: blocks.Chain,
        dialect: Dialect | None = None,
        port: int = 0,
        kind: Callable[..., NodeServer] = Rewardless,
    ) -> None:
        self.server = kind(chain, dialect=dialect, port=port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "Node":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.server.__aenter__(), self._loop).result(30)
        return self

    def __exit__(self, *failure: object) -> None:
        asyncio.run_coroutine_threadsafe(self.server.__aexit__(None, None, None), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return self.server.url

    def do(self, call: Callable[..., T], *args: Any) -> T:
        async def called() -> T:
            return call(*args)

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result(60)

    def blocks(self) -> list[Json]:
        """The current chain of the node, in its fullest form."""
        return [block.decoded() for block in list(self.server.blocks)]

    def tip(self) -> Json:
        tip = self.server.blocks[-1]
        return {"slot": tip.slot, "id": tip.id}


class Caller:
    """One keep-alive connection with API keys of one network, used in turn to stay below the rate limits."""

    def __init__(self, port: int, keys: list[str]) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        self.port, self.keys = port, keys
        self.asked = 0

    def get(self, path: str, **query: Any) -> tuple[int, Json]:
        status, _, body = self._ask("GET", f"{path}?{urlencode(query)}" if query else path)
        return status, json.loads(body)

    def ok(self, path: str, **query: Any) -> Json:
        """The body of a 200 answer; any other is a failure."""
        status, body = self.get(path, **query)
        assert status == 200 and body["success"] is True, (path, query, status, body)
        return body

    def text(self, path: str) -> tuple[Message, str]:
        """Headers and content of a 200 answer that is a file; any other is a failure."""
        status, headers, body = self._ask("GET", path)
        assert status == 200, (path, status, body)
        return headers, body.decode()

    def bulk(self, kind: str, ids: Sequence[str]) -> list[Any]:
        """The answers about several ids in one request."""
        status, _, body = self._ask("POST", f"/v1/bulk/{kind}", json.dumps({"ids": ids}).encode())
        assert status == 200, (kind, ids, status, body)
        told: list[Any] = json.loads(body)["data"]
        return told

    def _ask(self, method: str, target: str, body: bytes | None = None) -> tuple[int, Message, bytes]:
        self.asked += 1
        headers = {"Authorization": f"Bearer {self.keys[self.asked % len(self.keys)]}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        self.connection.request(method, target, body, headers)
        response = self.connection.getresponse()
        return response.status, response.headers, response.read()


class Looking:
    """A connection for the statements with which a test looks at a database, over and over until something holds.

    It is kept: to open one costs both sides much more than a statement. One that was cut is opened again.
    """

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self._lock = threading.Lock()  # a test may look from another thread
        self._loop = asyncio.new_event_loop()
        self._connection: asyncpg.Connection | None = None
        self._network = ""

    def rows(self, network: str, statement: str) -> list[asyncpg.Record]:
        with self._lock:
            return self._loop.run_until_complete(self._rows(network, statement))

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.terminate()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()

    async def _rows(self, network: str, statement: str) -> list[asyncpg.Record]:
        if self._connection is not None:
            try:
                return await self._fetch(self._connection, network, statement)
            except CUT:
                self._connection = None
        self._connection, self._network = await asyncpg.connect(self._database_url, statement_cache_size=0), ""
        return await self._fetch(self._connection, network, statement)

    async def _fetch(self, connection: asyncpg.Connection, network: str, statement: str) -> list[asyncpg.Record]:
        if network != self._network:
            await connection.execute(f"SET search_path TO chain_{network}")
            self._network = network
        return await found_rows(connection, statement)


class Ledgerline:
    """The service on a separate database: the indexers and API processes of a test, and a caller with keys."""

    caller: Caller

    def __init__(self, database_url: str, redis_url: str, directory: Path) -> None:
        self.database_url = database_url
        self.directory = directory
        self.settings = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "DATA_DIR": str(directory / "data")}
        self._started = 0
        self._looking = Looking(database_url)

    def close(self) -> None:
        """Close what it keeps; a database that is dropped closes it as well."""
        self._looking.close()

    def start(self, *args: str) -> Process:
        """Start one of our commands; the caller ends it."""
        self._started += 1
        return Process(list(args), self.settings, self.directory / f"{self._started}-{args[0]}.log")

    def run(self, *args: str, within_s: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
        """Run one of our commands to its end."""
        return subprocess.run(
            [sys.executable, "-m", *args],
            cwd=ROOT,
            env=environment(self.settings),
            capture_output=True,
            text=True,
            timeout=within_s,
        )

    def start_indexer(self, network: str, ogmios_url: str) -> Process:
        return self.start("indexer", "run", "--network", network, "--ogmios-url", ogmios_url)

    @contextmanager
    def indexing(self, network: str, ogmios_url: str) -> Iterator[Process]:
        process = self.start_indexer(network, ogmios_url)
        try:
            yield process
        finally:
            process.kill()

    @contextmanager
    def serving(self, network: str, workers: int = 1, ogmios_url: str | None = None) -> Iterator[Caller]:
        """The API on a free port, in `workers` processes, with keys for one network, and its node if it may use one."""
        port = free_port()
        self.settings |= {} if ogmios_url is None else {f"OGMIOS_URL_{network.upper()}": ogmios_url}
        process = self.start("api", "--port", str(port), "--workers", str(workers))

        def listens() -> bool:
            assert process.popen.poll() is None, f"the API ended: {process.output()[-3000:]}"
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        try:
            until("the API listens", listens)
            self.caller = Caller(port, asyncio.run(issue_keys(self.database_url, network)))
            yield self.caller
        finally:
            process.kill()

    def tip(self, network: str) -> tuple[int, str] | None:
        """Slot and hash of the last committed block; None in bulk, or before the first one."""
        found = self.rows(network, "SELECT slot_no, block_hash, phase FROM tip")
        return (found[0]["slot_no"], found[0]["block_hash"].hex()) if found and found[0]["phase"] == "live" else None

    def tip_is(self, network: str, block: Json) -> bool:
        tip = self.tip(network)
        return tip is not None and tip[1] == block["id"]

    def is_beyond(self, network: str, slot: int) -> bool:
        tip = self.tip(network)
        return tip is not None and tip[0] > slot

    def rows(self, network: str, statement: str) -> list[asyncpg.Record]:
        """The rows of one statement on a network's tables; none until the tables exist."""
        return self._looking.rows(network, statement)

    def reaches(self, network: str, block: Json, process: Process | None = None, within_s: float = PATIENCE_S) -> None:
        """Wait until a block is the tip; fails if the indexer ends."""

        def reached() -> bool:
            assert process is None or process.popen.poll() is None, f"the indexer ended: {process.output()[-3000:]}"
            return self.tip_is(network, block)

        try:
            until(f"the tip is block {block['id']} at slot {block.get('slot')}", reached, within_s, every_s=0.1)
        except AssertionError as missing:
            said = "" if process is None else process.output()[-3000:]
            raise AssertionError(f"{missing}; the tip is {self.tip(network)}; {said}") from None

    def dump(self, network: str) -> Dump:
        async def dumped() -> Dump:
            connection = await asyncpg.connect(self.database_url)
            try:
                return await dump(connection, f"chain_{network}")
            finally:
                await connection.close()

        return asyncio.run(dumped())


async def query(database_url: str, network: str, statement: str, *args: Any) -> list[asyncpg.Record]:
    """The rows of one statement on a separate connection; none until the tables exist."""
    connection = await asyncpg.connect(database_url, server_settings={"search_path": f"chain_{network}"})
    try:
        return await found_rows(connection, statement, *args)
    finally:
        await connection.close()


async def found_rows(connection: asyncpg.Connection, statement: str, *args: Any) -> list[asyncpg.Record]:
    """The rows of one statement; none until its tables exist."""
    try:
        found: list[asyncpg.Record] = await connection.fetch(statement, *args)
    except asyncpg.UndefinedTableError:
        return []
    return found


async def issue_keys(database_url: str, network: str, count: int = 12) -> list[str]:
    """API keys with the highest rate limit, inserted directly into the partner tables."""
    connection = await asyncpg.connect(database_url)
    try:
        owner = await connection.fetchval(
            "INSERT INTO partner.admin_key (entity_name, key_prefix, key_hash, permissions)"
            " VALUES ('tests', 'iiak_admin_', $1, '{manage_users}') RETURNING id",
            sha256(os.urandom(16)).digest(),
        )
        account = await connection.fetchval(
            "INSERT INTO partner.user_account (admin_key_id, name) VALUES ($1, 'tests') RETURNING id", owner
        )
        keys = [f"iiak_{os.urandom(24).hex()}" for _ in range(count)]
        for key in keys:
            await connection.execute(
                "INSERT INTO partner.credential (user_account_id, admin_key_id, name, api_key_prefix, key_hash,"
                " network_id, rate_limit_per_minute) VALUES ($1, $2, 'tests', $3, $4, $5, 10000)",
                account,
                owner,
                key[:12],
                sha256(key.encode()).digest(),
                NETWORK_IDS[network],
            )
        return keys
    finally:
        await connection.close()
