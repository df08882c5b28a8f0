"""The addresses of a network's nodes, and which of them the connections of this process use: docs/decisions/0081."""

import threading
import time
from collections.abc import Callable, Sequence

CONNECT_WITHIN_S = 2.0
"""How long a connection may take to be made if there is another node to try."""

FIRST_AGAIN_AFTER_S = 60.0
"""How long another node than the first is used before the first is tried again."""


class NodeAddresses:
    """The addresses of the nodes of one network, in the order of the settings. Any thread may use them.

    All connections use the same node, so that a transaction is looked for where it was submitted.
    """

    def __init__(self, urls: Sequence[str], now: Callable[[], float] = time.monotonic) -> None:
        assert urls, "a network has a node"
        self._urls, self._now = urls, now
        self._place, self._moved_at = 0, now()
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self._urls)

    @property
    def in_use(self) -> str:
        """The address to connect to. A connection to another one is closed before its next request."""
        with self._lock:
            if self._place and self._now() - self._moved_at >= FIRST_AGAIN_AFTER_S:
                self._place = 0
            return self._urls[self._place]

    def failed(self, url: str) -> None:
        """Note that a node can't be reached, or has not answered: the next one is used, if it is still in use."""
        with self._lock:
            if url == self._urls[self._place]:
                self._place, self._moved_at = (self._place + 1) % len(self._urls), self._now()
