"""The API's processes: start, waiting, loss of processes, end."""

import http.client
import json
import os
import resource
import signal
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import psutil
import pytest

from api.keys import tokens
from tests.chain.fixtures import execute
from tests.chain.harness import Process, issue_keys, until
from tests.conftest import Finish
from tests.patience import OwnTime
from tests.ports import free_port
from tests.processes.api_process import BOOTSTRAP_KEY, get, running
from tests.processes.relay import TcpRelay


def alive_process(pid: int) -> psutil.Process | None:
    """A process that has not ended; None for a zombie."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except psutil.NoSuchProcess:
        return None


def processes_of(api: Process, count: int) -> list[psutil.Process]:
    """The processes that answer, once there are `count`."""

    def listening() -> list[psutil.Process]:
        lines = [json.loads(line) for line in api.output().splitlines() if line.startswith("{")]
        pids = [line["pid"] for line in lines if line["event"] == "api.listening"]
        alive = [process for pid in pids if (process := alive_process(pid)) is not None]
        return alive if len(alive) == count else []

    found: list[psutil.Process] = until(f"{count} API processes", listening)
    return found


@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_answers_and_stops_on_sigterm(environment: dict[str, str], tmp_path: Path, workers: str) -> None:
    with running(environment, tmp_path, "--workers", workers) as (api, port):
        until("an answer", lambda: get(port) == 200)
        found = processes_of(api, int(workers))
        assert api.stop() == 0
        assert [alive_process(process.pid) for process in found] == [None] * int(workers)
    assert "Traceback" not in api.output() and "api_process.killed" not in api.output()


def test_a_killed_process_is_replaced_while_the_others_answer(environment: dict[str, str], tmp_path: Path) -> None:
    with running(environment, tmp_path, "--workers", "2") as (api, port):
        before = processes_of(api, 2)
        before[0].kill()
        assert {get(port) for _ in range(20)} <= {200, None}, "a request of the killed process may be cut off"
        until("the killed process is gone", lambda: alive_process(before[0].pid) is None)
        after = processes_of(api, 2)
        assert before[1] in after
        assert before[0] not in after
        assert {get(port) for _ in range(50)} == {200}
        assert get(port, "/metrics") == 200


def test_a_hung_process_is_replaced(environment: dict[str, str], tmp_path: Path) -> None:
    with running(environment, tmp_path, "--workers", "2") as (api, port):
        before = processes_of(api, 2)
        before[0].suspend()
        until("the end of the hung process", lambda: alive_process(before[0].pid) is None)
        after = processes_of(api, 2)
        assert before[1] in after
        assert before[0] not in after
        assert {get(port) for _ in range(50)} == {200}
    (told,) = (line for line in api.output().splitlines() if "api_process.hung" in line)
    assert json.loads(told)["pid"] == before[0].pid


def test_processes_do_not_outlive_their_parent(environment: dict[str, str], tmp_path: Path) -> None:
    with running(environment, tmp_path, "--workers", "2") as (api, _):
        found = processes_of(api, 2)
        os.kill(api.popen.pid, signal.SIGKILL)
        api.popen.wait(10)
        until("the end of the processes", lambda: not any(alive_process(process.pid) for process in found))


def test_the_next_start_removes_the_metrics_of_a_killed_process_and_no_others(
    environment: dict[str, str], tmp_path: Path
) -> None:
    places = tmp_path / "temporary"
    places.mkdir()
    settings = {**environment, "TMPDIR": str(places)}
    with running(settings, tmp_path, "--workers", "2") as (killed, _), running(settings, tmp_path, "--workers", "2"):
        until("both serve", lambda: killed.output().count("api.listening") == 4)
        killed.kill()
        left = set(places.glob("ledgerline-metrics-*"))
        assert len(left) == 2
        with running(settings, tmp_path, "--workers", "2") as (_, port):
            until("an answer", lambda: get(port, "/metrics") == 200)
            now = set(places.glob("ledgerline-metrics-*"))
            assert len(now) == 2
            assert len(now & left) == 1, "that of the living process stays"
    assert list(places.glob("ledgerline-metrics-*")) == []


@pytest.mark.parametrize("workers", ["1", "2"])
def test_half_open_connections_do_not_use_up_the_descriptors(
    environment: dict[str, str], tmp_path: Path, workers: str
) -> None:
    raise_descriptors()
    with running(environment, tmp_path, "--workers", workers) as (api, port), ExitStack() as opened:
        resource.prlimit(api.popen.pid, resource.RLIMIT_NOFILE, (256, 256))  # before it has begun to serve
        until("an answer", lambda: get(port) == 200)
        of_old = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        opened.callback(of_old.close)
        assert answered(of_old) == 200
        for number in range(2_300):
            attacker = opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
            with suppress(ConnectionError):
                attacker.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
            if number % 100 == 99:
                asked = OwnTime(api.popen.pid)
                assert get(port) == 200, f"with {number + 1} half-open connections"
                assert asked.seconds < 3
        assert answered(of_old) == 200, "a connection that has asked something is kept"
        assert get(port, "/ready") == 503
        for process in processes_of(api, int(workers)):
            assert process.num_fds() < 256
    assert "Traceback" not in api.output()
    assert "Too many open files" not in api.output()


def raise_descriptors() -> None:
    """Raise this process' limit of descriptors to its maximum."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def answered(connection: http.client.HTTPConnection) -> int:
    """The status of an answer over this connection, which stays open."""
    connection.request("GET", "/health")
    response = connection.getresponse()
    response.read()
    return response.status


def test_a_hung_process_does_not_keep_the_api_from_stopping(environment: dict[str, str], tmp_path: Path) -> None:
    with running(environment, tmp_path, "--workers", "2") as (api, _):
        found = processes_of(api, 2)
        found[0].suspend()
        assert api.stop() == 0
        until("the end of the processes", lambda: not any(alive_process(process.pid) for process in found))


def test_requests_under_way_are_answered_before_the_end(
    environment: dict[str, str], tmp_path: Path, finish: Finish
) -> None:
    settings = {**environment, "BOOTSTRAP_ADMIN_KEY": BOOTSTRAP_KEY}
    with running(settings, tmp_path) as (api, port):
        until("an answer", lambda: get(port) == 200)
        db = finish(asyncpg.connect(environment["DATABASE_URL"]))
        finish(db.execute("BEGIN; LOCK TABLE partner.admin_key"))
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            head = f"GET /v1/admin/admin-keys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {BOOTSTRAP_KEY}\r\n\r\n"
            connection.sendall(head.encode())
            until("the request waits for the table", lambda: finish(db.fetch("SELECT FROM pg_locks WHERE NOT granted")))
            api.popen.send_signal(signal.SIGTERM)
            until("nobody new is let in", lambda: get(port) is None)
            finish(db.execute("COMMIT"))
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200 OK\r\n")
        finish(db.close())
        assert api.ends() == 0


IMPORTED = """
import importlib, pathlib, sys, time
pathlib.Path({marker!r}).touch()
time.sleep({hangs_s})
sys.path.remove({folder!r})
del sys.modules["ogmios"]
sys.modules["ogmios"] = importlib.import_module("ogmios")
"""

TRANSACTION = "84a3008001800200a0f5f6"  # nothing spent, nothing paid


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("hangs_s", [0, 600])
def test_it_ends_on_sigterm_while_a_thread_imports_the_nodes_client(
    environment: dict[str, str], tmp_path: Path, finish: Finish, hangs_s: int, workers: str
) -> None:
    """The request is answered; if the import lasts too long, as on a dead disk, the process ends without it."""
    folder, marker = tmp_path / "packages", tmp_path / "importing"
    folder.mkdir()
    module = IMPORTED.format(marker=str(marker), folder=str(folder), hangs_s=hangs_s)
    (folder / "ogmios.py").write_text(module)
    settings = {**environment, "OGMIOS_URL_PREVIEW": "ws://127.0.0.1:1", "PYTHONPATH": str(folder)}
    with running(settings, tmp_path, "--workers", workers) as (api, port):
        until("an answer", lambda: get(port) == 200)
        (key,) = finish(issue_keys(environment["DATABASE_URL"], "preview", 1))
        finish(execute(environment["DATABASE_URL"], "UPDATE partner.credential SET scopes = '{submit}'"))
        with socket.create_connection(("127.0.0.1", port), timeout=15) as connection:
            body = f'{{"cbor": "{TRANSACTION}"}}'
            head = f"POST /v1/tx/evaluate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            until("it imports", marker.exists)
            assert api.stop() == 0
            answered = connection.recv(65_536).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            assert answered or "process.cut_short" in api.output(), (
                "a busy machine may import for longer than the limit"
            )
    assert "Traceback" not in api.output()


@pytest.mark.parametrize(("name", "what"), [("DATABASE_URL", "postgres"), ("REDIS_URL", "valkey")])
def test_it_waits_for_a_server_and_logs_the_wait(
    environment: dict[str, str], tmp_path: Path, name: str, what: str
) -> None:
    relay = TcpRelay()
    settings = {**environment, name: relay.in_front_of(environment[name])}
    with running(settings, tmp_path) as (api, port):
        api.says("waiting", what)
        assert get(port) is None
        relay.open()
        api.says("reached", what)
        until("an answer", lambda: get(port) == 200)
    relay.end()


def test_it_waits_for_a_database_that_does_not_exist_yet(
    environment: dict[str, str], tmp_path: Path, finish: Finish
) -> None:
    name = f"ledgerline_test_{uuid4().hex}"
    settings = {**environment, "DATABASE_URL": urlsplit(environment["DATABASE_URL"])._replace(path=f"/{name}").geturl()}
    db = finish(asyncpg.connect(environment["DATABASE_URL"]))
    try:
        with running(settings, tmp_path) as (api, port):
            api.says("waiting", name)
            finish(db.execute(f"CREATE DATABASE {name}"))
            until("an answer", lambda: get(port) == 200)
        assert "Traceback" not in api.output()
    finally:
        finish(db.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        finish(db.close())


def test_it_stops_while_it_waits(environment: dict[str, str], tmp_path: Path) -> None:
    with running({**environment, "DATABASE_URL": f"postgresql://127.0.0.1:{free_port()}/x"}, tmp_path) as (api, _):
        api.says("waiting", "postgres")
        assert api.stop() == 0


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"API_PORT": "http"}, "API_PORT"),
        ({"DATABASE_URL": "mysql://x"}, "DATABASE_URL"),
        ({"BOOTSTRAP_ADMIN_KEY": "secret"}, "BOOTSTRAP_ADMIN_KEY"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(
    environment: dict[str, str], tmp_path: Path, settings: dict[str, str], line: str
) -> None:
    api = Process(["api"], {**environment, **settings}, tmp_path / "api.log")
    assert api.ends() == 2
    assert api.output().count("\n") == 1
    assert api.output().startswith(line)
    assert "secret" not in api.output()


@pytest.mark.parametrize("revoked_at", ["NULL", "now()"])
def test_a_bootstrap_key_that_belongs_to_a_partner_is_refused_in_one_line(
    environment: dict[str, str], tmp_path: Path, finish: Finish, revoked_at: str
) -> None:
    columns = "(entity_name, key_prefix, permissions, key_hash, revoked_at)"
    values = f"('ACME', '', '{{}}', '\\x{tokens.hash_of(BOOTSTRAP_KEY).hex()}', {revoked_at})"
    finish(execute(environment["DATABASE_URL"], f"INSERT INTO partner.admin_key {columns} VALUES {values}"))  # noqa: S608
    settings = {**environment, "BOOTSTRAP_ADMIN_KEY": BOOTSTRAP_KEY}
    api = Process(["api", "--port", str(free_port())], settings, tmp_path / "api.log")
    assert api.ends() == 2
    expected = "BOOTSTRAP_ADMIN_KEY is (not shown), expected a key that was not issued to a partner\n"
    assert api.output() == expected


def test_a_port_that_is_taken_is_refused_in_one_line(environment: dict[str, str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        api = Process(["api", "--port", str(port)], environment, tmp_path / "api.log")
        assert api.ends() == 2
    assert api.output().count("\n") == 1
    assert f"127.0.0.1:{port}" in api.output()


@pytest.mark.parametrize(("version", "cause"), [(9999, "upgrade the program"), (5, "create a new database")])
def test_a_schema_that_cannot_be_migrated_is_refused_in_one_line(
    environment: dict[str, str], tmp_path: Path, finish: Finish, version: int, cause: str
) -> None:
    finish(execute(environment["DATABASE_URL"], f"UPDATE partner.schema_version SET version = {version}"))  # noqa: S608
    for command in ("migrate", f"--port={free_port()}"):
        api = Process(["api", command], environment, tmp_path / f"{command}.log")
        assert api.ends() == 2
        assert api.output().count("\n") == 1
        assert f"schema version {version}," in api.output() and cause in api.output()
