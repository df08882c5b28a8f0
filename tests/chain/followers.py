"""An indexer in the process of a test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from devnet.server import NodeServer
from indexer.blocks.node_warnings import NodeWarnings
from indexer.sync.choice import NodeChoice
from indexer.sync.follow import Follower
from indexer.sync.progress import Progress
from shared.network import PREVIEW, Network
from tests.patience import PATIENCE_S


@asynccontextmanager
async def following(
    database_url: str, node: NodeServer, network: Network = PREVIEW
) -> AsyncIterator[asyncio.Task[None]]:
    """An indexer of a network, which stops at the end of the block."""
    stop = asyncio.Event()
    follower = Follower(network, database_url, NodeChoice([node.url]), 10, Progress(network), NodeWarnings())
    task = asyncio.create_task(follower.run(stop))
    try:
        yield task
    finally:
        stop.set()
        await task


async def reaches(db: asyncpg.Connection, node: NodeServer, task: asyncio.Task[None]) -> None:
    """Wait until the index has the node's tip. Raises the error that ended the indexer."""
    assert node.tip is not None
    async with asyncio.timeout(PATIENCE_S):
        while not await db.fetchval("SELECT true FROM tip WHERE block_hash = $1", bytes.fromhex(node.tip.id)):
            if task.done():
                await task
            await asyncio.sleep(0.02)
