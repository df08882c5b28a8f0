"""The service on a separate database, for the tests of chains and of processes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest

from shared.servers import Servers
from tests.chain.harness import Ledgerline
from tests.conftest import Finish, copy_of

NewLedgerline = Callable[[], Ledgerline]


@pytest.fixture(scope="module")
def new_ledgerline(
    session_servers: Servers,
    service_redis_url: str,
    template_database: str,
    finish: Finish,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[NewLedgerline]:
    """Makes one with a new database on each call; all are removed after the module."""
    made: dict[str, Ledgerline] = {}

    def new() -> Ledgerline:
        name = f"ledgerline_test_{uuid4().hex}"
        finish(execute(session_servers.database_url, copy_of(template_database, name)))
        directory: Path = tmp_path_factory.mktemp("ledgerline")
        url = urlsplit(session_servers.database_url)._replace(path=f"/{name}").geturl()
        made[name] = Ledgerline(url, service_redis_url, directory)
        return made[name]

    yield new
    for name, ledgerline in made.items():
        ledgerline.close()
        finish(execute(session_servers.database_url, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
def ledgerline(new_ledgerline: NewLedgerline) -> Ledgerline:
    return new_ledgerline()


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
