"""`python -m devnet.demo_process COMMAND...` runs a process of the demo, and stops it when the demo ends.

Standard input is a pipe whose other end only the demo holds. The demo closes it to stop the process; if the demo is
killed, even by kill -9, the kernel closes it. If this process is killed as well, Linux sends SIGTERM to the one that it
runs. The exit status is that of the process, or 128 plus the number of the signal that ended it.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

ENDS_WITHIN_S = 12.0
_PR_SET_PDEATHSIG = 1  # of prctl(2)


def main(command: list[str]) -> int:
    """Run the command in a new process group, which has ended when this returns."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the demo gets these too, and stops its parts
    end_with_this = _end_with_parent if sys.platform == "linux" else None
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=end_with_this)
    threading.Thread(target=_stop_with_demo, args=(process,), daemon=True).start()
    status = process.wait()
    _kill(process)  # any processes that it left behind
    return status if status >= 0 else 128 - status


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _stop_with_demo(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of the demo; then send SIGTERM, and SIGKILL after ENDS_WITHIN_S."""
    os.read(sys.stdin.fileno(), 1)  # not through a buffer, whose lock this thread would hold at the end
    process.terminate()
    try:
        process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
