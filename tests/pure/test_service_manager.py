"""Messages to a service manager; one that does not listen stops no process."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from shared import service_manager


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A service manager's socket, which reads only when asked."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listening


def test_a_manager_that_does_not_read_is_logged_and_not_awaited(manager: socket.socket) -> None:
    with capture_logs() as logs:
        for _ in range(2_000):
            service_manager.notify(service_manager.ALIVE)
    assert manager.recv(100) == b"WATCHDOG=1"
    assert {line["event"] for line in logs} == {"service_manager.unreachable"}


def test_without_a_manager_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    with capture_logs() as logs:
        service_manager.notify(service_manager.READY)
    assert logs == []


@pytest.mark.parametrize(
    ("main_process", "for_parent", "fed"), [("self", False, True), ("other", False, False), ("parent", True, True)]
)
async def test_only_the_main_process_or_its_deputy_feeds_the_watchdog(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch, main_process: str, for_parent: bool, fed: bool
) -> None:
    pids = {"self": os.getpid(), "parent": os.getppid(), "other": 1}
    monkeypatch.setenv("WATCHDOG_USEC", "30000")
    monkeypatch.setenv("WATCHDOG_PID", str(pids[main_process]))
    async with service_manager.watched(for_parent=for_parent):
        if fed:
            assert await asyncio.to_thread(manager.recv, 100) == b"WATCHDOG=1"
        else:
            await asyncio.sleep(0)
    manager.setblocking(False)
    if not fed:
        with pytest.raises(BlockingIOError):
            manager.recv(100)
