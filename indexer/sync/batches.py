"""Group the messages of a node: consecutive blocks into batches, a rollback on its own."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import msgspec

from indexer.blocks.packed_block import NEAR_TIP_BLOCKS, PackedBlock
from indexer.ogmios import frames
from indexer.ogmios.connection import RollBackward
from indexer.sync.block_source import NodeMessage

MOST_BLOCKS = 1_000
MOST_TRANSACTIONS = 2_500


class Batch(msgspec.Struct, frozen=True):
    """Consecutive blocks, up to MOST_BLOCKS. Each epoch's part of it is prepared and committed separately."""

    blocks: list[PackedBlock]


async def group(
    messages: AsyncGenerator[NodeMessage, None], heard: Callable[[frames.NodePoint | None], None]
) -> AsyncGenerator[Batch | RollBackward, None]:
    """Group blocks: into large batches far from the node's tip; at the tip as they arrive, usually one at a time.

    Reads ahead of its consumer, up to a bounded queue. `heard` is called with the node's tip as each message arrives.
    """
    queue: asyncio.Queue[NodeMessage] = asyncio.Queue(maxsize=200)

    async def fill() -> None:
        async with aclosing(messages):
            async for message in messages:
                heard(message.node_tip if isinstance(message, PackedBlock) else message.tip)
                await queue.put(message)
                # NOTE: neither await above suspends while input is ready, so this one lets the writer run.
                await asyncio.sleep(0)

    reader = asyncio.create_task(fill())
    try:
        held: list[PackedBlock] = []
        transactions = 0
        while True:
            full = len(held) >= MOST_BLOCKS or transactions >= MOST_TRANSACTIONS
            if full or (held and queue.empty() and held[-1].blocks_to_tip < NEAR_TIP_BLOCKS):
                yield Batch(held)
                held, transactions = [], 0
            message = await _next(queue, reader)
            if not isinstance(message, RollBackward):
                held.append(message)
                transactions += message.host_count
                continue
            if held:
                yield Batch(held)
                held, transactions = [], 0
            yield message
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)


async def _next(queue: asyncio.Queue[NodeMessage], reader: asyncio.Task[None]) -> NodeMessage:
    """The next message. Once the queue is empty, raises the error that ended the reader."""
    if not queue.empty():
        return queue.get_nowait()
    got = asyncio.create_task(queue.get())
    try:
        await asyncio.wait((got, reader), return_when=asyncio.FIRST_COMPLETED)
        if got.done():  # NOTE: checked before the reader, which may have ended, too: no message is dropped
            return got.result()
    finally:
        got.cancel()
    reader.result()
    raise AssertionError("a node never stops sending")
