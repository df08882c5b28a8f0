"""User accounts: the customers of a partner."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from asyncpg import UniqueViolationError
from msgspec import UNSET, UnsetType

from api import errors
from api.admin import audit
from api.answers import Answer, Confirmation, Instant, Json, Page, Paging
from api.ask import AdminAsk, Nothing
from api.parameters import Body, Choice, Id, Integer, JsonObject, Kind, Offset, Question, Text
from shared import schema, sql

MAX_NAME_LENGTH = 255
MAX_TEXT_LENGTH = 255
MAX_SEARCH_LENGTH = 255
MAX_METADATA_BYTES = 16 * 1024
NO_METADATA = msgspec.Raw(b"{}")
NAME_TOO_LONG = "Name must be 255 characters or less"

Status = Literal["active", "suspended", "pending"]
Name = Text(MAX_NAME_LENGTH, blank=False, too_long=NAME_TOO_LONG)
Metadata = JsonObject(MAX_METADATA_BYTES)
UserId = Annotated[UUID, Id("Invalid user account ID format")]


class ExternalId(Kind[str | None]):
    """The partner's own reference of an account; an empty one means none."""

    def __init__(self) -> None:
        self._text = Text(MAX_TEXT_LENGTH)
        super().__init__(self._text.expected, self._text.schema)

    def of_json(self, value: object) -> str | None:
        return self._text.of_json(value) or None


class NewUser(Body, frozen=True, kw_only=True):
    """The account to create. `external_id` is the partner's own reference, unique among its accounts."""

    name: Annotated[str, Name]
    external_id: Annotated[str | None, ExternalId()] = None
    email: Annotated[str | None, Text(MAX_TEXT_LENGTH)] = None
    metadata: Annotated[msgspec.Raw, Metadata] = NO_METADATA
    billing_plan: Annotated[str | None, Text(MAX_TEXT_LENGTH)] = None


class UserChanges(Body, frozen=True, kw_only=True):
    """Fields to change; omitted fields stay. `metadata` is replaced as a whole; null clears it to {}."""

    name: Annotated[str | UnsetType, Name] = UNSET
    external_id: Annotated[str | UnsetType | None, ExternalId()] = UNSET
    email: Annotated[str | UnsetType | None, Text(MAX_TEXT_LENGTH)] = UNSET
    metadata: Annotated[msgspec.Raw | UnsetType | None, Metadata] = UNSET
    billing_plan: Annotated[str | UnsetType | None, Text(MAX_TEXT_LENGTH)] = UNSET


class UserFilter(Question, frozen=True, kw_only=True):
    """A page of the accounts that match all filters.

    `search` matches part of the name, the `external_id` or the email, ignoring case.
    """

    limit: Annotated[int, Integer(1, 100)] = 20
    offset: Offset = 0
    status: Annotated[Status | None, Choice("active", "suspended", "pending")] = None
    external_id: Annotated[str | None, Text(MAX_TEXT_LENGTH)] = None
    search: Annotated[str | None, Text(MAX_SEARCH_LENGTH)] = None


class OneUser(Question, frozen=True, kw_only=True):
    """The id of an account."""

    id: UserId


class ExternalUser(Question, frozen=True, kw_only=True):
    """The partner's own reference of an account."""

    external_id: Annotated[str, Text(MAX_TEXT_LENGTH)]


class UserAccount(msgspec.Struct, frozen=True):
    """A partner's customer. `updated_at` is null until the first change."""

    id: UUID
    admin_key_id: UUID
    admin_entity_name: str
    external_id: str | None
    name: str
    email: str | None
    metadata: Json
    created_at: Instant
    updated_at: Instant | None
    status: Status
    billing_plan: str | None


class DeletedUser(msgspec.Struct, frozen=True):
    """An account that was just deleted, and the number of its credentials that this revoked."""

    id: UUID
    deleted_at: Instant
    revoked_credentials: int


class _Deleted(msgspec.Struct, frozen=True):
    id: UUID
    deleted_at: datetime


class _Revoked(msgspec.Struct, frozen=True):
    id: UUID
    just_now: bool


_sql = sql.beside(__file__)
_ONE = "user_account.id = $1 AND user_account.admin_key_id = $2 AND user_account.deleted_at IS NULL"
_BY_EXTERNAL_ID = "user_account.external_id = $1 AND user_account.admin_key_id = $2"
_MATCHING = _sql.text("matching")
_NEWEST_FIRST = "ORDER BY user_account.created_at DESC, user_account.id DESC LIMIT $5 OFFSET $6"  # ties by id
_user_by_id = _sql.query("users", UserAccount, which=_ONE, page="")
_user_to_change = _sql.query("users", UserAccount, which=_ONE, page="FOR NO KEY UPDATE OF user_account")
_user_by_external_id = _sql.query("users", UserAccount, which=_BY_EXTERNAL_ID, page="")
_users = _sql.query("users", UserAccount, which=_MATCHING, page=_NEWEST_FIRST)
_user_count = _sql.values("user_count", int, which=_MATCHING)
_create = _sql.values("create", UUID)
_update = _sql.values("update", UUID)
_set_status = _sql.values("set_status", UUID)
_key_hashes = _sql.values("key_hashes", bytes)
_delete = _sql.query("delete", _Deleted)
_revoke_credentials = _sql.query("revoke_credentials", _Revoked)
_drop_webhooks = _sql.command("drop_webhooks")
_erase_answers = _sql.command("erase_answers")
_forget_submitted = _sql.command("forget_submitted")
_erase_names = _sql.command("erase_names")


async def create_user(ask: AdminAsk[Nothing, NewUser]) -> Confirmation[UserAccount]:
    """Create a user account. It belongs to the admin key that creates it, and starts active."""
    _refuse_bootstrap(ask)
    new = ask.body
    async with ask.commit() as db:
        try:
            user_id = await _create.only(
                db, ask.key.id, new.name, new.external_id, new.email, new.metadata, new.billing_plan
            )
        except UniqueViolationError as conflict:
            raise errors.external_id_in_use() from conflict
        await audit.record(db, ask, "user_account.created", user_id, name=new.name, external_id=new.external_id)
        return Confirmation(data=await _changed(ask, db, user_id), message="User account created")


async def list_users(ask: AdminAsk[UserFilter, None]) -> Page[UserAccount, Paging]:
    """List the caller's user accounts that match the filters, newest first."""
    page = ask.question
    matching = ask.key.id, page.status, page.external_id, page.search
    async with ask.connection() as db:
        async with db.transaction(isolation="repeatable_read", readonly=True):
            users = await _users.all(db, *matching, page.limit, page.offset)
            total = await _user_count.only(db, *matching)
        async with schema.commit(db):
            await audit.record(db, ask, "user_account.listed", limit=page.limit, offset=page.offset, status=page.status)
    return Page(data=users, pagination=Paging(page.limit, page.offset, total, page.offset + len(users) < total))


async def get_user(ask: AdminAsk[OneUser, None]) -> Answer[UserAccount]:
    """Read one user account."""
    async with ask.commit() as db:
        return Answer(data=await _viewed(ask, db, await _user_by_id.one(db, ask.question.id, ask.key.id)))


async def get_user_by_external_id(ask: AdminAsk[ExternalUser, None]) -> Answer[UserAccount]:
    """Read one user account by the partner's own reference."""
    async with ask.commit() as db:
        user = await _user_by_external_id.one(db, ask.question.external_id, ask.key.id)
        return Answer(data=await _viewed(ask, db, user))


async def update_user(ask: AdminAsk[OneUser, UserChanges]) -> Confirmation[UserAccount]:
    """Change fields of a user account.

    Omitted fields stay unchanged, null clears an optional field, and `metadata` is replaced as a whole. An empty body
    changes nothing.
    """
    _refuse_bootstrap(ask)
    given = ask.body.given()
    async with ask.commit() as db:
        if not given:
            return Confirmation(data=await _unchanged(ask, db), message="User account unchanged")
        values = given | {"metadata": given.get("metadata") or NO_METADATA}
        fields = [part for field in UserChanges.__struct_fields__ for part in (field in given, values.get(field))]
        try:
            updated = await _update.one(db, ask.question.id, ask.key.id, *fields)
        except UniqueViolationError as conflict:
            raise errors.external_id_in_use() from conflict
        if updated is None:
            raise errors.user_account_not_found()
        user = await _changed(ask, db, updated)
        await audit.record(db, ask, "user_account.updated", user.id, name=user.name, fields=list(given))
        return Confirmation(data=user, message="User account updated")


async def suspend_user(ask: AdminAsk[OneUser, None]) -> Confirmation[UserAccount]:
    """Suspend a user account: its API keys are refused from now on. A repeated call changes nothing."""
    _refuse_bootstrap(ask)
    async with ask.commit() as db:
        if await _set_status.one(db, ask.question.id, ask.key.id, "suspended") is None:
            return Confirmation(data=await _unchanged(ask, db), message="User account was already suspended")
        await ask.invalidation.of(await _key_hashes.all(db, ask.question.id))
        user = await _changed(ask, db, ask.question.id)
        await audit.record(db, ask, "user_account.suspended", user.id, name=user.name)
        return Confirmation(data=user, message="User account suspended")


async def reactivate_user(ask: AdminAsk[OneUser, None]) -> Confirmation[UserAccount]:
    """Reactivate a user account and its API keys. A repeated call changes nothing."""
    _refuse_bootstrap(ask)
    async with ask.commit() as db:
        if await _set_status.one(db, ask.question.id, ask.key.id, "active") is None:
            return Confirmation(data=await _unchanged(ask, db), message="User account was already active")
        user = await _changed(ask, db, ask.question.id)
        await audit.record(db, ask, "user_account.reactivated", user.id, name=user.name)
        return Confirmation(data=user, message="User account reactivated")


async def delete_user(ask: AdminAsk[OneUser, None]) -> Confirmation[DeletedUser]:
    """Delete a user account permanently: end its API keys and erase its personal data.

    Names, references, email, billing plan, descriptions, metadata and IP networks are erased, including in the audit
    log. Usage remains, under the ids of the account and its credentials.
    """
    _refuse_bootstrap(ask)
    async with ask.commit() as db:
        deleted = await _delete.one(db, ask.question.id, ask.key.id)
        if deleted is None:
            raise errors.user_account_not_found()
        await ask.invalidation.of(await _key_hashes.all(db, deleted.id))
        credentials = await _revoke_credentials.all(db, deleted.id)
        await _drop_webhooks.run(db, deleted.id)
        ids = [deleted.id, *(credential.id for credential in credentials)]
        await _erase_answers.run(db, ids)
        await _forget_submitted.run(db, deleted.id)
        await _erase_names.run(db, ids)
        revoked = [credential.id for credential in credentials if credential.just_now]
        await audit.record_each(db, ask, "credential.revoked", revoked)
        await audit.record(db, ask, "user_account.deleted", deleted.id, revoked_credentials=len(revoked))
    return Confirmation(data=DeletedUser(deleted.id, deleted.deleted_at, len(revoked)), message="User account deleted")


def _refuse_bootstrap(ask: AdminAsk[Any, Any]) -> None:
    """Users belong to the admin key that creates them; the bootstrap key owns none."""
    if ask.key.is_bootstrap:
        raise errors.bootstrap_owns_no_users()


async def _unchanged(ask: AdminAsk[OneUser, Any], db: sql.Connection) -> UserAccount:
    """Record an empty change as a view, and return the account, locked since the answer may be stored."""
    return await _viewed(ask, db, await _user_to_change.one(db, ask.question.id, ask.key.id))


async def _viewed(ask: AdminAsk[Any, Any], db: sql.Connection, user: UserAccount | None) -> UserAccount:
    """Record the view of an account. Raises Refusal if none was found."""
    if user is None:
        raise errors.user_account_not_found()
    await audit.record(db, ask, "user_account.viewed", user.id)
    return user


async def _changed(ask: AdminAsk[Any, Any], db: sql.Connection, user_account_id: UUID) -> UserAccount:
    """The account after a change, which has checked that it is the caller's."""
    return await _user_by_id.only(db, user_account_id, ask.key.id)
