"""The usage aggregator, `dramatiq api.worker`: adds queued batches to the table, each exactly once.

Dramatiq delivers at least once; the spool's mark in the same commit makes that once.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from types import FrameType
from typing import Any, NoReturn, TypeVar
from uuid import UUID

import asyncpg
import dramatiq
import msgspec
import structlog

from api.batches import ACTOR, LONGEST_QUEUED_S, QUEUE, Batch, broker_at
from shared import database, lifecycle, schema, servers, settings, sql
from shared import log as logs

log = structlog.get_logger()
Answer = TypeVar("Answer")

_UNKNOWN_YET = "redis://unknown"  # an embedded Valkey has an address only once it is up
_CONNECTIONS = 4
_ADD_WITHIN_S = 5
_CLOSE_WITHIN_S = 4


class _Noted(msgspec.Struct, frozen=True):
    next_offset: int


_begin = sql.command("begin")
_note = sql.query("note", _Noted)
_add = sql.command("add")
_touch = sql.command("touch")


async def add(db: asyncpg.Connection, batch: Batch) -> bool:
    """Add a batch in one commit; False where the table has it already, or lacks the one before it."""
    async with db.transaction():
        if batch.offset == 0:
            await _begin.run(db, batch.spool)
        if await _note.one(db, batch.spool, batch.offset, batch.end) is None:
            return False
        credential_ids = [UUID(hex=each.credential_id) for each in batch.sums]
        await _add.run(
            db,
            credential_ids,
            [each.minute for each in batch.sums],
            [each.successful for each in batch.sums],
            [each.failed for each in batch.sums],
            [each.took_us for each in batch.sums],
        )
        await _touch.run(db, credential_ids, [each.last_us for each in batch.sums])
    return True


class _Aggregator(dramatiq.Middleware):
    """What a worker process needs from its start to its end: a loop in a thread, the servers, and connections."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._open = AsyncExitStack()
        self._pool: asyncpg.Pool | None = None

    def after_process_boot(self, broker: dramatiq.Broker) -> None:
        """Connect before the first message is fetched, however long the servers take; SIGTERM ends the waiting."""
        try:
            ours = settings.read()
        except settings.SettingsError as wrong:
            sys.exit(lifecycle.fail(wrong))
        logs.configure(ours.log_level, ours.log_format)
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        threading.Thread(target=_end_with_parent, daemon=True).start()
        dramatiqs = signal.signal(signal.SIGTERM, _leave)
        try:
            redis_url = self._wait_for(self._connect(ours))
        except (schema.NewerSchema, servers.ServersError) as cause:
            sys.exit(lifecycle.fail(cause))
        finally:
            signal.signal(signal.SIGTERM, dramatiqs)
        broker.client.connection_pool = broker_at(redis_url).client.connection_pool  # type: ignore[attr-defined]
        log.info("worker.ready", queue=QUEUE)

    def after_worker_shutdown(self, _broker: dramatiq.Broker, _worker: dramatiq.Worker) -> None:
        """Let go of the servers once the last message is done."""
        self._wait_for(asyncio.wait_for(self._open.aclose(), _CLOSE_WITHIN_S))

    def add(self, batch: Batch) -> None:
        """Add a batch, from any thread."""
        if self._wait_for(asyncio.wait_for(self._add(batch), _ADD_WITHIN_S)):
            log.debug("usage.added", spool=batch.spool, offset=batch.offset, end=batch.end)

    async def _connect(self, ours: settings.Settings) -> str:
        running = await self._open.enter_async_context(servers.running(ours))
        never = asyncio.Event()

        async def migrated() -> None:
            connection = await database.connect(running.database_url)
            try:
                await schema.migrate(connection)
            finally:
                await connection.close()

        await lifecycle.wait_for("postgres", migrated, never)
        self._pool = await self._open.enter_async_context(
            await database.create_pool(running.database_url, None, most=_CONNECTIONS)
        )
        return running.redis_url

    async def _add(self, batch: Batch) -> bool:
        assert self._pool is not None, "messages are fetched after the boot"
        async with self._pool.acquire() as db:
            return await add(db, batch)

    def _wait_for(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)


def _end_with_parent() -> None:
    """Stop when Dramatiq's main process is gone: kill -9 of it would leave workers that nobody stops any more."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


_aggregator = _Aggregator()
broker = broker_at(_UNKNOWN_YET)
broker.add_middleware(_aggregator)
dramatiq.set_broker(broker)


# NOTE: no retries, since the spool queues a batch again until the table has it.
@dramatiq.actor(
    actor_name=ACTOR,
    queue_name=QUEUE,
    max_retries=0,
    max_age=LONGEST_QUEUED_S * 1000,
    throws=(OSError, asyncpg.PostgresError, asyncpg.InterfaceError),
)
def add_usage(batch: dict[str, Any]) -> None:
    """Add the requests of one batch to the table, unless it has them."""
    _aggregator.add(msgspec.convert(batch, Batch))
