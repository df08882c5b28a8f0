"""Background tasks that are restarted after any failure.

A task that ends, by an exception or by returning, is logged with its cause, counted, reported by `failing`, and
restarted after a pause. Tasks that end by themselves or with their caller, and those that feed the watchdog, are plain
asyncio tasks instead.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import structlog
from prometheus_client import Counter

from shared.lifecycle import WAITED_FOR

log = structlog.get_logger()

FIRST_PAUSE_S, MAX_PAUSE_S = 0.2, 3.0
SOUND_AFTER_S = 10.0
"""How long a restarted task must run before it no longer counts as failing and its pause is reset."""

_failures = Counter("ledgerline_task_failures", "Background tasks that ended and were restarted.", ["task"])


class TaskFailure(msgspec.Struct, frozen=True):
    """A task that ended and has not run for SOUND_AFTER_S since. `cause` may quote the error message of a server."""

    task: str
    cause: str
    since: float  # of the first failure in a row, on the monotonic clock


class _Task:
    """One background task. Whether it is failing is computed on request."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failure: TaskFailure | None = None
        self.running_since: float | None = None

    def current_failure(self) -> TaskFailure | None:
        """The last failure, until the task has run for SOUND_AFTER_S."""
        sound = self.running_since is not None and time.monotonic() - self.running_since >= SOUND_AFTER_S
        return None if sound else self.failure


_tasks: list[_Task] = []


def failing() -> list[TaskFailure]:
    """The background tasks of this process that are down or were restarted less than SOUND_AFTER_S ago."""
    return [failure for task in _tasks if (failure := task.current_failure()) is not None]


def count_anew() -> None:
    """Count failures from 0 where the client of Prometheus keeps values now, after that place has changed."""
    _failures.clear()
    for task in _tasks:
        _failures.labels(task.name)


@asynccontextmanager
async def background(name: str, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run `work` in the background until the block ends; restart it after a growing pause each time it ends early.

    No exception of `work` reaches the block.
    """
    task = _Task(name)
    _failures.labels(name)
    running = asyncio.create_task(_keep_running(task, work), name=name)
    _tasks.append(task)
    try:
        yield
    finally:
        _tasks.remove(task)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _keep_running(task: _Task, work: Callable[[], Awaitable[None]]) -> None:
    this, pause_s = asyncio.current_task(), FIRST_PAUSE_S
    assert this is not None
    while True:
        began = task.running_since = time.monotonic()
        fault: BaseException | None = None
        try:
            await work()
            cause = "it returned"
        except asyncio.CancelledError as cancelled:
            cause = f"CancelledError: {cancelled}"  # NOTE: a library cancelled something that `work` awaited
        except Exception as raised:  # noqa: BLE001 - the task is restarted after any error
            fault, cause = raised, f"{type(raised).__name__}: {raised}"
        if this.cancelling():
            return
        now = time.monotonic()
        if now - began >= SOUND_AFTER_S:
            pause_s, task.failure = FIRST_PAUSE_S, None
        since = now if task.failure is None else task.failure.since
        task.running_since, task.failure = None, TaskFailure(task.name, cause, since)
        _failures.labels(task.name).inc()
        known = fault is None or isinstance(fault, WAITED_FOR)  # an outage needs no traceback
        log.error("task.failed", task=task.name, cause=cause, again_in_s=pause_s, exc_info=None if known else fault)
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, MAX_PAUSE_S)
