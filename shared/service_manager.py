"""Report this process to systemd (sd_notify): ready, stopping, and alive while its event loop runs.

If no service manager listens, because NOTIFY_SOCKET is unset, nothing happens.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog

log = structlog.get_logger()

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"
_TOLD_WITHIN_S = 1.0  # a lost READY would keep a service waiting; a lost ALIVE is followed by another


def notify(state: str) -> None:
    """Send one state. An unreachable service manager is only logged: it would end the service itself."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
            sending.settimeout(0 if state == ALIVE else _TOLD_WITHIN_S)  # a manager that does not read blocks nobody
            sending.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)
    except OSError as cause:
        log.warning("service_manager.unreachable", state=state, cause=f"{type(cause).__name__}: {cause}")


@asynccontextmanager
async def watched(*, for_parent: bool = False) -> AsyncIterator[None]:
    """While the block runs, feed the service manager's watchdog from the event loop.

    Only the service's main process does so, or with `for_parent` a child of it that stands in for it.
    """
    pinging = asyncio.create_task(_ping(os.getppid() if for_parent else os.getpid()))
    try:
        yield
    finally:
        pinging.cancel()
        with suppress(asyncio.CancelledError):
            await pinging


async def _ping(main_process: int) -> None:
    timeout_us = os.environ.get("WATCHDOG_USEC", "")
    if not timeout_us.isdecimal() or os.environ.get("WATCHDOG_PID", str(main_process)) != str(main_process):
        return
    while True:
        notify(ALIVE)
        await asyncio.sleep(int(timeout_us) / 3e6)
