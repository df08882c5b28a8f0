"""Admin keys of partners. The bootstrap key and the command line issue and revoke them."""

from typing import Annotated
from uuid import UUID

import msgspec

from api import errors
from api.admin import audit
from api.answers import Confirmation, Instant, Issued, Page, Paging
from api.ask import AdminAsk, Nothing
from api.keys import tokens
from api.keys.caller import PERMISSIONS, AdminKey
from api.parameters import Body, Choices, Id, Integer, Offset, Question, Text
from shared import sql

MAX_ENTITY_NAME_LENGTH = 255

EntityName = Text(MAX_ENTITY_NAME_LENGTH, blank=False)
Permissions = Choices(*PERMISSIONS)


class NewAdminKey(Body, frozen=True, kw_only=True):
    """The admin key to create: the name of the partner and its permissions, by default all."""

    entity_name: Annotated[str, EntityName]
    permissions: Annotated[tuple[str, ...], Permissions] = PERMISSIONS


class AdminKeyFilter(Question, frozen=True, kw_only=True):
    """A page of admin keys."""

    limit: Annotated[int, Integer(1, 100)] = 20
    offset: Offset = 0


class OneAdminKey(Question, frozen=True, kw_only=True):
    """The id of an admin key."""

    id: Annotated[UUID, Id("Invalid admin key ID format")]


class AdminKeyRecord(msgspec.Struct, frozen=True):
    """The record of an admin key. The key itself is shown only once, when it is created."""

    id: UUID
    entity_name: str
    key_prefix: str
    permissions: list[str]
    is_bootstrap: bool
    created_at: Instant
    last_used_at: Instant | None
    revoked: bool
    revoked_at: Instant | None


class IssuedAdminKey(Issued, frozen=True):
    """A new admin key. No later answer shows the key again."""

    admin_key: AdminKeyRecord
    key: str


class CommandLine(msgspec.Struct, frozen=True):
    """An operator on the command line, with the rights of the bootstrap key."""

    key: AdminKey
    ip_address: str | None = None
    request_id: str | None = None


class _Operator(msgspec.Struct, frozen=True):
    id: UUID
    entity_name: str


_sql = sql.beside(__file__)
_admin_keys = _sql.query("admin_keys", AdminKeyRecord)
_admin_key_count = _sql.values("admin_key_count", int)
_create = _sql.query("create", AdminKeyRecord)
_is_bootstrap = _sql.values("is_bootstrap", bool)
_revoke = _sql.query("revoke", AdminKeyRecord)
_operator = _sql.query("operator", _Operator)


async def create_admin_key(ask: AdminAsk[Nothing, NewAdminKey]) -> Confirmation[IssuedAdminKey]:
    """Issue an admin key to a partner. Only this answer contains the full key."""
    async with ask.commit() as db:
        issued = await issue(db, ask, ask.body.entity_name, ask.body.permissions)
    return Confirmation(data=issued, message="Admin key created. Store the key now: it is not shown again")


async def list_admin_keys(ask: AdminAsk[AdminKeyFilter, None]) -> Page[AdminKeyRecord, Paging]:
    """List all admin keys, including the bootstrap key and revoked ones, newest first."""
    page = ask.question
    async with ask.snapshot() as db:
        records = await records_of(db, page.limit, page.offset)
        total = await _admin_key_count.only(db)
    return Page(data=records, pagination=Paging(page.limit, page.offset, total, page.offset + len(records) < total))


async def revoke_admin_key(ask: AdminAsk[OneAdminKey, None]) -> Confirmation[AdminKeyRecord]:
    """Revoke an admin key permanently. Its admin access ends immediately; its accounts' API keys continue to work."""
    async with ask.commit() as db:
        return Confirmation(data=await withdraw(db, ask, ask.question.id), message="Admin key revoked")


async def issue(db: sql.Connection, by: audit.Actor, entity_name: str, permissions: tuple[str, ...]) -> IssuedAdminKey:
    """Create an admin key, inside the caller's commit."""
    key = tokens.new_admin_key()
    record = await _create.only(db, entity_name, permissions, tokens.admin_prefix_of(key), tokens.hash_of(key))
    await audit.record(db, by, "admin_key.created", record.id, name=entity_name, permissions=permissions)
    return IssuedAdminKey(record, key)


async def withdraw(db: sql.Connection, by: audit.Actor, admin_key_id: UUID) -> AdminKeyRecord:
    """Revoke an admin key, inside the caller's commit. Raises Refusal for the bootstrap key or an unknown key."""
    record = await _revoke.one(db, admin_key_id)
    if record is None:
        if await _is_bootstrap.one(db, admin_key_id):
            raise errors.bootstrap_key_not_revocable()
        raise errors.admin_key_not_found_or_revoked()
    await audit.record(db, by, "admin_key.revoked", record.id, name=record.entity_name)
    return record


async def records_of(db: sql.Connection, limit: int, offset: int) -> list[AdminKeyRecord]:
    """Admin keys, newest first."""
    return await _admin_keys.all(db, limit, offset)


async def command_line(db: sql.Connection) -> CommandLine:
    """The actor of the command line in the audit log."""
    operator = await _operator.only(db, PERMISSIONS)
    return CommandLine(AdminKey(operator.id, operator.entity_name, frozenset(PERMISSIONS), is_bootstrap=True))
