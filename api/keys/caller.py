"""Authenticate a bearer token: the result is an ApiCaller, an AdminKey or a refusal.

Postgres is authoritative. Valkey caches an API key for a few seconds, and never past a change of the key; see
docs/decisions/0004-no-key-outlives-its-revocation.md.
"""

import asyncio
import hmac
import ipaddress
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import lru_cache
from typing import Literal
from uuid import UUID

import msgspec
import structlog
from prometheus_client import Counter, Gauge
from redis.exceptions import RedisError

from api import errors
from api.errors import Refusal
from api.http.turns import FairPool
from api.keys import restrictions, tickets, tokens
from api.keys.limits.scripts import LEASE_S
from api.keys.limits.shared import SharedLimits
from api.keys.limits.verdicts import AskPostgres, Barred, GoodKey, KeyLease, RunningQuota, Verdict
from api.keys.restrictions import KeyUse
from api.keys.valkey import ValkeyClient
from api.sources import clock
from shared import lifecycle, network, schema, sql
from shared.network import Network
from shared.setting_forms import IPNetwork

log = structlog.get_logger()

PERMISSIONS = ("manage_users", "manage_credentials", "view_usage", "view_audit_logs")
BOOTSTRAP = "bootstrap"
_REMEMBERED = 4_096

_BEARER = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/-]+=*) *")  # RFC 6750, section 2.1
_BEARER_OF_API_KEY = re.compile(rf"(?i:bearer) +({tokens.API_KEY_PATTERN}) *")

_refused = Counter("ledgerline_callers_refused", "Requests refused for their key, by kind of key.", ("key", "reason"))
_REASONS = {
    "api": ("missing", "invalid", "expired", "inactive", "ip", "scope", "network"),
    "admin": ("missing", "invalid", "permission"),
}
_refused_for = {(key, why): _refused.labels(key, why) for key, reasons in _REASONS.items() for why in reasons}
_limited = Counter("ledgerline_rate_limited", "Requests refused for exceeding the rate limit.")
_quota_exceeded = Counter("ledgerline_quota_exceeded", "Requests refused for exceeding the quota.")
_shared = Gauge(
    "ledgerline_rate_limits_shared",
    "1 while limits are counted in Valkey for all processes, 0 while this process counts alone.",
    multiprocess_mode="livemin",
)


class ApiKey(msgspec.Struct, frozen=True):
    """The caller of a chain endpoint, and the network of its key."""

    credential_id: UUID
    network: Network


class ApiCaller(msgspec.Struct, frozen=True):
    """The caller with an API key, and the outcome of its limits for one request.

    `headers` report the limits in the answer; `refusal` is set if one is exceeded.
    """

    key: ApiKey
    key_hash: bytes
    verdict: Verdict
    headers: dict[str, str]
    refusal: Refusal | None


class AdminKey(msgspec.Struct, frozen=True):
    """The caller of an admin endpoint. The bootstrap key has every permission and owns no accounts."""

    id: UUID
    entity_name: str
    permissions: frozenset[str]
    is_bootstrap: bool


QuotaPeriod = Literal["day", "month"]
"""The periods of a quota, in UTC, by the words that Postgres' `date_trunc` knows."""


class KeyRow(msgspec.Struct, frozen=True):
    """The properties of an API key that decide whether a request is admitted."""

    credential_id: UUID
    network_id: int
    limit: int
    expires_at: datetime | None
    revoked: bool
    expired: bool
    user_status: str
    quota_requests: int | None  # null without a quota; the other quota_ fields then mean nothing
    quota_per: QuotaPeriod | None
    quota_since: datetime
    quota_until: datetime
    quota_used: int
    ip_networks: list[str]
    scopes: list[str]

    def good(self) -> GoodKey:
        """The key, once it has proved valid."""
        quota = None
        if self.quota_requests is not None and self.quota_per is not None:
            quota = RunningQuota(
                self.quota_requests, self.quota_per, self.quota_since, self.quota_until, self.quota_used
            )
        allowed = restrictions.parse(self.ip_networks, self.scopes)
        return GoodKey(self.credential_id, self.network_id, self.limit, self.expires_at, quota, allowed)


class _AdminKeyRow(msgspec.Struct, frozen=True):
    id: UUID
    entity_name: str
    permissions: list[str]
    use_is_due: bool  # last_used_at is more than a minute old


class _BootstrapRow(msgspec.Struct, frozen=True):
    id: UUID
    entity_name: str


_sql = sql.beside(__file__)
_api_key_by_hash = _sql.query("api_key_by_hash", KeyRow)
_key_hashes = _sql.values("key_hashes", bytes)
_admin_key_by_hash = _sql.query("admin_key_by_hash", _AdminKeyRow)
_was_issued = _sql.values("was_issued", bool)
_touch_admin_key = _sql.command("touch_admin_key")
_bootstrap_admin_key = _sql.query("bootstrap_admin_key", _BootstrapRow)


def network_mismatch() -> Refusal:
    """A key with the name of another network before it, which only Blockfrost's form of keys allows."""
    return Refusal(403, "network_mismatch", "Network token mismatch.")


class Callers:
    """Authenticates requests. One per process."""

    def __init__(self, partner: FairPool, valkey: ValkeyClient, bootstrap_admin_key: str | None) -> None:
        self._partner, self._api_keys = partner, KeyReader(partner)
        self._limits = SharedLimits(valkey)
        self._away = False
        self._bootstrap_hash = None if bootstrap_admin_key is None else tokens.hash_of(bootstrap_admin_key)
        _shared.set(1)

    async def beat(self) -> None:
        """Send heartbeats to Valkey until cancelled: limits are shared among the processes that send them."""
        await self._limits.beat()

    async def api_key(self, authorization: Sequence[str], use: KeyUse) -> ApiCaller:
        """Authenticate and count one request with an API key by its Authorization headers. Raises Refusal (401, 403).

        Takes one round trip to Valkey if the key is cached there, otherwise two and a query to Postgres.
        """
        token = _bearer(authorization, _BEARER_OF_API_KEY)
        if token is None:
            if _bearer(authorization) is None:
                raise _refusal("api", "missing", errors.missing_api_key())
            raise _refusal("api", "invalid", errors.invalid_api_key())
        return await self._caller(tokens.hash_of(token), use)

    async def ticket(self, text: str, use: KeyUse) -> ApiCaller:
        """Authenticate and count one request with a ticket, as with the key to which it was issued. Raises Refusal."""
        ticket = tickets.parse(text)
        if ticket is not None and ticket.expires_at > clock.now():
            async with self._partner.acquire() as db:
                key_hashes = await _key_hashes.all(db, ticket.credential_id)
            for key_hash in key_hashes:
                if ticket.is_signed_with(key_hash):
                    return await self._caller(key_hash, use)
        raise _refusal("api", "invalid", errors.invalid_ticket())

    async def still_admitted(self, key_hash: bytes, use: KeyUse) -> None:
        """Raises Refusal if a key that was admitted some time ago would no longer be."""
        row = await self._valid(key_hash)
        if row is None:
            raise errors.invalid_api_key()
        barred = row.good().bars(use)
        if barred is not None:
            raise _barred(barred, use)

    async def _caller(self, key_hash: bytes, use: KeyUse) -> ApiCaller:
        verdict = await self._take(key_hash, use)
        if verdict is None:
            raise _refusal("api", "invalid", errors.invalid_api_key())
        refusal = None
        if isinstance(verdict, Barred):
            raise _refusal("api", verdict.by, _barred(verdict.by, use))
        if verdict.quota_exceeded:
            _quota_exceeded.inc()
            refusal = errors.quota_exceeded()
        elif not verdict.admitted:
            _limited.inc()
            refusal = errors.rate_limit_exceeded()
        key = ApiKey(verdict.credential_id, network.by_id[verdict.network_id])
        return ApiCaller(key, key_hash, verdict, verdict.headers(), refusal)

    async def read_key(self, key_hash: bytes) -> KeyRow | None:
        """A key as Postgres knows it, valid or not."""
        return await self._api_keys.read(key_hash)

    async def admin_key(self, authorization: Sequence[str], needs: str) -> AdminKey:
        """Authenticate an admin request that needs a permission or, if BOOTSTRAP, the bootstrap key.

        Raises Refusal; also WrongSchema, since it may update `last_used_at` of the key in a commit.
        """
        token = _bearer(authorization)
        if token is None:
            raise _refusal("admin", "missing", errors.missing_admin_key())
        async with self._partner.acquire() as db:
            key = await (_bootstrap_key if self._is_bootstrap(token) else _partner_key)(db, token)
        if key is None:
            raise _refusal("admin", "invalid", errors.invalid_admin_key())
        is_permitted = key.is_bootstrap if needs == BOOTSTRAP else needs in key.permissions
        if not is_permitted:
            raise _refusal("admin", "permission", errors.permission_denied(needs))
        return key

    @asynccontextmanager
    async def invalidating(self) -> AsyncIterator["KeyInvalidation"]:
        """Wrap a commit that changes or ends API keys: after the block every process reads them from Postgres again.

        Declare the keys inside the commit: that fences them in Valkey immediately, in case this process dies, and again
        after the commit. If Valkey is unreachable, this waits until every cached copy has expired.
        """
        invalidation = KeyInvalidation(self._fence)
        yield invalidation
        if not await self._fence(invalidation.key_hashes):
            log.warning("keys.waiting_for_leases", keys=len(invalidation.key_hashes), wait_s=LEASE_S)
            await asyncio.sleep(LEASE_S)

    async def _take(self, key_hash: bytes, use: KeyUse) -> Verdict | Barred | None:
        """The outcome of one request; None for an unknown or revoked key.

        Raises Refusal for an expired key or an inactive account.
        """
        from_valkey = await self._ask_valkey(key_hash, use)
        if isinstance(from_valkey, Verdict | Barred):
            return from_valkey
        row = await self._valid(key_hash)
        if row is None:
            return None
        good = row.good()
        lease = KeyLease(good) if from_valkey is None else KeyLease(good, from_valkey.until_us, from_valkey.life)
        verdict = await self._ask_valkey(key_hash, use, lease)
        return verdict if isinstance(verdict, Verdict | Barred) else self._limits.take_alone(good, use)

    async def _valid(self, key_hash: bytes) -> KeyRow | None:
        """A key as Postgres knows it; None if it is unknown or revoked.

        Raises Refusal for an expired key or an inactive account.
        """
        row = await self.read_key(key_hash)
        if row is None or row.revoked:
            return None
        if row.expired:
            raise _refusal("api", "expired", errors.expired_api_key())
        if row.user_status != "active":
            raise _refusal("api", "inactive", errors.inactive_account())
        return row

    async def _ask_valkey(
        self, key_hash: bytes, use: KeyUse, lease: KeyLease | None = None
    ) -> Verdict | Barred | AskPostgres | None:
        """The answer of Valkey about one request; None while it is unreachable."""
        answer, cause = None, "a heartbeat failed"
        if not self._limits.away:
            try:
                answer = await self._limits.take(key_hash, lease, use)
            except (RedisError, OSError) as error:
                cause = f"{type(error).__name__}: {error}"
        if self._away != self._limits.away:
            self._away = self._limits.away
            _shared.set(not self._away)
            if self._away:
                log.warning("valkey.away", limits="per process", cause=cause)
            else:
                log.info("valkey.back", limits="shared")
        return answer

    async def _fence(self, key_hashes: Sequence[bytes]) -> bool:
        """Make Valkey forget keys; False if it is unreachable."""
        try:
            await self._limits.fence(key_hashes)
        except (RedisError, OSError) as cause:
            log.warning("keys.not_fenced", keys=len(key_hashes), cause=f"{type(cause).__name__}: {cause}")
            return False
        return True

    def _is_bootstrap(self, token: str) -> bool:
        return self._bootstrap_hash is not None and hmac.compare_digest(tokens.hash_of(token), self._bootstrap_hash)


class KeyReader:
    """Reads API keys in Postgres, once for all requests of a key that wait for a connection.

    Valkey forgets a key after LEASE_S. Then all requests in progress with that key need it from Postgres.
    """

    def __init__(self, partner: FairPool) -> None:
        self._partner = partner
        self._waiting: dict[bytes, asyncio.Task[KeyRow | None]] = {}

    async def read(self, key_hash: bytes) -> KeyRow | None:
        """The key with this hash, read after this call."""
        reading = self._waiting.get(key_hash)
        if reading is None:
            reading = self._waiting[key_hash] = asyncio.create_task(self._read(key_hash))
            reading.add_done_callback(lifecycle.consume_error)
        return await asyncio.shield(reading)  # others wait for it, too

    async def _read(self, key_hash: bytes) -> KeyRow | None:
        try:
            async with self._partner.acquire() as db:
                # NOTE: a request that arrives from here on may follow a revocation that this statement does not see.
                del self._waiting[key_hash]
                return await _api_key_by_hash.one(db, key_hash)
        finally:
            if self._waiting.get(key_hash) is asyncio.current_task():
                del self._waiting[key_hash]


class KeyInvalidation:
    """The API keys whose cached copies a commit invalidates."""

    def __init__(self, fence: Callable[[Sequence[bytes]], Awaitable[bool]]) -> None:
        self._fence = fence
        self.key_hashes: Sequence[bytes] = ()

    async def of(self, key_hashes: Sequence[bytes]) -> None:
        """Declare them by their hashes, inside the commit: from now on only Postgres answers for them."""
        self.key_hashes = key_hashes
        await self._fence(key_hashes)


async def was_issued(db: sql.Connection, admin_key: str) -> bool:
    """Whether an admin key was issued to a partner, and so can't be the bootstrap key."""
    return await _was_issued.only(db, tokens.hash_of(admin_key))


def ip_address(peer: str | None, forwarded_for: Sequence[str], trusted: Sequence[IPNetwork]) -> str | None:
    """The address of the client: the nearest one that is not a trusted proxy.

    `forwarded_for` are the X-Forwarded-For headers in order. They are read from the right; addresses left of an
    untrusted one are not believed.
    """
    hops = [hop.strip() for header in forwarded_for for hop in header.split(",")]
    client = _client(peer or "")
    while client is not None and hops and any(client.address in proxies for proxies in trusted):
        further = _client(hops.pop())
        if further is None:
            break
        client = further
    return None if client is None else client.text


class _Client(msgspec.Struct, frozen=True):
    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    text: str


@lru_cache(_REMEMBERED)
def _client(text: str) -> _Client | None:
    try:
        sent = ipaddress.ip_address(text)
    except ValueError:
        return None
    address = getattr(sent, "ipv4_mapped", None) or sent
    return _Client(address, str(address))


def _bearer(authorization: Sequence[str], form: re.Pattern[str] = _BEARER) -> str | None:
    """The token of the Authorization header; None if it is missing or repeated, or has another form."""
    match = form.fullmatch(authorization[0]) if len(authorization) == 1 else None
    return None if match is None else match[1]


async def _bootstrap_key(db: sql.Connection, token: str) -> AdminKey:
    shown = tokens.admin_prefix_of(token), tokens.hash_of(token), PERMISSIONS
    async with schema.commit(db):
        row = await _bootstrap_admin_key.one(db, *shown) or await _bootstrap_admin_key.one(db, *shown)
    assert row is not None, "a row that another request has just inserted is found the second time"
    return AdminKey(row.id, row.entity_name, frozenset(PERMISSIONS), is_bootstrap=True)


async def _partner_key(db: sql.Connection, token: str) -> AdminKey | None:
    row = await _admin_key_by_hash.one(db, tokens.hash_of(token))
    if row is None:
        return None
    if row.use_is_due:
        async with schema.commit(db):
            await _touch_admin_key.run(db, row.id)
    return AdminKey(row.id, row.entity_name, frozenset(row.permissions), is_bootstrap=False)


def _barred(by: Literal["ip", "scope", "network"], use: KeyUse) -> Refusal:
    match by:
        case "ip":
            return errors.ip_address_not_allowed()
        case "scope":
            return errors.scope_not_covered(use.scope)
        case "network":
            return network_mismatch()


def _refusal(key: str, reason: str, refusal: Refusal) -> Refusal:
    """Count the refusal and return it."""
    _refused_for[key, reason].inc()
    return refusal
