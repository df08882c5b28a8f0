"""PgBouncer in front of Postgres: session pooling works, transaction pooling is refused immediately."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from shared import database
from shared.network import MAINNET, PREVIEW
from tests import programs
from tests.chain.harness import Process, until
from tests.ports import free_port
from tests.processes.api_process import BOOTSTRAP_KEY, get, running

pytestmark = programs.needs("pgbouncer")

Bouncer = Callable[..., str]


@pytest.fixture
def bouncer() -> Iterator[Bouncer]:
    """Starts PgBouncer in front of a database; returns the address through it."""
    folder = Path(tempfile.mkdtemp(prefix="ledgerline-bouncer-"))
    started: list[subprocess.Popen[bytes]] = []

    def start(url: str, mode: str, **settings: str) -> str:
        parts, port = urlsplit(url), free_port()
        name = parts.path.removeprefix("/")
        of = f"host={parts.hostname} port={parts.port} user={parts.username} password={parts.password}"
        lines = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(port),
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": mode,
            "max_client_conn": "200",
            "default_pool_size": "60",
        } | settings
        file = folder / "pgbouncer.ini"
        told = "\n".join(f"{key} = {value}" for key, value in lines.items())
        file.write_text(f"[databases]\n{name} = {of}\n[pgbouncer]\n{told}\n")
        account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if account is not None:
            shutil.chown(folder, account.pw_uid, account.pw_gid)
            shutil.chown(file, account.pw_uid, account.pw_gid)
        started.append(
            subprocess.Popen(
                ["pgbouncer", "-q", str(file)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                user=None if account is None else account.pw_uid,
                group=None if account is None else account.pw_gid,
            )
        )
        return parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl()

    yield start
    for process in started:
        process.kill()
        process.wait()
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget detected poolers, so that each test detects them again."""
    monkeypatch.setattr(database, "_own_sessions", set())


async def connected(url: str) -> asyncpg.Connection:
    """A connection through a PgBouncer that may still be starting."""
    while True:
        try:
            return await database.connect(url, PREVIEW)
        except ConnectionRefusedError:
            pass


def test_everything_works_with_session_pooling(bouncer: Bouncer, environment: dict[str, str], tmp_path: Path) -> None:
    settings = environment | {"DATABASE_URL": bouncer(environment["DATABASE_URL"], "session")}
    settings["BOOTSTRAP_ADMIN_KEY"] = BOOTSTRAP_KEY
    with running(settings, tmp_path, "--workers", "2") as (_, port):
        until("an answer", lambda: get(port) == 200)
        assert get(port, "/metrics") == 200
        indexer = Process(
            ["indexer", "run", "--network", "preview", "--ogmios-url", f"ws://127.0.0.1:{free_port()}"],
            settings,
            tmp_path / "indexer.log",
        )
        worker = Process(["dramatiq", "api.worker", "-p", "1", "-t", "1"], settings, tmp_path / "worker.log")
        try:
            indexer.says("waiting", "ogmios")
            worker.says("aggregator.ready")
        finally:
            assert indexer.stop() == 0
            worker.stop()


async def test_each_connection_reads_its_own_chain_with_session_pooling(bouncer: Bouncer, database_url: str) -> None:
    url = bouncer(database_url, "session")
    first = await connected(url)
    second = await database.connect(url, MAINNET)
    assert await first.fetchval("SHOW search_path") == "chain_preview"
    assert await second.fetchval("SHOW search_path") == "chain_mainnet"
    assert await database.try_to_lead(first, PREVIEW)
    await first.close()
    await second.close()


@pytest.mark.parametrize("round_robin", ["0", "1"])
async def test_transaction_pooling_is_refused(bouncer: Bouncer, database_url: str, round_robin: str) -> None:
    url = bouncer(database_url, "transaction", server_round_robin=round_robin)
    for _ in range(5):
        with pytest.raises(database.SharedSession, match="expected session pooling"):
            await connected(url)


def test_a_process_logs_why_it_waits_with_transaction_pooling(
    bouncer: Bouncer, environment: dict[str, str], tmp_path: Path
) -> None:
    settings = environment | {"DATABASE_URL": bouncer(environment["DATABASE_URL"], "transaction")}
    with running(settings, tmp_path) as (api, _):
        api.says("waiting", "expected session pooling")
