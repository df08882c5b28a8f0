"""Shared fixtures: one Postgres and one Valkey for the whole run, and new databases of both for each test.

The servers are embedded ones in the folder of this run, or those of TEST_DATABASE_URL and TEST_REDIS_URL.
"""

import asyncio
import gc
import os
import shutil
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import hypothesis
import psutil
import pytest
import redis

from api.usage.spool import Spools
from shared import schema, servers, settings
from tests.placement import Placement
from tests.programs import NO_AUTHORITIES

Finish = Callable[[Coroutine[Any, Any, Any]], Any]

# Databases of Valkey that belong to one worker of a parallel run. It has 16, so four workers can share it.
REDIS_DATABASES = 3  # for `redis_url`, since a test may run several services
_WORKER_DATABASES = REDIS_DATABASES + 1  # and one for `service_redis_url`
FOLDER = "LEDGERLINE_TEST_FOLDER"
# A new database has 800 files. Creating a file takes a disk up to 0.7 ms and memory 0.03 ms.
_MEMORY, _MEMORY_BYTES = Path("/dev/shm"), 8 << 30
_PREFIX = "ledgertest-"  # and the process


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder for all temporary files; the workers of a parallel run find it in their environment."""
    # Hypothesis measures examples against the clock otherwise, and fails on a busy machine.
    hypothesis.settings.register_profile("busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
    hypothesis.settings.load_profile("busy")
    gc.set_threshold(100_000, 50, 1_000)  # the collector would repeatedly scan the models of whole chains
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # some hundred processes are started: compile their modules once
    config.pluginmanager.register(Placement())
    if not hasattr(config, "workerinput"):
        place = _MEMORY if _is_memory_usable() else Path(tempfile.gettempdir())
        for left in place.glob(f"{_PREFIX}*"):
            pid = int(left.name.removeprefix(_PREFIX))
            if pid == os.getpid() or not psutil.pid_exists(pid):
                shutil.rmtree(left, ignore_errors=True)  # of a killed run
        # NOTE: names are short because the path of a Unix socket has at most 107 characters, and tests bind some.
        folder = place / f"{_PREFIX}{os.getpid()}"
        folder.mkdir()
        folder.chmod(0o755)  # the account that runs the servers for root must reach them
        os.environ[FOLDER] = os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        config.option.basetemp = config.option.basetemp or f"{folder}/t"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the files of each folder over the whole run, and end with the short ones of tests/pure.

    Tests of processes mostly wait, and those of chains keep a core busy: they take less time beside each other than in
    turn. Short files at the end leave no worker alone with a long one.
    """
    folders = defaultdict[Path, list[Path]](list)
    for path in dict.fromkeys(item.path for item in items):
        folders[path.parent].append(path)
    order = {
        path: (folder.name == "pure", (place + 0.5) / len(files))
        for folder, files in folders.items()
        for place, path in enumerate(files)
    }
    items.sort(key=lambda item: order[item.path])


def pytest_collection_finish() -> None:
    """Exempt all modules and tests from garbage collection. They stay, and make up most objects of the process."""
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the temporary folder after the last worker has released the servers."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(FOLDER), ignore_errors=True)


def _is_memory_usable() -> bool:
    """Whether a file system in memory can hold the files of a run, programs included."""
    if not _MEMORY.exists() or os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        return False
    available: int = psutil.virtual_memory().available
    return min(shutil.disk_usage(_MEMORY).free, available) > _MEMORY_BYTES


@pytest.fixture(scope="session")
def finish() -> Iterator[Finish]:
    """Runs a coroutine on a loop other than the tests', and returns its result."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    yield lambda coroutine: asyncio.run_coroutine_threadsafe(coroutine, loop).result(60)
    loop.call_soon_threadsafe(loop.stop)


@pytest.fixture(scope="session")
def session_servers(finish: Finish) -> Iterator[servers.Servers]:
    """The servers of this run. Tests use `database_url` and `redis_url` instead."""
    named = {"DATABASE_URL": "TEST_DATABASE_URL", "REDIS_URL": "TEST_REDIS_URL"}
    environ = {name: os.environ[ours] for name, ours in named.items() if ours in os.environ}
    stack = AsyncExitStack()
    running = servers.running(settings.read({**environ, "DATA_DIR": os.environ[FOLDER]}))
    found = finish(stack.enter_async_context(running))
    if "DATABASE_URL" not in environ:
        # A test kills processes, not the machine, so the servers need not sync their disk.
        finish(_execute(found.database_url, "ALTER SYSTEM SET fsync = off"))
        finish(_execute(found.database_url, "SELECT pg_reload_conf()"))
        # Thousands of connections are opened, and each would hash the password 4,096 times.
        finish(_hash_password_once(found.database_url))
    yield found
    finish(stack.aclose())


@pytest.fixture(scope="session")
def template_database(session_servers: servers.Servers, finish: Finish) -> Iterator[str]:
    """The name of a database with our schema and no rows."""
    name = f"ledgerline_template_{uuid4().hex}"

    async def fill() -> None:
        connection = await asyncpg.connect(_with_database(session_servers.database_url, name))
        await schema.migrate(connection)
        await connection.close()

    finish(_execute(session_servers.database_url, f"CREATE DATABASE {name}"))
    finish(fill())
    yield name
    finish(_execute(session_servers.database_url, f"DROP DATABASE {name}"))


@pytest.fixture
def database_url(session_servers: servers.Servers, template_database: str, finish: Finish) -> Iterator[str]:
    """A new database with our schema, for one test."""
    with _new_database(session_servers.database_url, template_database, finish) as url:
        yield url


@pytest.fixture
def another_database_url(session_servers: servers.Servers, template_database: str, finish: Finish) -> Iterator[str]:
    """Another one."""
    with _new_database(session_servers.database_url, template_database, finish) as url:
        yield url


@contextmanager
def _new_database(server_url: str, template: str, finish: Finish) -> Iterator[str]:
    name = f"ledgerline_test_{uuid4().hex}"
    finish(_execute(server_url, copy_of(template, name)))
    yield _with_database(server_url, name)
    finish(_execute(server_url, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
def redis_url(session_servers: servers.Servers) -> str:
    """Databases of Valkey for one test: the one in the address and REDIS_DATABASES - 1 after it.

    They contain only an open life (decision 0021). Without it, the first request would wait 0.6 s for one.
    """
    first = _worker() * _WORKER_DATABASES
    for number in range(first, first + REDIS_DATABASES):
        with redis.Redis.from_url(_with_database(session_servers.redis_url, str(number))) as client:
            client.flushdb()
            client.hset("ledgerline:limits", mapping={"life": f"{uuid4().hex}.1", "began": 0, "opens": 0})
    return _with_database(session_servers.redis_url, str(first))


@pytest.fixture(scope="session")
def service_redis_url(session_servers: servers.Servers) -> str:
    """A database of Valkey for the services that this worker's tests of chains and processes run.

    It is not one of `redis_url`: API processes that share a database share limits, and that fixture empties its own.
    """
    return _with_database(session_servers.redis_url, str(_worker() * _WORKER_DATABASES + REDIS_DATABASES))


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """An empty folder as a process' DATA_DIR."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def spools(data_dir: Path) -> Iterator[Spools]:
    """The spools of one process."""
    made = Spools(data_dir / "usage")
    yield made
    made.close()


@pytest.fixture
def environment(database_url: str, redis_url: str, data_dir: Path) -> dict[str, str]:
    """The environment of a process under test, with that database, Valkey and folder."""
    outside = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    ours = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "DATA_DIR": str(data_dir), "LOG_FORMAT": "json"}
    return {**outside, **NO_AUTHORITIES, **ours}


def copy_of(template: str, name: str) -> str:
    """The statement that makes a new database like another. To copy files costs less than to write each page's log."""
    return f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY"


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


async def _hash_password_once(url: str) -> None:
    """Keep the server's password in a form that costs a client one round of hashing."""
    connection = await asyncpg.connect(url)
    await connection.execute("SELECT pg_advisory_lock(1)")  # other workers do the same
    await connection.execute("SET scram_iterations = 1")
    await connection.execute(f"ALTER ROLE postgres PASSWORD '{urlsplit(url).password}'")
    await connection.close()


def _worker() -> int:
    """The number of this worker of a parallel run."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def _with_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
