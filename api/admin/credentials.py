"""Credentials: the API keys that a partner issues to its users."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from api import errors
from api.admin import audit
from api.admin.users import MAX_SEARCH_LENGTH, NO_METADATA, Metadata, Name
from api.answers import Answer, Confirmation, Instant, Issued, Json, Page, Paging
from api.ask import AdminAsk, Nothing
from api.keys import tokens
from api.operate import network_states
from api.parameters import Body, Choice, Flag, Id, Integer, Moment, Offset, Question, Text
from api.services import Services
from api.sources import clock
from api.sources.shared_reading import in_time
from shared import schema, sql
from shared.network import NETWORKS, Network, by_id
from shared.phase import Phase

MAX_DESCRIPTION_LENGTH = 2_000
MAX_RATE_LIMIT = 10_000
MAX_OVERLAP_S = 30 * 86_400
MAX_EXPIRY_DAYS = 3_650
_STATES_WITHIN_S = 1.0
_NAMED = ", ".join(f"{network.network_id}={network.name.capitalize()}" for network in NETWORKS)
NETWORK_ID_EXPECTED = f"network_id is required ({_NAMED})"
_LAST_NETWORK_ID = max(by_id)

CredentialId = Annotated[UUID, Id("Invalid credential ID format")]


class NewCredential(Body, frozen=True, kw_only=True):
    """The API key to create, for one of the caller's accounts and one network."""

    name: Annotated[str, Name]
    user_account_id: Annotated[UUID, Id(missing="user_account_id is required")]
    network_id: Annotated[int, Integer(0, _LAST_NETWORK_ID, message=NETWORK_ID_EXPECTED, missing=NETWORK_ID_EXPECTED)]
    description: Annotated[str | None, Text(MAX_DESCRIPTION_LENGTH)] = None
    expires_at: Annotated[datetime | None, Moment()] = None
    rate_limit_per_minute: Annotated[int, Integer(1, MAX_RATE_LIMIT)] = 60
    metadata: Annotated[msgspec.Raw, Metadata] = NO_METADATA


class CredentialChanges(Body, frozen=True, kw_only=True):
    """Fields to change, at least one of the two; null clears the description."""

    name: Annotated[str | UnsetType, Name] = UNSET
    description: Annotated[str | UnsetType | None, Text(MAX_DESCRIPTION_LENGTH)] = UNSET

    def check(self) -> None:
        """Refuse an empty change."""
        if self.name is UNSET and self.description is UNSET:
            raise errors.nothing_to_update()


class Rotation(Body, frozen=True, kw_only=True):
    """The number of seconds for which the former key remains valid beside the new one. With 0, all former keys end."""

    overlap_seconds: Annotated[int, Integer(0, MAX_OVERLAP_S)]


class CredentialFilter(Question, frozen=True, kw_only=True):
    """A page of the credentials that match all filters.

    `status` takes precedence over `includeRevoked`. `search` matches part of the name, the description or the prefix,
    ignoring case. `expires_within` is a number of days; it matches active credentials that expire within that time.
    """

    limit: Annotated[int, Integer(1, 100)] = 20
    offset: Offset = 0
    include_revoked: Annotated[bool, Flag()] = msgspec.field(name="includeRevoked", default=False)
    user_account_id: Annotated[UUID | None, Id()] = None
    network_id: Annotated[int | None, Integer(0, _LAST_NETWORK_ID)] = None
    status: Annotated[str | None, Choice("active", "expired", "revoked")] = None
    search: Annotated[str | None, Text(MAX_SEARCH_LENGTH)] = None
    expires_within: Annotated[int | None, Integer(1, MAX_EXPIRY_DAYS)] = None


class OneCredential(Question, frozen=True, kw_only=True):
    """The id of a credential."""

    id: CredentialId


class Credential(msgspec.Struct, frozen=True):
    """The record of an API key. The key itself is shown only once, when it is created."""

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


class IssuedCredential(Issued, frozen=True):
    """A new credential and its key. No later answer shows the key again."""

    credential: Credential
    api_key: str


class FormerKey(msgspec.Struct, frozen=True):
    """A key that a rotation has replaced. It is valid until `ends_at`, unless the credential expires before that."""

    api_key_prefix: str
    ends_at: Instant


class RotatedCredential(Issued, frozen=True):
    """A credential with a new key, which no later answer shows again, and the key that it replaces."""

    credential: Credential
    api_key: str
    former_key: FormerKey


class RevokedCredential(msgspec.Struct, frozen=True):
    """A credential that was just revoked."""

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


_sql = sql.beside(__file__)
_ONE = "credential.id = $1 AND credential.admin_key_id = $2"
_MATCHING = _sql.text("matching")
_NEWEST_FIRST = "ORDER BY credential.created_at DESC, credential.id DESC LIMIT $8 OFFSET $9"  # ties by id
_credential_by_id = _sql.query("credentials", Credential, which=_ONE, page="")
_credentials = _sql.query("credentials", Credential, which=_MATCHING, page=_NEWEST_FIRST)
_credential_count = _sql.values("credential_count", int, which=_MATCHING)
_create = _sql.values("create", UUID)
_update = _sql.values("update", UUID)
_revoke = _sql.values("revoke", UUID)
_rotate = _sql.query("rotate", FormerKey)
key_hashes = _sql.values("key_hashes", bytes)
"""The hashes of all keys of a credential, the current one and former ones."""


async def create_credential(ask: AdminAsk[Nothing, NewCredential]) -> Confirmation[IssuedCredential]:
    """Issue an API key to a user account.

    Only this answer contains the full key; the service stores its SHA-256. The key of a suspended account works once
    the account is active again.
    """
    if ask.key.is_bootstrap:
        raise errors.bootstrap_owns_no_credentials()
    new, api_key = ask.body, tokens.new_api_key()
    if new.expires_at is not None and new.expires_at <= clock.now():
        # NOTE: not in `NewCredential.check`, so that a repeated request is still recognised after that time.
        raise errors.expiry_not_in_future()
    async with ask.commit() as db:
        credential_id = await _create.one(
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
        if credential_id is None:
            raise errors.user_account_not_found()
        await audit.record(
            db,
            ask,
            "credential.created",
            credential_id,
            name=new.name,
            user_account_id=new.user_account_id,
            network_id=new.network_id,
        )
        credential = await _changed(ask, db, credential_id)
    unserved = await _unserved(ask.services, by_id[new.network_id])
    message = f"Credential created. Store the API key now: it is not shown again{unserved}"
    return Confirmation(data=IssuedCredential(credential, api_key), message=message)


async def _unserved(services: Services, network: Network) -> str:
    """What to add about a network whose chain requests are refused for now; "" if it is live, or if that is unknown."""
    reading = services.shared_readings.get("networks", lambda: network_states.network_states(services))
    states = await in_time(reading, _STATES_WITHIN_S, "credential.without_network_states")
    if states is None or any(state.network == network.name and state.phase is Phase.LIVE for state in states):
        return ""
    return f". Chain requests of {network.name} are answered with 503 until it is available"


async def list_credentials(ask: AdminAsk[CredentialFilter, None]) -> Page[Credential, Paging]:
    """List the credentials of the caller's accounts that match the filters, newest first."""
    page = ask.question
    matching = (
        ask.key.id,
        page.include_revoked,
        page.user_account_id,
        page.network_id,
        page.status,
        page.search,
        page.expires_within,
    )
    async with ask.connection() as db:
        async with db.transaction(isolation="repeatable_read", readonly=True):
            credentials = await _credentials.all(db, *matching, page.limit, page.offset)
            total = await _credential_count.only(db, *matching)
        async with schema.commit(db):
            await audit.record(
                db, ask, "credential.listed", limit=page.limit, offset=page.offset, include_revoked=page.include_revoked
            )
    more = page.offset + len(credentials) < total
    return Page(data=credentials, pagination=Paging(page.limit, page.offset, total, more))


async def get_credential(ask: AdminAsk[OneCredential, None]) -> Answer[Credential]:
    """Read one credential, revoked or not."""
    async with ask.commit() as db:
        credential = await _credential_by_id.one(db, ask.question.id, ask.key.id)
        if credential is None:
            raise errors.credential_not_found()
        await audit.record(db, ask, "credential.viewed", credential.id)
        return Answer(data=credential)


async def update_credential(ask: AdminAsk[OneCredential, CredentialChanges]) -> Confirmation[Credential]:
    """Change the name or the description of a credential that is not revoked."""
    given = ask.body.given()
    async with ask.commit() as db:
        name, description = given.get("name"), given.get("description")
        changes = "name" in given, name, "description" in given, description
        if await _update.one(db, ask.question.id, ask.key.id, *changes) is None:
            raise errors.credential_not_found_or_revoked()
        credential = await _changed(ask, db, ask.question.id)
        await audit.record(db, ask, "credential.updated", credential.id, name=credential.name, fields=list(given))
        return Confirmation(data=credential, message="Credential updated")


async def revoke_credential(ask: AdminAsk[OneCredential, None]) -> Confirmation[RevokedCredential]:
    """Revoke a credential permanently. Its API key is refused from the next request on; the record remains."""
    async with ask.commit() as db:
        if await _revoke.one(db, ask.question.id, ask.key.id) is None:
            raise errors.credential_not_found_or_revoked()
        await ask.invalidation.of(await key_hashes.all(db, ask.question.id))
        credential = await _changed(ask, db, ask.question.id)
        await audit.record(db, ask, "credential.revoked", credential.id, name=credential.name)
    shown = {field: getattr(credential, field) for field in RevokedCredential.__struct_fields__}
    return Confirmation(data=RevokedCredential(**shown), message="Credential revoked")


async def rotate_credential(ask: AdminAsk[OneCredential, Rotation]) -> Confirmation[RotatedCredential]:
    """Replace the API key of a credential with a new one. The former key remains valid during the overlap.

    An overlap of 0, as for a key that has leaked, also ends the keys of earlier rotations. Only this answer contains
    the new key. All keys of a credential share its limits. Usage continues under the same id, and restrictions stay in
    force. Revoking the credential ends all of its keys.
    """
    api_key, overlap_s = tokens.new_api_key(), ask.body.overlap_seconds
    async with ask.commit() as db:
        new = tokens.hash_of(api_key), tokens.prefix_of(api_key)
        former = await _rotate.one(db, ask.question.id, ask.key.id, *new, overlap_s)
        if former is None:
            raise errors.credential_not_found_or_revoked()
        await ask.invalidation.of(await key_hashes.all(db, ask.question.id))
        credential = await _changed(ask, db, ask.question.id)
        await audit.record(
            db,
            ask,
            "credential.rotated",
            credential.id,
            name=credential.name,
            old={"api_key_prefix": former.api_key_prefix},
            new={"api_key_prefix": credential.api_key_prefix},
            former_key_ends_at=former.ends_at,
        )
    rotated = RotatedCredential(credential, api_key, former)
    return Confirmation(data=rotated, message="Credential rotated. Store the API key now: it is not shown again")


async def _changed(ask: AdminAsk[Any, Any], db: sql.Connection, credential_id: UUID) -> Credential:
    """The credential after a change, which has checked that it is the caller's."""
    return await _credential_by_id.only(db, credential_id, ask.key.id)
