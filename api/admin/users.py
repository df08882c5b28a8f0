"""User accounts: the customers of a partner."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from asyncpg import UniqueViolationError
from msgspec import UNSET, UnsetType

from api import errors
from api.admin import audit
from api.admin.page import Json, Total
from api.answers import Answer, Instant, Page, Paging, Told
from api.ask import AdminAsk, Nothing
from api.parameters import Body, Choice, Id, Integer, JsonObject, Offset, Question, Text
from shared import sql

LONGEST_NAME = 255
LONGEST_TEXT = 255
LARGEST_METADATA_BYTES = 16 * 1024
NO_METADATA = msgspec.Raw(b"{}")
NAME_TOO_LONG = "Name must be 255 characters or less"

Status = Literal["active", "suspended", "pending"]
Name = Text(LONGEST_NAME, blank=False, too_long=NAME_TOO_LONG)
Metadata = JsonObject(LARGEST_METADATA_BYTES)
UserId = Annotated[UUID, Id("Invalid user account ID format")]


class NewUser(Body, frozen=True, kw_only=True):
    """A customer to be. `external_id` is the partner's own reference, unique among its accounts."""

    name: Annotated[str, Name]
    external_id: Annotated[str | None, Text(LONGEST_TEXT)] = None
    email: Annotated[str | None, Text(LONGEST_TEXT)] = None
    metadata: Annotated[msgspec.Raw, Metadata] = NO_METADATA
    billing_plan: Annotated[str | None, Text(LONGEST_TEXT)] = None


class UserChanges(Body, frozen=True, kw_only=True):
    """What to change; what is left out stays. `metadata` is replaced whole, null clears it to {}."""

    name: Annotated[str | UnsetType, Name] = UNSET
    external_id: Annotated[str | UnsetType | None, Text(LONGEST_TEXT)] = UNSET
    email: Annotated[str | UnsetType | None, Text(LONGEST_TEXT)] = UNSET
    metadata: Annotated[msgspec.Raw | UnsetType | None, Metadata] = UNSET
    billing_plan: Annotated[str | UnsetType | None, Text(LONGEST_TEXT)] = UNSET


class UserFilter(Question, frozen=True, kw_only=True):
    """Which accounts."""

    limit: Annotated[int, Integer(1, 100)] = 20
    offset: Offset = 0
    status: Annotated[Status | None, Choice("active", "suspended", "pending")] = None


class OneUser(Question, frozen=True, kw_only=True):
    """Which account."""

    id: UserId


class ExternalUser(Question, frozen=True, kw_only=True):
    """Which account, by the partner's own reference."""

    external_id: Annotated[str, Text(LONGEST_TEXT)]


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


class _Id(msgspec.Struct, frozen=True):
    id: UUID


class _KeyHash(msgspec.Struct, frozen=True):
    key_hash: bytes


_user_by_id = sql.query("user_by_id", UserAccount)
_user_by_external_id = sql.query("user_by_external_id", UserAccount)
_users = sql.query("users", UserAccount)
_user_count = sql.query("user_count", Total)
_create = sql.query("create", _Id)
_update = sql.query("update", _Id)
_set_status = sql.query("set_status", _Id)
_key_hashes = sql.query("key_hashes", _KeyHash)


async def create(ask: AdminAsk[Nothing, NewUser]) -> Told[UserAccount]:
    """Create a user account. It belongs to the admin key that creates it, and starts active."""
    _refuse_bootstrap(ask)
    new = ask.body
    async with ask.commit() as db:
        try:
            made = await _create.one(
                db, ask.key.id, new.name, new.external_id, new.email, new.metadata, new.billing_plan
            )
        except UniqueViolationError as conflict:
            raise errors.external_id_in_use() from conflict
        assert made is not None, "an insert returns its row"
        await audit.record(db, ask, "user_account.created", made.id, name=new.name, external_id=new.external_id)
        return Told(data=await _kept(ask, db, made.id), message="User account created")


async def listed(ask: AdminAsk[UserFilter, None]) -> Page[UserAccount, Paging]:
    """List the caller's user accounts, newest first."""
    page = ask.question
    async with ask.commit() as db:
        users = await _users.all(db, ask.key.id, page.status, page.limit, page.offset)
        count = await _user_count.one(db, ask.key.id, page.status)
        await audit.record(db, ask, "user_account.listed", limit=page.limit, offset=page.offset, status=page.status)
    assert count is not None, "a count is one row"
    more = page.offset + len(users) < count.total
    return Page(data=users, pagination=Paging(page.limit, page.offset, count.total, more))


async def read(ask: AdminAsk[OneUser, None]) -> Answer[UserAccount]:
    """Read one user account."""
    async with ask.commit() as db:
        return Answer(data=await _viewed(ask, db, await _user_by_id.one(db, ask.question.id, ask.key.id)))


async def read_external(ask: AdminAsk[ExternalUser, None]) -> Answer[UserAccount]:
    """Read one user account by the partner's own reference."""
    async with ask.commit() as db:
        found = await _user_by_external_id.one(db, ask.question.external_id, ask.key.id)
        return Answer(data=await _viewed(ask, db, found))


async def update(ask: AdminAsk[OneUser, UserChanges]) -> Told[UserAccount]:
    """Change fields of a user account.

    What is left out stays as it is, null clears an optional field, and `metadata` is replaced whole. An empty body
    changes nothing.
    """
    _refuse_bootstrap(ask)
    given = {field: value for field, value in msgspec.structs.asdict(ask.body).items() if value is not UNSET}
    async with ask.commit() as db:
        if not given:
            return Told(data=await _unchanged(ask, db), message="User account unchanged")
        values = given | {"metadata": given.get("metadata") or NO_METADATA}
        fields = [part for field in UserChanges.__struct_fields__ for part in (field in given, values.get(field))]
        try:
            found = await _update.one(db, ask.question.id, ask.key.id, *fields)
        except UniqueViolationError as conflict:
            raise errors.external_id_in_use() from conflict
        if found is None:
            raise errors.user_account_not_found()
        await audit.record(db, ask, "user_account.updated", found.id, fields=list(given))
        return Told(data=await _kept(ask, db, found.id), message="User account updated")


async def suspend(ask: AdminAsk[OneUser, None]) -> Told[UserAccount]:
    """Suspend a user account: its API keys are refused from now on. Repeating it is harmless."""
    _refuse_bootstrap(ask)
    async with ask.services.callers.withdrawing() as withdrawal, ask.commit() as db:
        if await _set_status.one(db, ask.question.id, ask.key.id, "suspended") is None:
            return Told(data=await _unchanged(ask, db), message="User account suspended")
        await withdrawal.of([row.key_hash for row in await _key_hashes.all(db, ask.question.id)])
        await audit.record(db, ask, "user_account.suspended", ask.question.id)
        return Told(data=await _kept(ask, db, ask.question.id), message="User account suspended")


async def reactivate(ask: AdminAsk[OneUser, None]) -> Told[UserAccount]:
    """Make a user account active again, and with it its API keys. Repeating it is harmless."""
    _refuse_bootstrap(ask)
    async with ask.commit() as db:
        if await _set_status.one(db, ask.question.id, ask.key.id, "active") is None:
            return Told(data=await _unchanged(ask, db), message="User account reactivated")
        await audit.record(db, ask, "user_account.reactivated", ask.question.id)
        return Told(data=await _kept(ask, db, ask.question.id), message="User account reactivated")


def _refuse_bootstrap(ask: AdminAsk[Any, Any]) -> None:
    """Users belong to the admin key that creates them, and the bootstrap key owns none (spec, section 5)."""
    if ask.key.is_bootstrap:
        raise errors.bootstrap_owns_no_users()


async def _unchanged(ask: AdminAsk[OneUser, Any], db: sql.Connection) -> UserAccount:
    """The account of a change that changes nothing: all that was done is to look at it."""
    return await _viewed(ask, db, await _user_by_id.one(db, ask.question.id, ask.key.id))


async def _viewed(ask: AdminAsk[Any, Any], db: sql.Connection, found: UserAccount | None) -> UserAccount:
    """The account that was found, and the entry that it was looked at. Raises Refusal where there is none."""
    if found is None:
        raise errors.user_account_not_found()
    await audit.record(db, ask, "user_account.viewed", found.id)
    return found


async def _kept(ask: AdminAsk[Any, Any], db: sql.Connection, user_account_id: UUID) -> UserAccount:
    """The account as it is after a change that found it to be the caller's."""
    user = await _user_by_id.one(db, user_account_id, ask.key.id)
    assert user is not None, "a row changed in this commit is there"
    return user
