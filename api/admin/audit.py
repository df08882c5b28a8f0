"""Audit log: who did what. Entries are written by `record` in the commit of what they tell of."""

from typing import Annotated, Literal, Protocol
from uuid import UUID

import msgspec

from api.admin.page import Json, Total
from api.answers import Instant, Page, TotalPaging
from api.ask import AdminAsk
from api.caller import AdminKey
from api.parameters import Id, Integer, Offset, Question, Text
from shared import sql

Action = Literal[
    "credential.created",
    "credential.updated",
    "credential.revoked",
    "credential.viewed",
    "credential.listed",
    "user_account.created",
    "user_account.updated",
    "user_account.suspended",
    "user_account.reactivated",
    "user_account.viewed",
    "user_account.listed",
    "admin_key.created",
    "admin_key.revoked",
]

_LONGEST_ACTION = 255


class AuditFilter(Question, frozen=True, kw_only=True):
    """Which entries. An action that does not exist has none."""

    limit: Annotated[int, Integer(1, 100)] = 50
    offset: Offset = 0
    action: Annotated[str | None, Text(_LONGEST_ACTION)] = None
    admin_key_id: Annotated[UUID | None, Id()] = None
    target_id: Annotated[UUID | None, Id()] = None


class AuditEntry(msgspec.Struct, frozen=True):
    """One administrative action."""

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
    """Who does something: a request to an admin endpoint, or the command line."""

    @property
    def key(self) -> AdminKey:
        """With which admin key."""

    @property
    def ip_address(self) -> str | None:
        """From where."""


_record = sql.command("record")
_entries = sql.query("entries", AuditEntry)
_entry_count = sql.query("entry_count", Total)


async def listed(ask: AdminAsk[AuditFilter, None]) -> Page[AuditEntry, TotalPaging]:
    """List audit log entries, newest first.

    A partner sees what its own admin key did; the bootstrap key sees everything.
    """
    page = ask.question
    seen = None if ask.key.is_bootstrap else ask.key.id
    filters = (seen, page.action, page.admin_key_id, page.target_id)
    async with ask.connection() as db:
        entries = await _entries.all(db, *filters, page.limit, page.offset)
        total = await _entry_count.one(db, *filters)
    assert total is not None, "a count is one row"
    return Page(data=entries, pagination=TotalPaging(page.limit, page.offset, total.total))


async def record(
    db: sql.Connection, by: Actor, action: Action, target_id: UUID | None = None, **details: object
) -> None:
    """Note what was done, inside the commit that does it. Never put a key into the details."""
    target_type = action.partition(".")[0]
    await _record.run(db, by.key.id, action, target_type, target_id, by.ip_address, details)
