"""The indexer at the tip of a node that is controlled block by block."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from bench.index import Playback, follow_node
from indexer.ogmios import connection as ogmios
from indexer.sync.progress import Progress
from shared import database
from shared.ledger import Point
from shared.network import MAINNET


class TipNode(Playback):
    """A node that sends the given messages."""

    def __init__(self, chain: Path) -> None:
        super().__init__(chain, 0, 0)
        self.told: asyncio.Queue[ogmios.Message] = asyncio.Queue()
        self.asked = asyncio.Event()  # for blocks

    async def messages(self) -> AsyncGenerator[ogmios.Message, None]:
        self.asked.set()
        while True:
            yield await self.told.get()


class Live:
    """A live index that follows a TipNode."""

    def __init__(self, node: TipNode, writer: asyncpg.Connection, reader: asyncpg.Connection) -> None:
        self.writer = writer  # in use: only for its process id
        self._node, self._moved, self._progress = node, asyncio.Event(), Progress(MAINNET)
        self._following = asyncio.create_task(
            follow_node(self._connect, MAINNET, writer, reader, self._progress, self._moved.set)
        )

    async def begin(self) -> None:
        """Wait until the indexer requests blocks. Raises the error that ended it."""
        await self._until(self._node.asked)

    async def take(self, *messages: ogmios.Message) -> float:
        """Pass messages on, and wait until the last is committed. Returns the seconds. Raises the error that ended the
        indexer.
        """
        last = messages[-1]
        reached = str(last.point if isinstance(last, ogmios.RollBackward) else point_of(last))
        began = time.perf_counter()
        for message in messages:
            self._node.told.put_nowait(message)
        while True:
            self._moved.clear()
            await self._until(self._moved)
            if self._progress.at == reached:
                return time.perf_counter() - began

    async def _until(self, event: asyncio.Event) -> None:
        waiting = asyncio.create_task(event.wait())
        await asyncio.wait((waiting, self._following), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._following.done():
            self._following.result()

    async def end(self) -> None:
        """Stop following."""
        self._following.cancel()
        await asyncio.wait((self._following,))

    async def _connect(self) -> ogmios.Ogmios:
        return self._node


def point_of(message: ogmios.RollForward) -> Point:
    """The point of a block."""
    assert message.block.slot is not None, "only Byron has blocks without a slot"
    return Point(message.block.slot, bytes.fromhex(message.block.id))


@asynccontextmanager
async def following(url: str, chain: Path) -> AsyncIterator[Live]:
    """Follow at the tip of an index; the node has the genesis of `chain`."""
    writer, reader = await database.connect(url, MAINNET), await database.connect(url, MAINNET)
    live = Live(TipNode(chain), writer, reader)
    try:
        await live.begin()
        yield live
    finally:
        await live.end()
        await writer.close()
        await reader.close()
