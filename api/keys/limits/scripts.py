"""The Lua scripts in Valkey: their commands, and what their answers mean. Their headers explain keys and arguments."""

import hashlib
import math
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from uuid import UUID

from api.keys.limits.state import Participant, Report
from api.keys.limits.verdicts import AskPostgres, Barred, GoodKey, KeyLease, QuotaLeft, Verdict
from api.keys.restrictions import GRANTED_ONLY, KeyUse
from api.keys.valkey import packed

LEASE_S = 5
"""How long Valkey may cache a key, measured from before the query to Postgres."""

FENCE_S = 60
"""How long after a change a key is read only from Postgres. Longer than the commit and LEASE_S together."""

LIFE = b"ledgerline:limits"
"""The name of the life of Valkey's data."""

_KEY, _MINUTES, _QUOTAS = b"ledgerline:key:%b", b"ledgerline:minute:%b:", b"ledgerline:quota:"
_BEATS = b"ledgerline:beats"
_BARRED: Mapping[bytes, Barred] = {b"ip": Barred("ip"), b"scope": Barred("scope"), b"network": Barred("network")}
_REMEMBERED = 4_096


class Script:
    """A Lua script and its id in Valkey."""

    def __init__(self, text: str) -> None:
        self.text = text.encode()
        self.id = hashlib.sha1(self.text, usedforsecurity=False).hexdigest().encode()

    def command(self, keys: Sequence[bytes], arguments: Sequence[bytes]) -> bytes:
        """The packed command that runs the script."""
        return packed(b"EVALSHA", self.id, str(len(keys)).encode(), *keys, *arguments)


TAKE, BEAT, TELL = (Script(Path(__file__).with_name(f"{name}.lua").read_text()) for name in ("take", "beat", "tell"))


def take(key_hash: bytes, life: bytes, lease: KeyLease | None, use: KeyUse) -> bytes:
    """The packed command that counts one request."""
    if lease is None:
        return _take_cached(key_hash, life, use)
    until_us = lease.until_us if lease.life == life else 0
    used = 0 if lease.key.quota is None else lease.key.quota.used
    return _take(key_hash, life, use, _show_key(lease.key), until_us, used)


def _take(key_hash: bytes, life: bytes, use: KeyUse, shown: bytes = b"", until_us: int = 0, used: int = 0) -> bytes:
    keys = (_KEY % key_hash.hex().encode(), _minutes(life), LIFE, _QUOTAS)
    named = b"1" if use.scope in GRANTED_ONLY else b"0"
    asked = (use.scope.encode(), use.ip_bits.encode(), named)
    network_id = b"" if use.network_id is None else str(use.network_id).encode()
    return TAKE.command(keys, (shown, str(until_us).encode(), life, *asked, str(used).encode(), network_id))


_take_cached = lru_cache(_REMEMBERED)(_take)
"""For cached keys: requests of a key from one address, to the routes of one scope, have the same command."""


def parse_taken(answer: bytes, life: bytes) -> Verdict | Barred | AskPostgres | None:
    """The outcome of one request that was sent in a life; None if that has ended."""
    word, *figures = answer.split(b" ", 6)
    if word == b"ask":
        return AskPostgres(int(figures[0]) + LEASE_S * 1_000_000, life)
    if not figures:
        return _BARRED.get(word)
    limit, remaining, reset_us, quota_left, quota_ends_in, key = figures
    credential_id, network_id = _parse_key(key)
    return Verdict(
        credential_id,
        network_id,
        word == b"admitted",
        int(limit),
        int(remaining),
        _seconds(reset_us),
        word == b"quota_exceeded",
        None if quota_left == b"-" else QuotaLeft(int(quota_left), _seconds(quota_ends_in)),
    )


def beat(process: Participant) -> bytes:
    """The packed command of one heartbeat."""
    unreported = b"1" if process.own.unreported else b"0"
    words = (process.name, secrets.token_hex(8).encode(), process.life, unreported, process.data, *process.peers)
    return BEAT.command((LIFE, _BEATS), words)


def tell(process: bytes, report: Report) -> bytes:
    """The packed command of one report of a process. Its answer is 0 if the life has ended."""
    minutes = [_minutes(report.life) + str(credential_id).encode() for credential_id in report.ages_us]
    ages = [" ".join(map(str, ages_us)).encode() for ages_us in report.ages_us.values()]
    words = (report.life, process, str(report.number).encode(), b"1" if report.is_last else b"0", *ages)
    return TELL.command((LIFE, *minutes), words)


def fence(key_hash: bytes) -> bytes:
    """The packed command that makes Valkey forget a key, and not cache it for FENCE_S."""
    return packed(b"SET", _KEY % key_hash.hex().encode(), b"fence", b"EX", str(FENCE_S).encode())


@lru_cache(2)
def _minutes(life: bytes) -> bytes:
    """The prefix of the keys of the lists of admissions. If Valkey loses its data, the new data have another prefix."""
    return _MINUTES % life.rpartition(b".")[0]


def _seconds(microseconds: bytes) -> int:
    """Rounded up."""
    return -(-int(microseconds) // 1_000_000)


@lru_cache(_REMEMBERED)
def _parse_key(text: bytes) -> tuple[UUID, int]:
    """`<credential_id> <network_id>`."""
    credential_id, network_id = text.split(b" ")
    return UUID(credential_id.decode()), int(network_id)


def _show_key(key: GoodKey) -> bytes:
    """The key as take.lua caches it."""
    expires_us = 0 if key.expires_at is None else _us(key.expires_at)
    shown = f"{key.limit} {expires_us} {key.credential_id} {key.network_id}"
    quota, restrictions = key.quota, key.restrictions
    if quota is not None or restrictions.networks or restrictions.scopes:
        period = "- - -" if quota is None else f"{quota.requests} {quota.per}:{quota.since:%Y%m%d} {_us(quota.until)}"
        shown += f" {period} {_show_list(restrictions.scopes)} {_show_list(restrictions.networks)}"
    return shown.encode()


def _us(moment: datetime) -> int:
    return math.floor(moment.timestamp() * 1_000_000)


def _show_list(words: Sequence[str]) -> str:
    return f",{','.join(words)}," if words else "-"
