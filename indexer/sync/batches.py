"""Group the messages of a node: consecutive blocks into batches, a rollback on its own."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import msgspec

from indexer.blocks.packed_block import PackedBlock, is_near_tip
from indexer.ogmios import frames
from indexer.ogmios.connection import RollBackward
from indexer.sync.block_source import NodeMessage

MAX_BLOCKS = 1_000
MAX_TRANSACTIONS = 2_500
_AHEAD = 200  # messages


class Batch(msgspec.Struct, frozen=True):
    """Consecutive blocks, up to MAX_BLOCKS or until they have MAX_TRANSACTIONS. Each epoch's part of it is prepared
    and committed separately.
    """

    blocks: list[PackedBlock]


class Incoming:
    """The messages of a node that have arrived. They are read ahead of their consumer, up to a bounded queue."""

    def __init__(self, queue: asyncio.Queue[NodeMessage], filling: asyncio.Task[None]) -> None:
        self._queue, self._filling = queue, filling
        self._first: NodeMessage | None = None  # looked at, but not taken yet

    async def next(self) -> Batch | RollBackward:
        """Take a rollback, or group blocks: into a large batch far from the node's tip; at the tip as they arrive,
        usually one at a time.

        Once nothing is left to take, raises the error that ended the reading.
        """
        message = await self._look()
        blocks, transactions = list[PackedBlock](), 0
        while not isinstance(message, RollBackward):
            self._first = None
            blocks.append(message)
            transactions += message.host_count
            full = len(blocks) >= MAX_BLOCKS or transactions >= MAX_TRANSACTIONS
            if full or (self._queue.empty() and is_near_tip(message.block_no, message.node_tip)):
                return Batch(blocks)
            message = await self._look()
        if blocks:
            return Batch(blocks)
        self._first = None
        return message

    async def arrived(self, wanted: Callable[[PackedBlock], bool]) -> list[PackedBlock]:
        """Take the next blocks without waiting for more: those that have arrived, up to a batch or to one that is not
        wanted.
        """
        blocks, transactions = list[PackedBlock](), 0
        while transactions < MAX_TRANSACTIONS and (self._first is not None or not self._queue.empty()):
            message = await self._look()
            if isinstance(message, RollBackward) or not wanted(message):
                break
            self._first = None
            blocks.append(message)
            transactions += message.host_count
        return blocks

    async def _look(self) -> NodeMessage:
        """The next message, without taking it. If none is left, raises the error that ended the reading."""
        if self._first is None:
            self._first = await self._get()
        return self._first

    async def _get(self) -> NodeMessage:
        if not self._queue.empty():
            return self._queue.get_nowait()
        got = asyncio.create_task(self._queue.get())
        try:
            await asyncio.wait((got, self._filling), return_when=asyncio.FIRST_COMPLETED)
            if got.done():  # NOTE: checked before `filling`, which may have ended, too: no message is dropped
                return got.result()
        finally:
            got.cancel()
        self._filling.result()
        raise AssertionError("a node never stops sending")


@asynccontextmanager
async def incoming(
    messages: AsyncGenerator[NodeMessage, None], heard: Callable[[frames.NodePoint | None], None]
) -> AsyncIterator[Incoming]:
    """Read a node's messages until the block ends. `heard` is called with the node's tip as each message arrives."""
    queue: asyncio.Queue[NodeMessage] = asyncio.Queue(maxsize=_AHEAD)

    async def fill() -> None:
        async with aclosing(messages):
            async for message in messages:
                heard(message.node_tip if isinstance(message, PackedBlock) else message.tip)
                await queue.put(message)
                # NOTE: neither await above suspends while input is ready, so this one lets batches be written.
                await asyncio.sleep(0)

    filling = asyncio.create_task(fill())
    try:
        yield Incoming(queue, filling)
    finally:
        filling.cancel()
        await asyncio.gather(filling, return_exceptions=True)
