"""The end of every long-running process, and its wait for servers that are not up yet."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from shared import lifecycle
from tests.patience import PATIENCE_S

CHECKOUT = Path(__file__).parents[2]

PROGRAM = """
import asyncio, sys
from shared import lifecycle, log
log.configure("info", "json")
lifecycle.STOP_WITHIN_S = 1.0
async def main(stop):
    print("ready", flush=True)
    {body}
sys.exit(lifecycle.run(main{once}))
"""

NEVER_STOPS = "await asyncio.Event().wait()"
WAITS = """
    async def refused():
        raise ConnectionRefusedError("nobody there")
    await lifecycle.wait_for("postgres", refused, stop)
"""


def started(body: str, once: str = "") -> subprocess.Popen[str]:
    """A process that runs `body` as its main function, after its start."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(body=body, once=once)],
        cwd=CHECKOUT,
        env={"PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_it_finish_and_the_status_is_0(number: signal.Signals) -> None:
    process = started("await stop.wait(); await asyncio.sleep(0.2); print('finished')")
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (0, "finished\n")
    assert [json.loads(line)["event"] for line in err.splitlines()] == ["process.stopping"]


def test_work_that_does_not_stop_is_cancelled_with_status_0() -> None:
    process = started(NEVER_STOPS)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert [json.loads(line)["event"] for line in err.splitlines()] == ["process.stopping", "process.cut_short"]


def test_work_that_cannot_be_cancelled_is_abandoned() -> None:
    """Such as the closing of a connection to a frozen server."""
    process = started(
        """
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
"""
    )
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


@pytest.mark.parametrize("body", [WAITS, NEVER_STOPS])
def test_a_command_that_was_stopped_has_failed(body: str) -> None:
    process = started(body, once=", once=True")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert err.splitlines()[-1] == "stopped before it was done"


def test_a_second_ctrl_c_does_not_wait() -> None:
    process = started(
        "lifecycle.STOP_WITHIN_S = 3600; await stop.wait(); print('stopping', flush=True); " + NEVER_STOPS
    )
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == "stopping\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


def test_a_process_that_waits_for_a_server_can_be_stopped() -> None:
    process = started(WAITS)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert "Traceback" not in err


def test_the_status_is_that_of_main_and_errors_propagate() -> None:
    process = started("return 3")
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3
    process = started("raise RuntimeError('ours')")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "RuntimeError: ours" in err


async def test_waiting_is_logged_immediately_and_not_with_every_attempt() -> None:
    attempts = 0

    async def fourth_time() -> str:
        nonlocal attempts
        attempts += 1
        if attempts < 4:
            raise ConnectionRefusedError("nobody there")
        return "here"

    with capture_logs() as logs:
        assert await lifecycle.wait_for("valkey", fourth_time, asyncio.Event()) == "here"
    assert logs == [
        {
            "event": "waiting",
            "log_level": "warning",
            "for": "valkey",
            "cause": "ConnectionRefusedError: nobody there",
        },
        {"event": "reached", "log_level": "info", "for": "valkey"},
    ]


async def test_waiting_is_logged_again_at_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "REMIND_EVERY_S", 0.0)
    stop = asyncio.Event()
    attempts = 0

    async def refused() -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 3:
            stop.set()
        raise OSError

    with capture_logs() as logs, pytest.raises(lifecycle.Stopped):
        await lifecycle.wait_for("ogmios", refused, stop)
    assert [line["event"] for line in logs] == ["waiting"] * len(logs)
    assert len(logs) >= 2


async def test_an_attempt_that_hangs_ends_with_the_process() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.1, stop.set)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(lifecycle.Stopped):
            await lifecycle.wait_for("postgres", lambda: asyncio.sleep(3_600), stop)


async def test_a_bug_is_not_retried() -> None:
    async def wrong() -> None:
        raise KeyError("ours")

    with pytest.raises(KeyError):
        await lifecycle.wait_for("postgres", wrong, asyncio.Event())
