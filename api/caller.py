"""A bearer token becomes an ApiKey or an AdminKey, or a refusal.

Postgres is the truth. Valkey keeps what it said of an API key for a few seconds and never past a withdrawal:
docs/decisions/0004-no-key-outlives-its-revocation.md tells why that holds.
"""

import asyncio
import hmac
import ipaddress
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

import asyncpg
import msgspec
import structlog
from prometheus_client import Counter, Gauge
from redis.exceptions import RedisError

from api import errors, tokens
from api.errors import Refusal
from api.rate_limit import LEASE_S, AskPostgres, GoodKey, LocalMinutes, SharedMinutes, Taken, Told
from api.valkey import GIVEN_UP_AFTER_S, Valkey
from shared import network, sql
from shared.network import Network
from shared.settings import IPNetwork

log = structlog.get_logger()

PERMISSIONS = ("manage_users", "manage_credentials", "view_usage", "view_audit_logs")
BOOTSTRAP = "bootstrap"

_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*) *", re.IGNORECASE)  # RFC 6750, section 2.1
_VALKEY_AGAIN_S = 1.0

_refused = Counter("ledgerline_callers_refused", "Requests refused for their key, by its kind.", ("key", "reason"))
_limited = Counter("ledgerline_rate_limited", "Requests refused for their rate.")
_shared = Gauge(
    "ledgerline_rate_limits_shared",
    "1 while limits are counted in Valkey for all processes together, 0 while a process counts alone.",
    multiprocess_mode="livemin",
)


class ApiKey(msgspec.Struct, frozen=True):
    """Who asks for chain data, and of which chain."""

    credential_id: UUID
    network: Network


class Admission(msgspec.Struct, frozen=True):
    """An authenticated request with the headers its answer carries; `refusal` is set where its minute is full."""

    key: ApiKey
    headers: dict[str, str]
    refusal: Refusal | None


class AdminKey(msgspec.Struct, frozen=True):
    """Who administrates. The bootstrap key has every permission, and owns nothing."""

    id: UUID
    entity_name: str
    permissions: frozenset[str]
    is_bootstrap: bool


class _ApiKeyRow(msgspec.Struct, frozen=True):
    key_hash: bytes
    credential_id: UUID
    network_id: int
    limit: int
    expires_at: datetime | None
    revoked: bool
    expired: bool
    owner_status: str


class _AdminKeyRow(msgspec.Struct, frozen=True):
    key_hash: bytes
    id: UUID
    entity_name: str
    permissions: list[str]


class _IsPartners(msgspec.Struct, frozen=True):
    found: bool


class _BootstrapRow(msgspec.Struct, frozen=True):
    id: UUID
    entity_name: str


_api_key_by_hash = sql.query("api_key_by_hash", _ApiKeyRow)
_admin_key_by_hash = sql.query("admin_key_by_hash", _AdminKeyRow)
_is_partners = sql.query("is_partners", _IsPartners)
_touch_admin_key = sql.command("touch_admin_key")
_bootstrap_admin_key = sql.query("bootstrap_admin_key", _BootstrapRow)


class Callers:
    """Everybody who may call. One per process."""

    def __init__(self, partner: asyncpg.Pool, valkey: Valkey, bootstrap_admin_key: str | None) -> None:
        self._partner = partner
        self._minutes = SharedMinutes(valkey)
        self._local_minutes = LocalMinutes()
        self._valkey_away_until = 0.0
        self._bootstrap_hash = None if bootstrap_admin_key is None else tokens.hash_of(bootstrap_admin_key)
        _shared.set(1)

    @property
    def limits_are_shared(self) -> bool:
        """Whether Valkey counted the last request; if not, this process limits alone, for a second at least."""
        return self._valkey_away_until == 0.0

    async def api_key(self, authorization: Sequence[str]) -> Admission:
        """Authenticate and count one chain request, given every Authorization header of it. Raises Refusal (401, 403).

        One round trip to Valkey where it knows the key, else a look into Postgres between two.
        """
        token = _bearer(authorization)
        if token is None:
            raise _refusal("api", "missing", errors.missing_api_key())
        taken = await self._take(tokens.hash_of(token)) if tokens.is_api_key(token) else None
        if taken is None:
            raise _refusal("api", "invalid", errors.invalid_api_key())
        if not taken.admitted:
            _limited.inc()
        return Admission(
            key=ApiKey(taken.credential_id, network.by_id[taken.network_id]),
            headers=taken.headers(),
            refusal=None if taken.admitted else errors.rate_limit_exceeded(),
        )

    async def admin_key(self, authorization: Sequence[str], needs: str) -> AdminKey:
        """Authenticate an admin request that needs a permission or, for BOOTSTRAP, that key. Raises Refusal."""
        token = _bearer(authorization)
        if token is None:
            raise _refusal("admin", "missing", errors.missing_admin_key())
        async with self._partner.acquire() as db:
            key = await (_bootstrap_key if self._is_bootstrap(token) else _partner_key)(db, token)
        if key is None:
            raise _refusal("admin", "invalid", errors.invalid_admin_key())
        if not (key.is_bootstrap if needs == BOOTSTRAP else needs in key.permissions):
            raise _refusal("admin", "permission", errors.permission_denied(needs))
        return key

    @asynccontextmanager
    async def withdrawing(self) -> AsyncIterator["Withdrawal"]:
        """Around a commit that ends API keys: when this is left, no process admits them any more.

        Name the keys inside the commit. Valkey is told before it, for the case that this process does not survive it,
        and after it; where Valkey can't be told, what it may have kept is waited out.
        """
        withdrawal = Withdrawal(self._fence)
        yield withdrawal
        if not await self._fence(withdrawal.key_hashes):
            log.warning("keys.waiting_for_leases", keys=len(withdrawal.key_hashes), wait_s=LEASE_S)
            await asyncio.sleep(LEASE_S)

    async def _take(self, key_hash: bytes) -> Taken | None:
        """Count one request. None: no key has this hash. Raises Refusal where it has expired or its owner is out."""
        known = None if self._local_minutes.is_full(key_hash) else await self._counted(key_hash)
        if isinstance(known, Taken):
            return self._noted(key_hash, known)
        async with self._partner.acquire() as db:
            row = await _api_key_by_hash.one(db, key_hash)
        if row is None or not hmac.compare_digest(row.key_hash, key_hash) or row.revoked:
            return None
        if row.expired:
            raise _refusal("api", "expired", errors.expired_api_key())
        if row.owner_status != "active":
            raise _refusal("api", "inactive", errors.inactive_account())
        good = GoodKey(row.credential_id, row.network_id, row.limit, row.expires_at)
        taken = None if known is None else await self._counted(key_hash, Told(good, known.until_us))
        return self._noted(key_hash, taken) if isinstance(taken, Taken) else self._local_minutes.take(key_hash, good)

    def _noted(self, key_hash: bytes, shared: Taken) -> Taken:
        if shared.admitted:
            self._local_minutes.note(key_hash)
        return shared

    async def _counted(self, key_hash: bytes, told: Told | None = None) -> Taken | AskPostgres | None:
        """What Valkey answers to one request of a key; None while it is away."""
        now = time.monotonic()
        if self._valkey_away_until > now:
            return None
        if self._valkey_away_until:
            self._valkey_away_until = now + GIVEN_UP_AFTER_S  # one request finds out whether it is back, no other waits
        try:
            answer = await self._minutes.take(key_hash, told)
        except (RedisError, OSError) as cause:
            self._valkey_away_until = time.monotonic() + _VALKEY_AGAIN_S
            _shared.set(0)
            log.warning("valkey.away", limits="per process", cause=f"{type(cause).__name__}: {cause}")
            return None
        if self._valkey_away_until:
            self._valkey_away_until = 0.0
            _shared.set(1)
            log.info("valkey.back", limits="shared")
        return answer

    async def _fence(self, key_hashes: Sequence[bytes]) -> bool:
        """Make Valkey forget keys; False where it can't be told."""
        try:
            await self._minutes.fence(key_hashes)
        except (RedisError, OSError) as cause:
            log.warning("keys.not_fenced", keys=len(key_hashes), cause=f"{type(cause).__name__}: {cause}")
            return False
        return True

    def _is_bootstrap(self, token: str) -> bool:
        return self._bootstrap_hash is not None and hmac.compare_digest(tokens.hash_of(token), self._bootstrap_hash)


class Withdrawal:
    """The API keys that a commit is about to end."""

    def __init__(self, fence: Callable[[Sequence[bytes]], Awaitable[bool]]) -> None:
        self._fence = fence
        self.key_hashes: Sequence[bytes] = ()

    async def of(self, key_hashes: Sequence[bytes]) -> None:
        """Name them, by their hashes, inside the commit: from now on Postgres alone answers for them."""
        self.key_hashes = key_hashes
        await self._fence(key_hashes)


async def is_partners(db: sql.Connection, admin_key: str) -> bool:
    """Whether an admin key was issued to a partner, and so can't be the bootstrap key."""
    row = await _is_partners.one(db, tokens.hash_of(admin_key))
    return row is not None and row.found


def ip_address(peer: str | None, forwarded_for: Sequence[str], trusted: Sequence[IPNetwork]) -> str | None:
    """Where a request comes from: the nearest address that is no trusted proxy, read from the right.

    `forwarded_for` are its X-Forwarded-For headers, in order; what stands left of an untrusted address is hearsay.
    """
    hops = [hop.strip() for header in forwarded_for for hop in header.split(",")]
    address = _address(peer or "")
    while address is not None and hops and any(address in proxies for proxies in trusted):
        further = _address(hops.pop())
        if further is None:
            break
        address = further
    return None if address is None else str(address)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _bearer(authorization: Sequence[str]) -> str | None:
    """The token of the one Authorization header; None where it is missing, malformed or there are several."""
    found = _BEARER.fullmatch(authorization[0]) if len(authorization) == 1 else None
    return None if found is None else found[1]


async def _bootstrap_key(db: sql.Connection, token: str) -> AdminKey:
    row = await _bootstrap_admin_key.one(db, tokens.admin_prefix_of(token), tokens.hash_of(token), PERMISSIONS)
    assert row is not None, "an upsert returns its row"
    return AdminKey(row.id, row.entity_name, frozenset(PERMISSIONS), is_bootstrap=True)


async def _partner_key(db: sql.Connection, token: str) -> AdminKey | None:
    key_hash = tokens.hash_of(token)
    row = await _admin_key_by_hash.one(db, key_hash)
    if row is None or not hmac.compare_digest(row.key_hash, key_hash):
        return None
    await _touch_admin_key.run(db, row.id)
    return AdminKey(row.id, row.entity_name, frozenset(row.permissions), is_bootstrap=False)


def _refusal(key: str, reason: str, refusal: Refusal) -> Refusal:
    """The same refusal, counted."""
    _refused.labels(key, reason).inc()
    return refusal
