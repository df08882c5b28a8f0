"""Start, wait and stop: the same for every long-running process."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import redis.exceptions
import structlog
import uvloop

from shared import database, service_manager

log = structlog.get_logger()
Answer = TypeVar("Answer")

STOP_WITHIN_S = 7.0  # of the 10 s that an operator may count on; closing connections takes part of the rest
_CLOSE_WITHIN_S = 1.5
MAX_PAUSE_S = 5.0
WRONG = 2
"""The exit status of a process that can't start, because a setting, an argument or a server is wrong."""

REMIND_EVERY_S = 10.0

UNREACHABLE: tuple[type[Exception], ...] = (
    *database.UNREACHABLE,
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
)
"""Errors of a server, Postgres or Valkey, that is unreachable, starting, stopping, full or a standby."""

UNUSABLE: tuple[type[Exception], ...] = (*database.UNUSABLE, redis.exceptions.ResponseError)
"""Errors of a server without the database, role, password or privilege. A service may start before they are created."""

WAITED_FOR = (*UNREACHABLE, *UNUSABLE)
"""Errors after which a long-running process retries at its start."""


class Stopped(Exception):
    """A stop was requested during a wait. For a long-running process this is a normal end."""


def run(main: Callable[[asyncio.Event], Awaitable[int | None]], *, once: bool = False) -> int:
    """Run `main` on a uvloop and return the exit status of the process.

    SIGTERM and SIGINT set the event; `main` then finishes its work and returns. A second SIGINT, or STOP_WITHIN_S after
    the first signal, cancels it: uncommitted work is lost, as with kill -9. With `once`, a stop before the end counts
    as failure.
    """

    async def supervised() -> int:
        stop = asyncio.Event()
        work = asyncio.ensure_future(main(stop))
        loop = asyncio.get_running_loop()

        def asked(received: signal.Signals) -> None:
            if stop.is_set():
                if received is signal.SIGINT:
                    work.cancel()
                return
            log.info("process.stopping", signal=received.name)
            service_manager.notify(service_manager.STOPPING)
            stop.set()
            loop.call_later(STOP_WITHIN_S, work.cancel)
            # NOTE: a thread, since the loop may not end in time: a frozen server delays even the cleanup of a cancelled
            # task. After the loop, Python waits for executors, one of which may be importing packages.
            last = threading.Timer(STOP_WITHIN_S + _CLOSE_WITHIN_S, os._exit, (int(once),))
            last.daemon = True
            last.start()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, asked, number)
        try:
            async with service_manager.watched():
                return await work or 0
        except Stopped:
            pass
        except asyncio.CancelledError:
            if not stop.is_set():
                raise
            log.warning("process.cut_short", after_s=STOP_WITHIN_S)
        if once:
            print("stopped before it was done", file=sys.stderr)
        return int(once)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(supervised())


async def wait_for(
    what: str,
    attempt: Callable[[], Awaitable[Answer]],
    stop: asyncio.Event,
    retry_on: tuple[type[Exception], ...] = UNREACHABLE,
) -> Answer:
    """Retry `attempt()` until it succeeds, after pauses of 0.1 s at first and MAX_PAUSE_S at most.

    Logs the first failure, then one every REMIND_EVERY_S. Raises Stopped once `stop` is set, and any error that is not
    in `retry_on`.
    """
    pause_s, outage = 0.1, Outage(what)
    while True:
        try:
            answer = await unless_stopped(attempt(), stop)
        except retry_on as cause:
            outage.report(cause)
        else:
            outage.end()
            return answer
        await sleep(pause_s, stop)
        if stop.is_set():
            raise Stopped(what)
        pause_s = min(pause_s * 2, MAX_PAUSE_S)


class Outage:
    """Logs that this process waits for something: at first, every REMIND_EVERY_S, and when the wait ends."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._logged_at: float | None = None

    def report(self, cause: Exception, *, traceback: bool = False) -> None:
        """Note a failed attempt."""
        now = time.monotonic()
        if self._logged_at is None or now - self._logged_at >= REMIND_EVERY_S:
            fault: dict[str, Any] = {"exc_info": cause} if traceback else {}
            log_waiting(self._what, cause=f"{type(cause).__name__}: {cause}", **fault)
            self._logged_at = now

    def end(self) -> None:
        """Note a successful attempt."""
        if self._logged_at is not None:
            log.info("reached", **{"for": self._what})
            self._logged_at = None


def log_waiting(what: str, *, level: int = logging.WARNING, **details: object) -> None:
    """Log that this process waits for something, in the words that operators search for: `waiting for=...`."""
    log.log(level, "waiting", **{"for": what}, **details)


async def sleep(seconds: float, stop: asyncio.Event) -> None:
    """Pause, or return early when `stop` is set."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass


async def unless_stopped(
    work: Awaitable[Answer], stop: asyncio.Event, on_stop: Callable[[], None] = lambda: None
) -> Answer:
    """The result of `work`. Raises Stopped if `stop` is set first: then calls `on_stop` and cancels `work`."""
    stopped = object()

    async def stopping() -> object:
        await stop.wait()
        on_stop()
        return stopped

    first = await first_of(work, stopping())
    if first is stopped:
        raise Stopped
    answer: Answer = first
    return answer


def fail(message: object) -> int:
    """Print one line on standard error; returns the exit status of a process that can't start."""
    print(message, file=sys.stderr)
    return WRONG


def consume_error(ended: asyncio.Future[Any]) -> None:
    """Retrieve the error of a task that nobody may be left to await, so that asyncio does not log it."""
    if not ended.cancelled():
        ended.exception()


async def first_of(*works: Awaitable[Any]) -> Any:
    """Run `works` concurrently until the first ends; cancel the others, and return its result or raise its error.

    If several end at the same time, an error takes precedence, then the order of the arguments.
    """
    running = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        done = [work for work in running if work.done()]
        failed = [work for work in done if work.cancelled() or work.exception() is not None]
        return (*failed, *done)[0].result()
    finally:
        for work in running:
            work.cancel()
        await asyncio.gather(*running, return_exceptions=True)
