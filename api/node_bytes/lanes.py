"""Connections to one node for one purpose, in turns by credential: each serves one reading at a time."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

import structlog

from api import errors
from api.errors import Refusal
from api.http.turns import Turns
from api.node_bytes.connection import Connection, Unreadable
from api.sources.node_addresses import NodeAddresses
from api.sources.nodes import NodeAway, NodeRefused

log = structlog.get_logger()

MAX_REASON_LENGTH = 200
"""Characters of a node's reason that refusals and logs repeat."""

Found = TypeVar("Found")


class ReadingRefused(NodeAway):
    """The node answered with an error: its reason, at most MAX_REASON_LENGTH characters, and its code."""


def not_read(cause: NodeAway) -> Refusal:
    """The refusal of a request whose reading failed. Addresses of nodes, which other causes contain, stay inside."""
    if isinstance(cause, Unreadable):
        return errors.node_not_read("its answer can't be read")
    return errors.node_not_read(str(cause) if isinstance(cause, ReadingRefused) else "it does not answer")


class Lanes:
    """At most `most` readings at a time, one of them with one credential."""

    def __init__(self, network: str, addresses: NodeAddresses, most: int, readings: str) -> None:
        """`readings` is what refusals call them."""
        self._network = network
        self._connections = [Connection(addresses) for _ in range(most)]
        self._turns = Turns(deque(self._connections), most, 1, readings)

    async def read(
        self,
        key: Hashable,
        within_s: float,
        work: Callable[[Connection], Awaitable[Found]],
        *,
        turn_within_s: float | None = None,
    ) -> Found:
        """The result of `work` on a connection, in a turn of the credential `key`.

        It is begun again if the connection was lost while it was idle. Raises Refusal if there is no turn within
        `turn_within_s` (by default as in Turns), NodeAway if the work takes longer than `within_s`, ReadingRefused for
        a NodeRefused, and what else `work` raises.
        """
        async with self._turns.turn(key, within_s=turn_within_s) as idle:
            connection = idle.popleft()
            try:
                try:
                    async with asyncio.timeout(within_s):
                        return await self._on(connection, work)
                except TimeoutError as cause:
                    connection.gave_no_answer()
                    raise NodeAway(f"no answer within {within_s:g} s") from cause
                except NodeRefused as refused:
                    reason = str(refused)[:MAX_REASON_LENGTH]
                    raise ReadingRefused(f"it refused to be read: {reason} (code {refused.code})") from refused
            except NodeAway as cause:
                log.warning("node.away", node=f"node {self._network}", cause=str(cause))
                raise
            finally:
                idle.append(connection)

    async def close(self) -> None:
        for connection in self._connections:
            await connection.drop()

    async def _on(self, connection: Connection, work: Callable[[Connection], Awaitable[Found]]) -> Found:
        await connection.leave_former_node()
        was_open = connection.is_open
        try:
            return await self._whole(connection, work)
        except NodeAway:
            if not was_open:
                raise
            return await self._whole(connection, work)

    async def _whole(self, connection: Connection, work: Callable[[Connection], Awaitable[Found]]) -> Found:
        """The result of `work`; a connection on which it did not end is dropped, with the answers on their way."""
        try:
            return await work(connection)
        except BaseException:
            await connection.drop()
            raise
