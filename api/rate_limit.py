"""Rate limit and quota of a credential: while Valkey works, no window of 60 seconds admits more than the limit.

`SharedLimits` counts the admissions of all processes in Valkey, which caches API keys in the same round trip.
`LocalLimits` holds the admissions of this process: it counts while Valkey is unreachable, and restores Valkey's counts
after a loss of data (docs/decisions/0021-limits-over-outages.md).
"""

import asyncio
import hashlib
import math
import secrets
import time
from collections import Counter, deque
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple
from uuid import UUID

import msgspec
import structlog
from redis.exceptions import NoScriptError, RedisError

from api import clock
from api.restrictions import GRANTED_ONLY, Call, Restrictions
from api.valkey import ValkeyClient, packed
from shared import lifecycle

log = structlog.get_logger()

LEASE_S = 5
"""How long Valkey may cache a key, measured from before the query to Postgres."""

FENCE_S = 60
"""How long after a change a key is read only from Postgres. Longer than the commit and LEASE_S together."""

BEAT_EVERY_S = 0.25
"""The interval of heartbeats."""

HOLD_S = 2.0
"""How long requests wait for other processes to report admissions before each process grants only its share."""

_MINUTE_S = 60
_BEAT_AGAIN_S = 0.05, 0.5  # while requests wait, and after that
_MOST_REPORTED = 2_000  # admissions in one command
_SCRIPT = Path(__file__).with_suffix(".lua").read_text()
_BEAT, _TELL = (Path(__file__).with_name(f"rate_limit_{name}.lua").read_text() for name in ("beat", "tell"))
_KEY, _MINUTES, _QUOTAS = b"ledgerline:key:%b", b"ledgerline:minute:%b:", b"ledgerline:quota:"
_LIFE, _BEATS = b"ledgerline:limits", b"ledgerline:beats"
_REMEMBERED = 4_096
_ANY = Call()  # of a key without restrictions


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


class QuotaLeft(msgspec.Struct, frozen=True):
    """The rest of a quota, and the seconds until there is more: until the next period begins, but at most _MINUTE_S
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
            "RateLimit-Policy": f'"minute";q={self.limit};w={_MINUTE_S}',
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
    """A restriction of the key bars the request, which is not counted."""

    by: Literal["ip", "scope"]


class AskPostgres(msgspec.Struct, frozen=True):
    """The key must be read from Postgres: Valkey has not cached it, or some processes have not reported to it yet.

    Postgres' answer may be cached in this `life` of Valkey's data until `until_us` on Valkey's clock. While processes
    have not reported, `until_us` is 0: the answer must not be cached.
    """

    until_us: int
    life: bytes


class KeyLease(msgspec.Struct, frozen=True):
    """A valid key, and until when Valkey may cache it in a life of its data (AskPostgres); not at all by default.

    NOTE: the next life must not use this lease: that life may lack the fence of a key that was changed after this read.
    """

    key: GoodKey
    until_us: int = 0
    life: bytes = b""


class _Admissions(msgspec.Struct, frozen=True):
    """Admissions to report to Valkey: their times by credential, on the monotonic clock."""

    number: int
    moments: dict[UUID, list[float]]


class SharedLimits:
    """The sliding minutes of all processes together, by Valkey's clock.

    Valkey's data have a life, named `<data>.<number>`. It ends when Valkey loses its data, starts or fails over, which
    changes `<data>`, and after an outage that its data survive, which changes the number. A process takes part in a
    life once it has reported its admissions of the last minute. Requests wait until all processes have reported.

    Methods raise the errors of `ValkeyClient`. If `take` or a heartbeat raises one, `away` is true until a heartbeat
    succeeds.
    """

    def __init__(self, valkey: ValkeyClient) -> None:
        self._valkey = valkey
        self.own = LocalLimits()
        self.away = False
        self.processes = 1  # that share a limit, including this one
        self._process = secrets.token_hex(8).encode()
        self._peers: Sequence[bytes] = ()  # processes with a heartbeat in the last minute, as Valkey last said
        self._life = b""  # to which this process has reported all it had to; empty after a new one has begun
        self._data = b""  # the data that the batches in _owed are for
        self._first_minute_ends_at = 0.0  # of the life, on the monotonic clock
        self._owed: deque[_Admissions] = deque()
        self._batches = 0
        self._all_reported = False  # all processes have reported to this life
        self._held_since = 0.0
        self._reporting: asyncio.Task[None] | None = None
        self._reviving = asyncio.Lock()
        self._take_script = _LuaScript(_SCRIPT)
        self._beat_script = _LuaScript(_BEAT)
        self._tell_script = _LuaScript(_TELL)

    async def take(
        self, key_hash: bytes, lease: KeyLease | None = None, call: Call = _ANY
    ) -> Verdict | Barred | AskPostgres:
        """Count one request, unless a restriction bars it.

        Without `lease`, a request of a key that is not cached is not counted: on AskPostgres, repeat the call with a
        lease. Valkey then caches the key for the next requests, unless it is fenced or `until_us` has passed.
        """
        try:
            while True:
                if not self._all_reported or self.own.unreported:
                    await self._wait_for_reports()
                    if not self._all_reported:
                        if lease is None:
                            return AskPostgres(0, self._life)
                        barred = lease.key.restrictions.bars(call)
                        if barred is not None:
                            return Barred(barred)
                        own = self.own.count(lease.key.credential_id)
                        if not self._life or own >= self.share(lease.key.limit):
                            return self._refused(lease.key)
                life = self._life
                answer = await self._run(self._take_script, self._counting(key_hash, lease, call))
                if answer != b"tell":
                    return self._parse_answer(answer, life)
                if life == self._life:
                    self._life = b""
                    self._hold()
        except (RedisError, OSError):
            self.away = True
            raise

    def take_alone(self, good: GoodKey, call: Call = _ANY) -> Verdict | Barred:
        """Count one request while Valkey is unreachable, against this process' shares of the limit and remaining
        quota."""
        barred = good.restrictions.bars(call)
        return self.own.take(good, self.share(good.limit), self.processes) if barred is None else Barred(barred)

    def share(self, limit: int) -> int:
        """This process' share of a limit."""
        return max(limit // self.processes, 1)

    async def fence(self, key_hashes: Sequence[bytes]) -> None:
        """Forget these keys and do not cache them for FENCE_S: they are looked up in Postgres instead."""
        for_s = str(FENCE_S).encode()
        await self._valkey.ask_all(
            packed(b"SET", _KEY % key_hash.hex().encode(), b"fence", b"EX", for_s) for key_hash in key_hashes
        )

    async def beat(self) -> None:
        """Until cancelled, send heartbeats, and report this process' admissions to each new life of Valkey's data."""
        try:
            while True:
                try:
                    life, _ = await self._heartbeat()
                    if self.away or life != self._life or not self._all_reported or self.own.unreported:
                        await self._wait_for_reports()
                except (RedisError, OSError):
                    self.away = True
                await asyncio.sleep(BEAT_EVERY_S)
        finally:
            if self._reporting is not None:
                self._reporting.cancel()

    def _hold(self) -> None:
        """Begin to wait for the reports of all processes, unless that has begun."""
        if self._all_reported or not self._held_since:
            self._all_reported, self._held_since = False, time.monotonic()

    async def _wait_for_reports(self) -> None:
        """Wait until all processes have reported to this life, but at most HOLD_S from the first wait."""
        self._hold()
        if self._reporting is None or self._reporting.done():
            self._reporting = asyncio.create_task(self._report())
            self._reporting.add_done_callback(lifecycle.consume_error)
        patience_s = max(self._held_since + HOLD_S - time.monotonic(), 0)
        done, _ = await asyncio.wait((self._reporting,), timeout=patience_s)
        for reporting in done:
            reporting.result()

    async def _report(self) -> None:
        """Report to this life, and wait until all other processes have, or until it is a minute old."""
        while True:
            life, is_open = await self._heartbeat()
            # NOTE: no await from here until the batches are made, so that they contain all admissions without Valkey.
            self.away = False
            data, before, unreported = life.rpartition(b".")[0], self._life, self.own.take_unreported()
            if data != self._data:
                self._owed.clear()
            self._owe(unreported if data == self._data else self.own.all())
            self._data = data
            if life != before or self._owed:
                self._life = b""
                if await self._reported_all(life):
                    self._life = life
            elif is_open:
                self._all_reported, self._held_since = True, 0.0
                return
            else:
                waited_s = time.monotonic() - self._held_since
                await asyncio.sleep(_BEAT_AGAIN_S[waited_s > HOLD_S])

    async def _heartbeat(self) -> tuple[bytes, bool]:
        """Send one heartbeat. Returns the life of Valkey's data, and whether all processes have reported to it."""
        words = (
            self._process,
            secrets.token_hex(8).encode(),
            self._life,
            b"1" if self.own.unreported else b"0",
            self._data,
        )
        reply = await self._run(self._beat_script, self._beat_script.call((_LIFE, _BEATS), (*words, *self._peers)))
        life, is_open, processes, left_us, *peers = reply
        # NOTE: in a new life the known processes count until they have had time to send a heartbeat.
        self.processes = processes if is_open else max(processes, self.processes)
        self._peers = peers if is_open else list({*peers, *self._peers})
        self._first_minute_ends_at = time.monotonic() + left_us / 1e6
        return life, bool(is_open)

    def _owe(self, admissions: Sequence[tuple[UUID, float]]) -> None:
        """Make batches to report. A batch keeps its number, so that Valkey recognises a repetition."""
        for first in range(0, len(admissions), _MOST_REPORTED):
            moments: dict[UUID, list[float]] = {}
            for credential_id, moment in admissions[first : first + _MOST_REPORTED]:
                moments.setdefault(credential_id, []).append(moment)
            self._batches += 1
            self._owed.append(_Admissions(self._batches, moments))

    async def _reported_all(self, life: bytes) -> bool:
        """Report all batches to a life; False if it has ended."""
        while True:
            batch = self._owed[0] if self._owed else _Admissions(self._batches, {})
            last = len(self._owed) < 2
            now_s = time.monotonic()
            minutes = [_minutes(life) + str(credential_id).encode() for credential_id in batch.moments]
            ages = [
                " ".join(str(int((now_s - moment) * 1e6)) for moment in moments if now_s - moment < _MINUTE_S).encode()
                for moments in batch.moments.values()
            ]
            words = (life, self._process, str(batch.number).encode(), b"1" if last else b"0", *ages)
            if not await self._run(self._tell_script, self._tell_script.call((_LIFE, *minutes), words)):
                return False
            if self._owed:
                self._owed.popleft()
            if last:
                return True

    def _counting(self, key_hash: bytes, lease: KeyLease | None, call: Call) -> bytes:
        """The packed call of rate_limit.lua for one request."""
        if lease is None:
            return _counting_call_cached(self._take_script, key_hash, self._life, call)
        until_us = lease.until_us if lease.life == self._life else 0
        used = 0 if lease.key.quota is None else lease.key.quota.used
        return _counting_call(self._take_script, key_hash, self._life, call, _show_key(lease.key), until_us, used)

    def _parse_answer(self, answer: bytes, life: bytes) -> Verdict | Barred | AskPostgres:
        word, *figures = answer.split(b" ", 6)
        if word == b"ask":
            return AskPostgres(int(figures[0]) + LEASE_S * 1_000_000, life)
        if not figures:
            return Barred("ip" if word == b"ip" else "scope")
        limit, remaining, reset_us, quota_left, quota_ends_in, whose = figures
        credential_id, network_id = _parse_owner(whose)
        admitted = word == b"admitted"
        if admitted:
            self.own.note(credential_id)
        self.own.see(credential_id, int(remaining))
        return Verdict(
            credential_id,
            network_id,
            admitted,
            int(limit),
            int(remaining),
            _seconds(reset_us),
            word == b"quota_exceeded",
            None if quota_left == b"-" else QuotaLeft(int(quota_left), _seconds(quota_ends_in)),
        )

    def _refused(self, key: GoodKey) -> Verdict:
        """The refusal in a life's first minute, if a process that has not reported may have used the whole limit."""
        reset_s = max(math.ceil(self._first_minute_ends_at - time.monotonic()), 1)
        return Verdict(key.credential_id, key.network_id, False, key.limit, 0, reset_s)

    async def _run(self, script: "_LuaScript", call: bytes) -> Any:
        """The reply to a packed call of a script."""
        try:
            return await self._valkey.ask(call)
        except NoScriptError:
            await self._revive(script)
        return await self._valkey.ask(call)

    async def _revive(self, missed: "_LuaScript") -> None:
        """Begin a new life of Valkey's data.

        NOTE: scripts are neither persisted nor replicated, so a server without them has just started or taken over,
        perhaps with data from before a revocation. Its data are voided before a script can read them.
        """
        async with self._reviving:
            (known,) = await self._valkey.ask(packed(b"SCRIPT", b"EXISTS", missed.id))
            if known:
                return
            log.info("limits.new_life", reason="Valkey has started or failed over")
            await self._valkey.ask(packed(b"DEL", _LIFE))
            for script in (self._tell_script, self._beat_script, self._take_script):
                await self._valkey.ask(packed(b"SCRIPT", b"LOAD", script.text))


class _LuaScript:
    """A Lua script and its id in Valkey."""

    def __init__(self, text: str) -> None:
        self.text = text.encode()
        self.id = hashlib.sha1(self.text, usedforsecurity=False).hexdigest().encode()

    def call(self, keys: Sequence[bytes], arguments: Sequence[bytes]) -> bytes:
        """The packed command that runs the script."""
        return packed(b"EVALSHA", self.id, str(len(keys)).encode(), *keys, *arguments)


def _counting_call(
    script: _LuaScript, key_hash: bytes, life: bytes, call: Call, shown: bytes = b"", until_us: int = 0, used: int = 0
) -> bytes:
    """The packed call of rate_limit.lua, whose header explains the last three arguments."""
    keys = (_KEY % key_hash.hex().encode(), _minutes(life), _LIFE, _QUOTAS)
    named = b"1" if call.scope in GRANTED_ONLY else b"0"
    asked = (call.scope.encode(), call.ip_bits.encode(), named)
    return script.call(keys, (shown, str(until_us).encode(), life, *asked, str(used).encode()))


_counting_call_cached = lru_cache(_REMEMBERED)(_counting_call)
"""For cached keys: requests of a key from one address, to the routes of one scope, have the same call."""


@lru_cache(2)
def _minutes(life: bytes) -> bytes:
    """The prefix of the keys of the lists of admissions. If Valkey loses its data, the new data have another prefix."""
    return _MINUTES % life.rpartition(b".")[0]


def _seconds(microseconds: bytes) -> int:
    """Rounded up."""
    return -(-int(microseconds) // 1_000_000)


@lru_cache(_REMEMBERED)
def _parse_owner(text: bytes) -> tuple[UUID, int]:
    """`<credential_id> <network_id>`."""
    credential_id, network_id = text.split(b" ")
    return UUID(credential_id.decode()), int(network_id)


def _show_key(key: GoodKey) -> bytes:
    """The key as rate_limit.lua caches it."""
    expires_us = 0 if key.expires_at is None else _us(key.expires_at)
    shown = f"{key.limit} {expires_us} {key.credential_id} {key.network_id}"
    quota, restrictions = key.quota, key.restrictions
    if quota is not None or restrictions.networks or restrictions.scopes:
        period = "- - -" if quota is None else f"{quota.requests} {quota.per}:{quota.since:%Y%m%d} {_us(quota.until)}"
        shown += f" {period} {_show_list(restrictions.scopes)} {_show_list(restrictions.networks)}"
    return shown.encode()


def _seconds_until(moment: datetime) -> int:
    return max(math.ceil((moment - clock.now()).total_seconds()), 1)


def _us(moment: datetime) -> int:
    return math.floor(moment.timestamp() * 1_000_000)


def _show_list(words: Sequence[str]) -> str:
    return f",{','.join(words)}," if words else "-"


class _View(NamedTuple):
    """What Valkey said last of a key's minute: how many admissions were left, and how many were this process' own."""

    at_s: float
    left: int
    own: int


class LocalLimits:
    """The sliding minutes of this process, with and without Valkey, on its monotonic clock."""

    def __init__(self) -> None:
        self._admissions: dict[UUID, deque[float]] = {}
        self._views: dict[UUID, _View] = {}
        self.unreported: list[tuple[UUID, float]] = []
        self._of_quotas: Counter[tuple[UUID, datetime]] = Counter()  # admitted without Valkey, by period
        self._swept_at = 0.0

    def take(self, good: GoodKey, share: int, processes: int = 1, now_s: float | None = None) -> Verdict:
        """Count one request without Valkey: against `share` of the limit, and against the rest of the quota according
        to the usage tables, divided by `processes`.
        """
        now_s = time.monotonic() if now_s is None else now_s
        share = self._share_left(good.credential_id, share, processes, now_s)
        admissions = self._minute_of(good.credential_id, now_s)
        left = self._left_of(good, processes)
        quota_exceeded = left is not None and not left.remaining
        admitted = len(admissions) < share and not quota_exceeded
        if admitted:
            admissions.append(now_s)
            self.unreported.append((good.credential_id, now_s))
            if good.quota is not None:
                self._of_quotas[good.credential_id, good.quota.since] += 1
                left = self._left_of(good, processes)
        first_to_leave = admissions[max(len(admissions) - max(share, 1), 0)] if admissions else now_s
        return Verdict(
            credential_id=good.credential_id,
            network_id=good.network_id,
            admitted=admitted,
            limit=good.limit,
            remaining=max(share - len(admissions), 0),
            reset_s=math.ceil(first_to_leave + _MINUTE_S - now_s),
            quota_exceeded=quota_exceeded,
            quota=left,
        )

    def note(self, credential_id: UUID, now_s: float | None = None) -> None:
        """Remember a request that Valkey has admitted, in case Valkey loses its data."""
        now_s = time.monotonic() if now_s is None else now_s
        self._minute_of(credential_id, now_s).append(now_s)

    def see(self, credential_id: UUID, left: int, now_s: float | None = None) -> None:
        """Remember what is left of a key's minute of all processes, as Valkey has just said."""
        now_s = time.monotonic() if now_s is None else now_s
        self._views[credential_id] = _View(now_s, left, self.count(credential_id, now_s))

    def count(self, credential_id: UUID, now_s: float | None = None) -> int:
        """How many requests of the last minute this process has admitted."""
        return len(self._minute_of(credential_id, time.monotonic() if now_s is None else now_s))

    def all(self) -> list[tuple[UUID, float]]:
        """All admissions of the last minute, and some older ones: the credential and the time."""
        return [(credential_id, moment) for credential_id, moments in self._admissions.items() for moment in moments]

    def take_unreported(self) -> list[tuple[UUID, float]]:
        """The admissions without Valkey since the last call. Their use of quotas reaches Valkey via the usage table."""
        unreported, self.unreported = self.unreported, []
        self._of_quotas.clear()
        return unreported

    def _share_left(self, credential_id: UUID, share: int, processes: int, now_s: float) -> int:
        """This process' share of a limit. In the first minute of an outage, others may have taken more than theirs."""
        view = self._views.get(credential_id)
        if view is None or now_s - view.at_s >= _MINUTE_S:
            return share
        return min(share, view.own + -(-view.left // processes))

    def _left_of(self, good: GoodKey, processes: int) -> QuotaLeft | None:
        """The rest of a quota that this process may admit without Valkey."""
        if good.quota is None:
            return None
        together = max(good.quota.requests - good.quota.used, 0)
        own = self._of_quotas[good.credential_id, good.quota.since]
        reset_s = _seconds_until(good.quota.until)
        if own < together:  # what others leave of their shares may be admitted here once Valkey is back
            reset_s = min(reset_s, _MINUTE_S)
        return QuotaLeft(max(together // processes - own, 0), reset_s)

    def _minute_of(self, credential_id: UUID, now_s: float) -> deque[float]:
        self._sweep(now_s)
        admissions = self._admissions.get(credential_id)
        if admissions is None:
            admissions = self._admissions[credential_id] = deque()
        while admissions and now_s - admissions[0] >= _MINUTE_S:
            admissions.popleft()
        return admissions

    def _sweep(self, now_s: float) -> None:
        """Once a minute, forget older admissions."""
        if now_s - self._swept_at > _MINUTE_S:
            self._swept_at = now_s
            self._admissions = {
                credential_id: admissions
                for credential_id, admissions in self._admissions.items()
                if admissions and now_s - admissions[-1] <= _MINUTE_S
            }
            self._views = {
                credential_id: view for credential_id, view in self._views.items() if now_s - view.at_s < _MINUTE_S
            }
            self.unreported = [
                (credential_id, moment) for credential_id, moment in self.unreported if now_s - moment <= _MINUTE_S
            ]
