"""The table of routes as an HTTP server. Every answer, success or not, is made here.

It is aiohttp's low-level server: with an Application, some refusals (malformed requests, `Expect`) bypass middlewares.
"""

import asyncio
import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import asyncpg
import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler
from multidict import MultiDict, MultiMapping

from api import answers, caller, errors, metrics
from api.ask import AdminAsk, ChainAsk, OpenAsk
from api.errors import Refusal
from api.parameters import read_body, read_question
from api.route import Route, Router
from api.services import Services
from shared.address import LONGEST_TEXT
from shared.lifecycle import UNREACHABLE

log = structlog.get_logger()

LARGEST_BODY = 1024**2
LONGEST_REQUEST_S = 30.0
_IDLE_S = 75.0
_LONGEST_LINE = LONGEST_TEXT + 4_000  # bytes of a request line: a path with the longest address, and a query
_DISCARD_UNREAD_BODY_S = 2.0
_SEND_BODY_WITHIN_S = 20.0
_FINISH_WITHIN_S = 7.0

# What the database does to a request when it restarts, fails over, or is a replica whose rows are being vacuumed.
_DATABASE_AWAY = (*UNREACHABLE, asyncpg.InterfaceError, asyncpg.SerializationError, asyncpg.QueryCanceledError)

_SERVER = "ledgerline"
_HEADERS = {"Content-Type": answers.CONTENT_TYPE, "Server": _SERVER}
_NO_QUERY: MultiDict[str] = MultiDict()
_LOOK_EVERY_S = 1.0


class Api:
    """Answers requests by the table of routes."""

    def __init__(self, services: Services, routes: Iterable[Route]) -> None:
        self._services = services
        self._routes = tuple(routes)
        self._router = Router(self._routes)
        self._deadlines = _Deadlines()

    async def serve(self, listening: socket.socket, stop: asyncio.Event) -> None:
        """Answer until `stop` is set, then finish the requests that are under way."""
        options = {
            "keepalive_timeout": _IDLE_S,
            "lingering_time": _DISCARD_UNREAD_BODY_S,
            "max_line_size": _LONGEST_LINE,
            "access_log": None,
        }
        runner = web.ServerRunner(_Server(self.answer, options), shutdown_timeout=_FINISH_WITHIN_S)
        await runner.setup()
        watching = asyncio.create_task(self._deadlines.watch())
        try:
            await web.SockSite(runner, listening, backlog=1024).start()
            host, port, *_ = listening.getsockname()
            log.info("api.listening", host=host, port=port, pid=os.getpid())
            await stop.wait()
        finally:
            await runner.cleanup()
            watching.cancel()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request. An authenticated one is counted for its credential, whatever its status."""
        started = time.perf_counter()
        route: Route | None = None
        admission: caller.Admission | None = None
        try:
            with self._deadlines:
                route, parameters = self._router.find(request.method, request.rel_url.raw_path)
                _refuse_large_body(request)
                if route.who == "api key":
                    admission = await self._services.callers.api_key(_authorization(request))
                    if admission.refusal is not None:
                        raise admission.refusal
                response = await self._call(route, parameters, request, admission)
        except Exception as fault:  # noqa: BLE001 - the rim: it is logged, and the caller gets an answer
            response = _failed(_refusal_of(fault, route))
        took_s = time.perf_counter() - started
        if admission is not None:
            response.headers.update(admission.headers)
            try:
                self._services.spools.count(admission.key.credential_id, response.status, took_s)
            except Refusal as refusal:
                response = _failed(refusal)
        metrics.observe(route, response.status, took_s)
        return response

    async def _call(
        self, route: Route, parameters: Mapping[str, str], request: web.BaseRequest, admission: caller.Admission | None
    ) -> web.Response:
        """Check the caller where that is not done yet, read what is asked, and let the handler answer."""
        key = None
        if route.ask is AdminAsk:
            key = await self._services.callers.admin_key(_authorization(request), route.who)
        question = read_question(route.question, route.fields, parameters, _query(request))
        body = None if route.body is None else read_body(route.body, route.body_fields, await _body(request))
        ask: OpenAsk[Any] | ChainAsk[Any] | AdminAsk[Any, Any]
        if admission is not None:
            ask = ChainAsk(self._services, question, admission.key)
        elif key is not None:
            ask = AdminAsk(self._services, question, body, key, self._ip_address(request))
        else:
            ask = OpenAsk(self._services, question, self._routes)
        answer = await route.handler(ask)
        if isinstance(answer, web.Response):
            answer.headers["Server"] = _SERVER
            return answer
        return web.Response(status=route.status, body=answers.encode(answer), headers=_HEADERS)

    def _ip_address(self, request: web.BaseRequest) -> str | None:
        forwarded_for = request.headers.getall("X-Forwarded-For", ())
        return caller.ip_address(request.remote, forwarded_for, self._services.settings.trusted_proxies)


def _authorization(request: web.BaseRequest) -> Sequence[str]:
    return request.headers.getall("Authorization", ())


def _query(request: web.BaseRequest) -> MultiMapping[str]:
    """The query's parameters. Bytes that are no UTF-8 become lone surrogates, which every kind of parameter refuses."""
    text = request.rel_url.raw_query_string
    if not text:
        return _NO_QUERY
    if "%" not in text:
        return request.query
    return MultiDict(parse_qsl(text, keep_blank_values=True, errors="surrogateescape"))


def _refuse_large_body(request: web.BaseRequest) -> None:
    """Refuse by the announced length, before any of it is read. A body without one is measured while it arrives."""
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
            return await request.read()
    except TimeoutError as cause:
        raise errors.request_timeout() from cause
    except (web.RequestPayloadError, HttpProcessingError) as cause:
        raise errors.malformed_request() from cause


def _refusal_of(fault: Exception, route: Route | None) -> Refusal:
    """What a caller is told about an exception; what it was only the log says."""
    where = "none" if route is None else route.path
    if isinstance(fault, Refusal):
        return fault
    if isinstance(fault, web.HTTPRequestEntityTooLarge):
        return errors.body_too_large()
    if isinstance(fault, asyncpg.LockNotAvailableError):
        return errors.network_not_available()
    if isinstance(fault, TimeoutError):
        log.warning("request.too_slow", route=where)
        return errors.too_slow()
    if isinstance(fault, _DATABASE_AWAY):
        log.warning("request.without_database", route=where, cause=f"{type(fault).__name__}: {fault}")
        return errors.database_not_available()
    log.error("request.failed", route=where, exc_info=fault)
    return errors.internal_error()


def _failed(refusal: Refusal) -> web.Response:
    return web.Response(status=refusal.status, body=answers.failure(refusal), headers={**_HEADERS, **refusal.headers})


class _Deadlines:
    """LONGEST_REQUEST_S for each request. What `asyncio.timeout` does, but no timer is set and taken back each time.

    Entered by the task of a request; raises TimeoutError, up to _LOOK_EVERY_S late.
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
        assert task is not None, "it is the task that has entered"
        del self._under_way[task]
        if task in self._overdue:
            self._overdue.remove(task)
            if task.uncancel() == 0 and kind is asyncio.CancelledError:
                raise TimeoutError

    async def watch(self) -> None:
        """Cancel overdue requests, for ever."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            latest = time.monotonic() - LONGEST_REQUEST_S
            for task, started in self._under_way.items():
                if started > latest:
                    break
                if task not in self._overdue:
                    self._overdue.add(task)
                    task.cancel()


class _Server(web.Server):
    """aiohttp's server, but each connection answers in the envelope even what is no HTTP."""

    def __init__(self, handler: Any, options: Mapping[str, Any]) -> None:
        super().__init__(handler)
        self._options = options

    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=asyncio.get_running_loop(), **self._options)


class _Connection(RequestHandler):
    """One connection. aiohttp asks it to word what it refuses by itself: malformed requests, for one."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("part of an answer is sent already")
        if status >= 500:
            log.error("connection.failed", exc_info=exc)
        else:
            log.debug("request.malformed", cause=message)
        response = _failed(errors.malformed_request() if status < 500 else errors.internal_error())
        response.force_close()
        return response
