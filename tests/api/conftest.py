"""An API for each test, keys to call it with, and chains to query."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from api import worker
from api.keys import tokens
from api.keys.restrictions import SCOPES
from api.usage.queue import UsageBatch, UsageSum
from shared import database
from shared.network import PREVIEW
from tests.api import sandboxes
from tests.api.chains import Chain
from tests.api.client import Client, serving
from tests.api.counting import CHECKOUT
from tests.api.indexers import Indexer
from tests.api.partners import BOOTSTRAP_KEY, Partner, partner_of
from tests.api.sandboxes import Sandbox

IssueKey = Callable[..., Awaitable[str]]
Use = Callable[..., Awaitable[None]]


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """The environment of any process under test, with a bootstrap key."""
    return environment | {"BOOTSTRAP_ADMIN_KEY": BOOTSTRAP_KEY}


@pytest.fixture(autouse=True)
def no_pruning(monkeypatch: pytest.MonkeyPatch) -> None:
    """No API in this process prunes by itself: it would hold the lock, or drop the rows, when a test prunes."""
    monkeypatch.setattr("api.sources.retention._FIRST_WITHIN_S", 1e9)


@pytest.fixture
def no_aggregator(monkeypatch: pytest.MonkeyPatch) -> None:
    """No aggregator runs in this test, so its APIs do not wait for one when they stop."""
    monkeypatch.setattr("api.usage.queue._LAST_LOOKS_S", 0)


@pytest.fixture
async def api(environment: dict[str, str], no_aggregator: None) -> AsyncIterator[Client]:  # noqa: ARG001
    """An API on a free port."""
    async with serving(environment) as client:
        yield client


@pytest.fixture
async def second(environment: dict[str, str], api: Client) -> AsyncIterator[Client]:
    """Another API process as regards keys and limits, on the same database and Valkey as `api`."""
    assert api.port
    async with serving(environment) as client:
        yield client


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the database that the API reads."""
    connection = await database.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture
async def chain(database_url: str) -> AsyncIterator[Chain]:
    """An empty chain of network preview."""
    connection = await database.connect(database_url, PREVIEW)
    yield Chain(connection)
    await connection.close()


@pytest.fixture
async def issue_key(db: asyncpg.Connection) -> IssueKey:
    """Creates an API key of an active account, directly in the tables."""

    async def issue(network_id: int = PREVIEW.network_id, per_minute: int = 10_000) -> str:
        key = tokens.new_api_key()
        await db.execute(
            """
            WITH partner AS (
                INSERT INTO partner.admin_key (entity_name, key_prefix, permissions) VALUES ('tests', '', '{}')
                RETURNING id
            ), account AS (
                INSERT INTO partner.user_account (admin_key_id, name) SELECT id, 'tests' FROM partner
                RETURNING id, admin_key_id
            )
            INSERT INTO partner.credential
                (user_account_id, admin_key_id, rate_limit_per_minute, network_id, key_hash, api_key_prefix, name)
            SELECT id, admin_key_id, $1, $2, $3, $4, 'tests' FROM account
            """,
            per_minute,
            network_id,
            tokens.hash_of(key),
            tokens.prefix_of(key),
        )
        return key

    return issue


@pytest.fixture
async def key(issue_key: IssueKey) -> str:
    """An API key for network preview."""
    return await issue_key()


@pytest.fixture
def bootstrap(api: Client) -> Partner:
    """The operator, with the bootstrap key."""
    return Partner(api, BOOTSTRAP_KEY)


@pytest.fixture
async def partner(api: Client) -> Partner:
    """A partner with every permission."""
    return await partner_of(api, "ACME")


@pytest.fixture
async def rival(api: Client) -> Partner:
    """Another partner with every permission."""
    return await partner_of(api, "Rival")


@pytest.fixture
def use(db: asyncpg.Connection) -> Use:
    """Adds requests of a credential in one minute, by the aggregator's own commit."""
    spools = 0

    async def add(
        credential: dict[str, Any], at: str, successful: int = 0, failed: int = 0, took_ms: int = 0, limited: int = 0
    ) -> None:
        nonlocal spools
        spools += 1
        moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
        minute = int(moment.timestamp()) // 60
        last_us = int(moment.timestamp() * 1e6)
        used = UsageSum(credential["id"], minute, successful, failed, took_ms * 1000, last_us, limited)
        assert await worker.add_batch(db, UsageBatch(f"spool {spools}", 0, 32, [used], []))

    return add


@pytest.fixture
async def credential_id(db: asyncpg.Connection) -> UUID:
    """A credential whose requests are counted."""
    credential_id: UUID = await db.fetchval(
        """
        WITH partner AS (
            INSERT INTO partner.admin_key (entity_name, key_prefix, permissions) VALUES ('x', '', '{}') RETURNING id
        ), account AS (
            INSERT INTO partner.user_account (admin_key_id, name) SELECT id, 'x' FROM partner RETURNING id, admin_key_id
        )
        INSERT INTO partner.credential
            (user_account_id, admin_key_id, rate_limit_per_minute, network_id, key_hash, api_key_prefix, name)
        SELECT id, admin_key_id, 60, 1, '\\x00', '', 'x' FROM account RETURNING id
        """
    )
    return credential_id


@pytest.fixture
async def aggregator(environment: dict[str, str]) -> AsyncIterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts `dramatiq api.worker`; it is ended after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dramatiq", "api.worker", "-p", "1", "-t", "2"]
        started.append(subprocess.Popen(command, cwd=CHECKOUT, env=environment, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
async def indexer(database_url: str) -> AsyncIterator[Indexer]:
    """An indexer of preview that leads."""
    writer = await database.connect(database_url, PREVIEW)
    assert await database.try_to_lead(writer, PREVIEW)
    yield Indexer(writer)
    await writer.close()


@pytest.fixture
async def sandbox(environment: dict[str, str], no_aggregator: None) -> AsyncIterator[Sandbox]:  # noqa: ARG001
    """A devnet with an index and an API."""
    async with sandboxes.opened(environment) as opened:
        yield opened


@pytest.fixture
async def submitter(issue_key: IssueKey, db: asyncpg.Connection) -> str:
    """An API key with every scope."""
    key = await issue_key()
    await db.execute("UPDATE partner.credential SET scopes = $1", list(SCOPES))
    return key
