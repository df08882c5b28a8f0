"""The sliding minute: no 60 seconds in a row admit more requests of a key than its limit.

`SharedMinutes` counts in Valkey for all processes together, and there, in the same round trip, keeps what Postgres said
of the key. `LocalMinutes` counts for this process alone while Valkey is away.
"""

import hashlib
import math
import secrets
import time
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from uuid import UUID

import msgspec
import redis.asyncio
from redis.exceptions import NoScriptError

LEASE_S = 5
"""How long Valkey may keep what Postgres said of a key, counted from before Postgres was asked."""

FENCE_S = 60
"""How long a withdrawn key is asked for in Postgres only: longer than its commit plus LEASE_S can take."""

_MINUTE_S = 60
_SCRIPT = Path(__file__).with_suffix(".lua").read_text()
_PREFIX = "ledgerline"
_LIFE = f"{_PREFIX}:life"
_FENCED_AT_ONCE = 1_000


class GoodKey(msgspec.Struct, frozen=True):
    """What Postgres says of an API key that may be used."""

    credential_id: UUID
    network_id: int
    limit: int
    expires_at: datetime | None


class Taken(msgspec.Struct, frozen=True):
    """The answer of a key's sliding minute to one request."""

    credential_id: UUID
    network_id: int
    admitted: bool
    limit: int
    remaining: int
    reset_s: int  # until the oldest admission leaves the minute; of a refused request: until it may come again

    def headers(self) -> dict[str, str]:
        """As the answer tells it; draft-ietf-httpapi-ratelimit-headers-03."""
        told = {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }
        return told if self.admitted else told | {"Retry-After": str(self.reset_s)}


class AskPostgres(msgspec.Struct, frozen=True):
    """Valkey does not know the key; what Postgres says may be kept until `until_us` on Valkey's clock."""

    until_us: int


class Told(msgspec.Struct, frozen=True):
    """The answer to AskPostgres."""

    key: GoodKey
    until_us: int


class SharedMinutes:
    """The minutes of all processes together, by Valkey's clock. Every method raises what redis raises."""

    def __init__(self, valkey: redis.asyncio.Redis) -> None:
        self._valkey = valkey
        self._life = secrets.token_hex(8)  # for a server whose data were flushed
        self._script_id = hashlib.sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest()

    async def take(self, key_hash: bytes, told: Told | None = None) -> Taken | AskPostgres:
        """Count one request.

        Without `told`, a key that Valkey does not know is not counted: AskPostgres, and come again. With `told`, Valkey
        keeps that for the next requests, unless the key is fenced or `until_us` is over.
        """
        shown, until_us = ("", 0) if told is None else (_shown(told.key), told.until_us)
        verdict, *figures = (await self._run(key_hash, shown, until_us)).decode().split(" ")
        if verdict == "ask":
            return AskPostgres(int(figures[0]) + LEASE_S * 1_000_000)
        limit, remaining, reset_us, credential_id, network_id = figures
        return Taken(
            credential_id=UUID(credential_id),
            network_id=int(network_id),
            admitted=verdict == "admitted",
            limit=int(limit),
            remaining=int(remaining),
            reset_s=math.ceil(int(reset_us) / 1_000_000),
        )

    async def fence(self, key_hashes: Sequence[bytes]) -> None:
        """Forget these keys, and keep nothing about them for FENCE_S: whoever asks is sent to Postgres."""
        for start in range(0, len(key_hashes), _FENCED_AT_ONCE):
            async with self._valkey.pipeline(transaction=False) as pipeline:
                for key_hash in key_hashes[start : start + _FENCED_AT_ONCE]:
                    pipeline.set(f"{_PREFIX}:key:{key_hash.hex()}", "fence", ex=FENCE_S)
                await pipeline.execute()

    async def _run(self, key_hash: bytes, shown: str, until_us: int) -> bytes:
        name = key_hash.hex()
        given = (f"{_PREFIX}:key:{name}", f"{_PREFIX}:minute:{name}", _LIFE, shown, until_us, self._life)
        try:
            return await self._valkey.evalsha(self._script_id, 3, *given)  # type: ignore[no-any-return]
        except NoScriptError:
            # NOTE: this server has just started or taken over, perhaps with data from before a revocation: scripts are
            # neither persisted nor replicated. A new life, begun before the script can run, ends all of it.
            await self._valkey.set(_LIFE, secrets.token_hex(8))
            await self._valkey.script_load(_SCRIPT)
        return await self._valkey.evalsha(self._script_id, 3, *given)  # type: ignore[no-any-return]


def _shown(key: GoodKey) -> str:
    expires_us = 0 if key.expires_at is None else math.floor(key.expires_at.timestamp() * 1_000_000)
    return f"{key.limit} {expires_us} {key.credential_id} {key.network_id}"


class LocalMinutes:
    """The minutes of this process alone."""

    def __init__(self) -> None:
        self._admissions: dict[UUID, deque[float]] = {}
        self._swept_at = 0.0

    def take(self, good: GoodKey, now_s: float | None = None) -> Taken:
        """Count one request at `now_s` on this process' monotonic clock."""
        now_s = time.monotonic() if now_s is None else now_s
        self._sweep(now_s)
        admissions = self._admissions.setdefault(good.credential_id, deque())
        while admissions and now_s - admissions[0] >= _MINUTE_S:
            admissions.popleft()
        admitted = len(admissions) < good.limit
        if admitted:
            admissions.append(now_s)
        return Taken(
            credential_id=good.credential_id,
            network_id=good.network_id,
            admitted=admitted,
            limit=good.limit,
            remaining=good.limit - len(admissions),
            reset_s=math.ceil(admissions[0] + _MINUTE_S - now_s),
        )

    def _sweep(self, now_s: float) -> None:
        """Once a minute, forget the keys that were not used in it."""
        if now_s - self._swept_at > _MINUTE_S:
            self._swept_at = now_s
            self._admissions = {
                credential_id: admissions
                for credential_id, admissions in self._admissions.items()
                if now_s - admissions[-1] <= _MINUTE_S
            }
