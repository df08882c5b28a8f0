"""Starting, waiting and stopping, the same for every long-running process."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg
import redis.exceptions
import structlog
import uvloop

log = structlog.get_logger()
Answer = TypeVar("Answer")

STOP_WITHIN_S = 7.0  # of the 10 s that contract.md grants; closing what is open takes some of the rest
_CLOSE_WITHIN_S = 1.5
LONGEST_PAUSE_S = 5.0
REMIND_EVERY_S = 10.0

# What a server that is away, starting or stopping looks like from here.
UNREACHABLE: tuple[type[Exception], ...] = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InternalClientError,  # a connection used between the server's last words and its end
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
)

# What one looks like that answers, but has no such database, role, password or right: not yet, where processes start in
# any order.
UNUSABLE: tuple[type[Exception], ...] = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.UndefinedObjectError,  # a parameter of the address that Postgres does not know
    redis.exceptions.ResponseError,
)

WAITED_FOR = (*UNREACHABLE, *UNUSABLE)
"""What a long-running process waits for at its start."""


class Stopped(Exception):
    """The process was asked to stop while it waited: an ordinary end for one that runs until then."""


def run(main: Callable[[asyncio.Event], Awaitable[int | None]], *, once: bool = False) -> int:
    """Run `main` on a uvloop and return the exit status of the process.

    SIGTERM and SIGINT set the event, on which main finishes what it holds and returns. A second SIGINT, or
    STOP_WITHIN_S without a return, cancels it: what has no commit by then is lost, as with kill -9. A command that does
    its work `once` has failed if it was stopped before that.
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
            stop.set()
            loop.call_later(STOP_WITHIN_S, work.cancel)
            # NOTE: a server that is frozen, not gone, may hold up even what a cancelled task does last.
            loop.call_later(STOP_WITHIN_S + _CLOSE_WITHIN_S, os._exit, int(once))

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, asked, number)
        try:
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
    """Await `attempt()` again and again until it succeeds, pausing 0.1 s at first and LONGEST_PAUSE_S at most.

    The first failure and then one each REMIND_EVERY_S is logged with what is waited for and why. Raises Stopped once
    `stop` is set, and at once whatever is not in `retry_on`.
    """
    pause_s, told_at = 0.1, None
    while True:
        try:
            answer = await _unless_stopped(attempt(), stop)
        except retry_on as cause:
            now = time.monotonic()
            if told_at is None or now - told_at >= REMIND_EVERY_S:
                log.warning("waiting", **{"for": what}, cause=f"{type(cause).__name__}: {cause}")
                told_at = now
        else:
            if told_at is not None:
                log.info("reached", what=what)
            return answer
        await sleep(pause_s, stop)
        if stop.is_set():
            raise Stopped(what)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


async def sleep(seconds: float, stop: asyncio.Event) -> None:
    """Pause, but return at once when `stop` is set."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass


async def _unless_stopped(work: Awaitable[Answer], stop: asyncio.Event) -> Answer:
    """The result of `work`, which is cancelled when `stop` is set first."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise Stopped
    finally:
        stopping.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))


def fail(message: object) -> int:
    """One line on standard error; returns the exit status for a process that can't start as it was asked to."""
    print(message, file=sys.stderr)
    return 2
