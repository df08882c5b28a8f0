"""Prune old rows: usage by minute and by hour, audit entries of read access, submitted transactions, idempotency keys,
and former API keys.

Each process tries every hour; a lock lets one prune at a time, in small commits with pauses between them.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
import msgspec
import structlog

from shared import schema, sql
from shared.settings import Settings

log = structlog.get_logger()

_EVERY_S = 3_600.0
_FIRST_WITHIN_S = 300.0  # so that a process which never lives for an hour prunes as well
_PAUSE_S = 0.2
_MAX_ROWS = 2_000  # in one commit
_MAX_CREDENTIALS = 500
_NO_ID = UUID(int=0)


class Busy(Exception):
    """Another process is pruning."""


_sql = sql.beside(__file__)
_lock = _sql.values("lock", bool)
_keep = _sql.command("keep")
_next_credentials = _sql.values("next_credentials", UUID)
_drop_former_keys = _sql.command("drop_former_keys")
_drop_notices = _sql.command("drop_notices")
_drop_notices_once = _sql.command("drop_notices_once")
_drop_minutes = _sql.command("drop_minutes")
_drop_hours = _sql.command("drop_hours")
_drop_readings = _sql.command("drop_readings")
_drop_events = _sql.command("drop_events")
_drop_event_objects = _sql.command("drop_event_objects")
_end_subscriptions = _sql.command("end_subscriptions")
_drop_subjects = _sql.command("drop_subjects")
_drop_ended_events = _sql.command("drop_ended_events")
_drop_subscriptions = _sql.command("drop_subscriptions")
_drop_submitted = _sql.command("drop_submitted")
_drop_idempotency_keys = _sql.command("drop_idempotency_keys")


async def run(pool: asyncpg.Pool, settings: Settings) -> None:
    """Prune every hour, until cancelled, starting at a random time within the first minutes."""
    await asyncio.sleep(random.uniform(0, _FIRST_WITHIN_S))
    while True:
        try:
            pruned = await prune(pool, settings)
            log.info("retention.pruned", **msgspec.structs.asdict(pruned))
        except Busy:
            log.debug("retention.left_to_another")
        await asyncio.sleep(_EVERY_S)


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows of each kind were dropped."""

    usage_minutes: int = 0
    usage_hours: int = 0
    audit_readings: int = 0
    submitted_transactions: int = 0
    idempotency_keys: int = 0
    events: int = 0
    event_objects: int = 0
    subjects: int = 0
    subscriptions: int = 0


async def prune(pool: asyncpg.Pool, settings: Settings) -> Pruned:
    """Drop the rows that are older than the settings allow. Raises Busy if another process is pruning."""
    async with _step(pool) as db:
        await _keep.run(db, settings.usage_minutes_days, settings.usage_hours_days)
        await _drop_former_keys.run(db)
        await _drop_notices.run(db, settings.events_days)
        await _drop_notices_once.run(db)
        await _end_subscriptions.run(db, settings.events_days)
    return Pruned(
        usage_minutes=await _prune_usage(pool, _drop_minutes),
        usage_hours=await _prune_usage(pool, _drop_hours),
        audit_readings=await _prune_all(pool, _drop_readings, settings.audit_reads_days),
        submitted_transactions=await _prune_all(pool, _drop_submitted, settings.submitted_days),
        idempotency_keys=await _prune_all(pool, _drop_idempotency_keys),
        events=await _prune_all(pool, _drop_events, settings.events_days) + await _prune_all(pool, _drop_ended_events),
        event_objects=await _prune_all(pool, _drop_event_objects, settings.events_days),
        subjects=await _prune_all(pool, _drop_subjects),
        subscriptions=await _prune_all(pool, _drop_subscriptions),
    )


async def _prune_usage(pool: asyncpg.Pool, drop: sql.Command) -> int:
    """Drop old usage, some credentials at a time."""
    dropped_in_all, last_id = 0, _NO_ID
    while True:
        async with _step(pool) as db:
            ids = await _next_credentials.all(db, last_id, _MAX_CREDENTIALS)
            dropped = _rows(await drop.run(db, ids, _MAX_ROWS))
        dropped_in_all += dropped
        if dropped < _MAX_ROWS:
            if not ids:
                return dropped_in_all
            last_id = ids[-1]


async def _prune_all(pool: asyncpg.Pool, drop: sql.Command, *arguments: int) -> int:
    """Drop all rows of a kind that are old; `arguments` precede the number of rows in those of the statement."""
    dropped_in_all, dropped = 0, _MAX_ROWS
    while dropped == _MAX_ROWS:
        async with _step(pool) as db:
            dropped = _rows(await drop.run(db, *arguments, _MAX_ROWS))
        dropped_in_all += dropped
    return dropped_in_all


@asynccontextmanager
async def _step(pool: asyncpg.Pool) -> AsyncIterator[sql.Connection]:
    """One small commit, followed by a pause."""
    async with pool.acquire() as db, schema.commit(db):
        if not await _lock.only(db):
            raise Busy
        yield db
    await asyncio.sleep(_PAUSE_S)


def _rows(tag: str) -> int:
    """The number in Postgres' answer to a DELETE."""
    return int(tag.rpartition(" ")[2])
