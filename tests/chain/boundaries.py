"""An index in this process that follows a growing chain, compared with its node at each epoch's boundary."""

import asyncio
from collections.abc import Callable

import asyncpg

from devnet.generator import Generated
from devnet.server import NodeServer
from indexer.ogmios import connection as ogmios
from indexer.verify.node import ledger_state
from shared import database
from shared.network import by_name
from shared.network_state import Comparison
from tests.chain.followers import following, reaches

READ_WITHIN_S = 120.0
_READ = """
SELECT complete_epoch_no = $1 AND next_stake_no IS NULL AND NOT EXISTS (SELECT FROM reward_due) FROM ledger_state
"""


async def differences_at_each_boundary(
    database_url: str, chain: Generated, last_epoch: int, tell: Callable[[int, list[Comparison]], None]
) -> list[str]:
    """Grow a chain to the first block of `last_epoch`. Compare at each epoch's first block, and again once its rewards
    are read: `tell` gets the second comparison. Returns the differences in words.
    """
    found: list[str] = []
    network = by_name[chain.network.name]
    async with NodeServer(chain) as node, following(database_url, node, network) as task:
        db = await database.connect(database_url, network)
        try:
            while chain.ledger.epoch < last_epoch:
                epoch = chain.ledger.epoch
                while chain.ledger.epoch == epoch:
                    node.grow(1)
                await reaches(db, node, task)
                found += _in_words(chain, await _compared(db, node))
                await _rewards_read(db, task, chain.ledger.epoch)
                compared = await _compared(db, node)
                found += _in_words(chain, compared)
                tell(chain.ledger.epoch, compared)
        finally:
            await db.close()
    return found


async def _compared(db: asyncpg.Connection, node: NodeServer) -> list[Comparison]:
    connection = await ogmios.connect(node.url)
    try:
        found = await ledger_state.compare(db, connection, by_name[node.chain.network.name], 100.0)
        assert found is not None, "the node has our tip"
        return found
    finally:
        await connection.close()


def _in_words(chain: Generated, found: list[Comparison]) -> list[str]:
    return [
        f"epoch {chain.ledger.epoch}, {each.kind} of {named.name}: {named.ours} here, {named.node} on the node"
        for each in found
        for named in each.differences
    ]


async def _rewards_read(db: asyncpg.Connection, task: "asyncio.Task[None]", epoch_no: int) -> None:
    async with asyncio.timeout(READ_WITHIN_S):
        while not await db.fetchval(_READ, epoch_no):
            if task.done():
                await task
            await asyncio.sleep(0.02)
