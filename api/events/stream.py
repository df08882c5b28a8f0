"""The events of a subscription as they happen: server-sent events, in the form of the HTML standard.

A browser's EventSource connects again by itself whenever a stream ends, but gives up for good on any status but 200 and
on another media type. So whoever may be one that connects again gets a refusal as an event (`resumes`, `refused`).
"""

import random
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Annotated

import asyncpg
import msgspec
from aiohttp import web
from prometheus_client import Gauge

from api import errors
from api.answers import Answer, Instant, Page
from api.ask import StreamAsk
from api.errors import Refusal
from api.events import subscriptions
from api.events.subscriptions import (
    CompleteTo,
    EventPaging,
    FromPosition,
    OneSubscription,
    Position,
    ToldEvent,
    read_events,
)
from api.http.sending import SentStream
from api.keys import tickets
from api.parameters import Text
from api.sources import clock
from shared.lifecycle import UNREACHABLE

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_S = 15.0
"""How long a stream is silent at most, and how long it outlives its key."""

MAX_OPEN_S = 3_600.0
"""After this time a stream ends, and its reader connects again: to any process that there is by then."""

MAX_PAGE_EVENTS, MAX_PAGE_BYTES = 100, 131_072
"""What a stream reads from the log before its reader has taken it. A single event may have more bytes."""

_MINUTE_S = 60.0
_TICKET_LENGTH = 200
_RETRY_MS, _REOPEN_MS, _RETRY_LATER_MS, _RETRY_NEVER_MS = 2_000, (200, 2_000), (5_000, 10_000), 3_600_000
_SHORTAGES = (408, 429)  # besides those of 500 and more, what may be granted later
_DATABASE_AWAY = (*UNREACHABLE, asyncpg.InterfaceError, asyncpg.QueryCanceledError, TimeoutError)
_HEADERS = {
    "Content-Type": f"{MEDIA_TYPE};charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # nginx would hold events back
}

_open = Gauge("ledgerline_event_streams", "Streams of events that are open.", multiprocess_mode="livesum")


class StreamQuestion(FromPosition, frozen=True, kw_only=True):
    """The position at which a stream begins, and a ticket for callers that can't send a key in a header."""

    ticket: Annotated[str | None, Text(_TICKET_LENGTH)] = None


class StreamTicket(msgspec.Struct, frozen=True):
    """What stands for the API key in the URL of a stream of one subscription: `?ticket=…`."""

    ticket: str
    expires_at: Instant


class Idle(msgspec.Struct, frozen=True):
    """The end of the log: `next` is the number of the last event, `complete_to` as in a page of events."""

    next: int
    complete_to: CompleteTo | None


class RefusedStream(msgspec.Struct, frozen=True):
    """Why a stream ends. If it is `final`, connecting again does not help."""

    code: str
    error: str
    final: bool


async def create_ticket(ask: StreamAsk[OneSubscription]) -> Answer[StreamTicket]:
    """Issue a ticket for the stream of a subscription.

    A browser's EventSource can't send an API key. The ticket is valid for 12 hours, at most as long as the key, and
    only for this stream.
    """
    await subscriptions.get_subscription(ask)  # which must be the caller's
    ticket = tickets.issued(ask.key_hash, ask.key.credential_id, ask.question.id, clock.now())
    return Answer(data=StreamTicket(ticket.text, ticket.expires_at))


async def stream_events(ask: StreamAsk[StreamQuestion]) -> web.Response:
    """Stream the events of a subscription as they happen (server-sent events).

    Each has its number as `id`, its action (`apply`, `undo`, `reset` or `notice`) as `event`, and as `data` the object
    that it is in a page. `idle` follows the last one, and comes again every 15 seconds: the log is complete up to its
    `complete_to`. `refused` says why the stream ends. A stream that ends is continued by connecting again with
    `Last-Event-ID`, which has precedence over `after` and `after_block`.
    """
    position = _position(ask)
    page, subscription_no = await read_events(ask, position, MAX_PAGE_EVENTS, MAX_PAGE_BYTES)
    if ask.notes.is_head:
        return web.Response(headers=_HEADERS)
    streams, key = ask.services.streams, ask.key.credential_id
    if not streams.is_free(key):
        raise errors.too_many_concurrent_requests("streams")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(streams.turn(key))
        stack.enter_context(_open.track_inprogress())
        parts = _parts(ask, page, subscription_no)
        stack.push_async_callback(parts.aclose)
        body = SentStream(parts, stack.pop_all(), ask.services.event_heads.stopping)
        return web.Response(body=body, headers=_HEADERS)


def _position(ask: StreamAsk[StreamQuestion]) -> Position:
    sent = ask.last_event_id
    if not sent:
        return Position(ask.question.after, ask.question.after_block)
    if not (sent.isascii() and sent.isdecimal() and len(sent) < 20):
        raise errors.invalid_parameter("Last-Event-ID must be the number of an event")
    return Position(int(sent))


async def _parts(
    ask: StreamAsk[StreamQuestion], page: Page[ToldEvent, EventPaging], subscription_no: int
) -> AsyncGenerator[bytes, None]:
    """The stream, page by page; the first one has been read."""
    heads, began_s = ask.services.event_heads, time.monotonic()
    admitted_s, minutes = began_s, 0
    yield _retry(_RETRY_MS)
    try:
        while not heads.stopping.is_set() and time.monotonic() - began_s < MAX_OPEN_S:
            begun = int((time.monotonic() - began_s) // _MINUTE_S) + 1
            ask.services.spools.count_streamed(ask.key.credential_id, ask.endpoint, len(page.data), begun - minutes)
            minutes = begun
            yield _written(page)
            if not page.pagination.has_more:
                await heads.wait(subscription_no, page.pagination.next, HEARTBEAT_S)
                if heads.stopping.is_set():
                    break
            if time.monotonic() - admitted_s >= HEARTBEAT_S:
                await _admit(ask)
                admitted_s = time.monotonic()
            page, _ = await read_events(ask, Position(page.pagination.next), MAX_PAGE_EVENTS, MAX_PAGE_BYTES)
        yield _retry(random.randint(*_REOPEN_MS))
    except Refusal as refusal:
        yield refused(refusal)
    except _DATABASE_AWAY:
        yield refused(errors.database_not_available())


async def _admit(ask: StreamAsk[StreamQuestion]) -> None:
    """Raises Refusal if the key or the ticket of an open stream is no longer valid."""
    if ask.ends_at is not None and clock.now() >= ask.ends_at:
        raise errors.invalid_ticket()
    await ask.services.callers.still_admitted(ask.key_hash, ask.use)


def _written(page: Page[ToldEvent, EventPaging]) -> bytes:
    """The events of a page, and `idle` if they are the last ones."""
    written = [_event(event.action, event, event.number) for event in page.data]
    if not page.pagination.has_more:
        idle = Idle(page.pagination.next, page.pagination.complete_to)
        written.append(_event("idle", idle, idle.next))
    return b"".join(written)


def refused(refusal: Refusal) -> bytes:
    """A refusal as the last event of a stream."""
    final = refusal.status < 500 and refusal.status not in _SHORTAGES
    told = RefusedStream(refusal.code, refusal.message, final)
    return _retry(_RETRY_NEVER_MS if final else random.randint(*_RETRY_LATER_MS)) + _event("refused", told)


def resumes(request: web.BaseRequest) -> bool:
    """Whether a request may be that of an EventSource which connects again, and so must not get another status."""
    path = request.rel_url.raw_path
    if not (path.startswith("/v1/subscriptions/") and path.endswith("/events/stream")) or request.method != "GET":
        return False
    return "Last-Event-ID" in request.headers or "ticket" in request.rel_url.query


def refused_stream(refusal: Refusal) -> web.Response:
    """The answer for a refusal to a request that `resumes`."""
    return web.Response(body=refused(refusal), headers={**_HEADERS, "Error-Code": refusal.code})


def _event(name: str, data: msgspec.Struct, number: int | None = None) -> bytes:
    position = b"" if number is None else b"id: %d\n" % number
    return position + b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(data))


def _retry(after_ms: int) -> bytes:
    """How long the reader waits before it connects again once the stream has ended."""
    return b"retry: %d\n\n" % after_ms
