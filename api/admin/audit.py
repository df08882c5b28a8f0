"""The audit log of admin actions. `record` writes an entry in the commit of its action."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, Protocol
from uuid import UUID

import msgspec

from api import errors
from api.answers import Instant, Json, Page, TotalPaging
from api.ask import AdminAsk
from api.keys.caller import AdminKey
from api.parameters import Choice, Flag, Id, Integer, Moment, Offset, Question, Text
from shared import sql

Action = Literal[
    "credential.created",
    "credential.updated",
    "credential.rotated",
    "credential.revoked",
    "credential.viewed",
    "credential.listed",
    "user_account.created",
    "user_account.updated",
    "user_account.suspended",
    "user_account.reactivated",
    "user_account.deleted",
    "user_account.viewed",
    "user_account.listed",
    "admin_key.created",
    "admin_key.revoked",
]

_MAX_TEXT_LENGTH = 255


class AuditFilter(Question, frozen=True, kw_only=True):
    """Filters of the audit log. An unknown action matches no entries. `from` and `to` are inclusive."""

    limit: Annotated[int, Integer(1, 100)] = 50
    offset: Offset = 0
    action: Annotated[str | None, Text(_MAX_TEXT_LENGTH)] = None
    admin_key_id: Annotated[UUID | None, Id()] = None
    target_id: Annotated[UUID | None, Id()] = None
    target_type: Annotated[str | None, Choice("credential", "user_account", "admin_key")] = None
    request_id: Annotated[str | None, Text(_MAX_TEXT_LENGTH)] = None
    since: Annotated[datetime | None, Moment()] = msgspec.field(name="from", default=None)
    until: Annotated[datetime | None, Moment(last=True)] = msgspec.field(name="to", default=None)
    include_reads: Annotated[bool, Flag()] = msgspec.field(name="includeReads", default=True)

    def check(self) -> None:
        """Refuse a period that ends before it starts."""
        if self.since is not None and self.until is not None and self.since > self.until:
            raise errors.from_after_to()


class AuditEntry(msgspec.Struct, frozen=True):
    """An admin action."""

    id: UUID
    action: str
    admin_key_id: UUID
    admin_entity_name: str
    target_id: UUID | None
    target_type: Literal["credential", "user_account", "admin_key"]
    ip_address: str | None
    details: Json
    created_at: Instant


class Actor(Protocol):
    """The actor of an action: a request to an admin endpoint, or the command line."""

    @property
    def key(self) -> AdminKey:
        """The admin key of the actor."""

    @property
    def ip_address(self) -> str | None:
        """The address of the actor, None on the command line."""

    @property
    def request_id(self) -> str | None:
        """The id of the request, None on the command line."""


_sql = sql.beside(__file__)
_record = _sql.command("record")
_matching = _sql.text("matching")
_entries = _sql.query("entries", AuditEntry, matching=_matching)
_entry_count = _sql.values("entry_count", int, matching=_matching)


async def list_audit_logs(ask: AdminAsk[AuditFilter, None]) -> Page[AuditEntry, TotalPaging]:
    """List audit log entries, newest first.

    A partner sees the actions of its own admin key; the bootstrap key sees all.
    """
    page = ask.question
    seen = None if ask.key.is_bootstrap else ask.key.id
    of = (page.action, page.admin_key_id, page.target_id, page.target_type, page.request_id)
    filters = (seen, *of, page.since, page.until, page.include_reads)
    async with ask.snapshot() as db:
        entries = await _entries.all(db, *filters, page.limit, page.offset)
        total = await _entry_count.only(db, *filters)
    return Page(data=entries, pagination=TotalPaging(page.limit, page.offset, total))


async def record(
    db: sql.Connection, by: Actor, action: Action, target_id: UUID | None = None, **details: object
) -> None:
    """Record an action inside its commit, with the id of its request. Details must never contain a key."""
    await record_each(db, by, action, [target_id], **details)


async def record_each(
    db: sql.Connection, by: Actor, action: Action, target_ids: Sequence[UUID | None], **details: object
) -> None:
    """Record the same action on several targets."""
    if by.request_id is not None:
        details["request_id"] = by.request_id
    target_type = action.partition(".")[0]
    await _record.run(db, by.key.id, action, target_type, target_ids, by.ip_address, details)
