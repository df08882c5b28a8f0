"""The HTTP server for the table of routes. Every answer leaves through `Api`, which counts, measures and logs it.

It uses aiohttp's low-level server: in an Application, some refusals (malformed requests, `Expect`) bypass middlewares.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

import asyncpg
import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import MultiDict, MultiMapping

from api import errors
from api.ask import Notes
from api.blockfrost import shape
from api.errors import Refusal
from api.http import compression
from api.http.connections import BoundedServer, Connection
from api.http.sending import Unread
from api.keys.caller import ApiCaller
from api.operate import metrics
from api.parameters import Question, read_question
from api.repeats import caching
from api.route import REQUESTS_COUNTED, Route, Router
from api.server import cors, ignored
from api.server.access_log import AccessLog
from api.server.body import Bodies, refuse_large
from api.server.deadlines import Deadlines
from api.server.failures import DATABASE_AWAY, failed, instead, refusal_of
from api.server.request_facts import RequestFacts
from api.server.ways import ParsedRequest, Way, way_of
from api.services import Services
from shared import service_manager, tasks
from shared.address import MAX_TEXT_LENGTH

log = structlog.get_logger()
Parsed = TypeVar("Parsed")

RECORDED_WITHIN_S = 0.1
"""How long an answer may take to reach metrics and access log."""

_IDLE_S = 75.0
_MAX_LINE_BYTES = MAX_TEXT_LENGTH + 4_000  # bytes of a request line: a path with the longest address, and a query
_DISCARD_UNREAD_BODY_S = 2.0
_FINISH_WITHIN_S = 7.0

_SERVER = "ledgerline"
_REMEMBERED, _MAX_REMEMBERED_LENGTH = 1_024, 500  # URLs, characters


class Api:
    """Answers requests by the table of routes."""

    def __init__(self, services: Services, routes: Sequence[Route]) -> None:
        self._services = services
        metrics.expect(routes)
        bodies = Bodies()
        self._ways = {route: way_of(route, services, bodies) for route in routes}
        # Parsing is a tenth of a request's Python, and clients repeat their URLs, which always mean the same.
        self._router = Router(routes)
        self._find = remembering(self._route_of)
        self._parse = remembering(self._read_url)
        self._deadlines = Deadlines()
        self._access_log = AccessLog(services.settings)
        self._unread = Unread()
        self._stop = asyncio.Event()

    async def serve(self, listening: socket.socket, stop: asyncio.Event) -> None:
        """Answer requests until `stop` is set, then finish those in progress."""
        options = {
            "keepalive_timeout": _IDLE_S,
            "lingering_time": _DISCARD_UNREAD_BODY_S,
            "max_line_size": _MAX_LINE_BYTES,
            "access_log": None,
            "auto_decompress": False,  # `Bodies` does it
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
        facts, refusal = RequestFacts.of(request), None
        try:
            response = cors.preflight(request)
            if response is None:
                with self._deadlines:
                    route, _ = self._find(request.method, request.rel_url.raw_path)
                    facts.route = route
                    response = await self._call(self._ways[route], facts, request)
        except Exception as fault:  # noqa: BLE001 - it is logged, and the caller gets an answer
            refusal = refusal_of(fault, facts.route)
            response = failed(refusal, request)
        if facts.route is None:
            response.headers.update(cors.headers(unquote(request.rel_url.raw_path)))
        else:
            response.headers.update(_headers_of(facts.route))
        await compression.apply(response, request.headers.get("Accept-Encoding"))
        if request.method != "HEAD":
            try:
                self._unread.add(request.protocol, facts.whose, response)
            except Refusal as too_much:
                response, refusal = await instead(response, too_much, request), too_much
        if isinstance(facts.authenticated, ApiCaller):
            assert facts.route is not None, "a route says that a request needs a key"
            endpoint, credential_id = facts.route.number, facts.authenticated.key.credential_id
            # NOTE: below /blockfrost a refusal with 429 may be sent with another status. Such a request spends no
            # quota, so it is counted as 429.
            status = response.status if refusal is None else refusal.status
            try:
                events = facts.events if status == HTTPStatus.OK else 0  # NOTE: a 304 delivers none
                self._services.spools.count(credential_id, endpoint, status, facts.took_s(), events)
            except Refusal as uncounted:
                self._unread.sent(request.protocol)
                response = await instead(response, uncounted, request)
            else:
                if REQUESTS_COUNTED in facts.route.headers:
                    response.headers[REQUESTS_COUNTED] = "1"
            response.headers.update(facts.authenticated.headers)
        if self._stop.is_set() or not request.content.is_eof() or request.content.exception() is not None:
            _close_after(response)  # the rest of the body would be read as the next request
        return self._finished(facts, response)

    def refuse_malformed(self, request: web.BaseRequest, refusal: Refusal) -> web.Response:
        """The answer to bytes that are not an HTTP request, or that can't be answered."""
        response = failed(refusal, request)
        _close_after(response)
        return self._finished(RequestFacts.of(request), response)

    def _finished(self, facts: RequestFacts, response: web.Response) -> web.Response:
        """Add the headers of every answer, and queue it for metrics and access log."""
        headers = response.headers
        headers["Server"], headers["X-Request-Id"] = _SERVER, facts.request_id
        headers.setdefault("Cache-Control", caching.PRIVATE)
        if facts.ignored and facts.route is not None:
            headers[ignored.HEADER] = ignored.header(facts.ignored, facts.route.set_by)
        took_s, size_bytes = facts.took_s(), 0 if facts.method == "HEAD" else response.content_length or 0
        metrics.note(facts.route, response.status, took_s)
        self._access_log.note(facts, response.status, size_bytes, took_s)
        return response

    async def _record_forever(self) -> None:
        """Count and log answers in groups: warm processor caches cut the cost of an answer from 15 us to 5."""
        while True:
            await asyncio.sleep(RECORDED_WITHIN_S)
            self._record()

    def _record(self) -> None:
        metrics.flush()
        self._access_log.flush()

    async def _call(self, way: Way[Any], facts: RequestFacts, request: web.BaseRequest) -> web.Response:
        """Parse the request and call the handler. Raises Refusal, including the 429 for an exceeded limit or quota."""
        who = facts.authenticated = await way.authenticate(request)
        if isinstance(who, ApiCaller) and who.refusal is not None:
            raise who.refusal
        refuse_large(request)
        url = request.rel_url
        try:
            question, facts.ignored = self._parse(request.method, url.raw_path, url.raw_query_string)
        except Refusal:
            facts.ignored = ignored.fields(way.route.fields, _query(url.raw_query_string))
            raise
        notes = Notes(is_head=request.method == "HEAD", accepted=request.headers.get("Accept-Encoding"))
        try:
            answer = await way.answer(ParsedRequest(request, facts, question, notes), who)
            if not isinstance(answer, web.Response):
                answer = caching.respond(request, way.route.status, answer, notes)
            facts.events = 0 if notes.is_head else notes.events
            return answer
        finally:
            if notes.body is not None or notes.held is not None:
                await notes.free()

    def _route_of(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]]:
        return self._router.find(method, shape.plain_path(raw_path))

    def _read_url(self, method: str, raw_path: str, raw_query: str) -> tuple[Question, Sequence[str]]:
        """The question in a URL, and the names of parameters that its route ignores. Raises Refusal."""
        route, parameters = self._find(method, raw_path)
        query = _query(raw_query)
        return read_question(route.question, route.fields, parameters, query), ignored.fields(route.fields, query)


def remembering(parse: Callable[..., Parsed]) -> Callable[..., Parsed]:
    """`parse`, with its last results remembered, except for long URLs: anyone could fill the memory with them."""
    remembered = lru_cache(_REMEMBERED)(parse)

    def parsed(method: str, *url: str) -> Parsed:
        short = sum(map(len, url)) <= _MAX_REMEMBERED_LENGTH
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


def _close_after(response: web.Response) -> None:
    """Close the connection after this answer, and announce it: aiohttp's answers to malformed requests do not."""
    response.force_close()
    response.headers["Connection"] = "close"


def _query(raw_query: str) -> MultiMapping[str]:
    """The query's parameters. Invalid UTF-8 becomes lone surrogates, which every kind of parameter refuses."""
    return MultiDict(parse_qsl(raw_query, keep_blank_values=True, errors="surrogateescape"))


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
        elif isinstance(fault, (Refusal, asyncpg.QueryCanceledError, TimeoutError, *DATABASE_AWAY)):
            log.warning("answer.cut_off", cause=f"{type(fault).__name__}: {fault}")
        else:
            log.error("connection.failed", words=str(words[0]), exc_info=fault)
