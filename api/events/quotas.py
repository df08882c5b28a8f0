"""Notices of quotas that are nearly, or all, used: each once in a period, to the subscriptions of their credentials.

They follow the usage tables, in the commit of a batch: what is in these is exact, and is the part of a quota that
outlives Valkey.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from api.answers import Instant
from api.events import digits
from api.events.subjects import EventKind, own_prefix
from api.keys.caller import QuotaPeriod
from shared import notices, sql
from shared.network import by_id

PERCENT: dict[EventKind, int] = {"quota.80": 80, "quota.100": 100}
"""The kinds of notices, and how much of the quota was used when each is told."""


class QuotaUsed(msgspec.Struct, frozen=True):
    """So many requests of the quota are used in a period."""

    credential_id: UUID
    requests: int
    per: QuotaPeriod
    used: int
    period_start: Instant
    resets_at: Instant


class _Row(msgspec.Struct, frozen=True):
    credential_id: UUID
    network_id: int
    kind: EventKind
    requests: int
    per: QuotaPeriod
    used: int
    period_start: datetime
    resets_at: datetime


_sql = sql.beside(__file__)
_lock = _sql.values("lock", UUID)
_reached = _sql.query("reached", _Row)
_KINDS, _PERCENTS = list(PERCENT), list(PERCENT.values())
_PREFIXES = [own_prefix(kind) for kind in PERCENT]


async def notice(db: sql.Connection, credential_ids: Sequence[UUID]) -> None:
    """Add the notices of credentials whose usage has just been added, in the same commit."""
    # NOTE: two commits that add usage of a credential wait for each other here, so the later one sees the sum of both.
    locked = await _lock.all(db, list(credential_ids), _PREFIXES)
    if not locked:
        return
    for row in await _reached.all(db, locked, _KINDS, _PERCENTS, _PREFIXES):
        used = QuotaUsed(row.credential_id, row.requests, row.per, row.used, row.period_start, row.resets_at)
        await notices.add(db, by_id[row.network_id], row.kind, digits.json_of(used), row.credential_id)
