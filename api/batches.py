"""From spool to queue: sums of spooled requests are queued for the aggregator until the table has them.

A spool has one batch under way at a time, so that the table has to remember one offset per spool to know every batch
it has seen: docs/decisions/0005-usage-exactly-once.md.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import dramatiq
import msgspec
import redis
import structlog
from dramatiq.brokers.redis import RedisBroker
from prometheus_client import Gauge
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from api.usage import RECORD, Record, Spool, Spools
from shared import sql
from shared.servers import ServersError

log = structlog.get_logger()

QUEUE = "usage"
ACTOR = "add_usage"
_NAMESPACE = "ledgerline:queue"

LONGEST_QUEUED_S = 86_400
"""An older message is dropped unread: its spool has queued that batch anew since, if it was needed."""

_LOOK_EVERY_S = 0.5
_MOST_RECORDS = 20_000  # in a batch: 640 kB of spool, and well below a second in the aggregator
_QUEUE_AGAIN_S = 2.0, 10.0  # how long an answer is waited for, at first and at most
_MOST_QUEUED = 1_000  # messages beyond which nothing is queued twice
_LAST_LOOKS_S = 2.0
_TABLE_AND_QUEUE = "the usage table and its queue"

_UNREACHABLE = (OSError, RedisError, asyncpg.PostgresError, asyncpg.InterfaceError)

_lag = Gauge("ledgerline_usage_lag_seconds", "Age of the oldest request not in the table.", multiprocess_mode="livemax")
_waiting = Gauge("ledgerline_usage_waiting_bytes", "Spooled, but not in the table.", multiprocess_mode="livesum")
_queued = Gauge("ledgerline_usage_queued", "Batches that wait for the aggregator.", multiprocess_mode="livemax")


class Sum(msgspec.Struct, array_like=True):
    """The requests of one credential in one minute of a batch."""

    credential_id: str
    minute: int  # since 1970
    successful: int = 0
    failed: int = 0
    took_us: int = 0
    last_us: int = 0  # since 1970

    def add(self, record: Record) -> None:
        """Count one more."""
        if record.status < 400:
            self.successful += 1
        else:
            self.failed += 1
        self.took_us += record.took_us
        self.last_us = max(self.last_us, record.at_us)


class Batch(msgspec.Struct, frozen=True):
    """What lies between two offsets of a spool; that and its name `<spool>:<offset>` never change."""

    spool: str
    offset: int
    end: int
    sums: list[Sum]


class _Mark(msgspec.Struct, frozen=True):
    spool: str
    next_offset: int


_marks = sql.query("marks", _Mark)
_close = sql.command("close")
_forget = sql.command("forget")


def batch_of(spool: Spool) -> Batch:
    """What the table lacks of a spool, or the first _MOST_RECORDS of it."""
    end = min(spool.size_bytes, spool.added_bytes + _MOST_RECORDS * RECORD.size)
    sums: dict[tuple[bytes, int], Sum] = {}
    for record in spool.records(spool.added_bytes, end):
        whose = record.credential_id, record.at_us // 60_000_000
        found = sums.get(whose)
        if found is None:
            found = sums[whose] = Sum(record.credential_id.hex(), whose[1])
        found.add(record)
    return Batch(spool.name, spool.added_bytes, end, list(sums.values()))


def broker_at(redis_url: str) -> RedisBroker:
    """The queue. With Dramatiq's own figures a killed worker's messages came back after a minute, by chance."""
    return RedisBroker(  # type: ignore[no-untyped-call] # it has no hints
        client=redis.Redis.from_url(redis_url, socket_timeout=2, socket_connect_timeout=2, retry=Retry(NoBackoff(), 1)),
        namespace=_NAMESPACE,
        heartbeat_timeout=3_000,
        maintenance_chance=1_000_000,
        dead_message_ttl=60_000,
    )


@asynccontextmanager
async def spooling(data_dir: Path, redis_url: str, partner: asyncpg.Pool) -> AsyncIterator[Spools]:
    """The spools of this process, and behind them the task that empties them into the queue.

    Leaving takes up to _LAST_LOOKS_S to see the last requests into the table; what is not there by then stays on disk.
    Raises ServersError where DATA_DIR can't be written.
    """
    try:
        spools = Spools(data_dir / "usage")
    except OSError as cause:
        raise ServersError(f"DATA_DIR={data_dir} can't be used: {cause}") from cause
    queueing = _Queueing(spools, partner, broker_at(redis_url))
    task = asyncio.create_task(queueing.run())
    try:
        yield spools
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await queueing.finish()


class _UnderWay(msgspec.Struct, frozen=True):
    """A batch that was queued and is not in the table yet."""

    offset: int
    pause_s: float
    again_at: float  # when it is queued once more, on the monotonic clock


class _Queueing:
    """Looks every half second at what the table has of each spool, and queues what comes next."""

    def __init__(self, spools: Spools, partner: asyncpg.Pool, broker: RedisBroker) -> None:
        self._spools, self._partner, self._broker = spools, partner, broker
        self._under_way: dict[str, _UnderWay] = {}
        self._away = False

    async def run(self) -> None:
        """Look for ever. While the table or the queue is away the spools grow."""
        while True:
            await self._try_to_look()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def finish(self) -> None:
        """See the last requests into the table, then leave the spools."""
        try:
            async with asyncio.timeout(_LAST_LOOKS_S):
                while any(spool.waiting_bytes for spool in self._spools.all):
                    await self._try_to_look()
                    await asyncio.sleep(_LOOK_EVERY_S / 5)
                self._spools.roll_over()
                await self._try_to_look()
        except TimeoutError:
            log.warning("usage.left_for_later", bytes=sum(spool.waiting_bytes for spool in self._spools.all))
        finally:
            self._spools.close()

    async def _try_to_look(self) -> None:
        try:
            await self._look()
        except _UNREACHABLE as cause:
            self._under_way.clear()  # whatever happened meanwhile: begin with what the table has
            if not self._away:
                log.warning("waiting", **{"for": _TABLE_AND_QUEUE}, cause=f"{type(cause).__name__}: {cause}")
            self._away = True
        else:
            if self._away:
                log.info("reached", what=_TABLE_AND_QUEUE)
            self._away = False
        self._measure()

    async def _look(self) -> None:
        self._spools.take_over()
        waiting = [spool for spool in self._spools.all if spool.waiting_bytes or spool in self._spools.rolled_over]
        if not waiting:
            _queued.set(0)
            return
        async with self._partner.acquire() as db:
            for mark in await _marks.all(db, [spool.name for spool in waiting]):
                spool = next(spool for spool in waiting if spool.name == mark.spool)
                spool.added_bytes = mark.next_offset
            for spool in waiting:
                if not spool.waiting_bytes and spool in self._spools.rolled_over:
                    self._spools.drop(spool)
                    await _close.run(db, spool.name)
                    await _forget.run(db)
        queued = await asyncio.to_thread(self._broker.do_qsize, QUEUE)
        _queued.set(queued)
        for spool in waiting:
            if spool.waiting_bytes:
                await self._queue(spool, may_repeat=queued < _MOST_QUEUED)

    async def _queue(self, spool: Spool, *, may_repeat: bool) -> None:
        """Queue the next batch of a spool, or the same again where it may have been lost."""
        now, before = time.monotonic(), self._under_way.get(spool.name)
        pause_s = _QUEUE_AGAIN_S[0]
        if before is not None and before.offset == spool.added_bytes:
            if now < before.again_at or not may_repeat:
                return
            pause_s = min(before.pause_s * 2, _QUEUE_AGAIN_S[1])
        self._under_way[spool.name] = _UnderWay(spool.added_bytes, pause_s, now + pause_s)
        await asyncio.to_thread(spool.sync)
        batch = await asyncio.to_thread(batch_of, spool)
        await asyncio.to_thread(self._broker.enqueue, _message(batch))

    def _measure(self) -> None:
        waiting = [spool for spool in self._spools.all if spool.waiting_bytes]
        oldest = [
            record.at_us / 1e6
            for spool in waiting
            for record in spool.records(spool.added_bytes, spool.added_bytes + RECORD.size)
        ]
        _lag.set(max(0.0, time.time() - min(oldest)) if oldest else 0)
        _waiting.set(sum(spool.waiting_bytes for spool in waiting))


def _message(batch: Batch) -> dramatiq.Message[None]:
    """The batch as a message, which is JSON."""
    args = (msgspec.to_builtins(batch),)
    return dramatiq.Message(queue_name=QUEUE, actor_name=ACTOR, args=args, kwargs={}, options={})
