"""Limits and restrictions of a credential. A change applies to the very next request with any of its keys."""

from datetime import datetime
from typing import Annotated, Any, get_args
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from api import errors
from api.admin import audit
from api.admin.credentials import MAX_RATE_LIMIT, OneCredential, key_hashes
from api.answers import Answer, Confirmation, Instant
from api.ask import AdminAsk
from api.keys.caller import QuotaPeriod
from api.keys.restrictions import MAX_NETWORKS, SCOPES, canonical
from api.parameters import MAX_SAFE_INTEGER, Body, Choices, Integer, JsonSchema, Kind, Moment
from api.sources import clock
from shared import sql

_PERIODS = get_args(QuotaPeriod)
_MAX_NETWORK_LENGTH = 49  # an IPv6 address in full, with IPv4 notation at its end, and the length


class Quota(msgspec.Struct, frozen=True):
    """The maximum number of requests per day or month (UTC)."""

    requests: int
    per: QuotaPeriod


class QuotaKind(Kind[Quota]):
    """A quota as a JSON object."""

    def __init__(self) -> None:
        schema: JsonSchema = {
            "type": "object",
            "properties": {
                "requests": {"type": "integer", "minimum": 1, "maximum": MAX_SAFE_INTEGER},
                "per": {"type": "string", "enum": list(_PERIODS)},
            },
            "required": ["requests", "per"],
        }
        super().__init__(f"an object with requests (1 to {MAX_SAFE_INTEGER}) and per ({' or '.join(_PERIODS)})", schema)

    def of_json(self, value: object) -> Quota:
        try:
            quota = msgspec.convert(value, Quota)
        except msgspec.ValidationError as error:
            raise ValueError(value) from error
        if not 1 <= quota.requests <= MAX_SAFE_INTEGER:
            raise ValueError(value)
        return quota


class Networks(Kind[tuple[str, ...]]):
    """A JSON array of networks in CIDR notation, or addresses. The value contains each once, in canonical notation."""

    def __init__(self) -> None:
        schema: JsonSchema = {
            "type": "array",
            "items": {"type": "string", "maxLength": _MAX_NETWORK_LENGTH},
            "maxItems": MAX_NETWORKS,
        }
        super().__init__(f"an array of at most {MAX_NETWORKS} networks such as 203.0.113.0/24 or 2001:db8::/32", schema)

    def of_json(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or len(value) > MAX_NETWORKS:
            raise ValueError(value)
        if not all(isinstance(text, str) for text in value):
            raise ValueError(value)
        return tuple(dict.fromkeys(canonical(text) for text in value))


class LimitChanges(Body, frozen=True, kw_only=True):
    """Limits to change, at least one; omitted ones stay unchanged. Null removes the expiry or the quota."""

    rate_limit_per_minute: Annotated[int | UnsetType, Integer(1, MAX_RATE_LIMIT)] = UNSET
    expires_at: Annotated[datetime | UnsetType | None, Moment()] = UNSET
    quota: Annotated[Quota | UnsetType | None, QuotaKind()] = UNSET

    def check(self) -> None:
        """Refuse an empty change, and an `expires_at` in the past."""
        if self.rate_limit_per_minute is UNSET and self.expires_at is UNSET and self.quota is UNSET:
            raise errors.no_limit_to_change()
        if isinstance(self.expires_at, datetime) and self.expires_at <= clock.now():
            raise errors.expiry_not_in_future()


class RestrictionChanges(Body, frozen=True, kw_only=True):
    """Restrictions to change, at least one; omitted ones stay unchanged. An empty array or null removes one."""

    ip_networks: Annotated[tuple[str, ...] | UnsetType | None, Networks()] = UNSET
    scopes: Annotated[tuple[str, ...] | UnsetType | None, Choices(*SCOPES, least=0)] = UNSET

    def check(self) -> None:
        """Refuse an empty change."""
        if self.ip_networks is UNSET and self.scopes is UNSET:
            raise errors.no_restriction_to_change()


class Limits(msgspec.Struct, frozen=True):
    """The limits of a credential. All its keys share them. Without a `quota`, only the limit per minute applies."""

    credential_id: UUID
    rate_limit_per_minute: int
    expires_at: Instant | None
    quota: Quota | None


class RestrictionsRecord(msgspec.Struct, frozen=True):
    """The IP networks and the scopes to which the keys of a credential are restricted.

    An empty list restricts nothing, except that the scope `submit` must always be named.
    """

    credential_id: UUID
    ip_networks: list[str]
    scopes: list[str]


class _Rules(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    revoked: bool
    rate_limit_per_minute: int
    expires_at: datetime | None
    quota_requests: int | None
    quota_per: QuotaPeriod | None
    ip_networks: list[str]
    scopes: list[str]

    def limits(self) -> Limits:
        quota = None
        if self.quota_requests is not None and self.quota_per is not None:
            quota = Quota(self.quota_requests, self.quota_per)
        return Limits(self.id, self.rate_limit_per_minute, self.expires_at, quota)

    def restrictions(self) -> RestrictionsRecord:
        return RestrictionsRecord(self.id, self.ip_networks, self.scopes)


_sql = sql.beside(__file__)
_rules = _sql.query("rules", _Rules, locked="")
_rules_to_change = _sql.query("rules", _Rules, locked="FOR NO KEY UPDATE")
_set_limits = _sql.command("set_limits")
_set_restrictions = _sql.command("set_restrictions")


async def get_credential_limits(ask: AdminAsk[OneCredential, None]) -> Answer[Limits]:
    """Read the limits of a credential, revoked or not."""
    return Answer(data=(await _viewed(ask)).limits())


async def update_credential_limits(ask: AdminAsk[OneCredential, LimitChanges]) -> Confirmation[Limits]:
    """Change the limits of an unrevoked credential, effective from its very next request.

    Omitted fields stay unchanged; null removes the expiry or the quota. A new quota includes the requests already made
    in its day or month, except perhaps those of the last five seconds.
    """
    async with ask.commit() as db:
        rules = await _to_change(ask, db)
        old = rules.limits()
        new = msgspec.structs.replace(old, **ask.body.given())
        changed = await _record_change(ask, db, rules.name, old, new)
        if changed:
            await ask.invalidation.of(await key_hashes.all(db, old.credential_id))
            requests, per = (None, None) if new.quota is None else (new.quota.requests, new.quota.per)
            await _set_limits.run(db, old.credential_id, new.rate_limit_per_minute, new.expires_at, requests, per)
    return Confirmation(data=new, message="Limits updated" if changed else "Limits unchanged")


async def get_credential_restrictions(ask: AdminAsk[OneCredential, None]) -> Answer[RestrictionsRecord]:
    """Read the restrictions of a credential, revoked or not."""
    return Answer(data=(await _viewed(ask)).restrictions())


async def update_credential_restrictions(
    ask: AdminAsk[OneCredential, RestrictionChanges],
) -> Confirmation[RestrictionsRecord]:
    """Restrict an unrevoked credential to IP networks, scopes, or both, effective from its very next request.

    Omitted fields stay unchanged; an empty array or null removes a restriction. Each chain endpoint belongs to one
    scope; `/v1/key` may be called with any scope. The scope `submit` must be named: a key without scopes may call
    everything else.
    """
    given = {field: list(value or ()) for field, value in ask.body.given().items()}
    async with ask.commit() as db:
        rules = await _to_change(ask, db)
        old = rules.restrictions()
        new = msgspec.structs.replace(old, **given)
        changed = await _record_change(ask, db, rules.name, old, new)
        if changed:
            await ask.invalidation.of(await key_hashes.all(db, old.credential_id))
            await _set_restrictions.run(db, old.credential_id, new.ip_networks, new.scopes)
    return Confirmation(data=new, message="Restrictions updated" if changed else "Restrictions unchanged")


async def _viewed(ask: AdminAsk[OneCredential, None]) -> _Rules:
    async with ask.commit() as db:
        rules = await _rules.one(db, ask.question.id, ask.key.id)
        if rules is None:
            raise errors.credential_not_found()
        await audit.record(db, ask, "credential.viewed", rules.id)
        return rules


async def _to_change(ask: AdminAsk[OneCredential, Any], db: sql.Connection) -> _Rules:
    """The rules of a credential, locked until the commit. Raises Refusal if it is revoked."""
    rules = await _rules_to_change.one(db, ask.question.id, ask.key.id)
    if rules is None or rules.revoked:
        raise errors.credential_not_found_or_revoked()
    return rules


async def _record_change(
    ask: AdminAsk[OneCredential, Any],
    db: sql.Connection,
    name: str,
    old: Limits | RestrictionsRecord,
    new: Limits | RestrictionsRecord,
) -> bool:
    """Record a change with the old and new values, or a view if nothing changes. Returns whether anything changes."""
    fields = [field for field in old.__struct_fields__ if getattr(old, field) != getattr(new, field)]
    if fields:
        before, after = ({field: getattr(record, field) for field in fields} for record in (old, new))
        details = {"name": name, "fields": fields, "old": before, "new": after}
        await audit.record(db, ask, "credential.updated", old.credential_id, **details)
    else:
        await audit.record(db, ask, "credential.viewed", old.credential_id)
    return bool(fields)
