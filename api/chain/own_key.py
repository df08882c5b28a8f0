"""The endpoint at which an API key reads its own limits and restrictions."""

from uuid import UUID

import msgspec

from api import errors
from api.answers import Answer, Instant
from api.ask import KeyAsk, Nothing
from api.keys.caller import QuotaPeriod


class QuotaState(msgspec.Struct, frozen=True):
    """The maximum number of requests per day or month (UTC), how many remain, and when the next period begins."""

    requests: int
    per: QuotaPeriod
    remaining: int
    resets_at: Instant


class OwnKey(msgspec.Struct, frozen=True):
    """The network, limits and restrictions of the calling key.

    An empty `ip_networks` restricts nothing; an empty `scopes` allows all but `submit`. `remaining` is the number of
    requests left in its minute after this one. `expires_at` is the end of this key, even if a rotation has set it.
    """

    credential_id: UUID
    network_id: int
    rate_limit_per_minute: int
    remaining: int
    quota: QuotaState | None
    expires_at: Instant | None
    ip_networks: list[str]
    scopes: list[str]


async def get_own_key(ask: KeyAsk[Nothing]) -> Answer[OwnKey]:
    """Read the network, limits, expiry and restrictions of the API key of this request.

    The request is counted like any other. Every key may make it, whatever its scopes.
    """
    key = await ask.services.callers.read_key(ask.key_hash)
    if key is None:
        raise errors.invalid_api_key()
    quota = None
    if key.quota_requests is not None and key.quota_per is not None:
        left = max(key.quota_requests - key.quota_used, 0) if ask.verdict.quota is None else ask.verdict.quota.remaining
        quota = QuotaState(key.quota_requests, key.quota_per, left, key.quota_until)
    own = OwnKey(
        credential_id=key.credential_id,
        network_id=key.network_id,
        rate_limit_per_minute=key.limit,
        remaining=ask.verdict.remaining,
        quota=quota,
        expires_at=key.expires_at,
        ip_networks=key.ip_networks,
        scopes=key.scopes,
    )
    return Answer(data=own)
