"""Some blocks, or one rollback, never both."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import msgspec

from indexer.ogmios import Backward, Forward, Message

MOST_BLOCKS = 1_000
MOST_TRANSACTIONS = 5_000
_NEAR_TIP_BLOCKS = 100


class Batch(msgspec.Struct, frozen=True):
    """Consecutive blocks for one commit."""

    blocks: list[Forward]


async def group(messages: AsyncIterator[Message]) -> AsyncGenerator[Batch | Backward, None]:
    """Messages as batches: large ones far from the node's tip, at the tip whatever is there, mostly one block.

    Reads ahead of its consumer by one bounded queue.
    """
    queue: asyncio.Queue[Message] = asyncio.Queue(maxsize=200)

    async def fill() -> None:
        async for message in messages:
            await queue.put(message)
            # NOTE: neither of these waits as long as there is something to read, and the writer needs its turns.
            await asyncio.sleep(0)

    reader = asyncio.create_task(fill())
    try:
        held: list[Forward] = []
        transactions = 0
        while True:
            if held and queue.empty() and _near_tip(held[-1]):
                yield Batch(held)
                held, transactions = [], 0
            message = await _next(queue, reader)
            if isinstance(message, Backward):
                if held:
                    yield Batch(held)
                    held, transactions = [], 0
                yield message
                continue
            held.append(message)
            transactions += len(message.block.transactions)
            if len(held) >= MOST_BLOCKS or transactions >= MOST_TRANSACTIONS:
                yield Batch(held)
                held, transactions = [], 0
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)


def _near_tip(message: Forward) -> bool:
    return message.tip.height - message.block.block_no < _NEAR_TIP_BLOCKS


async def _next(queue: asyncio.Queue[Message], reader: asyncio.Task[None]) -> Message:
    """The next message, or what ended the reader once everything before it is handed on."""
    if not queue.empty():
        return queue.get_nowait()
    got = asyncio.create_task(queue.get())
    try:
        await asyncio.wait((got, reader), return_when=asyncio.FIRST_COMPLETED)
        if got.done():
            return got.result()
    finally:
        got.cancel()
    reader.result()
    raise AssertionError("messages never end by themselves")
