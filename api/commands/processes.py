"""One serving process, or several on one socket under a parent that replaces dead and hung ones and stops them all."""

import asyncio
import gc
import multiprocessing
import os
import socket
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import structlog
from prometheus_client import multiprocess as prometheus
from prometheus_client import values

from api import services
from api.operate import metrics_folder
from api.routes import EVERY_ROUTE
from api.server.app import Api
from api.usage import queue
from shared import lifecycle, tasks
from shared import log as logs
from shared.servers import Servers
from shared.settings import Settings

log = structlog.get_logger()

_PAUSE_S = 1.0  # before another try if a process can't be started, or ends within this time
_BEAT_EVERY_S, _LOOK_EVERY_S = 5.0, 10.0
_HUNG_AFTER = 3  # looks in a row without a beat; not a time, since the whole machine may have been suspended


async def serve(settings: Settings, servers: Servers, listening: socket.socket, stop: asyncio.Event) -> None:
    """Answer requests on a listening socket until `stop` is set and requests in progress are answered."""
    endpoints = {route.number: route.name for route in EVERY_ROUTE}
    async with services.opened(settings, servers, endpoints, stop) as opened:
        freeze_startup_objects()
        await Api(opened, EVERY_ROUTE).serve(listening, stop)


def freeze_startup_objects() -> None:
    """Exempt the objects that exist now from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)  # requests leave few cycles behind


async def supervise(
    count: int, settings: Settings, servers: Servers, listening: socket.socket, stop: asyncio.Event
) -> None:
    """Run `count` API processes until `stop` is set and they have finished. Raises ServersError."""
    queue.refuse_unwritable(settings.data_dir)  # once, instead of in each process that is replaced
    with metrics_folder.opened() as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # the processes inherit it before they import the client
        values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call] # this process has imported it
        tasks.count_anew()
        await asyncio.gather(*(_keep_one(settings, servers, listening, stop) for _ in range(count)))


async def _keep_one(settings: Settings, servers: Servers, listening: socket.socket, stop: asyncio.Event) -> None:
    while not stop.is_set():
        try:
            await _run_one(settings, servers, listening, stop)
        except Exception:
            log.exception("api_process.failed", again_in_s=_PAUSE_S)  # the machine may lack memory for a process now
            await lifecycle.sleep(_PAUSE_S, stop)


async def _run_one(settings: Settings, servers: Servers, listening: socket.socket, stop: asyncio.Event) -> None:
    """Run one API process until it ends or `stop` is set."""
    spawning = multiprocessing.get_context("spawn")
    beats, beating = spawning.Pipe(duplex=False)
    process = spawning.Process(target=_main, args=(settings, servers, listening, beating))
    with beating:
        process.start()
    started = time.monotonic()
    ended = False
    watching = asyncio.create_task(_kill_if_hung(process, beats))
    try:
        if ended := await _ended(process, stop):
            log.error("api_process.died", pid=process.pid, exit_status=process.exitcode)
            if time.monotonic() - started < _PAUSE_S:
                await lifecycle.sleep(_PAUSE_S, stop)
        else:
            process.terminate()
            ended = await _ended(process, asyncio.Event())
    finally:  # this task is cancelled if the process takes too long to end
        watching.cancel()
        beats.close()
        if not ended:
            log.warning("api_process.killed", pid=process.pid)
            process.kill()
    process.join()
    prometheus.mark_process_dead(process.pid)  # type: ignore[no-untyped-call] # it has no hints


async def _ended(process: SpawnProcess, stop: asyncio.Event) -> bool:
    """Wait until the process ends or `stop` is set; False if it has not ended."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(process.sentinel, ended.set)
    try:
        await lifecycle.first_of(ended.wait(), stop.wait())
        return ended.is_set()
    finally:
        loop.remove_reader(process.sentinel)


async def _kill_if_hung(process: SpawnProcess, beats: Connection) -> None:
    """Wait until an API process has not beaten for `_HUNG_AFTER` looks in a row, then kill it."""
    missed = 0
    while missed < _HUNG_AFTER:
        await asyncio.sleep(_LOOK_EVERY_S)
        missed += 1
        with suppress(EOFError):  # it has ended
            while beats.poll():
                beats.recv_bytes()
                missed = 0
    log.error("api_process.hung", pid=process.pid, looks_without_beat=missed, look_every_s=_LOOK_EVERY_S)
    process.kill()


async def _beat(beating: Connection) -> None:
    """Report to the parent repeatedly that this event loop is running."""
    os.set_blocking(beating.fileno(), False)
    while True:
        with suppress(OSError):  # the parent is suspended and the pipe is full, or it has gone
            beating.send_bytes(b"")
        await asyncio.sleep(_BEAT_EVERY_S)


def _main(settings: Settings, servers: Servers, listening: socket.socket, beating: Connection) -> None:
    """The main function of an API process: serve until a stop signal, or until the parent has gone."""
    logs.configure(settings.log_level, settings.log_format)
    logs.started("api process")

    async def main(stop: asyncio.Event) -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        asyncio.get_running_loop().add_reader(parent.sentinel, stop.set)
        beats = asyncio.create_task(_beat(beating))
        try:
            await serve(settings, servers, listening, stop)
        finally:
            beats.cancel()

    raise SystemExit(lifecycle.run(main))
