"""The ways in which requests are run. Each route has one, chosen at start by the kind of ask that its handler takes."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from aiohttp import web

from api import errors
from api.answers import Unchanged
from api.ask import AdminAsk, ChainAsk, ChainChange, ChainPost, EventsAsk, KeyAsk, Notes, OpenAsk, PrimaryAsk, StreamAsk
from api.blockfrost import shape
from api.events.subscriptions import OneSubscription
from api.http import compression
from api.http.bodies import Encoded, NoTurnYet
from api.keys import caller, restrictions, tickets
from api.keys.caller import AdminKey, ApiCaller, ApiKey
from api.keys.restrictions import KeyUse
from api.parameters import Body, Question
from api.repeats import caching, idempotency
from api.repeats.kept import Moved
from api.route import Route
from api.server.body import Bodies
from api.server.request_facts import RequestFacts
from api.services import Services
from api.sources.chain_servers import ChainServer

CallerT = TypeVar("CallerT")


class ParsedRequest(msgspec.Struct, frozen=True):
    """A request whose URL has been read: what a way needs of it."""

    http: web.BaseRequest
    facts: RequestFacts
    question: Question
    notes: Notes


class Way(ABC, Generic[CallerT]):
    """How the requests of one route are run."""

    def __init__(self, route: Route, services: Services, bodies: Bodies) -> None:
        self.route, self._services, self._bodies = route, services, bodies

    @abstractmethod
    async def authenticate(self, request: web.BaseRequest) -> CallerT:
        """Who calls; for an API key, the request is then counted against its limits. Raises Refusal."""

    @abstractmethod
    async def answer(self, request: ParsedRequest, who: CallerT) -> Any:
        """The handler's answer; the whole response if it repeats an earlier one. Raises Refusal."""

    async def _body(self, request: ParsedRequest, once: str | None) -> tuple[bytes, Body | None]:
        """The hash of a body's fields as they were sent, for the idempotency key `once`, and the body. Raises Refusal.

        Fields that are ignored are not kept: parsed, they may be 20 times as large as the body.
        """
        sent, body = await self._bodies.read(self.route, request.http, request.facts)
        return b"" if once is None else idempotency.hash_of_body(once, sent), body

    def _ip_address(self, request: web.BaseRequest) -> str | None:
        forwarded_for = request.headers.getall("X-Forwarded-For", ())
        return caller.ip_address(request.remote, forwarded_for, self._services.settings.trusted_proxies)


def way_of(route: Route, services: Services, bodies: Bodies) -> Way[Any]:
    """The way of a route."""
    way: Way[Any] = _WAYS[route.ask](route, services, bodies)
    return way


class _Open(Way[None]):
    """Anyone may ask."""

    async def authenticate(self, request: web.BaseRequest) -> None:
        pass

    async def answer(self, request: ParsedRequest, who: None) -> Any:  # noqa: ARG002 - every way is told who calls
        return await self.route.handler(OpenAsk(self._services, request.question))


class _OfApiKey(Way[ApiCaller]):
    """What the ways of API keys have in common."""

    async def authenticate(self, request: web.BaseRequest) -> ApiCaller:
        sent: Sequence[str] = request.headers.getall("Authorization", ())
        named = None
        if shape.covers(request.rel_url.raw_path):
            sent, named = shape.authorization(request.headers)
        use = self._use(request, None if named is None else named.network_id)
        return await self._services.callers.api_key(sent, use)

    def _use(self, request: web.BaseRequest, network_id: int | None = None) -> KeyUse:
        return KeyUse(self.route.scope, restrictions.bits(self._ip_address(request)), network_id)


class _OwnKey(_OfApiKey):
    """An API key asks about itself."""

    async def answer(self, request: ParsedRequest, who: ApiCaller) -> Any:
        return await self.route.handler(KeyAsk(self._services, request.question, who.key_hash, who.verdict))


class _Read(_OfApiKey):
    """A question about the chain, of any server or, if it is about the caller's most recent actions, of the primary."""

    async def answer(self, request: ParsedRequest, who: ApiCaller) -> Any:
        self._services.chain_splits.check(who.key.network)
        route, key, http, notes = self.route, who.key, request.http, request.notes
        if_none_match = http.headers.get("If-None-Match", "")

        async def read(source: ChainServer) -> Any:
            ask = route.ask(self._services, request.question, key, source, notes)
            kept = self._services.kept_answers.of(source, key.network)
            if route.answers_from_tip and caching.has_tip_tag(if_none_match):
                now = await kept.tip()
                if caching.matches(if_none_match, caching.of_tip(now.block_hash, http.raw_path)):
                    return Unchanged(last_updated=now)
            if not route.may_be_kept or notes.is_head:
                return await route.handler(ask)

            encoding = None if notes.accepted is None else compression.chosen(notes.accepted)

            async def make() -> Any:
                try:
                    found = await route.handler(msgspec.structs.replace(ask, in_transaction=False))
                except Moved:
                    notes.forget()
                    found = await route.handler(ask)
                answer = await caching.encode_whole(http, route.status, found, notes)
                if notes.is_constant and isinstance(answer, Encoded):
                    kept.keep_constant((route.path, encoding), answer)
                if isinstance(answer, Encoded) and answer.tip is None and self._services.chain_servers.has_replicas:
                    # NOTE: of this tip or an earlier one, so later answers, which must not be older, are newer.
                    answer = msgspec.structs.replace(answer, tip=await kept.tip())
                return answer

            if caching.is_anew(http):
                return await make()
            constant = await kept.constant((route.path, encoding))
            if constant is not None:
                return constant
            question = http.raw_path, encoding
            return await kept.answer(question, make, at_once=lambda: source.has_turn(key.network, key.credential_id))

        return await self._of_a_server(key, read, request.notes, on_primary=route.ask is PrimaryAsk)

    async def _of_a_server(
        self, key: ApiKey, read: Callable[[ChainServer], Awaitable[Any]], notes: Notes, *, on_primary: bool = False
    ) -> Any:
        """The answer of a server. A long one that finds no turn is read again when it has one."""
        while True:
            try:
                return await self._services.chain_servers.read(key.network, read, on_primary=on_primary)
            except NoTurnYet as missing:
                assert notes.held is not None, "its writer had it"
                await notes.held.take(missing.turns)


class _ReadWithBody(_Read):
    """A question with a body: several ids, or a transaction to evaluate."""

    async def answer(self, request: ParsedRequest, who: ApiCaller) -> Any:
        self._services.chain_splits.check(who.key.network)
        # The header is only validated: a repeated request just reads again.
        idempotency.key_of(request.http)
        _, body = await self._body(request, None)

        async def read(source: ChainServer) -> Any:
            ask = ChainPost(self._services, request.question, who.key, source, request.notes, body=body)
            return await self.route.handler(ask)

        return await self._of_a_server(who.key, read, request.notes)


class _Change(_OfApiKey):
    """A request to change something on the chain, in a turn of its credential."""

    async def answer(self, request: ParsedRequest, who: ApiCaller) -> Any:
        services, key, once = self._services, who.key, idempotency.key_of(request.http)
        services.chain_splits.check(key.network)
        body_hash, body = await self._body(request, once)
        async with services.nodes.turn(key.network, key.credential_id), services.submission_pool.acquire() as db:
            primary = services.chain_servers.primary
            ask = ChainChange(services, request.question, key, primary, request.notes, body=body, db=db)
            if once is None:
                return await self.route.handler(ask)
            return await idempotency.answer_change(self.route, ask, body_hash, once)


class _Events(_OfApiKey):
    """A request about the subscriptions of an API key. A POST with an `Idempotency-Key` is executed once."""

    async def answer(self, request: ParsedRequest, who: ApiCaller) -> Any:
        services, key = self._services, who.key
        once = idempotency.key_of(request.http) if self.route.method == "POST" else None
        body_hash, body = b"", None
        if self.route.body is not None:
            body_hash, body = await self._body(request, once)
        primary = services.chain_servers.primary
        ask = EventsAsk(services, request.question, key, primary, request.notes, body=body, key_hash=who.key_hash)
        if once is None:
            return await self.route.handler(ask)
        return await idempotency.answer_events(self.route, ask, body_hash, once)


class _Stream(_OfApiKey):
    """A request for events as they happen, with a key or with a ticket, or for a ticket."""

    async def authenticate(self, request: web.BaseRequest) -> ApiCaller:
        ticket = self._ticket(request)
        if ticket is None:
            return await super().authenticate(request)
        return await self._services.callers.ticket(ticket, self._use(request))

    async def answer(self, request: ParsedRequest, who: ApiCaller) -> Any:
        services, question, http = self._services, request.question, request.http
        assert isinstance(question, OneSubscription), "its route names one"
        if self.route.method == "POST":
            idempotency.key_of(http)  # it is only validated: a repeated request issues another ticket
        ticket = tickets.parse(self._ticket(http) or "")
        if ticket is not None and ticket.subscription_id != question.id:
            raise errors.invalid_ticket()
        ask = StreamAsk(
            services,
            question,
            who.key,
            services.chain_servers.primary,
            request.notes,
            body=None,
            key_hash=who.key_hash,
            use=self._use(http),
            ends_at=None if ticket is None else ticket.expires_at,
            last_event_id=http.headers.get("Last-Event-ID", ""),
            endpoint=self.route.number,
        )
        return await self.route.handler(ask)

    def _ticket(self, request: web.BaseRequest) -> str | None:
        """The ticket in the URL of a stream, unless there is a key."""
        has_key = "Authorization" in request.headers or self.route.method != "GET"
        return None if has_key else request.rel_url.query.get("ticket")


class _Administer(Way[AdminKey]):
    """An admin request. A POST with an `Idempotency-Key` is executed once."""

    async def authenticate(self, request: web.BaseRequest) -> AdminKey:
        authorization = request.headers.getall("Authorization", ())
        return await self._services.callers.admin_key(authorization, self.route.access)

    async def answer(self, request: ParsedRequest, who: AdminKey) -> Any:
        once = idempotency.key_of(request.http) if self.route.method == "POST" else None
        body_hash, body = await self._body(request, once)
        ip_address, request_id = self._ip_address(request.http), request.facts.request_id
        async with self._services.callers.invalidating() as invalidation:
            ask = AdminAsk(self._services, request.question, body, who, ip_address, request_id, invalidation)
            if once is None:
                return await self.route.handler(ask)
            return await idempotency.answer(self.route, ask, body_hash, once)


_WAYS: dict[type, type[Any]] = {
    OpenAsk: _Open,
    KeyAsk: _OwnKey,
    ChainAsk: _Read,
    PrimaryAsk: _Read,
    ChainPost: _ReadWithBody,
    ChainChange: _Change,
    EventsAsk: _Events,
    StreamAsk: _Stream,
    AdminAsk: _Administer,
}
