"""Work that several tasks do together."""

import asyncio
from collections.abc import Awaitable, Callable


async def run(worker: Callable[[], Awaitable[None]], tasks: int) -> None:
    """Run as many copies of a worker at once. If one fails, end the others, and raise its error."""
    running = [asyncio.ensure_future(worker()) for _ in range(tasks)]
    try:
        await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
