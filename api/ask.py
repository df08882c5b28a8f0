"""What a handler is given: the question, the body, who asks, and the database to ask."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

import asyncpg
import msgspec

from api.caller import AdminKey, ApiKey
from api.parameters import Body, Question
from api.services import Services
from shared.network import Network

if TYPE_CHECKING:
    from api.route import Route

QuestionT = TypeVar("QuestionT", bound=Question)
BodyT = TypeVar("BodyT", bound=Body | None)


class Nothing(Question, frozen=True, kw_only=True):
    """The question of a route without parameters."""


class OpenAsk(msgspec.Struct, Generic[QuestionT], frozen=True):
    """A request that needs no key. `routes` is the table that it came through."""

    services: Services
    question: QuestionT
    routes: "tuple[Route, ...]"


class ChainAsk(msgspec.Struct, Generic[QuestionT], frozen=True):
    """A question about the chain of the caller's API key."""

    services: Services
    question: QuestionT
    key: ApiKey

    @property
    def network(self) -> Network:
        """The network that the key is bound to."""
        return self.key.network

    def connection(self) -> AbstractAsyncContextManager[asyncpg.Connection]:
        """A connection to one replica for exactly one statement, which is a snapshot of its own."""
        return self.services.chains.connection(self.network)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[asyncpg.Connection]:
        """One snapshot on one replica, for several statements."""
        async with self.connection() as db, db.transaction(isolation="repeatable_read", readonly=True):
            yield db


class AdminAsk(msgspec.Struct, Generic[QuestionT, BodyT], frozen=True):
    """What a partner asks or orders."""

    services: Services
    question: QuestionT
    body: BodyT
    key: AdminKey
    ip_address: str | None

    def connection(self) -> AbstractAsyncContextManager[asyncpg.Connection]:
        """A connection for one statement, or for several that need no common commit."""
        acquired: AbstractAsyncContextManager[asyncpg.Connection] = self.services.partner.acquire()
        return acquired

    @asynccontextmanager
    async def commit(self) -> AsyncIterator[asyncpg.Connection]:
        """One commit: what is written inside happens together or not at all."""
        async with self.connection() as db, db.transaction():
            yield db
