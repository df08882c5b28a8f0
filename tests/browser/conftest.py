"""A headless Chromium, and an API for it to visit."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from shared import database
from shared.network import PREVIEW
from shared.servers import Servers
from tests.api.chains import Chain
from tests.api.client import serving
from tests.api.conftest import api, chain, db, environment, indexer, no_aggregator
from tests.api.partners import BOOTSTRAP_KEY
from tests.api.payments import ALICE, pays
from tests.browser.pages import chromium
from tests.browser.site import Site
from tests.conftest import Finish, copy_of

if TYPE_CHECKING:
    from playwright.async_api import Browser

__all__ = ["api", "chain", "db", "environment", "indexer", "no_aggregator"]


@pytest.fixture
async def browser() -> AsyncIterator["Browser"]:
    """A browser for one test."""
    async with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def site_environment(
    session_servers: Servers,
    service_redis_url: str,
    template_database: str,
    finish: Finish,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, str]]:
    """The environment of an API with a separate database, which is removed after this file."""
    name = f"ledgerline_test_{uuid4().hex}"
    finish(execute(session_servers.database_url, copy_of(template_database, name)))
    data_dir: Path = tmp_path_factory.mktemp("site")
    yield {
        "DATABASE_URL": urlsplit(session_servers.database_url)._replace(path=f"/{name}").geturl(),
        "REDIS_URL": service_redis_url,
        "DATA_DIR": str(data_dir),
        "BOOTSTRAP_ADMIN_KEY": BOOTSTRAP_KEY,
    }
    finish(execute(session_servers.database_url, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(site_environment: dict[str, str]) -> AsyncIterator[Site]:
    """A service whose chain has one transaction, and a browser."""
    db = await database.connect(site_environment["DATABASE_URL"], PREVIEW)
    await Chain(db).append(10, pays("first", ALICE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("api.usage.queue._LAST_LOOKS_S", 0)  # no aggregator runs here
        async with chromium() as browser, serving(site_environment) as api:
            yield Site(api, browser, db)
    db.terminate()


async def execute(url: str, statement: str) -> None:
    db = await asyncpg.connect(url)
    await db.execute(statement)
    await db.close()
