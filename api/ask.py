"""The argument of a handler: the question, the body, the caller, and the database to query."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime
from typing import Generic, TypeVar

import asyncpg
import msgspec

from api.http import compression
from api.http.bodies import Held, Writer, WrittenBody, has_parts
from api.keys.caller import AdminKey, ApiKey, KeyInvalidation
from api.keys.limits.verdicts import Verdict
from api.keys.restrictions import KeyUse
from api.parameters import Body, Question
from api.services import Services
from api.sources.chain_servers import ChainServer
from shared import schema
from shared.ledger import SECURITY_PARAMETER
from shared.network import Network

AnswerT = TypeVar("AnswerT")
QuestionT = TypeVar("QuestionT", bound=Question)
OtherT = TypeVar("OtherT", bound=Question)
BodyT = TypeVar("BodyT", bound=Body | None)


class Nothing(Question, frozen=True, kw_only=True):
    """The question of a route without parameters."""


class OpenAsk(msgspec.Struct, Generic[QuestionT], frozen=True):
    """A request that needs no key."""

    services: Services
    question: QuestionT


class Notes(msgspec.Struct):
    """What a handler adds to its answer beyond the value, and what a long answer needs to know of the request.

    `settled_by` is the hash of a block too deep for a rollback, which fixes the answer; None if the answer may change.
    `metadata_warning`, `known_epochs` and `snapshot_block` are headers of these names, or None. `may_change` says that
    the answer has data from beyond the index, which change while it does not, `is_constant` that it is the same for
    every question of its route about this chain. `body` is that of a long answer, already written.

    `events` is how many events of a subscription it delivers.

    `is_head` says that only the headers are sent, `accepted` is `Accept-Encoding`, and `held` are the body's turns.
    """

    settled_by: str | None = None
    metadata_warning: str | None = None
    known_epochs: str | None = None
    snapshot_block: str | None = None
    may_change: bool = False
    is_constant: bool = False
    events: int = 0
    body: WrittenBody | None = None
    is_head: bool = False
    accepted: str | None = None
    held: Held | None = None

    def settle(self, block_hash: bytes, block_no: int, tip_block_no: int) -> None:
        """Note the block that fixes the answer, if it is too deep for a rollback."""
        if tip_block_no - block_no > SECURITY_PARAMETER:
            self.settled_by = block_hash.hex()

    def forget(self) -> None:
        """Forget what a handler has noted that runs again."""
        self.settled_by = self.metadata_warning = self.known_epochs = None
        self.may_change = self.is_constant = False

    async def free(self) -> None:
        """Free the body, which is not sent, and the turns."""
        body, self.body = self.body, None
        if body is not None:
            await body.close()
        held, self.held = self.held, None
        if held is not None:
            await held.close()


class ChainAsk(msgspec.Struct, Generic[QuestionT], frozen=True):
    """A question about the chain of the caller's API key, for one server. It may be repeated on another.

    `shared_db` is the connection of a snapshot that several handlers share. Without `in_transaction`, a snapshot takes
    fewer round trips, but may raise Moved.
    """

    services: Services
    question: QuestionT
    key: ApiKey
    source: ChainServer
    notes: Notes
    shared_db: asyncpg.Connection | None = None
    in_transaction: bool = True

    @property
    def network(self) -> Network:
        """The network that the key is bound to."""
        return self.key.network

    def connection(self) -> AbstractAsyncContextManager[asyncpg.Connection]:
        """A connection to the server for one statement, which sees one snapshot. Look-ups of names may follow it."""
        if self.shared_db is not None:
            return nullcontext(self.shared_db)
        held = self.notes.held
        # NOTE: who has a turn to build waits for no other request of its key, which would keep others from building.
        is_building = held is not None and self.services.room.building in held
        return self.source.connection(self.network, None if is_building else self.key.credential_id)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[asyncpg.Connection]:
        """One snapshot on the server, for several statements."""
        if self.shared_db is not None:
            yield self.shared_db
            return
        async with self.connection() as db:
            kept = self.services.kept_answers.of(self.source, self.network)
            with_one_state = (
                db.transaction(isolation="repeatable_read", readonly=True) if self.in_transaction else kept.unmoved(db)
            )
            async with with_one_state as unmoved:
                yield unmoved or db

    async def written(self, answer: AnswerT) -> AnswerT:
        """The answer; its body is written now if it has lists in parts, so call it while the connection is held.

        Raises Refusal if a list is longer than its limit.
        """
        notes = self.notes
        if notes.body is not None:  # of an answer of another server, which is replaced by this one
            await notes.body.close()
            notes.body = None
        if notes.is_head or not has_parts(answer):
            return answer
        encoding = None if notes.accepted is None else compression.chosen(notes.accepted)
        notes.body = await Writer(self.services.room, encoding, self._held()).write(answer)
        return answer

    async def take_building(self) -> None:
        """Take the turn of a long answer: for one that takes long to begin. Call it without a connection."""
        await self._held().take_free(self.services.room.building)

    def _held(self) -> Held:
        if self.notes.held is None:
            self.notes.held = Held(self.key.credential_id)
        return self.notes.held

    def about(self, question: OtherT, shared_db: asyncpg.Connection | None = None) -> "ChainAsk[OtherT]":
        """The same caller with another question, for another handler; `shared_db` is a snapshot of this ask."""
        return ChainAsk(
            self.services, question, self.key, self.source, Notes(), shared_db, in_transaction=self.in_transaction
        )


class ChainPost(ChainAsk[QuestionT], Generic[QuestionT, BodyT], frozen=True, kw_only=True):
    """A question with a body, such as a list of ids. It may be repeated on another server as well."""

    body: BodyT


class PrimaryAsk(ChainAsk[QuestionT], Generic[QuestionT], frozen=True):
    """A question about the chain and about callers' most recent actions: the primary answers it."""


class ChainChange(ChainAsk[QuestionT], Generic[QuestionT, BodyT], frozen=True, kw_only=True):
    """A request to change something, on the primary and at most once for each `Idempotency-Key`.

    `db` is a connection to the partners' tables. Meanwhile this process submits no other transaction to the network,
    but it may evaluate some.
    """

    body: BodyT
    db: asyncpg.Connection

    def connection(self) -> AbstractAsyncContextManager[asyncpg.Connection]:
        """A connection as for a question, but in no turn of the credential, since other submissions wait meanwhile."""
        return self.source.connection(self.network)


class EventsAsk(ChainAsk[QuestionT], Generic[QuestionT, BodyT], frozen=True, kw_only=True):
    """A request about the subscriptions of the API key, which are in the partners' tables."""

    body: BodyT
    key_hash: bytes
    committing: asyncpg.Connection | None = None  # the connection of an idempotent request, which is one commit

    @asynccontextmanager
    async def partners(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection to the partners' tables, in a turn of the credential."""
        if self.committing is not None:
            yield self.committing
            return
        async with self.services.events_pool.turn(self.key.credential_id) as pool, pool.acquire() as db:
            yield db

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[asyncpg.Connection]:
        """One snapshot of the partners' tables for several statements."""
        async with self.partners() as db, db.transaction(isolation="repeatable_read", readonly=True):
            yield db

    @asynccontextmanager
    async def commit(self) -> AsyncIterator[asyncpg.Connection]:
        """One commit: all of it is written, or none. With an idempotency key it is part of a larger one."""
        async with self.partners() as db, schema.commit(db):
            yield db


class StreamAsk(EventsAsk[QuestionT, None], Generic[QuestionT], frozen=True, kw_only=True):
    """A request for events as they happen, or for a ticket with which to read them.

    `use` is that of the key, which may be revoked while events are read.
    `ends_at` is the time until which a ticket is valid, None for a key. `last_event_id` is the header of that name.
    """

    use: KeyUse
    ends_at: datetime | None
    last_event_id: str
    endpoint: int  # the number of the route, under which events are counted


class KeyAsk(msgspec.Struct, Generic[QuestionT], frozen=True):
    """A question of an API key about itself. `verdict` is the outcome of this request's rate limit and quota."""

    services: Services
    question: QuestionT
    key_hash: bytes
    verdict: Verdict


class AdminAsk(msgspec.Struct, Generic[QuestionT, BodyT], frozen=True):
    """An admin request. API keys that it ends or changes are declared to `invalidation`, inside its commit."""

    services: Services
    question: QuestionT
    body: BodyT
    key: AdminKey
    ip_address: str | None
    request_id: str
    invalidation: KeyInvalidation
    committing: asyncpg.Connection | None = None  # the connection of an idempotent request, which is one commit

    @asynccontextmanager
    async def connection(self, *, answer_begun: bool = False) -> AsyncIterator[asyncpg.Connection]:
        """A connection for statements that need no common commit, in a turn of this admin key.

        With `answer_begun`, part of the answer has been sent, so it waits longer for the turn.
        """
        if self.committing is not None:
            yield self.committing
            return
        async with self.services.admin_pool.turn(self.key.id, answer_begun=answer_begun) as pool, pool.acquire() as db:
            yield db

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[asyncpg.Connection]:
        """One snapshot for several statements, such as a page and its total."""
        async with self.connection() as db, db.transaction(isolation="repeatable_read", readonly=True):
            yield db

    @asynccontextmanager
    async def commit(self) -> AsyncIterator[asyncpg.Connection]:
        """One commit: all of it is written, or none. With an idempotency key it is part of a larger one."""
        async with self.connection() as db, schema.commit(db):
            yield db
