"""Subscriptions of an API key: what its logs tell of, and the page of events that every way to read them has."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Literal, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from api import errors
from api.answers import Answer, Confirmation, Digits, Instant, Json, LogPaging, MorePaging, Page, Paging
from api.ask import EventsAsk, Nothing
from api.events import log as logs
from api.events import subjects
from api.events.subjects import Direction, EventKind, Owner, SentSubjects
from api.parameters import MAX_SAFE_INTEGER, Body, Choice, Hex, Id, Integer, Offset, Question
from api.sources import clock
from shared import sql
from shared.ledger import SECURITY_PARAMETER
from shared.network import Network, by_id
from shared.sql import Connection

MAX_WAIT_S = 25
"""The longest that a request may wait for events: less than any request may take."""

MAX_PAGE_BYTES = 4 * 1024**2
"""The most bytes of objects in a page of several events."""

_MOST_SUBJECTS = 4_096  # whose texts are remembered: an address takes longer to write than the rest of its event

Begins = Literal["at_once", "later"]
State = Literal["new", "catching_up", "live"]
Action = Literal["apply", "undo", "notice", "reset"]


class NewSubscription(Body, frozen=True, kw_only=True):
    """What to be told of. Further subjects can be added.

    `confirmations` is how many blocks follow a block when it is told of. The log begins with the next block, or with
    the first one after `from_slot`, at once, or, with `begins` set to `later`, when its other subjects have been added.
    """

    subjects: SentSubjects
    confirmations: Annotated[int, Integer(0, SECURITY_PARAMETER)] = 0
    from_slot: Annotated[int | None, Integer(0, MAX_SAFE_INTEGER)] = None
    begins: Annotated[Begins, Choice("at_once", "later")] = "at_once"


class SubjectList(Body, frozen=True, kw_only=True):
    """Subjects to add or to remove."""

    subjects: SentSubjects


class OneSubscription(Question, frozen=True, kw_only=True):
    """The id of a subscription."""

    id: Annotated[UUID, Id("Invalid subscription ID format")]


class SubscriptionList(Question, frozen=True, kw_only=True):
    """A page of the subscriptions."""

    limit: Annotated[int, Integer(1, 100)] = 20
    offset: Offset = 0


class SubjectsQuestion(OneSubscription, frozen=True, kw_only=True):
    """A page of the subjects."""

    limit: Annotated[int, Integer(1, 500)] = 100
    offset: Offset = 0


class FromPosition(OneSubscription, frozen=True, kw_only=True):
    """Events after a number or, for a client that has loaded the state of a block, after that block."""

    after: Annotated[int | None, Integer(0, MAX_SAFE_INTEGER)] = None
    after_block: Annotated[bytes | None, Hex(32, message="after_block must be a block hash of 64 hex digits")] = None

    def check(self) -> None:
        """One position at most."""
        if self.after is not None and self.after_block is not None:
            raise errors.invalid_parameter("after and after_block must not be given both")


class EventsQuestion(FromPosition, frozen=True, kw_only=True):
    """A page of events."""

    limit: Annotated[int, Integer(1, 100)] = 100
    wait: Annotated[int, Integer(0, MAX_WAIT_S)] = 0


class CompleteTo(msgspec.Struct, frozen=True):
    """The block up to which a log is complete: if it has no event, nothing has happened."""

    slot_no: int
    block_no: int
    block_hash: str
    block_time: Instant


class Subscription(msgspec.Struct, frozen=True):
    """A subscription.

    It tells of blocks after `after_slot_no`. While it is `catching_up`, earlier blocks are still being read for it;
    `complete_to` is null until it is `live`. `last_number` is the number of its last event.
    """

    id: UUID
    network_id: int
    created_at: Instant
    state: State
    confirmations: int
    subject_count: int
    after_slot_no: int
    last_number: int
    complete_to: CompleteTo | None


class SubscriptionSubject(msgspec.Struct, frozen=True):
    """What is told of."""

    kind: EventKind
    subject: Json | None
    direction: Direction
    least_quantity: Digits


class EventBlock(msgspec.Struct, frozen=True):
    """The block of an event."""

    slot_no: int
    block_no: int
    block_hash: str
    block_time: Instant


class ToldEvent(msgspec.Struct, frozen=True):
    """An event. Numbers are 1, 2, 3 … without gaps.

    An `apply` tells of something in a block. An `undo` takes back the event with the number `undoes`, whose block is no
    longer on the chain; otherwise it repeats that event. It is always the last `apply` that is not undone yet. A
    `notice` tells of something that is in no block, and is never undone; its `block` is the last one before it. A
    `reset` says that blocks from before the beginning of the log were undone: whoever has loaded the state of one of
    them loads it again.

    `received` and `spent` are quantities of the subject. `object` is what `/v1` answers about the event, with
    quantities as texts.
    """

    number: int
    action: Action
    kind: EventKind | None
    subject: Json | None
    block: EventBlock
    object: Json
    undoes: int | UnsetType = UNSET
    received: Digits | UnsetType = UNSET
    spent: Digits | UnsetType = UNSET


class EventPaging(LogPaging, frozen=True):
    """The position of a page in its log: `next` is the `after` of the next page, and of the next request.

    On the last page, `complete_to` is the block up to which there are no more events; null until the log is live.
    """

    complete_to: CompleteTo | None


class Position(msgspec.Struct, frozen=True):
    """Where a page begins: after a number, after a block, or with the first event that is kept."""

    after: int | None = None
    after_block: bytes | None = None


SubscriptionT = TypeVar("SubscriptionT", bound=OneSubscription)


class _Row(msgspec.Struct, frozen=True):
    subscription_no: int
    id: UUID
    created_at: datetime
    network_id: int
    state: State
    confirmations: int
    subjects: int
    after_slot_no: int
    last_number: int
    slot_no: int | None  # null, like the rest of the block, unless the subscription is live
    block_no: int | None
    block_hash: bytes | None


class _Locked(msgspec.Struct, frozen=True):
    subscription_no: int
    subjects: int
    user_account_id: UUID


class _SubjectRow(msgspec.Struct, frozen=True):
    key: bytes
    direction: Direction
    least: str


class EventRow(msgspec.Struct, frozen=True):
    """An event in the log."""

    number: int
    step: int
    slot_no: int
    block_no: int
    block_hash: bytes
    key: bytes
    received: str | None
    spent: str | None
    undoes: int | None
    body: str


class _Followed(msgspec.Struct, frozen=True):
    step: int
    slot_no: int
    undone: bool


_sql = sql.beside(__file__)
_lock_credential = _sql.values("lock_credential", UUID)
_count = _sql.values("count", int)
_create = _sql.values("create", UUID)
_begin = _sql.command("begin")
_end = _sql.values("end", int)
_lock = _sql.query("lock", _Locked)
_add = _sql.values("add", bool)
_remove = _sql.command("remove")
_change_subjects = _sql.command("change_subjects")
_one = _sql.query("subscriptions", _Row, and_page="AND id = $2")
_page = _sql.query("subscriptions", _Row, and_page="ORDER BY subscription_no DESC LIMIT $2 OFFSET $3")
_subjects = _sql.query("subjects", _SubjectRow)
_events = _sql.query("events", EventRow)
_followed_block = _sql.query("followed_block", _Followed)
_live_step = _sql.values("live_step", int)
_number_at = _sql.values("number_at", int)


async def create_subscription(ask: EventsAsk[Nothing, NewSubscription]) -> Confirmation[Subscription]:
    """Create a subscription of the API key's credential.

    The log begins with the next block, or after `from_slot`, as far back as events are kept.
    """
    new, settings, network = ask.body, ask.services.settings, ask.network
    given = await subjects.parse_all(new.subjects, network)
    if new.from_slot is not None:
        earliest = clock.now() - timedelta(days=settings.events_days)
        if network.slot_time(min(new.from_slot, _FAR_SLOT)) < earliest:
            raise errors.invalid_parameter(f"from_slot must be at most {settings.events_days} days ago")
    async with ask.commit() as db:
        await _lock_credential.only(db, ask.key.credential_id)
        if await _count.only(db, ask.key.credential_id) >= settings.events_subscriptions:
            raise errors.too_many_subscriptions(settings.events_subscriptions)
        mark_slot = await _share_mark(db, network)
        after = mark_slot if new.from_slot is None else min(new.from_slot - 1, mark_slot)
        own = ask.key.credential_id, network.network_id
        created = await _create.only(db, *own, new.confirmations, after, new.begins == "at_once")
        await _add_all(db, ask.key.credential_id, created, given, network, settings.events_subjects)
        subscription = await _read(db, ask.key.credential_id, created)
    return Confirmation(data=_show(subscription), message="Subscription created")


async def list_subscriptions(ask: EventsAsk[SubscriptionList, None]) -> Page[Subscription, Paging]:
    """List the subscriptions of the API key's credential, newest first."""
    page = ask.question
    async with ask.reading() as db:
        data, total = await of_credential(db, ask.key.credential_id, page.limit, page.offset)
    more = page.offset + len(data) < total
    return Page(data=data, pagination=Paging(page.limit, page.offset, total, more))


async def get_subscription(ask: EventsAsk[OneSubscription, None]) -> Answer[Subscription]:
    """Read a subscription."""
    async with ask.partners() as db:
        return Answer(data=_show(await _read(db, ask.key.credential_id, ask.question.id)))


async def begin_subscription(ask: EventsAsk[OneSubscription, None]) -> Confirmation[Subscription]:
    """Begin a subscription that was created to begin later. It is harmless to repeat this."""
    async with ask.commit() as db:
        await _read(db, ask.key.credential_id, ask.question.id)  # nobody waits for a request about none
        await _begin.run(db, ask.key.credential_id, ask.question.id, await _share_mark(db, ask.network))
        row = await _read(db, ask.key.credential_id, ask.question.id)
    return Confirmation(data=_show(row), message="Subscription begun")


async def delete_subscription(ask: EventsAsk[OneSubscription, None]) -> Confirmation[Subscription]:
    """Delete a subscription and its log."""
    async with ask.commit() as db:
        row = await _read(db, ask.key.credential_id, ask.question.id)
        if await _end.one(db, ask.key.credential_id, ask.question.id) is None:
            raise errors.subscription_not_found()
    return Confirmation(data=_show(row), message="Subscription deleted")


async def list_subscription_subjects(ask: EventsAsk[SubjectsQuestion, None]) -> Page[SubscriptionSubject, MorePaging]:
    """List the subjects of a subscription, in a fixed order."""
    page = ask.question
    async with ask.reading() as db:
        row = await _read(db, ask.key.credential_id, page.id)
        found = await _subjects.all(db, row.subscription_no, page.limit + 1, page.offset)
    shown = [
        SubscriptionSubject(subjects.kind_of(each.key), _subject(each.key), each.direction, each.least)
        for each in found[: page.limit]
    ]
    return Page(data=shown, pagination=MorePaging(page.limit, page.offset, has_more=len(found) > page.limit))


async def add_subscription_subjects(ask: EventsAsk[OneSubscription, SubjectList]) -> Confirmation[Subscription]:
    """Add subjects to a subscription, which is told of them from the next block on.

    A subject that it already has gets the new direction and least quantity.
    """
    given = await subjects.parse_all(ask.body.subjects, ask.network)
    most = ask.services.settings.events_subjects
    async with ask.commit() as db:
        await _read(db, ask.key.credential_id, ask.question.id)  # nobody waits for a request about none
        await logs.share(db, ask.network)  # the follower waits, so the mark says since when they are told
        await _add_all(db, ask.key.credential_id, ask.question.id, given, ask.network, most)
        row = await _read(db, ask.key.credential_id, ask.question.id)
    return Confirmation(data=_show(row), message="Subjects added")


async def remove_subscription_subjects(ask: EventsAsk[OneSubscription, SubjectList]) -> Confirmation[Subscription]:
    """Remove subjects from a subscription. Events of them that were told can still be undone."""
    given = await subjects.parse_all(ask.body.subjects, ask.network)
    async with ask.commit() as db:
        locked = await _locked(db, ask.key.credential_id, ask.question.id)
        ids: dict[Owner, UUID] = {"credential": ask.key.credential_id, "account": locked.user_account_id}
        own = subjects.owned(given, ids)
        tag = await _remove.run(db, locked.subscription_no, list(own))
        await _change_subjects.run(db, locked.subscription_no, -int(tag.rpartition(" ")[2]))
        row = await _read(db, ask.key.credential_id, ask.question.id)
    return Confirmation(data=_show(row), message="Subjects removed")


async def list_events(ask: EventsAsk[EventsQuestion, None]) -> Page[ToldEvent, EventPaging]:
    """Read the events of a subscription, in order.

    Without a position, the page begins with the first event that is kept. With `wait`, a request for events that have
    not happened yet waits for them, for so many seconds. Whoever continues with `next` misses and repeats nothing.
    """
    asked, began = ask.question, time.monotonic()
    position = Position(asked.after, asked.after_block)
    page, subscription_no = await read_events(ask, position, asked.limit, MAX_PAGE_BYTES)
    within_s = asked.wait - (time.monotonic() - began)  # it may have waited for its turn
    if not page.data and within_s > 0:
        await ask.services.event_heads.beyond(ask.key.credential_id, subscription_no, page.pagination.after, within_s)
        page, _ = await read_events(ask, position, asked.limit, MAX_PAGE_BYTES)
    ask.notes.events = len(page.data)
    return page


async def read_events(
    ask: EventsAsk[SubscriptionT, None], position: Position, limit: int, most_bytes: int
) -> tuple[Page[ToldEvent, EventPaging], int]:
    """A page of events, and the number of the subscription. Raises Refusal."""
    async with ask.reading() as db:
        row = await _read(db, ask.key.credential_id, ask.question.id)
        after = await _number_of(db, row, position)
        rows = await _events.all(db, row.subscription_no, after, limit, most_bytes)
    last = rows[-1].number if rows else after
    if last - after != len(rows) or (not rows and row.last_number > after):
        raise errors.events_not_kept(_first_kept(row, rows))
    more = last < row.last_number
    network = by_id[row.network_id]
    page = Page(
        data=[show_event(event, network) for event in rows],
        pagination=EventPaging(limit, after, last, more, None if more else _complete_to(row)),
    )
    return page, row.subscription_no


def _first_kept(row: _Row, rows: Sequence[EventRow]) -> int:
    """The first number from which on no event of a page is missing: old ones are dropped in no order."""
    if not rows:
        return row.last_number + 1
    return max((b.number for a, b in pairwise(rows) if b.number > a.number + 1), default=rows[0].number)


async def _number_of(db: Connection, row: _Row, position: Position) -> int:
    """The number after which a page begins. Raises Refusal."""
    if position.after is not None:
        if position.after > row.last_number:
            raise errors.invalid_parameter(f"after must be at most {row.last_number}, the number of the last event")
        return position.after
    if position.after_block is None:
        return await before_first_kept(db, row.subscription_no)
    if row.confirmations:
        raise errors.invalid_parameter("after_block needs a subscription without confirmations")
    block = await _followed_block.one(db, row.network_id, position.after_block)
    live_step = await _live_step.only(db, row.subscription_no)
    if block is None or row.state != "live" or block.slot_no < row.after_slot_no or block.step < live_step:
        raise errors.block_not_followed()
    return await _number_at.only(db, row.subscription_no, block.step)


async def before_first_kept(db: Connection, subscription_no: int) -> int:
    """The number before that of the first event that is kept."""
    return await _number_at.only(db, subscription_no, -1)


async def of_credential(db: Connection, credential_id: UUID, limit: int, offset: int) -> tuple[list[Subscription], int]:
    """A page of the subscriptions of a credential, newest first, and their number."""
    rows = await _page.all(db, credential_id, limit, offset)
    return [_show(row) for row in rows], await _count.only(db, credential_id)


def show_event(event: EventRow, network: Network) -> ToldEvent:
    """An event as every way to read it shows it."""
    key, action = _action(event)
    return ToldEvent(
        number=event.number,
        action=action,
        kind=None if action == "reset" else subjects.kind_of(key),
        subject=None if action == "reset" else _subject(key),
        block=EventBlock(
            event.slot_no, event.block_no, event.block_hash.hex(), network.slot_time(max(event.slot_no, 0))
        ),
        object=msgspec.Raw(event.body.encode()),
        undoes=UNSET if event.undoes is None else event.undoes,
        received=UNSET if event.received is None else event.received,
        spent=UNSET if event.spent is None else event.spent,
    )


def _action(event: EventRow) -> tuple[bytes, Action]:
    """The key that an event matched, and what it does."""
    if event.key == subjects.RESET:
        return event.key, "reset"
    if event.key.startswith(subjects.NOTICE):
        return event.key.removeprefix(subjects.NOTICE), "notice"
    return event.key, "apply" if event.undoes is None else "undo"


async def _read(db: Connection, credential_id: UUID, subscription_id: UUID) -> _Row:
    row = await _one.one(db, credential_id, subscription_id)
    if row is None:
        raise errors.subscription_not_found()
    return row


async def _share_mark(db: Connection, network: Network) -> int:
    """The slot of the mark, which stays there until the end of the commit. Raises Refusal."""
    mark = await logs.share(db, network)
    if mark is None:
        raise errors.events_not_available()
    return mark.slot_no


async def _locked(db: Connection, credential_id: UUID, subscription_id: UUID) -> _Locked:
    locked = await _lock.one(db, credential_id, subscription_id)
    if locked is None:
        raise errors.subscription_not_found()
    return locked


async def _add_all(
    db: Connection,
    credential_id: UUID,
    subscription_id: UUID,
    given: Mapping[bytes, subjects.Subject],
    network: Network,
    most: int,
) -> None:
    locked = await _locked(db, credential_id, subscription_id)
    own = subjects.owned(given, {"credential": credential_id, "account": locked.user_account_id})
    columns = sql.columns((each.key, each.direction, each.least) for each in own.values())
    added = sum(await _add.all(db, locked.subscription_no, network.network_id, *columns))
    if locked.subjects + added > most:
        raise errors.too_many_subjects(most)
    await _change_subjects.run(db, locked.subscription_no, added)


def _show(row: _Row) -> Subscription:
    return Subscription(
        id=row.id,
        network_id=row.network_id,
        created_at=row.created_at,
        state=row.state,
        confirmations=row.confirmations,
        subject_count=row.subjects,
        after_slot_no=row.after_slot_no,
        last_number=row.last_number,
        complete_to=_complete_to(row),
    )


def _complete_to(row: _Row) -> CompleteTo | None:
    if row.slot_no is None or row.block_no is None or row.block_hash is None:
        return None
    time = by_id[row.network_id].slot_time(row.slot_no)
    return CompleteTo(row.slot_no, row.block_no, row.block_hash.hex(), time)


@lru_cache(_MOST_SUBJECTS)
def _subject(key: bytes) -> msgspec.Raw | None:
    named = subjects.show(key)
    return None if named is None else msgspec.Raw(msgspec.json.encode(named))


_FAR_SLOT = 1 << 36  # some thousand years: later times have no date
