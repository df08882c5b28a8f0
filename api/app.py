"""The HTTP server for the table of routes. Every answer leaves through `Api`, which counts, measures and logs it.

It uses aiohttp's low-level server: in an Application, some refusals (malformed requests, `Expect`) bypass middlewares.
"""

import asyncio
import os
import socket
import time
import zlib
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache, lru_cache, partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

import asyncpg
import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import MultiDict, MultiMapping

from api import (
    answers,
    caching,
    caller,
    compression,
    cors,
    errors,
    idempotency,
    ignored,
    metrics,
    restrictions,
)
from api.access_log import AccessLog
from api.answers import Unchanged
from api.ask import AdminAsk, ChainChange, ChainPost, KeyAsk, Notes, OpenAsk, PrimaryAsk
from api.blockfrost import shape
from api.bodies import NoFileYet
from api.chain import tip
from api.chain_servers import ChainServer
from api.connections import BoundedServer, Connection, free
from api.errors import Refusal
from api.parameters import Body, Question, json_object, read_body, read_question
from api.restrictions import Call
from api.route import REQUESTS_COUNTED, Route, Router
from api.sending import Unread
from api.services import Services
from api.trail import Trail
from api.turns import Turns
from shared import schema, service_manager, tasks
from shared.address import LONGEST_TEXT
from shared.lifecycle import UNREACHABLE

log = structlog.get_logger()
Parsed = TypeVar("Parsed")

LARGEST_BODY = 1024**2
_SHORT_BODY = 65_536
_LONG_BODIES, _LONG_BODIES_EACH = 32, 4  # longer ones that are received at a time, per process and caller
LONGEST_REQUEST_S = 30.0
RECORDED_WITHIN_S = 0.1
"""How long an answer may take to reach metrics and access log."""

_IDLE_S = 75.0
_LONGEST_LINE = LONGEST_TEXT + 4_000  # bytes of a request line: a path with the longest address, and a query
_DISCARD_UNREAD_BODY_S = 2.0
_SEND_BODY_WITHIN_S = 20.0
_FINISH_WITHIN_S = 7.0

# Errors that a request gets when the database restarts, fails over or is full.
_DATABASE_AWAY = (*UNREACHABLE, asyncpg.InterfaceError, asyncpg.SerializationError)

_OF_A_BODY = frozenset(("Content-Type", "Content-Encoding", "Content-Disposition", "ETag", "Cache-Control", "Link"))
_SERVER = "ledgerline"
_REMEMBERED, _LONGEST_REMEMBERED = 1_024, 500  # URLs, characters
_LOOK_EVERY_S = 1.0


class Api:
    """Answers requests by the table of routes."""

    def __init__(self, services: Services, routes: Sequence[Route]) -> None:
        self._services = services
        metrics.expect(routes)
        self._router = Router(routes)
        # Parsing is a tenth of a request's Python, clients repeat their URLs, and a URL always asks the same.
        self._find = remembering(self._router.find)
        self._parse = remembering(self._read_url)
        self._deadlines = _Deadlines()
        self._access_log = AccessLog(services.settings)
        self._unread = Unread()
        self._long_bodies = Turns(None, _LONG_BODIES, _LONG_BODIES_EACH, "requests with long bodies")
        self._stop = asyncio.Event()

    async def serve(self, listening: socket.socket, stop: asyncio.Event) -> None:
        """Answer requests until `stop` is set, then finish those in progress."""
        options = {
            "keepalive_timeout": _IDLE_S,
            "lingering_time": _DISCARD_UNREAD_BODY_S,
            "max_line_size": _LONGEST_LINE,
            "access_log": None,
            "auto_decompress": False,  # `_decoded` does it
        }
        self._stop = stop
        server = BoundedServer(self.answer, partial(_Connection, self), options, self._unread)
        runner = web.ServerRunner(server, shutdown_timeout=_FINISH_WITHIN_S)
        await runner.setup()
        async with (
            tasks.background("deadlines", self._deadlines.watch),
            tasks.background("access log and metrics", self._record_forever),
            tasks.background("unread answers", self._unread.watch),
        ):
            try:
                await web.SockSite(runner, listening, backlog=1024).start()
                host, port, *_ = listening.getsockname()
                log.info("api.listening", host=host, port=port, pid=os.getpid())
                service_manager.notify(service_manager.READY)
                await stop.wait()
            finally:
                await runner.cleanup()
                self._record()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request. It is counted if it was admitted or exceeded a limit, even if it then fails.

        Its usage record is written just before the answer is sent.
        """
        trail, refusal = Trail.of(request), None
        try:
            response = cors.preflight(request)
            if response is None:
                with self._deadlines:
                    trail.route, _ = self._find(request.method, request.rel_url.raw_path)
                    trail.authenticated = await self._authenticate(trail.route, request)
                    response = await self._call(trail, request)
        except Exception as fault:  # noqa: BLE001 - it is logged, and the caller gets an answer
            refusal = _refusal_of(fault, trail.route)
            response = _failed(refusal, request)
        if trail.route is None:
            response.headers.update(cors.headers(unquote(request.rel_url.raw_path)))
        else:
            response.headers.update(_headers_of(trail.route))
        await compression.apply(response, request.headers.get("Accept-Encoding"))
        if request.method != "HEAD":
            try:
                self._unread.add(request.protocol, _key_of(trail, request), response)
            except Refusal as too_much:
                response, refusal = await _instead(response, too_much, request), too_much
        if isinstance(trail.authenticated, caller.AuthenticatedRequest):
            assert trail.route is not None, "a route says that a request needs a key"
            endpoint, credential_id = trail.route.number, trail.authenticated.key.credential_id
            # NOTE: below /blockfrost a refusal with 429 may be sent with another status. Such a request spends no
            # quota, so it is counted as 429.
            status = response.status if refusal is None else refusal.status
            try:
                self._services.spools.count(credential_id, endpoint, status, trail.took_s())
            except Refusal as uncounted:
                self._unread.sent(request.protocol)
                response = await _instead(response, uncounted, request)
            else:
                if REQUESTS_COUNTED in trail.route.headers:
                    response.headers[REQUESTS_COUNTED] = "1"
            response.headers.update(trail.authenticated.headers)
        if self._stop.is_set() or not request.content.is_eof() or request.content.exception() is not None:
            _close_after(response)  # the rest of the body would be read as the next request
        return self._finished(trail, response)

    def refuse_malformed(self, request: web.BaseRequest, refusal: Refusal) -> web.Response:
        """The answer to bytes that are not an HTTP request, or that can't be answered."""
        response = _failed(refusal, request)
        _close_after(response)
        return self._finished(Trail.of(request), response)

    def _finished(self, trail: Trail, response: web.Response) -> web.Response:
        """Add the headers of every answer, and queue it for metrics and access log."""
        headers = response.headers
        headers["Server"], headers["X-Request-Id"] = _SERVER, trail.request_id
        headers.setdefault("Cache-Control", caching.PRIVATE)
        if trail.ignored and trail.route is not None:
            headers[ignored.HEADER] = ignored.header(trail.ignored, trail.route.set_by)
        took_s, size_bytes = trail.took_s(), 0 if trail.method == "HEAD" else response.content_length or 0
        metrics.note(trail.route, response.status, took_s)
        self._access_log.note(trail, response.status, size_bytes, took_s)
        return response

    async def _record_forever(self) -> None:
        """Count and log answers in groups: warm processor caches cut the cost of an answer from 15 us to 5."""
        while True:
            await asyncio.sleep(RECORDED_WITHIN_S)
            self._record()

    def _record(self) -> None:
        metrics.flush()
        self._access_log.flush()

    async def _authenticate(
        self, route: Route, request: web.BaseRequest
    ) -> caller.AuthenticatedRequest | caller.AdminKey | None:
        """Authenticate the caller and, for an API key, count the request against its limits. Raises Refusal.

        The result is None if the route is open to anyone.
        """
        if route.access == "api key":
            call = Call(route.scope, restrictions.bits(self._ip_address(request)))
            return await self._services.callers.api_key(_authorization(request), call)
        if route.ask is AdminAsk:
            return await self._services.callers.admin_key(_authorization(request), route.access)
        return None

    async def _call(self, trail: Trail, request: web.BaseRequest) -> web.Response:
        """Parse the request and call the handler. Raises Refusal, including the 429 for an exceeded limit or quota."""
        route, authenticated = trail.route, trail.authenticated
        assert route is not None, "a request without a route has been refused"
        if isinstance(authenticated, caller.AuthenticatedRequest) and authenticated.refusal is not None:
            raise authenticated.refusal
        _refuse_large_body(request)
        url = request.rel_url
        try:
            question, trail.ignored = self._parse(request.method, url.raw_path, url.raw_query_string)
        except Refusal:
            trail.ignored = ignored.fields(route.fields, _query(url.raw_query_string))
            raise
        notes = Notes(is_head=request.method == "HEAD", accepted=request.headers.get("Accept-Encoding"))
        try:
            answer = await self._answer_of(trail, route, question, request, notes)
            return answer if isinstance(answer, web.Response) else caching.respond(request, route.status, answer, notes)
        finally:
            if notes.body is not None or notes.file_turn is not None:
                await notes.free()

    async def _answer_of(
        self, trail: Trail, route: Route, question: Question, request: web.BaseRequest, notes: Notes
    ) -> Any:
        """The handler's answer; the whole response if it repeats an earlier one. Raises Refusal."""
        authenticated = trail.authenticated
        if authenticated is None:
            answer = await route.handler(OpenAsk(self._services, question))
        elif isinstance(authenticated, caller.AdminKey):
            answer = await self._administer(trail, route, question, authenticated, request)
        elif route.ask is KeyAsk:
            answer = await route.handler(
                KeyAsk(self._services, question, authenticated.key_hash, authenticated.verdict)
            )
        elif route.ask is ChainChange:
            answer = await self._change(trail, route, question, authenticated.key, request, notes)
        elif route.body is None:
            answer = await self._read(route, question, authenticated.key, request, notes)
        else:
            answer = await self._read_with_body(trail, route, question, authenticated.key, request, notes)
        return answer

    def _read_url(self, method: str, raw_path: str, raw_query: str) -> tuple[Question, Sequence[str]]:
        """The question in a URL, and the names of parameters that its route ignores. Raises Refusal."""
        route, parameters = self._find(method, raw_path)
        query = _query(raw_query)
        return read_question(route.question, route.fields, parameters, query), ignored.fields(route.fields, query)

    async def _administer(
        self, trail: Trail, route: Route, question: Question, key: caller.AdminKey, request: web.BaseRequest
    ) -> Any:
        """The answer to an admin request; the whole response if it repeats an earlier one. Raises Refusal."""
        idempotency_key = idempotency.key_of(request) if route.method == "POST" else None
        body_hash, body = await self._sent_body(trail, route, request, idempotency_key)
        ip_address = self._ip_address(request)
        async with self._services.callers.invalidating() as invalidation:
            ask = AdminAsk(self._services, question, body, key, ip_address, trail.request_id, invalidation)
            if idempotency_key is None:
                return await route.handler(ask)
            return await idempotency.answer(route, ask, body_hash, idempotency_key)

    async def _change(
        self,
        trail: Trail,
        route: Route,
        question: Question,
        key: caller.ApiKey,
        request: web.BaseRequest,
        notes: Notes,
    ) -> Any:
        """The answer to a request to change something on a chain; the whole response if it repeats an earlier one."""
        idempotency_key = idempotency.key_of(request)
        body_hash, body = await self._sent_body(trail, route, request, idempotency_key)
        services = self._services
        async with services.nodes.turn(key.network, key.credential_id), services.submission_pool.acquire() as db:
            ask = ChainChange(services, question, key, services.chain_servers.primary, notes, body=body, db=db)
            if idempotency_key is None:
                return await route.handler(ask)
            return await idempotency.answer_change(route, ask, body_hash, idempotency_key)

    async def _read(
        self,
        route: Route,
        question: Question,
        key: caller.ApiKey,
        request: web.BaseRequest,
        notes: Notes,
    ) -> Any:
        """The answer to a question about a chain; `Unchanged` if the tip shows that the caller already has it."""
        if_none_match = request.headers.get("If-None-Match", "")

        async def read(source: ChainServer) -> Any:
            ask = route.ask(self._services, question, key, source, notes)
            if route.answers_from_tip and caching.has_tip_tag(if_none_match):
                async with ask.connection() as db:
                    now = (await tip.read(db)).last_updated(key.network)
                if caching.matches(if_none_match, caching.of_tip(now.block_hash, request.raw_path)):
                    return Unchanged(last_updated=now)
            return await route.handler(ask)

        return await self._from_chain(key, read, notes, on_primary=route.ask is PrimaryAsk)

    async def _from_chain(
        self,
        key: caller.ApiKey,
        read: Callable[[ChainServer], Awaitable[Any]],
        notes: Notes,
        *,
        on_primary: bool = False,
    ) -> Any:
        """The answer of a server. A long one that finds no turn for its file is read again when it has one."""
        while True:
            try:
                return await self._services.chain_servers.read(key.network, read, on_primary=on_primary)
            except NoFileYet:
                turn = notes.file_turn = AsyncExitStack()
                await turn.enter_async_context(self._services.room.files.turn(key.credential_id))

    async def _read_with_body(
        self,
        trail: Trail,
        route: Route,
        question: Question,
        key: caller.ApiKey,
        request: web.BaseRequest,
        notes: Notes,
    ) -> Any:
        """The answer to a question with a body: several ids, or a transaction to evaluate. Raises Refusal."""
        # The header is only validated: a repeated request just reads again.
        idempotency.key_of(request)
        _, body = await self._sent_body(trail, route, request, None)

        async def answer(source: ChainServer) -> Any:
            return await route.handler(ChainPost(self._services, question, key, source, notes, body=body))

        return await self._from_chain(key, answer, notes)

    async def _sent_body(
        self, trail: Trail, route: Route, request: web.BaseRequest, idempotency_key: str | None
    ) -> tuple[bytes, Body | None]:
        """The hash of a body's fields as they were sent, for an idempotency key, and the body. Raises Refusal.

        A body is a JSON object or, in the route's own media type, the bare value of its only field. It is None if the
        route takes none. Fields that are ignored are not kept: parsed, they may be 20 times as large as the body.
        """
        sent: Mapping[str, Any] = {}
        body = None
        if route.body is not None:
            content = await self._content(trail, request)
            is_raw = route.raw_media_type and request.content_type == route.raw_media_type
            sent = {route.body_fields[0].name: content.hex()} if is_raw else json_object(content)
            trail.ignored = [*trail.ignored, *ignored.body_fields(route.body_fields, sent)]
            body = read_body(route.body, route.body_fields, sent)
        return b"" if idempotency_key is None else idempotency.hash_of_body(idempotency_key, sent), body

    async def _content(self, trail: Trail, request: web.BaseRequest) -> bytes:
        """The content of a body. A long one, or one of unknown length, is received in a turn of its caller."""
        if request.content_length is not None and request.content_length <= _SHORT_BODY:
            return await _body(request)
        async with self._long_bodies.turn(_key_of(trail, request)):
            return await _body(request)

    def _ip_address(self, request: web.BaseRequest) -> str | None:
        forwarded_for = request.headers.getall("X-Forwarded-For", ())
        return caller.ip_address(request.remote, forwarded_for, self._services.settings.trusted_proxies)


def remembering(parse: Callable[..., Parsed]) -> Callable[..., Parsed]:
    """`parse`, with its last results remembered, except for long URLs: anyone could fill the memory with them."""
    remembered = lru_cache(_REMEMBERED)(parse)

    def parsed(method: str, *url: str) -> Parsed:
        short = sum(map(len, url)) <= _LONGEST_REMEMBERED
        return remembered(method, *url) if short else parse(method, *url)

    return parsed


@cache
def _headers_of(route: Route) -> Mapping[str, str]:
    """The headers that every answer of a route has."""
    headers = dict(cors.headers(route.path))
    if route.access == "api key":
        # A cache must not give the answer to another key, which may belong to another network.
        headers["Vary"] = shape.KEY_HEADERS if shape.covers(route.path) else "Authorization"
    return headers


def _key_of(trail: Trail, request: web.BaseRequest) -> Hashable:
    """Whose turns and shares a request uses: its credential's, its admin key's, or those of its address."""
    who = trail.authenticated
    if isinstance(who, caller.AdminKey):
        return who.id
    return request.remote if who is None else who.key.credential_id


def _close_after(response: web.Response) -> None:
    """Close the connection after this answer, and announce it: aiohttp's answers to malformed requests do not."""
    response.force_close()
    response.headers["Connection"] = "close"


def _authorization(request: web.BaseRequest) -> Sequence[str]:
    if shape.covers(request.rel_url.raw_path):
        return shape.authorization(request.headers)
    return request.headers.getall("Authorization", ())


def _query(raw_query: str) -> MultiMapping[str]:
    """The query's parameters. Invalid UTF-8 becomes lone surrogates, which every kind of parameter refuses."""
    return MultiDict(parse_qsl(raw_query, keep_blank_values=True, errors="surrogateescape"))


def _refuse_large_body(request: web.BaseRequest) -> None:
    """Refuse a body by its announced length, before reading it. Other bodies are measured while they arrive."""
    if (request.content_length or 0) > LARGEST_BODY:
        raise errors.body_too_large()


async def _body(request: web.BaseRequest) -> bytes:
    expected = request.headers.get("Expect")
    if expected is not None:
        if expected.lower() != "100-continue":
            raise errors.expectation_failed()
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    try:
        async with asyncio.timeout(_SEND_BODY_WITHIN_S):
            body = await request.read()
    except TimeoutError as cause:
        raise errors.request_timeout() from cause
    except (web.RequestPayloadError, HttpProcessingError, ConnectionError) as cause:
        # NOTE: a ConnectionError is the client's: it has gone before the end of its body.
        raise errors.malformed_request() from cause
    return _decoded(body, ",".join(request.headers.getall("Content-Encoding", ())).strip().lower())


def _decoded(body: bytes, encoding: str) -> bytes:
    """The body without its Content-Encoding: gzip or deflate, the latter with or without a zlib header (RFC 9110).

    An empty body may have any encoding. Raises Refusal.
    """
    if encoding in ("", "identity") or not body:
        return body
    if encoding not in ("gzip", "deflate"):
        raise errors.malformed_request()
    bare = encoding == "deflate" and body[0] & 0x0F != zlib.DEFLATED
    window = 31 if encoding == "gzip" else -15 if bare else 15
    decompressor = zlib.decompressobj(window)
    try:
        decoded = decompressor.decompress(body, LARGEST_BODY + 1)
    except zlib.error as cause:
        raise errors.malformed_request() from cause
    if len(decoded) > LARGEST_BODY:
        raise errors.body_too_large()
    if not decompressor.eof or decompressor.unused_data:
        raise errors.malformed_request()
    return decoded


def _refusal_of(fault: Exception, route: Route | None) -> Refusal:
    """The refusal that a caller gets for an exception. Unexpected exceptions go to the log."""
    where = "none" if route is None else route.path
    if isinstance(fault, Refusal):
        return fault
    if isinstance(fault, web.HTTPRequestEntityTooLarge):
        return errors.body_too_large()
    if isinstance(fault, asyncpg.LockNotAvailableError):
        return errors.network_not_available()
    if isinstance(fault, TimeoutError | asyncpg.QueryCanceledError):
        log.warning("request.too_slow", route=where)
        return errors.too_slow()
    if isinstance(fault, _DATABASE_AWAY):
        log.warning("request.without_database", route=where, cause=f"{type(fault).__name__}: {fault}")
        return errors.database_not_available()
    if isinstance(fault, schema.WrongSchema):
        log.warning("request.newer_schema", route=where, cause=str(fault))
        return errors.upgrade_in_progress()
    log.error("request.failed", route=where, exc_info=fault)
    return errors.internal_error()


def _failed(refusal: Refusal, request: web.BaseRequest) -> web.Response:
    headers = {"Content-Type": answers.CONTENT_TYPE, "Error-Code": refusal.code, **refusal.headers}
    if shape.covers(request.rel_url.raw_path):
        status, body = shape.failure(refusal)
        return web.Response(status=status, body=body, headers=headers)
    return web.Response(status=refusal.status, body=answers.failure(refusal), headers=headers)


async def _instead(response: web.Response, refusal: Refusal, request: web.BaseRequest) -> web.Response:
    """The answer for a refusal, with the headers of a response that can't be sent and is freed."""
    await free(response)
    refused = _failed(refusal, request)
    for name in set(response.headers) - _OF_A_BODY:
        refused.headers.setdefault(name, response.headers[name])
    return refused


class _Deadlines:
    """Limits each request to LONGEST_REQUEST_S. Cheaper than `asyncio.timeout`, which sets a timer for each request.

    The task of a request enters it; raises TimeoutError, up to _LOOK_EVERY_S late.
    """

    def __init__(self) -> None:
        self._under_way: dict[asyncio.Task[Any], float] = {}  # oldest first
        self._overdue: set[asyncio.Task[Any]] = set()

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "requests are answered in tasks"
        self._under_way[task] = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        task = asyncio.current_task()
        assert task is not None, "the same task has entered"
        del self._under_way[task]
        if task in self._overdue:
            self._overdue.remove(task)
            if task.uncancel() == 0 and kind is asyncio.CancelledError:
                raise TimeoutError

    async def watch(self) -> None:
        """Cancel overdue requests, until cancelled itself."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            latest = time.monotonic() - LONGEST_REQUEST_S
            for task, started in self._under_way.items():
                if started > latest:
                    break
                if task not in self._overdue:
                    self._overdue.add(task)
                    task.cancel()


class _Connection(Connection):
    """One connection. aiohttp calls `handle_error` for requests that it refuses itself, such as malformed ones."""

    __slots__ = ("_api",)

    def __init__(self, api: Api, server: BoundedServer, **options: Any) -> None:
        super().__init__(server, **options)
        self._api = api

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("part of the answer has already been sent")
        if status >= 500:
            log.error("connection.failed", exc_info=exc)
        else:
            log.debug("request.malformed", cause=message)
        refusal = errors.malformed_request() if status < 500 else errors.internal_error()
        return self._api.refuse_malformed(request, refusal)

    def log_exception(self, *words: Any, **details: Any) -> None:
        """Log the error that ended a connection. An incomplete body that is not read is the client's fault.

        An answer that is sent in parts may end early if it gets no turn or the database fails.
        """
        fault = details.get("exc_info")
        if isinstance(fault, HttpProcessingError | web.RequestPayloadError):
            log.debug("request.malformed", cause=f"{type(fault).__name__}: {fault}")
        elif isinstance(fault, (Refusal, asyncpg.QueryCanceledError, TimeoutError, *_DATABASE_AWAY)):
            log.warning("answer.cut_off", cause=f"{type(fault).__name__}: {fault}")
        else:
            log.error("connection.failed", words=str(words[0]), exc_info=fault)
