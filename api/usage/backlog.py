"""The backlog of usage: the records that wait in the spools of all processes on this machine, and in the queue."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import asyncpg
import msgspec
import structlog
from prometheus_client.core import GaugeMetricFamily

from api.sources import clock, held_snapshots
from api.usage.queue import SPOOL_KEPT_S, Queue, Unacknowledged, marks
from api.usage.spool import RECORD, Spool, spools_in

log = structlog.get_logger()

_ANSWER_WITHIN_S = 3.0
_READ_BYTES = 1_000 * RECORD.size


class _Uncounted(msgspec.Struct):
    """The records in the spools of a folder that are not in the usage tables."""

    waiting_bytes: int = 0
    oldest_at: float | None = None  # since 1970
    unusable_files: int = 0


class Measured(msgspec.Struct, frozen=True):
    """Usage that waits; unknown figures are None.

    `queued` batches are in the queue and take `queued_bytes`; `waiting_bytes` are spooled and not in the usage tables,
    the oldest of them for `lag_s` seconds. `oldest_snapshot_s` is the age of the oldest snapshot in the database.
    """

    queued: int | None
    queued_bytes: int | None
    waiting_bytes: int | None
    lag_s: float | None
    unusable_files: int | None
    oldest_snapshot_s: float | None


class Backlog:
    """Compares the spools of all processes in a folder with the usage tables."""

    def __init__(self, folder: Path, partner: asyncpg.Pool, queue: Queue) -> None:
        self._folder, self._partner, self._queue = folder, partner, queue
        self._marks: Mapping[str, int] | None = None  # as last read; used while Postgres is unreachable

    async def measured(self) -> Measured:
        """The current figures."""
        queued, uncounted, snapshot_s = await asyncio.gather(self._queued(), self._find(), self._oldest_snapshot_s())
        messages, size_bytes = (None, None) if queued is None else (queued.messages, queued.size_bytes)
        if uncounted is None:
            return Measured(messages, size_bytes, None, None, None, snapshot_s)
        lag_s = 0.0 if uncounted.oldest_at is None else max(0.0, clock.now_us() / 1e6 - uncounted.oldest_at)
        return Measured(messages, size_bytes, uncounted.waiting_bytes, lag_s, uncounted.unusable_files, snapshot_s)

    async def _find(self) -> _Uncounted | None:
        try:
            await self._read_marks([path.stem for path in spools_in(self._folder)])
            return None if self._marks is None else await asyncio.to_thread(_find, self._folder, self._marks)
        except OSError as cause:
            log.warning("metrics.without_spools", cause=str(cause))
            return None

    async def _read_marks(self, names: list[str]) -> None:
        try:
            async with asyncio.timeout(_ANSWER_WITHIN_S), self._partner.acquire() as db:
                self._marks = {mark.spool: mark.next_offset for mark in await marks.all(db, names, SPOOL_KEPT_S)}
        except Exception as cause:  # noqa: BLE001 - metrics must not fail while something is wrong
            log.warning("metrics.without_usage_table", cause=f"{type(cause).__name__}: {cause}")

    async def _oldest_snapshot_s(self) -> float | None:
        try:
            async with asyncio.timeout(_ANSWER_WITHIN_S), self._partner.acquire() as db:
                return await held_snapshots.oldest_s(db)
        except Exception as cause:  # noqa: BLE001 - as above
            log.warning("metrics.without_snapshots", cause=f"{type(cause).__name__}: {cause}")
            return None

    async def _queued(self) -> Unacknowledged | None:
        try:
            async with asyncio.timeout(_ANSWER_WITHIN_S):
                return await asyncio.to_thread(self._queue.unacknowledged)
        except Exception as cause:  # noqa: BLE001 - as above
            log.warning("metrics.without_queue", cause=f"{type(cause).__name__}: {cause}")
            return None


def gauges(measured: Measured) -> Iterator[GaugeMetricFamily]:
    """The figures for Prometheus; unknown ones are omitted."""
    for name, text, value in (
        ("usage_lag_seconds", "Age of the oldest request that is not in the usage tables", measured.lag_s),
        ("usage_waiting_bytes", "Spooled bytes that are not in the usage tables", measured.waiting_bytes),
        ("usage_unusable_files", "Files in the usage folder that are not readable spools", measured.unusable_files),
        ("usage_queued", "Batches that wait for the aggregator", measured.queued),
        ("usage_queued_bytes", "Their size in Valkey", measured.queued_bytes),
        ("oldest_snapshot_seconds", "Age of the oldest snapshot in the database", measured.oldest_snapshot_s),
    ):
        if value is not None:
            yield GaugeMetricFamily(f"ledgerline_{name}", text, value=value)


def _find(folder: Path, marks: Mapping[str, int]) -> _Uncounted:
    """Measure every spool of a folder. A spool that is newer than the marks has none: all of it waits."""
    uncounted = _Uncounted()
    for path in spools_in(folder):
        try:
            spool = Spool.look_at(path)
        except OSError:
            uncounted.unusable_files += 1
            continue
        if spool is None:
            continue
        try:
            mark = marks.get(spool.name, 0)
            uncounted.unusable_files += mark > spool.size_bytes
            uncounted.waiting_bytes += max(spool.size_bytes - mark, 0)
            at = _oldest_at(spool, mark)
            if at is not None:
                uncounted.oldest_at = at if uncounted.oldest_at is None else min(uncounted.oldest_at, at)
        except OSError:
            uncounted.unusable_files += 1
        finally:
            spool.close()
    return uncounted


def _oldest_at(spool: Spool, offset: int) -> float | None:
    """When the first whole record from an offset on was written. Raises OSError."""
    for begin in range(offset, spool.size_bytes, _READ_BYTES):
        record = next(spool.records(begin, min(spool.size_bytes, begin + _READ_BYTES)), None)
        if record is not None:
            return record.at_us / 1e6
    return None
