"""Notices of keys that expire soon, each once, to the subscriptions of their credentials."""

import asyncio
from datetime import datetime
from uuid import UUID

import asyncpg
import msgspec

from api.answers import Instant
from api.events import digits
from api.events.subjects import EventKind, own_prefix
from shared import notices, schema, sql
from shared.network import by_id

DAYS_BEFORE = 14
"""How many days before a key expires its credential is told: the time for a rotation, holidays included."""

_KIND: EventKind = "key.expiring"
_LOOK_EVERY_S = 60.0
_MAX_AT_ONCE = 500


class KeyExpiring(msgspec.Struct, frozen=True):
    """The key of the credential expires soon."""

    credential_id: UUID
    api_key_prefix: str
    expires_at: Instant


class _Row(msgspec.Struct, frozen=True):
    credential_id: UUID
    api_key_prefix: str
    expires_at: datetime
    network_id: int


_sql = sql.beside(__file__)
_expiring = _sql.query("expiring", _Row)


async def run(pool: asyncpg.Pool) -> None:
    """Look every minute, until cancelled. Any number of processes may do so."""
    while True:
        while await notice(pool) == _MAX_AT_ONCE:
            pass
        await asyncio.sleep(_LOOK_EVERY_S)


async def notice(pool: asyncpg.Pool) -> int:
    """Add the notices that are due, some at a time, in one commit. Returns their number."""
    async with pool.acquire() as db, schema.commit(db):
        rows = await _expiring.all(db, _KIND, DAYS_BEFORE, own_prefix(_KIND), _MAX_AT_ONCE)
        for row in rows:
            body = digits.json_of(KeyExpiring(row.credential_id, row.api_key_prefix, row.expires_at))
            await notices.add(db, by_id[row.network_id], _KIND, body, row.credential_id)
    return len(rows)
