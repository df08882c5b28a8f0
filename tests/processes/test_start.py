"""A process that is ended while it starts."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S


@pytest.mark.parametrize("command", [["indexer", "run", "--network", "preview"], ["api"]])
def test_sigterm_during_the_imports_ends_a_process_in_good_order(
    command: list[str], environment: dict[str, str]
) -> None:
    """At any time after the first statement of the program. Earlier, the interpreter itself ends with -15."""
    waits_for_ogmios = {**environment, "OGMIOS_URL_PREVIEW": "ws://127.0.0.1:9"}
    for after_s in (0, 0.15, 0.4, 0.7):
        process = subprocess.Popen([sys.executable, "-m", *command], env=waits_for_ogmios, stderr=subprocess.PIPE)
        _wait_until_sigterm_is_caught(process.pid)
        time.sleep(after_s)
        process.terminate()
        _, stderr = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, (after_s, stderr)


def _wait_until_sigterm_is_caught(pid: int) -> None:
    """Wait for SIGTERM in the kernel's mask of caught signals."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        (caught,) = re.findall(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        if int(caught, 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.005)
    raise AssertionError("the process never installed a handler for SIGTERM")
