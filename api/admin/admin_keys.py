"""Admin keys: how partners come to be. The bootstrap key issues and revokes them, and so does the command line."""

from typing import Annotated
from uuid import UUID

import msgspec

from api import errors, tokens
from api.admin import audit
from api.admin.page import Total
from api.answers import Instant, Page, Paging, Told
from api.ask import AdminAsk, Nothing
from api.caller import PERMISSIONS, AdminKey
from api.parameters import Body, Choices, Id, Integer, Offset, Question, Text
from shared import sql

LONGEST_ENTITY_NAME = 255

EntityName = Text(LONGEST_ENTITY_NAME, blank=False)
Permissions = Choices(*PERMISSIONS)


class NewAdminKey(Body, frozen=True, kw_only=True):
    """A partner to be, and what it may do: everything unless said otherwise."""

    entity_name: Annotated[str, EntityName]
    permissions: Annotated[tuple[str, ...], Permissions] = PERMISSIONS


class AdminKeyFilter(Question, frozen=True, kw_only=True):
    """Which admin keys."""

    limit: Annotated[int, Integer(1, 100)] = 20
    offset: Offset = 0


class OneAdminKey(Question, frozen=True, kw_only=True):
    """Which admin key."""

    id: Annotated[UUID, Id("Invalid admin key ID format")]


class AdminKeyRecord(msgspec.Struct, frozen=True):
    """What is known of an admin key. The key itself is shown once, when it is created."""

    id: UUID
    entity_name: str
    key_prefix: str
    permissions: list[str]
    is_bootstrap: bool
    created_at: Instant
    last_used_at: Instant | None
    revoked: bool
    revoked_at: Instant | None


class IssuedAdminKey(msgspec.Struct, frozen=True):
    """A new admin key, which no later answer shows again."""

    admin_key: AdminKeyRecord
    key: str


class CommandLine(msgspec.Struct, frozen=True):
    """The operator at a terminal, who acts as the bootstrap key does."""

    key: AdminKey
    ip_address: str | None = None


class _Operator(msgspec.Struct, frozen=True):
    id: UUID
    entity_name: str


class _IsBootstrap(msgspec.Struct, frozen=True):
    is_bootstrap: bool


_admin_keys = sql.query("admin_keys", AdminKeyRecord)
_admin_key_count = sql.query("admin_key_count", Total)
_create = sql.query("create", AdminKeyRecord)
_is_bootstrap = sql.query("is_bootstrap", _IsBootstrap)
_revoke = sql.query("revoke", AdminKeyRecord)
_operator = sql.query("operator", _Operator)


async def create(ask: AdminAsk[Nothing, NewAdminKey]) -> Told[IssuedAdminKey]:
    """Issue an admin key to a partner. The full key is in this answer only."""
    async with ask.commit() as db:
        issued = await issue(db, ask, ask.body.entity_name, ask.body.permissions)
    return Told(data=issued, message="Admin key created. Store the key now: it is not shown again")


async def listed(ask: AdminAsk[AdminKeyFilter, None]) -> Page[AdminKeyRecord, Paging]:
    """List admin keys, the bootstrap key and revoked ones included, newest first."""
    page = ask.question
    async with ask.connection() as db:
        records = await records_of(db, page.limit, page.offset)
        count = await _admin_key_count.one(db)
    assert count is not None, "a count is one row"
    more = page.offset + len(records) < count.total
    return Page(data=records, pagination=Paging(page.limit, page.offset, count.total, more))


async def revoke(ask: AdminAsk[OneAdminKey, None]) -> Told[AdminKeyRecord]:
    """Revoke an admin key for good: its admin access ends at once. The API keys of its accounts go on working."""
    async with ask.commit() as db:
        return Told(data=await withdraw(db, ask, ask.question.id), message="Admin key revoked")


async def issue(db: sql.Connection, by: audit.Actor, entity_name: str, permissions: tuple[str, ...]) -> IssuedAdminKey:
    """Create an admin key, inside the caller's commit."""
    key = tokens.new_admin_key()
    record = await _create.one(db, entity_name, permissions, tokens.admin_prefix_of(key), tokens.hash_of(key))
    assert record is not None, "an insert returns its row"
    await audit.record(db, by, "admin_key.created", record.id, name=entity_name, permissions=permissions)
    return IssuedAdminKey(record, key)


async def withdraw(db: sql.Connection, by: audit.Actor, admin_key_id: UUID) -> AdminKeyRecord:
    """Revoke an admin key, inside the caller's commit. Raises Refusal for the bootstrap key, and for none."""
    record = await _revoke.one(db, admin_key_id)
    if record is None:
        found = await _is_bootstrap.one(db, admin_key_id)
        raise errors.bootstrap_stays() if found and found.is_bootstrap else errors.admin_key_not_found_or_revoked()
    await audit.record(db, by, "admin_key.revoked", record.id, name=record.entity_name)
    return record


async def records_of(db: sql.Connection, limit: int, offset: int) -> list[AdminKeyRecord]:
    """Admin keys, newest first."""
    return await _admin_keys.all(db, limit, offset)


async def command_line(db: sql.Connection) -> CommandLine:
    """Whom the audit log names for what is done at a terminal."""
    operator = await _operator.one(db, PERMISSIONS)
    assert operator is not None, "an upsert returns its row"
    return CommandLine(AdminKey(operator.id, operator.entity_name, frozenset(PERMISSIONS), is_bootstrap=True))
