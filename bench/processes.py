"""Work in separate processes, with separate memory. They end with this process, even if it is killed."""

import asyncio
import gc
import re
import resource
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from shared import log

Answer = TypeVar("Answer")


class Parent:
    """The process that started this one. `stop` is set when this process should finish."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.stop = asyncio.Event()

    def tell(self, message: object) -> None:
        """Send something that can be pickled."""
        self._connection.send(message)


class Child:
    """A child process."""

    def __init__(self, process: SpawnProcess, connection: Connection) -> None:
        self._process, self._connection = process, connection

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None, "it has been started"
        return self._process.pid

    async def hear(self) -> Any:
        """Its next message. Raises RuntimeError if it has ended; its error is on standard error."""
        try:
            return await asyncio.to_thread(self._connection.recv)
        except EOFError as cause:
            raise RuntimeError("the process beside this one ended") from cause

    def stop(self) -> None:
        """Ask it to finish."""
        self._connection.send(None)


@asynccontextmanager
async def beside(work: Callable[..., Awaitable[object]], *arguments: object) -> AsyncIterator[Child]:
    """Run `work(parent, *arguments)`, a coroutine function of a module, until it or the block ends."""
    ours, theirs = Pipe()
    process = get_context("spawn").Process(target=_work, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    try:
        yield Child(process, ours)
    finally:
        ours.close()
        await asyncio.to_thread(process.join, _ENDS_WITHIN_S)
        process.kill()
        await asyncio.to_thread(process.join)


async def apart(work: Callable[..., Awaitable[Answer]], *arguments: object) -> Answer:
    """The result of `work(*arguments)`, a coroutine function of a module."""
    async with beside(_answer, work, *arguments) as child:
        answer: Answer = await child.hear()
        return answer


_ENDS_WITHIN_S = 15.0


async def _answer(parent: Parent, work: Callable[..., Awaitable[object]], *arguments: object) -> None:
    parent.tell(await work(*arguments))


def _work(connection: Connection, work: Callable[..., Awaitable[object]], arguments: tuple[object, ...]) -> None:
    """Do the work in a process set up like the indexer's; cancel it when the parent ends or no longer wants it."""
    log.configure("warning", "console")
    gc.disable()

    async def main() -> None:
        parent, loop = Parent(connection), asyncio.get_running_loop()
        working = asyncio.ensure_future(work(parent, *arguments))

        def listen() -> None:
            with suppress(RuntimeError):  # the loop is closed: the work has ended
                try:
                    connection.recv()
                    loop.call_soon_threadsafe(parent.stop.set)
                    connection.recv()
                except (EOFError, OSError):
                    loop.call_soon_threadsafe(working.cancel)

        threading.Thread(target=listen, daemon=True).start()
        await asyncio.wait((working,))
        if not working.cancelled():
            working.result()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def peak_bytes() -> int:
    """The peak memory of this process.

    On Linux getrusage starts from the memory of the parent, since a new process is briefly a copy of it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        peak = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
        assert peak is not None, "Linux reports the peak"
        return int(peak[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_BYTES


MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
"""The unit of getrusage's memory."""
