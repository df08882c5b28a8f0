"""The usage aggregator, `dramatiq api.worker`: adds queued batches to the table, each exactly once.

Dramatiq delivers at least once; the spool's mark in the same commit makes that once.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

import asyncpg
import dramatiq
import msgspec
import structlog
from dramatiq.brokers.redis import RedisBroker

from api.batches import ACTOR, LONGEST_QUEUED_S, QUEUE, Batch, broker_at
from api.database import migrated
from shared import database, lifecycle, schema, servers, settings, sql
from shared import log as logs

log = structlog.get_logger()

_UNKNOWN_YET = "redis://unknown"  # an embedded Valkey has an address only once it is up
_CONNECTIONS = 4
_ADD_WITHIN_S = 5
_CLOSE_WITHIN_S = 4
_BOOT_WITHIN_S = 5


class _Noted(msgspec.Struct, frozen=True):
    next_offset: int


_begin = sql.command("begin")
_note = sql.query("note", _Noted)
_add = sql.command("add")
_add_days = sql.command("add_days")
_touch = sql.command("touch")


async def add(db: asyncpg.Connection, batch: Batch) -> bool:
    """Add a batch in one commit; False where the table has it already, or lacks the one before it."""
    async with db.transaction():
        if batch.offset == 0:
            await _begin.run(db, batch.spool)
        if await _note.one(db, batch.spool, batch.offset, batch.end) is None:
            return False
        credential_ids = [UUID(hex=each.credential_id) for each in batch.sums]
        columns = (
            credential_ids,
            [each.minute for each in batch.sums],
            [each.successful for each in batch.sums],
            [each.failed for each in batch.sums],
            [each.took_us for each in batch.sums],
        )
        await _add.run(db, *columns)
        await _add_days.run(db, *columns)
        await _touch.run(db, credential_ids, [each.last_us for each in batch.sums])
    return True


class _Aggregator(dramatiq.Middleware):
    """What a worker process needs from its start to its end: a loop in a thread, the servers, and connections."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._open = AsyncExitStack()
        self._pool: asyncpg.Pool | None = None
        self._queue_known = threading.Event()

    def after_process_boot(self, broker: dramatiq.Broker) -> None:
        """Begin to connect. Dramatiq hears no signals and shows no logs until this returns, so it returns soon."""
        try:
            ours = settings.read()
        except settings.SettingsError as wrong:
            sys.exit(lifecycle.fail(wrong))
        logs.configure(ours.log_level, ours.log_format)
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        threading.Thread(target=_end_with_parent, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._connect(ours, broker), self._loop).add_done_callback(_end_if_failed)
        self._queue_known.wait(_BOOT_WITHIN_S)

    def after_worker_shutdown(self, _broker: dramatiq.Broker, _worker: dramatiq.Worker) -> None:
        """Let go of the servers once the last message is done."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()

    def add(self, batch: Batch) -> None:
        """Add a batch, from any thread. Raises TimeoutError where Postgres is not there."""
        asyncio.run_coroutine_threadsafe(self._add(batch), self._loop).result()

    async def _connect(self, ours: settings.Settings, broker: dramatiq.Broker) -> None:
        """Wait for the servers, however long they take. Raises Stopped, and what can't be waited for."""
        assert isinstance(broker, RedisBroker)
        running = await self._open.enter_async_context(servers.running(ours))
        broker.client.connection_pool = broker_at(running.redis_url).client.connection_pool
        self._queue_known.set()
        async with migrated(running.database_url, self._stop):
            url = running.database_url
            pool = await lifecycle.wait_for(
                "postgres", lambda: database.create_pool(url, None, most=_CONNECTIONS), self._stop, lifecycle.WAITED_FOR
            )
        self._open.push_async_callback(pool.close)
        self._pool = pool
        log.info("worker.ready", queue=QUEUE)

    async def _add(self, batch: Batch) -> None:
        async with asyncio.timeout(_ADD_WITHIN_S):
            if self._pool is None:
                raise ConnectionError("Postgres is not reached yet")
            async with self._pool.acquire() as db:
                if await add(db, batch):
                    log.debug("usage.added", spool=batch.spool, offset=batch.offset, end=batch.end)

    async def _close(self) -> None:
        self._stop.set()
        async with asyncio.timeout(_CLOSE_WITHIN_S):
            await self._open.aclose()


def _end_if_failed(connecting: Future[None]) -> None:
    """A worker that will never reach its servers ends, and Dramatiq's main process with it."""
    cause = connecting.exception()
    if isinstance(cause, schema.NewerSchema | servers.ServersError):
        os._exit(lifecycle.fail(cause))
    if cause is not None and not isinstance(cause, lifecycle.Stopped):
        log.error("worker.failed", exc_info=cause)
        os._exit(1)


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
