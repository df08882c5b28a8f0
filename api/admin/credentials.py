"""Credentials: the API keys that a partner issues to its users."""

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from api import errors, tokens
from api.admin import audit
from api.admin.page import Json, Total
from api.admin.users import NO_METADATA, Metadata, Name
from api.answers import Answer, Instant, Page, Paging, Told
from api.ask import AdminAsk, Nothing
from api.parameters import Body, Flag, Id, Integer, Moment, Offset, Question, Text
from shared import sql

LONGEST_DESCRIPTION = 2_000
NETWORK_ID_EXPECTED = "network_id is required (0=Mainnet, 1=Preview, 2=Preprod)"

CredentialId = Annotated[UUID, Id("Invalid credential ID format")]


class NewCredential(Body, frozen=True, kw_only=True):
    """An API key to be, for one of the caller's accounts, on one network."""

    name: Annotated[str, Name]
    user_account_id: Annotated[UUID, Id(missing="user_account_id is required")]
    network_id: Annotated[int, Integer(0, 2, message=NETWORK_ID_EXPECTED, missing=NETWORK_ID_EXPECTED)]
    description: Annotated[str | None, Text(LONGEST_DESCRIPTION)] = None
    expires_at: Annotated[datetime | None, Moment()] = None
    rate_limit_per_minute: Annotated[int, Integer(1, 10_000)] = 60
    metadata: Annotated[msgspec.Raw, Metadata] = NO_METADATA

    def check(self) -> None:
        """Refuse a key that would be born expired."""
        if self.expires_at is not None and self.expires_at <= datetime.now(UTC):
            raise errors.not_in_the_future()


class CredentialChanges(Body, frozen=True, kw_only=True):
    """What to change, at least one of the two; null clears the description."""

    name: Annotated[str | UnsetType, Name] = UNSET
    description: Annotated[str | UnsetType | None, Text(LONGEST_DESCRIPTION)] = UNSET

    def check(self) -> None:
        """Refuse a change of nothing."""
        if self.name is UNSET and self.description is UNSET:
            raise errors.nothing_to_update()


class CredentialFilter(Question, frozen=True, kw_only=True):
    """Which credentials."""

    limit: Annotated[int, Integer(1, 100)] = 20
    offset: Offset = 0
    include_revoked: Annotated[bool, Flag()] = msgspec.field(name="includeRevoked", default=False)


class OneCredential(Question, frozen=True, kw_only=True):
    """Which credential."""

    id: CredentialId


class Credential(msgspec.Struct, frozen=True):
    """The record of an API key. The key itself is shown once, when it is created."""

    id: UUID
    name: str
    description: str | None
    api_key_prefix: str
    created_at: Instant
    user_account_id: UUID
    user_account_name: str
    user_external_id: str | None
    admin_key_id: UUID
    admin_entity_name: str
    network_id: int
    last_used_at: Instant | None
    expires_at: Instant | None
    revoked: bool
    revoked_at: Instant | None
    rate_limit_per_minute: int
    metadata: Json


class IssuedCredential(msgspec.Struct, frozen=True):
    """A new credential and its key, which no later answer shows again."""

    credential: Credential
    api_key: str


class RevokedCredential(msgspec.Struct, frozen=True):
    """What is said of a credential that was just revoked."""

    id: UUID
    name: str
    api_key_prefix: str
    user_account_id: UUID
    user_account_name: str
    admin_key_id: UUID
    admin_entity_name: str
    network_id: int
    revoked: bool
    revoked_at: Instant | None


class _Id(msgspec.Struct, frozen=True):
    id: UUID


class _KeyHash(msgspec.Struct, frozen=True):
    key_hash: bytes


_credential_by_id = sql.query("credential_by_id", Credential)
_credentials = sql.query("credentials", Credential)
_credential_count = sql.query("credential_count", Total)
_create = sql.query("create", _Id)
_update = sql.query("update", _Id)
_revoke = sql.query("revoke", _KeyHash)


async def create(ask: AdminAsk[Nothing, NewCredential]) -> Told[IssuedCredential]:
    """Issue an API key to a user account.

    The full key is in this answer only; what is stored is its SHA-256. The key of a suspended account works once that
    is active again.
    """
    if ask.key.is_bootstrap:
        raise errors.bootstrap_owns_no_credentials()
    new, api_key = ask.body, tokens.new_api_key()
    async with ask.commit() as db:
        made = await _create.one(
            db,
            new.user_account_id,
            ask.key.id,
            new.name,
            new.description,
            new.network_id,
            new.expires_at,
            new.rate_limit_per_minute,
            new.metadata,
            tokens.hash_of(api_key),
            tokens.prefix_of(api_key),
        )
        if made is None:
            raise errors.user_account_not_found()
        await audit.record(
            db,
            ask,
            "credential.created",
            made.id,
            name=new.name,
            user_account_id=new.user_account_id,
            network_id=new.network_id,
        )
        credential = await _kept(ask, db, made.id)
    issued = IssuedCredential(credential, api_key)
    return Told(data=issued, message="Credential created. Store the API key now: it is not shown again")


async def listed(ask: AdminAsk[CredentialFilter, None]) -> Page[Credential, Paging]:
    """List the credentials of the caller's accounts, newest first."""
    page = ask.question
    async with ask.commit() as db:
        credentials = await _credentials.all(db, ask.key.id, page.include_revoked, page.limit, page.offset)
        count = await _credential_count.one(db, ask.key.id, page.include_revoked)
        await audit.record(
            db, ask, "credential.listed", limit=page.limit, offset=page.offset, include_revoked=page.include_revoked
        )
    assert count is not None, "a count is one row"
    more = page.offset + len(credentials) < count.total
    return Page(data=credentials, pagination=Paging(page.limit, page.offset, count.total, more))


async def read(ask: AdminAsk[OneCredential, None]) -> Answer[Credential]:
    """Read one credential, revoked or not."""
    async with ask.commit() as db:
        credential = await _credential_by_id.one(db, ask.question.id, ask.key.id)
        if credential is None:
            raise errors.credential_not_found()
        await audit.record(db, ask, "credential.viewed", credential.id)
        return Answer(data=credential)


async def update(ask: AdminAsk[OneCredential, CredentialChanges]) -> Told[Credential]:
    """Change the name or the description of a credential that is not revoked."""
    changes = ask.body
    given = {field: value for field, value in msgspec.structs.asdict(changes).items() if value is not UNSET}
    async with ask.commit() as db:
        name, description = given.get("name"), given.get("description")
        found = await _update.one(
            db, ask.question.id, ask.key.id, "name" in given, name, "description" in given, description
        )
        if found is None:
            raise errors.credential_not_found_or_revoked()
        await audit.record(db, ask, "credential.updated", found.id, fields=list(given))
        return Told(data=await _kept(ask, db, found.id), message="Credential updated")


async def revoke(ask: AdminAsk[OneCredential, None]) -> Told[RevokedCredential]:
    """Revoke a credential for good. Its API key is refused from the next request on; the record stays."""
    async with ask.services.callers.withdrawing() as withdrawal, ask.commit() as db:
        found = await _revoke.one(db, ask.question.id, ask.key.id)
        if found is None:
            raise errors.credential_not_found_or_revoked()
        await withdrawal.of([found.key_hash])
        credential = await _kept(ask, db, ask.question.id)
        await audit.record(db, ask, "credential.revoked", credential.id, name=credential.name)
    shown = {field: getattr(credential, field) for field in RevokedCredential.__struct_fields__}
    return Told(data=RevokedCredential(**shown), message="Credential revoked")


async def _kept(ask: AdminAsk[Any, Any], db: sql.Connection, credential_id: UUID) -> Credential:
    """The credential as it is after a change that found it to be the caller's."""
    credential = await _credential_by_id.one(db, credential_id, ask.key.id)
    assert credential is not None, "a row changed in this commit is there"
    return credential
