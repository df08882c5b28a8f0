"""The usage aggregator, `dramatiq api.worker`: adds queued batches to the usage tables, each exactly once.

Dramatiq delivers at least once; the spool's mark in the same commit makes that exactly once.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import AsyncExitStack, redirect_stderr
from functools import partial
from typing import Any, NoReturn
from uuid import UUID

import asyncpg
import dramatiq
import msgspec
import structlog
from dramatiq.brokers.redis import RedisBroker

from api.commands.database import migrated
from api.events import deliveries, expiring, follower, quotas
from api.keys import valkey
from api.sources import clock, egress, pool_metadata
from api.usage import fold, hours
from api.usage.queue import ACTOR, QUEUE, UsageBatch, broker_at
from shared import database, lifecycle, schema, servers, service_manager, settings, sql, tasks
from shared import log as logs
from shared.network import NETWORKS

log = structlog.get_logger()

_UNKNOWN_YET = "redis://unknown"  # an embedded Valkey has no address before it runs
_CONNECTIONS = 4
_ADD_WITHIN_S = 5
_CLOSE_WITHIN_S = 4
_BOOT_WITHIN_S = 5
_FAILED = signal.SIGUSR1
_FOLD_EVERY_S = 5.0


_sql = sql.beside(__file__)
_begin = _sql.command("begin")
_move_mark = _sql.values("move_mark", int)
_add = _sql.command("add")
_add_days = _sql.command("add_days")
_add_totals = _sql.command("add_totals")
_touch = _sql.command("touch")


async def add_batch(db: asyncpg.Connection, batch: UsageBatch) -> bool:
    """Add a batch in one commit; False if the tables already have it, or lack the batch before it."""
    async with schema.commit(db):
        if batch.offset == 0:
            await _begin.run(db, batch.spool)
        if await _move_mark.one(db, batch.spool, batch.offset, batch.end) is None:
            return False
        part = await hours.part(db)
        credential_ids = [UUID(hex=total.credential_id) for total in batch.sums]
        minutes = [total.minute for total in batch.sums]
        successful = [total.successful for total in batch.sums]
        failed = [total.failed for total in batch.sums]
        took_us = [total.took_us for total in batch.sums]
        limited = [total.limited for total in batch.sums]
        await _add.run(db, part, credential_ids, minutes, successful, failed, took_us)
        await _add_days.run(db, part, credential_ids, minutes, successful, failed, took_us, limited)
        await _add_totals.run(db, part, credential_ids, successful, failed)
        await hours.add(db, part, batch.breakdown)
        await quotas.notice(db, list(set(credential_ids)))
        await _touch.run(db, credential_ids, [total.last_us for total in batch.sums], part)
    return True


class _Aggregator(dramatiq.Middleware):
    """The resources of one of Dramatiq's processes: an event loop in a thread, the servers, and connections."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._open = AsyncExitStack()
        self._pool: asyncpg.Pool | None = None
        self._queue_known = threading.Event()
        self._exit_status = 0

    def after_process_boot(self, broker: dramatiq.Broker) -> None:
        """Begin to connect. Until this returns, Dramatiq ignores signals and shows no logs, so it returns soon."""
        signal.signal(_FAILED, self._end)
        try:
            ours = settings.read()
        except settings.SettingsError as wrong:
            sys.exit(_fail(wrong))
        logs.configure(ours.log_level, ours.log_format)
        logs.started("usage aggregator")
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        threading.Thread(target=_end_with_parent, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._connect(ours, broker), self._loop).add_done_callback(self._end_if_failed)
        self._queue_known.wait(_BOOT_WITHIN_S)

    def after_worker_shutdown(self, _broker: dramatiq.Broker, _worker: dramatiq.Worker) -> None:
        """Release the servers after the last message."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()

    def add(self, batch: UsageBatch) -> None:
        """Add a batch, from any thread. Raises TimeoutError if Postgres does not answer."""
        asyncio.run_coroutine_threadsafe(self._add(batch), self._loop).result()

    async def _connect(self, ours: settings.Settings, broker: dramatiq.Broker) -> None:
        """Wait for the servers. Raises Stopped, and errors that waiting does not resolve."""
        assert isinstance(broker, RedisBroker)
        await self._open.enter_async_context(service_manager.watched(for_parent=True))
        service_manager.notify(service_manager.READY)
        running = await self._open.enter_async_context(servers.running(ours))
        broker.client.connection_pool = broker_at(running.redis_url).client.connection_pool
        self._queue_known.set()
        async with migrated(running.database_url, self._stop):
            url = running.database_url
            pool = await lifecycle.wait_for(
                "postgres",
                lambda: database.create_pool(url, None, max_size=_CONNECTIONS),
                self._stop,
                lifecycle.WAITED_FOR,
            )
        self._open.push_async_callback(pool.close)
        self._pool = pool
        await self._open.enter_async_context(tasks.background("fold", self._fold_forever))
        await self._open.enter_async_context(
            tasks.background(
                "pool metadata",
                lambda: pool_metadata.run(url, fetches=ours.pool_metadata, delisted=ours.pool_metadata_delisted),
            )
        )
        await self._open.enter_async_context(tasks.background("expiring keys", lambda: expiring.run(pool)))
        for network in NETWORKS:
            following = partial(follower.run, pool, url, network)
            await self._open.enter_async_context(tasks.background(f"events of {network.name}", following))
        rules = egress.webhook_rules(local=ours.webhooks_local)
        await self._open.enter_async_context(tasks.background("webhooks", lambda: deliveries.run(url, rules)))
        async with valkey.opened(running.redis_url) as queue:
            await lifecycle.wait_for("valkey", queue.ping, self._stop, lifecycle.WAITED_FOR)
        log.info("aggregator.ready", queue=QUEUE)

    def _end_if_failed(self, connecting: Future[None]) -> None:
        """End a process that will never reach its servers, and thereby Dramatiq's main process."""
        cause = connecting.exception()
        if cause is None or isinstance(cause, lifecycle.Stopped):
            return
        if isinstance(cause, schema.WrongSchema | servers.ServersError):
            self._exit_status = _fail(cause)
        else:
            log.error("aggregator.failed", exc_info=cause)
            self._exit_status = 1
        # NOTE: not os._exit: the main process ignores signals until this one has reported that it has booted, which
        # Dramatiq does while an exception propagates.
        signal.pthread_kill(threading.main_thread().ident or 0, _FAILED)

    def _end(self, _signal: int, _frame: object) -> NoReturn:
        """Raise SystemExit in the main thread."""
        sys.exit(self._exit_status)

    async def _add(self, batch: UsageBatch) -> None:
        async with asyncio.timeout(_ADD_WITHIN_S):
            if self._pool is None:
                raise ConnectionError("Postgres is not reached yet")
            try:
                async with self._pool.acquire() as db:
                    if await add_batch(db, batch):
                        log.debug("usage.added", spool=batch.spool, offset=batch.offset, end=batch.end)
            except schema.WrongSchema as newer:
                os._exit(lifecycle.fail(newer))  # NOTE: batches of other threads are queued again, as after any crash

    async def _fold_forever(self) -> None:
        assert self._pool is not None, "the pool is open"
        while True:
            async with self._pool.acquire() as db:
                await clock.read(db)
            await fold.fold(self._pool)
            await asyncio.sleep(_FOLD_EVERY_S)

    async def _close(self) -> None:
        self._stop.set()
        async with asyncio.timeout(_CLOSE_WITHIN_S):
            await self._open.aclose()


def _fail(cause: object) -> int:
    """`lifecycle.fail`, bypassing Dramatiq's pipe, whose reader may end before it reads the line."""
    with redirect_stderr(sys.__stderr__):
        return lifecycle.fail(cause)


def _end_with_parent() -> None:
    """Stop when Dramatiq's main process has gone: after its kill -9, nothing else would stop its other processes."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


_aggregator = _Aggregator()
broker = broker_at(_UNKNOWN_YET, maintains=True)
broker.add_middleware(_aggregator)
dramatiq.set_broker(broker)


# NOTE: no retries, since the spool queues a batch again until it is in the tables.
@dramatiq.actor(
    actor_name=ACTOR,
    queue_name=QUEUE,
    max_retries=0,
)
def add_usage(batch: dict[str, Any]) -> None:
    """Add a batch to the usage tables, unless it was added before."""
    try:
        _aggregator.add(msgspec.convert(batch, UsageBatch))
    except (*lifecycle.UNREACHABLE, asyncpg.PostgresError, asyncpg.InterfaceError) as cause:
        # NOTE: not raised, since Dramatiq would keep the message in Valkey.
        log.warning("usage.not_added", spool=batch.get("spool"), cause=f"{type(cause).__name__}: {cause}")
