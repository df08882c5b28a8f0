"""How tests wait and measure time on a machine that may be busy.

A test waits for an event, a state or an answer, and goes on as soon as that is there: PATIENCE_S only ends what would
hang. Where a promise is itself a time, `OwnTime` measures it without the time for which the processes had no core.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 240.0
"""Of one wait; less than the limit of a whole test, so that the failure names what did not happen."""


class OwnTime:
    """Seconds since its start, less those in which this process or the given ones were ready to run and had no core.

    On an idle machine these are the clock's. A process that waits for a server or a timer is not ready to run, so such
    a delay counts however busy the machine is. Linux tells the waits of each thread (`schedstat`: nanoseconds on a
    core, then in the queue); elsewhere nothing is subtracted.
    """

    def __init__(self, *pids: int) -> None:
        """Measure this process, and the given ones with their descendants."""
        self._pids = pids
        self._began = time.monotonic()
        self._before = _queued_s(pids)
        self._queued = dict(self._before)

    @property
    def seconds(self) -> float:
        """Look often enough that no process begins and ends in between."""
        self._queued |= _queued_s(self._pids)
        waited = sum(queued - self._before.get(thread, 0.0) for thread, queued in self._queued.items())
        return time.monotonic() - self._began - waited


def _queued_s(pids: Sequence[int]) -> dict[str, float]:
    """By thread, the seconds that it has been ready to run without a core."""
    found: dict[str, float] = {}
    for pid in {os.getpid(), *_with_descendants(pids)}:
        for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with suppress(OSError, IndexError):
                found[path.parent.name] = int(path.read_text().split()[1]) / 1e9
    return found


def _with_descendants(pids: Sequence[int]) -> Iterator[int]:
    """These processes, their children and so on, from the list that Linux keeps of each thread's children."""
    for pid in pids:
        yield pid
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):
                yield from _with_descendants([int(child) for child in path.read_text().split()])
