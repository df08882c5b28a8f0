"""The sliding minute: no 60 seconds in a row admit more requests of a key than its limit.

`SharedMinutes` counts in Valkey for all processes together, and there, in the same round trip, keeps what Postgres said
of the key. `LocalMinutes` has what this process has admitted: it counts while Valkey is away, and once that is
back, which knows nothing of these requests, for as long as they matter.
"""

import hashlib
import math
import secrets
import time
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from uuid import UUID

import msgspec
from redis.exceptions import NoScriptError

from api.valkey import Valkey, packed

LEASE_S = 5
"""How long Valkey may keep what Postgres said of a key, counted from before Postgres was asked."""

FENCE_S = 60
"""How long a withdrawn key is asked for in Postgres only: longer than its commit plus LEASE_S can take."""

_MINUTE_S = 60
_SCRIPT = Path(__file__).with_suffix(".lua").read_text()
_KEY, _MINUTE, _LIFE = b"ledgerline:key:%b", b"ledgerline:minute:%b", b"ledgerline:life"
_REMEMBERED = 4_096


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
    """The minutes of all processes together, by Valkey's clock. Every method raises what `Valkey` raises."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._life = secrets.token_hex(8).encode()  # for a server whose data were flushed
        self._script_id = hashlib.sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest().encode()

    async def take(self, key_hash: bytes, told: Told | None = None) -> Taken | AskPostgres:
        """Count one request.

        Without `told`, a key that Valkey does not know is not counted: AskPostgres, and come again. With `told`, Valkey
        keeps that for the next requests, unless the key is fenced or `until_us` is over.
        """
        verdict, *figures = (await self._run(self._command(key_hash, told))).split(b" ", 4)
        if verdict == b"ask":
            return AskPostgres(int(figures[0]) + LEASE_S * 1_000_000)
        limit, remaining, reset_us, whose = figures
        credential_id, network_id = _read_whose(whose)
        return Taken(
            credential_id,
            network_id,
            verdict == b"admitted",
            int(limit),
            int(remaining),
            -(-int(reset_us) // 1_000_000),
        )

    async def fence(self, key_hashes: Sequence[bytes]) -> None:
        """Forget these keys, and keep nothing about them for FENCE_S: whoever asks is sent to Postgres."""
        for_s = str(FENCE_S).encode()
        await self._valkey.ask_all(
            packed(b"SET", _KEY % key_hash.hex().encode(), b"fence", b"EX", for_s) for key_hash in key_hashes
        )

    def _command(self, key_hash: bytes, told: Told | None) -> bytes:
        name = key_hash.hex().encode()
        shown, until_us = (b"", b"0") if told is None else (_shown(told.key), str(told.until_us).encode())
        keys = (_KEY % name, _MINUTE % name, _LIFE)
        return packed(b"EVALSHA", self._script_id, b"3", *keys, shown, until_us, self._life)

    async def _run(self, command: bytes) -> bytes:
        try:
            reply: bytes = await self._valkey.ask(command)
        except NoScriptError:
            # NOTE: this server has just started or taken over, perhaps with data from before a revocation: scripts are
            # neither persisted nor replicated. A new life, begun before the script can run, ends all of it.
            await self._valkey.ask(packed(b"SET", _LIFE, secrets.token_hex(8).encode()))
            await self._valkey.ask(packed(b"SCRIPT", b"LOAD", _SCRIPT.encode()))
            reply = await self._valkey.ask(command)
        return reply


@lru_cache(_REMEMBERED)
def _read_whose(text: bytes) -> tuple[UUID, int]:
    """`<credential_id> <network_id>`."""
    credential_id, network_id = text.split(b" ")
    return UUID(credential_id.decode()), int(network_id)


def _shown(key: GoodKey) -> bytes:
    expires_us = 0 if key.expires_at is None else math.floor(key.expires_at.timestamp() * 1_000_000)
    return f"{key.limit} {expires_us} {key.credential_id} {key.network_id}".encode()


class LocalMinutes:
    """The minutes of what this process has admitted, with Valkey or without, on its monotonic clock."""

    def __init__(self) -> None:
        self._admissions: dict[bytes, deque[float]] = {}
        # When the last one was that Valkey knows nothing of, and the limit.
        self._alone: dict[bytes, tuple[float, int]] = {}
        self._swept_at = 0.0

    def is_full(self, key_hash: bytes, now_s: float | None = None) -> bool:
        """Whether Valkey need not be asked: it does not know all of as many admissions as the key may have."""
        if key_hash not in self._alone:
            return False
        now_s = time.monotonic() if now_s is None else now_s
        last_s, limit = self._alone[key_hash]
        return now_s - last_s < _MINUTE_S and len(self._minute_of(key_hash, now_s)) >= limit

    def take(self, key_hash: bytes, good: GoodKey, now_s: float | None = None) -> Taken:
        """Count one request that Valkey is not told of."""
        now_s = time.monotonic() if now_s is None else now_s
        admissions = self._minute_of(key_hash, now_s)
        admitted = len(admissions) < good.limit
        if admitted:
            admissions.append(now_s)
            self._alone[key_hash] = now_s, good.limit
        return Taken(
            credential_id=good.credential_id,
            network_id=good.network_id,
            admitted=admitted,
            limit=good.limit,
            remaining=max(good.limit - len(admissions), 0),
            reset_s=math.ceil(admissions[0] + _MINUTE_S - now_s),
        )

    def note(self, key_hash: bytes, now_s: float | None = None) -> None:
        """Remember one request that Valkey has admitted, should it be gone at the next."""
        now_s = time.monotonic() if now_s is None else now_s
        self._minute_of(key_hash, now_s).append(now_s)

    def _minute_of(self, key_hash: bytes, now_s: float) -> deque[float]:
        self._sweep(now_s)
        admissions = self._admissions.get(key_hash)
        if admissions is None:
            admissions = self._admissions[key_hash] = deque()
        while admissions and now_s - admissions[0] >= _MINUTE_S:
            admissions.popleft()
        return admissions

    def _sweep(self, now_s: float) -> None:
        """Once a minute, forget the keys that were not used in it."""
        if now_s - self._swept_at > _MINUTE_S:
            self._swept_at = now_s
            self._admissions = {
                key_hash: admissions
                for key_hash, admissions in self._admissions.items()
                if admissions and now_s - admissions[-1] <= _MINUTE_S
            }
            self._alone = {
                key_hash: (last_s, limit)
                for key_hash, (last_s, limit) in self._alone.items()
                if now_s - last_s <= _MINUTE_S
            }
