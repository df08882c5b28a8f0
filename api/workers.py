"""One process that serves, or several on one socket: their parent replaces a dead one, and ends them all."""

import asyncio
import gc
import multiprocessing
import os
import socket
import tempfile
import time
from multiprocessing.context import SpawnProcess

import structlog
from prometheus_client import multiprocess as prometheus

from api import services
from api.app import Api
from api.routes import ROUTES
from shared import lifecycle
from shared import log as logs
from shared.servers import Servers
from shared.settings import Settings

log = structlog.get_logger()

_PAUSE_S = 1.0  # before a worker that died young is replaced


async def serve(settings: Settings, servers: Servers, listening: socket.socket, stop: asyncio.Event) -> None:
    """Answer on a listening socket until `stop` is set and the requests under way are answered."""
    async with services.opened(settings, servers, stop) as opened:
        spare_collector()
        await Api(opened, ROUTES).serve(listening, stop)


def spare_collector() -> None:
    """Keep Python's collector from walking through all that stands by now, which is never garbage, again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)  # requests leave few cycles behind


async def supervise(
    count: int, settings: Settings, servers: Servers, listening: socket.socket, stop: asyncio.Event
) -> None:
    """Keep `count` workers up until `stop` is set, then until they have finished."""
    with tempfile.TemporaryDirectory(prefix="ledgerline-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # the workers inherit it before they import the client
        async with asyncio.TaskGroup() as workers:
            for _ in range(count):
                workers.create_task(_keep_one(settings, servers, listening, stop))


async def _keep_one(settings: Settings, servers: Servers, listening: socket.socket, stop: asyncio.Event) -> None:
    while not stop.is_set():
        process = multiprocessing.get_context("spawn").Process(target=_work, args=(settings, servers, listening))
        process.start()
        started = time.monotonic()
        try:
            if await _ended(process, stop):
                log.error("worker.died", pid=process.pid, exit_status=process.exitcode)
                if time.monotonic() - started < _PAUSE_S:
                    await lifecycle.sleep(_PAUSE_S, stop)
            else:
                process.terminate()
                await _ended(process, asyncio.Event())
        finally:  # cancelled, where a worker does not end
            if process.is_alive():
                log.warning("worker.killed", pid=process.pid)
                process.kill()
        process.join()
        prometheus.mark_process_dead(process.pid)  # type: ignore[no-untyped-call] # it has no hints


async def _ended(process: SpawnProcess, stop: asyncio.Event) -> bool:
    """Wait until the process ends, or until `stop` is set: then False."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(process.sentinel, ended.set)
    waiting = [asyncio.ensure_future(event.wait()) for event in (ended, stop)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return ended.is_set()
    finally:
        loop.remove_reader(process.sentinel)
        for task in waiting:
            task.cancel()


def _work(settings: Settings, servers: Servers, listening: socket.socket) -> None:
    """The main function of a worker: serve until told to stop, or until the parent is gone."""
    logs.configure(settings.log_level, settings.log_format)

    async def main(stop: asyncio.Event) -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        asyncio.get_running_loop().add_reader(parent.sentinel, stop.set)
        await serve(settings, servers, listening, stop)

    raise SystemExit(lifecycle.run(main))
