"""Some blocks, or one rollback, never both."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from indexer.ogmios import Backward
from indexer.parcels import Parcel
from indexer.reading import Step

MOST_BLOCKS = 1_000
MOST_TRANSACTIONS = 2_500
_NEAR_TIP_BLOCKS = 100


class Batch(msgspec.Struct, frozen=True):
    """Consecutive blocks for one commit."""

    blocks: list[Parcel]


async def group(steps: AsyncGenerator[Step, None]) -> AsyncGenerator[Batch | Backward, None]:
    """Parcels as batches: large ones far from the node's tip, at the tip whatever is there, mostly one block.

    Reads ahead of its consumer by one bounded queue.
    """
    queue: asyncio.Queue[Step] = asyncio.Queue(maxsize=200)

    async def fill() -> None:
        async with aclosing(steps):
            async for step in steps:
                await queue.put(step)
                # NOTE: neither of these waits as long as there is something to read, and the writer needs its turns.
                await asyncio.sleep(0)

    reader = asyncio.create_task(fill())
    try:
        held: list[Parcel] = []
        transactions = 0
        while True:
            if held and queue.empty() and _near_tip(held[-1]):
                yield Batch(held)
                held, transactions = [], 0
            step = await _next(queue, reader)
            if isinstance(step, Backward):
                if held:
                    yield Batch(held)
                    held, transactions = [], 0
                yield step
                continue
            held.append(step)
            transactions += step.size
            if len(held) >= MOST_BLOCKS or transactions >= MOST_TRANSACTIONS:
                yield Batch(held)
                held, transactions = [], 0
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)


def _near_tip(parcel: Parcel) -> bool:
    return parcel.tip.height - parcel.block_no < _NEAR_TIP_BLOCKS


async def _next(queue: asyncio.Queue[Step], reader: asyncio.Task[None]) -> Step:
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
    raise AssertionError("steps never end by themselves")
