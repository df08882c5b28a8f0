"""Send events to webhooks, in the background of the usage aggregator.

Postgres has everything that must survive: up to which number events are delivered, when the next is tried, and how
often it has failed. A webhook's next event is sent when the delivery of the one before is committed, so they arrive in
order and, if a process is killed, at most the one under way is sent again. One process of the aggregator sends: the one
whose connection has the lock (docs/decisions/0085).
"""

import asyncio
import resource
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID

import aiohttp
import asyncpg
import msgspec
import structlog

from api.answers import encode
from api.events import attempts, signatures
from api.events.attempts import Fault, Standing
from api.events.slots import Slots
from api.events.subscriptions import EventRow, show_event
from api.sources import clock, egress
from api.sources.egress import Egress
from api.usage import hours
from api.usage.queue import BreakdownSum
from shared import database, schema, sql
from shared.network import by_id

log = structlog.get_logger()

WITHIN_S = 15.0
"""How long an attempt may take, from the resolution of the name to the head of the answer."""

KEPT_ATTEMPTS = 20
"""How many attempts of each webhook can be looked up."""

LOOK_EVERY_S, LOOK_AT_ALL_EVERY_S = 0.05, 0.5
"""How often the sender looks whether there are new events, and whether a pause is over or a log has caught up."""

_LOCK = 0x4C45444C_48455245  # arbitrary
_TRY_EVERY_S = 1.0
_SHARE = 5  # at most one part in so many of the time goes to looking
_MOST_DUE = 10_000
_MOST_STARTED = 128  # whose events are read together
_READ_EVENTS, _READ_BYTES = 16, 64 * 1024  # read ahead for one webhook
_READ_FOR_S = 1.0  # how long what was read is used: then the key may be revoked, the secret another
_MOST_KEPT, _LOOK_UPS = 2_048, 64
_LAST_RESULTS_S = 1.0  # how long an ending process waits for answers


class _Due(msgspec.Struct, frozen=True):
    subscription_no: int
    admin_key_id: UUID


class _Webhook(msgspec.Struct, frozen=True):
    subscription_no: int
    revision: UUID
    subscription_id: UUID
    credential_id: UUID
    network_id: int
    url: str
    secret: bytes
    former_secret: bytes | None
    delivered_number: int
    failures: int


class _Event(EventRow, frozen=True):
    """An event of one of several logs."""

    subscription_no: int


class _Settled(msgspec.Struct, frozen=True):
    subscription_no: int
    goes_on: bool


class _Sending(msgspec.Struct, eq=False):
    """A webhook with a slot: its next events, and how many attempts of the first of them have failed."""

    webhook: _Webhook
    events: deque[_Event]
    failures: int
    read_s: float  # when, on the monotonic clock


class _Attempt(msgspec.Struct, frozen=True):
    """An attempt that has ended."""

    sending: _Sending
    number: int
    standing: Standing
    tried_at: datetime
    took_s: float
    status: int | None = None
    error: Fault | None = None


_sql = sql.beside(__file__)
_try_to_lead = _sql.values("try_to_lead", bool)
_steps = _sql.values("steps", int)
_due = _sql.query("due", _Due)
_webhooks = _sql.query("webhooks", _Webhook)
_events = _sql.query("events", _Event)
_settle = _sql.query("settle", _Settled, places=str(KEPT_ATTEMPTS))


async def run(database_url: str, rules: egress.Rules) -> None:
    """Send events whenever no other process does, until cancelled."""
    while True:
        db = await database.connect(database_url)
        try:
            if await _try_to_lead.only(db, _LOCK):
                log.info("webhooks.sending")
                async with egress.opened(rules, most_kept=_may_be_kept(), look_ups=_LOOK_UPS) as out:
                    await Sender(db, out).run()
        finally:
            db.terminate()
        await asyncio.sleep(_TRY_EVERY_S)


def _may_be_kept() -> int:
    """Raise the limit of descriptors to its maximum; returns how many connections may be kept."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return _MOST_KEPT if hard == resource.RLIM_INFINITY else min(_MOST_KEPT, hard // 2)


class Sender:
    """Sends events, and notes the results. Each `step` is at most one commit."""

    def __init__(self, db: asyncpg.Connection, out: Egress) -> None:
        self._db, self._out = db, out
        self._slots = Slots()
        self._attempts = set[asyncio.Task[None]]()
        self._ended: list[_Attempt] = []
        self._any_ended = asyncio.Event()
        self._seen_steps = -1
        self._look_at, self._look_at_all = 0.0, 0.0
        self._some_wait = False  # for a slot
        self._part, self._part_until = 0, 0.0  # that events are counted in

    @property
    def under_way(self) -> int:
        """How many attempts have not ended, or are not noted yet."""
        return len(self._slots.taken)

    async def run(self) -> None:
        """Send until cancelled; then wait a little for the answers that are under way."""
        try:
            while True:
                await self.step()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY_S):
                        await self._any_ended.wait()
        except asyncio.CancelledError:
            if self._attempts:
                await asyncio.wait(self._attempts, timeout=_LAST_RESULTS_S)
            await self._settle()
            raise
        finally:
            for attempt in self._attempts:
                attempt.cancel()

    async def step(self) -> None:
        """Note the results that there are, and send what is due."""
        self._any_ended.clear()
        await self._settle()
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_S
        steps = await _steps.only(self._db)
        if steps != self._seen_steps or now >= self._look_at_all:
            self._seen_steps, self._look_at_all = steps, now + LOOK_AT_ALL_EVERY_S
            await self._start_due()

    async def _start_due(self) -> None:
        """Send to the webhooks that are due and get a slot."""
        if self._slots.are_full():
            return
        began = time.monotonic()
        found = await _due.all(self._db, list(self._slots.taken), _MOST_DUE)
        now = time.monotonic()
        self._look_at = now + min(max(LOOK_EVERY_S, (now - began) * _SHARE), LOOK_AT_ALL_EVERY_S)
        chosen = list[int]()
        self._some_wait = False
        for due in found:
            if self._slots.take(due.subscription_no, due.admin_key_id):
                chosen.append(due.subscription_no)
                continue
            self._some_wait = True
            if self._slots.are_full():
                break
        for at in range(0, len(chosen), _MOST_STARTED):
            await self._start(chosen[at : at + _MOST_STARTED])

    async def _start(self, subscription_nos: Sequence[int]) -> None:
        """Read the next events of webhooks that have slots, and send the first of each."""
        read_s = time.monotonic()
        webhooks = await _webhooks.all(self._db, subscription_nos)
        columns = sql.columns(((each.subscription_no, each.delivered_number) for each in webhooks), empty=2)
        events: dict[int, deque[_Event]] = {each.subscription_no: deque() for each in webhooks}
        for event in await _events.all(self._db, *columns, _READ_EVENTS, _READ_BYTES):
            events[event.subscription_no].append(event)
        for gone in set(subscription_nos) - events.keys():
            self._slots.free(gone)
        for webhook in webhooks:
            sending = _Sending(webhook, events[webhook.subscription_no], webhook.failures, read_s)
            number = webhook.delivered_number + 1
            if sending.events and sending.events[0].number == number:
                self._send(sending)
            else:
                self._end(_Attempt(sending, number, attempts.NOT_KEPT, clock.now(), 0.0, error="events_not_kept"))

    def _send(self, sending: _Sending) -> None:
        task = asyncio.create_task(self._attempt(sending))
        self._attempts.add(task)
        task.add_done_callback(self._attempts.discard)

    async def _attempt(self, sending: _Sending) -> None:
        """Send the first event."""
        event, webhook = sending.events[0], sending.webhook
        began, tried_at = time.monotonic(), clock.now()
        status, error = None, None
        try:
            body = encode(show_event(event, by_id[webhook.network_id])).decode()
            secrets = [webhook.secret] if webhook.former_secret is None else [webhook.secret, webhook.former_secret]
            name = signatures.message_id(webhook.subscription_id, event.number)
            headers = signatures.headers(name, tried_at, body, secrets)
            status = await self._out.post(webhook.url, body.encode(), headers, within_s=WITHIN_S)
        except Exception as cause:  # one event must not keep others from being sent
            error = _fault(cause)
            log.info(
                "webhooks.not_sent",
                subscription=str(webhook.subscription_id),
                number=event.number,
                cause=f"{type(cause).__name__}: {_without_url(cause)}",
                exc_info=cause if error == "internal" else None,
            )
        standing = attempts.after(status, sending.failures)
        took_s = time.monotonic() - began
        self._slots.judge(webhook.subscription_no, delivered=standing.result == "delivered", took_s=took_s)
        self._end(_Attempt(sending, event.number, standing, tried_at, took_s, status, error))

    def _end(self, attempt: _Attempt) -> None:
        self._ended.append(attempt)
        self._any_ended.set()

    async def _settle(self) -> None:
        """Note the attempts that have ended, then go on with the next events."""
        ended, self._ended = self._ended, []
        if not ended:
            return
        async with schema.commit(self._db):
            settled = await _settle.all(self._db, *_columns(ended))
            await self._count(ended)
        goes_on = {row.subscription_no for row in settled if row.goes_on}
        for each in ended:
            sending, number = each.sending, each.sending.webhook.subscription_no
            if each.standing.result == "delivered" and number in goes_on:
                sending.failures = 0
                sending.events.popleft()
                if sending.events and time.monotonic() - sending.read_s < _READ_FOR_S:
                    self._send(sending)
                    continue
                self._look_at_all = 0.0  # there may be more
            self._slots.free(number)
        if self._some_wait:
            self._look_at = self._look_at_all = 0.0

    async def _count(self, ended: Iterable[_Attempt]) -> None:
        """Add the acknowledged events to usage, whatever a request has changed meanwhile."""
        delivered = Counter(
            (each.sending.webhook.credential_id, int(each.tried_at.timestamp()) // 3600)
            for each in ended
            if each.standing.result == "delivered"
        )
        if not delivered:
            return
        now = time.monotonic()
        if self._part or now >= self._part_until:
            self._part, self._part_until = await hours.part(self._db), now + LOOK_AT_ALL_EVERY_S
        sums = [
            BreakdownSum(credential_id.hex, hour, hours.WEBHOOK, 2, events=events)
            for (credential_id, hour), events in delivered.items()
        ]
        await hours.add(self._db, self._part, sums)


def _columns(ended: Iterable[_Attempt]) -> list[list[object]]:
    return sql.columns(
        (
            each.sending.webhook.subscription_no,
            each.sending.webhook.revision,
            each.number,
            each.standing.result,
            each.standing.state,
            each.standing.failures,
            each.standing.pause_s,
            each.tried_at,
            round(each.took_s * 1000),
            each.sending.failures + 1,
            each.status,
            each.error,
        )
        for each in ended
    )


def _without_url(cause: Exception) -> str:
    """The text of an error, for the log. URLs may contain secrets of their owners."""
    return cause.message if isinstance(cause, aiohttp.ClientResponseError) else str(cause)


def _fault(cause: Exception) -> Fault:
    """Why there was no answer, as its owner sees it. What was refused looks like a host that is not there."""
    match cause:
        case TimeoutError():
            return "timeout"
        case aiohttp.ClientSSLError():
            return "tls"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientResponseError() | aiohttp.ClientPayloadError():
            return "invalid_response"
        case OSError() | aiohttp.ClientError():
            return "unreachable"
    return "internal"
