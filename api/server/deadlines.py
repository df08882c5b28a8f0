"""The longest time that a request may take."""

import asyncio
import time
from typing import Any

MAX_REQUEST_S = 30.0
_LOOK_EVERY_S = 1.0


class Deadlines:
    """Limits each request to MAX_REQUEST_S. Cheaper than `asyncio.timeout`, which sets a timer for each request.

    The task of a request enters it; raises TimeoutError, up to _LOOK_EVERY_S late.
    """

    def __init__(self) -> None:
        self._under_way: dict[asyncio.Task[Any], float] = {}  # oldest first
        self._overdue: set[asyncio.Task[Any]] = set()

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "requests are answered in tasks"
        self._under_way[task] = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        task = asyncio.current_task()
        assert task is not None, "the same task has entered"
        del self._under_way[task]
        if task in self._overdue:
            self._overdue.remove(task)
            if task.uncancel() == 0 and kind is asyncio.CancelledError:
                raise TimeoutError

    async def watch(self) -> None:
        """Cancel overdue requests, until cancelled itself."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            latest = time.monotonic() - MAX_REQUEST_S
            for task, started in self._under_way.items():
                if started > latest:
                    break
                if task not in self._overdue:
                    self._overdue.add(task)
                    task.cancel()
