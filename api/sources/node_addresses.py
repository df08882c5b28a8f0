"""The addresses of a network's nodes, and which of them the connections of this process use: docs/decisions/0080."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from api.http.turns import FairPool
from shared import splits, sql
from shared.network import by_id

CONNECT_WITHIN_S = 2.0
"""How long a connection may take to be made if there is another node to try."""

AGAIN_AFTER_S = 60.0
"""How long another node than the preferred one is used before that is tried again."""

LOOK_EVERY_S = 5.0

_sql = sql.beside(__file__)


class NodeAddresses:
    """The addresses of the nodes of one network, in the order of the settings. Any thread may use them.

    The first one is preferred until `prefer` names another.

    All connections use the same node, so that a transaction is looked for where it was submitted.
    """

    def __init__(self, urls: Sequence[str], now: Callable[[], float] = time.monotonic) -> None:
        assert urls, "a network has a node"
        self._urls, self._now = urls, now
        self._place = self._preferred = 0
        self._moved_at = now()
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self._urls)

    @property
    def in_use(self) -> str:
        """The address to connect to. A connection to another one is closed before its next request."""
        with self._lock:
            if self._place != self._preferred and self._now() - self._moved_at >= AGAIN_AFTER_S:
                self._place = self._preferred
            return self._urls[self._place]

    def prefer(self, number: int) -> None:
        """Use the node with this number, its place from 1, whenever it can be reached."""
        with self._lock:
            if number - 1 != self._preferred:
                self._place = self._preferred = number - 1

    def failed(self, url: str) -> None:
        """Note that a node can't be reached, or has not answered: the next one is used, if it is still in use."""
        with self._lock:
            if url == self._urls[self._place]:
                self._place, self._moved_at = (self._place + 1) % len(self._urls), self._now()


class _Reported(msgspec.Struct, frozen=True):
    network_id: int
    nodes: str


_reported = _sql.query("reported", _Reported)


async def prefer_the_followed(pool: FairPool, addresses: Mapping[str, NodeAddresses]) -> None:
    """Prefer the node that the indexer of each network follows, if both have as many nodes: its chain is the index."""
    async with pool.acquire() as db:
        rows = await _reported.all(db)
    for row in rows:
        nodes = splits.decode_nodes(row.nodes)
        ours = addresses.get(by_id[row.network_id].name)
        if ours is not None and ours.count == len(nodes):
            for node in nodes:
                if node.state == "followed":
                    ours.prefer(node.number)


async def follow_the_indexers(pool: FairPool, addresses: Mapping[str, NodeAddresses]) -> None:
    """The same again and again, until cancelled."""
    while True:
        await prefer_the_followed(pool, addresses)
        await asyncio.sleep(LOOK_EVERY_S)
