"""Exceptions as refusals, and refusals as answers."""

import asyncpg
import structlog
from aiohttp import web

from api import answers, errors
from api.blockfrost import shape
from api.errors import Refusal
from api.events import stream
from api.http.connections import free
from api.route import Route
from shared import schema
from shared.lifecycle import UNREACHABLE

log = structlog.get_logger()

DATABASE_AWAY = (*UNREACHABLE, asyncpg.InterfaceError, asyncpg.SerializationError)
"""Errors that a request gets when the database restarts, fails over or is full."""

_OF_A_BODY = frozenset(("Content-Type", "Content-Encoding", "Content-Disposition", "ETag", "Cache-Control", "Link"))


def refusal_of(fault: Exception, route: Route | None) -> Refusal:
    """The refusal that a caller gets for an exception. Unexpected exceptions go to the log."""
    where = "none" if route is None else route.path
    match fault:
        case Refusal():
            refusal = fault
        case web.HTTPRequestEntityTooLarge():
            refusal = errors.body_too_large()
        case asyncpg.LockNotAvailableError():
            refusal = errors.network_not_available()
        case TimeoutError() | asyncpg.QueryCanceledError():
            log.warning("request.too_slow", route=where)
            refusal = errors.too_slow()
        case _ if isinstance(fault, DATABASE_AWAY):
            log.warning("request.without_database", route=where, cause=f"{type(fault).__name__}: {fault}")
            refusal = errors.database_not_available()
        case schema.WrongSchema():
            log.warning("request.newer_schema", route=where, cause=str(fault))
            refusal = errors.upgrade_in_progress()
        case _:
            log.error("request.failed", route=where, exc_info=fault)
            refusal = errors.internal_error()
    return refusal


def failed(refusal: Refusal, request: web.BaseRequest) -> web.Response:
    """The answer for a refusal; below /blockfrost in Blockfrost's form, for a stream that goes on as an event."""
    if stream.resumes(request):
        return stream.refused_stream(refusal)
    headers = {"Content-Type": answers.CONTENT_TYPE, "Error-Code": refusal.code, **refusal.headers}
    if shape.covers(request.rel_url.raw_path):
        status, body = shape.failure(refusal)
    else:
        status, body = refusal.status, answers.failure(refusal)
    return web.Response(status=status, body=body, headers=headers)


async def instead(response: web.Response, refusal: Refusal, request: web.BaseRequest) -> web.Response:
    """The answer for a refusal, with the headers of a response that can't be sent and is freed."""
    await free(response)
    refused = failed(refusal, request)
    for name in set(response.headers) - _OF_A_BODY:
        refused.headers.setdefault(name, response.headers[name])
    return refused
