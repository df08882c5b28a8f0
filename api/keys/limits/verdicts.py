"""A key with its limits, and the outcomes of a request with it."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from api.keys.restrictions import KeyUse, Restrictions

MINUTE_S = 60
"""The sliding window in which a limit applies."""


class RunningQuota(msgspec.Struct, frozen=True):
    """The maximum number of requests of a credential per day or month (UTC), and the current period.

    `used` is the number of requests of the period in the usage table, which may lack the last seconds.
    """

    requests: int
    per: str
    since: datetime
    until: datetime
    used: int


class GoodKey(msgspec.Struct, frozen=True):
    """A valid API key, as read from Postgres."""

    credential_id: UUID
    network_id: int
    limit: int
    expires_at: datetime | None
    quota: RunningQuota | None = None
    restrictions: Restrictions = Restrictions()

    def bars(self, use: KeyUse) -> Literal["ip", "scope", "network"] | None:
        """What bars this use of the key: a restriction, or the name of another network; None if it is allowed."""
        barred = self.restrictions.bars(use)
        return "network" if barred is None and use.network_id not in (None, self.network_id) else barred


class KeyLease(msgspec.Struct, frozen=True):
    """A valid key, and until when Valkey may cache it in a life of its data (AskPostgres); not at all by default.

    NOTE: the next life must not use this lease: that life may lack the fence of a key that was changed after this read.
    """

    key: GoodKey
    until_us: int = 0
    life: bytes = b""


class QuotaLeft(msgspec.Struct, frozen=True):
    """The rest of a quota, and the seconds until there is more: until the next period begins, but at most MINUTE_S
    while a process only knows its own share.
    """

    remaining: int
    reset_s: int


class Verdict(msgspec.Struct, frozen=True):
    """The outcome of one request in its credential's sliding minute and quota.

    A request that is not admitted exceeds the quota if `quota_exceeded`, else the limit.
    """

    credential_id: UUID
    network_id: int
    admitted: bool
    limit: int
    remaining: int
    reset_s: int  # until the oldest admission leaves the minute; for a limited request: until it may be repeated
    quota_exceeded: bool = False
    quota: QuotaLeft | None = None

    def headers(self) -> dict[str, str]:
        """The headers of the answer: three of draft-ietf-httpapi-ratelimit-headers-03 and two of its version 10."""
        headers = {
            "RateLimit-Policy": f'"minute";q={self.limit};w={MINUTE_S}',
            "RateLimit": f'"minute";r={self.remaining};t={self.reset_s}',
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }
        if self.admitted:
            return headers
        wait_s = self.quota.reset_s if self.quota_exceeded and self.quota is not None else self.reset_s
        return headers | {"Retry-After": str(wait_s)}


class Barred(msgspec.Struct, frozen=True):
    """A restriction of the key, or the name of another network, bars the request, which is not counted."""

    by: Literal["ip", "scope", "network"]


class AskPostgres(msgspec.Struct, frozen=True):
    """The key must be read from Postgres: Valkey has not cached it, or some processes have not reported to it yet.

    Postgres' answer may be cached in this `life` of Valkey's data until `until_us` on Valkey's clock. While processes
    have not reported, `until_us` is 0: the answer must not be cached.
    """

    until_us: int
    life: bytes
