"""An API of our own for each test, keys to call it with, and chains to ask about."""

from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest

from api import tokens
from shared import database
from shared.network import PREVIEW
from tests.api.chains import Chain
from tests.api.client import Client, serving
from tests.api.partners import BOOTSTRAP_KEY, Partner, partner_of

IssueKey = Callable[..., Awaitable[str]]


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """That of any process under test, with a bootstrap key."""
    return environment | {"BOOTSTRAP_ADMIN_KEY": BOOTSTRAP_KEY}


@pytest.fixture
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody adds up the usage of the APIs in this test, so that they have nothing to wait for at their end."""
    monkeypatch.setattr("api.batches._LAST_LOOKS_S", 0)


@pytest.fixture
async def api(environment: dict[str, str], no_worker: None) -> AsyncIterator[Client]:  # noqa: ARG001
    """An API on a port of its own."""
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
    """Makes an API key of an active account, written straight into the tables."""

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
    """Another one."""
    return await partner_of(api, "Rival")
