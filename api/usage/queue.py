"""From spool to queue: sums of spooled requests are queued for the aggregator until they are in the usage tables.

Only one batch of a spool is under way at a time, so one offset per spool, its mark, shows which records are in the
tables (docs/decisions/0005-usage-exactly-once.md). A spool whose records are all in the tables is kept for a while, in
case a failover loses commits (docs/decisions/0016-what-a-spool-promises.md).
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeAlias, TypeVar

import asyncpg
import dramatiq
import msgspec
import prometheus_client as prometheus
import structlog
from dramatiq.brokers.redis import RedisBroker
from redis.backoff import NoBackoff
from redis.retry import Retry

from api.sources import clock
from api.usage import durations
from api.usage.spool import RECORD, Record, Spool, Spools
from shared import redis_url, schema, sql, tasks
from shared.lifecycle import WAITED_FOR, Outage
from shared.servers import unusable_data_dir

log = structlog.get_logger()
Answer = TypeVar("Answer")

QUEUE = "usage"
ACTOR = "add_usage"
_NAMESPACE = "ledgerline:queue"

UNKNOWN_ENDPOINT = "unknown"
"""The endpoint of a request that another version of the program counted, and that this version does not have."""

SPOOL_KEPT_S = 600.0
"""How long a spool is kept after the commit that completed it. After that, a failover no longer loses that commit."""

_LOOK_EVERY_S, _TABLE_WITHIN_S = 0.5, 5.0
_MAX_RECORDS = 20_000  # in a batch: 760 kB of spool, and well below a second in the aggregator
_QUEUE_AGAIN_S, _MAX_QUEUE_AGAIN_S = 2.0, 10.0  # the pause before a lost batch is queued again, at first and at most
MAX_QUEUED_BYTES = 64 * 1024**2
"""With this much in Valkey, of all processes together, nothing is queued. What is not queued waits on disk."""

_LAST_LOOKS_S = 2.0
_FOLDER = "usage"  # in DATA_DIR

_lost = prometheus.Counter(
    "ledgerline_usage_lost_records", "Spooled records that could not be read back from the disk."
)


class UsageSum(msgspec.Struct, array_like=True):
    """The requests of one credential in one minute of a batch."""

    credential_id: str
    minute: int  # since 1970
    successful: int = 0
    failed: int = 0
    took_us: int = 0
    last_us: int = 0  # since 1970
    limited: int = 0  # those of `failed` with status 429

    def add(self, status: int, records: Sequence[Record]) -> None:
        """Add requests that were answered with the same status."""
        if status < 400:
            self.successful += len(records)
        else:
            self.failed += len(records)
            self.limited += len(records) if status == HTTPStatus.TOO_MANY_REQUESTS else 0
        self.took_us += sum(record.took_us for record in records)
        self.last_us = max(self.last_us, max(record.at_us for record in records))


class BreakdownSum(msgspec.Struct, array_like=True):
    """The requests of one credential to one endpoint, in one hour of a batch and with one class of status."""

    credential_id: str
    hour: int  # since 1970
    endpoint: str  # such as "GET /v1/tx/hash/{hash}"
    status_class: int  # 4 for 4xx
    requests: int = 0
    took_us: int = 0
    durations: list[int] = []  # a histogram (durations.py)
    events: int = 0  # that were delivered
    stream_minutes: int = 0


class UsageBatch(msgspec.Struct, frozen=True):
    """The sums of the records between two offsets of a spool.

    A batch that is queued again may contain more records, as the spool has grown: the mark admits only one of the two.
    """

    spool: str
    offset: int
    end: int
    sums: list[UsageSum]
    breakdown: list[BreakdownSum]
    other_records: int = 0  # how many of the records are not requests


class Mark(msgspec.Struct, frozen=True):
    """The offset up to which a spool is in the usage tables, and whether a failover can no longer lose that commit."""

    spool: str
    next_offset: int
    is_safe: bool


_sql = sql.beside(__file__)
marks = _sql.query("marks", Mark)


def batch_of(spool: Spool, endpoints: Mapping[int, str]) -> UsageBatch:
    """The synced records of a spool that are not in the usage tables, at most _MAX_RECORDS. Raises OSError.

    `endpoints` names the endpoints that this version has; a spool of another version may know others.
    """
    end = min(spool.synced_bytes, spool.added_bytes + _MAX_RECORDS * RECORD.size)
    alike: dict[tuple[bytes, int, int, int], list[Record]] = {}
    delivered, streamed = Counter[tuple[bytes, int, str, int]](), Counter[tuple[bytes, int, str, int]]()
    other_records = 0
    for record in spool.records(spool.added_bytes, end):
        if not record.is_request:
            endpoint = endpoints.get(record.endpoint, UNKNOWN_ENDPOINT)
            of_hour = record.credential_id, record.at_us // 3_600_000_000, endpoint, 2
            delivered[of_hour] += record.events
            streamed[of_hour] += record.stream_minutes
            other_records += 1
            continue
        key = record.credential_id, record.at_us // 60_000_000, record.endpoint, record.status
        alike.setdefault(key, []).append(record)
    sums: dict[tuple[bytes, int], UsageSum] = {}
    parts: dict[tuple[bytes, int, str, int], list[int]] = {}  # the durations
    for (credential_id, minute, number, status), records in alike.items():
        total = sums.setdefault((credential_id, minute), UsageSum(credential_id.hex(), minute))
        total.add(status, records)
        # NOTE: by name, since all unknown endpoints share one row.
        endpoint = endpoints.get(number, UNKNOWN_ENDPOINT)
        durations_us = parts.setdefault((credential_id, minute // 60, endpoint, status // 100), [])
        durations_us += [record.took_us for record in records]
    breakdown = [
        BreakdownSum(
            credential_id.hex(),
            hour,
            endpoint,
            status_class,
            len(took_us),
            sum(took_us),
            durations.packed(Counter(map(durations.bucket_of, took_us))),
            delivered[key],
            streamed[key],
        )
        for key in dict.fromkeys((*parts, *delivered))
        for (credential_id, hour, endpoint, status_class), took_us in ((key, parts.get(key, [])),)
    ]
    return UsageBatch(spool.name, spool.added_bytes, end, list(sums.values()), breakdown, other_records)


def broker_at(url: str, *, maintains: bool = False) -> RedisBroker:
    """The queue. NOTE: with Dramatiq's defaults, a killed worker's messages return only after a minute or more.

    Only an aggregator `maintains` it: it takes workers for dead by its host's clock, which may be wrong.
    """
    return RedisBroker(  # type: ignore[no-untyped-call] # it has no hints
        client=redis_url.client(url, socket_timeout=2, socket_connect_timeout=2, retry=Retry(NoBackoff(), 1)),
        namespace=_NAMESPACE,
        heartbeat_timeout=3_000,
        maintenance_chance=1_000_000 if maintains else 0,
        dead_message_ttl=60_000,
    )


class Unacknowledged(msgspec.Struct, frozen=True):
    """The messages in Valkey that no aggregator has acknowledged, taken or not, and their size."""

    messages: int
    size_bytes: int


class Queue:
    """The queue as the API uses it. Raises RedisError."""

    def __init__(self, url: str) -> None:
        self._broker = broker_at(url)
        self._ids = f"{_NAMESPACE}:{QUEUE}"  # NOTE: these two names are Dramatiq's
        self._messages = f"{self._ids}.msgs"

    def unacknowledged(self) -> Unacknowledged:
        """What is in Valkey now."""
        client = self._broker.client
        return Unacknowledged(client.hlen(self._messages), client.memory_usage(self._messages, samples=0) or 0)

    def has(self, message_id: str) -> bool:
        """Whether a message waits: no aggregator has taken it."""
        return self._broker.client.lpos(self._ids, message_id) is not None

    def put(self, message_id: str, batch: UsageBatch) -> int:
        """Queue a batch. Returns the size of its message."""
        message = _message(batch, message_id)
        encoded = message.encode()
        self._broker.do_enqueue(QUEUE, message_id, encoded)
        return len(encoded)


def refuse_unwritable(data_dir: Path) -> None:
    """Raise ServersError if the folder of the spools can't be made or written."""
    try:
        (data_dir / _FOLDER).mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=data_dir / _FOLDER):
            pass
    except OSError as cause:
        raise unusable_data_dir(data_dir, cause) from cause


@asynccontextmanager
async def spooling(
    data_dir: Path, redis_url: str, partner: asyncpg.Pool, endpoints: Mapping[int, str]
) -> AsyncIterator[Spools]:
    """The spools of this process, with a background task that queues their records.

    `endpoints` are the names of endpoints by the number in a record.
    The end of the block waits up to _LAST_LOOKS_S for the last records to reach the tables; the others stay on disk.
    Raises ServersError if DATA_DIR can't be written.
    """
    try:
        spools = Spools(data_dir / _FOLDER)
    except OSError as cause:
        raise unusable_data_dir(data_dir, cause) from cause
    queueing = _Queueing(spools, partner, Queue(redis_url), endpoints)
    try:
        await queueing.look()  # the first record needs the time
        async with tasks.background("usage", queueing.run):
            yield spools
    finally:
        await queueing.finish()


class _UnderWay(msgspec.Struct, frozen=True):
    """A batch that is queued but not in the usage tables yet."""

    offset: int
    times: int  # it was queued
    pause_s: float
    again_at: float  # when it is queued again, on the monotonic clock


_Unusable: TypeAlias = dict[Path, str]  # files that can't be used now, with the reasons


class _Queueing:
    """Every half second, compares each spool with the usage tables and queues the next batch."""

    def __init__(self, spools: Spools, partner: asyncpg.Pool, queue: Queue, endpoints: Mapping[int, str]) -> None:
        self._spools, self._partner, self._queue, self._endpoints = spools, partner, queue, endpoints
        self._under_way: dict[str, _UnderWay] = {}
        self._outage = Outage("the usage tables and their queue")

    async def run(self) -> None:
        """Queue until cancelled. While Postgres or Valkey is unreachable, the spools grow."""
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def finish(self) -> None:
        """Wait for the last records to reach the usage tables, then close the spools."""
        try:
            async with asyncio.timeout(_LAST_LOOKS_S):
                while any(spool.waiting_bytes for spool in self._spools.all):
                    await self.look()
                    await asyncio.sleep(_LOOK_EVERY_S / 5)
        except TimeoutError:
            log.warning("usage.left_for_later", bytes=sum(spool.waiting_bytes for spool in self._spools.all))
        finally:
            self._spools.close()

    async def look(self) -> None:
        """Look once. Errors are logged, and retried with the next look."""
        try:
            await self._look()
        except Exception as cause:  # noqa: BLE001 - retried after any error; `looked_at` shows for how long
            self._under_way = {
                name: msgspec.structs.replace(under_way, pause_s=_QUEUE_AGAIN_S, again_at=0.0)
                for name, under_way in self._under_way.items()
            }
            self._outage.report(cause, traceback=not isinstance(cause, WAITED_FOR))
        else:
            self._outage.end()
            self._spools.looked_at = time.monotonic()

    async def _look(self) -> None:
        unusable = self._spools.take_over()
        try:
            await self._look_at_all(unusable)
        except BaseException:
            self._spools.report_unusable(self._spools.unusable | unusable)
            raise
        self._spools.report_unusable(unusable)

    async def _look_at_all(self, unusable: _Unusable) -> None:
        """Sync every spool, compare it with the usage tables, and queue the missing records.

        A file with a disk error goes into `unusable`, and does not block the others.
        """
        try:
            self._spools.replace_truncated()
        except OSError as cause:
            unusable[self._spools.folder] = str(cause)
        for spool in self._spools.all:
            try:
                await _in_thread(spool.sync)
            except OSError as cause:
                unusable[spool.path] = str(cause)
        seen = [spool for spool in self._spools.all if spool.size_bytes or spool in self._spools.former]
        async with asyncio.timeout(_TABLE_WITHIN_S), self._partner.acquire() as db:
            await clock.read(db)
            known = await marks.all(db, [spool.name for spool in seen], SPOOL_KEPT_S) if seen else []
        if not seen:
            return
        await self._compare({mark.spool: mark for mark in known}, seen, unusable)
        behind = [spool for spool in seen if spool.synced_bytes > spool.added_bytes]
        queued_bytes = (await _in_thread(self._queue.unacknowledged)).size_bytes if behind else 0
        for spool in behind:
            if queued_bytes < MAX_QUEUED_BYTES:
                queued_bytes += await self._queue_next(spool, unusable)

    async def _compare(self, known: dict[str, Mark], seen: list[Spool], unusable: _Unusable) -> None:
        """Note how much of each spool is in the tables, which a failover may reduce, and drop the safe spools."""
        for spool in seen:
            mark = known.get(spool.name, Mark(spool.name, 0, is_safe=True))
            if mark.next_offset < spool.added_bytes:
                log.error("usage.taken_back", spool=spool.name, had=spool.added_bytes, has=mark.next_offset)
                self._under_way.pop(spool.name, None)
            spool.added_bytes = mark.next_offset
            if mark.next_offset > spool.size_bytes:
                unusable[spool.path] = "shorter than its part in the usage tables"
            elif mark.next_offset == spool.size_bytes and mark.is_safe and spool in self._spools.former:
                await self._drop(spool, unusable)

    async def _drop(self, spool: Spool, unusable: _Unusable) -> None:
        """Delete a spool. Its mark stays: a file that reappears must not be counted again.

        Raises WrongSchema, in which case the file is kept.
        """
        async with self._partner.acquire() as db:
            await schema.check(db)
        try:
            await _in_thread(self._spools.drop, spool)
        except OSError as cause:
            unusable[spool.path] = str(cause)

    async def _queue_next(self, spool: Spool, unusable: _Unusable) -> int:
        """Queue the next batch of a spool, or repeat the last one if it may be lost. Returns the size of the message.

        A batch that still waits is never repeated. The first message of a batch may be one of a process that has died.
        """
        now, before = time.monotonic(), self._under_way.get(spool.name)
        times, pause_s = 0, _QUEUE_AGAIN_S
        if before is not None and before.offset == spool.added_bytes:
            if now < before.again_at:
                return 0
            times, pause_s = before.times, min(before.pause_s * 2, _MAX_QUEUE_AGAIN_S)
        is_waiting = await _in_thread(self._queue.has, _message_id(spool, max(times - 1, 0)))
        if is_waiting:
            self._under_way[spool.name] = _UnderWay(spool.added_bytes, max(times, 1), pause_s, now + pause_s)
            return 0
        try:
            batch = await _in_thread(batch_of, spool, self._endpoints)
        except OSError as cause:
            unusable[spool.path] = str(cause)
            return 0
        _report_lost(spool, batch)
        self._under_way[spool.name] = _UnderWay(spool.added_bytes, times + 1, pause_s, now + pause_s)
        return await _in_thread(self._queue.put, _message_id(spool, times), batch)


def _report_lost(spool: Spool, batch: UsageBatch) -> None:
    """Count, once, the records of a batch that could not be read back from the disk."""
    requests = sum(total.successful + total.failed for total in batch.sums)
    lost = (batch.end - batch.offset) // RECORD.size - requests - batch.other_records
    if lost and batch.offset >= spool.reported_bytes:
        log.error("usage.lost_records", spool=spool.name, offset=batch.offset, end=batch.end, records=lost)
        _lost.inc(lost)
    spool.reported_bytes = max(spool.reported_bytes, batch.end)


async def _in_thread(work: Callable[..., Answer], *arguments: object) -> Answer:
    """Run slow work in a thread. A cancelled call still waits for its end, since files may be closed afterwards."""
    working = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait((working,))
        with suppress(Exception):
            working.result()
        raise


def _message_id(spool: Spool, times: int) -> str:
    """The name of the next batch's message, which was queued that many times before."""
    return f"{spool.name}:{spool.added_bytes}:{times}"


def _message(batch: UsageBatch, message_id: str) -> dramatiq.Message[None]:
    """The batch as a message, which is JSON."""
    args, options = (msgspec.to_builtins(batch),), {"redis_message_id": message_id}
    return dramatiq.Message(
        queue_name=QUEUE, actor_name=ACTOR, args=args, kwargs={}, options=options, message_id=message_id
    )
